/* Choosing a learning rate for each algorithm before the grid, on seeds of its own: at one common
 * rate a ranking of algorithms would rank the scales of their weights.
 *
 *   tune: {lr: [0.01, 0.1, 1], seeds: [101, 102]}
 *
 * Every algorithm runs at every rate and seed, over all other axes of the sweep. A run's score is
 * the mean of its evaluations in the last quarter of its updates (0 if it diverged before its end);
 * a rate's score is the interquartile mean of its runs' scores; the best rate wins, the smaller one
 * of two equals.
 */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_TUNE_H
#define GEPOLAB_EXPERIMENTS_SWEEP_TUNE_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "experiments/sweep/sweep_cells.h"
#include "experiments/train/run_result.h"

#include <stddef.h>

/* The tuning runs' grid: that of the sweep with tune.seeds for its seeds and the rates as a last
 * axis. n_axes is 0 where the recipe has no `tune`. GL_EINPUT if the section is wrong, if the sweep
 * has optimizer.lr as an axis, or if a tuning seed is one of the sweep's. */
gl_status tune_grid_read(sweep_grid *grid, const cfg_doc *doc, const sweep_grid *sweep,
                         gl_error *err);

/* The score of one tuning run that was to make `steps` updates. */
double tune_score(const run_result *o, size_t steps);

/* From the score of every tuning cell (NaN: failed, left out) to one rate for each algorithm, in
 * the order of the cells. malloc'd *rates, the caller frees. edge[i] is 1 where the best rate of
 * algorithm i is the smallest or largest tried; malloc'd alike. GL_ENUMERIC if an algorithm has no
 * score at all. */
gl_status tune_choose(sweep_rate **rates, int **edge, size_t *n_rates, const sweep_cells *cells,
                      const double *score, gl_error *err);

#endif
