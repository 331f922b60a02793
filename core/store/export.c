/* Exports tables as text: the list of tables, their columns, and writing them. The output does not
 * depend on how the study was executed. */
#include "core/store/export.h"

#include "core/store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- tables of the fields in which runs differ --- */

static const char *export_value_of(const run_list *l, size_t run, size_t a) {
  return l->axes.value[run * l->axes.n + a].text;
}

static int same_text(const char *a, const char *b) {
  return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* The number of distinct values that runs first .. end - 1 have on axis a. */
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
      records_integer(w, (int64_t)export_count_values(l, first, end, a));
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

/* --- the tables --- */

#define TEXT(name, about) TABLE_FIELD(name, TABLE_TEXT, "", about)
#define INTEGER(name, unit, about) TABLE_FIELD(name, TABLE_INTEGER, unit, about)
#define NUMBER(name, unit, about) TABLE_FIELD(name, TABLE_REAL, unit, about)
#define FLAG(name, about) TABLE_FIELD(name, TABLE_FLAG, "", about)
#define END TABLE_FIELD(NULL, TABLE_TEXT, "", "")
#define KEY TEXT("key", "of the run")

/* Columns of the exported tables that a study's file does not have as tables. */
static const table_column recipes[] = {
    KEY, TEXT("recipe", "the complete recipe, as one line of JSON"), END};
static const table_column axes[] = {
    TEXT("study", "the recipe's name"),
    TEXT("path", "the field's dotted path: the name of its column in the tables of runs"),
    TEXT("label", "the field in words"),
    TEXT("unit", "of its values; empty for pure numbers and words"),
    TEXT("role", "what the field is for in most recipes: `axis`, `chosen`, `algorithm`, `seed` or "
                 "`provenance`"),
    TEXT("kind", "`number`, `choice`, `flag`, `text`, `distribution`, `list` or `section`"),
    FLAG("swept", "true: a sweep named it; false: found by comparing recipes"),
    INTEGER("values", "", "how many values it has in the study, a missing one included"),
    END};
static const table_column axis_values[] = {
    KEY, TEXT("path", "the field"),
    TEXT("value", "its value as text; empty where the recipe leaves it open"),
    NUMBER("number", "",
           "of a number and of a constant distribution, in the unit that `axes` "
           "says; `none` is 0"),
    END};
static const table_column tuning[] = {
    TEXT("study", "the recipe's name"),
    INTEGER("ordinal", "", "place among the study's tuning runs, from 0"),
    TEXT("key", "32 hex digits that name the tuning run, which is in no table of runs"),
    TEXT("algorithm", "the shown name"),
    INTEGER("seed", "", "one of `tune.seeds`"),
    NUMBER("optimizer.lr", "", "the learning rate that it tried"),
    NUMBER("score", "", "what it scored; empty: it is planned and was not made yet"),
    END};
static const table_column execution[] = {
    KEY,
    TEXT("finished", "when, as 2026-11-22T08:30:00Z"),
    NUMBER("wall_s", "s", "wall-clock time of the run"),
    INTEGER("peak_bytes", "bytes", "largest resident memory of its process"),
    TEXT("machine", "where it was made"),
    TEXT("provenance", "the `hash` in `provenance`"),
    END};
static const table_column libraries[] = {TEXT("hash", "the `hash` in `provenance`"),
                                         TEXT("library", "its name"),
                                         TEXT("version", "its version"), END};

static const export_table tables[] = {
    {"runs", "a record for each run", EXPORT_OF_RUNS, .key = "key", .stored = "runs"},
    {"recipes", "the recipe of each run", .key = "key", .columns = recipes, .stored = "runs"},
    {"axes", "a record for each field in which runs of a study differ and for each that was swept",
     .key = "study, path", .columns = axes, .put = put_axes},
    {"axis_values", "a record for each run and each of those fields", .key = "key, path",
     .columns = axis_values, .put = put_axis_values},
    {"steps",
     "a record for each update of the learner; its metrics are those of `gepolab list metrics`",
     EXPORT_OF_RUNS, .key = "key, step", .stored = "steps", .order = "t.step"},
    {"evals", "a record for each evaluation", EXPORT_OF_RUNS, .key = "key, step", .stored = "evals",
     .order = "t.step"},
    {"set_evals",
     "a record for each evaluation and each of its sets (`world.evaluation.sets`), and for each of "
     "their halves; none of recipes without sets",
     EXPORT_OF_RUNS, .key = "key, step, eval_set, half", .stored = "set_evals",
     .order = "t.step, t.place, t.half"},
    {"staleness", "a histogram for each run: how many batches were trained how late",
     EXPORT_OF_RUNS, .key = "key, staleness", .stored = "staleness", .order = "t.staleness"},
    {"fates",
     "what became of the responses that samplers drew, by length and by their prompt's difficulty; "
     "of runs whose clock is coupled to the learner, which alone draw what is thrown away",
     EXPORT_OF_RUNS, .key = "key, fate, quarter, tokens_from", .stored = "fates",
     .order = "t.fate, t.quarter, t.tokens_from"},
    {"clock", "the simulated clock of each run", EXPORT_OF_RUNS, .key = "key", .stored = "clock"},
    {"tuned", "the learning rate that was chosen for each algorithm", .key = "study, algorithm",
     .stored = "tuned", .order = "t.study, t.algorithm"},
    {"tuning", "a record for each run that `tune` makes to choose the rates", .key = "study, key",
     .columns = tuning, .read = {"plan", "tuning_scores"},
     .query = "SELECT 0, p.study, p.ordinal, p.place, p.algorithm, p.seed, json_extract(iif("
              "json_valid(p.swept), p.swept, '{}'), '$.\"optimizer.lr\"'), t.score FROM plan p LEFT"
              " JOIN tuning_scores t ON t.key = p.place WHERE p.tuning = 1 ORDER BY p.study,"
              " p.ordinal, p.place"},
    {"bias", "a record for each measurement of `gepolab lab bias`", .key = "study, ordinal",
     .stored = "bias", .order = "t.study, t.ordinal"},
    {"execution", "when and where each run was made, and what it took",
     .depends_on_execution = true, .key = "key", .columns = execution, .stored = "runs"},
    {"provenance", "a record for each program, machine and command line that made runs",
     .depends_on_execution = true, .key = "hash", .stored = "provenance", .order = "t.hash"},
    {"libraries", "the versions of the libraries that each of these used",
     .depends_on_execution = true, .key = "hash, library", .columns = libraries,
     .read = {"provenance"},
     .query = "SELECT 0, t.hash, j.key, j.value FROM provenance t, json_each(iif(json_valid("
              "t.libraries), t.libraries, '{}')) j ORDER BY t.hash, j.key"},
};

const export_table *store_export_at(size_t i) {
  return i < sizeof tables / sizeof *tables ? &tables[i] : NULL;
}

/* The i-th column of the table itself; past the last, a column without a name. */
static table_column own_column(const export_table *t, size_t i) {
  static const table_type types[] = {
      [COLUMN_INTEGER] = TABLE_INTEGER, [COLUMN_REAL] = TABLE_REAL, [COLUMN_TEXT] = TABLE_TEXT};
  if (t->columns != NULL) return t->columns[i];
  const store_table *of = schema_named(t->stored);
  for (size_t k = 0; k < schema_columns(of); ++k) {
    const store_column c = schema_column_at(of, k);
    if (c.about == NULL || i-- > 0) continue;
    const bool flag = c.type == COLUMN_INTEGER && c.least == 0 && c.most == 1;
    return (table_column){.name = c.name,
                          .type = flag ? TABLE_FLAG : types[c.type],
                          .unit = c.unit,
                          .about = c.about};
  }
  return (table_column)END;
}

size_t export_columns(const export_table *t) {
  size_t n = 0;
  while (own_column(t, n).name != NULL) ++n;
  return n;
}

table_column export_column(const export_table *t, size_t i) {
  return own_column(t, i);
}

/* --- headers --- */

/* Writes the leading columns of the table; returns their number. */
static size_t put_lead(const export_table *t, table_column *to) {
  static const table_column cell =
      TABLE_FIELD("cell", TABLE_INTEGER, "", "number of the cell, from 1");
  const table_column *fixed = run_list_fixed();
  if (t->lead == EXPORT_OF_RUNS) {
    memcpy(to, fixed, RUN_LIST_COLUMNS * sizeof *fixed);
    return RUN_LIST_COLUMNS;
  }
  if (t->lead == EXPORT_ALONE) return 0;
  to[0] = cell;
  to[1] = fixed[0];
  to[2] = fixed[3];
  to[3] = fixed[5];
  to[3].about = "learning rate of its runs; empty where they have several";
  return 4;
}

table_column *export_header(const export_table *t, const run_list *of, size_t *n) {
  const size_t own = export_columns(t),
               apart = of != NULL && t->lead != EXPORT_ALONE ? run_list_axes(of) : 0;
  table_column *all = calloc(RUN_LIST_COLUMNS + apart + own, sizeof *all);
  if (all == NULL) return NULL;
  *n = put_lead(t, all);
  for (size_t i = 0; i < apart; ++i) all[(*n)++] = run_list_axis(of, i);
  for (size_t i = 0; i < own; ++i) all[(*n)++] = export_column(t, i);
  return all;
}

/* --- one table --- */

/* Starts the query for the table's records: the run's number, or 0, then the table's own columns.
 */
static void begin_records(query *q, const export_table *t, store *s, gl_error *err) {
  *q = (query){.status = GL_ENOMEM};
  if (t->query != NULL) {
    query_begin(q, s, t->query, err);
    return;
  }
  const char *name[SCHEMA_MOST_COLUMNS];
  const size_t n = export_columns(t);
  for (size_t i = 0; i < n; ++i) name[i] = export_column(t, i).name;
  char *columns = store_columns(s, "main", t->stored, "t", name, n);
  const char *further = t->order != NULL ? t->order : "";
  if (columns == NULL)
    gl_fail_memory(err, "a query");
  else if (schema_named(t->stored)->kind == TABLE_ALONE)
    query_beginf(q, s, err, "SELECT 0, %s FROM %s t ORDER BY %s", columns, t->stored, further);
  else
    query_beginf(q, s, err,
                 "SELECT r.id, %s FROM %s t JOIN runs r ON r.id = t.%s WHERE r.key NOT IN (SELECT"
                 " key FROM superseded) ORDER BY r.study, r.ordinal, r.key%s%s",
                 columns, t->stored, strcmp(t->stored, "runs") == 0 ? "id" : "run",
                 further[0] != '\0' ? ", " : "", further);
  free(columns);
}

static void put_value(records_writer *w, const query *q, int c) {
  const table_type type = w->columns[w->at].type;
  if (sqlite3_column_type(q->stmt, c) == SQLITE_NULL)
    records_missing(w);
  else if (type == TABLE_TEXT)
    records_text(w, query_get_text(q, c));
  else if (type == TABLE_REAL)
    records_number(w, query_get_real(q, c));
  else if (type == TABLE_FLAG)
    records_flag(w, query_get_integer(q, c) != 0);
  else
    records_integer(w, query_get_integer(q, c));
}

static gl_status put_selected_records(records_writer *w, const export_table *t, store *s,
                                      const run_list *runs, gl_error *err) {
  query q;
  begin_records(&q, t, s, err);
  while (query_next(&q)) {
    if (t->lead == EXPORT_OF_RUNS) {
      const size_t run = run_list_find(runs, query_get_integer(&q, 0));
      if (run == runs->n) {
        q.status =
            gl_fail(err, GL_EIO, "%s is being changed; export it again when that is done", s->path);
        break;
      }
      run_list_put(runs, run, w);
    }
    for (int c = 1; c < sqlite3_column_count(q.stmt); ++c) put_value(w, &q, c);
    q.status = records_end(w, err);
  }
  return query_end(&q);
}

typedef struct request {
  const export_table *table;
  records_format format;
} request;

static gl_status write_requested(void *self, store *s, const run_list *runs, FILE *to,
                                 gl_error *err) {
  const request *q = self;
  size_t n = 0;
  records_writer w;
  table_column *columns = export_header(q->table, runs, &n);
  if (columns == NULL) return gl_fail_memory(err, "the columns of a table");
  records_begin(&w, to, q->format, columns, n);
  gl_status status = q->table->put != NULL ? q->table->put(&w, runs, err)
                                           : put_selected_records(&w, q->table, s, runs, err);
  free(columns);
  return status;
}

/* Copies the temporary file with the finished text to `to`. */
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

/* Uses one snapshot of the file for verification, comparison of recipes and output. */
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
  const char *read[4] = {"runs", q.table->read[0], q.table->read[1]};
  if (q.table->stored != NULL && strcmp(q.table->stored, "runs") != 0) read[1] = q.table->stored;
  return store_export_with(s, name, read, write_requested, &q, to, err);
}
