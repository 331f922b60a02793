/* Quantiles, interquartile means, bootstrap intervals and correlations of small samples. */
#include "analysis/statistics.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void interval_cell(table *t, interval v) {
  table_interval(t, v.value, v.low, v.high);
}

static const double LEVEL = 0.95;

static interval interval_unknown(double value) {
  return (interval){value, NAN, NAN};
}

series_ends series_ends_of(const double *values, size_t n) {
  return series_ends_better(values, n, 0);
}

series_ends series_ends_better(const double *values, size_t n, int lower_is_better) {
  const double sign = lower_is_better ? -1 : 1;
  series_ends e = {NAN, NAN, NAN, NAN};
  for (size_t i = 0; i < n; i++) {
    if (isnan(values[i])) continue;
    if (isnan(e.first)) e.first = values[i];
    if (isnan(e.best) || sign * values[i] > sign * e.best) e.best = values[i];
    e.last = values[i];
  }
  /* Equal infinities would subtract to NaN although nothing was lost. */
  e.best_to_last = e.best == e.last ? 0.0 : sign * (e.best - e.last);
  return e;
}

static size_t drop_nan(double *values, size_t n) {
  size_t kept = 0;
  for (size_t i = 0; i < n; i++)
    if (!isnan(values[i])) values[kept++] = values[i];
  return kept;
}

size_t sample_sort(double *values, size_t n) {
  size_t kept = drop_nan(values, n);
  gsl_sort(values, 1, kept);
  return kept;
}

double sample_quantile(const double *sorted, size_t n, double p) {
  if (n == 0) return NAN;
  double at = p * (double)(n - 1);
  size_t i = (size_t)at;
  /* At an order statistic GSL would multiply its neighbour, perhaps infinite, by zero. */
  if (at == (double)i) return sorted[i];
  if (sorted[i] == sorted[i + 1]) return sorted[i];
  return gsl_stats_quantile_from_sorted_data(sorted, 1, n, p);
}

double sample_iqm(const double *sorted, size_t n) {
  size_t cut = n / 4;
  return n == 0 ? NAN : sample_mean(sorted + cut, n - 2 * cut);
}

double sample_mean(const double *values, size_t n) {
  double sum = 0.0;
  size_t kept = 0;
  for (size_t i = 0; i < n; i++) {
    if (isnan(values[i])) continue;
    sum += values[i];
    kept++;
  }
  return kept == 0 ? NAN : sum / (double)kept;
}

/* --- the bootstrap --- */

/* Position below n (below 2^32) of draw `index` of a stream. */
static size_t draw_position(rng_stream stream, uint64_t index, size_t n) {
  uint64_t word = rng_block(stream, index / 4).v[index % 4];
  return (size_t)(word * (uint64_t)n >> 32);
}

/* The percentile interval of the replicates, which it sorts. */
static interval percentile_interval(double value, double *replicates, size_t n) {
  size_t kept = sample_sort(replicates, n);
  return (interval){value, sample_quantile(replicates, kept, (1.0 - LEVEL) / 2.0),
                    sample_quantile(replicates, kept, (1.0 + LEVEL) / 2.0)};
}

/* Copies the values without NaN into clean and the sizes left into left; returns the largest. */
static size_t clean_strata(const double *values, const size_t *size, size_t n_strata, double *clean,
                           size_t *left, size_t *total) {
  size_t largest = 0, from = 0;
  *total = 0;
  for (size_t s = 0; s < n_strata; s++) {
    if (size[s]) memcpy(clean + *total, values + from, size[s] * sizeof *clean);
    left[s] = drop_nan(clean + *total, size[s]);
    if (left[s] > largest) largest = left[s];
    from += size[s];
    *total += left[s];
  }
  return largest;
}

static double iqm_replicate(const double *clean, const size_t *size, size_t n_strata,
                            rng_stream stream, uint64_t index, double *sample) {
  size_t at = 0;
  for (size_t s = 0; s < n_strata; s++) {
    const double *stratum = clean + at;
    for (size_t i = 0; i < size[s]; i++)
      sample[at++] = stratum[draw_position(stream, index++, size[s])];
  }
  gsl_sort(sample, 1, at);
  return sample_iqm(sample, at);
}

gl_status iqm_bootstrap(const double *values, const size_t *size, size_t n_strata,
                        rng_stream stream, interval *out, gl_error *err) {
  size_t n = 0;
  for (size_t s = 0; s < n_strata; s++) n += size[s];
  *out = interval_unknown(NAN);
  if (n == 0) return GL_OK;
  double *clean = calloc(n, sizeof *clean), *sample = calloc(n, sizeof *sample);
  double *replicate = calloc(BOOTSTRAP_REPLICATES, sizeof *replicate);
  size_t *left = calloc(n_strata, sizeof *left), total = 0;
  gl_status status = GL_OK;
  if (!clean || !sample || !replicate || !left) {
    status = gl_fail_memory(err, "bootstrap sample");
  } else {
    size_t largest = clean_strata(values, size, n_strata, clean, left, &total);
    memcpy(sample, clean, total * sizeof *sample);
    gsl_sort(sample, 1, total);
    *out = interval_unknown(sample_iqm(sample, total));
    if (largest > 1) {
      for (uint64_t r = 0; r < BOOTSTRAP_REPLICATES; r++)
        replicate[r] = iqm_replicate(clean, left, n_strata, stream, r * total, sample);
      *out = percentile_interval(out->value, replicate, BOOTSTRAP_REPLICATES);
    }
  }
  free(clean), free(sample), free(replicate), free(left);
  return status;
}

/* --- correlations --- */

static int is_constant(const double *x, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (x[i] != x[0]) return 0;
  return 1;
}

/* How many different pairs there are, counted up to `most` of them (at most CORRELATION_PAIRS). */
static size_t distinct_pairs(const double *x, const double *y, size_t n, size_t most) {
  size_t found = 0, at[CORRELATION_PAIRS];
  for (size_t i = 0; i < n && found < most; i++) {
    size_t k = 0;
    while (k < found && (x[at[k]] != x[i] || y[at[k]] != y[i])) k++;
    if (k == found) at[found++] = i;
  }
  return found;
}

/* NaN where a sample is constant. Rounding may leave |r| a bit above 1, where atanh is undefined.
 */
static double spearman_of(const double *x, const double *y, size_t n, double *work) {
  if (n < 2 || is_constant(x, n) || is_constant(y, n)) return NAN;
  return fmax(-1.0, fmin(1.0, gsl_stats_spearman(x, 1, y, 1, n, work)));
}

static double pearson_of(const double *x, const double *y, size_t n, double *work) {
  (void)work;
  if (n < 2 || is_constant(x, n) || is_constant(y, n)) return NAN;
  return fmax(-1.0, fmin(1.0, gsl_stats_correlation(x, 1, y, 1, n)));
}

/* A correlation, and the variance of its Fisher's z. */
typedef struct coefficient {
  double (*of)(const double *x, const double *y, size_t n, double *work);
  int ranks;
} coefficient;

static interval fisher_interval(double r, double variance) {
  double half = gsl_cdf_ugaussian_Pinv((1.0 + LEVEL) / 2.0) * sqrt(variance), z = atanh(r);
  return (interval){r, tanh(z - half), tanh(z + half)};
}

static const char *why_unknown(const double *x, const double *y, size_t n) {
  if (n == 0) return "no pair of values is known";
  if (n < CORRELATION_PAIRS) return "fewer than 4 distinct pairs";
  if (is_constant(x, n)) return "the first quantity does not vary";
  if (is_constant(y, n)) return "the second quantity does not vary";
  if (distinct_pairs(x, y, n, CORRELATION_PAIRS) < CORRELATION_PAIRS)
    return "fewer than 4 distinct pairs";
  return NULL;
}

/* space holds 6 n doubles: the pairs, a replicate of them, and GSL's work. */
static void correlate(const double *x, const double *y, size_t n, rng_stream stream, double *space,
                      double *replicate, coefficient with, correlation *out) {
  double *cx = space, *cy = cx + n, *rx = cy + n, *ry = rx + n, *work = ry + n;
  size_t m = 0;
  for (size_t i = 0; i < n; i++) {
    if (isnan(x[i]) || isnan(y[i])) continue;
    cx[m] = x[i];
    cy[m++] = y[i];
  }
  out->n = m;
  out->why = why_unknown(cx, cy, m);
  if (out->why) return;
  double r = with.of(cx, cy, m, work);
  for (uint64_t b = 0; b < BOOTSTRAP_REPLICATES; b++) {
    for (size_t i = 0; i < m; i++) {
      size_t at = draw_position(stream, b * m + i, m);
      rx[i] = cx[at];
      ry[i] = cy[at];
    }
    replicate[b] = with.of(rx, ry, m, work);
  }
  out->fisher = fisher_interval(r, (with.ranks ? 1.0 + r * r / 2.0 : 1.0) / ((double)m - 3.0));
  out->bootstrap = percentile_interval(r, replicate, BOOTSTRAP_REPLICATES);
}

static gl_status correlation_with(coefficient with, const double *x, const double *y, size_t n,
                                  rng_stream stream, correlation *out, gl_error *err) {
  *out =
      (correlation){0, interval_unknown(NAN), interval_unknown(NAN), "no pair of values is known"};
  if (n == 0) return GL_OK;
  double *space = calloc(n, 6 * sizeof *space);
  double *replicate = calloc(BOOTSTRAP_REPLICATES, sizeof *replicate);
  gl_status status = GL_OK;
  if (space && replicate)
    correlate(x, y, n, stream, space, replicate, with, out);
  else
    status = gl_fail_memory(err, "correlation sample");
  free(space), free(replicate);
  return status;
}

gl_status spearman(const double *x, const double *y, size_t n, rng_stream stream, correlation *out,
                   gl_error *err) {
  return correlation_with((coefficient){spearman_of, 1}, x, y, n, stream, out, err);
}

gl_status pearson(const double *x, const double *y, size_t n, rng_stream stream, correlation *out,
                  gl_error *err) {
  return correlation_with((coefficient){pearson_of, 0}, x, y, n, stream, out, err);
}
