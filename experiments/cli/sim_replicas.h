/* `gepolab sim --replicas`: a cluster's clock over many seeds, on all cores. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_SIM_REPLICAS_H
#define GEPOLAB_EXPERIMENTS_CLI_SIM_REPLICAS_H

#include "core/base/error.h"
#include "experiments/recipe/recipe.h"
#include "sim/cluster.h"

/* Runs the recipe's cluster with its seed and the replicas - 1 that follow, on so many threads, and
 * prints of every number mean, standard deviation, a 95 % interval of the mean (Student's t) and
 * the extremes: as a table, or as JSON. The numbers do not depend on the threads. GL_EINPUT for
 * fewer than 2 replicas; errors of a seed are those of schedule_build. */
gl_status sim_replicas(const recipe *r, const cluster_spec *cluster, size_t replicas,
                       size_t threads, int json, gl_error *err);

#endif
