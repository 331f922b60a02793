/* The processes of a sweep: workers and ranks. */
#include "experiments/sweep/worker_processes.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

SUITE("cli: worker processes");

/* What the executor says of a worker, also of one that cannot say anything itself. */

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

TEST(the_peak_of_every_worker_is_known) {
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

SUITE("cli: parts of a sweep");

/* Which part of a sweep a process does, by what a cluster's environment says of it. */

/* What mpirun and Slurm set, of which a test sets some. */
static const char *const variables[] = {
    "OMPI_COMM_WORLD_SIZE",   "SLURM_PROCID",         "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS",   "SLURM_STEP_ID",        "SLURM_ARRAY_TASK_ID",
    "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"};
enum { N_VARIABLES = sizeof variables / sizeof *variables };

static void set_environment(const char *const *names_and_values) {
  for (size_t i = 0; i < N_VARIABLES; ++i) unsetenv(variables[i]);
  for (; *names_and_values != NULL; names_and_values += 2)
    setenv(names_and_values[0], names_and_values[1], 1);
}
#define ENVIRONMENT(...) set_environment((const char *const[]){__VA_ARGS__, NULL})

TEST(without_a_cluster_a_process_does_all_and_says_nothing) {
  ranks r;
  ENVIRONMENT(NULL);
  CU_ASSERT_EQUAL(ranks_begin(&r, NULL, "s.db", NULL), GL_OK);
  CU_ASSERT(r.index == 0 && r.count == 1 && !r.mpi);
  CU_ASSERT_STRING_EQUAL(r.note, "");
}

TEST(a_shard_says_which_it_is) {
  ranks r;
  ENVIRONMENT("SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2", "SLURM_ARRAY_TASK_ID", "7");
  CU_ASSERT_EQUAL(ranks_begin(&r, "2/3", "s.db", NULL), GL_OK);
  CU_ASSERT(r.index == 2 && r.count == 3);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.note, "shard 2 of 3 (they are 0 to 2) into s.db.shard2;"));
  CU_ASSERT_PTR_NULL(strstr(r.note, "array"));
  ENVIRONMENT(NULL);
}

TEST(a_task_of_a_step_of_srun_does_its_part) {
  ranks r;
  ENVIRONMENT("SLURM_PROCID", "1", "SLURM_NTASKS", "8", "SLURM_STEP_ID", "0",
              "SLURM_STEP_NUM_TASKS", "4");
  CU_ASSERT_EQUAL(ranks_begin(&r, NULL, "s.db", NULL), GL_OK);
  CU_ASSERT(r.index == 1 && r.count == 4);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.note, "shard 1 of 4"));
  CU_ASSERT_PTR_NULL(strstr(r.note, "srun"));
  ENVIRONMENT(NULL);
}

/* slurmd starts a batch script with the job's SLURM_NTASKS and SLURM_PROCID 0. */
TEST(a_batch_script_without_srun_does_all_and_says_so) {
  ranks r;
  ENVIRONMENT("SLURM_PROCID", "0", "SLURM_NTASKS", "4");
  CU_ASSERT_EQUAL(ranks_begin(&r, NULL, "s.db", NULL), GL_OK);
  CU_ASSERT(r.index == 0 && r.count == 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.note, "4 tasks"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.note, "srun gepolab sweep"));
  ENVIRONMENT("SLURM_PROCID", "0", "SLURM_NTASKS", "4", "SLURM_STEP_NUM_TASKS", "1");
  CU_ASSERT_EQUAL(ranks_begin(&r, NULL, "s.db", NULL), GL_OK);
  CU_ASSERT(r.count == 1 && strstr(r.note, "whole sweep alone") != NULL);
  ENVIRONMENT(NULL);
}

TEST(a_step_whose_numbers_do_not_fit_is_refused) {
  static const char *const wrong[] = {"4", "-1", "", "x"};
  ranks r;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    gl_error err = {0};
    ENVIRONMENT("SLURM_PROCID", wrong[i], "SLURM_STEP_NUM_TASKS", "4");
    CU_ASSERT_EQUAL(ranks_begin(&r, NULL, "s.db", &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "SLURM_PROCID"));
  }
  ENVIRONMENT(NULL);
}

TEST(a_task_of_an_array_is_told_of_shards) {
  ranks r;
  ENVIRONMENT("SLURM_ARRAY_TASK_ID", "3", "SLURM_ARRAY_TASK_COUNT", "16");
  CU_ASSERT_EQUAL(ranks_begin(&r, NULL, "s.db", NULL), GL_OK);
  CU_ASSERT(r.index == 0 && r.count == 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.note, "task 3 of a Slurm job array of 16"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.note, "/$SLURM_ARRAY_TASK_COUNT"));
  ENVIRONMENT(NULL);
}

/* The longest notes must not be cut. */
TEST(notes_end_in_whole_words) {
  ranks r;
  ENVIRONMENT("SLURM_PROCID", "0", "SLURM_NTASKS", "999999", "SLURM_ARRAY_TASK_ID",
              "12345678901234567890", "SLURM_ARRAY_TASK_COUNT", "12345678901234567890");
  CU_ASSERT_EQUAL(ranks_begin(&r, NULL, "s.db", NULL), GL_OK);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.note, "whole sweep alone"));
  const char *end = strstr(r.note, "/$SLURM_ARRAY_TASK_COUNT");
  CU_ASSERT(end != NULL && strcmp(end, "/$SLURM_ARRAY_TASK_COUNT") == 0);
  ENVIRONMENT(NULL);
}

TEST(the_sweep_of_a_batch_script_is_whole) {
  static const char recipe[] = "steps: 5\nworld: {kind: bandit}\nsweep: {seed: [1, 2, 3, 4]}\n";
  char folder[64], path[128], db[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "r.yaml");
  cli_write(path, recipe, sizeof recipe - 1);
  cli_path(db, folder, "study.db");
  ENVIRONMENT("SLURM_PROCID", "0", "SLURM_NTASKS", "4");
  cli_result r = CLI("sweep", path, "-o", db, "-q");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "4 cells"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "srun gepolab sweep"));
  ENVIRONMENT("SLURM_PROCID", "1", "SLURM_NTASKS", "4", "SLURM_STEP_NUM_TASKS", "4");
  r = CLI("sweep", path, "-o", db, "-q");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "1 cell "));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "shard 1 of 4"));
  ENVIRONMENT(NULL);
}
