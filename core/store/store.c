/* Opens a study: the file and its single writer. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "core/store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- the schema --- */

static gl_status create_schema(store *s, gl_error *err) {
  char *tables = schema_sql();
  if (tables == NULL) return gl_fail_memory(err, "the study's schema");
  gl_status status = store_begin(s, err);
  if (status == GL_OK)
    status = store_end(s,
                       store_execf(s, "creating the tables of", err,
                                   "%s PRAGMA application_id = %d; PRAGMA user_version = %d;",
                                   tables, STORE_APPLICATION_ID, STORE_FORMAT),
                       err);
  free(tables);
  return status;
}

/* Adds columns for metrics that are newer than the file. */
static gl_status add_metrics(store *s, gl_error *err) {
  gl_status status = GL_OK;
  for (int m = 0; m < METRIC_COUNT && status == GL_OK; ++m) {
    const char *name = metric_about((metric)m)->name;
    if (!store_has_column(s, "main", "steps", name))
      status = store_execf(s, "adding a metric to", err, "ALTER TABLE steps ADD COLUMN \"%w\" REAL",
                           name);
  }
  return status;
}

/* --- the writer's lock --- */

static struct flock writer_byte(void) {
  return (struct flock){
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)1 << 61, .l_len = 1};
}

/* Locks a byte that SQLite never uses, before anything is created or changed. It is an
 * open-file-description lock, so closing the descriptor releases it, also if the process is killed;
 * it does not block readers. Children of a writer that was just killed may still hold the lock, so
 * a busy lock is retried for two seconds. *made: this call created the file. */
static gl_status lock_writer(store *s, int *made, gl_error *err) {
  s->lock = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  *made = s->lock >= 0;
  if (s->lock < 0 && errno == EEXIST) s->lock = open(s->path, O_RDWR | O_CLOEXEC);
  if (s->lock < 0)
    return gl_fail(err, GL_EIO, "cannot open %s for writing: %s; write to another place", s->path,
                   strerror(errno));
  struct flock byte = writer_byte();
  for (int tries = 0; fcntl(s->lock, F_OFD_SETLK, &byte) != 0; ++tries) {
    if (errno != EAGAIN && errno != EACCES)
      break; /* the file system has no such locks: rely on SQLite's own */
    if (tries == 40) {
      *made = 0; /* another writer got the lock first and owns the file */
      return gl_fail(err, GL_EIO,
                     "%s is being written by another gepolab process; wait for it, or write to "
                     "another file and join them with `gepolab study merge`",
                     s->path);
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  }
  return GL_OK;
}

int store_is_being_written(const char *path) {
  struct flock byte = writer_byte();
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const int known = fcntl(file, F_OFD_GETLK, &byte) == 0;
  close(file);
  return known && byte.l_type != F_UNLCK;
}

/* --- waiting for other processes --- */

void store_set_waiting(store *s, store_waiting waiting) {
  s->waiting = waiting;
}

/* SQLite calls this each time another process has locked the file; returning 1 tries again. */
static int wait_for_others(void *self, int tries) {
  enum { PAUSE_MS = 20, SAYS_AFTER_MS = 2000 };
  const store *s = self;
  const double longest_ms = 1e3 * (s->waiting.longest_s > 0 ? s->waiting.longest_s : 60);
  if ((double)tries * PAUSE_MS > longest_ms) return 0;
  if (s->waiting.stops != NULL && s->waiting.stops(s->waiting.self)) return 0;
  if (tries == SAYS_AFTER_MS / PAUSE_MS && s->waiting.notify != NULL) {
    char text[512];
    snprintf(text, sizeof text, "waiting for another process that is reading %.300s", s->path);
    s->waiting.notify(s->waiting.self, text);
  }
  nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
  return 1;
}

/* --- opening and closing --- */

/* Treats the file as untrusted: code in its schema is not run, text length is limited to that of
 * our own texts, and cells of pages are checked when read. SQLite refuses a file with fewer pages
 * than its header says, unless its schema is writable; the file is then still only read. */
static gl_status distrust(store *s, gl_error *err) {
  int code = sqlite3_db_config(
      s->db, s->reads_cut ? SQLITE_DBCONFIG_WRITABLE_SCHEMA : SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  if (code == SQLITE_OK) code = sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  if (code == SQLITE_OK) code = store_sum_functions(s->db);
  if (code != SQLITE_OK) return store_fail(s, code, "opening", err);
  sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, 64 << 20);
  return store_exec(s, "PRAGMA cell_size_check = ON", "opening", err);
}

static gl_status open_for_writing(store *s, int empty, gl_error *err) {
  if (sqlite3_db_readonly(s->db, "main") == 1)
    return gl_fail(err, GL_EIO, "%s is read-only; copy it, or write to another file", s->path);
  if (empty) return create_schema(s, err);
  const gl_status status = add_metrics(s, err);
  return status == GL_OK ? schema_add_views(s, err) : status;
}

static gl_status open_checked(store *s, store_mode mode, const char *vfs, int *empty,
                              gl_error *err) {
  /* Readers also open for writing if possible, because a killed writer may leave a journal that
   * must be rolled back before anything can be read. */
  int code = sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE, vfs);
  if (code != SQLITE_OK) return store_fail(s, code, "opening", err);
  sqlite3_extended_result_codes(s->db, 1);
  sqlite3_busy_handler(s->db, wait_for_others, s);
  /* With a rollback journal a finished study is a single file. FULL (the default) survives a power
   * failure; one commit per run costs little compared with the run. */
  gl_status status = distrust(s, err);
  if (status == GL_OK) status = store_exec(s, "PRAGMA foreign_keys = ON", "opening", err);
  if (status == GL_OK) status = store_check_format(s, empty, err);
  if (status != GL_OK) return status;
  if (mode == STORE_WRITE) return open_for_writing(s, *empty, err);
  if (*empty && mode != STORE_READ_ANY)
    return gl_fail(
        err, GL_EIO,
        "%s is empty, as a sweep leaves it that was stopped before its first cell; run the "
        "sweep again",
        s->path);
  return store_exec(s, "PRAGMA query_only = ON", "opening", err);
}

/* Removes a new study that failed: the file, and the journal that SQLite leaves if it could not
 * undo its changes. The writer's lock must still be held. */
static void remove_half_made(store *s) {
  sqlite3_close(s->db);
  s->db = NULL;
  unlink(s->path);
  char *journal = sqlite3_mprintf("%s-journal", s->path);
  if (journal != NULL) unlink(journal);
  sqlite3_free(journal);
}

/* Refuses in-memory databases and anything that is not a regular file, where results would be lost
 * silently. */
static gl_status store_check_path(const char *path, store_mode mode, gl_error *err) {
  static const char uri[] = "file:";
  struct stat about;
  if (path[0] == '\0' || strcmp(path, ":memory:") == 0 || strncmp(path, uri, sizeof uri - 1) == 0)
    return gl_fail(
        err, GL_EINPUT,
        "'%s' is not the name of a file: a study is kept in a file of its own; give one, "
        "such as study.db",
        path);
  if (stat(path, &about) != 0)
    return mode == STORE_WRITE || errno != ENOENT
               ? GL_OK
               : gl_fail(err, GL_EIO, "cannot open %s: %s", path, strerror(errno));
  if (S_ISREG(about.st_mode)) return GL_OK;
  const bool is_folder = S_ISDIR(about.st_mode);
  return gl_fail(err, GL_EIO, "%s is %s, not a file that can hold a study; %s", path,
                 is_folder ? "a folder" : "a device or pipe",
                 is_folder             ? "name a file in it"
                 : mode == STORE_WRITE ? "choose another name"
                                       : "write what it gives into a file, and name that");
}

gl_status store_open_vfs(store **out, const char *path, store_mode mode, const char *vfs,
                         gl_error *err) {
  *out = NULL;
  gl_status status = store_check_path(path, mode, err);
  if (status != GL_OK) return status;
  store *s = calloc(1, sizeof *s);
  if (s == NULL) return gl_fail_memory(err, "a study");
  s->lock = -1;
  s->reads_cut = mode == STORE_READ_CUT;
  s->path = strdup(path);
  int made = 0, empty = 0;
  status = s->path == NULL ? gl_fail_memory(err, "a path") : GL_OK;
  if (status == GL_OK && mode == STORE_WRITE) status = lock_writer(s, &made, err);
  if (status == GL_OK) status = open_checked(s, mode, vfs, &empty, err);
  if (status == GL_OK && empty && mode == STORE_READ_ANY) {
    store_close(s);
    return GL_OK;
  }
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
  /* must follow sqlite3_close(): closing any descriptor of the file drops the locks SQLite holds */
  if (s->lock >= 0) close(s->lock);
  free(s->path);
  free(s);
}

sqlite3 *store_handle(store *s) {
  return s->db;
}
