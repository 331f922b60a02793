/* The toy learner's state, shared by the files that draw, hold versions, update and write
 * checkpoints. Inside toy/learner only. */
#ifndef GEPOLAB_TOY_LEARNER_LEARNER_H
#define GEPOLAB_TOY_LEARNER_LEARNER_H

#include "core/base/arena.h"
#include "core/rl/optimizer.h"
#include "core/rl/update.h"
#include "toy/learner/toy_learner.h"
#include "toy/world/measure.h"

/* --- the optimizer --- */
/* Gradient ascent on a vector of doubles: SGD with momentum, Adam (1412.6980), AdamW (1711.05101),
 * in PyTorch's conventions. */

typedef struct toy_optimizer {
  optimizer_spec spec;
  size_t n;
  uint64_t steps; /* taken so far */
  double *first;  /* [n] momentum, or Adam's mean of gradients; NULL for plain SGD */
  double *second; /* [n] Adam's mean of squares; NULL for SGD */
} toy_optimizer;

gl_status toy_optimizer_init(toy_optimizer *o, const optimizer_spec *spec, size_t n, gl_error *err);
void toy_optimizer_fini(toy_optimizer *o);

/* theta[n] moves along `direction`[n] = d(-loss)/dtheta, whose norm is first brought down to
 * clip_grad_norm (direction is changed then). Returns the norm before that. */
double toy_optimizer_step(toy_optimizer *o, double lr, double *theta, double *direction);

/* --- the learner --- */

/* The current policy at one prompt; valid while stamp equals the learner's. */
typedef struct prompt_cache {
  uint64_t stamp;
  double *logp, *p; /* [n_edges] */
} prompt_cache;

/* Parameters of an older version that are kept for drawing. */
typedef struct toy_held {
  int64_t version;
  uint64_t stamp; /* the learner's when they were current */
  double *theta;  /* [n_parameters], owned */
} toy_held;

/* Where and how the policy is scored: rewards and prompts of a world of the same sizes. */
typedef struct toy_set {
  toy_world *other; /* whose rewards count; owned; NULL: the world's own */
  size_t *prompt;   /* [n_prompts] in the learner's memory; NULL: all */
  size_t n_prompts;
  evaluation_spec how;
} toy_set;

typedef struct toy_learner {
  toy_world *world;
  toy_set *sets; /* [world->sets.n] */
  update_loop update;
  double *theta;     /* [n_parameters] */
  double *direction; /* [n_parameters] */
  double *logref;    /* [n_prompts * n_edges] the reference policy */
  double *initial;   /* likewise, what samplers' policy is mixed with; NULL: nothing */
  training_reward rewards;
  uint64_t stamp;      /* grows whenever theta changes; starts at 1 */
  prompt_cache *cache; /* [n_prompts] */
  double *scratch;     /* of exact quantities: toy_scratch() */
  double *edges;       /* [n_edges] scratch */
  double *evaluated;   /* [2 * n_edges] scratch of an evaluation under a distribution of its own */
  double *token;       /* [3 * vocabulary] scratch */
  sampling_rank *rank; /* [vocabulary] scratch */
  double *part_score, *prompt_score; /* [sets.n_parts], [n_prompts] scratch where there are sets */
  size_t *slot;     /* [n_prompts] scratch: a prompt's place among a batch's distributions */
  toy_record *dist; /* [cap_dist] what each response of the update's table was drawn from */
  size_t *edge;     /* [cap_edge] of each token of the table */
  size_t cap_dist, cap_edge;
  toy_held *held; /* [n_held] in no order */
  size_t n_held, cap_held;
  toy_optimizer optimizer;
  arena memory; /* of the arrays above, but for dist, edge and held, which grow */
} toy_learner;

/* The current policy's log-probabilities and probabilities at x, computed once per theta. */
const prompt_cache *toy_learner_at(toy_learner *l, size_t x);
/* Numbers the different prompts of a batch in order of appearance, into slot[x]; SIZE_MAX for
 * others. Returns how many there are, or 0 if a prompt is out of range. */
size_t toy_learner_slots(toy_learner *l, const batch *b);
/* Mean over prompts of the expected reward of the current policy. */
double toy_learner_return(toy_learner *l);
/* Whether every parameter is finite. */
int toy_learner_is_finite(const toy_learner *l);

/* The distributions that the responses of a batch were drawn from: `parts` of each record (0: they
 * are of another world), and whether every response has a record of its own or those of a prompt
 * share one. */
typedef struct toy_dists {
  size_t parts;
  int own;
} toy_dists;
/* `slots`: different prompts of the batch. */
toy_dists toy_learner_dists(const toy_learner *l, const batch *b, size_t slots);

/* Reads the evaluation's sets; GL_EINPUT at its place for one that does not fit the world. */
gl_status toy_learner_take_sets(toy_learner *l, const learner_setup *setup, gl_error *err);

/* Adds an empty entry to the list of held versions, theta allocated; NULL if memory is short. */
toy_held *toy_learner_add_held(toy_held **held, size_t *n, size_t *capacity, size_t n_parameters);
void toy_held_free(toy_held *held, size_t n);

/* The functions of the table in core/rl/learner.h, each in a file of its own. */
gl_status toy_learner_draw(void *self, const draw_request *request, batch *b, gl_error *err);
gl_status toy_learner_join(void *self, batch *b, const batch_group *group, size_t n, gl_error *err);
gl_status toy_learner_adopt(const void *self, batch *b, gl_error *err);
size_t toy_learner_longest(const void *self);
gl_status toy_learner_update(void *self, batch *const *batches, size_t n,
                             double metrics[METRIC_COUNT], gl_error *err);
gl_status toy_learner_evaluate(void *self, double *eval_score, gl_error *err);
const evaluation_part *toy_learner_parts(const void *self, size_t *n);
gl_status toy_learner_evaluate_parts(void *self, double *score, gl_error *err);
gl_status toy_learner_hold(void *self, gl_error *err);
void toy_learner_release(void *self, int64_t version);
gl_status toy_learner_save(void *self, FILE *to, gl_error *err);
gl_status toy_learner_load(void *self, FILE *from, gl_error *err);

#endif
