/* A sweep over several machines: every rank does the cells whose position modulo the number of
 * ranks is its own, into a file of its own, because locks over a network file system cannot be
 * trusted. Under mpirun the ranks are those of the job; they share tuning scores, and rank 0 joins
 * the files at the end.
 */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_RANKS_H
#define GEPOLAB_EXPERIMENTS_SWEEP_RANKS_H

#include "core/base/error.h"

#include <stddef.h>

typedef struct ranks {
  size_t index, count; /* 0 of 1: all cells are this process's */
  int mpi;             /* 1: they are the ranks of one MPI job */
} ranks;

/* From `--shard I/N` if given (0 <= I < N), else from mpirun, else from srun's SLURM_PROCID and
 * SLURM_NTASKS, else 0 of 1. GL_EINPUT if the text is wrong. */
gl_status ranks_begin(ranks *s, const char *text, gl_error *err);
/* Under MPI: value[i] becomes the largest of all ranks' (give -INFINITY for unknown). Otherwise
 * leaves them. Returns the worst status of all ranks, so that they all go on or all stop. */
gl_status ranks_share(const ranks *s, double *value, size_t n, gl_status own);
/* Ends MPI if it was begun. */
void ranks_end(ranks *s);
/* FILE.shardI into path, or FILE itself where there is one shard. */
gl_status ranks_path(char *path, size_t size, const char *file, const ranks *s, size_t index,
                     gl_error *err);

#endif
