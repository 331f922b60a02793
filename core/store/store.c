/* Opening a study: the file, its format, its one writer. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "core/store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- the schema --------------------------------------------------------------------------------
 */

static const char schema_head[] =
    "CREATE TABLE runs(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, ordinal INTEGER NOT NULL,"
    " study TEXT NOT NULL, algorithm TEXT NOT NULL, swept TEXT NOT NULL, chosen TEXT,"
    " meaning INTEGER NOT NULL, seed INTEGER NOT NULL, lr REAL, status TEXT NOT NULL, reason TEXT "
    "NOT NULL, recipe TEXT NOT NULL,"
    " code_version TEXT NOT NULL, machine TEXT NOT NULL, wall_s REAL);"
    "CREATE TABLE evals(run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, step INTEGER,"
    " time_s REAL, eval_score REAL, PRIMARY KEY(run, step)) WITHOUT ROWID;"
    "CREATE TABLE staleness(run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
    " staleness INTEGER, count INTEGER, PRIMARY KEY(run, staleness)) WITHOUT ROWID;"
    "CREATE TABLE clock(run INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,"
    " simulated_s REAL, learner_utilisation REAL, sampler_utilisation REAL, samples_per_s REAL,"
    " bytes_up REAL, bytes_down REAL, staleness_mean REAL, staleness_max REAL, staleness_p50 REAL,"
    " staleness_p95 REAL, batches_generated REAL, batches_trained REAL, batches_dropped REAL,"
    " batches_lost REAL, retransmissions REAL);"
    "CREATE TABLE tuned(study TEXT, algorithm TEXT, lr REAL, score REAL,"
    " PRIMARY KEY(study, algorithm)) WITHOUT ROWID;"
    "CREATE TABLE steps(run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, step INTEGER,"
    " sampler INTEGER, time_s REAL, wait_s REAL";

static gl_status create_schema(store *s, gl_error *err) {
  char *steps = sqlite3_mprintf("%s", "");
  for (int m = 0; m < METRIC_COUNT && steps != NULL; ++m) {
    char *longer = sqlite3_mprintf("%s, %s REAL", steps, metric_about((metric)m)->name);
    sqlite3_free(steps);
    steps = longer;
  }
  char *sql = steps == NULL
                  ? NULL
                  : sqlite3_mprintf("%s%s, PRIMARY KEY(run, step)) WITHOUT ROWID;"
                                    "PRAGMA application_id = %d; PRAGMA user_version = %d;",
                                    schema_head, steps, STORE_APPLICATION_ID, STORE_FORMAT);
  sqlite3_free(steps);
  if (sql == NULL) return gl_fail_memory(err, "the study's schema");
  gl_status status = store_begin(s, err);
  if (status == GL_OK)
    status = store_end(s, store_exec(s, sql, "creating the tables of", err), err);
  sqlite3_free(sql);
  return status;
}

void store_step_columns(const char *names[STORE_STEP_COLUMNS]) {
  static const char *const first[] = {"step", "sampler", "time_s", "wait_s"};
  memcpy(names, first, sizeof first);
  for (int m = 0; m < METRIC_COUNT; ++m) names[4 + m] = metric_about((metric)m)->name;
}

static int has_column(store *s, const char *schema, const char *table, const char *name) {
  return sqlite3_table_column_metadata(s->db, schema, table, name, NULL, NULL, NULL, NULL, NULL) ==
         SQLITE_OK;
}

/* Metrics that are younger than the file get their columns. */
static gl_status add_metrics(store *s, gl_error *err) {
  gl_status status = GL_OK;
  for (int m = 0; m < METRIC_COUNT && status == GL_OK; ++m) {
    const char *name = metric_about((metric)m)->name;
    if (has_column(s, "main", "steps", name)) continue;
    char *sql = sqlite3_mprintf("ALTER TABLE steps ADD COLUMN \"%w\" REAL", name);
    if (sql == NULL) return gl_fail_memory(err, "a column");
    status = store_exec(s, sql, "adding a metric to", err);
    sqlite3_free(sql);
  }
  return status;
}

char *store_columns(store *s, const char *schema, const char *table, const char *alias,
                    const char *const *names, size_t n) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  for (size_t i = 0; i < n && to != NULL; ++i) {
    if (has_column(s, schema, table, names[i]))
      fprintf(to, "%s%s.\"%s\"", i > 0 ? ", " : "", alias, names[i]);
    else
      fprintf(to, "%sNULL AS \"%s\"", i > 0 ? ", " : "", names[i]);
  }
  if (to != NULL && fclose(to) == 0) return text;
  free(text);
  return NULL;
}

static gl_status pragma_int(store *s, const char *sql, int *value, gl_error *err) {
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt, sql, err);
  if (status != GL_OK) return status;
  int code = sqlite3_step(stmt);
  if (code == SQLITE_ROW)
    *value = sqlite3_column_int(stmt, 0);
  else
    status = store_fail(s, code, "reading", err);
  sqlite3_finalize(stmt);
  return status;
}

/* *empty: a file without a single page of content. */
static gl_status check_format(store *s, int *empty, gl_error *err) {
  int id = 0, format = 0, tables = 0;
  gl_status status = pragma_int(s, "SELECT count(*) FROM sqlite_master", &tables, err);
  if (status == GL_OK) status = pragma_int(s, "PRAGMA application_id", &id, err);
  if (status == GL_OK) status = pragma_int(s, "PRAGMA user_version", &format, err);
  if (status != GL_OK) return status;
  *empty = tables == 0 && id == 0;
  if (*empty) return GL_OK;
  if (id != STORE_APPLICATION_ID)
    return gl_fail(err, GL_EIO,
                   "%s is an SQLite database, but not a gepolab study; choose another file",
                   s->path);
  if (format == 1)
    return gl_fail(err, GL_EIO,
                   "%s has study format 1, written by gepolab 0.1.0 or before, and this gepolab "
                   "reads format %d; sweep its recipe again into a new file, or read it with "
                   "gepolab 0.1.0",
                   s->path, STORE_FORMAT);
  if (format != STORE_FORMAT)
    return gl_fail(err, GL_EIO,
                   "%s has study format %d, this gepolab reads format %d; use the version of "
                   "gepolab that wrote it, or another file",
                   s->path, format, STORE_FORMAT);
  return GL_OK;
}

/* --- the writer's lock -------------------------------------------------------------------------
 */

/* An open-file-description lock on a byte SQLite never touches, taken before anything is made or
 * changed. Closing the descriptor releases it, also when the process is killed; readers are not in
 * its way. A writer that was killed a moment ago may have children that still hold it, so a busy
 * lock is tried again for two seconds. *made: the file did not exist before. */
static gl_status lock_writer(store *s, int *made, gl_error *err) {
  s->lock = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  *made = s->lock >= 0;
  if (s->lock < 0 && errno == EEXIST) s->lock = open(s->path, O_RDWR | O_CLOEXEC);
  if (s->lock < 0)
    return gl_fail(err, GL_EIO, "cannot open %s for writing: %s; write to another place", s->path,
                   strerror(errno));
  struct flock byte = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)1 << 61, .l_len = 1};
  for (int tries = 0; fcntl(s->lock, F_OFD_SETLK, &byte) != 0; ++tries) {
    if (errno != EAGAIN && errno != EACCES) break; /* no such locks here: SQLite's own must do */
    if (tries == 40) {
      *made = 0; /* another writer was faster: the file is its */
      return gl_fail(err, GL_EIO,
                     "%s is being written by another gepolab process; wait for it, or write to "
                     "another file and join them with `gepolab merge`",
                     s->path);
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  }
  return GL_OK;
}

/* --- opening and closing -----------------------------------------------------------------------
 */

static gl_status open_checked(store *s, store_mode mode, const char *vfs, gl_error *err) {
  /* A reader opens for writing too where it may: a writer that was killed leaves a journal that has
   * to be rolled back before anything can be read. */
  int code = sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE, vfs);
  if (code != SQLITE_OK) return store_fail(s, code, "opening", err);
  sqlite3_extended_result_codes(s->db, 1);
  sqlite3_busy_timeout(s->db, 10000);
  int empty = 0;
  /* A rollback journal keeps a finished study in a single file; FULL (the default) survives a power
   * cut, and a commit per run costs little beside the run. */
  gl_status status = store_exec(s, "PRAGMA foreign_keys = ON", "opening", err);
  if (status == GL_OK) status = check_format(s, &empty, err);
  if (status != GL_OK) return status;
  if (mode == STORE_READ) {
    if (empty) return gl_fail(err, GL_EIO, "%s is empty, not a gepolab study", s->path);
    return store_exec(s, "PRAGMA query_only = ON", "opening", err);
  }
  if (sqlite3_db_readonly(s->db, "main") == 1)
    return gl_fail(err, GL_EIO, "%s is read-only; copy it, or write to another file", s->path);
  return empty ? create_schema(s, err) : add_metrics(s, err);
}

/* Leaves nothing of a new study that failed: not the file, and not the journal that SQLite keeps
 * where it could not undo its changes. Still under the writer's lock. */
static void remove_half_made(store *s) {
  sqlite3_close(s->db);
  s->db = NULL;
  unlink(s->path);
  char *journal = sqlite3_mprintf("%s-journal", s->path);
  if (journal != NULL) unlink(journal);
  sqlite3_free(journal);
}

gl_status store_open_vfs(store **out, const char *path, store_mode mode, const char *vfs,
                         gl_error *err) {
  *out = NULL;
  if (mode == STORE_READ && access(path, F_OK) != 0)
    return gl_fail(err, GL_EIO, "cannot open %s: %s", path, strerror(errno));
  store *s = calloc(1, sizeof *s);
  if (s == NULL) return gl_fail_memory(err, "a study");
  s->lock = -1;
  s->path = strdup(path);
  int made = 0;
  gl_status status = s->path == NULL ? gl_fail_memory(err, "a path") : GL_OK;
  if (status == GL_OK && mode == STORE_WRITE) status = lock_writer(s, &made, err);
  if (status == GL_OK) status = open_checked(s, mode, vfs, err);
  if (status == GL_OK) {
    *out = s;
    return GL_OK;
  }
  if (made) remove_half_made(s);
  store_close(s);
  return status;
}

gl_status store_open(store **out, const char *path, store_mode mode, gl_error *err) {
  return store_open_vfs(out, path, mode, NULL, err);
}

void store_close(store *s) {
  if (s == NULL) return;
  sqlite3_close(s->db);
  /* after SQLite: closing any descriptor of the file would drop the locks SQLite holds on it */
  if (s->lock >= 0) close(s->lock);
  free(s->path);
  free(s);
}

sqlite3 *store_handle(store *s) {
  return s->db;
}

/* --- shared by the files of this room ------------------------------------------------------------
 */

static const char *reason_of(int code) {
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
  const char *reason = reason_of(code);
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

gl_status store_begin(store *s, gl_error *err) {
  return store_exec(s, "BEGIN IMMEDIATE", "writing", err);
}

gl_status store_end(store *s, gl_status status, gl_error *err) {
  if (status == GL_OK) status = store_exec(s, "COMMIT", "writing", err);
  if (status != GL_OK && sqlite3_get_autocommit(s->db) == 0)
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
  return status;
}
