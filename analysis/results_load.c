/* Reads the runs of a study from a store; columns are found by name. */
#include "analysis/results.h"

#include "analysis/evaluation_sets.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static gl_status database_failed(sqlite3 *db, gl_error *err) {
  return gl_fail(err, GL_EIO, "the study cannot be read: %s; is the file damaged?",
                 sqlite3_errmsg(db));
}

static double column_number(sqlite3_stmt *q, int i) {
  return sqlite3_column_type(q, i) == SQLITE_NULL ? NAN : sqlite3_column_double(q, i);
}

/* --- the records of one run --- */

/* A table of records: its columns, and a function that reads one record. */
typedef struct record_table {
  const char *name, *rest, *amount; /* rest: text after "WHERE run = ?1"; amount: SQL expression of
                                       the number of items */
  size_t item;
  void (*read)(sqlite3_stmt *q, void *items, size_t i);
} record_table;

/* Two queries with the run's number as parameter: for its records, and for their number. */
typedef struct records {
  const record_table *of;
  sqlite3_stmt *query, *count;
} records;

static void read_eval_record(sqlite3_stmt *q, void *items, size_t i) {
  ((eval_record *)items)[i] =
      (eval_record){sqlite3_column_int64(q, 0), column_number(q, 1), column_number(q, 2)};
}

static void read_set_eval_record(sqlite3_stmt *q, void *items, size_t i) {
  set_eval_record *e = (set_eval_record *)items + i;
  const char *set = (const char *)sqlite3_column_text(q, 5);
  *e = (set_eval_record){.step = sqlite3_column_int64(q, 0),
                         .time_s = column_number(q, 1),
                         .score = column_number(q, 2),
                         .place = sqlite3_column_int(q, 3),
                         .half = sqlite3_column_int(q, 4)};
  snprintf(e->set, sizeof e->set, "%s", set ? set : "");
}

enum { STEP_FIRST = 4 }; /* number of columns before the metrics, which follow in their order */

static void read_step_record(sqlite3_stmt *q, void *items, size_t i) {
  step_record *s = (step_record *)items + i;
  s->step = sqlite3_column_int64(q, 0);
  s->sampler = sqlite3_column_int(q, 1);
  s->time_s = column_number(q, 2);
  s->wait_s = column_number(q, 3);
  for (int m = 0; m < METRIC_COUNT; m++) s->metric[m] = column_number(q, STEP_FIRST + m);
}

static void read_staleness_record(sqlite3_stmt *q, void *items, size_t i) {
  (void)i;
  ((uint64_t *)items)[sqlite3_column_int64(q, 0)] = (uint64_t)sqlite3_column_int64(q, 1);
}

static void records_fini(records *r) {
  sqlite3_finalize(r->query), sqlite3_finalize(r->count);
}

static const record_table steps_table = {"steps", "ORDER BY step", "count(*)", sizeof(step_record),
                                         read_step_record};
static const record_table evals_table = {"evals", "ORDER BY step", "count(*)", sizeof(eval_record),
                                         read_eval_record};
static const record_table set_evals_table = {"set_evals", "ORDER BY step, place, half", "count(*)",
                                             sizeof(set_eval_record), read_set_eval_record};
static const record_table staleness_table = {"staleness", "AND t.staleness >= 0",
                                             "coalesce(max(staleness) + 1, 0)", sizeof(uint64_t),
                                             read_staleness_record};

/* Prepares "SELECT names FROM table WHERE run = ?1 rest". */
static gl_status records_init(records *r, store *s, const record_table *of,
                              const char *const *names, size_t n, gl_error *err) {
  sqlite3 *db = store_handle(s);
  r->of = of;
  char *columns = store_columns(s, "main", of->name, "t", names, n);
  char *sql = columns ? sqlite3_mprintf("SELECT %s FROM %s t WHERE run = ?1 %s", columns, of->name,
                                        of->rest)
                      : NULL;
  char *count = sqlite3_mprintf("SELECT %s FROM %s WHERE run = ?1", of->amount, of->name);
  gl_status status = GL_OK;
  if (!sql || !count)
    status = gl_fail_memory(err, "a query");
  else if (sqlite3_prepare_v2(db, sql, -1, &r->query, NULL) != SQLITE_OK ||
           sqlite3_prepare_v2(db, count, -1, &r->count, NULL) != SQLITE_OK)
    status = database_failed(db, err);
  free(columns);
  sqlite3_free(sql), sqlite3_free(count);
  return status;
}

/* The queries for the records of a run, prepared once. */
typedef struct loading {
  sqlite3 *db;
  records steps, evals, staleness;
  records set_evals; /* not prepared if the file has no such table */
  results *into;
} loading;

/* Whether the file has scores by evaluation set. Files of STORE_FORMAT have this table; older ones
 * are refused. */
static bool has_set_evals(sqlite3 *db) {
  return sqlite3_table_column_metadata(db, "main", "set_evals", NULL, NULL, NULL, NULL, NULL,
                                       NULL) == SQLITE_OK;
}

static gl_status loading_init(loading *l, store *s, gl_error *err) {
  static const char *const evals[] = {"step", "time_s", "eval_score"}, *const staleness[] = {
                                                                           "staleness", "count"};
  static const char *const set_evals[] = {"step",  "time_s", "eval_score",
                                          "place", "half",   "eval_set"};
  const char *steps[STEP_FIRST + METRIC_COUNT] = {"step", "sampler", "time_s", "wait_s"};
  for (int m = 0; m < METRIC_COUNT; m++) steps[STEP_FIRST + m] = metric_about((metric)m)->name;
  l->db = store_handle(s);
  gl_status status =
      records_init(&l->steps, s, &steps_table, steps, STEP_FIRST + METRIC_COUNT, err);
  if (status == GL_OK) status = records_init(&l->evals, s, &evals_table, evals, 3, err);
  if (status == GL_OK && has_set_evals(l->db))
    status = records_init(&l->set_evals, s, &set_evals_table, set_evals, 6, err);
  if (status == GL_OK) status = records_init(&l->staleness, s, &staleness_table, staleness, 2, err);
  return status;
}

/* Loads the records of one run, allocated, *n items. */
static gl_status load_records(sqlite3 *db, const records *what, int64_t run, void **items,
                              size_t *n, gl_error *err) {
  sqlite3_stmt *count = what->count, *q = what->query;
  gl_status status = GL_OK;
  int code = SQLITE_DONE;
  sqlite3_reset(count), sqlite3_reset(q);
  sqlite3_bind_int64(count, 1, run), sqlite3_bind_int64(q, 1, run);
  if (sqlite3_step(count) != SQLITE_ROW) return database_failed(db, err);
  *n = (size_t)sqlite3_column_int64(count, 0);
  *items = calloc(*n + 1, what->of->item);
  if (!*items) status = gl_fail_memory(err, "a run's records");
  for (size_t i = 0; status == GL_OK && (code = sqlite3_step(q)) == SQLITE_ROW && i < *n; i++)
    what->of->read(q, *items, i);
  if (status == GL_OK && code != SQLITE_DONE) status = database_failed(db, err);
  sqlite3_reset(count), sqlite3_reset(q);
  return status;
}

/* --- runs --- */

static const char *const run_columns[] = {"id",      "algorithm", "swept",  "seed",
                                          "lr",      "status",    "recipe", "chosen",
                                          "meaning", "reason",    "key",    "in_effect"};
enum { N_RUN_COLUMNS = sizeof run_columns / sizeof *run_columns };

/* Query for the runs of a study (?1) with their clocks, in the order of the grid. */
static sqlite3_stmt *query_runs(store *s) {
  sqlite3_stmt *q = NULL;
  char *run = store_columns(s, "main", "runs", "r", run_columns, N_RUN_COLUMNS);
  char *clock = store_columns(s, "main", "clock", "c", clock_record_names, CLOCK_RECORD_COLUMNS);
  char *sql = run && clock
                  ? sqlite3_mprintf("SELECT %s, %s FROM runs r LEFT JOIN clock c ON c.run = r.id"
                                    " WHERE r.study = ?1 AND r.key NOT IN (SELECT key FROM"
                                    " superseded) ORDER BY r.ordinal, r.key",
                                    run, clock)
                  : NULL;
  if (sql) sqlite3_prepare_v2(store_handle(s), sql, -1, &q, NULL);
  free(run), free(clock), sqlite3_free(sql);
  return q;
}

static gl_status load_run(loading *l, sqlite3_stmt *q, gl_error *err) {
  enum { CLOCK = N_RUN_COLUMNS };
  const char *state = (const char *)sqlite3_column_text(q, 5);
  run_record run = {
      .algorithm = (const char *)sqlite3_column_text(q, 1),
      .swept = (const char *)sqlite3_column_text(q, 2),
      .seed = (uint64_t)sqlite3_column_int64(q, 3),
      .lr = column_number(q, 4),
      .recipe = (const char *)sqlite3_column_text(q, 6),
      .chosen = (const char *)sqlite3_column_text(q, 7),
      .meaning = sqlite3_column_int64(q, 8),
      .reason = (const char *)sqlite3_column_text(q, 9),
      .key = (const char *)sqlite3_column_text(q, 10),
      .in_effect = (const char *)sqlite3_column_text(q, 11),
  };
  for (int i = 0; i < CLOCK_RECORD_COLUMNS; ++i)
    *clock_record_at(&run.clock, (size_t)i) = column_number(q, CLOCK + i);
  if (!run.algorithm || !run.recipe || !state || !run_status_named(state, &run.status))
    return gl_fail(err, GL_EIO,
                   "a run of the study has no algorithm, no recipe or an unknown status ('%s'); is "
                   "the file damaged, or from a later gepolab?",
                   state ? state : "");
  void *steps = NULL, *evals = NULL, *set_evals = NULL, *staleness = NULL;
  int64_t id = sqlite3_column_int64(q, 0);
  gl_status status = load_records(l->db, &l->steps, id, &steps, &run.n_steps, err);
  if (status == GL_OK) status = load_records(l->db, &l->evals, id, &evals, &run.n_evals, err);
  if (status == GL_OK && l->set_evals.query)
    status = load_records(l->db, &l->set_evals, id, &set_evals, &run.n_set_evals, err);
  if (status == GL_OK)
    status = load_records(l->db, &l->staleness, id, &staleness, &run.n_staleness, err);
  run.steps = steps;
  run.evals = evals;
  run.set_evals = set_evals;
  run.staleness = staleness;
  if (status == GL_OK) status = results_add(l->into, &run, err);
  free(steps), free(evals), free(set_evals), free(staleness);
  return status;
}

/* --- studies --- */

gl_status results_studies(char ***names, size_t *n, store *s, gl_error *err) {
  sqlite3 *db = store_handle(s);
  sqlite3_stmt *q = NULL;
  size_t size = 0, used = 0;
  *names = NULL;
  *n = 0;
  static const char sql[] =
      "SELECT study, (SELECT count(DISTINCT study) FROM runs), (SELECT sum(length(CAST(study AS"
      " BLOB)) + 1) FROM (SELECT DISTINCT study FROM runs)) FROM runs GROUP BY study ORDER BY "
      "study";
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK) return database_failed(db, err);
  gl_status status = GL_OK;
  int code;
  while (status == GL_OK && (code = sqlite3_step(q)) == SQLITE_ROW) {
    size_t count = (size_t)sqlite3_column_int64(q, 1);
    if (!*names) {
      size = (size_t)sqlite3_column_int64(q, 2);
      *names = malloc(count * sizeof **names + size);
    }
    const char *name = (const char *)sqlite3_column_text(q, 0);
    if (!*names || !name)
      status = gl_fail_memory(err, "the names of studies");
    else {
      char *to = (char *)(*names + count) + used;
      strcpy(to, name);
      used += strlen(name) + 1;
      (*names)[(*n)++] = to;
    }
  }
  if (status == GL_OK && code != SQLITE_DONE) status = database_failed(db, err);
  sqlite3_finalize(q);
  if (status == GL_OK && *n == 0)
    status = gl_fail(err, GL_EINPUT,
                     "the study holds no finished run; run its sweep again, which "
                     "goes on where it was stopped");
  if (status == GL_OK) return GL_OK;
  free(*names);
  *names = NULL;
  *n = 0;
  return status;
}

/* Selects the study: the named one, or the only one. */
static gl_status choose_study(const char **study, char *const *names, size_t n, gl_error *err) {
  char list[512] = "";
  for (size_t i = 0; i < n; i++) {
    size_t used = strlen(list);
    if (*study && strcmp(*study, names[i]) == 0) return GL_OK;
    snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
  }
  if (*study) return gl_fail(err, GL_EINPUT, "the file has no study '%s'; it has %s", *study, list);
  if (n > 1) return gl_fail(err, GL_EINPUT, "the file has %zu studies; say which: %s", n, list);
  *study = names[0];
  return GL_OK;
}

/* Loads everything from one state of the file. Its checksums were verified first, so every value
 * may be assumed to be valid for its column. */
static gl_status load_study(results **out, store *s, const char *study, gl_error *err) {
  char **names = NULL;
  size_t n = 0;
  loading l = {.db = store_handle(s)};
  sqlite3_stmt *q = NULL;
  int code = SQLITE_DONE;
  *out = NULL;
  gl_status status = results_studies(&names, &n, s, err);
  if (status == GL_OK) status = choose_study(&study, names, n, err);
  if (status == GL_OK && !(l.into = results_new(study))) status = gl_fail_memory(err, "a study");
  if (status == GL_OK) status = loading_init(&l, s, err);
  if (status == GL_OK && !(q = query_runs(s))) status = database_failed(l.db, err);
  if (status == GL_OK) sqlite3_bind_text(q, 1, study, -1, SQLITE_STATIC);
  while (status == GL_OK && (code = sqlite3_step(q)) == SQLITE_ROW) status = load_run(&l, q, err);
  if (status == GL_OK && code != SQLITE_DONE) status = database_failed(l.db, err);
  sqlite3_finalize(q);
  records_fini(&l.steps), records_fini(&l.evals), records_fini(&l.staleness);
  records_fini(&l.set_evals);
  free(names);
  if (status == GL_OK) status = results_arrange(l.into, err);
  if (status == GL_OK)
    *out = l.into;
  else
    results_free(l.into);
  return status;
}

gl_status results_load(results **out, store *s, const char *study, gl_error *err) {
  static const char *const read[] = {"runs",      "steps", "evals", "set_evals",
                                     "staleness", "clock", NULL};
  *out = NULL;
  gl_status status = store_begin_reading(s, err);
  if (status != GL_OK) return status;
  status = store_verify(s, read, err);
  if (status == GL_OK) status = load_study(out, s, study, err);
  if (status == GL_OK) status = sets_use_halves(*out, err);
  store_end_reading(s);
  return status;
}
