/* One prompt under a learner and a sampler, as tables over its responses. This is all the exact
 * laboratory needs of a world (core/rl/enumerable.h); it is computed once for many algorithms and
 * group sizes. */
#ifndef GEPOLAB_TOY_LAB_PROMPT_TABLES_H
#define GEPOLAB_TOY_LAB_PROMPT_TABLES_H

#include "core/base/arena.h"
#include "core/rl/enumerable.h"

#include <stddef.h>

/* Largest table of token scores, in doubles (1 GiB). */
#define LAB_MAX_SCORES ((size_t)1 << 27)

/* Behaviour distribution in an algorithm's importance weights. Samples always come from the
 * truncated distribution. */
typedef enum lab_weights {
  LAB_WEIGHTS_RAW,
  LAB_WEIGHTS_TRUNCATED,
  LAB_WEIGHTS_REPLAY /* truncated, against the learner's distribution renormalised over the kept
                        tokens */
} lab_weights;

typedef struct lab_tables {
  size_t n;     /* responses with positive sampling probability */
  size_t width; /* number of tokens of the world's longest response */
  size_t n_parameters;
  size_t *parameter;   /* [n_parameters] the world's indices of the parameters, ascending; NULL: all
                          parameters of the world */
  size_t *length;      /* [n] tokens of each response */
  double *reward;      /* [n] expected reward of each response */
  double *draw;        /* [n] sampling probability; sums to 1 */
  double *logp, *logq; /* [n * width] token log-probabilities passed to the algorithm */
  double *score;       /* [n * width * n_parameters] d logp_{y,t} / d theta */
  double
      *gradient; /* [n_parameters] dJ / d theta over all responses, including those never sampled */
  double *kept_gradient; /* [n_parameters] dJ / d theta of the learner's distribution renormalised
                            token by token over the kept tokens; NULL without truncation, or if the
                            world does not support it */
  double value;          /* J = sum_y p(y) r(y) */
  double kl,
      kl_qp; /* KL(p||q), KL(q||p) of responses, nats; +inf where the supports do not match */
  double log_collision; /* log sum_y q(y)^2 of the distribution used in the weights */
  double reward_range;  /* max |r|, the scale for rounding-error tests */
  arena memory;
} lab_tables;

/* Fills the tables of prompt x. Release with lab_tables_fini(). Errors: GL_ENOMEM, GL_EINPUT
 * (LAB_WEIGHTS_REPLAY in a world that truncates but cannot renormalise, or token scores beyond
 * LAB_MAX_SCORES), GL_ENUMERIC (a policy is not a distribution). */
gl_status lab_tables_init(lab_tables *t, const enumerable *world, size_t x,
                          const double *theta_learner, const double *theta_sampler,
                          lab_weights weights, gl_error *err);
/* Removes the parameters that this prompt does not depend on. If each prompt has its own
 * parameters, the memory of all prompts' tables then grows linearly, not quadratically, with the
 * number of prompts. Errors: GL_ENOMEM, which leaves the tables as they are. */
gl_status lab_tables_narrow(lab_tables *t, gl_error *err);
void lab_tables_fini(lab_tables *t);

#endif
