/* Statistics for small numbers of seeds.
 *
 * Functions take plain arrays and do not change them unless the name contains `sort`. NaN means
 * "not measured": sample_sort() drops it, and functions of pairs drop every pair that contains one.
 * Infinities are values: they have a rank, and a mean that contains one is infinite. Undefined
 * results (no data, correlation of a constant sample) are NaN and not an error. The only errors are
 * failed allocations.
 *
 * Bootstrap samples are addressed (RNG_BOOTSTRAP): the same data and stream give the same interval.
 */
#ifndef GEPOLAB_ANALYSIS_STATISTICS_H
#define GEPOLAB_ANALYSIS_STATISTICS_H

#include "core/base/error.h"
#include "core/base/table.h"
#include "core/random/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An estimate with its 95 % interval; NaN if there is none. */
typedef struct interval {
  double value, low, high;
} interval;
/* Writes the next cell of a table. */
void interval_cell(table *t, interval v);

enum {
  BOOTSTRAP_FEWEST = 5, /* fewest values for an interval; below, low and high are the range */
  BOOTSTRAP_REPLICATES = 2000,
  BOOTSTRAP_SEED = 1 /* seed of all bootstraps, so that results depend on the data only */
};

#define INTERVAL_WORDS "95 %% bootstrap interval; of fewer than five values their range"

/* First, best and last value of a series of evaluations, and best - last (last - best if lower is
 * better), paper/methods.md §5.3. NaN values are skipped; all fields are NaN if none remains.
 * Infinite values are counted but are never first or best. A series that ends with an infinite
 * value has no last value (NaN) and no gap. */
typedef struct series_ends {
  double first, best, last, best_to_last;
  size_t not_finite;    /* number of infinite values */
  bool ends_not_finite; /* 1: the series ends with a non-finite value; last and best_to_last are NaN
                         */
} series_ends;
extern const series_ends series_ends_unknown; /* an empty series */
/* Appends a value to the series. */
void series_ends_add(series_ends *e, double value, bool lower_is_better);
/* Marks the series as ended by a non-finite value: no last value and no gap. */
void series_ends_break(series_ends *e);
series_ends series_ends_of(const double *values, size_t n, bool lower_is_better);

/* Drops NaN and sorts ascending in place. Returns how many values remain. */
size_t sample_sort(double *values, size_t n);
/* Quantile p in [0,1] of a sorted sample, linear between order statistics (Hyndman-Fan type 7). */
double sample_quantile(const double *sorted, size_t n, double p);
/* Interquartile mean of a sorted sample: floor(n/4) values are removed at each end (arXiv
 * 2108.13264). */
double sample_iqm(const double *sorted, size_t n);
/* Mean without NaN values. */
double sample_mean(const double *values, size_t n);

/* IQM of all values with a stratified percentile bootstrap interval (arXiv 2108.13264). Stratum s
 * has the next size[s] values; each replicate resamples size[s] of them with replacement in every
 * stratum. NaN values are dropped first. No interval if no stratum has two values, because nothing
 * varies then. With fewer than BOOTSTRAP_FEWEST values in total, low and high are their range,
 * because a bootstrap of so few values covers far less than its nominal level. */
gl_status iqm_bootstrap(const double *values, const size_t *size, size_t n_strata,
                        rng_stream stream, interval *out, gl_error *err);

/* Minimum number of distinct pairs for a correlation. Two pairs always give 1 or -1, and the
 * variance of Fisher's z, which divides by n - 3, needs four. */
enum { CORRELATION_PAIRS = 4 };

typedef struct correlation {
  size_t n;           /* number of pairs without NaN */
  interval fisher;    /* interval by Fisher's z; for ranks its variance is (1 + r^2/2)/(n-3)
                         (Bonett-Wright) */
  interval bootstrap; /* same estimate with a percentile bootstrap interval over pairs */
  const char *why;    /* reason for NaN: constant sample, too few distinct pairs; or NULL */
} correlation;

/* Spearman's rank correlation of n pairs; ties have their mean rank. Variance: Bonett and Wright
 * (2000), Psychometrika 65:23. */
gl_status spearman(const double *x, const double *y, size_t n, rng_stream stream, correlation *out,
                   gl_error *err);

/* A step of a survival curve: from `time` on, a fraction `survival` has not collapsed. error is
 * Greenwood's standard error (0 if no run is left at risk, where the formula is undefined). */
typedef struct survival_step {
  double time, survival, error;
  size_t at_risk, collapses; /* at_risk: just before `time`; collapses: those at `time` */
} survival_step;

/* Kaplan-Meier estimate from n runs: run i collapsed at time[i] if observed[i] is not 0, otherwise
 * it is censored at time[i]. Writes one step for each distinct time of collapse, ascending, to
 * curve[n], and their number. A run censored at the time of a collapse counts as at risk (Kaplan
 * and Meier 1958, JASA 53:457). Errors: GL_ENOMEM, GL_EINPUT (a time is NaN or negative). */
gl_status survival_curve(const double *time, const uint8_t *observed, size_t n,
                         survival_step *curve, size_t *steps, gl_error *err);

/* Pearson's correlation of n pairs, with variance 1/(n - 3) of Fisher's z. NaN if a value is
 * infinite. */
gl_status pearson(const double *x, const double *y, size_t n, rng_stream stream, correlation *out,
                  gl_error *err);

/* --- collapse rate as a function of the learning rate --- */
/* Logistic regression with few runs.
 *
 * x is the logarithm of the varied quantity (a learning rate); P(collapse) = 1 / (1 + exp(-(a + b
 * x))). With a handful of runs per learning rate, collapses are often perfectly separated and the
 * likelihood has no maximum. It is therefore penalised by half the logarithm of the determinant of
 * Fisher's information (Firth 1993, Biometrika 80:27; Heinze and Schemper 2002, Statistics in
 * Medicine 21:2409), which always gives a maximum. Intervals are profiles of the penalised
 * log-likelihood: all x whose best slope loses at most 1.92 against the maximum. They may be open.
 */

/* Runs at one learning rate. */
typedef struct dose_group {
  double x;
  size_t runs, collapses;
} dose_group;

typedef struct dose_fit {
  double a, b;           /* NaN if there is no fit */
  double log_likelihood; /* penalised log-likelihood */
  size_t runs, collapses;
  const char *why; /* reason if there is no fit: fewer than two learning rates, no collapse, only
                      collapses; else NULL */
} dose_fit;

/* Fits group[n]. Errors: GL_ENOMEM, GL_EINPUT (a non-finite x, or more collapses than runs). Data
 * that do not identify the fit are no error (see why). */
gl_status dose_fit_of(const dose_group *group, size_t n, dose_fit *out, gl_error *err);

/* The x at which a given fraction of runs collapses, 0 < share < 1, with its 95 % profile interval.
 * An end is minus or plus infinity if the data do not bound it within `reach` of the observed x.
 * NaN if there is no fit. */
interval dose_at(const dose_group *group, size_t n, const dose_fit *fit, double share,
                 double reach);

/* 95 % interval of a proportion k of n: Clopper and Pearson (1934), Biometrika 26:404. Unknown for
 * n = 0. */
interval fraction_interval(size_t k, size_t n);

/* --- the area under a ROC curve --- */

/* Standard error of the AUC over events and non-events (Hanley and McNeil 1982): with Q1 = A / (2 -
 * A) and Q2 = 2 A^2 / (1 + A), the variance is (A (1 - A) + (e - 1)(Q1 - A^2) + (n - 1)(Q2 - A^2))
 * / (e n). Exact where both samples are exponential. NaN without events or without non-events. */
double auc_error(double auc, size_t events, size_t others);
/* The AUC with its 95 % interval: symmetric in its logit, with that standard error. The interval of
 * 0 and of 1 is unknown (NaN). */
interval auc_interval(double auc, size_t events, size_t others);
/* Two-sided p of the hypothesis that the AUC is 0.5: the exact permutation distribution of Mann and
 * Whitney's U without ties up to AUC_EXACT pairs, its normal limit beyond. NaN without events or
 * without non-events. */
enum { AUC_EXACT = 4000 };
double auc_p_value(double auc, size_t events, size_t others);
/* Probability that the test of auc_p_value() rejects at `level` if the AUC is `auc`: the
 * distribution of the estimate is taken as normal with the standard error above. */
double auc_power(double auc, size_t events, size_t others, double level);
/* Smallest number of events, with `ratio` non-events for each, at which the power reaches `power`;
 * 0 if AUC_MOST_EVENTS are not enough. */
enum { AUC_MOST_EVENTS = 100000 };
size_t auc_events_needed(double auc, double ratio, double level, double power);

/* The request for the table `power`. */
typedef struct power_request {
  size_t events, others;  /* declines, and windows or runs without one; 0: unknown */
  double against;         /* an AUC that is to be distinguished from 0.5 */
  double level, power;    /* level of the test; required power */
  const double *observed; /* [n_observed] AUCs measured with these events, to be tested */
  size_t n_observed;
} power_request;
/* Writes the answers to a document: {"events", "others", "against", "level", "wanted", "power",
 * "needed": [{auc, ratio, events}], "observed": [{auc, events, p}]}. */
void power_report(table *to, const power_request *q);

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
