/* How a share of falls depends on a dose: logistic regression on few runs.
 *
 * The dose x is the logarithm of what is varied (a learning rate); P(fall) = 1 / (1 + exp(-(a + b
 * x))). With a handful of runs a rate the falls often separate perfectly and the likelihood has no
 * maximum, so it is penalised by half the logarithm of the determinant of Fisher's information
 * (Firth 1993, Biometrika 80:27; Heinze and Schemper 2002, Statistics in Medicine 21:2409), which
 * always has one. Intervals are profiles of the penalised likelihood: all doses whose best slope
 * loses at most 1.92 against the best of all. They may be open.
 */
#ifndef GEPOLAB_ANALYSIS_DOSE_H
#define GEPOLAB_ANALYSIS_DOSE_H

#include "analysis/statistics.h"

#include <stddef.h>
#include <stdint.h>

/* Runs at one dose. */
typedef struct dose_group {
  double x;
  size_t runs, falls;
} dose_group;

typedef struct dose_fit {
  double a, b;           /* NaN where it could not be fitted */
  double log_likelihood; /* penalised, natural logarithm */
  size_t runs, falls;
  const char *why; /* why there is no fit: fewer than two doses, no fall, only falls; else NULL */
} dose_fit;

/* Fits group[n]. GL_EINPUT for a dose that is not finite, or more falls than runs; what cannot be
 * told from the data is no error (why). */
gl_status dose_fit_of(const dose_group *group, size_t n, dose_fit *out, gl_error *err);

/* The dose at which a share of runs falls, 0 < share < 1, with the ends of its 95 % profile
 * interval: minus or plus infinity where the data do not bound it within `reach` of the doses seen
 * (in units of x). NaN where the fit is none. */
interval dose_at(const dose_group *group, size_t n, const dose_fit *fit, double share,
                 double reach);

/* The interval of a share, k of n, at 95 %: Clopper and Pearson (1934), Biometrika 26:404. Unknown
 * for n = 0. */
interval share_interval(size_t k, size_t n);

#endif
