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

#include "analysis/auc.h"
#include "analysis/results.h"
#include "core/base/arena.h"
#include "core/base/metrics.h"
#include "core/base/table.h"

typedef struct declines_rule {
  double least; /* a score that falls by no more than this does not decline */
} declines_rule;

typedef struct decline_auc {
  metric m;
  size_t runs; /* runs in which the metric has values both before a decline and in other windows */
  size_t declines, others; /* windows of these runs: before a decline, and others */
  interval auc;    /* 95 % interval: bootstrap over runs; for a single run by Hanley and McNeil */
  double p;        /* two-sided, of AUC = 0.5 in every run: auc_p_of_strata() */
  double left_out; /* leave-one-out AUC: the other runs decide whether high or low values predict
                      declines in a run; NaN for a single run */
} decline_auc;

typedef struct declines {
  declines_rule rule;
  size_t runs, by_reward;  /* runs with a window before a decline and another one; by_reward: those
                              judged by the batch reward */
  size_t declines, others; /* windows of these runs: before a decline, and others */
  size_t left_out;         /* other runs: none or all of their windows precede a decline */
  decline_auc of[METRIC_COUNT]; /* [n] in descending order of the distance of the AUC from 0.5 */
  size_t n;
} declines;

/* Errors: GL_ENOMEM, GL_EINPUT (no run has both a window before a decline and another one; lower
 * scores are better). */
gl_status declines_of(declines *out, const results *const *from, size_t n_from,
                      const declines_rule *rule, gl_error *err);
void declines_report(table *to, const declines *d, const char *name);

#endif
