/* Writing: a run whole or not at all, chosen rates. */
#include "core/store/internal.h"

#include <math.h>
#include <string.h>

static const char *const status_names[] = {"done", "diverged", "failed"};

static void bind_text(sqlite3_stmt *stmt, int at, const char *text) {
  sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

/* INSERT INTO table VALUES(?, ?, ...) with n places. */
static gl_status prepare_insert(store *s, sqlite3_stmt **out, const char *table, int n,
                                gl_error *err) {
  char sql[512];
  int at = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", table);
  for (int i = 1; i < n && (size_t)at < sizeof sql; ++i)
    at += snprintf(sql + at, sizeof sql - (size_t)at, ",?");
  if ((size_t)at >= sizeof sql - 2)
    return gl_fail(err, GL_EINTERNAL, "too many columns: %s", table);
  memcpy(sql + at, ")", 2);
  return store_prepare(s, out, sql, err);
}

static gl_status put_head(store *s, const run_record *r, int64_t *id, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status =
      store_prepare(s, &stmt,
                    "INSERT INTO runs(key, ordinal, study, algorithm, axes, seed, lr, status,"
                    " reason, recipe, code_version, machine, wall_s)"
                    " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
                    err);
  if (status != GL_OK) return status;
  bind_text(stmt, 1, r->key);
  sqlite3_bind_int64(stmt, 2, r->ordinal);
  bind_text(stmt, 3, r->study);
  bind_text(stmt, 4, r->algorithm);
  bind_text(stmt, 5, r->axes);
  sqlite3_bind_int64(stmt, 6, (int64_t)r->seed);
  sqlite3_bind_double(stmt, 7, r->lr);
  bind_text(stmt, 8, status_names[r->status]);
  bind_text(stmt, 9, r->reason != NULL ? r->reason : "");
  bind_text(stmt, 10, r->recipe);
  bind_text(stmt, 11, r->code_version);
  bind_text(stmt, 12, r->machine);
  sqlite3_bind_double(stmt, 13, r->wall_s);
  status = store_step_done(s, stmt, "writing a run to", err);
  sqlite3_finalize(stmt);
  *id = sqlite3_last_insert_rowid(s->db);
  return status;
}

/* NaN binds as NULL, which is how SQLite and every reader here spell "does not apply". */
static gl_status put_steps(store *s, const run_record *r, int64_t id, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = prepare_insert(s, &stmt, "steps", 5 + METRIC_COUNT, err);
  for (size_t i = 0; i < r->n_steps && status == GL_OK; ++i) {
    const step_row *row = &r->steps[i];
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_int64(stmt, 2, row->step);
    sqlite3_bind_int(stmt, 3, row->sampler);
    sqlite3_bind_double(stmt, 4, row->time_s);
    sqlite3_bind_double(stmt, 5, row->wait_s);
    for (int m = 0; m < METRIC_COUNT; ++m) sqlite3_bind_double(stmt, 6 + m, row->metric[m]);
    status = store_step_done(s, stmt, "writing steps to", err);
  }
  sqlite3_finalize(stmt);
  return status;
}

static gl_status put_evals(store *s, const run_record *r, int64_t id, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = prepare_insert(s, &stmt, "evals", 4, err);
  for (size_t i = 0; i < r->n_evals && status == GL_OK; ++i) {
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_int64(stmt, 2, r->evals[i].step);
    sqlite3_bind_double(stmt, 3, r->evals[i].time_s);
    sqlite3_bind_double(stmt, 4, r->evals[i].eval_score);
    status = store_step_done(s, stmt, "writing evaluations to", err);
  }
  sqlite3_finalize(stmt);
  return status;
}

static gl_status put_staleness(store *s, const run_record *r, int64_t id, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = prepare_insert(s, &stmt, "staleness", 3, err);
  for (size_t i = 0; i < r->n_staleness && status == GL_OK; ++i) {
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_int64(stmt, 2, (int64_t)i);
    sqlite3_bind_int64(stmt, 3, (int64_t)r->staleness[i]);
    status = store_step_done(s, stmt, "writing the staleness histogram to", err);
  }
  sqlite3_finalize(stmt);
  return status;
}

static gl_status put_clock(store *s, const clock_row *c, int64_t id, gl_error *err) {
  const double value[] = {
      c->simulated_s,     c->learner_utilisation, c->sampler_utilisation, c->samples_per_s,
      c->bytes_up,        c->bytes_down,          c->staleness_mean,      c->staleness_max,
      c->staleness_p50,   c->staleness_p95,       c->batches_generated,   c->batches_trained,
      c->batches_dropped, c->batches_lost,        c->retransmissions};
  enum { N = sizeof value / sizeof value[0] };
  sqlite3_stmt *stmt = NULL;
  gl_status status = prepare_insert(s, &stmt, "clock", 1 + N, err);
  if (status != GL_OK) return status;
  sqlite3_bind_int64(stmt, 1, id);
  for (int i = 0; i < N; ++i) sqlite3_bind_double(stmt, 2 + i, value[i]);
  status = store_step_done(s, stmt, "writing the clock to", err);
  sqlite3_finalize(stmt);
  return status;
}

/* What the study already has under a key. */
typedef struct earlier_run {
  int exists, same_recipe, failed;
} earlier_run;

static gl_status find_run(store *s, const char *key, const char *recipe, earlier_run *found,
                          gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  *found = (earlier_run){0};
  gl_status status =
      store_prepare(s, &stmt, "SELECT recipe = ?2, status = ?3 FROM runs WHERE key = ?1", err);
  if (status != GL_OK) return status;
  bind_text(stmt, 1, key);
  bind_text(stmt, 2, recipe);
  bind_text(stmt, 3, status_names[RUN_FAILED]);
  int code = sqlite3_step(stmt);
  if (code == SQLITE_ROW)
    *found = (earlier_run){1, sqlite3_column_int(stmt, 0), sqlite3_column_int(stmt, 1)};
  else if (code != SQLITE_DONE)
    status = store_fail(s, code, "looking for a run in", err);
  sqlite3_finalize(stmt);
  return status;
}

static gl_status drop_run(store *s, const char *key, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt, "DELETE FROM runs WHERE key = ?", err);
  if (status != GL_OK) return status;
  bind_text(stmt, 1, key);
  status = store_step_done(s, stmt, "replacing a run in", err);
  sqlite3_finalize(stmt);
  return status;
}

gl_status store_put_run(store *s, const run_record *r, gl_error *err) {
  earlier_run earlier;
  gl_status status = find_run(s, r->key, r->recipe, &earlier, err);
  if (status != GL_OK) return status;
  if (earlier.exists && !earlier.same_recipe)
    return gl_fail(err, GL_EINTERNAL, "two recipes share the key %s in %s", r->key, s->path);
  int64_t id = 0;
  status = store_begin(s, err);
  if (status != GL_OK) return status;
  status = drop_run(s, r->key, err);
  if (status == GL_OK) status = put_head(s, r, &id, err);
  if (status == GL_OK) status = put_steps(s, r, id, err);
  if (status == GL_OK) status = put_evals(s, r, id, err);
  if (status == GL_OK) status = put_staleness(s, r, id, err);
  if (status == GL_OK) status = put_clock(s, &r->clock, id, err);
  return store_end(s, status, err);
}

int store_has_finished(store *s, const char *key, const char *recipe) {
  earlier_run earlier;
  return find_run(s, key, recipe, &earlier, NULL) == GL_OK && earlier.same_recipe &&
         !earlier.failed;
}

gl_status store_put_tuned(store *s, const char *study, const char *algorithm, const char *axes,
                          double lr, double score, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt, "INSERT OR REPLACE INTO tuned VALUES(?,?,?,?,?)", err);
  if (status != GL_OK) return status;
  bind_text(stmt, 1, study);
  bind_text(stmt, 2, algorithm);
  bind_text(stmt, 3, axes);
  sqlite3_bind_double(stmt, 4, lr);
  sqlite3_bind_double(stmt, 5, score);
  status = store_step_done(s, stmt, "writing a learning rate to", err);
  sqlite3_finalize(stmt);
  return status;
}
