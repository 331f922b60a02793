/* Collapse rate as a function of the learning rate: logistic regression with few runs.
 *
 * x is the logarithm of the varied quantity (a learning rate); P(collapse) = 1 / (1 + exp(-(a + b
 * x))). With a handful of runs per learning rate, collapses are often perfectly separated and the
 * likelihood has no maximum. It is therefore penalised by half the logarithm of the determinant of
 * Fisher's information (Firth 1993, Biometrika 80:27; Heinze and Schemper 2002, Statistics in
 * Medicine 21:2409), which always gives a maximum. */
#ifndef GEPOLAB_ANALYSIS_COLLAPSE_RATE_H
#define GEPOLAB_ANALYSIS_COLLAPSE_RATE_H

#include "analysis/statistics.h"

/* Runs at one learning rate. */
typedef struct dose_group {
  double x;
  size_t runs, collapses;
} dose_group;

/* Returns the group of x among group[*n], and adds an empty one if there is none: there must be
 * room for it. */
dose_group *dose_group_of(dose_group *group, size_t *n, double x);

typedef struct dose_fit {
  double a, b;           /* NaN if there is no fit */
  double log_likelihood; /* penalised log-likelihood */
  size_t runs, collapses;
  const char *why; /* reason if no fraction has a learning rate: fewer than two learning rates, no
                      collapse, only collapses, collapses that do not increase; else NULL */
} dose_fit;

/* Fits group[n]. Errors: GL_ENOMEM, GL_EINPUT (a non-finite x, or more collapses than runs). Data
 * that do not identify the fit are no error (see why). */
gl_status dose_fit_of(const dose_group *group, size_t n, dose_fit *out, gl_error *err);

/* --- rates at which a fraction of runs collapses --- */

typedef struct dose_run {
  double x; /* logarithm of the learning rate */
  uint64_t seed;
  bool collapsed;
} dose_run;

/* The x at which the fraction `share` of runs collapses, with its 95 % interval by the jackknife
 * over seeds, which is widened to the values of x between which the observed fraction passes
 * `share`. Ends beyond the x of the runs, and both ends with fewer than two seeds, are infinite.
 * The value is NaN without a fit, if the collapse rate does not rise with x, and beyond the x of
 * the runs. Errors: those of dose_fit_of. */
gl_status dose_at_fraction(const dose_run *run, size_t n, double share, interval *out,
                           gl_error *err);

#endif
