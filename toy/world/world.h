/* What a toy world is made of. Inside toy/ only; toy/world/toy_world.h is what other rooms see. */
#ifndef GEPOLAB_TOY_WORLD_WORLD_H
#define GEPOLAB_TOY_WORLD_WORLD_H

#include "core/rl/evaluation.h"
#include "core/rl/sampling.h"
#include "core/rl/sequence_task.h"
#include "toy/world/automaton.h"
#include "toy/world/features.h"
#include "toy/world/toy_world.h"

enum { TOY_MAX_CONTEXTS = 1 << 20 };

typedef enum toy_noise { NOISE_NONE, NOISE_BERNOULLI, NOISE_GAUSSIAN } toy_noise;
typedef enum toy_init { INIT_ZEROS, INIT_NORMAL, INIT_PROBS } toy_init;
typedef enum toy_reference { REFERENCE_INITIAL, REFERENCE_UNIFORM } toy_reference;

struct toy_world {
  response_tree tree; /* the same for all prompts; of a counted world the graph of last letters
                         (toy/world/automaton.h) */
  size_t n_prompts;
  int counted; /* responses are too many to be listed; sums over them are dynamic programmes */
  int bigram;  /* the policy sees prompt and last letter only */
  toy_automaton *automata; /* [n_prompts] of worlds of kind automaton, else NULL */
  double *reward;          /* [n_prompts * n_responses] mean rewards; NULL where counted */
  toy_noise noise;         /* of the rewards a learner sees; exact quantities use the means */
  double noise_sd;         /* of NOISE_GAUSSIAN */
  toy_features features;
  toy_init init;
  double init_scale;  /* standard deviation of the logits of INIT_NORMAL */
  double *init_theta; /* [n_parameters] for INIT_PROBS, else NULL */
  toy_reference reference;
  sampling_spec sampling;
  evaluation_spec evaluation; /* exact or greedy */
  evaluation_sets sets;
};

/* Makes reward[n_prompts * n_responses], all 0; GL_EINPUT at section if that is more than a toy
 * world enumerates. */
gl_status toy_reserve_rewards(toy_world *w, const cfg_node *section, gl_error *err);

/* A kind of world: one file that defines it, and one word in TOY_WORLDS. Its fields are in the
 * table of toy/world/world.c. */
typedef struct toy_world_kind {
  const char *name;
  const char *about; /* one line */
  /* Reads the kind's own keys of the section that r is at, and sets tree, n_prompts, reward (with
   * toy_reserve_rewards) and noise. What is random is drawn at RNG_WORLD of the seed. *modulus, 1
   * before, is that of the features sum and remainder. The caller ends the reader. */
  gl_status (*parse)(toy_world *w, cfg_reader *r, const cfg_node *section, uint64_t seed,
                     size_t *modulus, gl_error *err);
} toy_world_kind;

/* All kinds, in the order in which they are listed; the first is the default. A file of its own
 * defines toy_world_NAME. */
#define TOY_WORLDS(WORLD) WORLD(bandit) WORLD(sequence) WORLD(automaton)
#define TOY_WORLD_DECLARED(name) extern const toy_world_kind toy_world_##name;
TOY_WORLDS(TOY_WORLD_DECLARED)

/* Log-probabilities of every edge under prompt x at the temperature of `sampling`, logp[n_edges],
 * and the probabilities themselves, p[n_edges], unless p is NULL. */
void toy_probs(const toy_world *w, const double *theta, size_t x, double *logp, double *p);
/* The same at any temperature > 0. */
void toy_probs_at(const toy_world *w, const double *theta, size_t x, double temperature,
                  double *logp, double *p);
void toy_log_probs(const toy_world *w, const double *theta, size_t x, double *logp);
/* The distribution that tokens are drawn from under top-k and top-p: out[n_nodes * vocabulary] from
 * log-probabilities of the same edges; rank[vocabulary] is scratch. */
void toy_truncate(const toy_world *w, const sampling_spec *dist, const double *logp, size_t n_nodes,
                  double *out, sampling_rank *rank);
/* out[v] = one node's log-probabilities logp[v], renormalised over the tokens that `drawn`[v], a
 * truncated distribution, keeps; -inf for the others. p (NULL: not wanted) gets the probabilities.
 */
void toy_replay_node(const double *logp, const double *drawn, size_t v, double *out, double *p);
/* grad += coefficient * d logp(edge) / d theta, where p is the node's probabilities [vocabulary]
 * and dz[vocabulary] scratch. */
void toy_add_score(const toy_world *w, size_t x, size_t edge, double coefficient,
                   const double *node_p, double *dz, double *grad);
/* grad += sum_e flow[e] * d logp(e) / d theta over all edges of prompt x; p has the edges'
 * log-probabilities, and dz[vocabulary] is scratch. */
void toy_add_flow(const toy_world *w, size_t x, const double *flow, const double *logp, double *dz,
                  double *grad);
/* A hash of all that gives parameters their meaning: equal worlds have equal ones, whatever
 * evaluates or trains them. */
uint64_t toy_world_fingerprint(const toy_world *w);

#endif
