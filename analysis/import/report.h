/* Gathered files as tables. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_REPORT_H
#define GEPOLAB_ANALYSIS_IMPORT_REPORT_H

#include "analysis/import/gather.h"
#include "analysis/import/read.h"
#include "analysis/outcome.h"
#include "core/base/table.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

/* --- numbers that a paper prints --- */

/* Numbers that a paper prints, held against the series they are said to come from.
 *
 * A table (CSV, TSV or JSON Lines) with the columns run, best and last, and benchmark where there
 * are several; best and last as they are printed: "0.752", or "75.2" in per cent. A printed number
 * agrees with a value that rounds to it. */
typedef struct published_number {
  const char *text; /* as it is printed; NULL: none */
  double value;     /* in the scale of the series; NaN: none */
  double half;      /* half a unit of its last digit, in that scale */
  bool is_percent;  /* 1: printed in per cent, whatever the series' scale */
} published_number;

typedef struct published_row {
  const char *run, *benchmark; /* benchmark: "" if none */
  published_number best, last;
} published_row;

typedef struct published {
  published_row *row;
  size_t n;
  arena memory;
} published;

/* Release with published_fini() in any case. GL_EIO, GL_EINPUT with the place and the remedy. */
gl_status published_read(published *out, const char *path, gl_error *err);
void published_fini(published *p);

/* Whether the value rounds to the printed number; in per cent where the series' values are
 * fractions (largest at most 1) and the number is not. */
bool published_agrees(const published_number *printed, double value, double largest);

/* --- `gepolab analyze FILES` --- */

/* A table with a line for each quantity of each run (of all seeds of a run where there are
 * several): how many values, the best, where it is, the last, the gap between them and the mean.
 * The metric decides whether higher or lower is best; a descriptive metric has no best value. Where
 * runs have scores under several labels, a second table has best and last side by side, a pair of
 * columns for each label, and their averages over the labels of runs that have all of them.
 * published, where it is not NULL: a third table holds printed numbers against the series.
 *
 * Into a document: {"files" (and "file", where it is one), "runs": [{file, label, run, tag, metric,
 * better, seed, n, first, best, best_step, last, last_step, best_to_last, mean, not_finite,
 * ends_not_finite}], "benchmarks":
 * {labels, "rows": [{run, best: [], last: [], average_best, average_last}]}, "published": [...]}.
 */
gl_status report_gathered(table *to, const gathered *g, const published *printed, gl_error *err);

/* Gathers the files and reports them: one study alone as analyze_study() does (labels, names and
 * metrics are refused there, because they have no effect), everything else as above. Errors: as
 * gather(). */
gl_status report_analysis(table *to, const gather_request *request, const published *printed,
                          gl_error *err);

/* --- features of curves: features.c --- */

/* Which features of published curves runs have, by rules that are the same for all of them: a
 * plateau and a late fall of the score, a slow spread of importance weights or divergence, and a
 * jump of the gradient norm. Formulas: paper/methods.md §5.5.
 *
 * Runs are those of gathered files (gather.h), studies and exports alike. Runs that differ only in
 * their seed are reported together. */

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
bool features_is_slow(const features_spread *s, const features_rule *rule);

/* Two tables into a document:
 * {"rule", "scores": [{label, run, runs, learned, plateau, late_falls, early_falls, survived, gap,
 * plateau_updates, onset}], "spreads": [{run, metric, runs, slow, growth, trend, peak, jump}]},
 * where gap, growth and the like are {"median", "low", "high"} over the runs, extremes. Of studies
 * the metrics that are published of such runs are asked: importance weights, divergences, gradient
 * norm. GL_EINPUT where no file holds a score or such a metric; else as gather(). */
gl_status features_report(table *to, const gathered *g, const features_rule *rule, gl_error *err);

#endif
