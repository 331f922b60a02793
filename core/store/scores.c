/* Keeps and finds the scores of tuning runs. */
#include "core/store/scores.h"

#include "core/store/internal.h"

/* A table of its own, made when first needed: studies without tuning do not have it. */
static const char create_sql[] = "CREATE TABLE IF NOT EXISTS tuning_scores(key TEXT PRIMARY KEY,"
                                 " recipe TEXT NOT NULL, score REAL) WITHOUT ROWID";

gl_status store_put_score(store *s, const char *key, const char *recipe, double score,
                          gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_exec(s, create_sql, "keeping a tuning score", err);
  if (status == GL_OK)
    status =
        store_prepare(s, &stmt, "INSERT OR REPLACE INTO tuning_scores VALUES (?1, ?2, ?3)", err);
  if (status != GL_OK) return status;
  sqlite3_bind_text(stmt, 1, key, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(stmt, 2, recipe, -1, SQLITE_TRANSIENT);
  sqlite3_bind_double(stmt, 3, score);
  status = store_step_done(s, stmt, "keeping a tuning score", err);
  sqlite3_finalize(stmt);
  return status;
}

int store_get_score(store *s, const char *key, const char *recipe, double *score) {
  sqlite3_stmt *stmt = NULL;
  const char *sql = "SELECT score FROM tuning_scores WHERE key = ?1 AND recipe = ?2";
  if (store_prepare(s, &stmt, sql, NULL) != GL_OK) return 0; /* no such table yet */
  sqlite3_bind_text(stmt, 1, key, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(stmt, 2, recipe, -1, SQLITE_TRANSIENT);
  int found = sqlite3_step(stmt) == SQLITE_ROW;
  if (found) *score = sqlite3_column_double(stmt, 0);
  sqlite3_finalize(stmt);
  return found;
}
