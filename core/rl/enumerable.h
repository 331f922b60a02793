/* Interface to a policy over a finite, enumerable set of responses. The exact laboratory only uses
 * this table of functions, so it can measure a bandit, a sequence world, the trajectories of an MDP
 * or a small transformer.
 *
 * Prompt x has K(x) responses; response y has T(x,y) tokens. `theta` is a vector of n_parameters
 * doubles; learner and sampler are two such vectors of the same policy class. */
#ifndef GEPOLAB_CORE_RL_ENUMERABLE_H
#define GEPOLAB_CORE_RL_ENUMERABLE_H

#include "core/base/error.h"

#include <stddef.h>

typedef struct enumerable_ops {
  /* Returns K(x). */
  size_t (*n_responses)(const void *self, size_t x);
  /* Returns T(x,y), the number of tokens of response y. */
  size_t (*length)(const void *self, size_t x, size_t y);
  /* Writes the rewards of all K responses to reward[K]. */
  void (*rewards)(const void *self, size_t x, double *reward);
  /* Writes token log-probabilities of every response under theta to logp[K * max_length]; row y has
   * T(x,y) values, then zeros. */
  gl_status (*log_probs)(const void *self, const double *theta, size_t x, double *logp,
                         gl_error *err);
  /* Like log_probs, under the truncated distribution (temperature, top-k, top-p) that is actually
   * sampled from; -inf for tokens outside it. NULL: there is no truncation. */
  gl_status (*log_probs_truncated)(const void *self, const double *theta, size_t x, double *logp,
                                   gl_error *err);
  /* Like log_probs, for the distribution of theta renormalised at each token over the tokens that
   * the sampler with theta_sampler keeps; -inf for other tokens. NULL: there is no truncation, or
   * the world does not support this. */
  gl_status (*log_probs_replayed)(const void *self, const double *theta,
                                  const double *theta_sampler, size_t x, double *logp,
                                  gl_error *err);
  /* Like accumulate_score, for the same distribution; coefficients of tokens outside it must be 0.
   * NULL in the same cases. */
  gl_status (*accumulate_score_replayed)(const void *self, const double *theta,
                                         const double *theta_sampler, size_t x,
                                         const double *coefficient, double *grad, gl_error *err);
  /* Adds sum_{y,t} coefficient[y * max_length + t] * d logp_{y,t} / d theta to grad. */
  gl_status (*accumulate_score)(const void *self, const double *theta, size_t x,
                                const double *coefficient, double *grad, gl_error *err);
  /* Writes sequence scores: row y of score[K * n_parameters] = d (sum_t logp_{y,t}) / d theta. */
  gl_status (*sequence_scores)(const void *self, const double *theta, size_t x, double *score,
                               gl_error *err);
  /* Writes token scores: row y * max_length + t of score[K * max_length * n_parameters] = d
   * logp_{y,t} / d theta. score must be zero on entry; rows beyond T(x,y) are not written. NULL:
   * callers use one accumulate_score per token instead. */
  gl_status (*token_scores)(const void *self, const double *theta, size_t x, double *score,
                            gl_error *err);
  /* Writes the expected reward J of prompt x to *value and adds weight * dJ/dtheta to
   * gradient[n_parameters] unless it is NULL. For worlds with too many responses to list, or with a
   * faster method. NULL: callers sum over the list. */
  gl_status (*value)(const void *self, const double *theta, size_t x, double weight, double *value,
                     double *gradient, gl_error *err);
  /* Writes KL(p||q) and KL(q||p) of the responses to prompt x; +inf if q, or p, is zero where the
   * other is not. NULL: callers sum over the list. */
  gl_status (*divergence)(const void *self, const double *theta_p, const double *theta_q, size_t x,
                          double *kl_pq, double *kl_qp, gl_error *err);
} enumerable_ops;

/* A world with too many responses to list sets only the operations value and divergence, and
 * max_responses is 0. */
typedef struct enumerable {
  const enumerable_ops *ops;
  const void *self;            /* borrowed */
  size_t n_prompts;            /* equally likely unless prompt_weight is set */
  const double *prompt_weight; /* [n_prompts], sums to 1; NULL: uniform */
  size_t n_parameters;
  size_t max_length;    /* largest T(x,y) */
  size_t max_responses; /* largest K(x) */
} enumerable;

/* The probability of prompt x. */
static inline double enumerable_prompt_weight(const enumerable *e, size_t x) {
  return e->prompt_weight != NULL ? e->prompt_weight[x] : 1 / (double)e->n_prompts;
}

#endif
