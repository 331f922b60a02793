/* Quantiles, interquartile means, bootstrap intervals and correlations of small samples. */
#include "analysis/statistics.h"

#include "core/base/arena.h"

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

const series_ends series_ends_unknown = {NAN, NAN, NAN, NAN, 0, false};

void series_ends_without_last(series_ends *e) {
  e->last = e->best_to_last = NAN;
  e->ends_not_finite = true;
}

void series_ends_add(series_ends *e, double value, bool lower_is_better) {
  const double sign = lower_is_better ? -1 : 1;
  if (isnan(value)) return;
  if (isinf(value)) {
    e->not_finite++;
    series_ends_without_last(e);
    return;
  }
  if (isnan(e->first)) e->first = value;
  if (isnan(e->best) || sign * value > sign * e->best) e->best = value;
  e->last = value;
  e->best_to_last = sign * (e->best - e->last);
  e->ends_not_finite = false;
}

series_ends series_ends_of(const double *values, size_t n, bool lower_is_better) {
  series_ends e = series_ends_unknown;
  for (size_t i = 0; i < n; i++) series_ends_add(&e, values[i], lower_is_better);
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
  /* At an order statistic, GSL would multiply the next value, which may be infinite, by zero. */
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

/* A random index below n (n < 2^32): number `index` of the stream. */
static size_t draw_position(rng_stream stream, uint64_t index, size_t n) {
  uint64_t word = rng_block(stream, index / 4).v[index % 4];
  return (size_t)(word * (uint64_t)n >> 32);
}

/* Percentile interval of the replicates, which it sorts. */
static interval percentile_interval(double value, double *replicates, size_t n) {
  size_t kept = sample_sort(replicates, n);
  return (interval){value, sample_quantile(replicates, kept, (1.0 - LEVEL) / 2.0),
                    sample_quantile(replicates, kept, (1.0 + LEVEL) / 2.0)};
}

/* Copies the values without NaN to clean and the remaining sizes to left. Returns the largest size.
 */
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
  arena work = {0};
  double *clean = ARENA_ARRAY(&work, double, n), *sample = ARENA_ARRAY(&work, double, n);
  double *replicate = ARENA_ARRAY(&work, double, BOOTSTRAP_REPLICATES);
  size_t *left = ARENA_ARRAY(&work, size_t, n_strata), total = 0;
  gl_status status = arena_check(&work, "bootstrap sample", err);
  if (status == GL_OK) {
    size_t largest = clean_strata(values, size, n_strata, clean, left, &total);
    memcpy(sample, clean, total * sizeof *sample);
    gsl_sort(sample, 1, total);
    *out = interval_unknown(sample_iqm(sample, total));
    if (largest > 1 && total < BOOTSTRAP_FEWEST) {
      out->low = sample[0];
      out->high = sample[total - 1];
    } else if (largest > 1) {
      for (uint64_t r = 0; r < BOOTSTRAP_REPLICATES; r++)
        replicate[r] = iqm_replicate(clean, left, n_strata, stream, r * total, sample);
      *out = percentile_interval(out->value, replicate, BOOTSTRAP_REPLICATES);
    }
  }
  arena_fini(&work);
  return status;
}

/* --- correlations --- */

static bool is_constant(const double *x, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (x[i] != x[0]) return false;
  return true;
}

/* Counts distinct pairs, stopping at `most` (at most CORRELATION_PAIRS). */
static size_t distinct_pairs(const double *x, const double *y, size_t n, size_t most) {
  size_t found = 0, at[CORRELATION_PAIRS];
  for (size_t i = 0; i < n && found < most; i++) {
    size_t k = 0;
    while (k < found && (x[at[k]] != x[i] || y[at[k]] != y[i])) k++;
    if (k == found) at[found++] = i;
  }
  return found;
}

/* NaN if a sample is constant. Rounding can give |r| slightly above 1, where atanh is undefined; it
 * is clipped. */
static double spearman_of(const double *x, const double *y, size_t n, double *work) {
  if (n < 2 || is_constant(x, n) || is_constant(y, n)) return NAN;
  return fmax(-1.0, fmin(1.0, gsl_stats_spearman(x, 1, y, 1, n, work)));
}

static double pearson_of(const double *x, const double *y, size_t n, double *work) {
  (void)work;
  if (n < 2 || is_constant(x, n) || is_constant(y, n)) return NAN;
  return fmax(-1.0, fmin(1.0, gsl_stats_correlation(x, 1, y, 1, n)));
}

/* A correlation coefficient. ranks: 1 for Spearman's, whose Fisher z has a larger variance. */
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

/* Computes a correlation over the pairs without NaN, with an interval by Fisher's z and one by
 * bootstrap over pairs. */
static gl_status correlation_with(coefficient with, const double *x, const double *y, size_t n,
                                  rng_stream stream, correlation *out, gl_error *err) {
  const interval unknown = interval_unknown(NAN);
  *out = (correlation){0, unknown, unknown, "no pair of values is known"};
  if (n == 0) return GL_OK;
  arena work = {0};
  double *cx = ARENA_ARRAY(&work, double, n), *cy = ARENA_ARRAY(&work, double, n); /* without NaN */
  double *rx = ARENA_ARRAY(&work, double, n), *ry = ARENA_ARRAY(&work, double, n); /* a replicate */
  double *of_gsl = ARENA_GRID(&work, double, 2, n);
  double *replicate = ARENA_ARRAY(&work, double, BOOTSTRAP_REPLICATES);
  gl_status status = arena_check(&work, "correlation sample", err);
  size_t m = 0;
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    if (isnan(x[i]) || isnan(y[i])) continue;
    cx[m] = x[i];
    cy[m++] = y[i];
  }
  if (status == GL_OK) {
    out->n = m;
    out->why = why_unknown(cx, cy, m);
  }
  if (status == GL_OK && out->why == NULL) {
    const double r = with.of(cx, cy, m, of_gsl);
    for (uint64_t b = 0; b < BOOTSTRAP_REPLICATES; b++) {
      for (size_t i = 0; i < m; i++) {
        const size_t at = draw_position(stream, b * m + i, m);
        rx[i] = cx[at];
        ry[i] = cy[at];
      }
      replicate[b] = with.of(rx, ry, m, of_gsl);
    }
    out->fisher = fisher_interval(r, (with.ranks ? 1.0 + r * r / 2.0 : 1.0) / ((double)m - 3.0));
    out->bootstrap = percentile_interval(r, replicate, BOOTSTRAP_REPLICATES);
  }
  arena_fini(&work);
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

/* --- the Kaplan-Meier estimate of survival --- */

typedef struct watched {
  double time;
  int collapsed;
} watched;

static int by_time(const void *a, const void *b) {
  const watched *x = a, *y = b;
  return (x->time > y->time) - (x->time < y->time);
}

/* Kaplan-Meier: product over the collapse times of (1 - collapses / at risk). */
static size_t survival_steps(const watched *run, size_t n, survival_step *curve) {
  double survival = 1, greenwood = 0;
  size_t steps = 0;
  for (size_t i = 0; i < n;) {
    size_t end = i, collapses = 0;
    while (end < n && run[end].time == run[i].time) collapses += (size_t)run[end++].collapsed;
    if (collapses > 0) {
      const double at_risk = (double)(n - i), left = at_risk - (double)collapses;
      survival *= left / at_risk;
      if (left > 0) greenwood += (double)collapses / (at_risk * left);
      curve[steps++] = (survival_step){.time = run[i].time,
                                       .survival = survival,
                                       .error = survival * sqrt(greenwood),
                                       .at_risk = n - i,
                                       .collapses = collapses};
    }
    i = end;
  }
  return steps;
}

gl_status survival_curve(const double *time, const uint8_t *observed, size_t n,
                         survival_step *curve, size_t *steps, gl_error *err) {
  *steps = 0;
  for (size_t i = 0; i < n; ++i)
    if (!(time[i] >= 0))
      return gl_fail(err, GL_EINPUT, "the time of run %zu is %g: times are not negative", i,
                     time[i]);
  arena work = {0};
  watched *run = ARENA_ARRAY(&work, watched, n);
  gl_status status = arena_check(&work, "the survival curve", err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) run[i] = (watched){time[i], observed[i] != 0};
  if (n > 0 && status == GL_OK) {
    qsort(run, n, sizeof *run, by_time);
    *steps = survival_steps(run, n, curve);
  }
  arena_fini(&work);
  return status;
}

/* --- proportions --- */

interval fraction_interval(size_t k, size_t n) {
  if (n == 0) return (interval){NAN, NAN, NAN};
  const double runs = (double)n, collapses = (double)k;
  return (interval){.value = collapses / runs,
                    .low = k == 0 ? 0 : gsl_cdf_beta_Pinv(0.025, collapses, runs - collapses + 1),
                    .high = k == n ? 1 : gsl_cdf_beta_Pinv(0.975, collapses + 1, runs - collapses)};
}
