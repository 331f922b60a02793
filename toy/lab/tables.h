/* One prompt under a learner and a sampler, as tables over its responses: all that the exact
 * laboratory needs of a world (core/rl/enumerable.h), computed once for many algorithms and group
 * sizes.
 */
#ifndef GEPOLAB_TOY_LAB_TABLES_H
#define GEPOLAB_TOY_LAB_TABLES_H

#include "core/base/arena.h"
#include "core/rl/enumerable.h"

#include <stddef.h>

/* Largest table of token scores, in doubles (1 GiB). */
#define LAB_MAX_SCORES ((size_t)1 << 27)

/* Which sampler distribution the weights of an algorithm see; draws always come from the truncated
 * distribution. */
typedef enum lab_weights {
  LAB_WEIGHTS_RAW,
  LAB_WEIGHTS_TRUNCATED,
  LAB_WEIGHTS_REPLAY /* that distribution, against the learner's renormalised over what it keeps */
} lab_weights;

typedef struct lab_tables {
  size_t n;     /* responses that the sampler can draw */
  size_t width; /* tokens of the longest response of the world */
  size_t n_parameters;
  size_t *length;        /* [n] */
  double *reward;        /* [n] */
  double *draw;          /* [n] probability of a draw, sums to 1 */
  double *logp, *logq;   /* [n * width] token log-probabilities an algorithm sees */
  double *score;         /* [n * width * n_parameters] d logp_{y,t} / d theta */
  double *gradient;      /* [n_parameters] d J / d theta over all responses, drawn or not */
  double *kept_gradient; /* [n_parameters] that of the learner's distribution renormalised, token by
                            token, over what the sampler keeps; NULL where nothing is truncated, or
                            the world has no such form */
  double value;          /* J = sum_y p(y) r(y) */
  double kl, kl_qp;     /* KL(p||q), KL(q||p) of responses, nats; +inf where a support is missing */
  double log_collision; /* log sum_y q(y)^2, of the distribution that the weights see */
  double reward_range;  /* max |r|, for telling zero from rounding */
  arena memory;
} lab_tables;

/* Fills the tables of prompt x. GL_EINPUT for LAB_WEIGHTS_REPLAY in a world that truncates and has
 * no renormalised distribution, and when the token scores would exceed LAB_MAX_SCORES, GL_ENUMERIC
 * when a policy is not a distribution. Release with lab_tables_fini(). */
gl_status lab_tables_init(lab_tables *t, const enumerable *world, size_t x,
                          const double *theta_learner, const double *theta_sampler,
                          lab_weights weights, gl_error *err);
void lab_tables_fini(lab_tables *t);

#endif
