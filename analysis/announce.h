/* Which metrics of training announce that a run will fall: how often, how many updates before, and
 * how often they cry wolf. `gepolab analyze --table announcements` prints it; the figure
 * `announcements` draws it.
 *
 * A metric's mean over the last few updates is watched. A run of a method raises an alarm at the
 * first update at which this mean lies beyond a threshold, on the side (rises, falls) on which runs
 * that fall differ. Only updates before the onset of a fall count (analysis/outcome.h). Side and
 * threshold are chosen without the runs of the start (seed) that is judged: the threshold is the
 * least at which no more than the allowed share of the other starts' surviving runs raise an
 * alarm. Beside it, without thresholds, a run that falls is compared with survivors of its own cell
 * at the same update, so that neither the setting nor a longer watch distinguishes them. Formulas:
 * paper/methods.md §5.4.
 */
#ifndef GEPOLAB_ANALYSIS_ANNOUNCE_H
#define GEPOLAB_ANALYSIS_ANNOUNCE_H

#include "analysis/contrasts.h"
#include "analysis/outcome.h"
#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/arena.h"
#include "core/base/table.h"

#include <stdio.h>

enum { ANNOUNCE_LEADS = 4 };
typedef struct announce_rule {
  size_t window;                /* updates whose mean is watched, at least 1 */
  double false_alarms;          /* share of surviving runs that may raise an alarm, in [0, 1) */
  int64_t lead[ANNOUNCE_LEADS]; /* updates before the onset at which runs are compared, ascending */
  outcome_rule outcome;
} announce_rule;
/* 8 updates, 0.1, leads of 1, 25, 50 and 100 updates, the rule of outcomes. */
announce_rule announce_rule_default(void);

/* One run as it is watched. */
typedef struct announce_series {
  uint64_t start;      /* what leave-one-out leaves out together */
  int fell;            /* 1: it fell at `onset`; 0: it survived */
  int64_t onset;       /* update; values at it and after it are not looked at */
  const int64_t *step; /* [n] ascending */
  const double *value; /* [n]; NaN where the metric does not apply */
  size_t n;
  size_t cell; /* runs of one cell differ in their starts alone */
} announce_series;

/* How well a metric distinguishes, so many updates before the onset, the runs that fall from those
 * of the same cell that survive, at the same update. */
typedef struct announce_matched {
  size_t fallen, pairs; /* falls with a value then and a survivor to compare with; those pairs */
  interval auc; /* share of pairs in which the run that falls is higher (ties by half): above 1/2 a
                   rise announces, below it a fall, 1/2 is chance */
} announce_matched;

/* How well one metric predicts falls. Intervals are of 95 %, by a bootstrap over starts; thresholds
 * stay as they are chosen. Unknown (NaN) where there are too few runs. */
typedef struct announcement {
  metric m;
  size_t fallen, survived; /* runs that have a value */
  int falls;               /* the side: 1 if a low value announces, by the runs of all starts */
  interval auc;            /* area under the ROC curve of runs, on that side */
  size_t judged_fallen, announced, judged_survived, alarms; /* leaving one start out */
  interval share, false_alarms;                             /* of the judged */
  interval lead; /* median of onset - update of the alarm, over the announced falls */
  announce_matched matched[ANNOUNCE_LEADS]; /* at each of the rule's leads */
  /* The ROC curve on that side, from (0, 0) to (1, 1): shares of surviving and of fallen runs with
   * an alarm, as the threshold is lowered. */
  double *roc_alarms, *roc_announced; /* [n_roc] */
  size_t n_roc;
} announcement;

/* How well the metric predicts falls over runs[n]; its `m` is the caller's, and its curve is in
 * `to`. GL_ENOMEM. */
gl_status announcement_of(announcement *out, arena *to, const announce_series *runs, size_t n,
                          const announce_rule *rule, gl_error *err);

typedef struct announcements {
  announce_rule rule;
  size_t fallen, survived, left_out; /* runs; left out: never learned, failed */
  size_t starts;
  announcement *of; /* [n], those without a value left out: farthest from chance at the first lead
                       first, those that cannot be compared there last, in the order of AUC */
  size_t n;
  arena memory;
} announcements;

/* Over the runs of all studies together that have the fields of `of` (none: all runs). Runs of the
 * same seed are of one start. GL_EINPUT where no run fell or none survived, for a field in which
 * the runs of a study do not differ, and for a value that no run has. Release with
 * announcements_fini() in any case. */
gl_status announcements_init(announcements *a, const results *const *from, size_t n_from,
                             const contrast_arm *of, const announce_rule *rule, gl_error *err);
void announcements_fini(announcements *a);

/* Reports them into a document; name: of the studies, for the title. */
void announcements_report(table *to, const announcements *a, const char *name);

#endif
