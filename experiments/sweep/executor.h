/* Worker processes: forked one per job, read through pipes, ended when told to stop. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_EXECUTOR_H
#define GEPOLAB_EXPERIMENTS_SWEEP_EXECUTOR_H

#include "core/base/error.h"
#include "experiments/sweep/sweep_cells.h"
#include "experiments/train/run_result.h"

#include <stddef.h>

/* --- worker processes --- */

/* Jobs in worker processes. Each job runs in a process of its own, forked from this one, and sends
 * its result through a pipe to this one, which is the only one that writes anything. A worker that
 * crashes spoils its own job; a worker whose parent dies (even by kill -9) dies with it.
 */

typedef struct executor_plan {
  size_t n_jobs;
  size_t workers; /* at most so many processes at a time */
  /* In the worker: does job i. An error makes the job fail with its text. */
  gl_status (*work)(void *self, size_t job, run_result *out, gl_error *err);
  /* In this process, in order of finishing: what became of job i. For a failed job result->status
   * is RUN_FAILED with the reason. An error stops everything. */
  gl_status (*done)(void *self, size_t job, const run_result *result, gl_error *err);
  /* In this process, several times a second while it waits; NULL: nothing is called. */
  void (*tick)(void *self);
  /* Workers are told to stop by SIGTERM, which they look up with signals_caught(), and waited for,
   * rather than killed. */
  int lets_finish_step;
  void *self;
} executor_plan;

/* Runs all jobs, starting them in order. On SIGINT, SIGTERM or SIGHUP (signals_catch())
 * the workers are ended and the answer is GL_EINTERRUPTED; jobs already handed to done() stay so.
 */
gl_status executor_run(const executor_plan *plan, gl_error *err);

/* --- whether this machine can run the cells --- */

/* Asks recipe_check_machine() of cells job[0 .. n) of the study (job NULL: its first n), each
 * different transformer once (all else runs anywhere), in a process of its own: what a device's
 * driver leaves in a process would not survive the fork of workers. The error names the first cell
 * that cannot run. Each cell is asked for by itself, not for as many as run side by side. */
gl_status preflight_check(const sweep_cells *cells, const size_t *job, size_t n, gl_error *err);

#endif
