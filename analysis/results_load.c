#include "analysis/results.h"

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

/* A query over one run's rows, and what takes a row of it. */
typedef struct rows {
  const char *sql, *count_sql;
  size_t item;
  void (*take)(sqlite3_stmt *q, void *items, size_t i);
} rows;

static void take_eval(sqlite3_stmt *q, void *items, size_t i) {
  ((eval_row *)items)[i] =
      (eval_row){sqlite3_column_int64(q, 0), column_number(q, 1), column_number(q, 2)};
}

/* The steps table's columns after (run, step, sampler, time_s, wait_s) are the metrics in order. */
static void take_step(sqlite3_stmt *q, void *items, size_t i) {
  step_row *s = (step_row *)items + i;
  s->step = sqlite3_column_int64(q, 1);
  s->sampler = sqlite3_column_int(q, 2);
  s->time_s = column_number(q, 3);
  s->wait_s = column_number(q, 4);
  for (int m = 0; m < METRIC_COUNT; m++) s->metric[m] = column_number(q, 5 + m);
}

static void take_staleness(sqlite3_stmt *q, void *items, size_t i) {
  (void)i;
  ((uint64_t *)items)[sqlite3_column_int64(q, 0)] = (uint64_t)sqlite3_column_int64(q, 1);
}

static const rows eval_rows = {
    "SELECT step, time_s, eval_score FROM evals WHERE run = ?1 ORDER BY step",
    "SELECT count(*) FROM evals WHERE run = ?1", sizeof(eval_row), take_eval};
static const rows step_rows = {"SELECT * FROM steps WHERE run = ?1 ORDER BY step",
                               "SELECT count(*) FROM steps WHERE run = ?1", sizeof(step_row),
                               take_step};
static const rows staleness_rows = {
    "SELECT staleness, count FROM staleness WHERE run = ?1 AND staleness >= 0",
    "SELECT coalesce(max(staleness) + 1, 0) FROM staleness WHERE run = ?1", sizeof(uint64_t),
    take_staleness};

/* The rows of one run on the heap, *n items. */
static gl_status load_rows(sqlite3 *db, const rows *what, int64_t run, void **items, size_t *n,
                           gl_error *err) {
  sqlite3_stmt *count = NULL, *q = NULL;
  gl_status status = GL_OK;
  int code = sqlite3_prepare_v2(db, what->count_sql, -1, &count, NULL);
  if (code == SQLITE_OK) code = sqlite3_prepare_v2(db, what->sql, -1, &q, NULL);
  if (code == SQLITE_OK) sqlite3_bind_int64(count, 1, run), sqlite3_bind_int64(q, 1, run);
  if (code != SQLITE_OK || sqlite3_step(count) != SQLITE_ROW) {
    status = database_failed(db, err);
  } else {
    *n = (size_t)sqlite3_column_int64(count, 0);
    *items = calloc(*n + 1, what->item);
    if (!*items) status = gl_fail_memory(err, "a run's rows");
    for (size_t i = 0; status == GL_OK && (code = sqlite3_step(q)) == SQLITE_ROW && i < *n; i++)
      what->take(q, *items, i);
    if (status == GL_OK && code != SQLITE_DONE) status = database_failed(db, err);
  }
  sqlite3_finalize(count), sqlite3_finalize(q);
  return status;
}

static run_status status_named(const char *name) {
  return strcmp(name, "done") == 0       ? RUN_DONE
         : strcmp(name, "diverged") == 0 ? RUN_DIVERGED
                                         : RUN_FAILED;
}

static const char runs_sql[] =
    "SELECT r.id, r.study, r.algorithm, r.axes, r.seed, r.lr, r.status, c.simulated_s,"
    " c.learner_utilisation, c.sampler_utilisation, c.samples_per_s, c.staleness_mean,"
    " c.staleness_max, c.staleness_p50, c.staleness_p95 FROM runs r LEFT JOIN clock c"
    " ON c.run = r.id ORDER BY r.ordinal, r.key";

static gl_status load_run(results *r, sqlite3 *db, sqlite3_stmt *q, gl_error *err) {
  run_record run = {
      .algorithm = (const char *)sqlite3_column_text(q, 2),
      .axes = (const char *)sqlite3_column_text(q, 3),
      .seed = (uint64_t)sqlite3_column_int64(q, 4),
      .lr = column_number(q, 5),
      .status = status_named((const char *)sqlite3_column_text(q, 6)),
      .clock = {.simulated_s = column_number(q, 7),
                .learner_utilisation = column_number(q, 8),
                .sampler_utilisation = column_number(q, 9),
                .samples_per_s = column_number(q, 10),
                .staleness_mean = column_number(q, 11),
                .staleness_max = column_number(q, 12),
                .staleness_p50 = column_number(q, 13),
                .staleness_p95 = column_number(q, 14)},
  };
  void *steps = NULL, *evals = NULL, *staleness = NULL;
  int64_t id = sqlite3_column_int64(q, 0);
  gl_status status = load_rows(db, &step_rows, id, &steps, &run.n_steps, err);
  if (status == GL_OK) status = load_rows(db, &eval_rows, id, &evals, &run.n_evals, err);
  if (status == GL_OK)
    status = load_rows(db, &staleness_rows, id, &staleness, &run.n_staleness, err);
  run.steps = steps;
  run.evals = evals;
  run.staleness = staleness;
  if (status == GL_OK) status = results_add(r, &run, err);
  free(steps), free(evals), free(staleness);
  return status;
}

gl_status results_load(results **out, store *s, gl_error *err) {
  sqlite3 *db = store_handle(s);
  sqlite3_stmt *q = NULL;
  results *r = NULL;
  gl_status status = GL_OK;
  int code = sqlite3_prepare_v2(db, runs_sql, -1, &q, NULL);
  *out = NULL;
  if (code != SQLITE_OK) return database_failed(db, err);
  while (status == GL_OK && (code = sqlite3_step(q)) == SQLITE_ROW) {
    if (!r && !(r = results_new((const char *)sqlite3_column_text(q, 1))))
      status = gl_fail_memory(err, "a study");
    if (status == GL_OK) status = load_run(r, db, q, err);
  }
  if (status == GL_OK && code != SQLITE_DONE) status = database_failed(db, err);
  sqlite3_finalize(q);
  if (status == GL_OK && !r)
    status = gl_fail(err, GL_EINPUT, "the study holds no finished run; sweep its recipe first");
  if (status == GL_OK) status = results_arrange(r, err);
  if (status == GL_OK)
    *out = r;
  else
    results_free(r);
  return status;
}
