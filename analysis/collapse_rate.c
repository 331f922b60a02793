/* The rate of collapse by learning rate: a logistic regression with few runs. */
#include "analysis/collapse_rate.h"

#include "core/base/arena.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- Firth's penalised logistic regression --- */

enum { MOST_NEWTON = 200, MOST_HALVINGS = 40 };

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
  if (out->why == NULL && !(out->b > 0)) out->why = "collapses do not increase with it";
  return GL_OK;
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

dose_group *dose_group_of(dose_group *group, size_t *n, double x) {
  for (size_t i = 0; i < *n; i++)
    if (group[i].x == x) return &group[i];
  group[*n] = (dose_group){.x = x};
  return &group[(*n)++];
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
    dose_group *g = dose_group_of(t->group, &t->n_groups, t->run[i].x);
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
  *x = fit.why == NULL ? (log(share / (1 - share)) - fit.a) / fit.b : NAN;
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
