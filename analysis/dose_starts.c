/* A delete-one-start jackknife of the learning rate at which a fraction of runs collapses. */
#include "analysis/dose_starts.h"

#include "core/base/arena.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

/* The runs by x, and the distinct starts. */
typedef struct dose_table {
  const dose_run *run;
  size_t n;
  dose_group *group; /* [n_groups] */
  size_t n_groups;
  uint64_t *start; /* [n_starts] */
  size_t n_starts;
  double low, high; /* range of x */
} dose_table;

static dose_group *dose_group_of(dose_table *t, double x) {
  for (size_t i = 0; i < t->n_groups; i++)
    if (t->group[i].x == x) return &t->group[i];
  t->group[t->n_groups] = (dose_group){.x = x};
  return &t->group[t->n_groups++];
}

static void add_start(dose_table *t, uint64_t start) {
  for (size_t i = 0; i < t->n_starts; i++)
    if (t->start[i] == start) return;
  t->start[t->n_starts++] = start;
}

/* Counts the runs by x, without those of one start; NULL: all. */
static void dose_count_groups(dose_table *t, const uint64_t *without) {
  t->n_groups = 0;
  for (size_t i = 0; i < t->n; i++) {
    dose_group *g = dose_group_of(t, t->run[i].x);
    if (without != NULL && t->run[i].start == *without) continue;
    g->runs++;
    g->falls += t->run[i].fell;
  }
}

/* x at which the fit passes the fraction; NaN without a rising fit. */
static gl_status fitted(dose_table *t, const uint64_t *without, double share, double *x,
                        gl_error *err) {
  dose_fit fit;
  dose_count_groups(t, without);
  gl_status status = dose_fit_of(t->group, t->n_groups, &fit, err);
  if (status != GL_OK) return status;
  *x = fit.why == NULL && fit.b > 0 ? (log(share / (1 - share)) - fit.a) / fit.b : NAN;
  return GL_OK;
}

/* The largest x below which every x run has at most the fraction, and the smallest one above which
 * every x run has at least it. Infinite where there is none. */
static void bracket(dose_table *t, double share, double *low, double *high) {
  double first_above = INFINITY, last_below = -INFINITY;
  dose_count_groups(t, NULL);
  for (size_t i = 0; i < t->n_groups; i++) {
    const double fell = (double)t->group[i].falls / (double)t->group[i].runs;
    if (fell > share) first_above = fmin(first_above, t->group[i].x);
    if (fell < share) last_below = fmax(last_below, t->group[i].x);
  }
  *low = -INFINITY, *high = INFINITY;
  for (size_t i = 0; i < t->n_groups; i++) {
    const double x = t->group[i].x;
    if (x < first_above && x <= last_below) *low = fmax(*low, x);
    if (x > last_below && x >= first_above) *high = fmin(*high, x);
  }
}

/* Half the width of the jackknife's interval; infinite if a start cannot be left out. */
static gl_status jackknife(dose_table *t, double share, double *half, gl_error *err) {
  const double n = (double)t->n_starts;
  double sum = 0, squares = 0;
  *half = INFINITY;
  for (size_t i = 0; i < t->n_starts; i++) {
    double x = NAN;
    gl_status status = fitted(t, &t->start[i], share, &x, err);
    if (status != GL_OK) return status;
    if (isnan(x)) return GL_OK;
    sum += x;
    squares += x * x;
  }
  if (t->n_starts < 2) return GL_OK;
  const double variance = fmax(squares - sum * sum / n, 0) * (n - 1) / n;
  *half = gsl_cdf_tdist_Pinv(0.975, n - 1) * sqrt(variance);
  return GL_OK;
}

/* Opens the ends outside the x run. */
static interval within_x(const dose_table *t, double x, double low, double high) {
  const bool inside = x >= t->low && x <= t->high;
  return (interval){.value = inside ? x : NAN,
                    .low = low < t->low ? -INFINITY : low,
                    .high = high > t->high ? INFINITY : high};
}

gl_status dose_at_starts(const dose_run *run, size_t n, double share, interval *out,
                         gl_error *err) {
  arena work = {0};
  dose_table t = {.run = run,
                  .n = n,
                  .group = ARENA_ARRAY(&work, dose_group, n),
                  .start = ARENA_ARRAY(&work, uint64_t, n),
                  .low = INFINITY,
                  .high = -INFINITY};
  double x = NAN, half = INFINITY, low, high;
  *out = (interval){NAN, -INFINITY, INFINITY};
  gl_status status = arena_check(&work, "the starts", err);
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    add_start(&t, run[i].start);
    t.low = fmin(t.low, run[i].x);
    t.high = fmax(t.high, run[i].x);
  }
  if (status == GL_OK) status = fitted(&t, NULL, share, &x, err);
  if (status == GL_OK && !isnan(x)) status = jackknife(&t, share, &half, err);
  if (status == GL_OK && !isnan(x)) {
    bracket(&t, share, &low, &high);
    if (isfinite(low))
      x = fmax(x, low); /* the penalty may flatten the fit beyond the rates around */
    if (isfinite(high)) x = fmin(x, high);
    *out = within_x(&t, x, fmin(x - half, low), fmax(x + half, high));
  }
  arena_fini(&work);
  return status;
}
