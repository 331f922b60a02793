/* What running a sweep and looking ahead at one share. Private to experiments/sweep. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_INTERNAL_H
#define GEPOLAB_EXPERIMENTS_SWEEP_INTERNAL_H

#include "experiments/recipe/recipe.h"
#include "experiments/sweep/sweep.h"
#include "experiments/sweep/tune.h"
#include "experiments/sweep/watch.h"

typedef struct sweep {
  const sweep_options *options;
  const cfg_doc *doc;
  recipe base;
  sweep_grid grid;
  tune_plan plan; /* plan.grid.n_axes 0: no tuning */
  sweep_cells tuning, cells;
  double *score;    /* [tuning.n_cells] -INFINITY: not known yet */
  int machine_fits; /* asked already, of all cells */
  store *store;
  sweep_report *report;
  watch watch;
  gl_error *err;
} sweep;

/* Reads the recipe and all cells of both grids, without chosen rates: everything that can be wrong
 * with the recipe is found here, before any file is touched. */
gl_status sweep_check(sweep *s);
/* The cells of a grid, with a bar where that takes long; Ctrl-C ends it (GL_EINTERRUPTED). */
gl_status sweep_list(const sweep *s, sweep_cells *out, const sweep_grid *grid, sweep_expansion how);
/* Compares what the file has already with its checksums: a damaged score or run would be taken for
 * a finished one. */
gl_status sweep_verify(const sweep *s);
/* Frees what sweep_check() made, and the scores. */
void sweep_fini(sweep *s);
/* Whether cell i of the grid is this process's. */
int sweep_is_mine(const sweep *s, size_t i);
/* Whether the store (NULL: none) has a finished run of the cell. *status is GL_EINTERRUPTED where a
 * signal asked to stop. */
int sweep_has(const sweep *s, const sweep_cell *cell, gl_status *status);
/* Fills s->score, made here, from the store; -INFINITY where it has none. */
gl_status sweep_known_scores(sweep *s);

#endif
