/* Options of `gepolab sim` beyond a single schedule: --replicas, --timeline, --densities. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_SIM_H
#define GEPOLAB_EXPERIMENTS_CLOCK_SIM_H

#include "analysis/plot/page.h"
#include "core/base/error.h"
#include "experiments/recipe/recipe.h"
#include "sim/cluster.h"
#include "sim/schedule.h"

/* `gepolab sim --replicas`: runs a cluster's clock with many seeds, on all cores. Prefix:
 * replicas_. */
typedef struct replicas {
  const recipe *r;
  const cluster_spec *cluster;
  size_t n;                /* number of seeds, starting with the recipe's */
  schedule_number *number; /* [n][SCHEDULE_MOST_NUMBERS] numbers for each seed; owned */
  size_t n_numbers;        /* numbers per seed, the same for all */
} replicas;

/* Statistics of one number over the seeds that define it. */
typedef struct replicas_spread {
  const char *name, *unit;
  double n, mean, sd, low, high, least, most; /* n: number of these seeds; low, high: 95 % interval
                                                 of the mean (Student's t); NaN if undefined */
} replicas_spread;

/* Runs the recipe's cluster with its seed and the following n - 1 seeds on `threads` threads;
 * results do not depend on their number. Call replicas_fini() even after an error. Errors:
 * GL_EINPUT for fewer than 2 seeds; otherwise those of schedule_build(). */
gl_status replicas_run(replicas *q, const recipe *r, const cluster_spec *cluster, size_t n,
                       size_t threads, gl_error *err);
replicas_spread replicas_spread_of(const replicas *q, size_t number);
void replicas_fini(replicas *q);

/* `gepolab sim --timeline`: a Gantt chart of a recipe's clock. timeline_between() reads "FROM,TO"
 * in simulated seconds, FROM below TO. Errors: GL_EINPUT with the reason. */
gl_status timeline_between(const char *text, double between[2], gl_error *err);

/* Plots the figure `timeline` by running the clock of schedule s again. Shows at most eight
 * samplers, evenly spaced among all, between two simulated times (NULL: the first 64 updates).
 * Errors: GL_EINPUT if there are no events in this range, or more than a chart can show. */
gl_status timeline_draw(const schedule *s, const cluster_spec *cluster, uint64_t seed,
                        const double *between, const figure_request *q, gl_error *err);

/* `gepolab sim --densities`: plots the figure `densities` with all distributions of the recipe's
 * clusters, including the cells of its sweep. Each field with a distribution that varies gets a
 * panel, each distribution a line. Errors: GL_EINPUT if no distribution varies. */
gl_status densities_draw(const recipe *r, const cfg_doc *doc, const figure_request *q,
                         gl_error *err);

#endif
