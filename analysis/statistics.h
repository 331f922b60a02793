/* Statistics that survive few seeds.
 *
 * Functions on samples take plain arrays and leave them alone unless the name says `sort`. NaN
 * means "not measured": sample_sort() drops it, the functions of pairs drop every pair that holds
 * one. Infinities are values: they have a rank, and a mean that meets one is infinite. Where a
 * number is undefined (no data, a constant sample's correlation) the result is NaN, never an error.
 * Errors are failed allocations only.
 *
 * Bootstrap draws are addressed (RNG_BOOTSTRAP): the same data and stream give the same interval.
 */
#ifndef GEPOLAB_ANALYSIS_STATISTICS_H
#define GEPOLAB_ANALYSIS_STATISTICS_H

#include "core/base/error.h"
#include "core/base/table.h"
#include "core/random/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An estimate with the ends of its 95 % interval, NaN where there is none. */
typedef struct interval {
  double value, low, high;
} interval;
/* The next cell of a table. */
void interval_cell(table *t, interval v);

enum {
  BOOTSTRAP_REPLICATES = 2000,
  BOOTSTRAP_SEED = 1 /* of every bootstrap in analysis: the results depend on the data alone */
};

/* First, best and last value of a series of evaluations, and best - last (last - best where lower
 * is better), paper/methods.md §5.3. NaN values are skipped; all NaN if nothing is left. Infinite
 * values are counted, and are never the first or the best; a series that ends with one has no last
 * value (NaN), and so no gap. */
typedef struct series_ends {
  double first, best, last, best_to_last;
  size_t not_finite;    /* infinite values */
  bool ends_not_finite; /* last and best_to_last are NaN for that reason */
} series_ends;
extern const series_ends series_ends_unknown; /* of an empty series */
/* Appends a value to the series. */
void series_ends_add(series_ends *e, double value, bool lower_is_better);
/* The series ended with something that is no finite number: there is no last value and no gap. */
void series_ends_break(series_ends *e);
series_ends series_ends_of(const double *values, size_t n, bool lower_is_better);

/* Drops NaN, sorts ascending in place and returns how many values are left. */
size_t sample_sort(double *values, size_t n);
/* Quantile p in [0,1] of a sorted sample, linear between order statistics (Hyndman-Fan type 7). */
double sample_quantile(const double *sorted, size_t n, double p);
/* Interquartile mean of a sorted sample: floor(n/4) values leave at each end (arXiv 2108.13264). */
double sample_iqm(const double *sorted, size_t n);
/* Mean without NaN entries. */
double sample_mean(const double *values, size_t n);

/* IQM of all values with a stratified percentile bootstrap interval (arXiv 2108.13264): stratum s
 * holds the next size[s] of the values, and each replicate draws size[s] of them with replacement
 * from every stratum. NaN values leave their stratum first. No interval when no stratum is left
 * with two values, for then nothing varies. */
gl_status iqm_bootstrap(const double *values, const size_t *size, size_t n_strata,
                        rng_stream stream, interval *out, gl_error *err);

/* Below so many distinct pairs no correlation is reported: two pairs always give 1 or -1, and the
 * variance of Fisher's z, which divides by n - 3, needs four. */
enum { CORRELATION_PAIRS = 4 };

typedef struct correlation {
  size_t n;           /* pairs without NaN */
  interval fisher;    /* Fisher's z; of ranks with variance (1 + r^2/2)/(n-3) (Bonett-Wright) */
  interval bootstrap; /* the same value, percentile bootstrap over pairs */
  const char *why; /* why the two are NaN: a constant sample, too few distinct pairs; else NULL */
} correlation;

/* Spearman's rank correlation of n pairs, ties at their mean rank; Bonett and Wright (2000),
 * Psychometrika 65:23, for the variance. */
gl_status spearman(const double *x, const double *y, size_t n, rng_stream stream, correlation *out,
                   gl_error *err);

/* A step of a survival curve: from `time` on, the share `survival` has not fallen, with Greenwood's
 * standard error (0 where nobody is left: the formula has no value there). */
typedef struct survival_step {
  double time, survival, error;
  size_t at_risk, falls; /* just before, and at, `time` */
} survival_step;

/* The Kaplan-Meier estimate from n runs: run i fell at time[i] where observed[i] is not 0, else it
 * was watched until then and had not. Writes one step for each distinct time of a fall, ascending,
 * to curve[n], and their number. A run whose watching ends when another falls counts as at risk
 * (Kaplan and Meier 1958, JASA 53:457). GL_EINPUT for a time that is NaN or negative. */
gl_status survival_curve(const double *time, const uint8_t *observed, size_t n,
                         survival_step *curve, size_t *steps, gl_error *err);

/* Pearson's correlation of n pairs, with the variance 1/(n - 3) of Fisher's z. Infinite values make
 * it unknown. */
gl_status pearson(const double *x, const double *y, size_t n, rng_stream stream, correlation *out,
                  gl_error *err);

/* --- the collapse rate as a function of a dose --- */
/* Logistic regression on few runs.
 *
 * The dose x is the logarithm of the quantity that is varied (a learning rate); P(fall) = 1 / (1 +
 * exp(-(a + b x))). With a handful of runs a rate the falls often separate perfectly and the
 * likelihood has no maximum, so it is penalised by half the logarithm of the determinant of
 * Fisher's information (Firth 1993, Biometrika 80:27; Heinze and Schemper 2002, Statistics in
 * Medicine 21:2409), which always has one. Intervals are profiles of the penalised likelihood: all
 * doses whose best slope loses at most 1.92 against the best of all. They may be open.
 */

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
