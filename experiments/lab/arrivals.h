/* What arrives of groups that are drawn, exactly: a group of G responses to a prompt, drawn from a
 * policy, arrives with a probability that depends on its longest response, and the gradient that
 * arrives is another one than the gradient that was drawn (paper/methods.md §7.11). */
#ifndef GEPOLAB_EXPERIMENTS_LAB_ARRIVALS_H
#define GEPOLAB_EXPERIMENTS_LAB_ARRIVALS_H

#include "core/rl/enumerable.h"

#include <stddef.h>

/* Expectations over groups, of those drawn or of those that arrive. */
typedef struct arrivals_side {
  double reward, length; /* of a response */
  double *gradient; /* [n_parameters] owned: (1/G) sum_i (r_i - mean r) d log p(y_i) / d theta */
} arrivals_side;

typedef struct arrivals {
  size_t max_length, n_parameters;
  double *longest;    /* [max_length + 1] owned: share of groups drawn by their longest response */
  double probability; /* that a group arrives, or its mean weight */
  arrivals_side drawn, arrived;
  double correlation; /* of reward and length within prompts, of responses drawn; NaN where one of
                         them does not vary */
  double cosine;      /* of the two gradients; NaN where one is 0 */
  double norm_ratio;  /* of arrived to drawn */
} arrivals;

/* arrives[world->max_length + 1]: the probability to arrive of a group whose longest response has
 * so many tokens, or its mean weight (0: it does not arrive). Release with arrivals_fini(); *out is
 * empty after an error. GL_EINPUT where nothing arrives, and as lab_tables_init(). group_size is 2
 * or more. */
gl_status arrivals_measure(arrivals *out, const enumerable *world, const double *theta,
                           size_t group_size, const double *arrives, gl_error *err);
void arrivals_fini(arrivals *a);

#endif
