/* Reports gathered files as tables. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_REPORT_H
#define GEPOLAB_ANALYSIS_IMPORT_REPORT_H

#include "analysis/import/gather.h"
#include "analysis/import/read.h"
#include "analysis/outcome.h"
#include "core/base/table.h"

#include <stdbool.h>

/* --- numbers printed in a paper --- */

/* Compares numbers printed in a paper with the series.
 *
 * Input is a table (CSV, TSV or JSON Lines) with the columns run, best and last, and benchmark if
 * there are several. best and last are text as printed: "0.752", or "75.2" in per cent. A printed
 * number agrees with a value that rounds to it. */
typedef struct published_number {
  const char *text; /* as printed; NULL: none */
  double value;     /* in the scale of the series; NaN: none */
  double half;      /* half a unit of its last digit, in that scale */
  bool is_percent;  /* 1: printed in per cent, independent of the series' scale */
} published_number;

typedef struct published_row {
  const char *run, *benchmark; /* benchmark: "" if there is none */
  published_number best, last;
} published_row;

typedef struct published {
  published_row *row;
  size_t n;
  arena memory;
} published;

/* Reads the table. Release with published_fini(), also after an error. Errors: GL_ENOMEM, GL_EIO,
 * GL_EINPUT (with position and hint). */
gl_status published_read(published *out, const char *path, gl_error *err);
void published_fini(published *p);

/* Returns true if the value rounds to the printed number. Per cent is assumed if the series' values
 * are fractions (largest at most 1) and the number is not. */
bool published_agrees(const published_number *printed, double value, double largest);

/* --- `gepolab analyze FILES` --- */

/* Gathers the files and reports them: a table with a line for each quantity of each run (one for
 * all its seeds). A line has the number of values, the best and its step, the last, the gap between
 * them, and the mean. The metric determines whether higher or lower is best; a descriptive metric
 * has no best value. If runs have scores under several labels, a second table has best and last
 * side by side, a pair of columns for each label, and averages over the labels for runs that have
 * all of them. If `printed` is not NULL, a third table compares printed numbers with the series.
 *
 * As a document: {"files" (and "file", if there is one), "runs": [{file, label, run, tag, metric,
 * better, seed, n, first, best, best_step, last, last_step, best_to_last, mean, not_finite,
 * ends_not_finite}], "benchmarks": {labels, "rows": [{run, best: [], last: [], average_best,
 * average_last}]}, "published": [...]}.
 *
 * A single study without each_set is reported by analyze_study(); any other option of the request
 * except set, and `printed`, is then GL_EINPUT. Other errors: those of gather(). */
gl_status report_analysis(table *to, const gather_request *request, const published *printed,
                          gl_error *err);

/* --- features of curves: curve_features.c --- */

/* Tests published curves for certain features, with the same rules for all runs: a plateau and a
 * late collapse of the score, a slow growth of importance weights or divergence, and a jump of the
 * gradient norm. Formulas: paper/methods.md §5.5.
 *
 * Runs are those of gathered files (gather.h), both studies and exports. Runs that differ only in
 * their seed are reported together. */

typedef struct features_rule {
  double ends;          /* number of updates at either end whose medians are compared */
  double until;         /* last update of a spread that is used; infinite: all */
  double growth, trend; /* growth is slow if both values reach these limits */
  double jump;          /* a peak counts as a jump from this ratio on */
  outcome_rule outcome;
} features_rule;
/* Returns 100 updates, no end, 3, 0.5, 5, and the default rule of outcomes. */
features_rule features_rule_default(void);

/* Growth of a training metric, up to the onset of a collapse if there is one. All fields except n
 * are NaN if an end has fewer than two updates or the ends overlap. */
typedef struct features_spread {
  size_t n;      /* number of values used */
  double growth; /* median of the last `ends` updates over that of the first; NaN if that is 0 */
  double trend;  /* Spearman's correlation between the medians of 20 equal parts and their order */
  double peak;   /* largest value / median of all values */
  double jump;   /* largest value within `ends` updates of the onset / median of the values before;
                    NaN without a collapse */
} features_spread;

/* Computes the spread of value[n] at ascending step[n]; NaN values are skipped. onset: update of
 * the collapse, NaN if there is none. Errors: GL_ENOMEM. */
gl_status features_of_spread(features_spread *out, const double *step, const double *value,
                             size_t n, double onset, const features_rule *rule, gl_error *err);
/* Returns true if the growth is slow: growth and trend reach the rule's limits. */
bool features_is_slow(const features_spread *s, const features_rule *rule);

/* Writes two tables into a document: {"rule", "scores": [{label, run, runs, learned, plateau,
 * late_falls, early_falls, survived, gap, plateau_updates, onset}], "spreads": [{run,
 * metric, runs, slow, growth, trend, peak, jump}]}. gap, growth and similar fields are {"median",
 * "low", "high"} over the runs, with low and high the extremes. For studies, metrics are those that
 * papers publish: importance weights, divergences, gradient norm. Errors: GL_EINPUT (no file has a
 * score or such a metric), and those of gather(). */
gl_status features_report(table *to, const gathered *g, const features_rule *rule, gl_error *err);

#endif
