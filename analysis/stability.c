/* The outcomes of a study's runs by method and setting. */
#include "analysis/stability.h"

#include "core/base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double stability_share[STABILITY_SHARES] = {0.1, 0.5};

/* Intervals of doses are looked for within this factor beyond the doses of the study. */
static const double REACH = 1000;

static int in_order(const void *a, const void *b) {
  const double x = ((const dose_group *)a)->x, y = ((const dose_group *)b)->x;
  return (x > y) - (x < y);
}

/* --- settings --- */

static gl_status find_settings(stability *s, gl_error *err) {
  const results *r = s->from;
  s->dose_axis = results_axis(r, STABILITY_DOSE);
  s->has_doses = s->dose_axis < r->axes.n;
  s->settings = calloc(r->n_groups + 1, sizeof *s->settings);
  s->setting = calloc(r->n_groups + 1, sizeof *s->setting);
  char **titles = results_titles(r, s->dose_axis);
  int ok = s->settings != NULL && s->setting != NULL && titles != NULL;
  for (size_t g = 0; g < r->n_groups && ok; g++) {
    size_t *i = &s->setting[g];
    while (*i < s->n_settings && strcmp(s->settings[*i], titles[g]) != 0) ++*i;
    if (*i < s->n_settings) continue;
    s->settings[s->n_settings++] = titles[g];
    titles[g] = NULL;
  }
  results_titles_free(titles, r->n_groups);
  return ok ? GL_OK : gl_fail_memory(err, "the settings");
}

/* The median staleness that the clock says of each setting's runs, on average. */
static gl_status find_staleness(stability *s, gl_error *err) {
  const results *r = s->from;
  size_t *runs = calloc(s->n_settings + 1, sizeof *runs);
  s->staleness = calloc(s->n_settings + 1, sizeof *s->staleness);
  gl_status status =
      runs != NULL && s->staleness != NULL ? GL_OK : gl_fail_memory(err, "the settings");
  for (size_t i = 0; i < r->n_runs && status == GL_OK; i++) {
    const size_t setting = s->setting[r->runs[i].group];
    if (r->runs[i].status == RUN_FAILED) continue;
    s->staleness[setting] += r->runs[i].clock.staleness_p50;
    runs[setting]++;
  }
  for (size_t k = 0; k < s->n_settings && status == GL_OK; k++)
    s->staleness[k] = runs[k] > 0 ? s->staleness[k] / (double)runs[k] : NAN;
  free(runs);
  return status;
}

/* --- cells --- */

/* The dose of the cell with that logarithm, which is added where it is new. */
static dose_group *dose_of(stability_cell *c, double x) {
  for (size_t i = 0; i < c->n_doses; i++)
    if (c->dose[i].x == x) return &c->dose[i];
  c->dose[c->n_doses] = (dose_group){.x = x};
  return &c->dose[c->n_doses++];
}

static void count_run(stability *s, stability_cell *c, size_t index) {
  const results *r = s->from;
  const results_run *run = &r->runs[index];
  if (run->status == RUN_FAILED) {
    c->failed++;
    return;
  }
  const run_outcome o = s->run[index] = outcome_of_run(run, &s->rule);
  c->runs++;
  c->count[o.kind]++;
  c->lost_start += (size_t)(o.lost_start != 0);
  c->falls += (size_t)run_outcome_is_fall(&o);
  if (!s->has_doses) return;
  const double dose = r->groups[run->group].value[s->dose_axis].number;
  if (!(dose > 0) || !isfinite(dose)) return;
  dose_group *d = dose_of(c, log(dose));
  d->runs++;
  d->falls += (size_t)run_outcome_is_fall(&o);
}

size_t stability_times(const stability *s, const stability_cell *c, double *time, uint8_t *fell) {
  const results *r = s->from;
  size_t n = 0;
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    if (run->status == RUN_FAILED || run->algorithm != c->algorithm ||
        s->setting[run->group] != c->setting)
      continue;
    const run_outcome *o = &s->run[i];
    fell[n] = (uint8_t)run_outcome_is_fall(o);
    time[n] = (double)(fell[n] ? o->onset : o->end);
    n++;
  }
  return n;
}

static gl_status find_curve(const stability *s, stability_cell *c, gl_error *err) {
  const size_t most = s->from->n_runs + 1;
  double *time = calloc(most, sizeof *time);
  uint8_t *fell = calloc(most, sizeof *fell);
  survival_step *curve = calloc(most, sizeof *curve);
  gl_status status =
      time != NULL && fell != NULL && curve != NULL ? GL_OK : gl_fail_memory(err, "onsets");
  const size_t n = status == GL_OK ? stability_times(s, c, time, fell) : 0;
  if (status == GL_OK) status = survival_curve(time, fell, n, curve, &c->n_steps, err);
  for (size_t i = 0; i < n; i++) c->watched = fmax(c->watched, time[i]);
  c->median_onset = INFINITY;
  for (size_t i = c->n_steps; i-- > 0;)
    if (curve[i].survival <= 0.5) c->median_onset = curve[i].time;
  c->curve = curve;
  free(time), free(fell);
  return status;
}

static gl_status fit_doses(stability_cell *c, gl_error *err) {
  gl_status status = dose_fit_of(c->dose, c->n_doses, &c->fit, err);
  for (size_t i = 0; i < STABILITY_SHARES && status == GL_OK; i++) {
    const interval x = dose_at(c->dose, c->n_doses, &c->fit, stability_share[i], log(REACH));
    c->falls_at[i] = (interval){exp(x.value), exp(x.low), exp(x.high)};
  }
  return status;
}

/* The last scores of the cell's runs at each dose. */
static gl_status find_scores(const stability *s, stability_cell *c, gl_error *err) {
  const results *r = s->from;
  double *last = calloc(r->n_runs + 1, sizeof *last);
  gl_status status = last != NULL ? GL_OK : gl_fail_memory(err, "the scores");
  for (size_t d = 0; d < c->n_doses && status == GL_OK; d++) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_runs; i++) {
      const results_run *run = &r->runs[i];
      if (run->status == RUN_FAILED || run->algorithm != c->algorithm ||
          s->setting[run->group] != c->setting ||
          log(r->groups[run->group].value[s->dose_axis].number) != c->dose[d].x)
        continue;
      last[n++] = s->run[i].last;
    }
    const uint64_t cell = (uint64_t)(c - s->cells);
    const rng_stream stream =
        rng_stream_at(1, RNG_BOOTSTRAP, UINT64_C(11) << 60 | cell << 16 | (uint64_t)d);
    status = iqm_bootstrap(last, &n, 1, stream, &c->last[d], err);
    if (c->best_dose == c->n_doses || c->last[d].value > c->last[c->best_dose].value)
      c->best_dose = d;
  }
  free(last);
  return status;
}

static gl_status make_cells(stability *s, gl_error *err) {
  const results *r = s->from;
  const size_t n = s->n_settings * r->n_algorithms;
  s->run = calloc(r->n_runs + 1, sizeof *s->run);
  s->cells = calloc(n + 1, sizeof *s->cells);
  if (s->run == NULL || s->cells == NULL) return gl_fail_memory(err, "the outcomes");
  for (size_t i = 0; i < n; i++) {
    s->cells[i].setting = i / r->n_algorithms;
    s->cells[i].algorithm = i % r->n_algorithms;
    s->cells[i].dose = calloc(r->n_groups + 1, sizeof *s->cells[i].dose);
    s->cells[i].last = calloc(r->n_groups + 1, sizeof *s->cells[i].last);
    if (s->cells[i].dose == NULL || s->cells[i].last == NULL)
      return gl_fail_memory(err, "the outcomes");
  }
  for (size_t i = 0; i < r->n_runs; i++)
    count_run(s, &s->cells[s->setting[r->runs[i].group] * r->n_algorithms + r->runs[i].algorithm],
              i);
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    stability_cell *c = &s->cells[i];
    c->fallen = share_interval(c->falls, c->runs);
    c->best_dose = c->n_doses;
    qsort(c->dose, c->n_doses, sizeof *c->dose, in_order);
    status = find_curve(s, c, err);
  }
  return status;
}

gl_status stability_fit(stability *s, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < s->n_settings * s->n_algorithms && status == GL_OK; i++) {
    status = fit_doses(&s->cells[i], err);
    if (status == GL_OK) status = find_scores(s, &s->cells[i], err);
  }
  return status;
}

static gl_status name_algorithms(stability *s, gl_error *err) {
  s->n_algorithms = s->from->n_algorithms;
  s->algorithms = calloc(s->n_algorithms + 1, sizeof *s->algorithms);
  if (s->algorithms == NULL) return gl_fail_memory(err, "the algorithms");
  for (size_t a = 0; a < s->n_algorithms; a++) s->algorithms[a] = s->from->algorithms[a];
  return GL_OK;
}

gl_status stability_init(stability *s, const results *from, const outcome_rule *rule,
                         gl_error *err) {
  *s = (stability){.from = from, .study = from->study, .rule = *rule};
  size_t evaluated = 0;
  for (size_t i = 0; i < from->n_runs; i++) evaluated += from->runs[i].n_evals > 0;
  if (evaluated == 0)
    return gl_fail(err, GL_EINPUT,
                   "%s has no evaluations, by which runs are judged; set eval_every in its recipe",
                   from->study);
  if (from->lower_is_better)
    return gl_fail(err, GL_EINPUT, "%s: outcomes are those of scores that are better when higher",
                   from->study);
  gl_status status = find_settings(s, err);
  if (status == GL_OK) status = find_staleness(s, err);
  if (status == GL_OK) status = name_algorithms(s, err);
  return status == GL_OK ? make_cells(s, err) : status;
}

void stability_fini(stability *s) {
  for (size_t i = 0; s->cells != NULL && i < s->n_settings * s->n_algorithms; i++)
    free(s->cells[i].dose), free(s->cells[i].last), free(s->cells[i].curve);
  for (size_t i = 0; i < s->n_settings; i++) free(s->settings[i]);
  free(s->settings), free(s->setting), free(s->staleness), free(s->run), free(s->cells);
  free(s->algorithms);
  stored_fini(&s->kept);
  *s = (stability){0};
}

/* --- the table --- */

enum { OF_DOSES = 6 };
static const table_column stability_columns[] = {
    {"algorithm", TABLE_TEXT, .head = "algorithm"},
    {"setting", TABLE_TEXT, .head = "setting"},
    TABLE_KEY("place", TABLE_WHOLE),
    TABLE_KEY("staleness", TABLE_REAL),
    {"runs", TABLE_WHOLE, .head = "runs"},
    TABLE_KEY("failed", TABLE_WHOLE),
    {"outcomes/not finite", TABLE_WHOLE, .head = "not finite", .place = 1},
    {"outcomes/never learned", TABLE_WHOLE, .head = "never learned"},
    {"outcomes/early fall", TABLE_WHOLE, .head = "early fall"},
    {"outcomes/late fall", TABLE_WHOLE, .head = "late fall"},
    {"outcomes/survived", TABLE_WHOLE, .head = "survived", .place = 1},
    TABLE_KEY("lost_start", TABLE_WHOLE),
    {"fallen", TABLE_INTERVAL, .head = "fallen", .format = "%.2f", .place = 1},
    {"median_onset", TABLE_REAL, .head = "median onset", .format = "%.0f", .place = 1},
    TABLE_KEY("curve", TABLE_TABLE),
    TABLE_KEY("watched", TABLE_REAL),
    /* from here on where doses are swept */
    TABLE_KEY("doses", TABLE_TABLE),
    TABLE_KEY("best_dose", TABLE_REAL),
    {"best_last", TABLE_INTERVAL, .head = "best last, at lr", .place = 3},
    TABLE_KEY("why", TABLE_TEXT),
    {"falls_10", TABLE_INTERVAL, .head = "lr: 10 %", .place = 2},
    {"falls_50", TABLE_INTERVAL, .head = "lr: 50 %", .place = 2}};

static const table_column curve_columns[] = {TABLE_KEY("update", TABLE_REAL),
                                             TABLE_KEY("share", TABLE_REAL),
                                             TABLE_KEY("error", TABLE_REAL)};

static const table_column dose_columns[] = {
    TABLE_KEY("dose", TABLE_REAL), TABLE_KEY("runs", TABLE_WHOLE), TABLE_KEY("falls", TABLE_WHOLE),
    TABLE_KEY("last", TABLE_INTERVAL)};

/* A dose: people see open ends as inequalities that a reader knows. */
static void put_dose(table *t, const dose_fit *fit, interval v) {
  char low[32] = "0", high[32] = "∞";
  interval_cell(t, v);
  if (v.low > 0) snprintf(low, sizeof low, "%.3g", v.low);
  if (isfinite(v.high)) snprintf(high, sizeof high, "%.3g", v.high);
  if (fit->why != NULL)
    table_shown(t, "– (%s)", fit->why);
  else if (isnan(v.value))
    table_shown(t, "– (falls do not rise with it)");
  else
    table_shown(t, "%.3g [%s, %s]", v.value, low, high);
}

/* The dose of a logarithm, without the last digits that it has lost. */
static double dose_number(double x) {
  char text[32];
  snprintf(text, sizeof text, "%.12g", exp(x));
  return strtod(text, NULL);
}

static void put_doses(table *t, const stability_cell *c) {
  table *list = table_rows(t, dose_columns, sizeof dose_columns / sizeof *dose_columns);
  for (size_t i = 0; i < c->n_doses; i++) {
    table_row(list);
    table_real(list, dose_number(c->dose[i].x));
    table_count(list, c->dose[i].runs);
    table_count(list, c->dose[i].falls);
    interval_cell(list, c->last[i]);
  }
  if (c->best_dose < c->n_doses) {
    /* the highest last score over the doses, which is chosen on the runs that it is told of */
    const interval v = c->last[c->best_dose];
    table_real(t, dose_number(c->dose[c->best_dose].x));
    interval_cell(t, v);
    table_shown(t, "%.3f [%.3f, %.3f], %.3g", v.value, v.low, v.high, exp(c->dose[c->best_dose].x));
  } else {
    table_missing(t);
    table_missing(t);
  }
  table_text(t, c->fit.why);
  for (size_t k = 0; k < STABILITY_SHARES; k++) put_dose(t, &c->fit, c->falls_at[k]);
}

/* The course of the share that has not fallen, for its figure. */
static void put_curve(table *t, const stability_cell *c) {
  table *curve = table_rows(t, curve_columns, sizeof curve_columns / sizeof *curve_columns);
  for (size_t i = 0; i < c->n_steps; i++) {
    table_row(curve);
    table_real(curve, c->curve[i].time);
    table_real(curve, c->curve[i].survival);
    table_real(curve, c->curve[i].error);
  }
  table_real(t, c->watched);
}

static void put_cell(table *t, const stability *s, const stability_cell *c) {
  table_row(t);
  if (c->runs == 0) table_hide_row(t);
  table_text(t, s->algorithms[c->algorithm]);
  table_text(t, s->settings[c->setting]);
  if (*s->settings[c->setting] == '\0') table_shown(t, "–");
  table_whole(t, c - s->cells);
  table_real(t, s->staleness[c->setting]);
  table_count(t, c->runs);
  table_count(t, c->failed);
  for (outcome o = 0; o < OUTCOME_COUNT; o++) {
    table_count(t, c->count[o]);
    if (o == OUTCOME_NEVER_LEARNED && c->lost_start > 0)
      table_shown(t, "%zu (%zu lost the start)", c->count[o], c->lost_start);
  }
  table_count(t, c->lost_start);
  interval_cell(t, c->fallen);
  table_real(t, c->median_onset);
  if (!isfinite(c->median_onset)) table_shown(t, "–");
  put_curve(t, c);
  if (s->has_doses) put_doses(t, c);
}

static int by_halves(const stability *s) {
  for (size_t i = 0; s->from != NULL && i < s->from->n_runs; i++)
    if (s->from->runs[i].best_until != NULL) return 1;
  return 0;
}

void stability_report(table *to, const stability *s) {
  const size_t n = sizeof stability_columns / sizeof *stability_columns;
  size_t failed = 0;
  table_text(table_field(to, "study"), s->study);
  table *t = table_rows(table_field(to, "cells"), stability_columns,
                        s->has_doses ? n : n - (size_t)OF_DOSES);
  for (size_t i = 0; i < s->n_settings * s->n_algorithms; i++) {
    failed += s->cells[i].failed;
    if (s->cells[i].runs + s->cells[i].failed > 0) put_cell(t, s, &s->cells[i]);
  }
  table_title(t,
              "%s: outcomes of runs. A fall: %zu evaluations in a row below %.0f %% of the gain, "
              "the gain at least %g; late: after %lld updates within the last %.0f %% of it. "
              "Fallen: with not finite and lost starts, [95 %% Clopper-Pearson]. Failed runs, "
              "left out: %zu.%s",
              s->study, s->rule.in_a_row, 100 * s->rule.kept, s->rule.least_gain,
              (long long)s->rule.plateau_updates, 100 * (1 - s->rule.plateau), failed,
              by_halves(s) ? " The best until then is chosen on one half of the problems and "
                             "scored on the other."
                           : "");
}
