/* Chooses fields for each algorithm before the grid is run, with separate seeds. At one common
 * learning rate, a ranking of algorithms would rank the scales of their weights.
 *
 *   tune: {lr: [0.01, 0.1, 1], seeds: [101, 102]}
 *   tune: {fields: {optimizer.lr: [0.01, 0.1], train.epochs: [1, 2]}, seeds: [101, 102]}
 *   tune: {lr: {from: 0.001, to: 1, n: 27, scale: log}, seeds: [101], halving: {eta: 3, rungs: 3}}
 *
 * A setting is one value of each tuned field. Every algorithm runs with every setting and seed,
 * over all other axes of the sweep. A run's score is the mean of its evaluations in the last
 * quarter of its updates (0 if it diverged before the end). A setting's score is the interquartile
 * mean of its runs' scores. The best setting wins; a tie goes to the setting whose first different
 * value is the smaller number, or comes first in its list.
 *
 * Successive halving (Jamieson and Talwalkar, AISTATS 2016): in rung k = 1, …, R all remaining
 * settings make runs of steps / eta^(R - k) updates, rounded up, and the best ceil(n / eta) of n
 * remain. Runs of a rung start from the beginning; those of the last rung have the recipe's own
 * length. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_TUNE_H
#define GEPOLAB_EXPERIMENTS_SWEEP_TUNE_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "experiments/sweep/grid.h"
#include "experiments/train/run_result.h"

#include <stddef.h>

typedef struct tune_plan {
  sweep_grid grid; /* grid of all possible tuning runs: that of the sweep with tune.seeds as seeds,
                      the updates of rungs if there are several, and the tuned fields as last axes.
                      n_axes 0: the recipe has no `tune` */
  tuned_fields fields; /* fields that are chosen */
  size_t settings;     /* product of the numbers of their values */
  size_t rungs, eta;   /* rungs = 1: no halving */
  cfg_doc *steps;      /* list of the rungs' updates; owned; NULL: none */
} tune_plan;

/* Parses the section `tune`. steps: updates of the recipe. Borrows from doc; release with
 * tune_plan_fini(). Errors: GL_ENOMEM, GL_EINPUT (invalid section, the sweep sets a field that
 * `tune` chooses, or a tuning seed is also a seed of the sweep). */
gl_status tune_plan_read(tune_plan *out, const cfg_doc *doc, const sweep_grid *sweep, size_t steps,
                         gl_error *err);
void tune_plan_fini(tune_plan *p);

/* Number of settings per algorithm in a rung (from 0). */
size_t tune_settings(const tune_plan *p, size_t rung);
/* Returns 1 if run i of the plan's grid stands for a run of that rung while its settings are not
 * known: it has one of as many first settings. */
int tune_stands_for(const tune_plan *p, size_t rung, size_t i);
/* Number of runs in all rungs; 0 without `tune`. cells: number of cells of the plan's grid. */
size_t tune_runs(const tune_plan *p, size_t cells);

/* Score of a tuning run with `steps` planned updates: its mean over the last quarter. A run that
 * diverged before its end has its least evaluation, at most 0; a failed run NaN. */
double tune_score(const run_result *o, size_t steps);

/* Sets in[i] = 1 for the runs of a rung, given the scores of earlier rungs, and 0 for all others.
 * cells are those of the plan's grid; score[i] is their score (scores of later rungs are ignored).
 * Errors: GL_ENUMERIC (an algorithm has no score in an earlier rung). */
gl_status tune_rung(unsigned char *in, const tune_plan *p, const sweep_cells *cells,
                    const double *score, size_t rung, gl_error *err);

/* Computes the choice for each algorithm from the scores of all rungs (NaN: failed, omitted), in
 * the order of the cells. Values are borrowed from the recipe; *choices is allocated, the caller
 * frees it. Errors: GL_ENUMERIC (an algorithm has no score). */
gl_status tune_choose(sweep_choice **choices, size_t *n, const tune_plan *p,
                      const sweep_cells *cells, const double *score, gl_error *err);

#endif
