/* Firth's penalised logistic regression in one variable, with profile intervals of a dose. */
#include "analysis/dose.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

/* Half the 95 % point of chi-square with one degree of freedom. */
static const double PROFILE_LOSS = 1.920729410347062;

enum { MOST_NEWTON = 200, MOST_HALVINGS = 40, SLOPES = 100, REFINEMENTS = 50, REACH_STEPS = 100 };

interval share_interval(size_t k, size_t n) {
  if (n == 0) return (interval){NAN, NAN, NAN};
  const double runs = (double)n, falls = (double)k;
  return (interval){.value = falls / runs,
                    .low = k == 0 ? 0 : gsl_cdf_beta_Pinv(0.025, falls, runs - falls + 1),
                    .high = k == n ? 1 : gsl_cdf_beta_Pinv(0.975, falls + 1, runs - falls)};
}

/* log(1 + exp(x)) without overflow. */
static double log_1_exp(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double probability(double eta) {
  return eta > 0 ? 1 / (1 + exp(-eta)) : exp(eta) / (1 + exp(eta));
}

/* Fisher's information of (a, b), and its determinant as a sum of positive terms, which keeps its
 * digits where the weights are tiny. */
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
    sum -= (double)group[i].falls * log_1_exp(-eta) +
           (double)(group[i].runs - group[i].falls) * log_1_exp(eta);
  }
  return sum + 0.5 * log(information_at(group, n, a, b).determinant);
}

/* Newton's step for the modified score, sum of (falls - runs p + h (1/2 - p)) (1, x), h being the
 * leverages of the group's runs. */
static void newton_step(const dose_group *group, size_t n, double a, double b, double step[2]) {
  const information f = information_at(group, n, a, b);
  double score_a = 0, score_b = 0;
  for (size_t i = 0; i < n; i++) {
    const double x = group[i].x, p = probability(a + b * x);
    const double h = weight(&group[i], a, b) * (f.bb - 2 * f.ab * x + f.aa * x * x) / f.determinant;
    const double u = (double)group[i].falls - (double)group[i].runs * p + h * (0.5 - p);
    score_a += u;
    score_b += u * x;
  }
  step[0] = (f.bb * score_a - f.ab * score_b) / f.determinant;
  step[1] = (f.aa * score_b - f.ab * score_a) / f.determinant;
}

/* Ascends from no slope; a step that loses is halved. */
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
    if (group[i].falls > group[i].runs)
      return gl_fail(err, GL_EINPUT, "dose %zu has %zu falls of %zu runs", i, group[i].falls,
                     group[i].runs);
  }
  return GL_OK;
}

/* Doses with runs that differ from the first with runs. */
static int has_two_doses(const dose_group *group, size_t n) {
  double seen = NAN;
  for (size_t i = 0; i < n; i++) {
    if (group[i].runs == 0) continue;
    if (!isnan(seen) && group[i].x != seen) return 1;
    seen = group[i].x;
  }
  return 0;
}

gl_status dose_fit_of(const dose_group *group, size_t n, dose_fit *out, gl_error *err) {
  *out = (dose_fit){.a = NAN, .b = NAN, .log_likelihood = NAN};
  gl_status status = check_groups(group, n, err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i < n; i++) {
    out->runs += group[i].runs;
    out->falls += group[i].falls;
  }
  if (!has_two_doses(group, n))
    out->why = "fewer than two doses";
  else if (out->falls == 0)
    out->why = "no run falls";
  else if (out->falls == out->runs)
    out->why = "every run falls";
  if (out->why == NULL) ascend(group, n, out);
  return GL_OK;
}

/* --- a dose and its profile --- */

/* The lines on which a share falls at the dose x, by their slope. */
typedef struct lines {
  const dose_group *group;
  size_t n;
  double x, logit;
} lines;

static double at_slope(const lines *l, double b) {
  return likelihood(l->group, l->n, l->logit - b * l->x, b);
}

/* Slopes from -most to most, dense near 0. */
static double slope_at(int i, double most) {
  const double u = 2.0 * i / SLOPES - 1;
  return most * u * u * u;
}

/* The largest penalised likelihood of these lines: a scan, then golden sections. */
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

/* Where the profile has lost PROFILE_LOSS, going from x by so much a step; infinite if it has not
 * within the steps. */
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
  /* The likelihood of steeper lines differs from a step function's in nothing that matters. */
  const double most = fmax(200 / (high - low), 4 * fabs(fit->b));
  interval v = {.value = x, .low = -INFINITY, .high = INFINITY};
  if (x > low - reach)
    v.low = end_of_profile(l, x, -(x - low + reach) / REACH_STEPS, fit->log_likelihood, most);
  if (x < high + reach)
    v.high = end_of_profile(l, x, (high + reach - x) / REACH_STEPS, fit->log_likelihood, most);
  return v;
}
