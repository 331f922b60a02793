/* What the executor says of a worker, also of one that cannot say anything itself. */
#include "experiments/sweep/executor.h"

#include "tests/support/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 3, MUCH = 64 << 20 };
enum { LIVES, ENDS, IS_KILLED };

/* Each job touches its memory; then one of them ends well, one fails, and one is killed. */
static gl_status work(void *self, size_t job, run_result *out, gl_error *err) {
  (void)self;
  char *much = malloc(MUCH);
  if (much == NULL) return gl_fail_memory(err, "a test");
  for (int i = 0; i < MUCH; i += 1024) *(volatile char *)(much + i) = 1;
  free(much);
  if (job == IS_KILLED) raise(SIGKILL);
  if (job == ENDS) return gl_fail(err, GL_EIO, "it fails");
  *out = (run_result){.status = RUN_DONE};
  return GL_OK;
}

typedef struct told {
  run_status status[JOBS];
  int64_t peak_bytes[JOBS];
  char reason[JOBS][64];
} told;

static gl_status done(void *self, size_t job, const run_result *result, gl_error *err) {
  told *t = self;
  (void)err;
  t->status[job] = result->status;
  t->peak_bytes[job] = result->peak_bytes;
  snprintf(t->reason[job], sizeof t->reason[job], "%.60s", result->reason);
  return GL_OK;
}

static void the_peak_of_every_worker_is_known(void) {
  told t = {0};
  const executor_plan plan = {.n_jobs = JOBS, .workers = 1, .work = work, .done = done, .self = &t};
  CU_ASSERT_EQUAL(executor_run(&plan, NULL), GL_OK);
  CU_ASSERT_EQUAL(t.status[LIVES], RUN_DONE);
  CU_ASSERT_EQUAL(t.status[ENDS], RUN_FAILED);
  CU_ASSERT_STRING_EQUAL(t.reason[ENDS], "it fails");
  CU_ASSERT_EQUAL(t.status[IS_KILLED], RUN_FAILED);
  CU_ASSERT_PTR_NOT_NULL(strstr(t.reason[IS_KILLED], "signal 9"));
  for (int i = 0; i < JOBS; ++i) CU_ASSERT(t.peak_bytes[i] >= MUCH);
}

SUITE(cli_executor, "cli: worker processes", TEST(the_peak_of_every_worker_is_known));
