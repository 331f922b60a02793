/* `gepolab sim --timeline`: a Gantt chart of a recipe's clock. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_TIMELINE_H
#define GEPOLAB_EXPERIMENTS_CLOCK_TIMELINE_H

#include "analysis/plot/figure.h"
#include "sim/schedule.h"

/* Reads "FROM,TO", simulated seconds, FROM below TO. GL_EINPUT says what is wrong. */
gl_status timeline_between(const char *text, double between[2], gl_error *err);

/* Draws the figure `timeline` of the clock that s is the schedule of, which it runs again: of at
 * most eight samplers, spread evenly over all, between two simulated times (NULL: its first 64
 * updates). GL_EINPUT where nothing happens there, or more than one chart can hold. */
gl_status timeline_draw(const schedule *s, const cluster_spec *cluster, uint64_t seed,
                        const double *between, const figure_request *q, gl_error *err);

#endif
