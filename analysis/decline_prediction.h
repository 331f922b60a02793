/* Which metrics predict the next decline of the score, within runs. `gepolab analyze --table
 * declines` prints it.
 *
 * Between two evaluations lies a window of updates. The window after evaluation k precedes a
 * decline if the score then falls by more than `least` from evaluation k + 1 to k + 2; a metric's
 * predictor is its mean over the window. A run without evaluations is judged by the mean reward of
 * its batches: its windows are its updates. Windows are compared with windows of the same run only,
 * so that settings and lengths of runs do not count. The AUC is the fraction of pairs (a window
 * before a decline, another one) in which the former is higher; ties count 1/2. Formulas:
 * paper/methods.md §5.4. */
#ifndef GEPOLAB_ANALYSIS_DECLINE_PREDICTION_H
#define GEPOLAB_ANALYSIS_DECLINE_PREDICTION_H

#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/arena.h"
#include "core/base/metrics.h"
#include "core/base/table.h"

typedef struct declines_rule {
  double least; /* a score that falls by no more than this does not decline */
} declines_rule;

typedef struct decline_auc {
  metric m;
  size_t runs;             /* runs with windows of both kinds that have a value */
  size_t declines, others; /* windows of these runs */
  interval auc; /* of several runs: 95 % bootstrap over runs; of one: Hanley and McNeil */
  double p; /* against 0.5: exact permutation test of one run; of several the sum of U over runs,
               normal */
  double left_out; /* AUC with each run on the side that the other runs choose; NaN of one run */
} decline_auc;

typedef struct declines {
  declines_rule rule;
  size_t runs, by_reward;  /* runs with windows of both kinds; by_reward: judged by the reward */
  size_t declines, others; /* their windows */
  size_t left_out;         /* runs without a decline, or with nothing else */
  decline_auc of[METRIC_COUNT]; /* [n] farthest from 0.5 first */
  size_t n;
} declines;

/* Errors: GL_ENOMEM, GL_EINPUT (no run has windows of both kinds; lower scores are better). */
gl_status declines_of(declines *out, const results *const *from, size_t n_from,
                      const declines_rule *rule, gl_error *err);
void declines_report(table *to, const declines *d, const char *name);

#endif
