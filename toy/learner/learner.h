/* State of the toy learner, shared by the files that sample, hold versions, update and write
 * checkpoints. Private to toy/learner. */
#ifndef GEPOLAB_TOY_LEARNER_LEARNER_H
#define GEPOLAB_TOY_LEARNER_LEARNER_H

#include "core/base/arena.h"
#include "core/rl/optimizer_settings.h"
#include "core/rl/update.h"
#include "toy/learner/toy_learner.h"
#include "toy/world/measure.h"

/* --- the optimizer --- */
/* Gradient ascent on a vector of doubles with PyTorch's conventions: SGD with momentum, Adam (arXiv
 * 1412.6980), AdamW (arXiv 1711.05101). */

typedef struct toy_optimizer {
  optimizer_spec spec;
  size_t n;
  uint64_t steps; /* optimiser steps so far */
  double *first;  /* [n] momentum, or Adam's first moment; NULL for plain SGD */
  double *second; /* [n] Adam's second moment; NULL for SGD */
} toy_optimizer;

gl_status toy_optimizer_init(toy_optimizer *o, const optimizer_spec *spec, size_t n, gl_error *err);
void toy_optimizer_fini(toy_optimizer *o);

/* Takes one optimiser step on theta[n] with direction[n] = d(-loss)/dtheta, after clipping the norm
 * of direction to clip_grad_norm in place. Returns the norm before clipping. */
double toy_optimizer_step(toy_optimizer *o, double lr, double *theta, double *direction);

/* --- the learner --- */

/* The current policy at one prompt; valid if stamp equals the learner's. */
typedef struct prompt_cache {
  uint64_t stamp;
  double *logp, *p; /* [n_edges] log-probabilities, probabilities */
} prompt_cache;

/* Parameters of an older version that samplers still use. */
typedef struct toy_held {
  int64_t version;
  uint64_t stamp; /* the learner's stamp when these parameters were current */
  double *theta;  /* [n_parameters] parameters, owned */
} toy_held;

/* An evaluation set: the prompts, and the rewards of a world of the same shape. */
typedef struct toy_set {
  toy_world *other; /* owned; the world whose rewards count; NULL: the learner's own */
  size_t *prompt;   /* [n_prompts] prompt numbers, in the learner's arena; NULL: all prompts */
  size_t n_prompts;
  evaluation_spec how;
} toy_set;

typedef struct toy_learner {
  toy_world *world;
  toy_set *sets; /* [world->sets.n] evaluation sets */
  update_loop update;
  double *theta;     /* [n_parameters] the parameters */
  double *average;   /* [n_parameters] the proximal policy's moving average of theta; NULL: the
                        algorithm has no proximal_decay */
  double *direction; /* [n_parameters] d(-loss)/dtheta */
  double *logref;    /* [n_prompts * n_edges] log-probabilities of the reference policy */
  double *initial;   /* [n_prompts * n_edges] the policy mixed into the behaviour policy; NULL: no
                        mixture */
  training_reward rewards;
  uint64_t stamp;      /* incremented whenever theta changes; starts at 1 */
  prompt_cache *cache; /* [n_prompts] the current policy at each prompt */
  double *scratch;     /* scratch of exact quantities, of size toy_scratch() */
  double *edges;       /* [n_edges] scratch */
  double *evaluated;   /* [2 * n_edges] scratch of evaluations under other sampling settings */
  double *token;       /* [3 * vocabulary] scratch */
  sampling_rank *rank; /* [vocabulary] scratch */
  double *part_score,
      *prompt_score; /* [sets.n_parts], [n_prompts] scratch; allocated if there are sets */
  size_t *slot;      /* [n_prompts] scratch: index of a prompt's distribution in the batch */
  toy_behaviour
      *dist;    /* [cap_dist] behaviour distribution of each response in the update's table */
  size_t *edge; /* [cap_edge] edge of each token in the update's table */
  size_t cap_dist, cap_edge;
  toy_held *held; /* [n_held] held versions, unordered */
  size_t n_held, cap_held;
  toy_optimizer optimizer;
  arena memory; /* memory of the arrays above, except dist, edge and held, which grow */
} toy_learner;

/* Returns the current policy's log-probabilities and probabilities at prompt x, computed once per
 * theta. */
const prompt_cache *toy_learner_at(toy_learner *l, size_t x);
/* Numbers the different prompts of a batch in order of appearance, in slot[x]; SIZE_MAX for all
 * others. Returns their number, or 0 if a prompt is out of range. */
size_t toy_learner_slots(toy_learner *l, const batch *b);
/* Mean over prompts of the expected reward of the current policy. */
double toy_learner_return(toy_learner *l);
/* Returns 1 if every parameter is finite. */
int toy_learner_is_finite(const toy_learner *l);

/* The behaviour distributions stored in a batch. parts: tables per distribution; 0 if the sizes do
 * not fit this world. own: 1 if every response has its own, 0 if the responses of a prompt share
 * one. */
typedef struct toy_dists {
  size_t parts;
  int own;
} toy_dists;
/* `slots`: number of different prompts in the batch. */
toy_dists toy_learner_dists(const toy_learner *l, const batch *b, size_t slots);

void toy_held_free(toy_held *held, size_t n);

/* Implementations of operations in core/rl/learner.h; those of evaluation are in learner.c. */
gl_status toy_learner_draw(void *self, const draw_request *request, batch *b, gl_error *err);
gl_status toy_learner_join(void *self, batch *b, const batch_group *group, size_t n, gl_error *err);
gl_status toy_learner_adopt(const void *self, batch *b, gl_error *err);
size_t toy_learner_longest(const void *self);
gl_status toy_learner_update(void *self, batch *const *batches, size_t n,
                             double metrics[METRIC_COUNT], gl_error *err);
gl_status toy_learner_hold(void *self, gl_error *err);
void toy_learner_release(void *self, int64_t version);
gl_status toy_learner_save(void *self, FILE *to, gl_error *err);
gl_status toy_learner_load(void *self, FILE *from, gl_error *err);

#endif
