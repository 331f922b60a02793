/* The members of a toy world; private to toy/. Other folders include toy/world/toy_world.h. */
#ifndef GEPOLAB_TOY_WORLD_WORLD_H
#define GEPOLAB_TOY_WORLD_WORLD_H

#include "core/rl/evaluation.h"
#include "core/rl/sampling_distribution.h"
#include "core/rl/sequence_task.h"
#include "toy/world/automaton.h"
#include "toy/world/features.h"
#include "toy/world/toy_world.h"

enum { TOY_MAX_CONTEXTS = 1 << 20 };

typedef enum toy_noise { NOISE_NONE, NOISE_BERNOULLI, NOISE_GAUSSIAN } toy_noise;
typedef enum toy_init { INIT_ZEROS, INIT_NORMAL, INIT_PROBS } toy_init;
typedef enum toy_reference { REFERENCE_INITIAL, REFERENCE_UNIFORM } toy_reference;

struct toy_world {
  response_tree tree; /* shared by all prompts; in a counted world the graph of last letters
                         (toy/world/automaton.h) */
  size_t n_prompts;
  int counted;             /* 1: responses are too many to list; sums use dynamic programming */
  int bigram;              /* 1: the policy depends on prompt and last letter only */
  toy_automaton *automata; /* [n_prompts] for kind automaton, else NULL */
  double *reward;          /* [n_prompts * n_responses] mean rewards; NULL in counted worlds */
  toy_noise noise;         /* noise on the learner's rewards; exact quantities use the means */
  double noise_sd;         /* standard deviation for NOISE_GAUSSIAN */
  toy_features features;
  toy_init init;
  double init_scale;  /* standard deviation of the initial logits for INIT_NORMAL */
  double *init_theta; /* [n_parameters] for INIT_PROBS, else NULL */
  toy_reference reference;
  sampling_spec sampling;
  evaluation_spec evaluation; /* exact or greedy */
  evaluation_sets sets;
};

/* Allocates reward[n_prompts * n_responses], zeroed. Errors: GL_ENOMEM, GL_EINPUT at `section`
 * (more than a toy world may enumerate). */
gl_status toy_reserve_rewards(toy_world *w, const cfg_node *section, gl_error *err);

/* A kind of world. To add one, write a file that defines it and add its name to TOY_WORLDS; its
 * fields go into the table in toy/world/world.c. */
typedef struct toy_world_kind {
  const char *name;
  const char *about; /* a description of one line */
  /* Reads the kind's own keys of the section that r is at and sets tree, n_prompts, reward (with
   * toy_reserve_rewards) and noise. Random parts are sampled at RNG_WORLD of the seed. *modulus (1
   * on entry) is the modulus of the features `sum` and `remainder`. The caller ends the reader. */
  gl_status (*parse)(toy_world *w, cfg_reader *r, const cfg_node *section, uint64_t seed,
                     size_t *modulus, gl_error *err);
} toy_world_kind;

/* All kinds in the order of listings; the first is the default. Each toy_world_NAME is defined in a
 * .c file of this folder. */
#define TOY_WORLDS(WORLD) WORLD(bandit) WORLD(sequence) WORLD(automaton)
#define TOY_WORLD_DECLARED(name) extern const toy_world_kind toy_world_##name;
TOY_WORLDS(TOY_WORLD_DECLARED)

/* Builds the world of a decision process from a section whose kind satisfies mdp_is_kind(). Stores
 * the recipe's node world.policy.init, which the caller reads, or NULL in *init. */
gl_status toy_process_build(toy_world *w, const cfg_node *section, uint64_t seed,
                            const cfg_node **init, gl_error *err);

/* Writes the log-probabilities of every edge of prompt x at the temperature of `sampling` to
 * logp[n_edges] and, if p is not NULL, the probabilities to p[n_edges]. */
void toy_probs(const toy_world *w, const double *theta, size_t x, double *logp, double *p);
/* toy_probs() at a given temperature > 0. */
void toy_probs_at(const toy_world *w, const double *theta, size_t x, double temperature,
                  double *logp, double *p);
void toy_log_probs(const toy_world *w, const double *theta, size_t x, double *logp);
/* Applies top-k and top-p: writes the log-probabilities of the truncated sampling distribution to
 * out[n_nodes * vocabulary], given those of the same edges. rank[vocabulary] is scratch. */
void toy_truncate(const toy_world *w, const sampling_spec *dist, const double *logp, size_t n_nodes,
                  double *out, sampling_rank *rank);
/* out[v] = one node's log-probabilities logp[v], renormalised over the tokens kept by the truncated
 * distribution `drawn`[v]; -inf for the others. If p is not NULL, it receives the probabilities. */
void toy_replay_node(const double *logp, const double *drawn, size_t v, double *out, double *p);
/* grad += coefficient * d logp(edge) / d theta. node_p[vocabulary] has the node's probabilities;
 * dz[vocabulary] is scratch. */
void toy_add_score(const toy_world *w, size_t x, size_t edge, double coefficient,
                   const double *node_p, double *dz, double *grad);
/* grad += sum_e flow[e] * d logp(e) / d theta over all edges of prompt x. logp has the edges'
 * log-probabilities; dz[vocabulary] is scratch. */
void toy_add_flow(const toy_world *w, size_t x, const double *flow, const double *logp, double *dz,
                  double *grad);
/* Hash of everything that defines the meaning of the parameters. Equal worlds have equal hashes,
 * whatever code evaluates or trains them. */
uint64_t toy_world_fingerprint(const toy_world *w);

#endif
