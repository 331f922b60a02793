/* `gepolab sim --replicas`: a cluster's clock over many seeds, on all cores. Prefix: replicas_. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_REPLICAS_H
#define GEPOLAB_EXPERIMENTS_CLOCK_REPLICAS_H

#include "core/base/error.h"
#include "experiments/recipe/recipe.h"
#include "sim/cluster.h"
#include "sim/summary.h"

typedef struct replicas {
  const recipe *r;
  const cluster_spec *cluster;
  size_t n;                /* seeds, from the recipe's on */
  schedule_number *number; /* [n][SCHEDULE_MOST_NUMBERS] of each seed; owned */
  size_t n_numbers;        /* the same for all seeds */
} replicas;

/* Of one number over the seeds in which it is one. */
typedef struct replicas_spread {
  const char *name, *unit;
  double n, mean, sd, low, high, least, most; /* low, high: a 95 % interval of the mean (Student's
                                                 t); NaN without any */
} replicas_spread;

/* Runs the recipe's cluster with its seed and the n - 1 that follow, on so many threads; results do
 * not depend on these. Release with replicas_fini(), also after an error. GL_EINPUT for fewer than
 * 2 seeds; errors of a seed are those of schedule_build. */
gl_status replicas_run(replicas *q, const recipe *r, const cluster_spec *cluster, size_t n,
                       size_t threads, gl_error *err);
replicas_spread replicas_spread_of(const replicas *q, size_t number);
void replicas_fini(replicas *q);

#endif
