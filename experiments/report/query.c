/* Runs a query over a study's file. */
#include "experiments/report/query.h"

#include <math.h>

static gl_status each(store *from, const char *sql, const char *study, query_record *take,
                      void *context, gl_error *err) {
  sqlite3 *db = store_handle(from);
  sqlite3_stmt *q = NULL;
  gl_status status = GL_OK;
  int code = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
  if (code == SQLITE_OK && study != NULL) code = sqlite3_bind_text(q, 1, study, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = SQLITE_ROW;
  while (status == GL_OK && code == SQLITE_ROW && (code = sqlite3_step(q)) == SQLITE_ROW)
    status = take(context, q, err);
  if (status == GL_OK && code != SQLITE_DONE)
    status = gl_fail(err, GL_EIO, "the study cannot be read: %s; is the file damaged?",
                     sqlite3_errmsg(db));
  sqlite3_finalize(q);
  return status;
}

gl_status query_each(store *from, const char *const *tables, const char *sql, const char *study,
                     query_record *take, void *context, gl_error *err) {
  gl_status status = store_begin_reading(from, err);
  if (status != GL_OK) return status;
  status = store_verify(from, tables, err);
  if (status == GL_OK) status = each(from, sql, study, take, context, err);
  store_end_reading(from);
  return status;
}

const char *query_text(sqlite3_stmt *record, int column) {
  const char *text = (const char *)sqlite3_column_text(record, column);
  return text != NULL ? text : "";
}

double query_number(sqlite3_stmt *record, int column) {
  return sqlite3_column_type(record, column) == SQLITE_NULL ? NAN
                                                            : sqlite3_column_double(record, column);
}
