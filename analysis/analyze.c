/* The tables of `gepolab analyze` of a study. */
#include "analysis/analyze.h"

#include "analysis/evaluation_sets.h"
#include "analysis/outcome.h"
#include "analysis/verdict.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Positions of the tables in printed output. */
enum { PLACE_OF_SETS, PLACE_OF_BENCHMARKS, PLACE_OF_CLOCK, PLACE_OF_RELATIONS };

static table *analyze_section(table *to, const char *name, int place, const table_column *columns,
                              size_t n) {
  table_order(table_field(to, name), place);
  table *t = table_rows(to, columns, n);
  table_gap(t);
  return t;
}

/* Heading of the column with the setting; "setting" if nothing is swept. */
static const char *setting_head(const results *r) {
  return *r->axis_label ? r->axis_label : "setting";
}

/* Writes the settings as a JSON object. */
static void axes_cell(table *t, const results *r, size_t group) {
  cJSON *axes = cJSON_CreateObject();
  int ok = axes != NULL;
  for (size_t a = 0; a < r->axes.n && ok; a++)
    ok = axis_json(axes, &r->axes.axis[a], r->groups[group].value[a]) != NULL;
  if (!ok) cJSON_Delete(axes);
  table_json(t, ok ? axes : NULL);
}

/* --- cells --- */

/* Writes a mean over the runs that are finite at their end. */
static void put_cell_end(table *t, const cell_summary *c, interval v) {
  interval_cell(t, v);
  if (isnan(v.value) && c->not_finite > 0) table_shown(t, "not finite");
}

static void put_analyzed_cell(table *t, const results *r, const cell_summary *c) {
  table_row(t);
  table_text(t, r->algorithms[c->cell->algorithm]);
  table_text(t, r->groups[c->cell->group].label);
  if (*r->groups[c->cell->group].label == '\0') table_shown(t, "–");
  axes_cell(t, r, c->cell->group);
  table_count(t, c->done);
  table_shown(t, "%zu", c->done + c->diverged);
  table_count(t, c->diverged);
  table_count(t, c->collapsed);
  table_count(t, c->not_finite);
  table_count(t, c->failed);
  table_real(t, c->lr_low == c->lr_high ? c->lr_low : NAN);
  if (c->lr_low < c->lr_high) table_shown(t, "%.3g–%.3g", c->lr_low, c->lr_high);
  interval_cell(t, c->best);
  put_cell_end(t, c, c->last);
  put_cell_end(t, c, c->best_to_last);
  for (cell_metric m = 0; m < CELL_METRIC_COUNT; m++) interval_cell(t, c->metric[m]);
  table_real(t, c->samples_per_s);
  table_real(t, c->learner_utilisation);
  table_real(t, c->sampler_utilisation);
}

static void put_analyzed_cells(table *to, const summary *s) {
  const results *r = s->from;
  enum { OF_NOT_FINITE = 6 };
  table_column columns[17 + CELL_METRIC_COUNT] = {
      {"algorithm", TABLE_TEXT, .head = "algorithm"},
      TABLE_HEAD(setting_head(r)),
      TABLE_KEY("axes", TABLE_JSON),
      {"done", TABLE_INTEGER, .head = "runs", .order = 1},
      TABLE_KEY("diverged", TABLE_INTEGER),
      {"collapsed", TABLE_INTEGER, .head = "collapsed", .order = 1},
      {"not_finite", TABLE_INTEGER, .head = "not finite", .order = 1},
      TABLE_KEY("failed", TABLE_INTEGER),
      {"lr", TABLE_REAL, .head = "lr"},
      {"best", TABLE_INTERVAL, .head = "best", .order = 2},
      {"last", TABLE_INTERVAL, .head = "last", .order = 2},
      {"best_to_last", TABLE_INTERVAL, .head = "gap", .order = 2}};
  size_t n = 12;
  for (cell_metric m = 0; m < CELL_METRIC_COUNT; m++)
    columns[n++] =
        (table_column)TABLE_KEY(metric_about(summary_metric(s, m))->name, TABLE_INTERVAL);
  columns[n++] = (table_column)TABLE_KEY("samples_per_s", TABLE_REAL);
  columns[n++] = (table_column)TABLE_KEY("learner_utilisation", TABLE_REAL);
  columns[n++] = (table_column)TABLE_KEY("sampler_utilisation", TABLE_REAL);
  for (size_t i = 0; i < n; i++) {
    columns[i].value = "iqm";
    columns[i].format = columns[i].type == TABLE_INTERVAL ? TABLE_SCORE : NULL;
  }
  table *t = analyze_section(to, "cells", PLACE_OF_SETS, columns, n);
  size_t runs = 0, collapsed = 0, failed = 0, not_finite = 0;
  for (size_t i = 0; i < s->n_cells; i++) {
    const cell_summary *c = &s->cells[i];
    runs += c->done + c->diverged, collapsed += c->collapsed, failed += c->failed;
    not_finite += c->not_finite;
    put_analyzed_cell(t, r, c);
  }
  char repeats[80] = "", broken[160] = "", few[160] = "";
  const size_t least = outcome_rule_default().in_a_row + 1, n_few = runs_with_fewer(r, least);
  if (n_few > 0)
    snprintf(few, sizeof few,
             "; with fewer than %zu evaluations, in which no fall can be found: %zu", least, n_few);
  if (not_finite == 0) table_hide_head(t, OF_NOT_FINITE);
  if (not_finite > 0)
    snprintf(broken, sizeof broken,
             "; not finite at their end: %zu, which have no last score and no gap and are in "
             "neither mean",
             not_finite);
  if (r->n_repeats > 0)
    snprintf(repeats, sizeof repeats, "; left out, being others' repeats: %zu", r->n_repeats);
  table_title(t,
              "%s: evaluation score, interquartile mean over seeds [" INTERVAL_WORDS "]. "
              "Runs: %zu, of which %zu collapsed (--table outcomes)%s; %zu failed%s%s.",
              r->study, runs, collapsed, few, failed, broken, repeats);
}

static void put_group_clock(table *to, const summary *s) {
  const table_column columns[] = {TABLE_HEAD(setting_head(s->from)),
                                  {.type = TABLE_REAL, .head = "staleness"},
                                  {.type = TABLE_REAL, .head = "samples/s"},
                                  {.type = TABLE_REAL, .head = "learner"},
                                  {.type = TABLE_REAL, .head = "samplers"}};
  table *t = analyze_section(to, NULL, PLACE_OF_CLOCK, columns, sizeof columns / sizeof *columns);
  for (size_t g = 0; g < s->from->n_groups; g++) {
    group_clock mean;
    summary_group_clock(s, g, &mean);
    table_row(t);
    table_text(t, *s->from->groups[g].label ? s->from->groups[g].label : NULL);
    table_real(t, mean.staleness);
    table_real(t, mean.samples_per_s);
    table_real(t, mean.learner_utilisation);
    table_real(t, mean.sampler_utilisation);
  }
  table_title(t, "Clock: staleness in updates (mean over the algorithms' interquartile means), "
                 "throughput, and fraction of time at work.");
}

/* --- correlations --- */

/* Writes the correlation with one of its intervals; printed text has the reason if there is none.
 */
static void correlation_cell(table *t, const correlation *c, interval v) {
  interval_cell(t, v);
  if (c->why) table_shown(t, "– (%s)", c->why);
}

static void put_relation(table *t, const relation *r) {
  const correlation *c = &r->spearman;
  table_text(t, r->x);
  table_text(t, r->y);
  table_count(t, c->n);
  table_text(t, c->why);
  table_real(t, c->fisher.value);
  table_real(t, c->fisher.low);
  table_real(t, c->fisher.high);
  table_real(t, c->bootstrap.low);
  table_real(t, c->bootstrap.high);
}

#define RELATION_COLUMNS(...)                                                                      \
  TABLE_KEY("x", TABLE_TEXT), TABLE_KEY("y", TABLE_TEXT), __VA_ARGS__,                             \
      TABLE_KEY("why", TABLE_TEXT), TABLE_KEY("spearman", TABLE_REAL),                             \
      TABLE_KEY("low", TABLE_REAL), TABLE_KEY("high", TABLE_REAL),                                 \
      TABLE_KEY("bootstrap_low", TABLE_REAL), TABLE_KEY("bootstrap_high", TABLE_REAL)

static void put_relations(table *to, const summary *s) {
  static const table_column columns[] = {
      TABLE_HEAD("quantities"),
      RELATION_COLUMNS({"cells", TABLE_INTEGER, .head = "cells"}),
      {.type = TABLE_INTERVAL, .head = "rho [Bonett-Wright]", .format = TABLE_SCORE},
      {.type = TABLE_INTERVAL, .head = "rho [bootstrap]", .format = TABLE_SCORE}};
  table *t = analyze_section(to, "correlations", PLACE_OF_RELATIONS, columns,
                             sizeof columns / sizeof *columns);
  for (size_t i = 0; i < RELATION_COUNT; i++) {
    const relation *r = &s->relations[i];
    table_row(t);
    table_textf(t, "%s, %s", r->x, r->y);
    put_relation(t, r);
    correlation_cell(t, &r->spearman, r->spearman.fisher);
    interval_cell(t, r->spearman.bootstrap);
  }
  table_title(
      t,
      "Spearman correlation over all cells, with two 95 %% intervals (none of fewer than five).");
}

static const table_column within_columns[] = {TABLE_KEY("algorithm", TABLE_TEXT),
                                              RELATION_COLUMNS(TABLE_KEY("runs", TABLE_INTEGER))};

/* Spearman correlations of delay with KL, and of KL with the variance of weights, over the runs of
 * each algorithm: JSON has a row for each relation, printed
 * text one for each algorithm. */
static void put_relations_within(table *to, const summary *s) {
  const char *kl = metric_about(s->kl)->name;
  table *list = analyze_section(to, "correlations_within", PLACE_OF_RELATIONS, within_columns,
                                sizeof within_columns / sizeof *within_columns);
  for (size_t i = 0; i < s->from->n_algorithms * RELATION_COUNT; i++) {
    table_row(list);
    table_text(list, s->from->algorithms[i / RELATION_COUNT]);
    put_relation(list, &s->within[i]);
  }
  if (s->from->n_algorithms < 2) return;
  const table_column columns[] = {TABLE_HEAD("algorithm"), {.type = TABLE_INTEGER, .head = "runs"}};
  table *t = analyze_section(to, NULL, PLACE_OF_RELATIONS, columns, 2);
  const table_column rho = {.type = TABLE_INTERVAL, .format = TABLE_SCORE};
  table_add_column(t, rho, "delay, %s", kl);
  table_add_column(t, rho, "%s, iw_variance_pq", kl);
  for (size_t a = 0; a < s->from->n_algorithms; a++) {
    const relation *r = s->within + a * RELATION_COUNT;
    table_row(t);
    table_text(t, s->from->algorithms[a]);
    table_count(t, r[RELATION_KL_VARIANCE].spearman.n);
    for (size_t i = 0; i < RELATION_COUNT; i++)
      correlation_cell(t, &r[i].spearman, r[i].spearman.bootstrap);
  }
  table_title(t, "The same within one algorithm, over its runs [95 %% bootstrap interval; none of "
                 "fewer than five].");
}

/* --- evaluation sets --- */

/* The evaluation sets of a study, and scratch for the values of a cell's runs. */
typedef struct set_tables {
  const results *from;
  const char **name; /* [n] */
  size_t n;
  double *value; /* [3][n_runs] of best, last and gap */
} set_tables;

static void set_tables_fini(set_tables *t) {
  free(t->name), free(t->value);
}

static gl_status set_tables_init(set_tables *t, const results *from, gl_error *err) {
  *t = (set_tables){.from = from, .value = calloc(3 * from->n_runs + 1, sizeof *t->value)};
  if (!t->value) return gl_fail_memory(err, "evaluation sets");
  return sets_names(&t->name, &t->n, from, err);
}

/* Kinds of lines in the table of evaluation sets. */
typedef enum set_line {
  LINE_OF_SET,    /* scores on one set */
  LINE_AVERAGE,   /* means over the sets of their bests, lasts and gaps */
  LINE_OF_MEAN,   /* best, last and gap of the mean score over the sets */
  LINE_OF_HALVES, /* evaluation that is best on one half of a set, scored on the other half */
  LINE_KINDS
} set_line;

static gl_status ends_of_line(series_ends *e, const set_tables *t, const results_run *run,
                              set_line line, size_t set, gl_error *err) {
  const int lower = t->from->lower_is_better;
  switch (line) {
  case LINE_OF_SET:
    *e = sets_ends(run, t->name[set], lower);
    break;
  case LINE_AVERAGE:
    *e = sets_mean_ends(run, t->name, t->n, lower);
    break;
  case LINE_OF_MEAN:
    return sets_ends_of_mean(e, run, t->name, t->n, lower, err);
  case LINE_OF_HALVES:
    *e = sets_halved_ends(run, t->name[set], lower);
    break;
  case LINE_KINDS:
    break;
  }
  return GL_OK;
}

/* Best, last and gap of a cell over its seeds. *runs: number of runs that have this line. */
static gl_status cell_ends(interval ends[3], size_t *runs, const set_tables *t,
                           const results_cell *cell, set_line line, size_t set, gl_error *err) {
  const size_t room = t->from->n_runs;
  *runs = 0;
  for (size_t i = 0; i < cell->n; i++) {
    const results_run *run = &t->from->runs[cell->first + i];
    series_ends e;
    if (run->status == RUN_FAILED) continue;
    gl_status status = ends_of_line(&e, t, run, line, set, err);
    if (status != GL_OK) return status;
    if (isnan(e.best)) continue;
    t->value[*runs] = e.best;
    t->value[room + *runs] = e.last;
    t->value[2 * room + *runs] = e.best_to_last;
    ++*runs;
  }
  for (size_t k = 0; k < 3; k++) {
    const uint64_t entity = ((uint64_t)cell->first * LINE_KINDS + (uint64_t)line) * 64 + set;
    gl_status status =
        iqm_bootstrap(t->value + k * room, runs, 1,
                      rng_stream_at(BOOTSTRAP_SEED, RNG_BOOTSTRAP, entity * 3 + k), &ends[k], err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

gl_status analyze_set_cell(interval ends[3], size_t *runs, const results *r,
                           const results_cell *cell, size_t set, gl_error *err) {
  set_tables t;
  gl_status status = set_tables_init(&t, r, err);
  if (status == GL_OK) status = cell_ends(ends, runs, &t, cell, LINE_OF_SET, set, err);
  set_tables_fini(&t);
  return status;
}

/* Collects the scores of all runs by set. The names of the cells, "gepo" or "gepo, max delay 600
 * s", are allocated in m. */
static gl_status set_benchmarks(benchmarks *b, arena *m, const set_tables *t, gl_error *err) {
  const results *r = t->from;
  benchmark_score *score = ARENA_GRID(m, benchmark_score, r->n_runs, t->n);
  size_t n = 0;
  for (size_t c = 0; c < r->n_groups * r->n_algorithms && !m->failed; c++) {
    const results_cell *cell = &r->cells[c];
    const char *algorithm = r->algorithms[cell->algorithm];
    const char *heading = r->groups[cell->group].heading;
    char *name = ARENA_ARRAY(m, char, strlen(algorithm) + strlen(heading) + 3);
    if (name) sprintf(name, "%s%s%s", algorithm, *heading ? ", " : "", heading);
    for (size_t i = 0; i < cell->n && name; i++)
      for (size_t s = 0; s < t->n; s++) {
        const results_run *run = &r->runs[cell->first + i];
        const series_ends e = sets_ends(run, t->name[s], r->lower_is_better);
        if (run->status == RUN_FAILED || isnan(e.best)) continue;
        score[n++] = (benchmark_score){name, t->name[s], run->seed, e.best, e.last, e.best_to_last};
      }
  }
  gl_status status = arena_check(m, "a table", err);
  return status == GL_OK ? benchmarks_init(b, score, n, err) : status;
}

static gl_status report_benchmarks(table *to, const set_tables *t, gl_error *err) {
  arena work = {0};
  benchmarks b = {0};
  gl_status status = set_benchmarks(&b, &work, t, err);
  if (status == GL_OK) {
    benchmarks_report(to, &b, "algorithm", "Best and last by evaluation set");
    table_order(to, PLACE_OF_BENCHMARKS);
    table_order(table_line(to, "%s", ""), PLACE_OF_BENCHMARKS);
  }
  benchmarks_fini(&b);
  arena_fini(&work);
  return status;
}

/* Writes the line of a cell to the table of evaluation sets, and if `halves` is not NULL the line
 * of the set's halves to that table. */
static gl_status put_set_line(table *to, table *halves, const set_tables *t,
                              const results_cell *cell, set_line line, size_t set, gl_error *err) {
  const char *name = line == LINE_OF_SET    ? t->name[set]
                     : line == LINE_AVERAGE ? "average"
                                            : "of the mean";
  interval ends[3], halved[3] = {{NAN, NAN, NAN}, {NAN, NAN, NAN}, {NAN, NAN, NAN}};
  size_t runs = 0, with_halves = 0;
  gl_status status = cell_ends(ends, &runs, t, cell, line, set, err);
  if (status == GL_OK && line == LINE_OF_SET)
    status = cell_ends(halved, &with_halves, t, cell, LINE_OF_HALVES, set, err);
  if (status != GL_OK) return status;
  const bool has_halves = !isnan(halved[0].value);
  table_row(to);
  table_text(to, t->from->algorithms[cell->algorithm]);
  table_text(to, t->from->groups[cell->group].label);
  axes_cell(to, t->from, cell->group);
  table_text(to, name);
  table_count(to, runs);
  for (size_t k = 0; k < 3; k++) interval_cell(to, ends[k]);
  if (has_halves) interval_cell(to, halved[0]), interval_cell(to, halved[2]);
  if (halves == NULL || line != LINE_OF_SET) return GL_OK;
  table_row(halves);
  table_text(halves, t->from->algorithms[cell->algorithm]);
  table_text(halves, t->from->groups[cell->group].label);
  table_text(halves, name);
  table_count(halves, with_halves);
  for (size_t k = 0; k < 3; k++) interval_cell(halves, halved[k]);
  return GL_OK;
}

static gl_status put_set_cell(table *to, table *halves, const set_tables *t,
                              const results_cell *cell, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < t->n && status == GL_OK; i++)
    status = put_set_line(to, halves, t, cell, LINE_OF_SET, i, err);
  if (t->n < 2) return status;
  if (status == GL_OK) status = put_set_line(to, halves, t, cell, LINE_AVERAGE, 0, err);
  return status == GL_OK ? put_set_line(to, halves, t, cell, LINE_OF_MEAN, 0, err) : status;
}

#define SCORE_COLUMN(NAME, HEAD)                                                                   \
  { NAME, TABLE_INTERVAL, .head = HEAD, .format = TABLE_SCORE, .value = "iqm" }

/* Writes the scores by evaluation set, and for sets with halves also the best selected on one half
 * and scored on the other. */
static gl_status put_sets(table *to, const set_tables *t, gl_error *err) {
  const char *head = setting_head(t->from);
  const table_column columns[] = {{"algorithm", TABLE_TEXT, .head = "algorithm"},
                                  TABLE_HEAD(head),
                                  TABLE_KEY("axes", TABLE_JSON),
                                  {"set", TABLE_TEXT, .head = "set"},
                                  {"runs", TABLE_INTEGER, .head = "runs"},
                                  SCORE_COLUMN("best", "best"),
                                  SCORE_COLUMN("last", "last"),
                                  SCORE_COLUMN("best_to_last", "gap"),
                                  SCORE_COLUMN("best_by_halves", NULL),
                                  SCORE_COLUMN("best_to_last_by_halves", NULL)};
  const table_column of_halves[] = {
      TABLE_HEAD("algorithm"),    TABLE_HEAD(head),
      TABLE_HEAD("set"),          {.type = TABLE_INTEGER, .head = "runs"},
      SCORE_COLUMN(NULL, "best"), SCORE_COLUMN(NULL, "last"),
      SCORE_COLUMN(NULL, "gap")};
  table *sets =
      analyze_section(to, "sets", PLACE_OF_SETS, columns, sizeof columns / sizeof *columns);
  table *halves = NULL;
  table_title(sets, "Evaluation sets: interquartile mean over seeds [" INTERVAL_WORDS "]%s.",
              t->n < 2 ? ""
                       : ". average: of each run's bests, each where its set is best; of the "
                         "mean: the best of the sets' mean, which one evaluation had");
  if (sets_have_halves(t->from)) {
    halves =
        analyze_section(to, NULL, PLACE_OF_SETS, of_halves, sizeof of_halves / sizeof *of_halves);
    table_title(halves, "By halves of the problems: the evaluation that is best on one half, "
                        "scored on the other, mean of both ways; so the best is not the luckiest.");
  }
  gl_status status = GL_OK;
  for (size_t c = 0; c < t->from->n_groups * t->from->n_algorithms && status == GL_OK; c++)
    if (t->from->cells[c].n > 0) status = put_set_cell(sets, halves, t, &t->from->cells[c], err);
  return status;
}

/* Writes nothing if the study has no evaluation sets. */
static gl_status report_sets(table *to, const results *from, gl_error *err) {
  set_tables t;
  gl_status status = set_tables_init(&t, from, err);
  if (status == GL_OK && t.n > 1) status = report_benchmarks(to, &t, err);
  if (status == GL_OK && t.n > 0) status = put_sets(to, &t, err);
  set_tables_fini(&t);
  return status;
}

/* --- entry points --- */

static gl_status put_verdicts(table *to, const summary *s, gl_error *err) {
  verdicts v;
  gl_status status = verdicts_init(&v, s, err);
  if (status == GL_OK) verdicts_report(to, &v);
  verdicts_fini(&v);
  return status;
}

static gl_status analyze_one(table *to, store *from, const char *name, const char *set,
                             gl_error *err) {
  results *r = NULL;
  summary sum;
  gl_status status = results_load(&r, from, name, err);
  if (status == GL_OK && set) status = sets_choose(r, set, err);
  if (status == GL_OK) status = summary_init(&sum, r, err);
  if (status == GL_OK) {
    table_put(to, "study %s, repeats_left_out %zu", r->study, r->n_repeats);
    status = put_verdicts(to, &sum, err);
    put_analyzed_cells(to, &sum);
    put_group_clock(to, &sum);
    put_relations(to, &sum);
    put_relations_within(to, &sum);
    summary_fini(&sum);
    if (status == GL_OK) status = report_sets(to, r, err);
  }
  results_free(r);
  return status;
}

gl_status analyze_study(table *to, store *s, const char *set, gl_error *err) {
  char **names = NULL;
  size_t n = 0;
  gl_status status = results_studies(&names, &n, s, err);
  if (status != GL_OK) return status;
  table *list = n > 1 ? table_list(table_field(to, "studies")) : NULL;
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    table *one = n > 1 ? table_object(table_field(list, "")) : to;
    status = analyze_one(one, s, names[i], set, err);
  }
  free(names);
  return status;
}
