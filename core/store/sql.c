/* SQLite's calls with errors as sentences, transactions, and the columns that a file has. */
#include "core/store/internal.h"

#include <stdlib.h>
#include <string.h>

/* --- calls --- */

static const char *sql_reason_of(int code) {
  if (code == SQLITE_READONLY_DBMOVED)
    return "the file was deleted, moved or replaced while it was open; results that were in it are "
           "where it is now, and the same command makes the others again";
  switch (code & 0xff) {
  case SQLITE_FULL:
    return "the disk is full; free some room and start again, finished runs are kept";
  case SQLITE_READONLY:
    return "the file or its file system is read-only; write to another place";
  case SQLITE_CANTOPEN:
    return "the file, or the journal beside it, cannot be opened; check the folder and its "
           "permissions";
  case SQLITE_NOTADB:
    return "it is not an SQLite database, so not a gepolab study";
  case SQLITE_CORRUPT:
    return "the file is damaged; restore a copy";
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return "another process holds it; wait for it to end";
  case SQLITE_IOERR:
    return "reading or writing the disk failed (I/O error); check the disk, finished runs are kept";
  case SQLITE_NOMEM:
    return "out of memory";
  default:
    return NULL;
  }
}

gl_status store_fail(store *s, int code, const char *doing, gl_error *err) {
  const char *reason = sql_reason_of(code);
  if (reason == NULL) reason = s->db != NULL ? sqlite3_errmsg(s->db) : sqlite3_errstr(code);
  return gl_fail(err, (code & 0xff) == SQLITE_NOMEM ? GL_ENOMEM : GL_EIO, "%s %s failed: %s", doing,
                 s->path, reason);
}

gl_status store_exec(store *s, const char *sql, const char *doing, gl_error *err) {
  int code = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
  return code == SQLITE_OK ? GL_OK : store_fail(s, code, doing, err);
}

gl_status store_prepare(store *s, sqlite3_stmt **out, const char *sql, gl_error *err) {
  int code = sqlite3_prepare_v2(s->db, sql, -1, out, NULL);
  return code == SQLITE_OK ? GL_OK : store_fail(s, code, "reading", err);
}

gl_status store_step_done(store *s, sqlite3_stmt *stmt, const char *doing, gl_error *err) {
  int code = sqlite3_step(stmt);
  gl_status status = code == SQLITE_DONE ? GL_OK : store_fail(s, code, doing, err);
  sqlite3_reset(stmt);
  return status;
}

gl_status store_whole(store *s, int64_t *value, const char *sql, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt, sql, err);
  if (status != GL_OK) return status;
  int code = sqlite3_step(stmt);
  if (code == SQLITE_ROW)
    *value = sqlite3_column_int64(stmt, 0);
  else
    status = store_fail(s, code, "reading", err);
  sqlite3_finalize(stmt);
  return status;
}

void store_bind_text(sqlite3_stmt *stmt, int at, const char *text) {
  sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

gl_status store_begin_reading(store *s, gl_error *err) {
  gl_status status = s->readers > 0 ? GL_OK : store_exec(s, "BEGIN", "reading", err);
  s->readers += status == GL_OK;
  return status;
}

void store_end_reading(store *s) {
  if (--s->readers == 0) sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
}

gl_status store_begin(store *s, gl_error *err) {
  return store_exec(s, "BEGIN IMMEDIATE", "writing", err);
}

gl_status store_end(store *s, gl_status status, gl_error *err) {
  if (status == GL_OK) status = store_exec(s, "COMMIT", "writing", err);
  if (status != GL_OK && sqlite3_get_autocommit(s->db) == 0)
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
  return status;
}

/* --- columns --- */

void store_step_columns(const char *names[STORE_STEP_COLUMNS]) {
  static const char *const first[] = {"step", "sampler", "time_s", "wait_s"};
  memcpy(names, first, sizeof first);
  for (int m = 0; m < METRIC_COUNT; ++m) names[4 + m] = metric_about((metric)m)->name;
}

int store_has_column(store *s, const char *schema, const char *table, const char *name) {
  return sqlite3_table_column_metadata(s->db, schema, table, name, NULL, NULL, NULL, NULL, NULL) ==
         SQLITE_OK;
}

char *store_columns(store *s, const char *schema, const char *table, const char *alias,
                    const char *const *names, size_t n) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  for (size_t i = 0; i < n && to != NULL; ++i) {
    if (store_has_column(s, schema, table, names[i]))
      fprintf(to, "%s%s.\"%s\"", i > 0 ? ", " : "", alias, names[i]);
    else
      fprintf(to, "%sNULL AS \"%s\"", i > 0 ? ", " : "", names[i]);
  }
  if (to != NULL && fclose(to) == 0) return text;
  free(text);
  return NULL;
}
