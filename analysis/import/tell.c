/* Tables and JSON of gathered files. */
#include "analysis/import/tell.h"

#include "analysis/import/read.h"
#include "analysis/sets.h"
#include "analysis/statistics.h"
#include "analysis/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers of one series --- */

typedef struct numbers {
  const char *file, *label, *name, *metric, *tag;
  metric_direction better;
  int is_score, is_guessed;
  uint64_t seed;
  const double *step, *value; /* [n], borrowed or owned below */
  size_t n, n_all;
  double first, best, best_step, last, last_step, gap, mean;
} numbers;

typedef struct lines {
  numbers *line; /* [n], those of one run side by side */
  size_t n;
  double **owned; /* [n_owned] values of studies, as series */
  size_t n_owned;
  char **name; /* [n_name] of studies' runs, where the setting is a part of them */
  size_t n_name;
} lines;

static void compute(numbers *x) {
  const int lower = x->better == METRIC_LOWER_IS_BETTER;
  const series_ends e = series_ends_of(x->value, x->n, lower);
  const int has_best = x->better != METRIC_NEITHER_IS_BETTER;
  x->first = e.first;
  x->last = e.last;
  x->best = has_best ? e.best : NAN;
  x->gap = has_best ? e.best_to_last : NAN;
  x->mean = sample_mean(x->value, x->n);
  x->best_step = NAN;
  x->last_step = x->n > 0 ? x->step[x->n - 1] : NAN;
  for (size_t i = x->n; has_best && i-- > 0;)
    if (x->value[i] == e.best) x->best_step = x->step[i];
}

static int is_same_quantity(const numbers *a, const numbers *b) {
  return strcmp(a->label, b->label) == 0 && strcmp(a->name, b->name) == 0 &&
         strcmp(a->metric, b->metric) == 0;
}

/* Adds a line behind the last one of the same run, label and metric. */
static void add_line(lines *to, numbers x) {
  compute(&x);
  size_t at = to->n;
  while (at > 0 && !is_same_quantity(&to->line[at - 1], &x)) at--;
  if (at == 0) at = to->n;
  memmove(to->line + at + 1, to->line + at, (to->n - at) * sizeof *to->line);
  to->line[at] = x;
  to->n++;
}

static void lines_fini(lines *l) {
  for (size_t i = 0; i < l->n_owned; i++) free(l->owned[i]);
  for (size_t i = 0; i < l->n_name; i++) free(l->name[i]);
  free(l->owned), free(l->name), free(l->line);
  *l = (lines){0};
}

/* What a study's run is called: its algorithm, and with a label, which takes the setting's place,
 * the setting too, so that runs of several are not taken for seeds of one. NULL if memory is short.
 */
static const char *name_in_study(lines *to, const gathered_study *s, const results_run *run) {
  const char *algorithm = s->algorithms[run->algorithm];
  const char *heading = s->from->groups[run->group].heading;
  if (!*s->label || !*heading) return algorithm;
  const size_t size = strlen(algorithm) + strlen(heading) + 3;
  char *name = malloc(size);
  if (!name) return NULL;
  snprintf(name, size, "%s, %s", algorithm, heading);
  to->name[to->n_name++] = name;
  return name;
}

/* The evaluations of a study's run as a series. */
static gl_status add_study_run(lines *to, const gathered_study *s, const results_run *run,
                               gl_error *err) {
  double *step = calloc(run->n_evals + 1, sizeof *step);
  double *value = calloc(run->n_evals + 1, sizeof *value);
  to->owned[to->n_owned++] = step;
  to->owned[to->n_owned++] = value;
  const char *name = name_in_study(to, s, run);
  if (!step || !value || !name) return gl_fail_memory(err, "evaluations");
  size_t n = 0;
  for (size_t i = 0; i < run->n_evals; i++) {
    if (isnan(run->evals[i].eval_score)) continue;
    step[n] = (double)run->evals[i].step;
    value[n++] = run->evals[i].eval_score;
  }
  if (n > 0)
    add_line(to, (numbers){.file = s->file,
                           .label = *s->label ? s->label : s->from->groups[run->group].heading,
                           .name = name,
                           .metric = "eval_score",
                           .tag = "",
                           .is_score = 1,
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
  *to = (lines){.line = calloc(g->n_series + runs + 1, sizeof *to->line),
                .owned = calloc(2 * runs + 1, sizeof *to->owned),
                .name = calloc(runs + 1, sizeof *to->name)};
  if (!to->line || !to->owned || !to->name) return gl_fail_memory(err, "a table");
  gl_status status = GL_OK;
  for (size_t i = 0; i < g->n_studies; i++)
    for (size_t k = 0; k < g->studies[i].from->n_runs && status == GL_OK; k++)
      if (g->studies[i].from->runs[k].status != RUN_FAILED)
        status = add_study_run(to, &g->studies[i], &g->studies[i].from->runs[k], err);
  for (size_t i = 0; i < g->n_series && status == GL_OK; i++) {
    const gathered_series *s = &g->series[i];
    if (s->is_chosen && s->n > 0)
      add_line(to, (numbers){.file = s->file,
                             .label = s->label,
                             .name = s->name,
                             .metric = s->metric,
                             .tag = s->tag,
                             .better = s->what.better,
                             .is_score = s->what.is_score,
                             .is_guessed = s->what.is_guessed,
                             .seed = s->seed,
                             .step = s->step,
                             .value = s->value,
                             .n = s->n,
                             .n_all = s->n_all});
  }
  return status;
}

/* --- a run over its seeds --- */

/* How many lines from `first` on are of one run, label and metric. */
static size_t seeds_at(const lines *l, size_t first) {
  size_t n = 1;
  while (first + n < l->n && is_same_quantity(&l->line[first], &l->line[first + n])) n++;
  return n;
}

/* The numbers of a line that have a column each in the table of series. */
enum { BEST, LAST, GAP, MEAN, COLUMNS };

/* Their interquartile means over seeds, with intervals where there are several. */
static gl_status over_seeds(const lines *l, size_t first, size_t n, interval out[COLUMNS],
                            gl_error *err) {
  double *values = calloc(n, sizeof *values);
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
  free(values);
  return status;
}

/* --- the table of series --- */

static int has_labels(const lines *l) {
  for (size_t i = 0; i < l->n; i++)
    if (*l->line[i].label) return 1;
  return 0;
}

static int has_seeds(const lines *l) {
  for (size_t i = 0; i < l->n; i += seeds_at(l, i))
    if (seeds_at(l, i) > 1) return 1;
  return 0;
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

/* The table of series; of runs with several seeds a line for all of them. Columns are hidden that
 * say nothing. */
enum { OF_LABELS = 0, OF_SEEDS = 4 };
static const table_column series_columns[] = {TABLE_HEAD("label"),
                                              TABLE_HEAD("run"),
                                              TABLE_HEAD("metric"),
                                              TABLE_HEAD("better"),
                                              {.type = TABLE_WHOLE, .head = "seeds"},
                                              {.type = TABLE_WHOLE, .head = "n"},
                                              {.type = TABLE_INTERVAL, .head = "best"},
                                              {.type = TABLE_REAL, .head = "at", .format = "%.10g"},
                                              {.type = TABLE_INTERVAL, .head = "last"},
                                              {.type = TABLE_REAL, .head = "at", .format = "%.10g"},
                                              {.type = TABLE_INTERVAL, .head = "gap"},
                                              {.type = TABLE_INTERVAL, .head = "mean"}};

static gl_status put_series(table *t, const lines *l, size_t first, size_t n, gl_error *err) {
  const numbers *x = &l->line[first];
  interval v[COLUMNS];
  gl_status status = over_seeds(l, first, n, v, err);
  if (status != GL_OK) return status;
  table_row(t);
  table_text(t, *x->label ? x->label : NULL);
  table_text(t, x->name);
  table_text(t, x->metric);
  table_text(t, direction_word(x));
  table_count(t, n);
  table_count(t, x->n);
  interval_cell(t, v[BEST]);
  table_real(t, n == 1 ? x->best_step : NAN);
  interval_cell(t, v[LAST]);
  table_real(t, n == 1 ? x->last_step : NAN);
  interval_cell(t, v[GAP]);
  interval_cell(t, v[MEAN]);
  return GL_OK;
}

static gl_status report_series(table *to, const lines *l, gl_error *err) {
  const int seeds = has_seeds(l);
  table *t = table_rows(table_field(to, NULL), series_columns,
                        sizeof series_columns / sizeof *series_columns);
  gl_status status = GL_OK;
  int guessed = 0, shortened = 0;
  if (!has_labels(l)) table_hide_head(t, OF_LABELS);
  if (!seeds) table_hide_head(t, OF_SEEDS);
  for (size_t i = 0; i < l->n && status == GL_OK; i += seeds_at(l, i)) {
    status = put_series(t, l, i, seeds_at(l, i), err);
    guessed |= l->line[i].is_guessed && l->line[i].better == METRIC_HIGHER_IS_BETTER;
  }
  for (size_t i = 0; i < l->n; i++) shortened |= l->line[i].n < l->line[i].n_all;
  if (guessed || seeds || shortened)
    table_title(t, "Best, last and their gap%s%s%s.",
                seeds ? "; interquartile means over seeds with 95 % bootstrap intervals" : "",
                guessed ? "; higher?: nothing is known of the metric, --lower-is-better says the "
                          "opposite"
                        : "",
                shortened ? "; series end at the last step that all of their metric have" : "");
  return status;
}

/* --- benchmarks side by side --- */

/* Best and last of every run's scores, as the table of benchmarks wants them. */
static gl_status gather_benchmarks(benchmarks *b, const lines *l, gl_error *err) {
  benchmark_score *score = calloc(l->n + 1, sizeof *score);
  size_t n = 0;
  *b = (benchmarks){0};
  if (!score) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < l->n; i++) {
    const numbers *x = &l->line[i];
    if (x->is_score)
      score[n++] = (benchmark_score){x->name, x->label, x->seed, x->best, x->last, x->gap};
  }
  gl_status status = benchmarks_init(b, score, n, err);
  free(score);
  return status;
}

/* --- what a paper prints --- */

/* What a printed number is in the series. */
typedef enum printed_kind { PRINTED_NOWHERE, PRINTED_ELSEWHERE, PRINTED_AS_SAID } printed_kind;

typedef struct printed_place {
  printed_kind kind;
  double step; /* where the series has it */
} printed_place;

static printed_place place_of(const numbers *x, const published_number *printed, double expected,
                              double expected_step) {
  double largest = -INFINITY;
  for (size_t i = 0; i < x->n; i++) largest = fmax(largest, x->value[i]);
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

/* The verdict on a printed number, in words. */
static void verdict(char *to, size_t size, const numbers *x, const published_number *printed,
                    int is_best) {
  if (!printed->text) {
    snprintf(to, size, "nothing is printed");
    return;
  }
  const double expected = is_best ? x->best : x->last;
  const double step = is_best ? x->best_step : x->last_step;
  const printed_place at = place_of(x, printed, expected, step);
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

/* A printed number against the best or the last of the series. */
static void put_printed(table *t, const numbers *x, const published_number *printed, int is_best) {
  static const char *const kinds[] = {"nowhere", "elsewhere", "as said"};
  char words[160];
  const double value = is_best ? x->best : x->last;
  const printed_place at = place_of(x, printed, value, is_best ? x->best_step : x->last_step);
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
  for (size_t i = 0; i < p->n; i++) {
    const published_row *row = &p->row[i];
    const numbers *x = series_of(l, row);
    if (!x) {
      missing++;
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
  if (missing)
    table_title(t, "Printed numbers against the series. Printed, and not in these files: %zu.",
                missing);
}

/* --- for programs --- */

static const table_column run_columns[] = {
    TABLE_KEY("file", TABLE_TEXT),      TABLE_KEY("label", TABLE_TEXT),
    TABLE_KEY("run", TABLE_TEXT),       TABLE_KEY("tag", TABLE_TEXT),
    TABLE_KEY("metric", TABLE_TEXT),    TABLE_KEY("better", TABLE_JSON),
    TABLE_KEY("seed", TABLE_WHOLE),     TABLE_KEY("n", TABLE_WHOLE),
    TABLE_KEY("first", TABLE_REAL),     TABLE_KEY("best", TABLE_REAL),
    TABLE_KEY("best_step", TABLE_REAL), TABLE_KEY("last", TABLE_REAL),
    TABLE_KEY("last_step", TABLE_REAL), TABLE_KEY("best_to_last", TABLE_REAL),
    TABLE_KEY("mean", TABLE_REAL)};

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
  table_whole(t, (int64_t)x->seed);
  table_count(t, x->n);
  table_real(t, x->first);
  table_real(t, x->best);
  table_real(t, x->best_step);
  table_real(t, x->last);
  table_real(t, x->last_step);
  table_real(t, x->gap);
  table_real(t, x->mean);
}

/* Names the files, and returns the only one, or NULL where there are several. */
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

/* --- the whole --- */

gl_status tell_gathered(table *to, const gathered *g, const published *printed, gl_error *err) {
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
  benchmarks_fini(&b);
  lines_fini(&l);
  return status;
}

static gl_status tell_study(table *to, const char *path, const char *set, gl_error *err) {
  store *s = NULL;
  gl_status status = store_open(&s, path, STORE_READ, err);
  if (status == GL_OK) status = analyze_study(to, s, set, err);
  store_close(s);
  return status;
}

/* What the request asks for beside its files. */
static int has_options(const gather_request *q) {
  return q->n_labels || q->n_renames || q->n_read_as || q->group_by || q->metric || q->at_common ||
         q->lower_is_better;
}

gl_status tell_files(table *to, const gather_request *request, const published *printed,
                     gl_error *err) {
  int is_study = 0;
  gl_status status = GL_OK;
  if (request->n_files == 1) status = read_is_study(request->files[0], &is_study, err);
  if (status != GL_OK) return status;
  if (is_study && !has_options(request) && !request->each_set && !printed)
    return tell_study(to, request->files[0], request->set, err);
  if (is_study && !request->each_set)
    return gl_fail(err, GL_EINPUT,
                   "%s is a study, which says itself what its runs are; these options are for "
                   "exports, or for several files",
                   request->files[0]);
  gathered g;
  status = gather(&g, request, err);
  if (status == GL_OK) status = tell_gathered(to, &g, printed, err);
  gathered_fini(&g);
  return status;
}
