/* A sweep over several machines: every shard does the cells whose position modulo the number of
 * shards is its own, into a file of its own, because locks over a network file system cannot be
 * trusted. Under mpirun the shards are the ranks; they share tuning scores, and rank 0 joins the
 * files at the end.
 */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_RANKS_H
#define GEPOLAB_EXPERIMENTS_SWEEP_RANKS_H

#include "core/base/error.h"

#include <stddef.h>

typedef struct shards {
  size_t index, count; /* 0 of 1: not sharded */
  int mpi;             /* 1: the shards are ranks of one MPI job */
} shards;

/* From `--shard I/N` if given (0 <= I < N), else from mpirun, else from srun's SLURM_PROCID and
 * SLURM_NTASKS, else 0 of 1. GL_EINPUT if the text is wrong. */
gl_status shards_begin(shards *s, const char *text, gl_error *err);
/* Under MPI: value[i] becomes the largest of all ranks' (give -INFINITY for unknown). Otherwise
 * leaves them. Returns the worst status of all ranks, so that they all go on or all stop. */
gl_status shards_share(const shards *s, double *value, size_t n, gl_status own);
/* Ends MPI if it was begun. */
void shards_end(shards *s);
/* FILE.shardI into path, or FILE itself where there is one shard. */
gl_status shards_path(char *path, size_t size, const char *file, const shards *s, size_t index,
                      gl_error *err);

#endif
