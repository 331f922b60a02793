/* Classifies runs by a rule that is fixed in advance. */
#include "analysis/outcome.h"

#include "analysis/statistics.h"
#include "core/base/json.h"
#include "core/base/records.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

outcome_rule outcome_rule_default(void) {
  return (outcome_rule){.least_gain = 0.1,
                        .kept = 0.5,
                        .in_a_row = 4,
                        .low_at_end = 2,
                        .plateau = 0.9,
                        .plateau_updates = 200};
}

const char *outcome_name(outcome o) {
  static const char *const names[OUTCOME_COUNT] = {[OUTCOME_NOT_FINITE] = "not finite",
                                                   [OUTCOME_NEVER_LEARNED] = "never learned",
                                                   [OUTCOME_EARLY_COLLAPSE] = "early fall",
                                                   [OUTCOME_LATE_COLLAPSE] = "late fall",
                                                   [OUTCOME_SURVIVED] = "survived"};
  return names[o];
}

const char *run_class_name(run_class f) {
  static const char *const names[RUN_CLASS_COUNT] = {
      [RUN_CLASS_NOT_FINITE] = "not finite",         [RUN_CLASS_LOST_START] = "lost start",
      [RUN_CLASS_NEVER_LEARNED] = "never learned",   [RUN_CLASS_DIP] = "dip",
      [RUN_CLASS_EARLY_COLLAPSE] = "early fall",     [RUN_CLASS_LATE_COLLAPSE] = "late fall",
      [RUN_CLASS_COLLAPSING] = "falling at the end", [RUN_CLASS_STABLE] = "stable"};
  return names[f];
}

run_class run_outcome_class(const run_outcome *o) {
  switch (o->kind) {
  case OUTCOME_NOT_FINITE:
    return RUN_CLASS_NOT_FINITE;
  case OUTCOME_NEVER_LEARNED:
    return o->lost_start ? RUN_CLASS_LOST_START : RUN_CLASS_NEVER_LEARNED;
  case OUTCOME_EARLY_COLLAPSE:
    return o->recovered >= 0 ? RUN_CLASS_DIP : RUN_CLASS_EARLY_COLLAPSE;
  case OUTCOME_LATE_COLLAPSE:
    return o->recovered >= 0 ? RUN_CLASS_DIP : RUN_CLASS_LATE_COLLAPSE;
  case OUTCOME_SURVIVED:
  case OUTCOME_COUNT:
    break;
  }
  return o->is_collapsing ? RUN_CLASS_COLLAPSING : RUN_CLASS_STABLE;
}

bool run_outcome_is_collapse(const run_outcome *o) {
  switch (o->kind) {
  case OUTCOME_NOT_FINITE:
  case OUTCOME_EARLY_COLLAPSE:
  case OUTCOME_LATE_COLLAPSE:
    return true;
  case OUTCOME_NEVER_LEARNED:
    return o->lost_start;
  case OUTCOME_SURVIVED:
  case OUTCOME_COUNT:
    break;
  }
  return false;
}

/* The best score up to evaluation i: the running maximum, or best_until[i] if given. */
static double best_with(double best, const eval_record *eval, const double *best_until, size_t i) {
  if (best_until == NULL) return fmax(best, eval[i].eval_score);
  return isnan(best_until[i]) ? best : best_until[i];
}

/* The low evaluations of a run: below first + kept * gain, where the gain is best - first before
 * the collapse. */
typedef struct low_part {
  size_t collapse;  /* the index at which the collapse begins; n: none */
  size_t recovered; /* after the collapse, the index of the first evaluation that is not low; n:
                       none */
  size_t at_end;    /* how many of the last evaluations are low */
  size_t begin;     /* index of the first of these */
} low_part;

/* Finds the low evaluations. The gain is not updated while evaluations are low, nor after a
 * collapse. */
static low_part low_part_of(const eval_record *eval, const double *best_until, size_t n,
                            const outcome_rule *rule) {
  low_part p = {.collapse = n, .recovered = n, .begin = n};
  double first = NAN, best = NAN, best_before = NAN;
  for (size_t i = 0; i < n; i++) {
    const double score = eval[i].eval_score;
    if (!isfinite(score)) continue;
    if (isnan(first)) first = best = score;
    if (p.at_end == 0 && p.collapse == n) best_before = best;
    const double gain = best_before - first;
    if (gain >= rule->least_gain && score < first + rule->kept * gain) {
      if (p.at_end++ == 0) p.begin = i;
      if (p.at_end == rule->in_a_row && p.collapse == n) p.collapse = p.begin;
    } else {
      p.at_end = 0;
      if (p.collapse < n && p.recovered == n) p.recovered = i;
    }
    best = best_with(best, eval, best_until, i);
  }
  if (p.at_end >= rule->low_at_end) p.recovered = n;
  return p;
}

/* Returns the index from which on all evaluations are below a fraction of the first one, if the
 * first is large enough and there are enough evaluations; else n. */
static size_t loss_of_start(const eval_record *eval, size_t n, const outcome_rule *rule) {
  double first = NAN;
  size_t low = 0, begin = n;
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(eval[i].eval_score)) continue;
    if (isnan(first)) first = eval[i].eval_score;
    if (eval[i].eval_score >= rule->kept * first)
      low = 0;
    else if (low++ == 0)
      begin = i;
  }
  return first >= rule->least_gain && low >= rule->in_a_row ? begin : n;
}

static void ends_of(run_outcome *o, const eval_record *eval, const double *best_until, size_t n,
                    size_t collapse) {
  double highest = NAN;
  for (size_t i = 0; i < n; i++) {
    const double score = eval[i].eval_score;
    if (!isfinite(score)) continue;
    if (isnan(o->first)) o->first = score;
    if (i < collapse) o->best = best_with(isnan(o->best) ? score : o->best, eval, best_until, i);
    if (i < collapse && (isnan(highest) || score > highest)) {
      highest = score;
      o->best_step = eval[i].step;
    }
    o->last = score;
    o->end = eval[i].step;
  }
}

/* Counts updates on the plateau: an evaluation on it counts the updates since the previous one. */
static int64_t plateau_of(const run_outcome *o, const eval_record *eval, size_t collapse,
                          const outcome_rule *rule) {
  const double least = o->first + rule->plateau * (o->best - o->first);
  int64_t updates = 0, before = 0;
  for (size_t i = 0; i < collapse; i++) {
    if (!isfinite(eval[i].eval_score)) continue;
    if (eval[i].eval_score >= least) updates += eval[i].step - before;
    before = eval[i].step;
  }
  return updates;
}

run_outcome outcome_of(const eval_record *eval, const double *best_until, size_t n, bool not_finite,
                       const outcome_rule *rule) {
  run_outcome o = {.first = NAN, .best = NAN, .last = NAN, .onset = -1, .recovered = -1};
  const low_part low = low_part_of(eval, best_until, n, rule);
  const size_t collapse = low.collapse;
  ends_of(&o, eval, best_until, n, collapse);
  o.plateau_updates = plateau_of(&o, eval, collapse, rule);
  if (not_finite) o.last = NAN;
  if (collapse < n) {
    o.onset = eval[collapse].step;
    if (low.recovered < n && !not_finite) o.recovered = eval[low.recovered].step;
    o.kind =
        o.plateau_updates >= rule->plateau_updates ? OUTCOME_LATE_COLLAPSE : OUTCOME_EARLY_COLLAPSE;
  } else if (not_finite) {
    o.onset = o.end;
    o.kind = OUTCOME_NOT_FINITE;
  } else if (o.best - o.first >= rule->least_gain) {
    o.kind = OUTCOME_SURVIVED;
    o.is_collapsing = low.at_end >= rule->low_at_end;
    if (o.is_collapsing) o.onset = eval[low.begin].step;
  } else {
    const size_t lost = loss_of_start(eval, n, rule);
    o.kind = OUTCOME_NEVER_LEARNED;
    o.lost_start = lost < n;
    if (lost < n) o.onset = eval[lost].step;
  }
  return o;
}

run_outcome outcome_of_run(const results_run *run, const outcome_rule *rule) {
  return outcome_of(run->evals, run->best_until, run->n_evals, results_run_is_not_finite(run),
                    rule);
}

/* --- levels --- */

static double mean_of_ring(const double ring[OUTCOME_LEVEL], size_t seen) {
  const size_t held = seen < OUTCOME_LEVEL ? seen : OUTCOME_LEVEL;
  double sum = 0;
  for (size_t k = 0; k < held; k++) sum += ring[k];
  return held > 0 ? sum / (double)held : NAN;
}

run_level run_level_of(const results_run *run) {
  double ring[OUTCOME_LEVEL] = {0}, first = NAN, best = NAN; /* ring: the newest evaluations */
  size_t seen = 0, below = 0;
  if (results_run_is_not_finite(run)) return (run_level){NAN, NAN, NAN};
  for (size_t i = 0; i < run->n_evals; i++) {
    const double score = run->evals[i].eval_score;
    if (!isfinite(score)) continue;
    if (seen == 0) first = score;
    below += score < first;
    ring[seen++ % OUTCOME_LEVEL] = score;
    if (seen >= OUTCOME_LEVEL) best = fmax(best, mean_of_ring(ring, seen));
  }
  const double last = mean_of_ring(ring, seen);
  return (run_level){.last = last,
                     .best_to_last = fmax(best, last) - last,
                     .below_start = seen > 1 ? (double)below / (double)(seen - 1) : NAN};
}

size_t runs_with_fewer(const results *r, size_t least) {
  size_t runs = 0;
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    size_t n = 0;
    for (size_t k = 0; k < run->n_evals; k++) n += isfinite(run->evals[k].eval_score) != 0;
    runs += run->status != RUN_FAILED && !results_run_is_not_finite(run) && n < least;
  }
  return runs;
}

/* --- the outcomes of a study by algorithm and setting --- */

const double stability_share[STABILITY_SHARES] = {0.1, 0.5};

static int by_learning_rate(const void *a, const void *b) {
  const double x = ((const dose_group *)a)->x, y = ((const dose_group *)b)->x;
  return (x > y) - (x < y);
}

static gl_status find_settings(stability *s, gl_error *err) {
  const results *r = s->from;
  s->rate_axis = results_axis(r, STABILITY_RATE);
  s->has_rates = s->rate_axis < r->axes.n;
  s->settings = ARENA_ARRAY(&s->memory, const char *, r->n_groups);
  s->setting = ARENA_ARRAY(&s->memory, size_t, r->n_groups);
  const char **titles = results_titles(&s->memory, r, s->rate_axis);
  gl_status status = arena_check(&s->memory, "the settings", err);
  for (size_t g = 0; g < r->n_groups && status == GL_OK; g++)
    s->setting[g] = text_list_add(s->settings, &s->n_settings, titles[g]);
  return status;
}

/* For each setting: the clock's median staleness, averaged over runs. */
static gl_status find_staleness(stability *s, gl_error *err) {
  const results *r = s->from;
  size_t *runs = ARENA_ARRAY(&s->memory, size_t, s->n_settings);
  s->staleness = ARENA_ARRAY(&s->memory, double, s->n_settings);
  gl_status status = arena_check(&s->memory, "the settings", err);
  for (size_t i = 0; i < r->n_runs && status == GL_OK; i++) {
    const size_t setting = s->setting[r->runs[i].group];
    if (r->runs[i].status == RUN_FAILED) continue;
    s->staleness[setting] += r->runs[i].clock.staleness_p50;
    runs[setting]++;
  }
  for (size_t k = 0; k < s->n_settings && status == GL_OK; k++)
    s->staleness[k] = runs[k] > 0 ? s->staleness[k] / (double)runs[k] : NAN;
  return status;
}

/* --- cells --- */

static void count_outcome(stability *s, stability_cell *c, size_t index) {
  const results *r = s->from;
  const results_run *run = &r->runs[index];
  if (run->status == RUN_FAILED) {
    c->failed++;
    return;
  }
  const run_outcome o = s->run[index] = outcome_of_run(run, &s->rule);
  c->runs++;
  c->count[o.kind]++;
  c->of_class[run_outcome_class(&o)]++;
  c->lost_start += (size_t)(o.lost_start != 0);
  c->collapses += (size_t)run_outcome_is_collapse(&o);
  if (!s->has_rates) return;
  const double rate = r->groups[run->group].value[s->rate_axis].number;
  if (!(rate > 0) || !isfinite(rate)) return;
  dose_group *d = dose_group_of(c->rate, &c->n_rates, log(rate));
  d->runs++;
  d->collapses += (size_t)run_outcome_is_collapse(&o);
}

size_t stability_times(const stability *s, const stability_cell *c, double *time,
                       uint8_t *collapsed) {
  const results *r = s->from;
  size_t n = 0;
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    if (run->status == RUN_FAILED || run->algorithm != c->algorithm ||
        s->setting[run->group] != c->setting)
      continue;
    const run_outcome *o = &s->run[i];
    collapsed[n] = (uint8_t)run_outcome_is_collapse(o);
    time[n] = (double)(collapsed[n] ? o->onset : o->end);
    n++;
  }
  return n;
}

/* Computes the survival curve of a cell and its median onset. */
static gl_status find_curve(stability *s, stability_cell *c, gl_error *err) {
  const size_t most = s->from->n_runs;
  arena work = {0};
  double *time = ARENA_ARRAY(&work, double, most);
  uint8_t *collapsed = ARENA_ARRAY(&work, uint8_t, most);
  survival_step *curve = ARENA_ARRAY(&work, survival_step, most);
  gl_status status = arena_check(&work, "onsets", err);
  const size_t n = status == GL_OK ? stability_times(s, c, time, collapsed) : 0;
  if (status == GL_OK) status = survival_curve(time, collapsed, n, curve, &c->n_steps, err);
  for (size_t i = 0; i < n; i++) c->watched = fmax(c->watched, time[i]);
  c->median_onset = INFINITY;
  for (size_t i = c->n_steps; i-- > 0;)
    if (curve[i].survival <= 0.5) c->median_onset = curve[i].time;
  c->curve = arena_copy(&s->memory, curve, c->n_steps, sizeof *curve);
  arena_fini(&work);
  return status == GL_OK ? arena_check(&s->memory, "onsets", err) : status;
}

/* Finds the learning rates at which 10 % and 50 % of the cell's runs collapse. */
static gl_status fit_rates(const stability *s, stability_cell *c, gl_error *err) {
  const results *r = s->from;
  arena work = {0};
  dose_run *run = ARENA_ARRAY(&work, dose_run, r->n_runs);
  size_t n = 0;
  gl_status status = arena_check(&work, "the rates", err);
  if (status == GL_OK) status = dose_fit_of(c->rate, c->n_rates, &c->fit, err);
  for (size_t i = 0; i < r->n_runs && status == GL_OK && s->has_rates; i++) {
    const results_run *of = &r->runs[i];
    const double rate = r->groups[of->group].value[s->rate_axis].number;
    if (of->status == RUN_FAILED || of->algorithm != c->algorithm ||
        s->setting[of->group] != c->setting || !(rate > 0) || !isfinite(rate))
      continue;
    run[n++] = (dose_run){log(rate), of->seed, run_outcome_is_collapse(&s->run[i])};
  }
  for (size_t i = 0; i < STABILITY_SHARES && status == GL_OK; i++) {
    interval x = {NAN, -INFINITY, INFINITY};
    if (n > 0) status = dose_at_fraction(run, n, stability_share[i], &x, err);
    c->collapse_at[i] = (interval){exp(x.value), exp(x.low), exp(x.high)};
  }
  arena_fini(&work);
  return status;
}

/* Computes the interquartile mean of the last scores at each learning rate of the cell. */
static gl_status find_scores(stability *s, stability_cell *c, gl_error *err) {
  const results *r = s->from;
  arena work = {0};
  double *last = ARENA_ARRAY(&work, double, r->n_runs);
  gl_status status = arena_check(&work, "the scores", err);
  for (size_t d = 0; d < c->n_rates && status == GL_OK; d++) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_runs; i++) {
      const results_run *run = &r->runs[i];
      if (run->status == RUN_FAILED || run->algorithm != c->algorithm ||
          s->setting[run->group] != c->setting ||
          log(r->groups[run->group].value[s->rate_axis].number) != c->rate[d].x)
        continue;
      last[n++] = s->run[i].last;
    }
    const uint64_t cell = (uint64_t)(c - s->cells);
    const rng_stream stream =
        rng_stream_at(1, RNG_BOOTSTRAP, UINT64_C(11) << 60 | cell << 16 | (uint64_t)d);
    status = iqm_bootstrap(last, &n, 1, stream, &c->last[d], err);
    if (!isnan(c->last[d].value) &&
        (c->best_rate == c->n_rates || c->last[d].value > c->last[c->best_rate].value))
      c->best_rate = d;
  }
  arena_fini(&work);
  return status;
}

static gl_status make_cells(stability *s, gl_error *err) {
  const results *r = s->from;
  arena *m = &s->memory;
  const size_t n = s->n_settings * r->n_algorithms;
  s->run = ARENA_ARRAY(m, run_outcome, r->n_runs);
  s->cells = ARENA_ARRAY(m, stability_cell, n);
  for (size_t i = 0; i < n && !m->failed; i++)
    s->cells[i] = (stability_cell){.setting = i / r->n_algorithms,
                                   .algorithm = i % r->n_algorithms,
                                   .rate = ARENA_ARRAY(m, dose_group, r->n_groups),
                                   .last = ARENA_ARRAY(m, interval, r->n_groups)};
  gl_status status = arena_check(m, "the outcomes", err);
  for (size_t i = 0; i < r->n_runs && status == GL_OK; i++)
    count_outcome(
        s, &s->cells[s->setting[r->runs[i].group] * r->n_algorithms + r->runs[i].algorithm], i);
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    stability_cell *c = &s->cells[i];
    c->collapse_rate = fraction_interval(c->collapses, c->runs);
    c->best_rate = c->n_rates;
    qsort(c->rate, c->n_rates, sizeof *c->rate, by_learning_rate);
    status = find_curve(s, c, err);
  }
  return status;
}

gl_status stability_fit(stability *s, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < s->n_settings * s->n_algorithms && status == GL_OK; i++) {
    status = fit_rates(s, &s->cells[i], err);
    if (status == GL_OK) status = find_scores(s, &s->cells[i], err);
  }
  return status;
}

gl_status stability_init(stability *s, const results *from, const outcome_rule *rule,
                         gl_error *err) {
  *s = (stability){.from = from,
                   .study = from->study,
                   .algorithms = from->algorithms,
                   .n_algorithms = from->n_algorithms,
                   .rule = *rule};
  size_t evaluated = 0, failed = 0;
  for (size_t i = 0; i < from->n_runs; i++) {
    evaluated += from->runs[i].n_evals > 0;
    failed += from->runs[i].status == RUN_FAILED;
  }
  if (evaluated == 0 && failed > 0 && failed == from->n_runs)
    return gl_fail(err, GL_EINPUT, "no run of %s has finished: all %zu failed", from->study,
                   failed);
  if (evaluated == 0)
    return gl_fail(err, GL_EINPUT,
                   "%s has no evaluations, by which runs are judged; set eval_every in its recipe",
                   from->study);
  if (from->lower_is_better)
    return gl_fail(err, GL_EINPUT, "%s: outcomes are those of scores that are better when higher",
                   from->study);
  gl_status status = find_settings(s, err);
  if (status == GL_OK) status = find_staleness(s, err);
  return status == GL_OK ? make_cells(s, err) : status;
}

void stability_fini(stability *s) {
  arena_fini(&s->memory);
  stored_fini(&s->kept);
  *s = (stability){0};
}

/* --- the table --- */

enum { OF_RATES = 6, OF_FATES = 14 };
static const table_column stability_columns[] = {
    {"algorithm", TABLE_TEXT, .head = "algorithm"},
    {"setting", TABLE_TEXT, .head = "setting"},
    TABLE_KEY("place", TABLE_INTEGER),
    TABLE_KEY("staleness", TABLE_REAL),
    {"runs", TABLE_INTEGER, .head = "runs"},
    TABLE_KEY("failed", TABLE_INTEGER),
    TABLE_KEY("outcomes/not finite", TABLE_INTEGER),
    TABLE_KEY("outcomes/never learned", TABLE_INTEGER),
    TABLE_KEY("outcomes/early fall", TABLE_INTEGER),
    TABLE_KEY("outcomes/late fall", TABLE_INTEGER),
    TABLE_KEY("outcomes/survived", TABLE_INTEGER),
    TABLE_KEY("lost_start", TABLE_INTEGER),
    TABLE_KEY("dips", TABLE_INTEGER),
    TABLE_KEY("falling", TABLE_INTEGER),
    /* one column for each class, in the order of the enumeration */
    {.type = TABLE_INTEGER, .head = "not finite"},
    {.type = TABLE_INTEGER, .head = "lost start"},
    {.type = TABLE_INTEGER, .head = "never learned"},
    {.type = TABLE_INTEGER, .head = "dip"},
    {.type = TABLE_INTEGER, .head = "early fall"},
    {.type = TABLE_INTEGER, .head = "late fall"},
    {.type = TABLE_INTEGER, .head = "falling at end"},
    {.type = TABLE_INTEGER, .head = "stable"},
    {"fallen", TABLE_INTERVAL, .head = "collapsed", .format = "%.2f", .order = 1},
    {"median_onset", TABLE_REAL, .head = "median onset", .format = "%.0f", .order = 1},
    TABLE_KEY("curve", TABLE_TABLE),
    TABLE_KEY("watched", TABLE_REAL),
    /* the columns from here on are used if learning rates are swept */
    TABLE_KEY("doses", TABLE_TABLE),
    TABLE_KEY("best_dose", TABLE_REAL),
    {"best_last", TABLE_INTERVAL, .head = "best last, at lr", .order = 3},
    TABLE_KEY("why", TABLE_TEXT),
    {"falls_10", TABLE_INTERVAL, .head = "lr: 10 %", .order = 2},
    {"falls_50", TABLE_INTERVAL, .head = "lr: 50 %", .order = 2}};

static const table_column curve_columns[] = {TABLE_KEY("update", TABLE_REAL),
                                             TABLE_KEY("share", TABLE_REAL),
                                             TABLE_KEY("error", TABLE_REAL)};

static const table_column rate_columns[] = {
    TABLE_KEY("dose", TABLE_REAL), TABLE_KEY("runs", TABLE_INTEGER),
    TABLE_KEY("falls", TABLE_INTEGER), TABLE_KEY("last", TABLE_INTERVAL)};

/* Writes a learning rate; printed text shows open ends as inequalities. */
static void put_rate(table *t, const dose_fit *fit, interval v) {
  char low[32] = "0", high[32] = "∞";
  interval_cell(t, v);
  if (v.low > 0) snprintf(low, sizeof low, "%.3g", v.low);
  if (isfinite(v.high)) snprintf(high, sizeof high, "%.3g", v.high);
  if (fit->why != NULL)
    table_shown(t, "– (%s)", fit->why);
  else if (isnan(v.value))
    table_shown(t, "outside the rates run [%s, %s]", low, high);
  else
    table_shown(t, "%.3g [%s, %s]", v.value, low, high);
}

/* The learning rate of a logarithm, rounded to the digits that are exact. */
static double learning_rate_of(double x) {
  char text[32];
  snprintf(text, sizeof text, "%.12g", exp(x));
  return strtod(text, NULL);
}

static void put_rates(table *t, const stability_cell *c) {
  table *list = table_rows(t, rate_columns, sizeof rate_columns / sizeof *rate_columns);
  for (size_t i = 0; i < c->n_rates; i++) {
    table_row(list);
    table_real(list, learning_rate_of(c->rate[i].x));
    table_count(list, c->rate[i].runs);
    table_count(list, c->rate[i].collapses);
    interval_cell(list, c->last[i]);
  }
  if (c->best_rate < c->n_rates) {
    /* highest last score over the learning rates, selected on the reported runs */
    const interval v = c->last[c->best_rate];
    table_real(t, learning_rate_of(c->rate[c->best_rate].x));
    interval_cell(t, v);
    table_shown(t, "%.3f [%.3f, %.3f], %.3g", v.value, v.low, v.high, exp(c->rate[c->best_rate].x));
  } else {
    table_missing(t);
    table_missing(t);
  }
  table_text(t, c->fit.why);
  for (size_t k = 0; k < STABILITY_SHARES; k++) put_rate(t, &c->fit, c->collapse_at[k]);
}

/* Writes the survival curve for its figure. */
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

static void put_stability_cell(table *t, const stability *s, const stability_cell *c) {
  table_row(t);
  if (c->runs == 0) table_hide_row(t);
  table_text(t, s->algorithms[c->algorithm]);
  table_text(t, s->settings[c->setting]);
  if (*s->settings[c->setting] == '\0') table_shown(t, "–");
  table_integer(t, c - s->cells);
  table_real(t, s->staleness[c->setting]);
  table_count(t, c->runs);
  table_count(t, c->failed);
  for (outcome o = 0; o < OUTCOME_COUNT; o++) table_count(t, c->count[o]);
  table_count(t, c->lost_start);
  table_count(t, c->of_class[RUN_CLASS_DIP]);
  table_count(t, c->of_class[RUN_CLASS_COLLAPSING]);
  for (run_class f = 0; f < RUN_CLASS_COUNT; f++) table_count(t, c->of_class[f]);
  interval_cell(t, c->collapse_rate);
  table_real(t, c->median_onset);
  if (!isfinite(c->median_onset)) table_shown(t, "–");
  put_curve(t, c);
  if (s->has_rates) put_rates(t, c);
}

static bool by_halves(const stability *s) {
  for (size_t i = 0; s->from != NULL && i < s->from->n_runs; i++)
    if (s->from->runs[i].best_until != NULL) return true;
  return false;
}

static const table_column run_columns[] = {
    {"algorithm", TABLE_TEXT, .head = "algorithm"},
    {"setting", TABLE_TEXT, .head = "setting"},
    {"lr", TABLE_REAL, .head = "lr"},
    {"seed", TABLE_INTEGER, .head = "seed"},
    {"outcome", TABLE_TEXT, .head = "outcome"},
    {"onset", TABLE_REAL, .head = "from update", .format = "%.0f"},
    {"recovered", TABLE_REAL, .head = "recovered", .format = "%.0f"},
    {"plateau_updates", TABLE_INTEGER, .head = "updates on plateau"},
    {"first", TABLE_REAL, .head = "first"},
    {"best", TABLE_REAL, .head = "best"},
    {"best_step", TABLE_INTEGER, .head = "at"},
    {"last", TABLE_REAL, .head = "last"}};

/* Writes each run that did not fail, with its outcome and the updates of its events. */
static void put_runs(table *to, const stability *s) {
  table *t =
      table_rows(table_field(to, "runs"), run_columns, sizeof run_columns / sizeof *run_columns);
  table_title(t,
              "%s: outcome of each run, with the update of its first low evaluation and of the "
              "first one after it that is not low.",
              s->study);
  table_gap(t);
  for (size_t i = 0; i < s->from->n_runs; i++) {
    const results_run *run = &s->from->runs[i];
    const run_outcome *o = &s->run[i];
    if (run->status == RUN_FAILED) continue;
    table_row(t);
    table_text(t, s->algorithms[run->algorithm]);
    table_text(t, s->settings[s->setting[run->group]]);
    table_real(t, run->lr);
    table_integer(t, (int64_t)run->seed);
    table_text(t, run_class_name(run_outcome_class(o)));
    table_real(t, o->onset >= 0 ? (double)o->onset : NAN);
    table_real(t, o->recovered >= 0 ? (double)o->recovered : NAN);
    table_integer(t, o->plateau_updates);
    table_real(t, o->first);
    table_real(t, o->best);
    table_integer(t, o->best_step);
    table_real(t, o->last);
  }
}

/* Hides the columns of classes that no run has. */
static void hide_empty_classes(table *t, const stability *s) {
  for (run_class f = 0; f < RUN_CLASS_COUNT; f++) {
    size_t runs = 0;
    for (size_t i = 0; i < s->n_settings * s->n_algorithms; i++) runs += s->cells[i].of_class[f];
    if (runs == 0 && f != RUN_CLASS_STABLE) table_hide_head(t, OF_FATES + (size_t)f);
  }
}

/* Numbers of collapsed runs: all, those that lost their initial score, and those that collapsed at
 * an update not later than the median staleness of their setting. Batches that early are fresher
 * than the median, because the pipeline is still filling. */
typedef struct collapse_counts {
  size_t all, lost_start, early; /* early: before the staleness reached its median */
} collapse_counts;

static collapse_counts count_collapses(const stability *s) {
  collapse_counts n = {0};
  for (size_t i = 0; i < s->from->n_runs; i++) {
    const results_run *run = &s->from->runs[i];
    const run_outcome *o = &s->run[i];
    if (run->status == RUN_FAILED || !run_outcome_is_collapse(o)) continue;
    n.all++;
    n.lost_start += o->lost_start;
    n.early += (double)o->onset <= s->staleness[s->setting[run->group]];
  }
  return n;
}

void stability_report(table *to, const stability *s, bool with_runs) {
  const size_t n = sizeof stability_columns / sizeof *stability_columns;
  size_t failed = 0;
  const collapse_counts collapses = count_collapses(s);
  table_text(table_field(to, "study"), s->study);
  table *counts = table_object(table_field(to, "collapses"));
  table_put(counts, "all %zu, lost_start %zu, before_full_staleness %zu", collapses.all,
            collapses.lost_start, collapses.early);
  table *t = table_rows(table_field(to, "cells"), stability_columns,
                        s->has_rates ? n : n - (size_t)OF_RATES);
  for (size_t i = 0; i < s->n_settings * s->n_algorithms; i++) {
    failed += s->cells[i].failed;
    if (s->cells[i].runs + s->cells[i].failed > 0) put_stability_cell(t, s, &s->cells[i]);
  }
  hide_empty_classes(t, s);
  char few[160] = "";
  const size_t least = s->rule.in_a_row + 1, runs = runs_with_fewer(s->from, least);
  if (runs > 0)
    snprintf(few, sizeof few,
             " Runs with fewer than %zu evaluations, in which no fall can be found: %zu.", least,
             runs);
  table_title(
      t,
      "%s: outcomes of runs. Fall: %zu evaluations in a row below %.0f %% of the gain, which "
      "is at least %g; late: after %lld updates within the last %.0f %% of it; dip: a fall "
      "and a recovery. Falling at end: the last %zu or more are that low, but not %zu. Lost "
      "start: as low without a gain. Collapsed: early and late falls, dips, lost starts and not "
      "finite "
      "[95 %% Clopper-Pearson]. Of %zu collapses %zu are lost starts, and %zu began before as "
      "many updates as their setting's median staleness. Failed runs, left out: %zu.%s%s",
      s->study, s->rule.in_a_row, 100 * s->rule.kept, s->rule.least_gain,
      (long long)s->rule.plateau_updates, 100 * (1 - s->rule.plateau), s->rule.low_at_end,
      s->rule.in_a_row, collapses.all, collapses.lost_start, collapses.early, failed, few,
      by_halves(s) ? " The best until then is chosen on one half of the problems and "
                     "scored on the other."
                   : "");
  if (with_runs) put_runs(to, s);
}

/* --- the same from stored results --- */

/* Maximum length of keys; stored results have the same limit. */
enum { KEY_SIZE = 512 };

/* A cell in the file: its keys begin with `prefix`, such as "cells[gepo,weight delay 3 s,4]". */
typedef struct stored_cell {
  char prefix[KEY_SIZE];
  double place; /* order in the study */
} stored_cell;

static const char *stored_text(const stability *s, const stored_cell *c, const char *member) {
  char key[2 * KEY_SIZE];
  snprintf(key, sizeof key, "%s.%s", c->prefix, member);
  return stored_value(&s->kept, key);
}

static double stored_number(const stability *s, const stored_cell *c, const char *member,
                            double otherwise) {
  const char *text = stored_text(s, c, member);
  double number;
  return text != NULL && csv_number(text, &number) ? number : otherwise;
}

static size_t stored_count(const stability *s, const stored_cell *c, const char *member) {
  const double number = stored_number(s, c, member, 0);
  return number >= 0 && number < 1e15 ? (size_t)number : 0;
}

/* Reads a stored interval; a missing end becomes `open`. */
static interval stored_interval(const stability *s, const stored_cell *c, const char *member,
                                double open) {
  char key[KEY_SIZE];
  interval v;
  snprintf(key, sizeof key, "%.400s.value", member);
  v.value = stored_number(s, c, key, NAN);
  snprintf(key, sizeof key, "%.400s.low", member);
  v.low = stored_number(s, c, key, NAN);
  snprintf(key, sizeof key, "%.400s.high", member);
  v.high = stored_number(s, c, key, open);
  return v;
}

/* --- listing the cells --- */

static int by_place(const void *a, const void *b) {
  const double x = ((const stored_cell *)a)->place, y = ((const stored_cell *)b)->place;
  return (x > y) - (x < y);
}

/* Length of the prefix of a key "cells[…].algorithm"; 0 for all other keys. */
static size_t prefix_of(const char *key) {
  static const char start[] = "cells[", end[] = "].algorithm";
  const size_t n = strlen(key), tail = sizeof end - 1;
  if (strncmp(key, start, sizeof start - 1) != 0 || n < sizeof start - 1 + tail) return 0;
  return strcmp(key + n - tail, end) == 0 && n - tail + 1 < KEY_SIZE ? n - tail + 1 : 0;
}

static gl_status find_cells(stability *s, stored_cell **out, size_t *n, gl_error *err) {
  *n = 0;
  *out = ARENA_ARRAY(&s->memory, stored_cell, s->kept.n);
  if (*out == NULL) return gl_fail_memory(err, "stored outcomes");
  for (size_t i = 0; i < s->kept.n; i++) {
    const size_t length = prefix_of(s->kept.entry[i].key);
    if (length == 0) continue;
    stored_cell *c = &(*out)[*n];
    memcpy(c->prefix, s->kept.entry[i].key, length);
    c->place = stored_number(s, c, "place", (double)*n);
    if (stored_text(s, c, "setting") != NULL && stored_text(s, c, "watched") != NULL) ++*n;
  }
  if (*n > 0) {
    qsort(*out, *n, sizeof **out, by_place);
    return GL_OK;
  }
  return gl_fail(
      err, GL_EINPUT,
      "%s is no result of which a figure is drawn: those are of `gepolab analyze --table outcomes "
      "STUDY.db --json`, kept with `gepolab results keep`; a study's evaluations and "
      "means are drawn from tables (gepolab study export)",
      s->kept.name);
}

/* --- cells --- */

/* Writes the key of a member of a list's item. Returns key. */
static const char *item_key(char key[KEY_SIZE], const char *list, size_t i, const char *member) {
  snprintf(key, KEY_SIZE, "%.32s[%zu].%.32s", list, i, member);
  return key;
}

/* Number of items in a list of the cell that have that member: curve[0].update and so on. */
static size_t items_of(const stability *s, const stored_cell *c, const char *list,
                       const char *member) {
  char key[KEY_SIZE];
  size_t n = 0;
  while (stored_text(s, c, item_key(key, list, n, member)) != NULL) n++;
  return n;
}

static void read_curve(stability *s, const stored_cell *from, stability_cell *to) {
  const size_t n = items_of(s, from, "curve", "update");
  char key[KEY_SIZE];
  to->curve = ARENA_ARRAY(&s->memory, survival_step, n);
  for (size_t i = 0; i < n && !s->memory.failed; i++)
    to->curve[i] =
        (survival_step){.time = stored_number(s, from, item_key(key, "curve", i, "update"), NAN),
                        .survival = stored_number(s, from, item_key(key, "curve", i, "share"), NAN),
                        .error = stored_number(s, from, item_key(key, "curve", i, "error"), NAN)};
  to->n_steps = n;
}

static void read_rates(stability *s, const stored_cell *from, stability_cell *to) {
  const size_t n = items_of(s, from, "doses", "dose");
  char key[KEY_SIZE];
  to->rate = ARENA_ARRAY(&s->memory, dose_group, n);
  to->last = ARENA_ARRAY(&s->memory, interval, n);
  to->n_rates = to->best_rate = n;
  const double best = log(stored_number(s, from, "best_dose", NAN));
  for (size_t i = 0; i < n && !s->memory.failed; i++) {
    to->rate[i].x = log(stored_number(s, from, item_key(key, "doses", i, "dose"), NAN));
    to->rate[i].runs = stored_count(s, from, item_key(key, "doses", i, "runs"));
    to->rate[i].collapses = stored_count(s, from, item_key(key, "doses", i, "falls"));
    to->last[i] = stored_interval(s, from, item_key(key, "doses", i, "last"), NAN);
    if (to->rate[i].x == best) to->best_rate = i;
  }
}

static void read_stored_cell(stability *s, const stored_cell *from, stability_cell *to) {
  to->runs = stored_count(s, from, "runs");
  to->failed = stored_count(s, from, "failed");
  to->lost_start = stored_count(s, from, "lost_start");
  for (outcome o = 0; o < OUTCOME_COUNT; o++) {
    char key[64];
    snprintf(key, sizeof key, "outcomes.%s", outcome_name(o));
    to->count[o] = stored_count(s, from, key);
  }
  to->of_class[RUN_CLASS_DIP] = stored_count(s, from, "dips");
  to->of_class[RUN_CLASS_COLLAPSING] = stored_count(s, from, "falling");
  to->collapses = to->lost_start + to->count[OUTCOME_EARLY_COLLAPSE] +
                  to->count[OUTCOME_LATE_COLLAPSE] + to->count[OUTCOME_NOT_FINITE];
  to->collapse_rate = stored_interval(s, from, "fallen", NAN);
  to->watched = stored_number(s, from, "watched", 0);
  to->median_onset = stored_number(s, from, "median_onset", INFINITY);
  to->fit = (dose_fit){.a = NAN, .b = NAN, .log_likelihood = NAN};
  to->fit.runs = to->runs, to->fit.collapses = to->collapses;
  to->fit.why = stored_text(s, from, "why");
  to->collapse_at[0] = stored_interval(s, from, "falls_10", INFINITY);
  to->collapse_at[1] = stored_interval(s, from, "falls_50", INFINITY);
  read_curve(s, from, to);
  read_rates(s, from, to);
}

/* Fills the grid of algorithms and settings; missing cells have no runs. */
static gl_status fill_grid(stability *s, const stored_cell *cell, size_t n, gl_error *err) {
  arena *m = &s->memory;
  s->algorithms = ARENA_ARRAY(m, const char *, n);
  s->settings = ARENA_ARRAY(m, const char *, n);
  s->staleness = ARENA_ARRAY(m, double, n);
  for (size_t i = 0; i < n && !m->failed; i++) {
    text_list_add(s->algorithms, &s->n_algorithms, stored_text(s, &cell[i], "algorithm"));
    text_list_add(s->settings, &s->n_settings, stored_text(s, &cell[i], "setting"));
  }
  s->cells = ARENA_GRID(m, stability_cell, s->n_settings, s->n_algorithms);
  for (size_t i = 0; i < s->n_settings * s->n_algorithms && !m->failed; i++)
    s->cells[i] = (stability_cell){
        .setting = i / s->n_algorithms, .algorithm = i % s->n_algorithms, .median_onset = INFINITY};
  for (size_t i = 0; i < n && !m->failed; i++) {
    const size_t k =
        text_list_find(s->settings, s->n_settings, stored_text(s, &cell[i], "setting"));
    const size_t a =
        text_list_find(s->algorithms, s->n_algorithms, stored_text(s, &cell[i], "algorithm"));
    stability_cell *to = &s->cells[k * s->n_algorithms + a];
    s->staleness[k] = stored_number(s, &cell[i], "staleness", NAN);
    if (to->curve != NULL)
      return gl_fail(err, GL_EINPUT, "%s has %s twice", s->kept.name, cell[i].prefix);
    read_stored_cell(s, &cell[i], to);
  }
  return arena_check(m, "stored outcomes", err);
}

static bool any_rates(const stability *s) {
  for (size_t i = 0; i < s->n_settings * s->n_algorithms; i++)
    if (s->cells[i].n_rates > 0) return true;
  return false;
}

gl_status stability_of_stored(stability *s, stored *kept, gl_error *err) {
  stored_cell *cell = NULL;
  size_t n = 0;
  *s = (stability){.kept = *kept, .rule = outcome_rule_default()};
  *kept = (stored){0};
  s->study = stored_value(&s->kept, "study");
  if (s->study == NULL) s->study = s->kept.name;
  gl_status status = find_cells(s, &cell, &n, err);
  if (status == GL_OK) status = fill_grid(s, cell, n, err);
  s->has_rates = status == GL_OK && any_rates(s);
  return status;
}
