/* Keeps and finds the scores of tuning runs. */
#include "core/store/scores.h"

#include "core/store/internal.h"

static gl_status put(store *s, const score_record *r, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt,
                                   "INSERT OR REPLACE INTO tuning_scores(key, recipe, score, "
                                   "wall_s, finished) VALUES(?,?,?,?,?)",
                                   err);
  if (status != GL_OK) return status;
  store_bind_text(stmt, 1, r->key);
  store_bind_text(stmt, 2, r->recipe);
  sqlite3_bind_double(stmt, 3, r->score);
  sqlite3_bind_double(stmt, 4, r->wall_s); /* NaN is NULL */
  store_bind_text(stmt, 5, r->finished);
  status = store_step_done(s, stmt, "keeping a tuning score", err);
  sqlite3_finalize(stmt);
  return status;
}

/* There may be thousands of scores, each with a recipe, so that only the new one is read again. */
gl_status store_put_score(store *s, const score_record *r, gl_error *err) {
  static const char table[] = "tuning_scores";
  seal_part before;
  char *which = sqlite3_mprintf("key = %Q", r->key);
  if (which == NULL) return gl_fail_memory(err, "a tuning score");
  gl_status status = store_begin(s, err);
  if (status == GL_OK) {
    status = store_part_of(s, &before, table, which, err);
    if (status == GL_OK) status = put(s, r, err);
    if (status == GL_OK) status = store_seal_part(s, table, which, before, err);
    status = store_end(s, status, err);
  }
  sqlite3_free(which);
  return status;
}

int store_get_score(store *s, const char *key, const char *recipe, double *score) {
  sqlite3_stmt *stmt = NULL;
  const char *sql = "SELECT score FROM tuning_scores WHERE key = ?1 AND recipe = ?2";
  if (store_prepare(s, &stmt, sql, NULL) != GL_OK) return 0;
  sqlite3_bind_text(stmt, 1, key, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(stmt, 2, recipe, -1, SQLITE_TRANSIENT);
  int found = sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL;
  if (found) *score = sqlite3_column_double(stmt, 0);
  sqlite3_finalize(stmt);
  return found;
}
