/* Tables as text: the same bytes however the study was executed. */
#include "core/store/export.h"

#include "core/store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- tables that are queries --- */

/* Where a table's own columns come from: records called t, of the file's table of that name; r:
 * their runs, if they belong to any. */
typedef struct source {
  const char *table, *stored; /* as exported, and in the file */
  const char *from, *order;
  int of_runs;
} source;

#define OF_RUNS(table) table " t JOIN runs r ON r.id = t.run"
#define RUNS "runs r JOIN runs t ON t.id = r.id"
#define ORDER_OF_RUNS "r.study, r.ordinal, r.key"
/* Runs whose place another has taken are not results. */
#define STANDING " WHERE r.key NOT IN (SELECT key FROM superseded)"

static const source sources[] = {
    {"runs", "runs", RUNS, ORDER_OF_RUNS, 1},
    {"recipes", "runs", RUNS, ORDER_OF_RUNS, 1},
    {"steps", "steps", OF_RUNS("steps"), ORDER_OF_RUNS ", t.step", 1},
    {"evals", "evals", OF_RUNS("evals"), ORDER_OF_RUNS ", t.step", 1},
    {"set_evals", "set_evals", OF_RUNS("set_evals"), ORDER_OF_RUNS ", t.step, t.place, t.half", 1},
    {"staleness", "staleness", OF_RUNS("staleness"), ORDER_OF_RUNS ", t.staleness", 1},
    {"fates", "fates", OF_RUNS("fates"), ORDER_OF_RUNS ", t.fate, t.quarter, t.tokens_from", 1},
    {"clock", "clock", OF_RUNS("clock"), ORDER_OF_RUNS, 1},
    {"tuned", "tuned", "tuned t", "t.study, t.algorithm", 0},
    {"bias", "bias", "bias t", "t.study, t.ordinal", 0},
    {"execution", "runs", RUNS, ORDER_OF_RUNS, 1},
    {"provenance", "provenance", "provenance t", "t.hash", 0},
};

static const source *source_of(const char *name) {
  for (size_t i = 0; i < sizeof sources / sizeof *sources; ++i)
    if (strcmp(sources[i].table, name) == 0) return &sources[i];
  return NULL;
}

/* The text of the query: the run's number, or 0, then the table's own columns. */
static char *query_text(store *s, const export_table *t, const source *from) {
  const size_t n = export_columns(t);
  const char **names = calloc(n, sizeof *names);
  for (size_t i = 0; names != NULL && i < n; ++i) names[i] = export_column(t, i).name;
  char *columns = names != NULL ? store_columns(s, "main", from->stored, "t", names, n) : NULL;
  char *sql = columns != NULL ? sqlite3_mprintf("SELECT %s, %s FROM %s%s ORDER BY %s",
                                                from->of_runs ? "r.id" : "0", columns, from->from,
                                                from->of_runs ? STANDING : "", from->order)
                              : NULL;
  free(columns), free(names);
  return sql;
}

static void export_put_value(records_writer *w, sqlite3_stmt *q, int c) {
  if (sqlite3_column_type(q, c) == SQLITE_NULL) {
    records_missing(w);
    return;
  }
  switch (w->columns[w->at].type) {
  case TABLE_TEXT:
    records_text(w, (const char *)sqlite3_column_text(q, c));
    break;
  case TABLE_WHOLE:
    records_whole(w, sqlite3_column_int64(q, c));
    break;
  case TABLE_REAL:
    records_number(w, sqlite3_column_double(q, c));
    break;
  case TABLE_FLAG:
    records_flag(w, sqlite3_column_int(q, c) != 0);
    break;
  case TABLE_INTERVAL:
  case TABLE_NUMBERS:
  case TABLE_JSON:
  case TABLE_TABLE:
    break;
  }
}

static gl_status put_record(records_writer *w, const export_table *t, sqlite3_stmt *q, store *s,
                            const run_list *runs, gl_error *err) {
  if (t->lead == EXPORT_OF_RUNS) {
    const size_t run = run_list_find(runs, sqlite3_column_int64(q, 0));
    if (run == runs->n)
      return gl_fail(err, GL_EIO, "%s is being changed; export it again when that is done",
                     s->path);
    run_list_put(runs, run, w);
  }
  for (int c = 1; c < sqlite3_column_count(q); ++c) export_put_value(w, q, c);
  return records_end(w, err);
}

/* sql: from sqlite3_mprintf(), released here. */
static gl_status put_query(records_writer *w, const export_table *t, char *sql, store *s,
                           const run_list *runs, gl_error *err) {
  sqlite3_stmt *q = NULL;
  int code = SQLITE_DONE;
  gl_status status = sql != NULL ? store_prepare(s, &q, sql, err) : gl_fail_memory(err, "a query");
  while (status == GL_OK && (code = sqlite3_step(q)) == SQLITE_ROW)
    status = put_record(w, t, q, s, runs, err);
  if (status == GL_OK && code != SQLITE_DONE) status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  sqlite3_free(sql);
  return status;
}

/* A record for each member of the objects that the file keeps. */
static char *libraries_text(void) {
  return sqlite3_mprintf("SELECT 0, t.hash, j.key, j.value FROM provenance t,"
                         " json_each(iif(json_valid(t.libraries), t.libraries, '{}')) j"
                         " ORDER BY t.hash, j.key");
}

/* The tuning runs of the plan with what they scored. */
static char *tuning_text(void) {
  return sqlite3_mprintf(
      "SELECT 0, p.study, p.ordinal, p.place, p.algorithm, p.seed, json_extract(iif(json_valid("
      "p.swept), p.swept, '{}'), '$.\"optimizer.lr\"'), t.score FROM plan p LEFT JOIN tuning_scores"
      " t ON t.key = p.place WHERE p.tuning = 1 ORDER BY p.study, p.ordinal, p.place");
}

/* Tables that no one table of the file holds, and those that they are made from. */
static const struct {
  const char *name;
  char *(*text)(void);
  const char *read[3];
} joined[] = {{"tuning", tuning_text, {"plan", "tuning_scores"}},
              {"libraries", libraries_text, {"provenance"}}};
enum { N_JOINED = sizeof joined / sizeof *joined };

/* Its place in that list; N_JOINED for another table. */
static size_t joined_named(const char *name) {
  size_t i = 0;
  while (i < N_JOINED && strcmp(joined[i].name, name) != 0) ++i;
  return i;
}

/* --- tables of what tells runs apart --- */

static const char *export_value_of(const run_list *l, size_t run, size_t a) {
  return l->axes.value[run * l->axes.n + a].text;
}

static int same_text(const char *a, const char *b) {
  return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* How many values the runs first .. end - 1 have in axis a. */
static size_t export_count_values(const run_list *l, size_t first, size_t end, size_t a) {
  size_t n = 0;
  for (size_t i = first; i < end; ++i) {
    size_t before = first;
    while (before < i && !same_text(export_value_of(l, before, a), export_value_of(l, i, a)))
      ++before;
    n += before == i;
  }
  return n;
}

static gl_status put_axes(records_writer *w, const run_list *l, gl_error *err) {
  for (size_t first = 0, end; first < l->n; first = end) {
    for (end = first; end < l->n && strcmp(l->run[end].study, l->run[first].study) == 0;) ++end;
    for (size_t a = 0; a < l->axes.n; ++a) {
      const axis *of = &l->axes.axis[a];
      records_text(w, l->run[first].study);
      records_text(w, of->path);
      records_text(w, of->label);
      records_text(w, of->unit);
      records_text(w, field_role_name(of->role));
      records_text(w, field_kind_name(of->kind));
      records_flag(w, of->swept);
      records_whole(w, (int64_t)export_count_values(l, first, end, a));
      gl_status status = records_end(w, err);
      if (status != GL_OK) return status;
    }
  }
  return GL_OK;
}

static gl_status put_axis_values(records_writer *w, const run_list *l, gl_error *err) {
  for (size_t i = 0; i < l->n; ++i)
    for (size_t a = 0; a < l->axes.n; ++a) {
      records_text(w, l->run[i].key);
      records_text(w, l->axes.axis[a].path);
      records_text(w, export_value_of(l, i, a));
      records_number(w, l->axes.value[i * l->axes.n + a].number);
      gl_status status = records_end(w, err);
      if (status != GL_OK) return status;
    }
  return GL_OK;
}

/* --- one table --- */

typedef struct request {
  const export_table *table;
  records_format format;
} request;

static gl_status export_put_table(void *self, store *s, const run_list *runs, FILE *to,
                                  gl_error *err) {
  const request *q = self;
  const source *from = source_of(q->table->name);
  const size_t join = joined_named(q->table->name);
  size_t n = 0;
  records_writer w;
  table_column *columns = export_header(q->table, runs, &n);
  gl_status status = GL_OK;
  if (columns == NULL) return gl_fail_memory(err, "the columns of a table");
  records_begin(&w, to, q->format, columns, n);
  if (from != NULL)
    status = put_query(&w, q->table, query_text(s, q->table, from), s, runs, err);
  else if (join < N_JOINED)
    status = put_query(&w, q->table, joined[join].text(), s, runs, err);
  else if (strcmp(q->table->name, "axes") == 0)
    status = put_axes(&w, runs, err);
  else
    status = put_axis_values(&w, runs, err);
  free(columns);
  return status;
}

static gl_status hand_on(FILE *text, FILE *to, const char *name, gl_error *err) {
  char piece[65536];
  size_t n = 0;
  errno = 0;
  int ok = fflush(text) == 0 && !ferror(text) && fseek(text, 0, SEEK_SET) == 0;
  if (!ok)
    return gl_fail(err, GL_EIO,
                   "writing table %s failed: the folder for temporary files, " P_tmpdir
                   ", does not take it: %s; free some room there",
                   name, errno != 0 ? strerror(errno) : "writing failed");
  while (ok && (n = fread(piece, 1, sizeof piece, text)) > 0) ok = fwrite(piece, 1, n, to) == n;
  if (ok && !ferror(text) && fflush(to) == 0 && !ferror(to)) return GL_OK;
  return gl_fail(err, GL_EIO, "writing table %s failed: %s", name, strerror(errno));
}

/* One snapshot of the file for its checksums, the comparison and the table. */
static gl_status export_write_held(store *s, const char *const *read, export_writer write,
                                   void *self, FILE *to, gl_error *err) {
  run_list runs = {0};
  gl_status status = store_begin_reading(s, err);
  if (status != GL_OK) return status;
  status = store_verify(s, read, err);
  if (status == GL_OK) status = run_list_init(&runs, s, err);
  if (status == GL_OK) status = write(self, s, &runs, to, err);
  store_end_reading(s);
  run_list_fini(&runs);
  return status;
}

gl_status store_export_with(store *s, const char *name, const char *const *read,
                            export_writer write, void *self, FILE *to, gl_error *err) {
  FILE *text = tmpfile();
  if (text == NULL)
    return gl_fail(err, GL_EIO, "cannot make a temporary file for the table %s in " P_tmpdir ": %s",
                   name, strerror(errno));
  gl_status status = export_write_held(s, read, write, self, text, err);
  if (status == GL_OK) status = hand_on(text, to, name, err);
  fclose(text);
  return status;
}

static gl_status no_table(const char *name, gl_error *err) {
  char list[512] = "";
  for (size_t i = 0; store_export_at(i) != NULL; ++i) {
    const size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", store_export_at(i)->name);
  }
  return gl_fail(err, GL_EINPUT, "there is no table '%s'; tables are %s", name, list);
}

gl_status store_export(store *s, const char *name, const char *format, FILE *to, gl_error *err) {
  request q = {.table = NULL};
  for (size_t i = 0; store_export_at(i) != NULL; ++i)
    if (strcmp(store_export_at(i)->name, name) == 0) q.table = store_export_at(i);
  if (q.table == NULL) return no_table(name, err);
  if (!records_format_named(format, &q.format))
    return gl_fail(err, GL_EINPUT, "there is no format '%s'; formats are csv, tsv, jsonl", format);
  const source *from = source_of(name);
  const size_t join = joined_named(name);
  const char *read[5] = {"runs"};
  if (from != NULL && strcmp(from->stored, "runs") != 0) read[1] = from->stored;
  for (size_t i = 0; join < N_JOINED && joined[join].read[i] != NULL; ++i)
    read[1 + i] = joined[join].read[i];
  return store_export_with(s, name, read, export_put_table, &q, to, err);
}
