/* What the store_*.c files share. Private to core/store*.c. */
#ifndef GEPOLAB_CORE_STORE_INTERNAL_H
#define GEPOLAB_CORE_STORE_INTERNAL_H

#include "core/store/store.h"

#include <sqlite3.h>

enum {
  STORE_APPLICATION_ID = 0x47504c42, /* "GPLB" in the file header: tells our studies from others' */
  STORE_FORMAT = 2                   /* PRAGMA user_version */
};

struct store {
  sqlite3 *db;
  char *path;
  int lock; /* descriptor holding the writer's lock, or -1 */
};

/* The columns of the table steps but for `run`: step, sampler, time_s, wait_s and the metrics. */
enum { STORE_STEP_COLUMNS = 4 + METRIC_COUNT };
void store_step_columns(const char *names[STORE_STEP_COLUMNS]);
/* A failed SQLite call as a sentence: what was being done, to which file, why, the remedy. */
gl_status store_fail(store *s, int code, const char *doing, gl_error *err);
/* Runs SQL text without results. */
gl_status store_exec(store *s, const char *sql, const char *doing, gl_error *err);
gl_status store_prepare(store *s, sqlite3_stmt **out, const char *sql, gl_error *err);
/* Steps a statement that returns no records and resets it. */
gl_status store_step_done(store *s, sqlite3_stmt *stmt, const char *doing, gl_error *err);
/* BEGIN IMMEDIATE; COMMIT when status is GL_OK, else ROLLBACK. Returns the status to pass on. */
gl_status store_begin(store *s, gl_error *err);
gl_status store_end(store *s, gl_status status, gl_error *err);

#endif
