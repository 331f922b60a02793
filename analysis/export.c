/* Tables computed from a study's runs: a record for each run, and one for each cell. */
#include "analysis/export.h"

#include "analysis/evaluation_sets.h"
#include "analysis/statistics.h"
#include "analysis/summary.h"
#include "core/base/file.h"
#include "core/base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the list of tables --- */

#define NUMBER(name, unit, about) TABLE_FIELD(name, TABLE_REAL, unit, about)
#define INTEGER(name, unit, about) TABLE_FIELD(name, TABLE_INTEGER, unit, about)
#define INTERVAL(name, unit, about)                                                                \
  NUMBER(name, unit, "interquartile mean over seeds of " about),                                   \
      NUMBER(name "_low", unit,                                                                    \
             "lower end of its 95 % bootstrap interval; of fewer than five values the smallest"),  \
      NUMBER(name "_high", unit,                                                                   \
             "upper end of its 95 % bootstrap interval; of fewer than five values the largest")
#define END TABLE_FIELD(NULL, TABLE_TEXT, "", "")

static const table_column summary_columns[] = {
    INTEGER("cell", "", "number of the run's cell in `cells`; empty where `is_repeat`"),
    TABLE_FIELD("is_repeat", TABLE_FLAG, "",
                "true: its recipe means the same as another run's of the same seed, so that it is "
                "no second "
                "draw and counts in no cell"),
    TABLE_FIELD("status", TABLE_TEXT, "",
                "`done`, `diverged` (a result) or `failed` (an accident)"),
    INTEGER("updates", "updates", "that the learner made"),
    INTEGER("evaluations", "", "how many there were"),
    NUMBER("eval_first", "", "score of the first evaluation"),
    NUMBER("best", "", "largest score"),
    INTEGER("best_step", "updates", "made before the first evaluation with the largest score"),
    NUMBER("last", "", "score of the last evaluation"),
    NUMBER("best_to_last", "", "best minus last"),
    INTEGER("diverged_step", "updates",
            "made when the run was found to diverge; empty if it was not"),
    NUMBER("staleness", "versions", "mean over updates of the metric of that name"),
    NUMBER("kl_exact", "nat", "mean over updates; KL(p||q) per response, enumerable worlds"),
    NUMBER("kl_k3_seq", "nat", "mean over updates; estimate of KL(q||p) per response"),
    NUMBER("log_iw_variance_pq", "", "median over updates"),
    NUMBER("log_iw_variance_gepo", "", "median over updates"),
    NUMBER("estimation_error", "", "mean over updates"),
    NUMBER("simulated_s", "s", "from the start to the end of the last update"),
    NUMBER("learner_utilisation", "", "fraction of that time at work, 0 to 1"),
    NUMBER("sampler_utilisation", "", "the same, mean over samplers"),
    NUMBER("samples_per_s", "1/s", "responses trained per simulated second"),
    NUMBER("staleness_mean", "versions", "over trained batches"),
    NUMBER("staleness_p50", "versions", "median over trained batches"),
    NUMBER("staleness_p95", "versions", "95 % quantile over trained batches"),
    NUMBER("staleness_max", "versions", "largest of a trained batch"),
    END};
static const table_column cells_columns[] = {
    INTEGER("done", "runs", "that ended"),
    INTEGER("diverged", "runs", "that diverged; they count with what they had reached"),
    INTEGER("failed", "runs", "that failed and are left out"),
    INTERVAL("best", "", "`best` in `summary`"),
    INTERVAL("last", "", "`last` in `summary`"),
    INTERVAL("best_to_last", "", "`best_to_last` in `summary`"),
    INTERVAL("staleness", "versions", "`staleness` in `summary`"),
    INTERVAL("kl_exact", "nat", "`kl_exact` in `summary`"),
    INTERVAL("kl_k3_seq", "nat", "`kl_k3_seq` in `summary`, if the study has no kl_exact"),
    INTERVAL("log_iw_variance_pq", "", "`log_iw_variance_pq` in `summary`"),
    INTERVAL("log_iw_variance_gepo", "", "`log_iw_variance_gepo` in `summary`"),
    INTERVAL("estimation_error", "", "`estimation_error` in `summary`"),
    NUMBER("samples_per_s", "1/s", "mean over runs"),
    NUMBER("learner_utilisation", "", "mean over runs"),
    NUMBER("sampler_utilisation", "", "mean over runs"),
    END};

static const export_table summary_table = {
    .name = "summary",
    .about = "a record for each run: its score, staleness, divergence and clock in numbers",
    .lead = EXPORT_OF_RUNS,
    .key = "key",
    .columns = summary_columns};
static const export_table cells_table = {
    .name = "cells",
    .about = "a record for each cell, that is the runs which differ in nothing but their seed",
    .lead = EXPORT_OF_CELLS,
    .key = "cell",
    .columns = cells_columns};

/* The computed tables come after `runs`. */
const export_table *study_export_at(size_t i) {
  if (i == 0) return store_export_at(0);
  if (i == 1) return &summary_table;
  return i == 2 ? &cells_table : store_export_at(i - 2);
}

/* --- one study of the file --- */

/* A run of the export list with its results and its cell. */
typedef struct known_run {
  const results_run *run;
  size_t cell; /* number of the cell in the study, from 1; 0: a repeat, which is in no cell */
} known_run;

typedef struct one_study {
  const run_list *list;
  size_t first, end;   /* range of its runs in the list */
  size_t cells_before; /* number of cells in earlier studies */
  results *from;
  summary sum;
  known_run *known; /* [end - first] in the order of the list */
  double *scratch;  /* length: steps or evaluations of the longest run */
  arena memory;
} one_study;

static void one_study_fini(one_study *o) {
  summary_fini(&o->sum);
  results_free(o->from);
  arena_fini(&o->memory);
}

static int compare_keys(const void *a, const void *b) {
  return strcmp(((const known_run *)a)->run->key, ((const known_run *)b)->run->key);
}

/* Collects the runs of the results and their repeats, sorted by key. Returns their number. */
static size_t known_runs(const one_study *o, known_run *of) {
  size_t n = 0;
  for (size_t c = 0; c < o->sum.n_cells; ++c) {
    const results_cell *cell = o->sum.cells[c].cell;
    for (size_t i = 0; i < cell->n; ++i)
      of[n++] = (known_run){&o->from->runs[cell->first + i], c + 1};
  }
  for (size_t i = 0; i < o->from->n_repeats; ++i) of[n++] = (known_run){&o->from->repeats[i], 0};
  qsort(of, n, sizeof *of, compare_keys);
  return n;
}

/* Fills known[]: for each run of the list its results and its cell. The list and the results come
 * from the same state of the file. */
static gl_status match_runs(one_study *o, gl_error *err) {
  const size_t n = o->from->n_runs + o->from->n_repeats;
  known_run *of = ARENA_ARRAY(&o->memory, known_run, n);
  gl_status status = arena_check(&o->memory, "the runs of a study", err);
  if (status == GL_OK) known_runs(o, of);
  for (size_t i = o->first; i < o->end && status == GL_OK; ++i) {
    const results_run wanted = {.key = (char *)o->list->run[i].key};
    const known_run key = {&wanted, 0};
    const known_run *found = bsearch(&key, of, n, sizeof *of, compare_keys);
    if (found != NULL)
      o->known[i - o->first] = *found;
    else
      status = gl_fail(err, GL_EINTERNAL, "run %s is in the list of runs and in no result",
                       o->list->run[i].key);
  }
  return status;
}

static size_t longest(const results_run *run, size_t n, size_t so_far) {
  for (size_t i = 0; i < n; ++i) {
    if (run[i].n_steps > so_far) so_far = run[i].n_steps;
    if (run[i].n_evals > so_far) so_far = run[i].n_evals;
  }
  return so_far;
}

static gl_status one_study_init(one_study *o, store *s, const run_list *list, size_t first,
                                size_t cells_before, gl_error *err) {
  *o = (one_study){.list = list, .first = first, .end = first, .cells_before = cells_before};
  while (o->end < list->n && strcmp(list->run[o->end].study, list->run[first].study) == 0) ++o->end;
  o->known = ARENA_ARRAY(&o->memory, known_run, o->end - first);
  gl_status status = arena_check(&o->memory, "the runs of a study", err);
  if (status == GL_OK) status = results_load(&o->from, s, list->run[first].study, err);
  if (status == GL_OK) status = summary_init(&o->sum, o->from, err);
  if (status == GL_OK) status = match_runs(o, err);
  if (status != GL_OK) return status;
  const size_t room =
      longest(o->from->repeats, o->from->n_repeats, longest(o->from->runs, o->from->n_runs, 1));
  o->scratch = ARENA_ARRAY(&o->memory, double, room);
  return arena_check(&o->memory, "the runs of a study", err);
}

/* --- a record for each run --- */

static void put_step_if(records_writer *w, int known, int64_t step) {
  if (known)
    records_integer(w, step);
  else
    records_missing(w);
}

static void put_run_scores(records_writer *w, const results_run *run) {
  size_t best = 0;
  const series_ends ends = sets_score_ends(run, false);
  while (best < run->n_evals && !(run->evals[best].eval_score == ends.best)) ++best;
  records_number(w, ends.first);
  records_number(w, ends.best);
  put_step_if(w, best < run->n_evals, best < run->n_evals ? run->evals[best].step : 0);
  records_number(w, ends.last);
  records_number(w, ends.best_to_last);
}

static void put_metrics(records_writer *w, const results_run *run, double *scratch) {
  static const metric shown[] = {METRIC_STALENESS,
                                 METRIC_KL_EXACT,
                                 METRIC_KL_K3_SEQ,
                                 METRIC_LOG_IW_VARIANCE_PQ,
                                 METRIC_LOG_IW_VARIANCE_GEPO,
                                 METRIC_ESTIMATION_ERROR};
  for (size_t i = 0; i < sizeof shown / sizeof *shown; ++i)
    records_number(w, summary_run_metric(run, shown[i], INT64_MIN, INT64_MAX, scratch));
}

static void put_clock_columns(records_writer *w, const clock_record *c) {
  const double value[] = {c->simulated_s,   c->learner_utilisation, c->sampler_utilisation,
                          c->samples_per_s, c->staleness_mean,      c->staleness_p50,
                          c->staleness_p95, c->staleness_max};
  for (size_t i = 0; i < sizeof value / sizeof *value; ++i) records_number(w, value[i]);
}

static gl_status put_summary(records_writer *w, const one_study *o, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = o->first; i < o->end && status == GL_OK; ++i) {
    const known_run *known = &o->known[i - o->first];
    const results_run *run = known->run;
    const int diverged = run->status == RUN_DIVERGED && run->n_steps > 0;
    run_list_put(o->list, i, w);
    put_step_if(w, known->cell > 0, (int64_t)(o->cells_before + known->cell));
    records_flag(w, known->cell == 0);
    records_text(w, run_status_name(run->status));
    records_integer(w, (int64_t)run->n_steps);
    records_integer(w, (int64_t)run->n_evals);
    put_run_scores(w, run);
    put_step_if(w, diverged, diverged ? run->steps[run->n_steps - 1].step : 0);
    put_metrics(w, run, o->scratch);
    put_clock_columns(w, &run->clock);
    status = records_end(w, err);
  }
  return status;
}

/* --- a record for each cell --- */

static void put_interval(records_writer *w, interval v) {
  records_number(w, v.value);
  records_number(w, v.low);
  records_number(w, v.high);
}

/* Writes the intervals of a cell. The divergence is written to the column of the metric that the
 * study has. */
static void put_intervals(records_writer *w, const summary *s, const cell_summary *c) {
  static const interval none = {NAN, NAN, NAN};
  put_interval(w, c->best);
  put_interval(w, c->last);
  put_interval(w, c->best_to_last);
  put_interval(w, c->metric[CELL_STALENESS]);
  put_interval(w, s->kl == METRIC_KL_EXACT ? c->metric[CELL_KL] : none);
  put_interval(w, s->kl == METRIC_KL_K3_SEQ ? c->metric[CELL_KL] : none);
  put_interval(w, c->metric[CELL_LOG_IW_VARIANCE_PQ]);
  put_interval(w, c->metric[CELL_LOG_IW_VARIANCE_GEPO]);
  put_interval(w, c->metric[CELL_ESTIMATION_ERROR]);
}

/* The first run of the list that is in the cell. */
static size_t a_run_of(const one_study *o, size_t cell) {
  size_t i = o->first;
  while (o->known[i - o->first].cell != cell) ++i;
  return i;
}

static gl_status put_cell_records(records_writer *w, const one_study *o, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < o->sum.n_cells && status == GL_OK; ++i) {
    const cell_summary *c = &o->sum.cells[i];
    const size_t run = a_run_of(o, i + 1);
    records_integer(w, (int64_t)(o->cells_before + i + 1));
    records_text(w, o->list->run[run].study);
    records_text(w, o->list->axes.algorithm[run]);
    records_number(w, c->lr_low == c->lr_high ? c->lr_low : NAN);
    run_list_put_axes(o->list, run, w);
    records_integer(w, (int64_t)c->done);
    records_integer(w, (int64_t)c->diverged);
    records_integer(w, (int64_t)c->failed);
    put_intervals(w, &o->sum, c);
    records_number(w, c->samples_per_s);
    records_number(w, c->learner_utilisation);
    records_number(w, c->sampler_utilisation);
    status = records_end(w, err);
  }
  return status;
}

/* --- a table --- */

typedef struct request {
  const export_table *table;
  records_format format;
} request;

static gl_status put_studies(const request *q, records_writer *w, store *s, const run_list *list,
                             gl_error *err) {
  gl_status status = GL_OK;
  size_t cells = 0;
  for (size_t first = 0; first < list->n && status == GL_OK;) {
    one_study o;
    status = one_study_init(&o, s, list, first, cells, err);
    if (status == GL_OK)
      status = q->table == &summary_table ? put_summary(w, &o, err) : put_cell_records(w, &o, err);
    first = o.end;
    cells += o.sum.n_cells;
    one_study_fini(&o);
  }
  return status;
}

static gl_status put_table(void *self, store *s, const run_list *list, FILE *to, gl_error *err) {
  const request *q = self;
  size_t n = 0;
  records_writer w;
  table_column *columns = export_header(q->table, list, &n);
  if (columns == NULL) return gl_fail_memory(err, "the columns of a table");
  records_begin(&w, to, q->format, columns, n);
  gl_status status = put_studies(q, &w, s, list, err);
  free(columns);
  return status;
}

gl_status study_export(store *s, const export_table *t, records_format format, FILE *to,
                       gl_error *err) {
  static const char *const read[] = {"runs", "steps", "evals", "staleness", "clock", NULL};
  request q = {t, format};
  if (t != &summary_table && t != &cells_table)
    return store_export(s, t->name, records_format_name(format), to, err);
  return store_export_with(s, t->name, read, put_table, &q, to, err);
}

/* --- all tables of a study in a folder, with a data package description --- */

/* --- the Frictionless data package description --- */

static const char *frictionless_type(table_type type) {
  switch (type) {
  case TABLE_TEXT:
    return "string";
  case TABLE_INTEGER:
    return "integer";
  case TABLE_REAL:
    return "number";
  case TABLE_FLAG:
    return "boolean";
  case TABLE_INTERVAL:
  case TABLE_NUMBERS:
  case TABLE_JSON:
  case TABLE_TABLE:
    break;
  }
  return "";
}

static int add_frictionless_field(cJSON *fields, const table_column *c) {
  cJSON *o = json_append_object(fields);
  return o != NULL && json_add_string(o, "name", c->name) != NULL &&
         json_add_string(o, "type", frictionless_type(c->type)) != NULL &&
         (*c->unit == '\0' || json_add_string(o, "unit", c->unit) != NULL) &&
         json_add_string(o, "description", c->about) != NULL;
}

static bool has_own(const export_table *t, const char *name) {
  for (size_t i = 0; i < export_columns(t); ++i)
    if (strcmp(export_column(t, i).name, name) == 0) return true;
  return false;
}

/* Declares a foreign key: the column refers to the column of the same name in another table. */
static int add_reference(cJSON *references, const char *column, const char *other) {
  cJSON *o = json_append_object(references);
  if (o == NULL || json_add_string(o, "fields", column) == NULL) return 0;
  cJSON *to = cJSON_AddObjectToObject(o, "reference");
  return to != NULL && json_add_string(to, "resource", other) != NULL &&
         json_add_string(to, "fields", column) != NULL;
}

static int add_references(cJSON *schema, const export_table *t) {
  const int of_runs = (t->lead == EXPORT_OF_RUNS || has_own(t, "key")) && strcmp(t->name, "runs");
  const int of_cells = has_own(t, "cell");
  if (!of_runs && !of_cells) return 1;
  cJSON *references = cJSON_AddArrayToObject(schema, "foreignKeys");
  return references != NULL && (!of_runs || add_reference(references, "key", "runs")) &&
         (!of_cells || add_reference(references, "cell", "cells"));
}

/* Splits "key, step" into a list of names. */
static int add_key(cJSON *schema, const char *names) {
  cJSON *list = cJSON_AddArrayToObject(schema, "primaryKey");
  for (const char *at = names; list != NULL && *at != '\0';) {
    char name[64];
    const size_t n = strcspn(at, ",");
    snprintf(name, sizeof name, "%.*s", (int)n, at);
    cJSON *item = cJSON_CreateString(name);
    if (item == NULL || !cJSON_AddItemToArray(list, item)) {
      cJSON_Delete(item);
      return 0;
    }
    at += n + strspn(at + n, ", ");
  }
  return list != NULL;
}

static int add_schema(cJSON *resource, const export_table *t, const run_list *runs) {
  size_t n = 0;
  table_column *columns = export_header(t, runs, &n);
  cJSON *schema = columns != NULL ? cJSON_AddObjectToObject(resource, "schema") : NULL;
  cJSON *fields = schema != NULL ? cJSON_AddArrayToObject(schema, "fields") : NULL;
  int ok = fields != NULL;
  for (size_t i = 0; i < n && ok; ++i) ok = add_frictionless_field(fields, &columns[i]);
  free(columns);
  const char *const missing[] = {""};
  cJSON *none = ok ? cJSON_CreateStringArray(missing, 1) : NULL;
  return ok && cJSON_AddItemToObject(schema, "missingValues", none) && add_key(schema, t->key) &&
         add_references(schema, t);
}

static const char *media_type(records_format format) {
  switch (format) {
  case RECORDS_CSV:
    return "text/csv";
  case RECORDS_TSV:
    return "text/tab-separated-values";
  case RECORDS_JSONL:
  case RECORDS_FORMAT_COUNT:
    break;
  }
  return "application/x-ndjson";
}

static int add_resource(cJSON *resources, const export_table *t, const run_list *runs,
                        records_format format, long bytes) {
  char path[80];
  cJSON *o = json_append_object(resources);
  snprintf(path, sizeof path, "%s.%s", t->name, records_format_name(format));
  int ok = o != NULL && json_add_string(o, "profile", "tabular-data-resource") != NULL &&
           json_add_string(o, "name", t->name) != NULL &&
           json_add_string(o, "description", t->about) != NULL &&
           json_add_string(o, "path", path) != NULL &&
           json_add_string(o, "format", records_format_name(format)) != NULL &&
           json_add_string(o, "mediatype", media_type(format)) != NULL &&
           json_add_string(o, "encoding", "utf-8") != NULL &&
           json_add_number(o, "bytes", (double)bytes) != NULL;
  if (ok && format == RECORDS_TSV) {
    cJSON *dialect = cJSON_AddObjectToObject(o, "dialect");
    ok = dialect != NULL && json_add_string(dialect, "delimiter", "\t") != NULL;
  }
  return ok && add_schema(o, t, runs);
}

/* --- the files --- */

enum { MOST_FILES = 32 };

typedef struct exporting {
  const char *folder;
  records_format format;
  file_writer file[MOST_FILES]; /* [n] tables so far */
  size_t n;
  cJSON *package, *resources;
} exporting;

static gl_status begin_file(exporting *e, const char *name, const char *suffix, gl_error *err) {
  const size_t size = strlen(e->folder) + strlen(name) + strlen(suffix) + 3;
  char *path = malloc(size);
  if (path == NULL) return gl_fail_memory(err, "a file's name");
  snprintf(path, size, "%s/%s.%s", e->folder, name, suffix);
  gl_status status = file_begin(&e->file[e->n], path, err);
  if (status == GL_OK) ++e->n;
  free(path);
  return status;
}

static gl_status write_table_file(exporting *e, store *s, const export_table *t,
                                  const run_list *runs, gl_error *err) {
  gl_status status = begin_file(e, t->name, records_format_name(e->format), err);
  if (status != GL_OK) return status;
  FILE *to = e->file[e->n - 1].stream;
  gl_error why = {.status = GL_OK};
  status = study_export(s, t, e->format, to, &why);
  if (status != GL_OK && ferror(to)) return file_commit(&e->file[--e->n], err); /* names the file */
  if (status != GL_OK && err != NULL) *err = why;
  if (status == GL_OK && !add_resource(e->resources, t, runs, e->format, ftell(to)))
    status = gl_fail_memory(err, "the description of a table");
  return status;
}

static gl_status write_package(exporting *e, gl_error *err) {
  gl_status status = begin_file(e, "datapackage", "json", err);
  if (status != GL_OK) return status;
  char *text = cJSON_Print(e->package);
  if (text == NULL) return gl_fail_memory(err, "the description of the tables");
  FILE *to = e->file[e->n - 1].stream;
  const int whole = fprintf(to, "%s\n", text) > 0 && fflush(to) == 0;
  cJSON_free(text);
  return whole ? GL_OK : file_commit(&e->file[--e->n], err);
}

/* Writes all tables from one state of the file. The outputs are regular files, so the read
 * transaction is not blocked by a reader. */
static gl_status write_held(exporting *e, store *s, gl_error *err) {
  run_list runs = {0};
  gl_status status = store_begin_reading(s, err);
  if (status != GL_OK) return status;
  status = run_list_init(&runs, s, err);
  for (size_t i = 0; study_export_at(i) != NULL && status == GL_OK; ++i)
    if (!study_export_at(i)->depends_on_execution)
      status = write_table_file(e, s, study_export_at(i), &runs, err);
  store_end_reading(s);
  run_list_fini(&runs);
  return status;
}

static gl_status begin_package(exporting *e, gl_error *err) {
  e->package = cJSON_CreateObject();
  int ok = e->package != NULL &&
           json_add_string(e->package, "profile", "tabular-data-package") != NULL &&
           json_add_string(e->package, "name", "gepolab-study") != NULL;
  e->resources = ok ? cJSON_AddArrayToObject(e->package, "resources") : NULL;
  return e->resources != NULL ? GL_OK : gl_fail_memory(err, "the description of the tables");
}

gl_status study_export_all(store *s, records_format format, const char *folder, gl_error *err) {
  exporting e = {.folder = folder, .format = format};
  gl_status status = file_make_folder(folder, err);
  if (status == GL_OK) status = begin_package(&e, err);
  if (status == GL_OK) status = write_held(&e, s, err);
  if (status == GL_OK) status = write_package(&e, err);
  size_t done = 0;
  while (status == GL_OK && done < e.n) status = file_commit(&e.file[done++], err);
  while (done < e.n) file_abandon(&e.file[done++]);
  cJSON_Delete(e.package);
  return status;
}
