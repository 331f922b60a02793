/* Which training metrics predict collapse: how often, how many updates in advance, and with how
 * many false alarms. `gepolab analyze --table announcements` prints the results; the figure
 * `announcements` plots them.
 *
 * The predictor is a metric's moving average over the last few updates. A run raises an alarm at
 * the first update at which it exceeds a threshold, on the side (high or low) on which collapsing
 * runs differ. Only updates before the onset of a collapse count (analysis/outcome.h). Side and
 * threshold are chosen without the runs of the seed that is judged. The threshold is the smallest
 * at which at most the allowed fraction of the other seeds' surviving runs raise an alarm.
 *
 * A second comparison needs no threshold: a collapsing run is compared with survivors of its own
 * cell at the same update, so that neither the setting nor a longer observation distinguishes them.
 * Formulas: paper/methods.md §5.4. */
#ifndef GEPOLAB_ANALYSIS_COLLAPSE_PREDICTION_H
#define GEPOLAB_ANALYSIS_COLLAPSE_PREDICTION_H

#include "analysis/contrasts.h"
#include "analysis/outcome.h"
#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/arena.h"
#include "core/base/table.h"

#include <stdbool.h>
#include <stddef.h>

/* --- warnings from a run's own beginning --- */

typedef struct drift_rule {
  size_t begin;  /* updates of the beginning, whose median is the reference */
  size_t window; /* updates of the moving average that is compared with it, at most begin */
  double factor; /* alarm at factor times the reference, or at 1/factor of it */
} drift_rule;
/* Returns 20 updates, 8 updates and 2. */
drift_rule drift_rule_default(void);

/* The reference: the median of the first values; NaN if there are fewer than `begin` values that
 * are not NaN, or if it is not positive (then a factor means nothing). */
double drift_reference(const double *value, size_t n, const drift_rule *rule);
/* The index of the first update after the beginning at which the mean of the last `window` values
 * is beyond the factor, above (low_side: below) the reference; n if there is none. Windows with a
 * NaN raise no alarm. */
size_t drift_alarm(const double *value, size_t n, bool low_side, const drift_rule *rule);

/* --- warnings over the runs of a study --- */

enum { ANNOUNCE_LEADS = 4 };
typedef struct announce_rule {
  size_t window;                /* length of the moving average in updates, at least 1 */
  double false_alarms;          /* allowed fraction of surviving runs with an alarm, in [0, 1) */
  int64_t lead[ANNOUNCE_LEADS]; /* updates before the onset at which runs are compared, ascending */
  outcome_rule outcome;
} announce_rule;
/* Returns 8 updates, 0.1, leads of 1, 25, 50 and 100 updates, and the default rule of outcomes. */
announce_rule announce_rule_default(void);

/* The series of one run. */
typedef struct announce_series {
  uint64_t seed;       /* leave-one-out omits all runs of a seed together */
  int collapsed;       /* 1: at `onset`; 0: it survived */
  int64_t onset;       /* update of the onset; values from it on are ignored */
  const int64_t *step; /* [n] ascending */
  const double *value; /* [n]; NaN where the metric is undefined */
  size_t n;
  size_t cell; /* runs of one cell differ in their seed only */
} announce_series;

/* How well a metric distinguishes collapsing runs from surviving runs of the same cell at the same
 * update, a given number of updates before the onset. */
typedef struct announce_matched {
  size_t collapsed, pairs; /* collapsed: runs with a value and at least one survivor to compare
                              with; pairs: of a collapsing run and a survivor */
  interval auc; /* fraction of pairs in which the collapsing run is higher (ties count 1/2). Above
                   1/2: an increase predicts collapse; below: a decrease; 1/2 is chance */
} announce_matched;

/* How well one metric predicts collapse. Intervals are 95 % bootstrap intervals over seeds, with
 * the chosen thresholds held fixed. NaN if there are too few runs. */
typedef struct announcement {
  metric m;
  size_t collapsed, survived; /* runs in which the metric has a value */
  int low_side; /* 1 if low values predict collapse, judged on the runs of all seeds */
  interval auc; /* area under the ROC curve of runs, for that side */
  /* judged: runs whose side and threshold were chosen without their own seed; announced: collapsing
   * ones that raised an alarm; alarms: surviving ones that did. */
  size_t judged_collapsed, announced, judged_survived, alarms;
  interval announced_fraction, false_alarms; /* announced / judged_collapsed, alarms /
                                                judged_survived */
  interval lead; /* median over predicted collapses of onset - update of the alarm */
  announce_matched matched[ANNOUNCE_LEADS]; /* one for each lead of the rule */
  /* ROC curve for that side, from (0, 0) to (1, 1): fractions of surviving and of collapsed runs
   * with an alarm, for a decreasing threshold. */
  double *roc_alarms, *roc_announced; /* [n_roc] */
  size_t n_roc;
} announcement;

/* Computes how well the metric predicts collapse over runs[n]. The caller sets out->m. The ROC
 * curve is allocated in `to`. Errors: GL_ENOMEM. */
gl_status announcement_of(announcement *out, arena *to, const announce_series *runs, size_t n,
                          const announce_rule *rule, gl_error *err);

/* How often a metric that doubles or halves relative to its run's beginning (drift_rule) warns of a
 * collapse, and how often it is a false alarm. Only updates before the onset count. */
typedef struct announce_drift {
  metric m;
  bool low_side;
  size_t collapsed, warned, survived, alarms; /* runs in which the warning is defined */
  interval warned_fraction, false_alarms;     /* 95 % intervals by Clopper and Pearson */
} announce_drift;

typedef struct announcements {
  announce_rule rule;
  drift_rule drift;
  announce_drift *drifts; /* [n_drifts] two for each metric */
  size_t n_drifts;
  size_t collapsed, survived, left_out; /* runs; left_out: never learned, or failed */
  size_t seeds;
  announcement *of; /* [n] metrics with a value. Order: distance from chance at the first lead,
                       largest first; then those that cannot be compared there, by AUC */
  size_t n;
  arena memory;
} announcements;

/* Evaluates the metrics over all runs of the studies that have the fields of `of` (none: all runs).
 * Runs of the same seed belong together. Release with announcements_fini(), also after an error.
 * Errors: GL_ENOMEM, GL_EINPUT (no run collapsed or none survived, a field in which the runs of a
 * study do not differ, a value that no run has). */
gl_status announcements_init(announcements *a, const results *const *from, size_t n_from,
                             const contrast_arm *of, const announce_rule *rule, gl_error *err);
void announcements_fini(announcements *a);

/* Writes the report to a document. name: the studies' names, for the title. */
void announcements_report(table *to, const announcements *a, const char *name);

#endif
