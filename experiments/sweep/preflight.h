/* Whether this machine can run the cells of a sweep: asked once, before any of them starts. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_PREFLIGHT_H
#define GEPOLAB_EXPERIMENTS_SWEEP_PREFLIGHT_H

#include "experiments/sweep/sweep_cells.h"

/* Asks recipe_check_machine() of cells job[0 .. n) of the study (job NULL: its first n), each
 * different transformer once (all else runs anywhere), in a process of its own: what a device's
 * driver leaves in a process would not survive the fork of workers. The error names the first cell
 * that cannot run. Each cell is asked for by itself, not for as many as run side by side. */
gl_status preflight_check(const sweep_cells *cells, const size_t *job, size_t n, gl_error *err);

#endif
