/* A sweep over several machines: every rank does the cells whose position modulo the number of
 * ranks is its own, into a file of its own, because locks over a network file system cannot be
 * trusted. Under mpirun the ranks are those of the job; they share tuning scores, and rank 0 joins
 * the files at the end.
 */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_RANKS_H
#define GEPOLAB_EXPERIMENTS_SWEEP_RANKS_H

#include "core/base/error.h"

#include <stddef.h>

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
