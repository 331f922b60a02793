/* Questions to a study's file that analysis/ does not ask. Only for the files of this room. */
#ifndef GEPOLAB_EXPERIMENTS_REPORT_QUERY_H
#define GEPOLAB_EXPERIMENTS_REPORT_QUERY_H

#include "core/base/error.h"
#include "core/store/store.h"

#include <sqlite3.h>

/* Called with each record of an answer. */
typedef gl_status query_record(void *context, sqlite3_stmt *record, gl_error *err);

/* Asks, once the tables (ended by NULL) agree with their checksums; ?1 in the question is the
 * study's name (NULL: the question has none). GL_EIO as the database says and for damage, or what
 * `take` returns. */
gl_status query_each(store *from, const char *const *tables, const char *sql, const char *study,
                     query_record *take, void *context, gl_error *err);
/* A column as text, "" for NULL; as a number, NaN for NULL. */
const char *query_text(sqlite3_stmt *record, int column);
double query_number(sqlite3_stmt *record, int column);

#endif
