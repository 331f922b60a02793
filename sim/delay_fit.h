/* Delay distributions from measured durations or lengths: maximum likelihood for each distribution
 * of a table, how well each fits, and which one a simulation takes.
 *
 * Values may be censored: one at `low` stands for anything up to it and one at `high` for anything
 * from it on (a fetch that ended at a time limit, a response cut at its longest), and its
 * likelihood is the CDF or the survival function there. All others have the density of the
 * distribution. Values rounded to multiples of `resolution` stand for an interval in the test of
 * fit; the likelihood neglects rounding, because the density changes little over one step of a
 * clock that is fit to measure with.
 *
 * The test is that of Kolmogorov and Smirnov with a parametric bootstrap: as the parameters come
 * from the same values, the distance D is held against those of FIT_REPLICATES samples of the
 * fitted distribution, each fitted anew. p = (1 + those no nearer) / (FIT_REPLICATES + 1), so that
 * p <= FIT_ERROR_RATE refuses a distribution that the values do come from in FIT_ERROR_RATE of all
 * cases. It takes at most FIT_MOST_TESTED of the values, drawn without replacement, and is of the
 * fit to those. Of the distributions that the test does not refuse, the one of least AIC is chosen;
 * where it refuses all of them, the empirical distribution. A parameter that is an end of the
 * support, the least or the largest value, counts twice in AIC: its gain in twice the
 * log-likelihood, where it is not needed, is above 4 in 14 % of all samples (2 Exp(1)), as that of
 * a regular one is above 2 in 16
 * %.
 *
 * Prefix: fit_. No function keeps anything. Values are seconds or tokens.
 */
#ifndef GEPOLAB_SIM_DELAY_FIT_H
#define GEPOLAB_SIM_DELAY_FIT_H

#include "sim/delay.h"

enum { FIT_LEAST_VALUES = 20, FIT_REPLICATES = 199, FIT_MOST_TESTED = 1000 };
#define FIT_ERROR_RATE 0.05

/* The distributions that are tried, in the order of the rows of a fit. */
typedef enum fit_family {
  FIT_EXPONENTIAL,
  FIT_SHIFTED_EXPONENTIAL,
  FIT_LOGNORMAL,
  FIT_WEIBULL,
  FIT_GAMMA,
  FIT_PARETO,
  FIT_UNIFORM,
  FIT_FAMILIES
} fit_family;

typedef struct fit_limits {
  double low, high; /* 0 and INFINITY: none */
  bool censored; /* the limits are the measurement's, and distributions continue beyond them; else
                    they are the cluster's, and distributions are clamped to them */
} fit_limits;

typedef struct fit_row {
  const char *why_not; /* why there is no such distribution; NULL: there is one */
  delay_dist dist;     /* owns nothing */
  size_t n_parameters;
  const char *name[2];        /* of the parameters, as in a recipe */
  double value[2], error[2];  /* error: the standard error, from the bootstrap */
  double log_likelihood, aic; /* of all values */
  double distance, p;         /* of the values tested */
} fit_row;

typedef struct fit {
  size_t n, n_below, n_above; /* values; those of them at the lower and at the upper limit */
  size_t n_tested;
  double least, median, most;
  double resolution; /* 0: no rounding was found */
  fit_limits limits;
  bool is_constant; /* all values are the same: there is nothing to choose */
  fit_row row[FIT_FAMILIES];
  size_t chosen; /* FIT_FAMILIES: the empirical distribution, or the constant one */
} fit;

/* Fits value[n], which is put into ascending order. what ("delay") stands for the values in
 * messages. GL_EINPUT, with the remedy, for values that are negative or not finite, fewer than
 * FIT_LEAST_VALUES of them that differ from the limits, zeros without a lower limit, and many
 * values at the largest one without an upper limit, unless limits.high is NAN: there is none, then.
 * GL_ENOMEM. */
gl_status fit_values(fit *out, double *value, size_t n, fit_limits limits, uint64_t seed,
                     const char *what, gl_error *err);
/* The name of a family: "shifted exponential". */
const char *fit_family_name(fit_family family);

#endif
