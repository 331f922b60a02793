/* Summaries of a study's cells, and the correlations of their quantities.
 *
 * A run becomes one number per quantity: best, last and their gap from its evaluations; of a metric
 * its mean over the updates, or, for the natural logarithms of variances (log_...), its median over
 * the updates, which keeps its rank where single updates are infinite (or minus infinity, on
 * policy). A cell is the interquartile mean of its runs with a bootstrap interval. Failed runs are
 * counted and otherwise left out; diverged runs count with what they had reached, but a run that is
 * not finite at its end has no last score and no gap.
 */
#ifndef GEPOLAB_ANALYSIS_SUMMARY_H
#define GEPOLAB_ANALYSIS_SUMMARY_H

#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/error.h"
#include "core/base/table.h"
#include "core/store/store.h"

typedef enum cell_metric {
  CELL_STALENESS,
  CELL_KL, /* summary.kl */
  CELL_LOG_IW_VARIANCE_PQ,
  CELL_LOG_IW_VARIANCE_GEPO,
  CELL_ESTIMATION_ERROR,
  CELL_METRIC_COUNT
} cell_metric;

typedef struct cell_summary {
  const results_cell *cell;
  size_t done, diverged, failed;
  size_t not_finite; /* of those that did not fail: not finite at their end, so in neither the mean
                        of last nor that of best_to_last */
  double lr_low, lr_high; /* of its runs: equal when one rate was chosen */
  interval best, last, best_to_last;
  interval metric[CELL_METRIC_COUNT];
  double samples_per_s, learner_utilisation, sampler_utilisation; /* means over runs */
} cell_summary;

typedef struct relation {
  const char *x, *y; /* names of the quantities */
  correlation spearman;
} relation;

enum { RELATION_COUNT = 2 };

/* relations: simulated delay with the divergence, and the divergence with log_iw_variance_pq, over
 * cells. Cells of different algorithms differ by more than their delay, so within holds the same
 * two over the runs of one algorithm at a time. The divergence is kl_exact where the study has it;
 * otherwise (a transformer) kl_k3_seq, which estimates KL(q||p) per response from the samples, and
 * of other programs' logs whatever they have: kl_k3 or cppo_kl. */
typedef struct summary {
  const results *from; /* borrowed */
  metric kl;           /* METRIC_KL_EXACT, METRIC_KL_K3_SEQ, METRIC_KL_K3 or METRIC_CPPO_KL */
  cell_summary *cells; /* [n_cells], as results.cells without the holes */
  size_t n_cells;
  relation relations[RELATION_COUNT];
  relation *within; /* [n_algorithms][RELATION_COUNT] */
  arena memory;
} summary;

/* Means over the cells of a group, which are all equal on one schedule; NaN where nothing is known.
 */
typedef struct group_clock {
  double samples_per_s, learner_utilisation, sampler_utilisation, staleness;
} group_clock;

gl_status summary_init(summary *s, const results *from, gl_error *err);
void summary_fini(summary *s);

void summary_group_clock(const summary *s, size_t group, group_clock *out);
/* The store's metric behind a cell metric. */
metric summary_metric(const summary *s, cell_metric m);
/* A metric of one run over its updates step_from < step <= step_to: median for logarithms, mean
 * otherwise; scratch holds run->n_steps doubles. */
double summary_run_metric(const results_run *run, metric m, int64_t step_from, int64_t step_to,
                          double *scratch);

/* --- the tables of `gepolab analyze` --- */

/* Every study of a store into a document. A store with one study: that study; with several:
 * {"studies": […]}. A study:
 * {"study", "repeats_left_out", "cells":
 * [{algorithm, axes, done, diverged, failed, lr, best, last, best_to_last, ...}], "correlations",
 * "correlations_within": the same over the runs of each algorithm};
 * an estimate with an interval is {"iqm", "low", "high"}; a correlation that is unknown (null)
 * says "why". Of a study with evaluation sets also "sets": [{algorithm, axes, set, runs, best,
 * last, best_to_last}], with the lines "average" and "of the mean" and, of halves, best_by_halves,
 * and "benchmarks" (analysis/sets.h). set (NULL: the run's own score): the set whose score
 * all tables show, as sets_choose() takes it. */
gl_status analyze_study(table *to, store *s, const char *set, gl_error *err);
/* Best, last and their gap of a cell on an evaluation set (its index in sets_names()), and of how
 * many runs, as the tables of sets have them. GL_ENOMEM. */
gl_status analyze_set_cell(interval ends[3], size_t *runs, const results *r,
                           const results_cell *cell, size_t set, gl_error *err);

#endif
