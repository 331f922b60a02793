/* The processes of a sweep: workers, forked one per job and read through pipes, and ranks, which
 * each do a part of the sweep. */
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

/* --- ranks --- */

/* A sweep over several machines: every rank runs the cells whose position modulo the number of
 * ranks is its own, into a file of its own, because locks over a network file system are not
 * reliable. Under mpirun the ranks are those of the job; they share tuning scores, and rank 0 joins
 * the files at the end. */

enum { RANKS_NOTE_SIZE = 768 };

typedef struct ranks {
  size_t index, count; /* 0 of 1: all cells are this process's */
  int mpi;             /* 1: they are the ranks of one MPI job */
  /* What a person should know of this choice: which part of how many this process does, and where
   * it does all although a cluster's variables speak of several tasks. Empty: nothing. */
  char note[RANKS_NOTE_SIZE];
} ranks;

/* From `--shard I/N` if given (0 <= I < N), else from mpirun, else from the SLURM_PROCID and
 * SLURM_STEP_NUM_TASKS of a step that srun started, else 0 of 1. The batch script of a Slurm job is
 * no such step: it has SLURM_NTASKS of the job and SLURM_PROCID 0, but runs once. A task of a job
 * array is told how to give --shard. GL_EINPUT if the text or srun's numbers are wrong. */
gl_status ranks_begin(ranks *s, const char *text, gl_error *err);
/* Under MPI: value[i] becomes the largest of all ranks' (give -INFINITY for unknown). Otherwise
 * leaves them. Returns the worst status of all ranks, so that they all go on or all stop. */
gl_status ranks_share(const ranks *s, double *value, size_t n, gl_status own);
/* Under MPI: value[i] becomes the sum over all ranks, which must all call it. Otherwise leaves it.
 */
void ranks_sum(const ranks *s, double *value, size_t n);
/* Ends MPI if it was begun. */
void ranks_end(ranks *s);
/* FILE.shardI into path, or FILE itself where there is one shard. */
gl_status ranks_path(char *path, size_t size, const char *file, const ranks *s, size_t index,
                     gl_error *err);

#endif
