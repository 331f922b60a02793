/* SQLite calls with readable errors, transactions, and queries for columns of a file. */
#include "core/store/internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

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
  if ((code & 0xff) == SQLITE_CORRUPT && !s->reads_cut)
    return gl_fail(
        err, GL_EIO,
        "%s %s failed: the file is damaged; restore a copy, or copy what is whole into a "
        "new study: `gepolab study check %s --salvage NEW.db`",
        doing, s->path, s->path);
  const char *reason = sql_reason_of(code);
  if (reason == NULL) reason = s->db != NULL ? sqlite3_errmsg(s->db) : sqlite3_errstr(code);
  return gl_fail(err, (code & 0xff) == SQLITE_NOMEM ? GL_ENOMEM : GL_EIO, "%s %s failed: %s", doing,
                 s->path, reason);
}

gl_status store_exec(store *s, const char *sql, const char *doing, gl_error *err) {
  int code = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
  return code == SQLITE_OK ? GL_OK : store_fail(s, code, doing, err);
}

gl_status store_execf(store *s, const char *doing, gl_error *err, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *sql = sqlite3_vmprintf(format, list);
  va_end(list);
  gl_status status = sql != NULL ? store_exec(s, sql, doing, err) : gl_fail_memory(err, "SQL");
  sqlite3_free(sql);
  return status;
}

/* --- statements --- */

void query_begin(query *q, store *s, const char *sql, gl_error *err) {
  *q = (query){.s = s, .err = err, .doing = "reading"};
  const int code = sqlite3_prepare_v2(s->db, sql, -1, &q->stmt, NULL);
  if (code != SQLITE_OK) q->status = store_fail(s, code, q->doing, err);
}

void query_beginf(query *q, store *s, gl_error *err, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *sql = sqlite3_vmprintf(format, list);
  va_end(list);
  if (sql != NULL)
    query_begin(q, s, sql, err);
  else
    *q = (query){.s = s, .err = err, .status = gl_fail_memory(err, "SQL")};
  sqlite3_free(sql);
}

void query_bind_text(query *q, int at, const char *text) {
  if (q->status == GL_OK) sqlite3_bind_text(q->stmt, at, text, -1, SQLITE_STATIC);
}

void query_bind_integer(query *q, int at, int64_t value) {
  if (q->status == GL_OK) sqlite3_bind_int64(q->stmt, at, value);
}

bool query_next(query *q) {
  if (q->status != GL_OK) return false;
  q->code = sqlite3_step(q->stmt);
  if (q->code != SQLITE_ROW && q->code != SQLITE_DONE)
    q->status = store_fail(q->s, q->code, q->doing, q->err);
  return q->code == SQLITE_ROW;
}

gl_status query_run(query *q) {
  if (query_next(q)) q->status = store_fail(q->s, SQLITE_ROW, q->doing, q->err);
  sqlite3_reset(q->stmt);
  return q->status;
}

gl_status query_end(query *q) {
  sqlite3_finalize(q->stmt);
  q->stmt = NULL;
  return q->status;
}

const char *query_get_text(const query *q, int column) {
  return (const char *)sqlite3_column_text(q->stmt, column);
}

int64_t query_get_integer(const query *q, int column) {
  return sqlite3_column_int64(q->stmt, column);
}

double query_get_real(const query *q, int column) {
  return sqlite3_column_type(q->stmt, column) == SQLITE_NULL
             ? NAN
             : sqlite3_column_double(q->stmt, column);
}

gl_status store_query_integer(store *s, int64_t *value, const char *sql, const char *text,
                              gl_error *err) {
  query q;
  query_begin(&q, s, sql, err);
  if (text != NULL) query_bind_text(&q, 1, text);
  if (query_next(&q))
    *value = query_get_integer(&q, 0);
  else if (q.status == GL_OK)
    q.status = store_fail(s, SQLITE_DONE, q.doing, err);
  return query_end(&q);
}

/* --- transactions --- */

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
