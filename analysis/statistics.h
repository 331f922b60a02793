/* Statistics for small numbers of seeds.
 *
 * Functions take plain arrays and do not change them unless the name contains `sort`. NaN means
 * "not measured": sample_sort() drops it, and functions of pairs drop every pair that contains one.
 * Infinities are values: they have a rank, and a mean that contains one is infinite. Undefined
 * results (no data, correlation of a constant sample) are NaN and not an error. Errors are
 * GL_ENOMEM, and those that a function names.
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
void series_ends_without_last(series_ends *e);
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

/* 95 % interval of a proportion k of n: Clopper and Pearson (1934), Biometrika 26:404. Unknown for
 * n = 0. */
interval fraction_interval(size_t k, size_t n);

#endif
