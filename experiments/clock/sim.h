/* What `gepolab sim` adds to a schedule: --replicas, --timeline, --densities. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_SIM_H
#define GEPOLAB_EXPERIMENTS_CLOCK_SIM_H

#include "analysis/plot/page.h"
#include "core/base/error.h"
#include "experiments/recipe/recipe.h"
#include "sim/cluster.h"
#include "sim/schedule.h"

/* `gepolab sim --replicas`: a cluster's clock over many seeds, on all cores. Prefix: replicas_. */
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

/* `gepolab sim --timeline`: a Gantt chart of a recipe's clock. */
/* Reads "FROM,TO", simulated seconds, FROM below TO. GL_EINPUT says what is wrong. */
gl_status timeline_between(const char *text, double between[2], gl_error *err);

/* Draws the figure `timeline` of the clock that s is the schedule of, which it runs again: of at
 * most eight samplers, spread evenly over all, between two simulated times (NULL: its first 64
 * updates). GL_EINPUT where nothing happens there, or more than one chart can hold. */
gl_status timeline_draw(const schedule *s, const cluster_spec *cluster, uint64_t seed,
                        const double *between, const figure_request *q, gl_error *err);

/* `gepolab sim --densities`: the distributions of a recipe's cluster. */
/* Draws the figure `densities` of all distributions of the recipe's clusters, those of its sweep's
 * cells included: a panel for each field in which a distribution varies, a line for each
 * distribution. GL_EINPUT where none varies. */
gl_status densities_draw(const recipe *r, const cfg_doc *doc, const figure_request *q,
                         gl_error *err);

#endif
