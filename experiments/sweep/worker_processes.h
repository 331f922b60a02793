/* The processes of a sweep. Workers are forked, one per job, and read through pipes. Ranks are
 * separate processes, each of which runs a part of the sweep. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_WORKER_PROCESSES_H
#define GEPOLAB_EXPERIMENTS_SWEEP_WORKER_PROCESSES_H

#include "core/base/error.h"
#include "experiments/sweep/grid.h"
#include "experiments/train/run_result.h"

#include <stddef.h>

/* --- worker processes --- */

/* Runs jobs in worker processes. Each job has its own forked process, which sends its result
 * through a pipe to the parent; only the parent writes files. A worker that crashes fails its own
 * job only. A worker dies with its parent, even if the parent is killed with SIGKILL. */

typedef struct executor_plan {
  size_t n_jobs;
  size_t workers; /* maximum number of simultaneous processes */
  /* Called in the worker: runs job i. An error marks the job as failed, with the error's text. */
  gl_status (*work)(void *self, size_t job, run_result *out, gl_error *err);
  /* Called in the parent in the order of completion: the result of job i. For a failed job,
   * result->status is RUN_FAILED with the reason. An error stops the sweep. */
  gl_status (*done)(void *self, size_t job, const run_result *result, gl_error *err);
  /* Called in the parent several times a second while it waits; may be NULL. */
  void (*tick)(void *self);
  /* 1: workers are stopped with SIGTERM, which they detect with signals_caught(), and are waited
   * for; 0: they are killed. */
  int lets_finish_step;
  void *self;
} executor_plan;

/* Runs all jobs, starting them in order. On SIGINT, SIGTERM or SIGHUP (signals_catch()) the workers
 * are stopped and GL_EINTERRUPTED is returned; completed jobs have been passed to done(). */
gl_status executor_run(const executor_plan *plan, gl_error *err);

/* --- checking the machine --- */

/* Calls recipe_check_machine() for the cells job[0 .. n) of the study (job NULL: its first n), once
 * for each different transformer; other worlds run on any machine. The check runs in a separate
 * process, because a device driver's state would not survive the fork of workers. The error names
 * the first cell that cannot run. Each cell is checked by itself, not together with those that run
 * at the same time. */
gl_status preflight_check(const sweep_cells *cells, const size_t *job, size_t n, gl_error *err);

/* --- ranks --- */

/* A sweep over several machines. Rank r of N runs the cells whose position modulo N is r and writes
 * its own file, because locks on network file systems are not reliable. Under mpirun the ranks
 * share tuning scores, and rank 0 merges the files at the end. */

enum { RANKS_NOTE_SIZE = 768 };

typedef struct ranks {
  size_t index, count; /* rank and number of ranks; 0 of 1: this process runs all cells */
  int mpi;             /* 1: the ranks belong to one MPI job */
  /* Message for the user: which part this process runs; or that it runs everything although a
   * cluster's variables indicate several tasks. "" if there is nothing to report. */
  char note[RANKS_NOTE_SIZE];
} ranks;

/* Determines the rank from `--shard I/N` (0 <= I < N) if given; else from mpirun; else from
 * SLURM_PROCID and SLURM_STEP_NUM_TASKS of a step started by srun; else 0 of 1. The batch script of
 * a Slurm job is not such a step: it has SLURM_NTASKS of the job and SLURM_PROCID 0, but runs once.
 * A task of a job array gets a note about --shard. Errors: GL_EINPUT (invalid text, or invalid
 * numbers from srun). file: of the study, named in the note; NULL: not known. */
gl_status ranks_begin(ranks *s, const char *text, const char *file, gl_error *err);
/* MPI: replaces value[i] by the maximum over all ranks (-INFINITY: unknown) and returns the worst
 * status of all ranks, so that all continue or all stop. Without MPI: leaves value and returns own.
 */
gl_status ranks_share(const ranks *s, double *value, size_t n, gl_status own);
/* MPI: replaces value[i] by the sum over all ranks, all of which must call it. Without MPI: does
 * nothing. */
void ranks_sum(const ranks *s, double *value, size_t n);
/* Finalises MPI if it was initialised. */
void ranks_end(ranks *s);
/* Writes FILE.shardI to path, or FILE if there is only one shard. */
gl_status ranks_path(char *path, size_t size, const char *file, const ranks *s, size_t index,
                     gl_error *err);
/* Calls each() for the files FILE.shardI that exist, in the order of I, and returns their number.
 */
size_t ranks_shard_files(const char *file, void (*each)(void *self, const char *path), void *self);

#endif
