/* Reports gathered files as tables and JSON. */
#include "analysis/import/report.h"

#include "analysis/import/metric_names.h"

#include "analysis/analyze.h"
#include "analysis/evaluation_sets.h"
#include "analysis/import/read.h"
#include "analysis/statistics.h"
#include "core/base/file.h"
#include "core/base/records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- numbers of one series --- */

typedef struct numbers {
  const char *file, *label, *name, *metric, *tag;
  metric_direction better;
  bool is_score, is_guessed;
  uint64_t seed;
  const double *step, *value; /* [n], borrowed or owned below */
  size_t n, n_all;
  size_t not_finite;    /* number of cells that are NaN or infinite */
  bool ends_not_finite; /* 1: the last cell is NaN or infinite, so there is no last value and no gap
                         */
  double first, best, best_step, last, last_step, gap, mean;
} numbers;

typedef struct lines {
  numbers *line; /* [n] lines of the seeds of one run are adjacent */
  size_t n;
  arena memory; /* memory of the lines, and of the names and series of studies' runs */
} lines;

static double finite_mean(const double *value, size_t n) {
  double sum = 0;
  size_t kept = 0;
  for (size_t i = 0; i < n; i++)
    if (isfinite(value[i])) sum += value[i], kept++;
  return kept > 0 ? sum / (double)kept : NAN;
}

/* On entry not_finite counts NaN cells and ends_not_finite says whether the series ends in one;
 * infinite values are added here. */
static void compute_numbers(numbers *x) {
  const int lower = x->better == METRIC_LOWER_IS_BETTER;
  series_ends e = series_ends_of(x->value, x->n, lower);
  if (x->ends_not_finite) series_ends_without_last(&e);
  x->not_finite += e.not_finite;
  x->ends_not_finite = e.ends_not_finite;
  const int has_best = x->better != METRIC_NEITHER_IS_BETTER;
  x->first = e.first;
  x->last = e.last;
  x->best = has_best ? e.best : NAN;
  x->gap = has_best ? e.best_to_last : NAN;
  x->mean = finite_mean(x->value, x->n);
  x->best_step = NAN;
  x->last_step = x->n > 0 && !x->ends_not_finite ? x->step[x->n - 1] : NAN;
  for (size_t i = x->n; has_best && i-- > 0;)
    if (x->value[i] == e.best) x->best_step = x->step[i];
}

static bool is_same_quantity(const numbers *a, const numbers *b) {
  return strcmp(a->label, b->label) == 0 && strcmp(a->name, b->name) == 0 &&
         strcmp(a->metric, b->metric) == 0;
}

/* Inserts a line after the last one with the same run, label and metric. */
static void insert_numbers(lines *to, numbers x) {
  compute_numbers(&x);
  size_t at = to->n;
  while (at > 0 && !is_same_quantity(&to->line[at - 1], &x)) at--;
  if (at == 0) at = to->n;
  memmove(to->line + at + 1, to->line + at, (to->n - at) * sizeof *to->line);
  to->line[at] = x;
  to->n++;
}

/* Name of a study's run: its algorithm. If the user's label is printed instead of the setting's
 * heading, the setting is part of the name, so that runs of different settings are not taken for
 * seeds of one run. */
static const char *name_in_study(arena *m, const gathered_study *s, const results_run *run) {
  const char *algorithm = s->algorithms[run->algorithm];
  const char *heading = s->from->groups[run->group].heading;
  if (!*s->label || !*heading) return algorithm;
  char *name = ARENA_ARRAY(m, char, strlen(algorithm) + strlen(heading) + 3);
  if (name) sprintf(name, "%s, %s", algorithm, heading);
  return name;
}

/* Adds the evaluations of a study's run as a series. */
static gl_status add_study_run(lines *to, const gathered_study *s, const results_run *run,
                               gl_error *err) {
  double *step = ARENA_ARRAY(&to->memory, double, run->n_evals);
  double *value = ARENA_ARRAY(&to->memory, double, run->n_evals);
  const char *name = name_in_study(&to->memory, s, run);
  if (to->memory.failed) return gl_fail_memory(err, "evaluations");
  size_t n = 0;
  const bool is_broken = results_run_is_not_finite(run);
  for (size_t i = 0; i < run->n_evals; i++) {
    if (isnan(run->evals[i].eval_score)) continue;
    step[n] = (double)run->evals[i].step;
    value[n++] = run->evals[i].eval_score;
  }
  if (n > 0)
    insert_numbers(to,
                   (numbers){.file = s->file,
                             .label = *s->label ? s->label : s->from->groups[run->group].heading,
                             .name = name,
                             .metric = "eval_score",
                             .tag = "",
                             .is_score = 1,
                             .not_finite = is_broken,
                             .ends_not_finite = is_broken,
                             .seed = run->seed,
                             .step = step,
                             .value = value,
                             .n = n,
                             .n_all = n});
  return GL_OK;
}

static gl_status lines_init(lines *to, const gathered *g, gl_error *err) {
  size_t runs = 0;
  for (size_t i = 0; i < g->n_studies; i++) runs += g->studies[i].from->n_runs;
  *to = (lines){0};
  to->line = ARENA_ARRAY(&to->memory, numbers, g->n_series + runs);
  if (!to->line) return gl_fail_memory(err, "a table");
  gl_status status = GL_OK;
  for (size_t i = 0; i < g->n_studies; i++)
    for (size_t k = 0; k < g->studies[i].from->n_runs && status == GL_OK; k++)
      if (g->studies[i].from->runs[k].status != RUN_FAILED)
        status = add_study_run(to, &g->studies[i], &g->studies[i].from->runs[k], err);
  for (size_t i = 0; i < g->n_series && status == GL_OK; i++) {
    const gathered_series *s = &g->series[i];
    bool at_end;
    const size_t nan = gathered_nan(s, &at_end);
    if (s->is_chosen && s->n + nan > 0)
      insert_numbers(to, (numbers){.file = s->file,
                                   .label = s->label,
                                   .name = s->name,
                                   .metric = s->metric,
                                   .tag = s->tag,
                                   .better = s->what.better,
                                   .is_score = s->what.is_score,
                                   .is_guessed = s->what.is_guessed,
                                   .not_finite = nan,
                                   .ends_not_finite = at_end,
                                   .seed = s->seed,
                                   .step = s->step,
                                   .value = s->value,
                                   .n = s->n,
                                   .n_all = s->n_all});
  }
  return status;
}

/* --- a run over its seeds --- */

/* Number of lines from `first` on with the same run, label and metric. */
static size_t seeds_at(const lines *l, size_t first) {
  size_t n = 1;
  while (first + n < l->n && is_same_quantity(&l->line[first], &l->line[first + n])) n++;
  return n;
}

/* The columns of the table of series that hold numbers of a line. */
enum { BEST, LAST, GAP, MEAN, COLUMNS };

/* Interquartile means of these numbers over seeds, with intervals if there are several. */
static gl_status line_over_seeds(lines *l, size_t first, size_t n, interval out[COLUMNS],
                                 gl_error *err) {
  double *values = ARENA_ARRAY(&l->memory, double, n);
  if (!values) return gl_fail_memory(err, "seeds");
  gl_status status = GL_OK;
  for (size_t c = 0; c < COLUMNS && status == GL_OK; c++) {
    for (size_t i = 0; i < n; i++) {
      const numbers *x = &l->line[first + i];
      const double all[COLUMNS] = {
          [BEST] = x->best, [LAST] = x->last, [GAP] = x->gap, [MEAN] = x->mean};
      values[i] = all[c];
    }
    status = iqm_bootstrap(
        values, &n, 1, rng_stream_at(BOOTSTRAP_SEED, RNG_BOOTSTRAP, (uint64_t)first), &out[c], err);
  }
  return status;
}

/* --- the table of series --- */

static bool any_labels(const lines *l) {
  for (size_t i = 0; i < l->n; i++)
    if (*l->line[i].label) return true;
  return false;
}

static bool has_seeds(const lines *l) {
  for (size_t i = 0; i < l->n; i += seeds_at(l, i))
    if (seeds_at(l, i) > 1) return true;
  return false;
}

static const char *direction_word(const numbers *x) {
  switch (x->better) {
  case METRIC_HIGHER_IS_BETTER:
    return x->is_guessed ? "higher?" : "higher";
  case METRIC_LOWER_IS_BETTER:
    return "lower";
  case METRIC_NEITHER_IS_BETTER:
    return "–";
  }
  return "–";
}

/* The table of series, with one line for all seeds of a run. Columns without information are
 * hidden. */
enum { OF_LABELS = 0, OF_SEEDS = 4, OF_NOT_FINITE = 6 };
static const table_column series_columns[] = {TABLE_HEAD("label"),
                                              TABLE_HEAD("run"),
                                              TABLE_HEAD("metric"),
                                              TABLE_HEAD("better"),
                                              {.type = TABLE_INTEGER, .head = "seeds"},
                                              {.type = TABLE_INTEGER, .head = "n"},
                                              {.type = TABLE_INTEGER, .head = "not finite"},
                                              {.type = TABLE_INTERVAL, .head = "best"},
                                              {.type = TABLE_REAL, .head = "at", .format = "%.10g"},
                                              {.type = TABLE_INTERVAL, .head = "last"},
                                              {.type = TABLE_REAL, .head = "at", .format = "%.10g"},
                                              {.type = TABLE_INTERVAL, .head = "gap"},
                                              {.type = TABLE_INTERVAL, .head = "run mean"}};

/* Writes how many values of the line are not finite, and for how many seeds the last is not. */
static void put_not_finite(table *t, const numbers *x, size_t n) {
  size_t values = 0, ends = 0;
  for (size_t i = 0; i < n; i++) values += x[i].not_finite, ends += x[i].ends_not_finite;
  table_count(t, values);
  if (n > 1 && ends > 0) table_shown(t, "%zu (%zu seeds end so)", values, ends);
}

/* Writes a value of the line; unknown if the last value of every seed is not finite. */
static void put_end(table *t, const numbers *x, size_t n, interval v) {
  bool all = true;
  for (size_t i = 0; i < n; i++) all &= x[i].ends_not_finite;
  interval_cell(t, v);
  if (all) table_shown(t, "not finite");
}

static gl_status put_series_line(table *t, lines *l, size_t first, size_t n, gl_error *err) {
  const numbers *x = &l->line[first];
  interval v[COLUMNS];
  gl_status status = line_over_seeds(l, first, n, v, err);
  if (status != GL_OK) return status;
  table_row(t);
  table_text(t, *x->label ? x->label : NULL);
  table_text(t, x->name);
  table_text(t, x->metric);
  table_text(t, direction_word(x));
  table_count(t, n);
  table_count(t, x->n);
  put_not_finite(t, x, n);
  interval_cell(t, v[BEST]);
  table_real(t, n == 1 ? x->best_step : NAN);
  put_end(t, x, n, v[LAST]);
  table_real(t, n == 1 ? x->last_step : NAN);
  put_end(t, x, n, v[GAP]);
  interval_cell(t, v[MEAN]);
  return GL_OK;
}

static gl_status report_series(table *to, lines *l, gl_error *err) {
  const int seeds = has_seeds(l);
  table *t = table_rows(table_field(to, NULL), series_columns,
                        sizeof series_columns / sizeof *series_columns);
  gl_status status = GL_OK;
  int guessed = 0, shortened = 0, broken = 0;
  if (!any_labels(l)) table_hide_head(t, OF_LABELS);
  if (!seeds) table_hide_head(t, OF_SEEDS);
  for (size_t i = 0; i < l->n && status == GL_OK; i += seeds_at(l, i)) {
    status = put_series_line(t, l, i, seeds_at(l, i), err);
    guessed |= l->line[i].is_guessed && l->line[i].better == METRIC_HIGHER_IS_BETTER;
  }
  for (size_t i = 0; i < l->n; i++) {
    shortened |= l->line[i].n < l->line[i].n_all;
    broken |= l->line[i].not_finite > 0;
  }
  if (!broken) table_hide_head(t, OF_NOT_FINITE);
  if (guessed || seeds || shortened || broken)
    table_title(
        t, "Best, last and their gap%s%s%s%s.",
        seeds ? "; interquartile means over seeds with 95 % bootstrap intervals (of fewer than "
                "five seeds their range), also of the runs' "
                "own means"
              : "",
        guessed ? "; higher?: nothing is known of the metric, --lower-is-better says the "
                  "opposite"
                : "",
        shortened ? "; series end at the last step that all of their metric have" : "",
        broken ? "; not finite: values that are NaN or infinite. They are never the best "
                 "and in no mean, and a run that ends with one has no last value and no "
                 "gap"
               : "");
  return status;
}

/* --- benchmarks side by side --- */

/* Collects best and last of every run's scores for the table of benchmarks. */
static gl_status gather_benchmarks(benchmarks *b, lines *l, gl_error *err) {
  benchmark_score *score = ARENA_ARRAY(&l->memory, benchmark_score, l->n);
  size_t n = 0;
  *b = (benchmarks){0};
  if (!score) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < l->n; i++) {
    const numbers *x = &l->line[i];
    if (x->is_score)
      score[n++] = (benchmark_score){x->name, x->label, x->seed, x->best, x->last, x->gap};
  }
  return benchmarks_init(b, score, n, err);
}

/* --- printed numbers against the series --- */

/* How a printed number relates to the series. */
typedef enum printed_kind { PRINTED_NOWHERE, PRINTED_ELSEWHERE, PRINTED_AS_SAID } printed_kind;

typedef struct printed_place {
  printed_kind kind;
  double step; /* step at which the series has the number */
} printed_place;

static printed_place find_printed(const numbers *x, const published_number *printed,
                                  double expected, double expected_step) {
  double largest = -INFINITY;
  for (size_t i = 0; i < x->n; i++)
    if (isfinite(x->value[i])) largest = fmax(largest, x->value[i]);
  if (published_agrees(printed, expected, largest))
    return (printed_place){PRINTED_AS_SAID, expected_step};
  for (size_t i = x->n; i-- > 0;)
    if (published_agrees(printed, x->value[i], largest))
      return (printed_place){PRINTED_ELSEWHERE, x->step[i]};
  return (printed_place){PRINTED_NOWHERE, NAN};
}

static const numbers *series_of(const lines *l, const published_row *p) {
  for (size_t i = 0; i < l->n; i++)
    if (l->line[i].is_score && strcmp(l->line[i].name, p->run) == 0 &&
        (!*p->benchmark || strcmp(l->line[i].label, p->benchmark) == 0))
      return &l->line[i];
  return NULL;
}

/* Describes the result of the comparison in words. */
static void verdict(char *to, size_t size, const numbers *x, const published_number *printed,
                    int is_best) {
  if (!printed->text) {
    snprintf(to, size, "nothing is printed");
    return;
  }
  const double expected = is_best ? x->best : x->last;
  const double step = is_best ? x->best_step : x->last_step;
  const printed_place at = find_printed(x, printed, expected, step);
  const char *what = !is_best                              ? "last"
                     : x->better == METRIC_LOWER_IS_BETTER ? "minimum"
                                                           : "maximum";
  switch (at.kind) {
  case PRINTED_AS_SAID:
    snprintf(to, size, "the %s", what);
    break;
  case PRINTED_ELSEWHERE:
    snprintf(to, size, "not the %s: the value at %.10g", what, at.step);
    break;
  case PRINTED_NOWHERE:
    snprintf(to, size, "not the %s, and nowhere in the series", what);
    break;
  }
}

static const table_column published_columns[] = {
    {"run", TABLE_TEXT, .head = "run"},
    {"benchmark", TABLE_TEXT, .head = "benchmark"},
    {"best/printed", TABLE_TEXT, .head = "printed best"},
    {"best/is", TABLE_REAL, .head = "best"},
    TABLE_KEY("best/found", TABLE_TEXT),
    TABLE_KEY("best/step", TABLE_REAL),
    {.type = TABLE_REAL, .head = "at", .format = "%.10g"},
    TABLE_HEAD("it is"),
    {"last/printed", TABLE_TEXT, .head = "printed last"},
    {"last/is", TABLE_REAL, .head = "last"},
    TABLE_KEY("last/found", TABLE_TEXT),
    TABLE_KEY("last/step", TABLE_REAL),
    TABLE_HEAD("it is")};

/* Compares a printed number with the best or the last value of the series. */
static void put_printed(table *t, const numbers *x, const published_number *printed, int is_best) {
  static const char *const kinds[] = {[PRINTED_NOWHERE] = "nowhere",
                                      [PRINTED_ELSEWHERE] = "elsewhere",
                                      [PRINTED_AS_SAID] = "as said"};
  char words[160];
  const double value = is_best ? x->best : x->last;
  const printed_place at = find_printed(x, printed, value, is_best ? x->best_step : x->last_step);
  table_text(t, printed->text ? printed->text : "");
  if (!printed->text) table_shown(t, "–");
  table_real(t, value);
  table_text(t, printed->text ? kinds[at.kind] : "");
  table_real(t, at.step);
  if (is_best) table_real(t, x->best_step);
  verdict(words, sizeof words, x, printed, is_best);
  table_text(t, words);
}

static void report_published(table *to, const published *p, const lines *l) {
  table *t = table_rows(table_field(to, "published"), published_columns,
                        sizeof published_columns / sizeof *published_columns);
  size_t missing = 0;
  const published_row *first = NULL; /* of those without a series */
  for (size_t i = 0; i < p->n; i++) {
    const published_row *row = &p->row[i];
    const numbers *x = series_of(l, row);
    if (!x) {
      if (missing++ == 0) first = row;
      continue;
    }
    table_row(t);
    table_text(t, row->run);
    table_text(t, row->benchmark);
    if (!*row->benchmark) table_shown(t, "–");
    put_printed(t, x, &row->best, 1);
    put_printed(t, x, &row->last, 0);
  }
  table_title(t, "Printed numbers against the series.");
  if (missing == 0) return;
  table_title(t, "Printed numbers against the series. Printed, and not in these files: %zu.",
              missing);
  table_line(to, "Not in these files: run %s%s%s.%s", first->run,
             *first->benchmark ? ", benchmark " : "", first->benchmark,
             *first->benchmark ? " A file's benchmark is its label: --label FILE=BENCHMARK." : "");
}

/* --- for programs --- */

static const table_column run_columns[] = {TABLE_KEY("file", TABLE_TEXT),
                                           TABLE_KEY("label", TABLE_TEXT),
                                           TABLE_KEY("run", TABLE_TEXT),
                                           TABLE_KEY("tag", TABLE_TEXT),
                                           TABLE_KEY("metric", TABLE_TEXT),
                                           TABLE_KEY("better", TABLE_JSON),
                                           TABLE_KEY("seed", TABLE_INTEGER),
                                           TABLE_KEY("n", TABLE_INTEGER),
                                           TABLE_KEY("first", TABLE_REAL),
                                           TABLE_KEY("best", TABLE_REAL),
                                           TABLE_KEY("best_step", TABLE_REAL),
                                           TABLE_KEY("last", TABLE_REAL),
                                           TABLE_KEY("last_step", TABLE_REAL),
                                           TABLE_KEY("best_to_last", TABLE_REAL),
                                           TABLE_KEY("mean", TABLE_REAL),
                                           TABLE_KEY("not_finite", TABLE_INTEGER),
                                           TABLE_KEY("ends_not_finite", TABLE_JSON)};

static void put_run(table *t, const numbers *x) {
  table_row(t);
  table_text(t, x->file);
  table_text(t, x->label);
  table_text(t, x->name);
  table_text(t, x->tag);
  table_text(t, x->metric);
  table_json(t, x->better == METRIC_NEITHER_IS_BETTER ? cJSON_CreateNull()
                : x->better == METRIC_LOWER_IS_BETTER ? cJSON_CreateString("lower")
                                                      : cJSON_CreateString("higher"));
  table_integer(t, (int64_t)x->seed);
  table_count(t, x->n);
  table_real(t, x->first);
  table_real(t, x->best);
  table_real(t, x->best_step);
  table_real(t, x->last);
  table_real(t, x->last_step);
  table_real(t, x->gap);
  table_real(t, x->mean);
  table_count(t, x->not_finite);
  table_json(t, cJSON_CreateBool(x->ends_not_finite));
}

/* Lists the files. Returns the only one, or NULL if there are several. */
static const char *report_files(table *to, const gathered *g) {
  const char *last = NULL;
  size_t n = 0;
  table *files = table_list(table_field(to, "files"));
  for (size_t i = 0; i < g->n_studies + g->n_series; i++) {
    const char *file = i < g->n_studies ? g->studies[i].file : g->series[i - g->n_studies].file;
    if (last && strcmp(last, file) == 0) continue;
    table_text(table_field(files, ""), file);
    last = file;
    n++;
  }
  return n == 1 ? last : NULL;
}

/* Reports data that reading left out or replaced, and the definitions by which the trainers count.
 */
static void report_read_notes(table *to, const gathered *g) {
  table *notes = table_list(table_field(to, "notes"));
  for (size_t i = 0; i < g->n_notes; i++) {
    table_text(table_field(notes, ""), g->notes[i]);
    table_line(to, "note: %s", g->notes[i]);
  }
}

static const table_column definition_columns[] = {{"metric", TABLE_TEXT, .head = "", .width = -50},
                                                  {"read_as", TABLE_TEXT, .head = "", .width = -15},
                                                  {"definition", TABLE_TEXT, .head = ""},
                                                  TABLE_KEY("system", TABLE_TEXT),
                                                  TABLE_KEY("source", TABLE_TEXT)};

static bool is_first_of_metric(const gathered *g, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (strcmp(g->series[k].metric, g->series[i].metric) == 0) return false;
  return true;
}

/* The definitions of metrics that are read as metrics of gepolab. */
static void report_definitions(table *to, const gathered *g) {
  table *t = NULL;
  for (size_t i = 0; i < g->n_series; i++) {
    const foreign_metric *f = foreign_find(g->series[i].metric);
    if (!f || f->known == METRIC_COUNT || !is_first_of_metric(g, i)) continue;
    if (!t) {
      table_line(to, "%s", "");
      table_line(to, "%s",
                 "What the trainers count by these names, and which metric each is read as:");
      t = table_rows(table_field(to, "definitions"), definition_columns,
                     sizeof definition_columns / sizeof *definition_columns);
      table_plain(t, 0);
    }
    table_row(t);
    table_text(t, f->name), table_text(t, metric_about(f->known)->name);
    table_text(t, f->definition), table_text(t, f->system), table_text(t, f->source);
  }
}

/* --- entry points --- */

/* Reports gathered files; see report_analysis(). */
static gl_status report_gathered(table *to, const gathered *g, const published *printed,
                                 gl_error *err) {
  lines l = {0};
  benchmarks b = {0};
  gl_status status = lines_init(&l, g, err);
  if (status == GL_OK) status = gather_benchmarks(&b, &l, err);
  if (status == GL_OK) status = report_series(to, &l, err);
  if (status == GL_OK) {
    const char *only = report_files(to, g);
    table *runs =
        table_rows(table_field(to, "runs"), run_columns, sizeof run_columns / sizeof *run_columns);
    for (size_t i = 0; i < l.n; i++) put_run(runs, &l.line[i]);
    if (only) table_text(table_field(to, "file"), only);
  }
  if (status == GL_OK && b.n_benchmarks > 1) {
    table_line(to, "%s", "");
    benchmarks_report(to, &b, "run", "Best and last by label");
  }
  if (status == GL_OK && printed) {
    table_line(to, "%s", "");
    report_published(to, printed, &l);
  }
  if (status == GL_OK) {
    report_definitions(to, g);
    report_read_notes(to, g);
  }
  benchmarks_fini(&b);
  arena_fini(&l.memory);
  return status;
}

static gl_status report_study(table *to, const char *path, const char *set, gl_error *err) {
  store *s = NULL;
  gl_status status = store_open(&s, path, STORE_READ, err);
  if (status == GL_OK) status = analyze_study(to, s, set, err);
  store_close(s);
  return status;
}

/* Returns an option of the request other than its files; NULL: there is none. */
static const char *option_given(const gather_request *q) {
  return q->metric            ? "--metric"
         : q->n_labels        ? "--label"
         : q->n_renames       ? "--rename"
         : q->n_read_as       ? "--read-as"
         : q->group_by        ? "--group-by"
         : q->at_common       ? "--at"
         : q->lower_is_better ? "--lower-is-better"
         : q->shape.step      ? "--x"
         : q->shape.format    ? "--log-format"
                              : NULL;
}

gl_status report_analysis(table *to, const gather_request *request, const published *printed,
                          gl_error *err) {
  int is_study = 0;
  gl_status status = GL_OK;
  if (request->n_files == 1 && !file_is_folder(request->files[0]))
    status = read_is_study(request->files[0], &is_study, err);
  if (status != GL_OK) return status;
  if (is_study && option_given(request) == NULL && !request->each_set && !printed)
    return report_study(to, request->files[0], request->set, err);
  if (is_study && !request->each_set)
    return gl_fail(err, GL_EINPUT,
                   "%s is a study, which says itself what its runs are; leave %s out, which is for "
                   "exports, or for several files (`gepolab study export -t steps` has its "
                   "metrics)",
                   request->files[0], printed ? "--published" : option_given(request));
  gathered g;
  status = gather(&g, request, err);
  if (status == GL_OK) status = report_gathered(to, &g, printed, err);
  gathered_fini(&g);
  return status;
}

/* --- reading numbers printed in a paper --- */

void published_fini(published *p) {
  arena_fini(&p->memory);
  *p = (published){0};
}

static size_t column_named(const sheet *s, const char *name) {
  size_t i = 0;
  while (i < s->n_columns && strcasecmp(s->heading[i], name) != 0) i++;
  return i;
}

/* Half a unit of the last digit: 0.05 for "75.2". */
static double half_unit(const char *text) {
  const char *point = strchr(text, '.');
  const size_t digits = point ? strspn(point + 1, "0123456789") : 0;
  return 0.5 * pow(10, -(double)digits);
}

static gl_status read_printed(published_number *to, arena *m, const sheet *s, size_t row,
                              size_t column, gl_error *err) {
  const char *text = sheet_text(s, row, column);
  *to = (published_number){.value = NAN};
  if (!text || strcmp(text, "-") == 0 || strcmp(text, "–") == 0) return GL_OK;
  const size_t n = strlen(text);
  to->text = arena_text(m, text);
  char *number = arena_text(m, text);
  if (!number) return gl_fail_memory(err, "printed numbers");
  if (n > 1 && number[n - 1] == '%') {
    number[n - 1] = '\0';
    to->is_percent = 1;
  }
  if (!csv_number(number, &to->value) || !isfinite(to->value))
    return sheet_fail(s, row, column, err,
                      "'%.40s' is not a printed number; write it as 0.752 or 75.2, or leave the "
                      "cell empty",
                      text);
  to->half = half_unit(number);
  return GL_OK;
}

static gl_status read_published_rows(published *p, const sheet *s, gl_error *err) {
  const size_t run = column_named(s, "run"), benchmark = column_named(s, "benchmark"),
               best = column_named(s, "best"), last = column_named(s, "last");
  if (run == s->n_columns || best == s->n_columns || last == s->n_columns)
    return gl_fail(err, GL_EINPUT,
                   "%s:1:1: printed numbers need the columns run, best and last, and benchmark "
                   "where there are several",
                   s->name);
  p->row = ARENA_ARRAY(&p->memory, published_row, s->n_rows);
  if (!p->row) return gl_fail_memory(err, "printed numbers");
  gl_status status = GL_OK;
  for (size_t i = 0; i < s->n_rows && status == GL_OK; i++) {
    const char *name = sheet_text(s, i, run);
    const char *set = benchmark < s->n_columns ? sheet_text(s, i, benchmark) : NULL;
    published_row *to = &p->row[p->n++];
    if (!name) return sheet_fail(s, i, run, err, "the line names no run");
    to->run = arena_text(&p->memory, name);
    to->benchmark = arena_text(&p->memory, set ? set : "");
    status = read_printed(&to->best, &p->memory, s, i, best, err);
    if (status == GL_OK) status = read_printed(&to->last, &p->memory, s, i, last, err);
  }
  return status == GL_OK ? arena_check(&p->memory, "printed numbers", err) : status;
}

gl_status published_read(published *out, const char *path, gl_error *err) {
  sheet s;
  *out = (published){0};
  gl_status status = read_rows(&s, path, NULL, err);
  if (status == GL_OK) status = read_published_rows(out, &s, err);
  sheet_fini(&s);
  return status;
}

bool published_agrees(const published_number *printed, double value, double largest) {
  const int scales = printed->is_percent ? largest <= 1 : largest <= 1 && printed->value > 1;
  const double scale = scales ? 100 : 1;
  return fabs(value * scale - printed->value) <= printed->half * (1 + 1e-9);
}
