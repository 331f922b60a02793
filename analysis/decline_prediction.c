/* Measures which metrics predict the next decline of the score. */
#include "analysis/decline_prediction.h"

#include "core/random/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- windows --- */

/* Updates over which the metrics are averaged, and whether the score declines after them. */
typedef struct window {
  size_t first, end; /* updates first .. end - 1 */
  bool declines;
} window;

typedef struct windowed_run {
  const results_run *of;
  window *window; /* [n] */
  size_t n;
  bool by_reward;
} windowed_run;

static bool is_decline(double from, double to, const declines_rule *rule) {
  return to < from - rule->least;
}

/* Makes a window of each interval between two evaluations: the updates after the first, up to the
 * one that the second evaluates. */
static void find_eval_windows(windowed_run *w, const declines_rule *rule) {
  const results_run *r = w->of;
  size_t at = 0;
  for (size_t k = 0; k + 2 < r->n_evals; k++) {
    const double from = r->evals[k + 1].eval_score, to = r->evals[k + 2].eval_score;
    while (at < r->n_steps && r->steps[at].step <= r->evals[k].step) at++;
    size_t end = at;
    while (end < r->n_steps && r->steps[end].step <= r->evals[k + 1].step) end++;
    if (isfinite(from) && isfinite(to) && end > at)
      w->window[w->n++] = (window){at, end, is_decline(from, to, rule)};
  }
}

/* Each update but the last is a window; it precedes a decline if the reward of the next update is
 * lower by more than rule->least. */
static void find_reward_windows(windowed_run *w, const declines_rule *rule) {
  const results_run *r = w->of;
  w->by_reward = true;
  for (size_t k = 0; k + 1 < r->n_steps; k++) {
    const double from = r->steps[k].metric[METRIC_REWARD_MEAN],
                 to = r->steps[k + 1].metric[METRIC_REWARD_MEAN];
    if (isfinite(from) && isfinite(to))
      w->window[w->n++] = (window){k, k + 1, is_decline(from, to, rule)};
  }
}

/* Makes the windows of a run, between evaluations or, with fewer than three, of single updates.
 * Without memory there are none, and m->failed. */
static void find_windows(windowed_run *w, arena *m, const declines_rule *rule) {
  const results_run *r = w->of;
  const size_t most = r->n_evals > r->n_steps ? r->n_evals : r->n_steps;
  w->window = ARENA_ARRAY(m, window, most);
  if (!w->window) return;
  if (r->n_evals >= 3)
    find_eval_windows(w, rule);
  else
    find_reward_windows(w, rule);
}

/* --- the windows of a metric --- */

static double window_mean(const results_run *r, const window *w, metric m) {
  double sum = 0, n = 0;
  for (size_t i = w->first; i < w->end; i++) {
    const double x = r->steps[i].metric[m];
    if (!isfinite(x)) continue;
    sum += x, n += 1;
  }
  return n > 0 ? sum / n : NAN;
}

/* Computes a run's U for a metric. value: [w->n] scratch. */
static auc_pairs pairs_of(const windowed_run *w, metric m, double *value) {
  auc_pairs p = {0};
  for (size_t i = 0; i < w->n; i++) {
    value[i] = window_mean(w->of, &w->window[i], m);
    if (isnan(value[i])) continue;
    if (w->window[i].declines)
      p.events++;
    else
      p.others++;
  }
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->n && w->window[i].declines && !isnan(value[i]); k++)
      if (!w->window[k].declines && !isnan(value[k]))
        p.u += value[i] > value[k] ? 1 : value[i] == value[k] ? 0.5 : 0;
  return p;
}

/* --- one metric over all runs --- */

/* AUC over the runs, each counted times[i] times (NULL: once), without the run of index `without`
 * (n: with all). */
static double area_of(const auc_pairs *p, size_t n, const double *times, size_t without) {
  double u = 0, pairs = 0;
  for (size_t i = 0; i < n; i++) {
    const double t = i == without ? 0 : times ? times[i] : 1;
    u += t * p[i].u;
    pairs += t * (double)p[i].events * (double)p[i].others;
  }
  return pairs > 0 ? u / pairs : NAN;
}

/* Leave-one-out AUC: whether high or low values of a metric predict declines in a run is taken from
 * the AUC of the other runs. If that is 0.5, the run counts with 0.5. */
static double area_left_out(const auc_pairs *p, size_t n) {
  double u = 0, pairs = 0;
  for (size_t i = 0; i < n; i++) {
    const double others = area_of(p, n, NULL, i),
                 of_run = (double)p[i].events * (double)p[i].others;
    if (isnan(others)) continue;
    u += others > 0.5 ? p[i].u : others < 0.5 ? of_run - p[i].u : of_run / 2;
    pairs += of_run;
  }
  return pairs > 0 ? u / pairs : NAN;
}

/* AUC with its bootstrap interval over runs. times: [n] and replicate: [BOOTSTRAP_REPLICATES]
 * scratch. */
static interval bootstrap_runs(const auc_pairs *p, size_t n, double *times, double *replicate) {
  const rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, UINT64_C(14) << 60);
  for (uint64_t r = 0; r < BOOTSTRAP_REPLICATES; r++) {
    memset(times, 0, n * sizeof *times);
    for (size_t i = 0; i < n; i++) {
      const rng_words w = rng_block(stream, r * n + i);
      times[(size_t)(rng_u01_53(w.v[0], w.v[1]) * (double)n)] += 1;
    }
    replicate[r] = area_of(p, n, times, n);
  }
  const size_t known = sample_sort(replicate, BOOTSTRAP_REPLICATES);
  return (interval){area_of(p, n, NULL, n), sample_quantile(replicate, known, 0.025),
                    sample_quantile(replicate, known, 0.975)};
}

typedef struct declines_work {
  windowed_run *run; /* [n] */
  size_t n;
  auc_pairs *pairs;                  /* [n] */
  double *value, *times, *replicate; /* value: [largest number of windows of a run] */
  arena memory;
} declines_work;

/* Returns true if the metric has values in some run both before a decline and in other windows. */
static bool measure_metric(decline_auc *out, declines_work *w, metric m) {
  *out = (decline_auc){.m = m};
  for (size_t i = 0; i < w->n; i++) {
    const auc_pairs p = pairs_of(&w->run[i], m, w->value);
    if (p.events == 0 || p.others == 0) continue;
    out->declines += p.events;
    out->others += p.others;
    w->pairs[out->runs++] = p;
  }
  if (out->runs == 0) return false;
  const double area = area_of(w->pairs, out->runs, NULL, out->runs);
  out->auc = out->runs == 1 ? auc_interval(area, out->declines, out->others)
                            : bootstrap_runs(w->pairs, out->runs, w->times, w->replicate);
  out->p = auc_p_of_strata(w->pairs, out->runs);
  out->left_out = out->runs > 1 ? area_left_out(w->pairs, out->runs) : NAN;
  return true;
}

/* --- all metrics --- */

static bool has_both(const windowed_run *w, declines *out) {
  size_t n = 0;
  for (size_t i = 0; i < w->n; i++) n += w->window[i].declines;
  if (n == 0 || n == w->n) return false;
  out->declines += n;
  out->others += w->n - n;
  return true;
}

static gl_status find_runs(declines_work *w, declines *out, const results *const *from,
                           size_t n_from, gl_error *err) {
  size_t n = 0, most = 0;
  for (size_t s = 0; s < n_from; s++) n += from[s]->n_runs;
  w->run = ARENA_ARRAY(&w->memory, windowed_run, n);
  for (size_t s = 0; s < n_from; s++) {
    if (from[s]->lower_is_better)
      return gl_fail(err, GL_EINPUT, "%s: declines are those of scores that are better when higher",
                     from[s]->study);
    for (size_t i = 0; i < from[s]->n_runs && !w->memory.failed; i++) {
      windowed_run *r = &w->run[w->n];
      *r = (windowed_run){.of = &from[s]->runs[i]};
      find_windows(r, &w->memory, &out->rule);
      if (w->memory.failed || !has_both(r, out)) {
        out->left_out++;
        continue;
      }
      if (r->n > most) most = r->n;
      out->by_reward += r->by_reward;
      w->n++;
    }
  }
  out->runs = w->n;
  w->pairs = ARENA_ARRAY(&w->memory, auc_pairs, w->n);
  w->value = ARENA_ARRAY(&w->memory, double, most);
  w->times = ARENA_ARRAY(&w->memory, double, w->n);
  w->replicate = ARENA_ARRAY(&w->memory, double, BOOTSTRAP_REPLICATES);
  return arena_check(&w->memory, "windows of runs", err);
}

static int by_distance(const void *a, const void *b) {
  const decline_auc *x = a, *y = b;
  const double d = fabs(x->auc.value - 0.5) - fabs(y->auc.value - 0.5);
  if (d != 0) return d < 0 ? 1 : -1;
  return (x->m > y->m) - (x->m < y->m);
}

gl_status declines_of(declines *out, const results *const *from, size_t n_from,
                      const declines_rule *rule, gl_error *err) {
  declines_work w = {.n = 0};
  *out = (declines){.rule = *rule};
  gl_status status = find_runs(&w, out, from, n_from, err);
  if (status == GL_OK && w.n == 0)
    status = gl_fail(err, GL_EINPUT,
                     "no run has both a decline of its score and a window without one; a run needs "
                     "three evaluations, or the mean reward of its updates");
  for (int m = 0; m < METRIC_COUNT && status == GL_OK; m++) {
    if (m == METRIC_VERSION) continue; /* the version only counts updates */
    if (measure_metric(&out->of[out->n], &w, (metric)m)) out->n++;
  }
  arena_fini(&w.memory);
  qsort(out->of, out->n, sizeof *out->of, by_distance);
  return status;
}

/* --- the table --- */

static const table_column decline_columns[] = {
    {"metric", TABLE_TEXT, .head = "metric"},
    {"declines", TABLE_INTEGER, .head = "declines"},
    {"others", TABLE_INTEGER, .head = "others"},
    {"runs", TABLE_INTEGER, .head = "runs"},
    {"auc", TABLE_INTERVAL, .head = "AUC", .format = "%.2f"},
    {"p", TABLE_REAL, .head = "p", .format = "%.3f"},
    {"left_out", TABLE_REAL, .head = "AUC, run left out", .format = "%.2f"}};

void declines_report(table *to, const declines *d, const char *name) {
  table_put(to, "runs %zu, by_reward %zu, left_out %zu, declines %zu, others %zu, least %g",
            d->runs, d->by_reward, d->left_out, d->declines, d->others, d->rule.least);
  const double power = auc_power(0.7, d->declines, d->others, 0.05);
  table_real(table_field(to, "power"), power);
  table *t = table_rows(table_field(to, "metrics"), decline_columns,
                        sizeof decline_columns / sizeof *decline_columns);
  for (size_t i = 0; i < d->n; i++) {
    const decline_auc *a = &d->of[i];
    table_row(t);
    table_text(t, metric_about(a->m)->name);
    table_count(t, a->declines), table_count(t, a->others), table_count(t, a->runs);
    interval_cell(t, a->auc);
    table_real(t, a->p), table_real(t, a->left_out);
  }
  table_title(t,
              "%s: which metrics announce the next decline. %zu declines and %zu other windows of "
              "%zu runs (%zu judged by the reward of their batches; %zu without a decline are left "
              "out). A decline: the score falls by more than %g. AUC: above 0.5 a high mean in the "
              "window before announces, below it a low one, within runs [95 %%: %s].",
              name, d->declines, d->others, d->runs, d->by_reward, d->left_out, d->rule.least,
              d->runs > 1 ? "bootstrap over runs" : "Hanley and McNeil");
  table_line(to,
             "If all windows were independent, an AUC of 0.7 would be distinguished from 0.5 "
             "with probability %.2f (two-sided at 5 %%). %zu metrics are tested at once. A score "
             "that is high by chance declines next: of the score itself, and of the reward, a "
             "high value announces a decline without a cause.",
             power, d->n);
}
