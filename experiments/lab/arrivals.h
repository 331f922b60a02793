/* Length-dependent delivery, exactly: a group of G responses reaches the learner with a probability
 * that depends on its longest response. The gradient of the groups that reach the learner therefore
 * differs from that of the groups sampled (paper/methods.md §7.11). */
#ifndef GEPOLAB_EXPERIMENTS_LAB_ARRIVALS_H
#define GEPOLAB_EXPERIMENTS_LAB_ARRIVALS_H

#include "core/rl/enumerable.h"

#include <stddef.h>

/* Expectations over groups, either all sampled ones or those that reach the learner. */
typedef struct arrivals_side {
  double reward, length; /* mean per response */
  double *gradient; /* [n_parameters] owned: (1/G) sum_i (r_i - mean r) d log p(y_i) / d theta */
} arrivals_side;

typedef struct arrivals {
  size_t max_length, n_parameters;
  double *longest; /* [max_length + 1] owned: fraction of sampled groups by length of their longest
                      response */
  double probability; /* probability that a group reaches the learner, or its mean weight */
  arrivals_side drawn, arrived;
  double correlation; /* correlation of reward and length within prompts over sampled responses; NaN
                         if one of them is constant */
  double cosine;      /* cosine of the two gradients; NaN if one is 0 */
  double norm_ratio;  /* norm of the arrived gradient / norm of the drawn gradient */
} arrivals;

/* Computes the expectations. arrives[world->max_length + 1]: probability that a group reaches the
 * learner, or its mean weight (0: never), by the length of its longest response. group_size is 2 or
 * more. Release with arrivals_fini(); *out is empty after an error. Errors: GL_EINPUT (no group
 * reaches the learner), and those of lab_tables_init(). */
gl_status arrivals_measure(arrivals *out, const enumerable *world, const double *theta,
                           size_t group_size, const double *arrives, gl_error *err);
void arrivals_fini(arrivals *a);

#endif
