/* Readers that hold a study while a sweep writes to it: an export whose output nobody takes, one
 * that is stopped, and a program that leaves a query open. The sweep waits and does not fail. */
#define _GNU_SOURCE
#include "tests/torture/families.h"
#include "tests/torture/writers.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const cases[] = {"an export that nobody reads", "a stopped export",
                                    "a stopped analyze", "an open query"};

static double hold_seconds(trial *t) {
  static const double times[] = {0.3, 1, 3, 12};
  return times[draw_below(t, t->session->brief ? 2 : 4)];
}

/* Both ends of a pipe that is full after one page. */
static int narrow_pipe(int ends[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0) return 0;
  fcntl(ends[1], F_SETPIPE_SZ, 4096);
  return 1;
}

static void end_reader(pid_t pid) {
  kill(-pid, SIGCONT);
  kill(-pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

static void judge(trial *t, const outcome *o, double held, const char *by) {
  outcome_decent(t, o, "a sweep beside a reader");
  if (o->code != 0)
    trial_fail(t, "the sweep failed beside %s of %.1f s: exit %d: %.300s", by, held, o->code,
               o->err);
}

static sqlite3 *open_query(trial *t, sqlite3_stmt **query) {
  char path[TORTURE_PATH];
  sqlite3 *db = NULL;
  *query = NULL;
  if (sqlite3_open_v2(join(path, t->work, "study.db"), &db, SQLITE_OPEN_READONLY, NULL) !=
          SQLITE_OK ||
      sqlite3_prepare_v2(db, "SELECT step FROM steps", -1, query, NULL) != SQLITE_OK ||
      sqlite3_step(*query) != SQLITE_ROW)
    trial_fail(t, "the study cannot be read: %s", sqlite3_errmsg(db));
  return db;
}

void family_readers(trial *t) {
  const size_t c = draw_case(t, cases, sizeof *cases, 4);
  if (c == SIZE_MAX) return;
  const size_t w = writer_named("sweep, tuned, -j 2");
  int ends[2] = {-1, -1};
  pid_t reader = -1;
  sqlite3 *db = NULL;
  sqlite3_stmt *query = NULL;
  job part = JOB("merge", "study.db", "../../inputs/study.db.shard0");
  outcome o = job_run(t, &part);
  if (o.code != 0) trial_fail(t, "exit %d: %.300s", o.code, o.err);
  outcome_fini(&o);
  if (c == 3) {
    db = open_query(t, &query);
  } else {
    job j = c == 2 ? JOB("analyze", "study.db") : JOB("export", "study.db", "--table", "steps");
    if (c == 0 && !narrow_pipe(ends)) return;
    reader = job_start(t, &j, "reader", ends[1]);
    sleep_s(c == 0 ? 0.1 : 0.02 * draw_unit(t));
    if (c != 0) kill(reader, SIGSTOP);
  }
  const double held = hold_seconds(t);
  job j = writer_job(&writers[w]);
  pid_t sweep = job_start(t, &j, "sweep", -1);
  sleep_s(held);
  if (reader > 0) end_reader(reader);
  if (db != NULL) sqlite3_finalize(query), sqlite3_close(db);
  if (ends[0] >= 0) close(ends[0]), close(ends[1]);
  o = job_wait(t, sweep, "sweep", 60);
  judge(t, &o, held, cases[c]);
  outcome_fini(&o);
  if (trial_good(t)) writer_goes_on(t, w);
}
