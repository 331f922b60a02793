/* Whatever fails under a study, the runs before it survive and the message says what happened. */
#include "tests/support/core.h"
#include "tests/support/faulty_vfs.h"
#include "tests/support/sanitized.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("core: store faults");

enum { STEPS = 30, EARLIER = 2 };

/* A folder with base.db (runs 1 .. EARLIER), other.db (one run more) and the place of a copy. */
typedef struct ground {
  scratch at;
  char base[SCRATCH_PATH_SIZE], other[SCRATCH_PATH_SIZE], study[SCRATCH_PATH_SIZE];
} ground;

static void put_study(const char *path, int first, int last) {
  store *s = store_opened(path, STORE_WRITE);
  store_put_samples(s, first, last, STEPS);
  store_close(s);
}

static void ground_make(ground *g) {
  scratch_make(&g->at);
  put_study(scratch_path(&g->at, "base.db", g->base), 1, EARLIER);
  put_study(scratch_path(&g->at, "other.db", g->other), EARLIER + 1, EARLIER + 1);
  scratch_path(&g->at, "study.db", g->study);
  faulty_vfs_arm((fault_plan){0});
}

static void ground_remove(const ground *g) {
  scratch_remove(&g->at);
}

/* --- faults --- */

typedef struct fault {
  int calls, code;
  const char *says;
} fault;

static const fault faults[] = {
    {FAULT_WRITE, SQLITE_FULL, "the disk is full"},
    {FAULT_WRITE, SQLITE_IOERR_WRITE, "I/O error"},
    {FAULT_WRITE, SQLITE_READONLY, "read-only"},
    {FAULT_SYNC, SQLITE_IOERR_FSYNC, "I/O error"},
    {FAULT_DELETE | FAULT_TRUNCATE, SQLITE_IOERR_DELETE, "I/O error"},
    {FAULT_OPEN, SQLITE_CANTOPEN, "cannot be opened"},
    {FAULT_READ, SQLITE_IOERR_READ, "I/O error"},
};
enum { N_FAULTS = sizeof faults / sizeof *faults };

/* Something that adds one run to an open study. */
typedef gl_status (*addition)(store *s, const ground *g, gl_error *err);

static gl_status add_by_putting(store *s, const ground *g, gl_error *err) {
  static sample_run sample;
  (void)g;
  sample_run_init(&sample, EARLIER + 1, STEPS);
  return store_put_run(s, &sample.run, err);
}

static gl_status add_by_merging(store *s, const ground *g, gl_error *err) {
  return store_merge(s, g->other, err);
}

/* Reader and writer both find the study whole, with that many runs, and it takes another. */
static void check_intact(const char *path, int runs) {
  store *s = store_opened(path, STORE_READ);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs"), runs);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM steps"), runs * STEPS);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM evals"), runs * 2);
  CU_ASSERT_EQUAL(store_number(s, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
  store_close(s);
  s = store_opened(path, STORE_WRITE);
  store_put_samples(s, 9, 9, STEPS);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs"), runs + 1);
  store_close(s);
}

/* What could not be read while the file's structure was looked at is told as damage. */
static void check_said(const gl_error *err, const char *path, const char *says) {
  int ok = err->status == GL_EIO && strstr(err->text, path) != NULL &&
           (strstr(err->text, says) || strstr(err->text, "damaged: its structure"));
  if (!ok) fprintf(stderr, "wanted '%s', got %d '%s'\n", says, err->status, err->text);
  CU_ASSERT(ok);
}

/* Opens a copy of the base and adds a run while the plan holds, then, if asked, adds it again over
 * the same connection with the fault gone. Whether the plan's call was reached. */
static int add_under_fault(const ground *g, addition add, fault_plan plan, const char *says,
                           int again) {
  gl_error err = {0};
  store *s = NULL;
  scratch_copy(g->base, g->study);
  faulty_vfs_arm(plan);
  gl_status status = store_open_vfs(&s, g->study, STORE_WRITE, FAULTY_VFS, &err);
  if (status == GL_OK) status = add(s, g, &err);
  int fired = faulty_vfs_fired();
  if (!plan.lasting || again) faulty_vfs_arm((fault_plan){0});
  CU_ASSERT(fired || status == GL_OK);
  if (status != GL_OK) check_said(&err, plan.calls == FAULT_READ ? "" : g->study, says);
  if (status != GL_OK && s != NULL && again) {
    gl_error_clear(&err);
    status = add(s, g, &err);
    if (status != GL_OK) fprintf(stderr, "again after '%s': %s\n", says, err.text);
    CU_ASSERT_EQUAL(status, GL_OK);
  }
  store_close(s);
  faulty_vfs_arm((fault_plan){0});
  check_intact(g->study, status == GL_OK ? EARLIER + 1 : EARLIER);
  return fired;
}

/* Fails the first call, the second ... until the addition no longer reaches the failing one. Under
 * sanitizers the four ways share the calls between them. */
static void survive(addition add) {
  enum { WAYS = 4, STRIDE = SANITIZED ? WAYS : 1 };
  ground g;
  ground_make(&g);
  for (int f = 0; f < N_FAULTS; ++f) {
    int reached = 0;
    for (int way = 0; way < WAYS; ++way) {
      fault_plan plan = {faults[f].calls, 1 + way % STRIDE, faults[f].code, way & 1};
      for (; add_under_fault(&g, add, plan, faults[f].says, way >> 1); plan.nth += STRIDE)
        ++reached;
    }
    CU_ASSERT(reached >= WAYS / STRIDE);
  }
  ground_remove(&g);
}

TEST(a_failing_put_loses_nothing_and_says_why) {
  survive(add_by_putting);
}

TEST(a_failing_merge_loses_nothing_and_says_why) {
  survive(add_by_merging);
}

TEST(a_new_study_that_cannot_be_made_leaves_no_file) {
  ground g;
  ground_make(&g);
  size_t files = scratch_count(&g.at);
  for (int f = 0; f < N_FAULTS; ++f)
    for (int lasting = 0; lasting < 2; ++lasting)
      for (int nth = 1, fired = 1; fired; ++nth) {
        store *s = NULL;
        gl_error err = {0};
        faulty_vfs_arm((fault_plan){faults[f].calls, nth, faults[f].code, lasting});
        gl_status status = store_open_vfs(&s, g.study, STORE_WRITE, FAULTY_VFS, &err);
        fired = faulty_vfs_fired();
        store_close(s);
        faulty_vfs_arm((fault_plan){0});
        CU_ASSERT(fired || status == GL_OK);
        if (status == GL_OK) {
          check_intact(g.study, 0);
          unlink(g.study);
        } else
          check_said(&err, g.study, faults[f].says);
        CU_ASSERT_EQUAL(scratch_count(&g.at), files);
      }
  ground_remove(&g);
}

/* --- death --- */

/* A child that adds a run and dies at the nth call that changes the disk. Whether it died. */
static int add_and_die(const ground *g, int nth) {
  const int changes = FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE | FAULT_DELETE;
  pid_t child = fork();
  if (child == 0) {
    store *s = NULL;
    faulty_vfs_arm((fault_plan){changes, nth, FAULT_KILL, 0});
    gl_status status = store_open_vfs(&s, g->study, STORE_WRITE, FAULTY_VFS, NULL);
    if (status == GL_OK) status = add_by_putting(s, g, NULL);
    store_close(s);
    _exit(status == GL_OK ? 0 : 1);
  }
  int ended = 0;
  CU_ASSERT_EQUAL_FATAL(waitpid(child, &ended, 0), child);
  int died = WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL;
  CU_ASSERT(died || (WIFEXITED(ended) && WEXITSTATUS(ended) == 0));
  return died;
}

TEST(a_writer_killed_at_any_moment_leaves_the_runs_before) {
  ground g;
  ground_make(&g);
  int died = 1, nth = 1;
  for (; died; ++nth) {
    scratch_copy(g.base, g.study);
    died = add_and_die(&g, nth);
    check_intact(g.study, died ? EARLIER : EARLIER + 1);
  }
  CU_ASSERT(nth > 10); /* it did die at many moments */
  ground_remove(&g);
}

/* --- what is no study --- */

static void run_sql(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  CU_ASSERT_EQUAL_FATAL(sqlite3_open(path, &db), SQLITE_OK);
  CU_ASSERT_EQUAL_FATAL(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
}

/* Both modes refuse the path, naming it and the cause, and leave the folder as it was. */
static void check_no_study(const ground *g, const char *path, const char *says) {
  size_t files = scratch_count(&g->at);
  for (int mode = STORE_READ; mode <= STORE_WRITE; ++mode) {
    store *s = NULL;
    gl_error err = {0};
    CU_ASSERT_EQUAL(store_open(&s, path, (store_mode)mode, &err), GL_EIO);
    CU_ASSERT_PTR_NULL(s);
    check_said(&err, path, says);
    CU_ASSERT_EQUAL(scratch_count(&g->at), files);
  }
}

TEST(other_files_are_refused_and_left_alone) {
  ground g;
  static const char text[] = "a recipe, or any other text that is longer than sixteen bytes\n";
  ground_make(&g);
  scratch_write(g.study, text);
  check_no_study(&g, g.study, "not an SQLite database");
  char *after = scratch_read(g.study);
  CU_ASSERT_STRING_EQUAL(after, text);
  free(after);
  unlink(g.study);
  run_sql(g.study, "CREATE TABLE photographs(id INTEGER)");
  check_no_study(&g, g.study, "not a gepolab study");
  unlink(g.study);
  scratch_copy(g.base, g.study);
  run_sql(g.study, "PRAGMA user_version = 99");
  check_no_study(&g, g.study, "study format 99");
  for (int format = 1; format < STORE_FORMAT; ++format) {
    char sql[48];
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", format);
    run_sql(g.study, sql);
    check_no_study(&g, g.study, "run its sweep again into another file");
  }
  check_no_study(&g, g.at.folder, "");
  char nowhere[SCRATCH_PATH_SIZE];
  check_no_study(&g, scratch_path(&g.at, "missing/study.db", nowhere), "No such file");
  ground_remove(&g);
}

TEST(an_empty_file_is_no_study_to_read_but_a_place_to_write) {
  ground g;
  store *s = NULL;
  gl_error err = {0};
  ground_make(&g);
  scratch_write(g.study, "");
  CU_ASSERT_EQUAL(store_open(&s, g.study, STORE_READ, &err), GL_EIO);
  check_said(&err, g.study, "is empty");
  check_intact(g.base, EARLIER);
  put_study(g.study, 1, 1);
  check_intact(g.study, 1);
  ground_remove(&g);
}

TEST(a_damaged_study_is_called_damaged) {
  ground g;
  store *s = NULL;
  gl_error err = {0};
  ground_make(&g);
  scratch_copy(g.base, g.study);
  CU_ASSERT_EQUAL_FATAL(truncate(g.study, 3 * 4096), 0); /* three pages of many */
  gl_status status = store_open(&s, g.study, STORE_READ, &err);
  if (status == GL_OK) {
    FILE *nowhere = fopen("/dev/null", "w");
    status = store_export(s, "steps", "csv", nowhere, &err);
    fclose(nowhere);
  }
  CU_ASSERT_EQUAL(status, GL_EIO);
  check_said(&err, g.study, "damaged");
  store_close(s);
  ground_remove(&g);
}

TEST(a_read_only_study_is_read_and_not_written) {
  ground g;
  store *s = NULL;
  gl_error err = {0};
  ground_make(&g);
  faulty_vfs_read_only(1);
  CU_ASSERT_EQUAL(store_open_vfs(&s, g.base, STORE_WRITE, FAULTY_VFS, &err), GL_EIO);
  check_said(&err, g.base, "read-only");
  CU_ASSERT_EQUAL_FATAL(store_open_vfs(&s, g.base, STORE_READ, FAULTY_VFS, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs"), EARLIER);
  store_close(s);
  faulty_vfs_read_only(0);
  ground_remove(&g);
}
