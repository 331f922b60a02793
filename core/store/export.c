/* Tables as text: the same bytes however the study was executed. */
#include "core/base/json.h"
#include "core/config/axes.h"
#include "core/store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A table; no wall-clock, no machine, no numbers of records. */
typedef struct export_table {
  const char *name;
  const char *from;  /* where its records come from; those of runs have r, and t for the table */
  const char *order; /* of the records */
  int of_runs;       /* begins with the columns that say which run it is */
  const char *const *columns; /* of the table itself, ended by NULL; NULL: those of steps */
} export_table;

#define OF_RUNS(table) table " t JOIN runs r ON r.id = t.run"
#define ORDER_OF_RUNS "r.study, r.ordinal, r.key"

static const char *const runs_columns[] = {"status",  "reason", "code_version",
                                           "meaning", "recipe", NULL};
static const char *const evals_columns[] = {"step", "time_s", "eval_score", NULL};
static const char *const staleness_columns[] = {"staleness", "count", NULL};
static const char *const clock_columns[] = {
    "simulated_s",     "learner_utilisation", "sampler_utilisation", "samples_per_s",
    "bytes_up",        "bytes_down",          "staleness_mean",      "staleness_max",
    "staleness_p50",   "staleness_p95",       "batches_generated",   "batches_trained",
    "batches_dropped", "batches_lost",        "retransmissions",     NULL};
static const char *const tuned_columns[] = {"study", "algorithm", "lr", "score", NULL};
static const char *const bias_columns[] = {
    "study",      "ordinal", "algorithm", "method",      "group_size",  "kl_exact", "kl_exact_qp",
    "staleness",  "groups",  "bias",      "cosine",      "scaled_bias", "variance", "mse",
    "scaled_mse", "snr",     "iw_mean",   "iw_variance", "aw_variance", "ess",      NULL};

/* Runs whose place another has taken are not results. */
#define STANDING " r.key NOT IN (SELECT key FROM superseded)"

static const export_table tables[] = {
    {"runs", "runs r JOIN runs t ON t.id = r.id", ORDER_OF_RUNS, 1, runs_columns},
    {"steps", OF_RUNS("steps"), ORDER_OF_RUNS ", t.step", 1, NULL},
    {"evals", OF_RUNS("evals"), ORDER_OF_RUNS ", t.step", 1, evals_columns},
    {"staleness", OF_RUNS("staleness"), ORDER_OF_RUNS ", t.staleness", 1, staleness_columns},
    {"clock", OF_RUNS("clock"), ORDER_OF_RUNS, 1, clock_columns},
    {"tuned", "tuned t", "t.study, t.algorithm", 0, tuned_columns},
    {"bias", "bias t", "t.study, t.ordinal", 0, bias_columns},
};

/* --- what tells the runs apart -------------------------------------------------------------------
 */

/* The runs' numbers in this file, ascending, with their place in the comparison. */
typedef struct numbered {
  int64_t id;
  size_t place;
} numbered;

typedef struct run_fields {
  axis_table axes;
  numbered *runs; /* [axes.n_runs] */
} run_fields;

static void run_fields_fini(run_fields *f) {
  axes_fini(&f->axes);
  free(f->runs);
}

static char *column_copy(sqlite3_stmt *q, int c) {
  const char *text = (const char *)sqlite3_column_text(q, c);
  return text != NULL ? strdup(text) : NULL;
}

static int compare_numbered(const void *a, const void *b) {
  int64_t x = ((const numbered *)a)->id, y = ((const numbered *)b)->id;
  return (x > y) - (x < y);
}

static void runs_free(axes_run *run, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    free((char *)run[i].study), free((char *)run[i].algorithm), free((char *)run[i].recipe);
    free((char *)run[i].swept), free((char *)run[i].chosen);
  }
  free(run);
}

static gl_status read_runs(run_fields *f, axes_run **run, size_t *n, sqlite3_stmt *q, store *s,
                           gl_error *err) {
  size_t room = 0;
  int code;
  while ((code = sqlite3_step(q)) == SQLITE_ROW) {
    if (*n == room) {
      room = 2 * room + 64;
      axes_run *more = realloc(*run, room * sizeof *more);
      if (more != NULL) *run = more;
      numbered *ids = realloc(f->runs, room * sizeof *ids);
      if (ids != NULL) f->runs = ids;
      if (more == NULL || ids == NULL) return gl_fail_memory(err, "the runs of a study");
    }
    f->runs[*n] = (numbered){sqlite3_column_int64(q, 0), *n};
    (*run)[(*n)++] = (axes_run){.study = column_copy(q, 1),
                                .algorithm = column_copy(q, 2),
                                .recipe = column_copy(q, 3),
                                .swept = column_copy(q, 4),
                                .chosen = column_copy(q, 5),
                                .meaning = sqlite3_column_int64(q, 6),
                                .seed = (uint64_t)sqlite3_column_int64(q, 7)};
    const axes_run *last = &(*run)[*n - 1];
    if (last->study == NULL || last->algorithm == NULL || last->recipe == NULL)
      return gl_fail(err, GL_EIO, "a run of %s has no name or recipe; is the file damaged?",
                     s->path);
  }
  return code == SQLITE_DONE ? GL_OK : store_fail(s, code, "reading", err);
}

static gl_status run_fields_init(run_fields *f, store *s, gl_error *err) {
  static const char sql[] = "SELECT id, study, algorithm, recipe, swept, chosen, meaning, seed FROM"
                            " runs r WHERE" STANDING " ORDER BY study, ordinal, key";
  axes_run *run = NULL;
  size_t n = 0;
  sqlite3_stmt *q = NULL;
  *f = (run_fields){0};
  gl_status status = store_prepare(s, &q, sql, err);
  if (status == GL_OK) status = read_runs(f, &run, &n, q, s, err);
  sqlite3_finalize(q);
  if (status == GL_OK) status = axes_find(&f->axes, run, n, err);
  if (n > 0) qsort(f->runs, n, sizeof *f->runs, compare_numbered);
  runs_free(run, n);
  return status;
}

static size_t place_of(const run_fields *f, int64_t id) {
  const numbered wanted = {id, 0};
  const numbered *found =
      bsearch(&wanted, f->runs, f->axes.n_runs, sizeof wanted, compare_numbered);
  return found != NULL ? found->place : f->axes.n_runs;
}

/* --- one table -----------------------------------------------------------------------------------
 */

/* A query in the making: of a table of runs, column 0 is the run's number in the file, which
 * depends on the order of execution and is not shown; columns 1 to RUN_COLUMNS say which run it is,
 * and the fields that tell runs apart are shown behind these. */
enum { RUN_COLUMNS = 6 };
#define RUN_COLUMNS_SQL                                                                            \
  "r.id, r.study, r.ordinal, r.key, r.algorithm, r.seed, r.lr AS \"optimizer.lr\", "

typedef struct exporting {
  const export_table *table;
  sqlite3_stmt *stmt;
  run_fields fields;
  char separator;
  FILE *to;
} exporting;

/* Shown with what tells it from others of its name. */
static int is_algorithm(const exporting *e, int c) {
  return e->table->of_runs && c == 4;
}

/* The learning rate has its column whether it tells runs apart or not. */
static int is_shown(const axis *a) {
  return strcmp(a->path, "optimizer.lr") != 0;
}

static void put_quoted(const char *text, char separator, FILE *to) {
  const char special[] = {separator, '"', '\n', '\r', '\0'};
  if (strpbrk(text, special) == NULL) {
    fputs(text, to);
    return;
  }
  fputc('"', to); /* RFC 4180 */
  for (; *text != '\0'; ++text) {
    if (*text == '"') fputc('"', to);
    fputc(*text, to);
  }
  fputc('"', to);
}

static void put_cell(sqlite3_stmt *stmt, int c, char separator, FILE *to) {
  char number[NUMBER_TEXT_SIZE];
  switch (sqlite3_column_type(stmt, c)) {
  case SQLITE_NULL:
    break;
  case SQLITE_INTEGER:
    fprintf(to, "%lld", (long long)sqlite3_column_int64(stmt, c));
    break;
  case SQLITE_FLOAT:
    fputs(number_text(sqlite3_column_double(stmt, c), number), to);
    break;
  default:
    put_quoted((const char *)sqlite3_column_text(stmt, c), separator, to);
  }
}

static void put_header(const exporting *e) {
  int shown = 0, n = sqlite3_column_count(e->stmt);
  for (int c = e->table->of_runs; c < n; ++c) {
    if (shown++ > 0) fputc(e->separator, e->to);
    put_quoted(sqlite3_column_name(e->stmt, c), e->separator, e->to);
    for (size_t a = 0; c == RUN_COLUMNS && e->table->of_runs && a < e->fields.axes.n; ++a) {
      if (!is_shown(&e->fields.axes.axis[a])) continue;
      fputc(e->separator, e->to);
      put_quoted(e->fields.axes.axis[a].path, e->separator, e->to);
    }
  }
  fputc('\n', e->to);
}

static void put_separated(const exporting *e, size_t place) {
  int shown = 0, n = sqlite3_column_count(e->stmt);
  const axis_table *x = &e->fields.axes;
  for (int c = e->table->of_runs; c < n; ++c) {
    if (shown++ > 0) fputc(e->separator, e->to);
    if (is_algorithm(e, c))
      put_quoted(x->algorithm[place], e->separator, e->to);
    else
      put_cell(e->stmt, c, e->separator, e->to);
    for (size_t a = 0; c == RUN_COLUMNS && e->table->of_runs && a < x->n; ++a) {
      const char *text = x->value[place * x->n + a].text;
      if (!is_shown(&x->axis[a])) continue;
      fputc(e->separator, e->to);
      if (text != NULL) put_quoted(text, e->separator, e->to);
    }
  }
  fputc('\n', e->to);
}

static int add_column(cJSON *record, sqlite3_stmt *stmt, int c) {
  const char *name = sqlite3_column_name(stmt, c);
  char digits[24];
  switch (sqlite3_column_type(stmt, c)) {
  case SQLITE_NULL:
    return cJSON_AddNullToObject(record, name) != NULL;
  case SQLITE_INTEGER: /* all 64 bits, which a JSON number made from a double would lose */
    snprintf(digits, sizeof digits, "%lld", (long long)sqlite3_column_int64(stmt, c));
    return cJSON_AddRawToObject(record, name, digits) != NULL;
  case SQLITE_FLOAT:
    return json_add_number(record, name, sqlite3_column_double(stmt, c)) != NULL;
  default:
    return json_add_string(record, name, (const char *)sqlite3_column_text(stmt, c)) != NULL;
  }
}

static gl_status put_json(const exporting *e, size_t place, gl_error *err) {
  const axis_table *x = &e->fields.axes;
  cJSON *record = cJSON_CreateObject();
  int ok = record != NULL, n = sqlite3_column_count(e->stmt);
  for (int c = e->table->of_runs; c < n && ok; ++c) {
    if (is_algorithm(e, c))
      ok = json_add_string(record, "algorithm", x->algorithm[place]) != NULL;
    else
      ok = add_column(record, e->stmt, c);
    for (size_t a = 0; c == RUN_COLUMNS && e->table->of_runs && a < x->n && ok; ++a)
      if (is_shown(&x->axis[a]))
        ok = axis_json(record, &x->axis[a], x->value[place * x->n + a]) != NULL;
  }
  char *text = ok ? cJSON_PrintUnformatted(record) : NULL;
  if (text != NULL) fprintf(e->to, "%s\n", text);
  ok = text != NULL;
  cJSON_free(text);
  cJSON_Delete(record);
  return ok ? GL_OK : gl_fail_memory(err, "a record");
}

static gl_status put_records(const exporting *e, int json, store *s, gl_error *err) {
  int code;
  while ((code = sqlite3_step(e->stmt)) != SQLITE_DONE) {
    if (code != SQLITE_ROW) return store_fail(s, code, "reading", err);
    size_t place = 0;
    if (e->table->of_runs) {
      place = place_of(&e->fields, sqlite3_column_int64(e->stmt, 0));
      if (place == e->fields.axes.n_runs)
        return gl_fail(err, GL_EIO, "%s is being changed; export it again when that is done",
                       s->path);
    }
    gl_status status = GL_OK;
    if (json)
      status = put_json(e, place, err);
    else
      put_separated(e, place);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

static gl_status prepare(exporting *e, store *s, gl_error *err) {
  const char *steps[STORE_STEP_COLUMNS];
  const char *const *names = e->table->columns;
  size_t n = 0;
  if (names == NULL) {
    store_step_columns(steps);
    names = steps;
    n = STORE_STEP_COLUMNS;
  } else
    while (names[n] != NULL) ++n;
  char *columns = store_columns(s, "main", e->table->name, "t", names, n);
  char *sql =
      columns == NULL
          ? NULL
          : sqlite3_mprintf("SELECT %s%s FROM %s%s ORDER BY %s",
                            e->table->of_runs ? RUN_COLUMNS_SQL : "", columns, e->table->from,
                            e->table->of_runs ? " WHERE" STANDING : "", e->table->order);
  free(columns);
  if (sql == NULL) return gl_fail_memory(err, "a query");
  gl_status status = store_prepare(s, &e->stmt, sql, err);
  sqlite3_free(sql);
  if (status == GL_OK && e->table->of_runs) status = run_fields_init(&e->fields, s, err);
  return status;
}

/* One snapshot of the file for its checksums, the comparison and the table. */
static gl_status export_text(exporting *e, store *s, int json, gl_error *err) {
  const char *const read[] = {e->table->name, NULL};
  gl_status status = store_begin_reading(s, err);
  if (status != GL_OK) return status;
  status = store_verify(s, read, err);
  if (status == GL_OK) status = prepare(e, s, err);
  if (status == GL_OK && !json) put_header(e);
  if (status == GL_OK) status = put_records(e, json, s, err);
  sqlite3_finalize(e->stmt);
  store_end_reading(s);
  run_fields_fini(&e->fields);
  return status;
}

static gl_status hand_on(FILE *text, FILE *to, const char *table, gl_error *err) {
  char piece[65536];
  size_t n = 0;
  errno = 0;
  int ok = fflush(text) == 0 && !ferror(text) && fseek(text, 0, SEEK_SET) == 0;
  while (ok && (n = fread(piece, 1, sizeof piece, text)) > 0) ok = fwrite(piece, 1, n, to) == n;
  if (ok && !ferror(text) && fflush(to) == 0 && !ferror(to)) return GL_OK;
  return gl_fail(err, GL_EIO, "writing table %s failed: %s", table, strerror(errno));
}

gl_status store_export(store *s, const char *table, const char *format, FILE *to, gl_error *err) {
  exporting e = {.separator = format[0] == 't' ? '\t' : ','};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i)
    if (strcmp(tables[i].name, table) == 0) e.table = &tables[i];
  if (e.table == NULL)
    return gl_fail(
        err, GL_EINPUT,
        "there is no table '%s'; tables are runs, steps, evals, staleness, clock, tuned, "
        "bias",
        table);
  int json = strcmp(format, "jsonl") == 0;
  if (!json && strcmp(format, "csv") != 0 && strcmp(format, "tsv") != 0)
    return gl_fail(err, GL_EINPUT, "there is no format '%s'; formats are csv, tsv, jsonl", format);
  /* The table is made in a temporary file and handed on when the study is free again: who reads it
   * may pause, and a sweep that writes to the study must not wait for that. */
  FILE *text = tmpfile();
  if (text == NULL)
    return gl_fail(err, GL_EIO, "cannot make a temporary file for the table %s: %s", table,
                   strerror(errno));
  e.to = text;
  gl_status status = export_text(&e, s, json, err);
  if (status == GL_OK) status = hand_on(text, to, table, err);
  fclose(text);
  return status;
}
