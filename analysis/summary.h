/* Summaries of a study's cells, and correlations between their quantities.
 *
 * A run gives one number per quantity: best, last and their gap from its evaluations; for a metric
 * its mean over updates; for logarithms of variances (log_...) the median over updates, which is
 * robust to infinite values (or minus infinity, on-policy). A cell is the interquartile mean of its
 * runs with a bootstrap interval. Failed runs are counted and otherwise omitted. Diverged runs
 * count with the scores they reached, but a run that is not finite at its end has no last score and
 * no gap. */
#ifndef GEPOLAB_ANALYSIS_SUMMARY_H
#define GEPOLAB_ANALYSIS_SUMMARY_H

#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/error.h"
#include "core/base/table.h"
#include "core/store/store.h"

typedef enum cell_metric {
  CELL_STALENESS,
  CELL_KL, /* the metric summary.kl */
  CELL_LOG_IW_VARIANCE_PQ,
  CELL_LOG_IW_VARIANCE_GEPO,
  CELL_ESTIMATION_ERROR,
  CELL_METRIC_COUNT
} cell_metric;

typedef struct cell_summary {
  const results_cell *cell;
  size_t done, diverged, failed;
  size_t collapsed;       /* runs that did not fail and collapsed (run_outcome_is_collapse()); 0 for
                             scores that are better when lower */
  size_t not_finite;      /* runs that did not fail but are not finite at their end: they count in
                             neither the mean of last nor of best_to_last */
  double lr_low, lr_high; /* range of its runs' learning rates; equal if one rate was chosen */
  interval best, last, best_to_last;
  interval metric[CELL_METRIC_COUNT];
  double samples_per_s, learner_utilisation, sampler_utilisation; /* means over runs */
} cell_summary;

/* A correlation of two quantities; fewer than BOOTSTRAP_FEWEST pairs have no interval. */
typedef struct relation {
  const char *x, *y; /* names of the quantities */
  correlation spearman;
} relation;

enum { RELATION_DELAY_KL, RELATION_KL_VARIANCE, RELATION_COUNT };

/* relations: over cells, simulated delay with the divergence, and the divergence with
 * log_iw_variance_pq. Cells of different algorithms differ in more than their delay, so `within`
 * has the same two over the runs of one algorithm at a time. The divergence is kl_exact if the
 * study has it. Otherwise (a transformer) it is kl_k3_seq, which estimates KL(q||p) per response
 * from the samples, and for other programs' logs kl_k3 or cppo_kl, whichever they have. */
typedef struct summary {
  const results *from; /* borrowed */
  metric kl;           /* METRIC_KL_EXACT, METRIC_KL_K3_SEQ, METRIC_KL_K3 or METRIC_CPPO_KL */
  cell_summary *cells; /* [n_cells] as results.cells, without cells that have no run */
  size_t n_cells;
  relation relations[RELATION_COUNT];
  relation *within; /* [n_algorithms][RELATION_COUNT] */
  arena memory;
} summary;

/* Means over the cells of a group, which are all equal under the same schedule; NaN if unknown. */
typedef struct group_clock {
  double samples_per_s, learner_utilisation, sampler_utilisation, staleness;
} group_clock;

/* Computes the summaries. `from` is borrowed. Release with summary_fini(), also after an error.
 * Errors: GL_ENOMEM. */
gl_status summary_init(summary *s, const results *from, gl_error *err);
void summary_fini(summary *s);
/* The summary of a cell; NULL if the grid has no run there. */
const cell_summary *cell_of(const summary *s, size_t group, size_t algorithm);

/* Means over the cells of that group. */
void summary_group_clock(const summary *s, size_t group, group_clock *out);
/* The metric in the store that corresponds to a cell metric. */
metric summary_metric(const summary *s, cell_metric m);
/* A metric of one run over the updates step_from < step <= step_to: median for logarithms,
 * otherwise mean. scratch has run->n_steps doubles. */
double summary_run_metric(const results_run *run, metric m, int64_t step_from, int64_t step_to,
                          double *scratch);

#endif
