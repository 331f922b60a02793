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

void series_ends_break(series_ends *e) {
  e->last = e->best_to_last = NAN;
  e->ends_not_finite = true;
}

void series_ends_add(series_ends *e, double value, bool lower_is_better) {
  const double sign = lower_is_better ? -1 : 1;
  if (isnan(value)) return;
  if (isinf(value)) {
    e->not_finite++;
    series_ends_break(e);
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

/* A correlation coefficient, and the variance of its Fisher z. */
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

/* --- Firth's penalised logistic regression with profile intervals --- */

/* Half the 95 % quantile of the chi-square distribution with one degree of freedom. */
static const double PROFILE_LOSS = 1.920729410347062;

enum { MOST_NEWTON = 200, MOST_HALVINGS = 40, SLOPES = 100, REFINEMENTS = 50, REACH_STEPS = 100 };

interval fraction_interval(size_t k, size_t n) {
  if (n == 0) return (interval){NAN, NAN, NAN};
  const double runs = (double)n, collapses = (double)k;
  return (interval){.value = collapses / runs,
                    .low = k == 0 ? 0 : gsl_cdf_beta_Pinv(0.025, collapses, runs - collapses + 1),
                    .high = k == n ? 1 : gsl_cdf_beta_Pinv(0.975, collapses + 1, runs - collapses)};
}

/* log(1 + exp(x)) without overflow. */
static double log_1_exp(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double probability(double eta) {
  return eta > 0 ? 1 / (1 + exp(-eta)) : exp(eta) / (1 + exp(eta));
}

/* Fisher's information of (a, b). The determinant is computed as a sum of positive terms, which is
 * accurate even for tiny weights. */
typedef struct information {
  double aa, ab, bb, determinant;
} information;

static double weight(const dose_group *g, double a, double b) {
  const double eta = fabs(a + b * g->x), e = exp(-eta);
  return (double)g->runs * e / ((1 + e) * (1 + e));
}

static information information_at(const dose_group *group, size_t n, double a, double b) {
  information f = {0};
  for (size_t i = 0; i < n; i++) {
    const double w = weight(&group[i], a, b), x = group[i].x;
    f.aa += w;
    f.ab += w * x;
    f.bb += w * x * x;
    for (size_t k = 0; k < i; k++)
      f.determinant += w * weight(&group[k], a, b) * (x - group[k].x) * (x - group[k].x);
  }
  return f;
}

/* The penalised log-likelihood. */
static double likelihood(const dose_group *group, size_t n, double a, double b) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    const double eta = a + b * group[i].x;
    sum -= (double)group[i].collapses * log_1_exp(-eta) +
           (double)(group[i].runs - group[i].collapses) * log_1_exp(eta);
  }
  return sum + 0.5 * log(information_at(group, n, a, b).determinant);
}

/* Newton step for Firth's modified score, sum of (collapses - runs p + h (1/2 - p)) (1, x), with h
 * the leverages of the group's runs. */
static void newton_step(const dose_group *group, size_t n, double a, double b, double step[2]) {
  const information f = information_at(group, n, a, b);
  double score_a = 0, score_b = 0;
  for (size_t i = 0; i < n; i++) {
    const double x = group[i].x, p = probability(a + b * x);
    const double h = weight(&group[i], a, b) * (f.bb - 2 * f.ab * x + f.aa * x * x) / f.determinant;
    const double u = (double)group[i].collapses - (double)group[i].runs * p + h * (0.5 - p);
    score_a += u;
    score_b += u * x;
  }
  step[0] = (f.bb * score_a - f.ab * score_b) / f.determinant;
  step[1] = (f.aa * score_b - f.ab * score_a) / f.determinant;
}

/* Maximises from slope 0; a step that decreases the likelihood is halved. */
static void ascend(const dose_group *group, size_t n, dose_fit *fit) {
  fit->a = fit->b = 0;
  fit->log_likelihood = likelihood(group, n, 0, 0);
  for (int i = 0; i < MOST_NEWTON; i++) {
    double step[2], next = -INFINITY;
    newton_step(group, n, fit->a, fit->b, step);
    for (int k = 0; k < MOST_HALVINGS; k++, step[0] /= 2, step[1] /= 2) {
      next = likelihood(group, n, fit->a + step[0], fit->b + step[1]);
      if (next >= fit->log_likelihood) break;
    }
    if (!(next >= fit->log_likelihood)) return;
    fit->a += step[0];
    fit->b += step[1];
    fit->log_likelihood = next;
    if (fabs(step[0]) <= 1e-12 * (1 + fabs(fit->a)) && fabs(step[1]) <= 1e-12 * (1 + fabs(fit->b)))
      return;
  }
}

static gl_status check_groups(const dose_group *group, size_t n, gl_error *err) {
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(group[i].x))
      return gl_fail(err, GL_EINPUT, "dose %zu is %g: the logarithm of a dose is a number", i,
                     group[i].x);
    if (group[i].collapses > group[i].runs)
      return gl_fail(err, GL_EINPUT, "dose %zu has %zu collapses of %zu runs", i,
                     group[i].collapses, group[i].runs);
  }
  return GL_OK;
}

/* Returns true if there are runs at two different learning rates. */
static bool has_two_doses(const dose_group *group, size_t n) {
  double seen = NAN;
  for (size_t i = 0; i < n; i++) {
    if (group[i].runs == 0) continue;
    if (!isnan(seen) && group[i].x != seen) return true;
    seen = group[i].x;
  }
  return false;
}

gl_status dose_fit_of(const dose_group *group, size_t n, dose_fit *out, gl_error *err) {
  *out = (dose_fit){.a = NAN, .b = NAN, .log_likelihood = NAN};
  gl_status status = check_groups(group, n, err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i < n; i++) {
    out->runs += group[i].runs;
    out->collapses += group[i].collapses;
  }
  if (!has_two_doses(group, n))
    out->why = "fewer than two doses";
  else if (out->collapses == 0)
    out->why = "no run collapses";
  else if (out->collapses == out->runs)
    out->why = "every run collapses";
  if (out->why == NULL) ascend(group, n, out);
  return GL_OK;
}

/* --- learning rate at a given collapse rate, with its profile interval --- */

/* The logistic regressions whose collapse rate at x is the given fraction; they differ in slope.
 * logit: of the fraction. */
typedef struct lines {
  const dose_group *group;
  size_t n;
  double x, logit;
} lines;

static double at_slope(const lines *l, double b) {
  return likelihood(l->group, l->n, l->logit - b * l->x, b);
}

/* Grid of slopes from -most to most, dense near 0. */
static double slope_at(int i, double most) {
  const double u = 2.0 * i / SLOPES - 1;
  return most * u * u * u;
}

/* Maximum penalised likelihood over these regressions: scans the slopes, then refines by
 * golden-section search. */
static double best_of_lines(const lines *l, double most) {
  static const double golden = 0.6180339887498949;
  int best = 0;
  double value = -INFINITY;
  for (int i = 0; i <= SLOPES; i++) {
    const double v = at_slope(l, slope_at(i, most));
    if (v > value) {
      value = v;
      best = i;
    }
  }
  double low = slope_at(best > 0 ? best - 1 : 0, most);
  double high = slope_at(best < SLOPES ? best + 1 : SLOPES, most);
  for (int i = 0; i < REFINEMENTS; i++) {
    const double u = high - golden * (high - low), v = low + golden * (high - low);
    if (at_slope(l, u) > at_slope(l, v))
      high = v;
    else
      low = u;
  }
  return fmax(value, at_slope(l, (low + high) / 2));
}

/* Returns where the profile has dropped by PROFILE_LOSS, moving from x in steps; infinite if it has
 * not within the range. */
static double end_of_profile(lines l, double x, double step, double best, double most) {
  for (int i = 1; i <= REACH_STEPS; i++) {
    l.x = x + i * step;
    if (best - best_of_lines(&l, most) <= PROFILE_LOSS) continue;
    double in = l.x - step, out = l.x;
    for (int k = 0; k < 30; k++) {
      l.x = (in + out) / 2;
      if (best - best_of_lines(&l, most) <= PROFILE_LOSS)
        in = l.x;
      else
        out = l.x;
    }
    return (in + out) / 2;
  }
  return step > 0 ? INFINITY : -INFINITY;
}

interval dose_at(const dose_group *group, size_t n, const dose_fit *fit, double share,
                 double reach) {
  double low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < n; i++) {
    if (group[i].runs == 0) continue;
    low = fmin(low, group[i].x);
    high = fmax(high, group[i].x);
  }
  if (fit->why != NULL || !(fit->b > 0)) return (interval){NAN, -INFINITY, INFINITY};
  const lines l = {.group = group, .n = n, .logit = log(share / (1 - share))};
  const double x = (l.logit - fit->a) / fit->b;
  /* Beyond this slope the likelihood is practically that of a step function. */
  const double most = fmax(200 / (high - low), 4 * fabs(fit->b));
  interval v = {.value = x, .low = -INFINITY, .high = INFINITY};
  if (x > low - reach)
    v.low = end_of_profile(l, x, -(x - low + reach) / REACH_STEPS, fit->log_likelihood, most);
  if (x < high + reach)
    v.high = end_of_profile(l, x, (high + reach - x) / REACH_STEPS, fit->log_likelihood, most);
  return v;
}

/* --- the area under a ROC curve --- */

double auc_error(double auc, size_t events, size_t others) {
  const double e = (double)events, n = (double)others, square = auc * auc;
  const double q1 = auc / (2 - auc), q2 = 2 * square / (1 + auc);
  if (events == 0 || others == 0 || !(auc >= 0 && auc <= 1)) return NAN;
  const double variance =
      (auc * (1 - auc) + (e - 1) * (q1 - square) + (n - 1) * (q2 - square)) / (e * n);
  return sqrt(fmax(0, variance));
}

interval auc_interval(double auc, size_t events, size_t others) {
  const double error = auc_error(auc, events, others), within = auc * (1 - auc);
  if (!(within > 0) || isnan(error)) return (interval){auc, NAN, NAN};
  const double logit = log(auc / (1 - auc)), half = gsl_cdf_ugaussian_Pinv(0.975) * error / within;
  return (interval){auc, 1 / (1 + exp(half - logit)), 1 / (1 + exp(-half - logit))};
}

/* --- the distribution of U under the hypothesis --- */

/* The distribution of U, p[events * others + 1], allocated; NULL if memory runs out. Of e events
 * and n others the largest value is an event's with probability e / (e + n), and then exceeds all n
 * others. */
static double *u_distribution(size_t events, size_t others) {
  const size_t size = events * others + 1;
  double *p = calloc((others + 1) * size, sizeof *p); /* [others + 1][size] for the current e */
  for (size_t n = 0; p && n <= others; n++) p[n * size] = 1;
  for (size_t e = 1; p && e <= events; e++)
    for (size_t n = 1; n <= others; n++) {
      double *now = p + n * size;
      const double *less = now - size;
      const double event = (double)e / (double)(e + n);
      for (size_t u = e * n + 1; u-- > 0;)
        now[u] = (u >= n ? event * now[u - n] : 0) + (1 - event) * less[u];
    }
  if (p && others > 0)
    for (size_t u = 0; u < size; u++) p[u] = p[others * size + u];
  return p;
}

/* P(|U - mean| >= distance) of U distributed as p[pairs + 1]. */
static double two_tails(const double *p, size_t pairs, double distance) {
  double sum = 0;
  for (size_t u = 0; u <= pairs; u++)
    if (fabs((double)u - (double)pairs / 2) >= distance - 1e-9) sum += p[u];
  return fmin(1, sum);
}

/* Standard deviation of U if the AUC is 0.5. */
static double u_deviation(size_t events, size_t others) {
  return sqrt((double)events * (double)others * (double)(events + others + 1) / 12);
}

static bool is_exact(size_t events, size_t others) {
  return events <= AUC_EXACT && others <= AUC_EXACT && events * others <= AUC_EXACT;
}

double auc_p_value(double auc, size_t events, size_t others) {
  if (events == 0 || others == 0 || !(auc >= 0 && auc <= 1)) return NAN;
  const double pairs = (double)events * (double)others;
  /* U is a multiple of 1/2; rounding restores it from an AUC with few digits */
  const double distance = fabs(round(2 * auc * pairs) - pairs) / 2;
  if (!is_exact(events, others))
    return 2 * gsl_cdf_ugaussian_Q(fmax(0, distance - 0.5) / u_deviation(events, others));
  double *p = u_distribution(events, others);
  const double value = p ? two_tails(p, events * others, distance) : NAN;
  free(p);
  return value;
}

/* The smallest |U - mean| that the test rejects; infinite if it rejects nothing. */
static double critical_distance(size_t events, size_t others, double level) {
  const size_t pairs = events * others;
  if (!is_exact(events, others))
    return 0.5 + gsl_cdf_ugaussian_Qinv(level / 2) * u_deviation(events, others);
  double *p = u_distribution(events, others), found = INFINITY, sum = 0;
  for (size_t u = 0; p && 2 * u < pairs; u++) {
    sum += 2 * p[u]; /* the distribution is symmetric */
    if (sum > level) break;
    found = (double)pairs / 2 - (double)u;
  }
  free(p);
  return found;
}

double auc_power(double auc, size_t events, size_t others, double level) {
  if (events == 0 || others == 0) return 0;
  const double pairs = (double)events * (double)others;
  const double critical = critical_distance(events, others, level);
  const double mean = auc * pairs, deviation = auc_error(auc, events, others) * pairs;
  if (!isfinite(critical) || !(deviation > 0)) return isfinite(critical) ? 1 : 0;
  /* continuity correction by 1/2, because U is an integer */
  return gsl_cdf_ugaussian_Q((pairs / 2 + critical - 0.5 - mean) / deviation) +
         gsl_cdf_ugaussian_P((pairs / 2 - critical + 0.5 - mean) / deviation);
}

static size_t others_for(size_t events, double ratio) {
  return (size_t)fmax(1, ceil(ratio * (double)events - 1e-9));
}

size_t auc_events_needed(double auc, double ratio, double level, double power) {
  size_t below = 0, above = 1; /* doubled, then bisected: power rises with the number of events */
  while (above <= AUC_MOST_EVENTS && auc_power(auc, above, others_for(above, ratio), level) < power)
    below = above, above *= 2;
  if (above > AUC_MOST_EVENTS) return 0;
  while (above - below > 1) {
    const size_t middle = below + (above - below) / 2;
    if (auc_power(auc, middle, others_for(middle, ratio), level) < power)
      below = middle;
    else
      above = middle;
  }
  return above;
}

/* --- the table --- */

static const table_column needed_columns[] = {
    {"auc", TABLE_REAL, .head = "AUC", .format = "%.2f"},
    {"ratio", TABLE_REAL, .head = "others for each event", .format = "%.3g"},
    {"events", TABLE_INTEGER, .head = "events needed"}};

/* Writes how many events are needed to distinguish AUCs of 0.6 to 0.9, and `against`, from 0.5. */
static void report_needed(table *to, const power_request *q, double ratio) {
  const double auc[] = {0.6, 0.65, 0.7, 0.75, 0.8, 0.9};
  table *t = table_rows(table_field(to, "needed"), needed_columns, 3);
  for (size_t i = 0; i <= sizeof auc / sizeof *auc; i++) {
    const double of = i > 0 ? auc[i - 1] : q->against;
    if (i > 0 && of == q->against) continue;
    table_row(t);
    table_real(t, of), table_real(t, ratio);
    table_count(t, auc_events_needed(of, ratio, q->level, q->power));
  }
  table_title(t, "Events needed for a power of %.0f %% against chance, two-sided at %.0f %%",
              100 * q->power, 100 * q->level);
}

static const table_column observed_columns[] = {
    {"auc", TABLE_INTERVAL, .head = "AUC observed", .format = "%.2f"},
    {"events", TABLE_INTEGER, .head = "events"},
    {"others", TABLE_INTEGER, .head = "others"},
    {"p", TABLE_REAL, .head = "p against 0.5", .format = "%.3f"}};

static void report_observed(table *to, const power_request *q) {
  table *t = table_rows(table_field(to, "observed"), observed_columns, 4);
  for (size_t i = 0; i < q->n_observed; i++) {
    table_row(t);
    interval_cell(t, auc_interval(q->observed[i], q->events, q->others));
    table_count(t, q->events), table_count(t, q->others);
    table_real(t, auc_p_value(q->observed[i], q->events, q->others));
  }
  table_title(t, "Observed, with intervals of Hanley and McNeil and the exact permutation test "
                 "without ties");
}

void power_report(table *to, const power_request *q) {
  const double ratio = q->events > 0 ? (double)q->others / (double)q->events : 1;
  table_put(to, "against %g, level %g, wanted %g", q->against, q->level, q->power);
  if (q->events > 0) {
    const double power = auc_power(q->against, q->events, q->others, q->level);
    table_put(to, "events %zu, others %zu, power %g", q->events, q->others, power);
    table_line(to,
               "With %zu events and %zu others, an AUC of %.2f is distinguished from 0.5 with "
               "probability %.2f (two-sided at %.0f %%).",
               q->events, q->others, q->against, power, 100 * q->level);
    table_line(to, "%s", "");
  }
  report_needed(to, q, ratio);
  if (q->n_observed > 0) {
    table_line(to, "%s", "");
    report_observed(to, q);
  }
}

/* --- rates at which a fraction of runs collapses --- */

/* Runs grouped by x (log learning rate), and their distinct seeds. */
typedef struct dose_table {
  const dose_run *run;
  size_t n;
  dose_group *group; /* [n_groups] */
  size_t n_groups;
  uint64_t *seed; /* [n_seeds] */
  size_t n_seeds;
  double low, high; /* range of x */
} dose_table;

static dose_group *dose_group_of(dose_table *t, double x) {
  for (size_t i = 0; i < t->n_groups; i++)
    if (t->group[i].x == x) return &t->group[i];
  t->group[t->n_groups] = (dose_group){.x = x};
  return &t->group[t->n_groups++];
}

static void dose_add_seed(dose_table *t, uint64_t seed) {
  for (size_t i = 0; i < t->n_seeds; i++)
    if (t->seed[i] == seed) return;
  t->seed[t->n_seeds++] = seed;
}

/* Counts runs and collapses for each x, without the runs of one seed (NULL: of all runs). */
static void dose_count_groups(dose_table *t, const uint64_t *without) {
  t->n_groups = 0;
  for (size_t i = 0; i < t->n; i++) {
    dose_group *g = dose_group_of(t, t->run[i].x);
    if (without != NULL && t->run[i].seed == *without) continue;
    g->runs++;
    g->collapses += t->run[i].collapsed;
  }
}

/* The x at which the fitted collapse rate is `share`; NaN without a fit or if the rate does not
 * rise with x. */
static gl_status fitted(dose_table *t, const uint64_t *without, double share, double *x,
                        gl_error *err) {
  dose_fit fit;
  dose_count_groups(t, without);
  gl_status status = dose_fit_of(t->group, t->n_groups, &fit, err);
  if (status != GL_OK) return status;
  *x = fit.why == NULL && fit.b > 0 ? (log(share / (1 - share)) - fit.a) / fit.b : NAN;
  return GL_OK;
}

/* Brackets the x at which the observed collapse rate crosses `share`. low: the largest tested x up
 * to which no rate is above it; high: the smallest tested x from which on no rate is below it.
 * Infinite if there is none. */
static void bracket(dose_table *t, double share, double *low, double *high) {
  double first_above = INFINITY, last_below = -INFINITY;
  dose_count_groups(t, NULL);
  for (size_t i = 0; i < t->n_groups; i++) {
    const double collapsed = (double)t->group[i].collapses / (double)t->group[i].runs;
    if (collapsed > share) first_above = fmin(first_above, t->group[i].x);
    if (collapsed < share) last_below = fmax(last_below, t->group[i].x);
  }
  *low = -INFINITY, *high = INFINITY;
  for (size_t i = 0; i < t->n_groups; i++) {
    const double x = t->group[i].x;
    if (x < first_above && x <= last_below) *low = fmax(*low, x);
    if (x > last_below && x >= first_above) *high = fmin(*high, x);
  }
}

/* Half the width of the jackknife interval over seeds; infinite if there is one seed or no fit
 * without one of the seeds. */
static gl_status jackknife(dose_table *t, double share, double *half, gl_error *err) {
  const double n = (double)t->n_seeds;
  double sum = 0, squares = 0;
  *half = INFINITY;
  for (size_t i = 0; i < t->n_seeds; i++) {
    double x = NAN;
    gl_status status = fitted(t, &t->seed[i], share, &x, err);
    if (status != GL_OK) return status;
    if (isnan(x)) return GL_OK;
    sum += x;
    squares += x * x;
  }
  if (t->n_seeds < 2) return GL_OK;
  const double variance = fmax(squares - sum * sum / n, 0) * (n - 1) / n;
  *half = gsl_cdf_tdist_Pinv(0.975, n - 1) * sqrt(variance);
  return GL_OK;
}

/* Makes interval ends beyond the tested x infinite, and a value beyond them NaN. */
static interval within_x(const dose_table *t, double x, double low, double high) {
  const bool inside = x >= t->low && x <= t->high;
  return (interval){.value = inside ? x : NAN,
                    .low = low < t->low ? -INFINITY : low,
                    .high = high > t->high ? INFINITY : high};
}

gl_status dose_at_fraction(const dose_run *run, size_t n, double share, interval *out,
                           gl_error *err) {
  arena work = {0};
  dose_table t = {.run = run,
                  .n = n,
                  .group = ARENA_ARRAY(&work, dose_group, n),
                  .seed = ARENA_ARRAY(&work, uint64_t, n),
                  .low = INFINITY,
                  .high = -INFINITY};
  double x = NAN, half = INFINITY, low, high;
  *out = (interval){NAN, -INFINITY, INFINITY};
  gl_status status = arena_check(&work, "the seeds", err);
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    dose_add_seed(&t, run[i].seed);
    t.low = fmin(t.low, run[i].x);
    t.high = fmax(t.high, run[i].x);
  }
  if (status == GL_OK) status = fitted(&t, NULL, share, &x, err);
  if (status == GL_OK && !isnan(x)) status = jackknife(&t, share, &half, err);
  if (status == GL_OK && !isnan(x)) {
    bracket(&t, share, &low, &high);
    if (isfinite(low))
      x = fmax(x, low); /* the penalised fit is flatter than the data, so its x may lie outside the
                           bracket */
    if (isfinite(high)) x = fmin(x, high);
    *out = within_x(&t, x, fmin(x - half, low), fmax(x + half, high));
  }
  arena_fini(&work);
  return status;
}
