/* Which features of published curves runs have, by rules that are the same for all of them: a
 * plateau and a late fall of the score, a slow spread of importance weights or divergence, and a
 * jump of the gradient norm. Formulas: paper/methods.md §5.5.
 *
 * Runs are those of gathered files (gather.h), studies and exports alike. Runs that differ only in
 * their seed are told of together.
 */
#ifndef GEPOLAB_ANALYSIS_IMPORT_FEATURES_H
#define GEPOLAB_ANALYSIS_IMPORT_FEATURES_H

#include "analysis/import/gather.h"
#include "analysis/outcome.h"
#include "core/base/table.h"

#include <cjson/cJSON.h>
#include <stdio.h>

typedef struct features_rule {
  double ends;          /* updates at either end whose medians are compared */
  double until;         /* last update of a spread that is looked at; infinite: all */
  double growth, trend; /* a spread is slow from both of these on */
  double jump;          /* a peak is a jump from here on */
  outcome_rule outcome;
} features_rule;
/* 100 updates, no end, 3, 0.5, 5, the rule of outcomes. */
features_rule features_rule_default(void);

/* A metric of training, until the onset of a fall where there is one. All NaN but n where fewer
 * than two updates lie in each end, or ends meet. */
typedef struct features_spread {
  size_t n;      /* values looked at */
  double growth; /* median of the last `ends` updates over that of the first; NaN if that is 0 */
  double trend;  /* Spearman's correlation of the medians of 20 equal parts with their order */
  double peak;   /* the largest value over the median of all */
  double jump;   /* the largest value within `ends` updates of the onset over the median of those
                    before; NaN without a fall */
} features_spread;

/* Of value[n] at step[n], ascending; NaN is left out. onset: update of the fall, NaN for none.
 * GL_ENOMEM. */
gl_status features_of_spread(features_spread *out, const double *step, const double *value,
                             size_t n, double onset, const features_rule *rule, gl_error *err);
/* Whether it grew slowly: growth and trend at least the rule's. */
int features_is_slow(const features_spread *s, const features_rule *rule);

/* Two tables into a document:
 * {"rule", "scores": [{label, run, runs, learned, plateau, late_falls, early_falls, survived, gap,
 * plateau_updates, onset}], "spreads": [{run, metric, runs, slow, growth, trend, peak, jump}]},
 * where gap, growth and the like are {"median", "low", "high"} over the runs, extremes. Of studies
 * the metrics that are published of such runs are asked: importance weights, divergences, gradient
 * norm. GL_EINPUT where no file holds a score or such a metric; else as gather(). */
gl_status features_report(table *to, const gathered *g, const features_rule *rule, gl_error *err);

#endif
