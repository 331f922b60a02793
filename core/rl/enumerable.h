/* A policy over a finite set of responses, seen whole. The exact laboratory works over this table
 * alone, so that a bandit, a sequence world, an MDP's trajectories or a small transformer can all
 * be measured by the same code.
 *
 * For prompt x there are K(x) responses; response y has T(x,y) tokens. `theta` is a parameter
 * vector of n_parameters doubles, so that learner and sampler are two vectors under one table.
 */
#ifndef GEPOLAB_CORE_RL_ENUMERABLE_H
#define GEPOLAB_CORE_RL_ENUMERABLE_H

#include "core/base/error.h"

#include <stddef.h>

typedef struct enumerable_ops {
  /* Number of responses of prompt x. */
  size_t (*n_responses)(const void *self, size_t x);
  /* Tokens of response y. */
  size_t (*length)(const void *self, size_t x, size_t y);
  /* Rewards of all K responses into reward[K]. */
  void (*rewards)(const void *self, size_t x, double *reward);
  /* Token log-probabilities of every response under theta into logp[K * max_length], row y holding
   * T(x,y) values then zeros. */
  gl_status (*log_probs)(const void *self, const double *theta, size_t x, double *logp,
                         gl_error *err);
  /* Same under the truncated distribution (temperature, top-k, top-p) that sampling really draws
   * from; -inf for a token outside it. NULL: no truncation exists. */
  gl_status (*log_probs_truncated)(const void *self, const double *theta, size_t x, double *logp,
                                   gl_error *err);
  /* The distribution of theta renormalised, token by token, over what the sampler of theta_sampler
   * keeps, as log_probs; -inf for a token outside. NULL: as for log_probs_truncated, or the world
   * cannot. */
  gl_status (*log_probs_replayed)(const void *self, const double *theta,
                                  const double *theta_sampler, size_t x, double *logp,
                                  gl_error *err);
  /* accumulate_score of that distribution; coefficients of tokens outside must be 0. NULL likewise.
   */
  gl_status (*accumulate_score_replayed)(const void *self, const double *theta,
                                         const double *theta_sampler, size_t x,
                                         const double *coefficient, double *grad, gl_error *err);
  /* grad += sum_{y,t} coefficient[y * max_length + t] * d logp_{y,t} / d theta. */
  gl_status (*accumulate_score)(const void *self, const double *theta, size_t x,
                                const double *coefficient, double *grad, gl_error *err);
  /* Sequence scores: row y of score[K * n_parameters] = d (sum_t logp_{y,t}) / d theta. */
  gl_status (*sequence_scores)(const void *self, const double *theta, size_t x, double *score,
                               gl_error *err);
  /* Token scores: row y * max_length + t of score[K * max_length * n_parameters], given as zeros, =
   * d logp_{y,t} / d theta; rows beyond T(x,y) are left. NULL: one accumulate_score each. */
  gl_status (*token_scores)(const void *self, const double *theta, size_t x, double *score,
                            gl_error *err);
  /* Where responses are too many to be listed, or sums over them are known otherwise; NULL: from
   * the list. J of prompt x, and gradient[n_parameters] += weight * dJ/dtheta unless it is NULL. */
  gl_status (*value)(const void *self, const double *theta, size_t x, double weight, double *value,
                     double *gradient, gl_error *err);
  /* KL(p||q) and KL(q||p) of the responses to prompt x; +inf where a support is missing. */
  gl_status (*divergence)(const void *self, const double *theta_p, const double *theta_q, size_t x,
                          double *kl_pq, double *kl_qp, gl_error *err);
} enumerable_ops;

typedef struct enumerable {
  const enumerable_ops *ops;
  const void *self;            /* borrowed */
  size_t n_prompts;            /* prompts are equally likely unless prompt_weight is set */
  const double *prompt_weight; /* [n_prompts], sums to 1; NULL: uniform */
  size_t n_parameters;
  size_t max_length;    /* largest T(x,y) */
  size_t max_responses; /* largest K(x) */
} enumerable;

#endif
