/* Moments of delay distributions and of the largest of several draws, for the closed forms of
 * sim/theory.h. Inside sim/ only; what they are for is in paper/methods.md §10.11.
 *
 * A moment is the integral of P(X > t) or 2t P(X > t) over t, of the largest of independent draws
 * with P(max > t) = 1 - prod (1 - P(X_i > t)). Integrals are GSL's cquad on pieces that double in
 * length, to a relative error of 1e-9; lengths in whole tokens are summed. Prefix: moment_. */
#ifndef GEPOLAB_SIM_THEORY_MOMENTS_H
#define GEPOLAB_SIM_THEORY_MOMENTS_H

#include "sim/cluster_spec.h"
#include "sim/delay.h"

#include <stdbool.h>
#include <stddef.h>

/* Draws of a distribution that are multiplied by `factor` (above 0) and then moved by `shift`;
 * `count` of them. */
typedef struct moment_draws {
  const delay_dist *dist; /* borrowed; any but gilbert_elliott */
  double factor, shift;
  size_t count;
} moment_draws;

/* Whether all draws are one value, which is then in *value. */
bool moment_is_constant(const delay_dist *dist, double *value);
/* Whether E[X^power], power 1 or 2, is finite and not too near to a divergence to be computed. */
bool moment_is_finite(const delay_dist *dist, int power);
/* E[X^power] of one draw, power 1 or 2, where moment_is_finite(). GL_ENUMERIC where the integral
 * misses its error. */
gl_status moment_of(double *out, const delay_dist *dist, int power, gl_error *err);
/* The mean of the largest of all draws of n kinds, each with a finite mean. */
gl_status moment_of_largest(double *out, const moment_draws *draws, size_t n, gl_error *err);
/* The mean of the largest of `count` response lengths in whole tokens, rounded and limited as
 * sim/cluster_spec.h says. GL_ENUMERIC where more than 2,000,000 terms are needed. */
gl_status moment_of_longest(double *out, const response_spec *spec, double count, gl_error *err);

#endif
