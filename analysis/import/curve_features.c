/* Computes features of curves: first for each run, then for all runs of one name together. */
#include "analysis/import/report.h"

#include "analysis/statistics.h"
#include "core/base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 20 };

features_rule features_rule_default(void) {
  return (features_rule){.ends = 100,
                         .until = INFINITY,
                         .growth = 3,
                         .trend = 0.5,
                         .jump = 5,
                         .outcome = outcome_rule_default()};
}

/* --- one series --- */

/* A series without NaN values. room: scratch for sorting parts of it. */
typedef struct course {
  double *step, *value, *room; /* [n] */
  size_t n;
  arena memory;
} course;

static gl_status course_init(course *c, const double *step, const double *value, size_t n,
                             gl_error *err) {
  *c = (course){0};
  c->step = ARENA_ARRAY(&c->memory, double, n);
  c->value = ARENA_ARRAY(&c->memory, double, n);
  c->room = ARENA_ARRAY(&c->memory, double, n);
  gl_status status = arena_check(&c->memory, "a series", err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i < n; i++) {
    if (isnan(value[i])) continue;
    c->step[c->n] = step[i];
    c->value[c->n++] = value[i];
  }
  return GL_OK;
}

/* Copies the values at updates from `from` to `to`, both included, to room[] and sorts them.
 * Returns how many. */
static size_t sort_between(course *c, double from, double to) {
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++)
    if (c->step[i] >= from && c->step[i] <= to) c->room[n++] = c->value[i];
  return sample_sort(c->room, n);
}

static double median_between(course *c, double from, double to) {
  const size_t n = sort_between(c, from, to);
  return n > 0 ? sample_quantile(c->room, n, 0.5) : NAN;
}

static double largest_between(course *c, double from, double to) {
  const size_t n = sort_between(c, from, to);
  return n > 0 ? c->room[n - 1] : NAN;
}

/* NaN if the divisor is not positive. */
static double ratio_or_nan(double value, double unit) {
  return unit > 0 ? value / unit : NAN;
}

/* Computes features_spread.trend between the updates first and last. */
static gl_status trend_of(course *c, double first, double last, double *trend, gl_error *err) {
  double order[PARTS], median[PARTS];
  const double part = (last - first) / PARTS;
  correlation found;
  for (int k = 0; k < PARTS; k++) {
    /* an update on a boundary belongs to both parts */
    order[k] = k;
    median[k] = median_between(c, first + k * part, first + (k + 1) * part);
  }
  gl_status status = spearman(order, median, PARTS,
                              rng_stream_at(1, RNG_BOOTSTRAP, UINT64_C(14) << 60), &found, err);
  if (status == GL_OK) *trend = found.fisher.value;
  return status;
}

gl_status features_of_spread(features_spread *out, const double *step, const double *value,
                             size_t n, double onset, const features_rule *rule, gl_error *err) {
  course c;
  *out = (features_spread){0, NAN, NAN, NAN, NAN};
  gl_status status = course_init(&c, step, value, n, err);
  if (status == GL_OK && c.n > 0) {
    /* exclude the first low evaluation of the collapse */
    const double end = fmin(rule->until, isnan(onset) ? INFINITY : onset - 1);
    const double first = c.step[0], stop = fmin(end, c.step[c.n - 1]);
    const size_t head = sort_between(&c, first, first + rule->ends - 1),
                 tail = sort_between(&c, stop - rule->ends + 1, stop);
    out->n = sort_between(&c, first, stop);
    if (head > 1 && tail > 1 && stop - first >= 2 * rule->ends - 1) {
      out->growth = ratio_or_nan(median_between(&c, stop - rule->ends + 1, stop),
                                 median_between(&c, first, first + rule->ends - 1));
      out->peak = ratio_or_nan(largest_between(&c, first, stop), median_between(&c, first, stop));
      status = trend_of(&c, first, stop, &out->trend, err);
    }
    if (!isnan(onset))
      out->jump = ratio_or_nan(largest_between(&c, onset - rule->ends, onset + rule->ends),
                               median_between(&c, first, onset - rule->ends - 1));
  }
  arena_fini(&c.memory);
  return status;
}

bool features_is_slow(const features_spread *s, const features_rule *rule) {
  return s->growth >= rule->growth && s->trend >= rule->trend;
}

/* --- runs of one name --- */

/* One number per run. */
typedef struct numbers {
  double *value; /* [n] */
  size_t n;
} numbers;

enum { GAP, ON_PLATEAU, ONSET, SCORE_NUMBERS };
enum { GROWTH, TREND, PEAK, JUMP, SPREAD_NUMBERS };
enum { MOST_NUMBERS = SPREAD_NUMBERS };

typedef struct group {
  const char *label, *run, *metric; /* metric: NULL for scores */
  size_t runs, learned, plateau, slow, jumps, outcome[OUTCOME_COUNT];
  numbers of[MOST_NUMBERS];
} group;

typedef struct groups {
  group *list;
  size_t n;
  const features_rule *rule;
  arena memory; /* memory of texts and scratch */
  gl_error *err;
} groups;

static void groups_fini(groups *all) {
  for (size_t i = 0; i < all->n; i++)
    for (size_t k = 0; k < MOST_NUMBERS; k++) free(all->list[i].of[k].value);
  free(all->list);
  arena_fini(&all->memory);
}

static bool is_metric(const group *g, const char *quantity_name) {
  if (g->metric == NULL || quantity_name == NULL) return g->metric == quantity_name;
  return strcmp(g->metric, quantity_name) == 0;
}

/* Finds the group of the series' label and name for that metric (NULL: scores), or adds it. */
static gl_status find_group(groups *all, const gathered_series *s, const char *quantity_name,
                            group **out) {
  for (size_t i = 0; i < all->n; i++) {
    *out = &all->list[i];
    if (strcmp((*out)->label, s->label) == 0 && strcmp((*out)->run, s->name) == 0 &&
        is_metric(*out, quantity_name))
      return GL_OK;
  }
  *out = ARRAY_ADD(all->list, all->n);
  if (*out == NULL) return gl_fail_memory(all->err, "runs");
  **out = (group){.label = arena_text(&all->memory, s->label),
                  .run = arena_text(&all->memory, s->name),
                  .metric = arena_text(&all->memory, quantity_name)};
  return arena_check(&all->memory, "runs", all->err);
}

static gl_status add_feature_number(groups *all, group *g, size_t which, double value) {
  double *added = ARRAY_ADD(g->of[which].value, g->of[which].n);
  if (added == NULL) return gl_fail_memory(all->err, "runs");
  *added = value;
  return GL_OK;
}

/* Adds a run's outcome, gap, plateau and onset to the group of its label and name. */
static gl_status add_score_features(groups *all, const gathered_series *s, const run_outcome *o) {
  group *g;
  gl_status status = find_group(all, s, NULL, &g);
  if (status != GL_OK) return status;
  const bool learned = o->best - o->first >= all->rule->outcome.least_gain;
  g->runs++;
  g->outcome[o->kind]++;
  if (learned) g->learned++;
  if (learned && o->plateau_updates >= all->rule->outcome.plateau_updates) g->plateau++;
  status = add_feature_number(all, g, GAP, o->best - o->last);
  if (status == GL_OK) status = add_feature_number(all, g, ON_PLATEAU, (double)o->plateau_updates);
  if (status == GL_OK)
    status = add_feature_number(all, g, ONSET, o->onset >= 0 ? (double)o->onset : NAN);
  return status;
}

/* Adds the growth of a run's metric to the group of its label, name and metric. */
static gl_status add_feature_spread(groups *all, const gathered_series *s, metric m, double onset) {
  features_spread found;
  group *g;
  gl_status status =
      features_of_spread(&found, s->step, s->value, s->n, onset, all->rule, all->err);
  if (status != GL_OK || found.n == 0) return status;
  status = find_group(all, s, metric_about(m)->name, &g);
  if (status != GL_OK) return status;
  g->runs++;
  if (features_is_slow(&found, all->rule)) g->slow++;
  if (found.jump >= all->rule->jump) g->jumps++;
  const double of[SPREAD_NUMBERS] = {found.growth, found.trend, found.peak, found.jump};
  for (size_t k = 0; k < SPREAD_NUMBERS && status == GL_OK; k++)
    status = add_feature_number(all, g, k, of[k]);
  return status;
}

/* --- runs of files --- */

/* Metrics that papers publish for such runs and that studies have. */
static const metric asked[] = {METRIC_GRAD_NORM, METRIC_IW_VARIANCE_GEPO, METRIC_IW_VARIANCE_PQ,
                               METRIC_KL_K3_SEQ, METRIC_CPPO_KL};

static gl_status add_study_features(groups *all, const gathered_study *s, const results_run *run) {
  const char *title = s->from->groups[run->group].title;
  const char *algorithm = s->algorithms[run->algorithm];
  arena work = {0};
  char *name = ARENA_ARRAY(&work, char, strlen(algorithm) + strlen(title) + 3);
  gathered_series shown = {.label = s->label,
                           .name = name,
                           .step = ARENA_ARRAY(&work, double, run->n_steps),
                           .value = ARENA_ARRAY(&work, double, run->n_steps),
                           .n = run->n_steps};
  gl_status status = arena_check(&work, "a run of a study", all->err);
  if (status == GL_OK) {
    const run_outcome o = outcome_of_run(run, &all->rule->outcome);
    const double onset = run_outcome_is_collapse(&o) ? (double)o.onset : NAN;
    sprintf(name, "%s%s%s", algorithm, *title != '\0' ? ", " : "", title);
    if (run->n_evals > 0) status = add_score_features(all, &shown, &o);
    for (size_t k = 0; k < shown.n; k++) shown.step[k] = (double)run->steps[k].step;
    for (size_t m = 0; m < sizeof asked / sizeof *asked && status == GL_OK; m++) {
      for (size_t k = 0; k < shown.n; k++) shown.value[k] = run->steps[k].metric[asked[m]];
      status = add_feature_spread(all, &shown, asked[m], onset);
    }
  }
  arena_fini(&work);
  return status;
}

static gl_status outcome_of_series(const gathered_series *s, const outcome_rule *rule,
                                   run_outcome *out, gl_error *err) {
  arena work = {0};
  eval_record *eval = ARENA_ARRAY(&work, eval_record, s->n);
  gl_status status = arena_check(&work, "evaluations", err);
  for (size_t i = 0; i < s->n && status == GL_OK; i++)
    eval[i] = (eval_record){.step = (int64_t)s->step[i], .eval_score = s->value[i]};
  bool at_end;
  gathered_nan(s, &at_end);
  if (status == GL_OK) *out = outcome_of(eval, NULL, s->n, at_end, rule);
  arena_fini(&work);
  return status;
}

/* Outcomes need a score in [0, 1] for which higher is better, because the rule is a gain of 0.1. */
static bool is_judged(const gathered_series *s) {
  return s->what.is_score && s->what.better == METRIC_HIGHER_IS_BETTER;
}

/* Onset of the collapse according to the score of the same run, in any of the files; NaN: no
 * collapse. */
static gl_status onset_of(groups *all, const gathered *g, const gathered_series *of,
                          double *onset) {
  gl_status status = GL_OK;
  *onset = NAN;
  for (size_t i = 0; i < g->n_series && status == GL_OK; i++) {
    const gathered_series *s = &g->series[i];
    run_outcome o;
    if (!is_judged(s) || strcmp(s->name, of->name) != 0 || s->seed != of->seed) continue;
    status = outcome_of_series(s, &all->rule->outcome, &o, all->err);
    if (status == GL_OK && run_outcome_is_collapse(&o)) *onset = (double)o.onset;
  }
  return status;
}

static gl_status add_series_features(groups *all, const gathered *g, const gathered_series *s) {
  run_outcome o;
  double onset;
  if (is_judged(s)) {
    gl_status status = outcome_of_series(s, &all->rule->outcome, &o, all->err);
    return status == GL_OK ? add_score_features(all, s, &o) : status;
  }
  if (s->what.known == METRIC_COUNT) return GL_OK;
  gl_status status = onset_of(all, g, s, &onset);
  return status == GL_OK ? add_feature_spread(all, s, s->what.known, onset) : status;
}

static gl_status add_files(groups *all, const gathered *g) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < g->n_series && status == GL_OK; i++)
    status = add_series_features(all, g, &g->series[i]);
  for (size_t i = 0; i < g->n_studies && status == GL_OK; i++)
    for (size_t k = 0; k < g->studies[i].from->n_runs && status == GL_OK; k++) {
      const results_run *run = &g->studies[i].from->runs[k];
      if (run->status != RUN_FAILED) status = add_study_features(all, &g->studies[i], run);
    }
  if (status == GL_OK && all->n == 0)
    status = gl_fail(all->err, GL_EINPUT,
                     "no file holds a score or a metric that gepolab knows (`gepolab list metrics` "
                     "lists them; --read-as says which one a column is)");
  return status;
}

/* --- tables --- */

/* Writes median and extremes over the runs as the next cell, and sorts the values. Printed text has
 * the extremes only if they differ. */
static void range_cell(table *t, numbers *x, const char *format) {
  interval v = {NAN, NAN, NAN};
  char middle[32], low[32], high[32];
  const size_t n = sample_sort(x->value, x->n);
  x->n = n;
  if (n > 0) v = (interval){sample_quantile(x->value, n, 0.5), x->value[0], x->value[n - 1]};
  snprintf(middle, sizeof middle, format, v.value);
  snprintf(low, sizeof low, format, v.low);
  snprintf(high, sizeof high, format, v.high);
  interval_cell(t, v);
  if (!isnan(v.value) && v.low == v.high)
    table_shown(t, "%s", middle);
  else if (!isnan(v.value))
    table_shown(t, "%s (%s … %s)", middle, low, high);
}

static bool is_of_scores(const group *g) {
  return g->metric == NULL;
}

static const table_column score_columns[] = {
    {"label", TABLE_TEXT, .head = "label"},
    {"run", TABLE_TEXT, .head = "run"},
    {"runs", TABLE_INTEGER, .head = "runs"},
    {"learned", TABLE_INTEGER, .head = "learned"},
    {"plateau", TABLE_INTEGER, .head = "plateau"},
    {"never_learned", TABLE_INTEGER, .head = "never learned"},
    {"not_finite", TABLE_INTEGER, .head = "not finite"},
    {"early_falls", TABLE_INTEGER, .head = "early fall"},
    {"late_falls", TABLE_INTEGER, .head = "late fall"},
    {"survived", TABLE_INTEGER, .head = "survived"},
    {"gap", TABLE_INTERVAL, .head = "best − last", .value = "median"},
    {"plateau_updates", TABLE_INTERVAL, .head = "updates on plateau", .value = "median"},
    {"onset", TABLE_INTERVAL, .head = "onset", .value = "median"}};

static void put_score(table *t, group *g) {
  table_row(t);
  table_text(t, g->label);
  if (*g->label == '\0') table_shown(t, "–");
  table_text(t, g->run);
  table_count(t, g->runs);
  table_count(t, g->learned);
  table_count(t, g->plateau);
  table_count(t, g->outcome[OUTCOME_NEVER_LEARNED]);
  table_count(t, g->outcome[OUTCOME_NOT_FINITE]);
  table_count(t, g->outcome[OUTCOME_EARLY_COLLAPSE]);
  table_count(t, g->outcome[OUTCOME_LATE_COLLAPSE]);
  table_count(t, g->outcome[OUTCOME_SURVIVED]);
  range_cell(t, &g->of[GAP], "%.3f");
  range_cell(t, &g->of[ON_PLATEAU], "%.0f");
  range_cell(t, &g->of[ONSET], "%.0f");
}

static const table_column spread_columns[] = {
    TABLE_KEY("label", TABLE_TEXT),
    {"run", TABLE_TEXT, .head = "run"},
    {"runs", TABLE_INTEGER, .head = "runs", .order = 1},
    {"metric", TABLE_TEXT, .head = "metric"},
    {"slow", TABLE_INTEGER, .head = "slow spread", .order = 1},
    TABLE_KEY("jumps", TABLE_INTEGER),
    {"growth", TABLE_INTERVAL, .head = "growth", .value = "median", .order = 1},
    {"trend", TABLE_INTERVAL, .head = "trend", .value = "median", .order = 1},
    {"peak", TABLE_INTERVAL, .head = "peak", .value = "median", .order = 1},
    {"jump", TABLE_INTERVAL, .head = "jump at the fall", .value = "median", .order = 1}};

static void put_spread(table *t, group *g) {
  table_row(t);
  table_text(t, g->label);
  table_text(t, g->run);
  if (*g->label != '\0') table_shown(t, "%s %s", g->label, g->run);
  table_count(t, g->runs);
  table_text(t, g->metric);
  table_count(t, g->slow);
  table_count(t, g->jumps);
  range_cell(t, &g->of[GROWTH], "%.3g");
  range_cell(t, &g->of[TREND], "%.2f");
  range_cell(t, &g->of[PEAK], "%.3g");
  range_cell(t, &g->of[JUMP], "%.3g");
}

static void report_groups(table *to, groups *all) {
  const features_rule *rule = all->rule;
  const outcome_rule *o = &rule->outcome;
  table *limits = table_object(table_field(to, "rule"));
  table *scores = table_rows(table_field(to, "scores"), score_columns,
                             sizeof score_columns / sizeof *score_columns);
  table *spreads = table_rows(table_field(to, "spreads"), spread_columns,
                              sizeof spread_columns / sizeof *spread_columns);
  table_put(limits, "ends %g, until %g, growth %g, trend %g, jump %g", rule->ends, rule->until,
            rule->growth, rule->trend, rule->jump);
  for (size_t i = 0; i < all->n; i++)
    if (is_of_scores(&all->list[i]))
      put_score(scores, &all->list[i]);
    else
      put_spread(spreads, &all->list[i]);
  table_title(
      scores,
      "Scores. Plateau: learned (%g or more), and %lld updates or more within the last "
      "%.0f %% of the gain before any fall; outcomes as in gepolab analyze --table outcomes. "
      "Medians (extremes) over runs, of best − last without runs that are not finite.",
      o->least_gain, (long long)o->plateau_updates, 100 * (1 - o->plateau));
  table_title(spreads,
              "Metrics before any fall. Growth: median of the last %g updates over that of the "
              "first; trend: rank correlation of 20 parts with their order; slow spread: growth "
              "%g and trend %g or more. Peak and jump: largest value over the median, of all "
              "and around the onset. Medians (extremes) over runs.",
              rule->ends, rule->growth, rule->trend);
}

gl_status features_report(table *to, const gathered *g, const features_rule *rule, gl_error *err) {
  groups all = {.rule = rule, .err = err};
  gl_status status = add_files(&all, g);
  if (status == GL_OK) report_groups(to, &all);
  groups_fini(&all);
  return status;
}
