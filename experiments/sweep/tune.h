/* Choosing fields for each algorithm before the grid, on seeds of their own: at one common learning
 * rate a ranking of algorithms would rank the scales of their weights.
 *
 *   tune: {lr: [0.01, 0.1, 1], seeds: [101, 102]}
 *   tune: {fields: {optimizer.lr: [0.01, 0.1], train.epochs: [1, 2]}, seeds: [101, 102]}
 *   tune: {lr: {from: 0.001, to: 1, n: 27, scale: log}, seeds: [101], halving: {eta: 3, rungs: 3}}
 *
 * A setting is one value of each tuned field. Every algorithm runs at every setting and seed, over
 * all other axes of the sweep. A run's score is the mean of its evaluations in the last quarter of
 * its updates (0 if it diverged before its end); a setting's score is the interquartile mean of its
 * runs' scores; the best setting wins, of two equals the one whose first different value is the
 * smaller number, or comes first in its list.
 *
 * Successive halving (Jamieson and Talwalkar, AISTATS 2016): in rung k = 1, …, R all settings that
 * are left make runs of steps / eta^(R - k) updates, rounded up, and the best ceil(n / eta) of n go
 * on to the next. Runs of a rung begin anew; those of the last have the recipe's own length. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_TUNE_H
#define GEPOLAB_EXPERIMENTS_SWEEP_TUNE_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "experiments/sweep/sweep_cells.h"
#include "experiments/train/run_result.h"

#include <stddef.h>

typedef struct tune_plan {
  sweep_grid grid;     /* of all tuning runs there may be: that of the sweep with tune.seeds for its
                          seeds, the updates of rungs where there are some, and the tuned fields as its
                          last axes. n_axes 0: the recipe has no `tune` */
  tuned_fields fields; /* what is chosen */
  size_t settings;     /* the product of their values */
  size_t rungs, eta;   /* 1 rung: no halving */
  cfg_doc *steps;      /* the list of the rungs' updates; owned; NULL: none */
} tune_plan;

/* GL_EINPUT if the section is wrong, if the sweep sets a field that it chooses, or if a tuning seed
 * is one of the sweep's. steps: of the recipe. Borrows from doc; release with tune_plan_fini(). */
gl_status tune_plan_read(tune_plan *out, const cfg_doc *doc, const sweep_grid *sweep, size_t steps,
                         gl_error *err);
void tune_plan_fini(tune_plan *p);

/* How many settings of an algorithm a rung (from 0) tries, and how many runs all rungs make. */
size_t tune_settings(const tune_plan *p, size_t rung);
size_t tune_runs(const tune_plan *p, size_t cells);

/* The score of one tuning run that was to make `steps` updates. */
double tune_score(const run_result *o, size_t steps);

/* in[i] = 1 for the runs of a rung that the scores of the rungs before it leave, 0 for all others;
 * cells are those of the plan's grid, score[i] is what they have (those of later rungs are not
 * looked at). GL_ENUMERIC if an algorithm has no score at all in a rung before. */
gl_status tune_rung(unsigned char *in, const tune_plan *p, const sweep_cells *cells,
                    const double *score, size_t rung, gl_error *err);

/* From the scores of all rungs (NaN: failed, left out) to a choice for each algorithm, in the order
 * of the cells; values are borrowed from the recipe. malloc'd *choices, the caller frees.
 * GL_ENUMERIC if an algorithm has no score at all. */
gl_status tune_choose(sweep_choice **choices, size_t *n, const tune_plan *p,
                      const sweep_cells *cells, const double *score, gl_error *err);

#endif
