/* Tables and JSON of a study. */
#include "analysis/analyze.h"

#include "analysis/benchmarks.h"
#include "analysis/sets.h"
#include "analysis/statistics.h"
#include "analysis/summary.h"
#include "core/base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Scores and correlations: three decimals say what a few seeds can. */
static void interval_cell(table *t, interval v) {
  if (isnan(v.low))
    table_number(t, v.value);
  else if (fmax(fabs(v.low), fabs(v.high)) < 100)
    table_cell(t, "%.3f [%.3f, %.3f]", v.value, v.low, v.high);
  else
    table_cell(t, "%.4g [%.4g, %.4g]", v.value, v.low, v.high);
}

/* The correlation with one of its intervals, or why there is none. */
static void correlation_cell(table *t, const correlation *c, interval v) {
  if (c->why)
    table_cell(t, "– (%s)", c->why);
  else
    interval_cell(t, v);
}

static gl_status finish_table(table *t, table_format format, FILE *to, gl_error *err) {
  gl_status status = table_write(t, format, to, err);
  table_free(t);
  if (status == GL_OK) fputc('\n', to);
  return status;
}

/* --- a study as text --- */

/* The head of the column that says the setting; "setting" where nothing is swept. */
static const char *setting_head(const results *r) {
  return *r->axis_label ? r->axis_label : "setting";
}

static void lr_cell(table *t, const cell_summary *c) {
  if (c->lr_low < c->lr_high)
    table_cell(t, "%.3g–%.3g", c->lr_low, c->lr_high);
  else
    table_number(t, c->lr_low);
}

static gl_status ends_table(const summary *s, table_format format, FILE *to, gl_error *err) {
  const char *heads[] = {
      "algorithm", setting_head(s->from), "lr", "runs", "diverged", "best", "last", "gap"};
  size_t done = 0, diverged = 0, failed = 0;
  char repeats[80] = "";
  if (s->from->n_repeats > 0)
    snprintf(repeats, sizeof repeats, "; left out, being others' repeats: %zu", s->from->n_repeats);
  table *t = table_new(heads, sizeof heads / sizeof *heads);
  if (!t) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < s->n_cells; i++) {
    const cell_summary *c = &s->cells[i];
    done += c->done, diverged += c->diverged, failed += c->failed;
    table_cell(t, "%s", s->from->algorithms[c->cell->algorithm]);
    table_cell(t, "%s", s->from->groups[c->cell->group].label);
    lr_cell(t, c);
    table_cell(t, "%zu", c->done + c->diverged);
    table_cell(t, "%zu", c->diverged);
    interval_cell(t, c->best);
    interval_cell(t, c->last);
    interval_cell(t, c->best_to_last);
  }
  table_caption(t,
                "%s: evaluation score, interquartile mean over seeds [95 %% bootstrap interval]. "
                "Runs: %zu done, %zu diverged, %zu failed%s.",
                s->from->study, done, diverged, failed, repeats);
  return finish_table(t, format, to, err);
}

static gl_status clock_table(const summary *s, table_format format, FILE *to, gl_error *err) {
  const char *heads[] = {setting_head(s->from), "staleness", "samples/s", "learner", "samplers"};
  table *t = table_new(heads, sizeof heads / sizeof *heads);
  if (!t) return gl_fail_memory(err, "a table");
  for (size_t g = 0; g < s->from->n_groups; g++) {
    group_clock mean;
    summary_group_clock(s, g, &mean);
    table_cell(t, "%s", *s->from->groups[g].label ? s->from->groups[g].label : "–");
    table_number(t, mean.staleness);
    table_number(t, mean.samples_per_s);
    table_number(t, mean.learner_utilisation);
    table_number(t, mean.sampler_utilisation);
  }
  table_caption(t, "Clock: mean staleness in updates, throughput, and share of time at work.");
  return finish_table(t, format, to, err);
}

static gl_status cells_relations_table(const summary *s, table_format format, FILE *to,
                                       gl_error *err) {
  const char *heads[] = {"quantities", "cells", "rho [Bonett-Wright]", "rho [bootstrap]"};
  table *t = table_new(heads, sizeof heads / sizeof *heads);
  if (!t) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < RELATION_COUNT; i++) {
    const relation *r = &s->relations[i];
    table_cell(t, "%s, %s", r->x, r->y);
    table_cell(t, "%zu", r->spearman.n);
    correlation_cell(t, &r->spearman, r->spearman.fisher);
    interval_cell(t, r->spearman.bootstrap);
  }
  table_caption(t, "Spearman correlation over all cells, with two 95 %% intervals.");
  return finish_table(t, format, to, err);
}

static gl_status runs_relations_table(const summary *s, table_format format, FILE *to,
                                      gl_error *err) {
  char delay[64], variance[64];
  snprintf(delay, sizeof delay, "delay, %s", metric_about(s->kl)->name);
  snprintf(variance, sizeof variance, "%s, iw_variance_pq", metric_about(s->kl)->name);
  const char *heads[] = {"algorithm", "runs", delay, variance};
  table *t = table_new(heads, sizeof heads / sizeof *heads);
  if (!t) return gl_fail_memory(err, "a table");
  for (size_t a = 0; a < s->from->n_algorithms; a++) {
    const relation *r = s->within + a * RELATION_COUNT;
    table_cell(t, "%s", s->from->algorithms[a]);
    table_cell(t, "%zu", r[1].spearman.n);
    correlation_cell(t, &r[0].spearman, r[0].spearman.bootstrap);
    correlation_cell(t, &r[1].spearman, r[1].spearman.bootstrap);
  }
  table_caption(t, "The same within one algorithm, over its runs [95 %% bootstrap interval].");
  return finish_table(t, format, to, err);
}

/* All but the first table, behind which those of evaluation sets stand. */
static gl_status rest_of_text(const summary *s, table_format format, FILE *to, gl_error *err) {
  gl_status status = clock_table(s, format, to, err);
  if (status == GL_OK) status = cells_relations_table(s, format, to, err);
  if (status == GL_OK && s->from->n_algorithms > 1)
    status = runs_relations_table(s, format, to, err);
  return status;
}

/* --- a study as JSON; each adds to its object and says 0 if memory is short --- */

static int json_interval(cJSON *to, const char *key, interval v) {
  cJSON *o = cJSON_AddObjectToObject(to, key);
  return o && json_add_number(o, "iqm", v.value) && json_add_number(o, "low", v.low) &&
         json_add_number(o, "high", v.high);
}

static int json_axes(cJSON *to, const results *r, size_t group) {
  cJSON *o = cJSON_AddObjectToObject(to, "axes");
  int ok = o != NULL;
  for (size_t a = 0; a < r->axes.n && ok; a++)
    ok = axis_json(o, &r->axes.axis[a], r->groups[group].value[a]) != NULL;
  return ok;
}

static int json_cell(cJSON *cells, const summary *s, const cell_summary *c) {
  cJSON *o = json_append_object(cells);
  int ok = o && json_add_string(o, "algorithm", s->from->algorithms[c->cell->algorithm]) &&
           json_axes(o, s->from, c->cell->group) && json_add_number(o, "done", (double)c->done) &&
           json_add_number(o, "diverged", (double)c->diverged) &&
           json_add_number(o, "failed", (double)c->failed) &&
           json_add_number(o, "lr", c->lr_low == c->lr_high ? c->lr_low : NAN) &&
           json_interval(o, "best", c->best) && json_interval(o, "last", c->last) &&
           json_interval(o, "best_to_last", c->best_to_last);
  for (cell_metric m = 0; m < CELL_METRIC_COUNT && ok; m++)
    ok = json_interval(o, metric_about(summary_metric(s, m))->name, c->metric[m]);
  return ok && json_add_number(o, "samples_per_s", c->samples_per_s) &&
         json_add_number(o, "learner_utilisation", c->learner_utilisation) &&
         json_add_number(o, "sampler_utilisation", c->sampler_utilisation);
}

/* count_key names what r counts, "cells" or "runs"; algorithm may be NULL. */
static int json_relation(cJSON *relations, const char *algorithm, const char *count_key,
                         const relation *r) {
  cJSON *o = json_append_object(relations);
  const correlation *c = &r->spearman;
  return o && (!algorithm || json_add_string(o, "algorithm", algorithm)) &&
         json_add_string(o, "x", r->x) && json_add_string(o, "y", r->y) &&
         json_add_number(o, count_key, (double)c->n) &&
         (!c->why || json_add_string(o, "why", c->why)) &&
         json_add_number(o, "spearman", c->fisher.value) &&
         json_add_number(o, "low", c->fisher.low) && json_add_number(o, "high", c->fisher.high) &&
         json_add_number(o, "bootstrap_low", c->bootstrap.low) &&
         json_add_number(o, "bootstrap_high", c->bootstrap.high);
}

static int fill_study_json(cJSON *root, const summary *s) {
  int ok = json_add_string(root, "study", s->from->study) != NULL &&
           json_add_number(root, "repeats_left_out", (double)s->from->n_repeats) != NULL;
  cJSON *cells = cJSON_AddArrayToObject(root, "cells");
  cJSON *relations = cJSON_AddArrayToObject(root, "correlations");
  cJSON *within = cJSON_AddArrayToObject(root, "correlations_within");
  ok = ok && cells && relations && within;
  for (size_t i = 0; i < s->n_cells && ok; i++) ok = json_cell(cells, s, &s->cells[i]);
  for (size_t i = 0; i < RELATION_COUNT && ok; i++)
    ok = json_relation(relations, NULL, "cells", &s->relations[i]);
  for (size_t i = 0; i < s->from->n_algorithms * RELATION_COUNT && ok; i++)
    ok = json_relation(within, s->from->algorithms[i / RELATION_COUNT], "runs", &s->within[i]);
  return ok;
}

/* --- evaluation sets --- */

/* Seed of the bootstrap: results are those of the data, so one constant serves. */
static const uint64_t BOOTSTRAP_SEED = 1;

/* The sets of a study, and room for what a cell's runs have. */
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

/* What a line of the table of sets is about. */
typedef enum set_line {
  LINE_OF_SET,    /* the set's own series */
  LINE_AVERAGE,   /* the mean of the sets' bests, lasts and gaps */
  LINE_OF_MEAN,   /* the series of the sets' mean */
  LINE_OF_HALVES, /* of a set: best on one half, scored on the other */
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

/* Best, last and gap of a cell over its seeds; *runs: how many have the line. */
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

static gl_status put_set_line(table *to, const set_tables *t, const results_cell *cell,
                              set_line line, size_t set, const char *name, gl_error *err) {
  interval ends[3];
  size_t runs = 0;
  gl_status status = cell_ends(ends, &runs, t, cell, line, set, err);
  if (status != GL_OK) return status;
  table_cell(to, "%s", t->from->algorithms[cell->algorithm]);
  table_cell(to, "%s", t->from->groups[cell->group].label);
  table_cell(to, "%s", name);
  table_cell(to, "%zu", runs);
  for (size_t k = 0; k < 3; k++) interval_cell(to, ends[k]);
  return GL_OK;
}

static gl_status put_set_cell(table *to, const set_tables *t, const results_cell *cell,
                              gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < t->n && status == GL_OK; i++)
    status = put_set_line(to, t, cell, LINE_OF_SET, i, t->name[i], err);
  if (t->n < 2) return status;
  if (status == GL_OK) status = put_set_line(to, t, cell, LINE_AVERAGE, 0, "average", err);
  return status == GL_OK ? put_set_line(to, t, cell, LINE_OF_MEAN, 0, "of the mean", err) : status;
}

static gl_status sets_table(const set_tables *t, table_format format, FILE *to, gl_error *err) {
  const char *heads[] = {"algorithm", setting_head(t->from), "set", "runs", "best", "last", "gap"};
  table *out = table_new(heads, sizeof heads / sizeof *heads);
  gl_status status = out ? GL_OK : gl_fail_memory(err, "a table");
  for (size_t i = 0; i < t->from->n_groups * t->from->n_algorithms && status == GL_OK; i++)
    if (t->from->cells[i].n > 0) status = put_set_cell(out, t, &t->from->cells[i], err);
  if (status == GL_OK)
    table_caption(out,
                  "Evaluation sets: interquartile mean over seeds [95 %% bootstrap interval]%s.",
                  t->n < 2 ? ""
                           : ". average: of each run's bests, each where its set is best; of the "
                             "mean: the best of the sets' mean, which one evaluation had");
  if (status == GL_OK) return finish_table(out, format, to, err);
  table_free(out);
  return status;
}

/* The same where what chooses the best does not score it. */
static gl_status halves_table(const set_tables *t, table_format format, FILE *to, gl_error *err) {
  const char *heads[] = {"algorithm", setting_head(t->from), "set", "runs", "best", "last", "gap"};
  table *out = table_new(heads, sizeof heads / sizeof *heads);
  gl_status status = out ? GL_OK : gl_fail_memory(err, "a table");
  for (size_t i = 0; i < t->from->n_groups * t->from->n_algorithms && status == GL_OK; i++)
    for (size_t s = 0; s < t->n && t->from->cells[i].n > 0 && status == GL_OK; s++)
      status = put_set_line(out, t, &t->from->cells[i], LINE_OF_HALVES, s, t->name[s], err);
  if (status == GL_OK)
    table_caption(out, "By halves of the problems: the evaluation that is best on one half, scored "
                       "on the other, mean of both ways; so the best is not the luckiest.");
  if (status == GL_OK) return finish_table(out, format, to, err);
  table_free(out);
  return status;
}

/* "gepo", or "gepo, max delay 600 s" where settings differ. On the heap. */
static char *name_of_cell(const results *r, const results_cell *cell) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (!to) return NULL;
  const char *heading = r->groups[cell->group].heading;
  fprintf(to, "%s%s%s", r->algorithms[cell->algorithm], *heading ? ", " : "", heading);
  if (fclose(to) == 0) return text;
  free(text);
  return NULL;
}

/* The scores of all runs by set. names: [n_groups * n_algorithms] of cells, to be freed. */
static gl_status set_benchmarks(benchmarks *b, char **names, const set_tables *t, gl_error *err) {
  const results *r = t->from;
  benchmark_score *score = calloc(r->n_runs * t->n + 1, sizeof *score);
  size_t n = 0;
  *b = (benchmarks){0};
  if (!score) return gl_fail_memory(err, "a table");
  gl_status status = GL_OK;
  for (size_t c = 0; c < r->n_groups * r->n_algorithms && status == GL_OK; c++) {
    const results_cell *cell = &r->cells[c];
    names[c] = name_of_cell(r, cell);
    if (!names[c]) status = gl_fail_memory(err, "a table");
    for (size_t i = 0; i < cell->n && status == GL_OK; i++)
      for (size_t s = 0; s < t->n; s++) {
        const results_run *run = &r->runs[cell->first + i];
        const series_ends e = sets_ends(run, t->name[s], r->lower_is_better);
        if (run->status == RUN_FAILED || isnan(e.best)) continue;
        score[n++] =
            (benchmark_score){names[c], t->name[s], run->seed, e.best, e.last, e.best_to_last};
      }
  }
  if (status == GL_OK) status = benchmarks_init(b, score, n, err);
  free(score);
  return status;
}

/* Fills in b, uses it, and releases all. Either output may be NULL. */
static gl_status tell_benchmarks(const set_tables *t, table_format format, FILE *text, cJSON *json,
                                 gl_error *err) {
  const size_t n = t->from->n_groups * t->from->n_algorithms;
  char **names = calloc(n + 1, sizeof *names);
  benchmarks b = {0};
  gl_status status = names ? GL_OK : gl_fail_memory(err, "a table");
  if (status == GL_OK) status = set_benchmarks(&b, names, t, err);
  if (status == GL_OK && text) {
    status = benchmarks_text(&b, "algorithm", "Best and last by evaluation set", format, text, err);
    fputc('\n', text);
  }
  if (status == GL_OK && json && !benchmarks_json(json, &b))
    status = gl_fail_memory(err, "a JSON document");
  benchmarks_fini(&b);
  for (size_t i = 0; names && i < n; i++) free(names[i]);
  free(names);
  return status;
}

static int set_line_json(cJSON *list, const set_tables *t, const results_cell *cell,
                         const char *set, const interval ends[3], size_t runs,
                         const interval halved[3]) {
  cJSON *o = json_append_object(list);
  int ok = o && json_add_string(o, "algorithm", t->from->algorithms[cell->algorithm]) &&
           json_axes(o, t->from, cell->group) && json_add_string(o, "set", set) &&
           json_add_number(o, "runs", (double)runs) && json_interval(o, "best", ends[0]) &&
           json_interval(o, "last", ends[1]) && json_interval(o, "best_to_last", ends[2]);
  return ok && (isnan(halved[0].value) || (json_interval(o, "best_by_halves", halved[0]) &&
                                           json_interval(o, "best_to_last_by_halves", halved[2])));
}

/* A line of the tables above: of a set (set < t->n), of the average, or of the mean. */
static gl_status put_set_json(cJSON *list, const set_tables *t, const results_cell *cell,
                              set_line line, size_t set, const char *name, gl_error *err) {
  interval ends[3], halved[3] = {{NAN, NAN, NAN}, {NAN, NAN, NAN}, {NAN, NAN, NAN}};
  size_t runs = 0, with_halves = 0;
  gl_status status = cell_ends(ends, &runs, t, cell, line, set, err);
  if (status == GL_OK && line == LINE_OF_SET)
    status = cell_ends(halved, &with_halves, t, cell, LINE_OF_HALVES, set, err);
  if (status != GL_OK) return status;
  return set_line_json(list, t, cell, name, ends, runs, halved)
             ? GL_OK
             : gl_fail_memory(err, "a JSON document");
}

/* "sets": [{algorithm, axes, set, runs, best, last, best_to_last, …}], the lines of the table. */
static gl_status sets_json(cJSON *to, const set_tables *t, gl_error *err) {
  cJSON *list = cJSON_AddArrayToObject(to, "sets");
  gl_status status = list ? GL_OK : gl_fail_memory(err, "a JSON document");
  for (size_t c = 0; c < t->from->n_groups * t->from->n_algorithms && status == GL_OK; c++) {
    const results_cell *cell = &t->from->cells[c];
    if (cell->n == 0) continue;
    for (size_t i = 0; i < t->n && status == GL_OK; i++)
      status = put_set_json(list, t, cell, LINE_OF_SET, i, t->name[i], err);
    if (status == GL_OK && t->n > 1)
      status = put_set_json(list, t, cell, LINE_AVERAGE, 0, "average", err);
    if (status == GL_OK && t->n > 1)
      status = put_set_json(list, t, cell, LINE_OF_MEAN, 0, "of the mean", err);
  }
  return status;
}

/* Nothing where the study has no sets. */
static gl_status tell_sets(const results *from, table_format format, FILE *text, cJSON *json,
                           gl_error *err) {
  set_tables t;
  gl_status status = set_tables_init(&t, from, err);
  if (status == GL_OK && t.n > 0) {
    if (text) status = sets_table(&t, format, text, err);
    if (status == GL_OK && text && sets_have_halves(from))
      status = halves_table(&t, format, text, err);
    if (status == GL_OK && t.n > 1) status = tell_benchmarks(&t, format, text, json, err);
    if (status == GL_OK && json) status = sets_json(json, &t, err);
  }
  set_tables_fini(&t);
  return status;
}

/* One study: its tables as text, and its numbers filled into root; either may be NULL. */
static gl_status analyze_one(store *from, const char *name, const char *set, table_format format,
                             FILE *text, cJSON *root, gl_error *err) {
  results *r = NULL;
  summary sum;
  gl_status status = results_load(&r, from, name, err);
  if (status == GL_OK && set) status = sets_choose(r, set, err);
  if (status == GL_OK) status = summary_init(&sum, r, err);
  if (status != GL_OK) {
    results_free(r);
    return status;
  }
  if (text) status = ends_table(&sum, format, text, err);
  if (root && status == GL_OK && !fill_study_json(root, &sum))
    status = gl_fail_memory(err, "a JSON document");
  if (status == GL_OK) status = tell_sets(r, format, text, root, err);
  if (text && status == GL_OK) status = rest_of_text(&sum, format, text, err);
  summary_fini(&sum);
  results_free(r);
  return status;
}

gl_status analyze_study(store *s, const char *set, table_format format, FILE *text, cJSON **json,
                        gl_error *err) {
  char **names = NULL;
  size_t n = 0;
  gl_status status = results_studies(&names, &n, s, err);
  if (status != GL_OK) return status;
  cJSON *root = json ? cJSON_CreateObject() : NULL;
  cJSON *list = root && n > 1 ? cJSON_AddArrayToObject(root, "studies") : NULL;
  if (json && (!root || (n > 1 && !list))) status = gl_fail_memory(err, "a JSON document");
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    cJSON *one = list ? json_append_object(list) : root;
    if (json && !one) status = gl_fail_memory(err, "a JSON document");
    if (status == GL_OK) status = analyze_one(s, names[i], set, format, text, one, err);
  }
  free(names);
  if (!json) return status;
  if (status == GL_OK)
    *json = root;
  else
    cJSON_Delete(root);
  return status;
}
