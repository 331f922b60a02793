/* Moments of delay distributions and of maxima of several samples, for the closed forms of
 * sim/closed_forms.h. Private to sim/; used as described in paper/methods.md §10.11.
 *
 * A moment is the integral of P(X > t) or 2t P(X > t) over t; for the maximum of independent
 * samples P(max > t) = 1 - prod (1 - P(X_i > t)). Integrals use GSL's cquad on intervals of
 * doubling length, with a relative error of 1e-9; lengths in whole tokens are summed. Prefix:
 * moment_. */
#ifndef GEPOLAB_SIM_DELAY_MOMENTS_H
#define GEPOLAB_SIM_DELAY_MOMENTS_H

#include "sim/cluster_spec.h"
#include "sim/delay.h"

#include <stdbool.h>
#include <stddef.h>

/* `count` samples of a distribution, each multiplied by `factor` (> 0) and then shifted by `shift`.
 */
typedef struct moment_draws {
  const delay_dist *dist; /* borrowed; any but gilbert_elliott */
  double factor, shift;
  size_t count;
} moment_draws;

/* Whether all samples have the same value, which is written to *value. */
bool moment_is_constant(const delay_dist *dist, double *value);
/* Whether E[X^power], power 1 or 2, is finite and not too close to divergence to be computed. */
bool moment_is_finite(const delay_dist *dist, int power);
/* E[X^power], power 1 or 2; requires moment_is_finite(). Errors: GL_ENUMERIC if the integral misses
 * its error. */
gl_status moment_of(double *out, const delay_dist *dist, int power, gl_error *err);
/* The mean of the maximum over all samples of n kinds, each with a finite mean. */
gl_status moment_of_largest(double *out, const moment_draws *draws, size_t n, gl_error *err);
/* The mean maximum of `count` response lengths in whole tokens, rounded and limited as in
 * sim/cluster_spec.h. Errors: GL_ENUMERIC if more than 2,000,000 terms are needed. */
gl_status moment_of_longest(double *out, const response_spec *spec, double count, gl_error *err);

#endif
