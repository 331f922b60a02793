/* Scores by evaluation set: the sets of a study's runs, their best and last scores, and results in
 * which one set replaces the run's score. Prefix: sets_.
 *
 * Best and last of a set are those of its own series. Over several sets there are two different
 * averages of the best: the mean of the sets' bests, each at its own evaluation (as benchmark
 * tables print), and the best of the sets' mean, which a single version of the weights reached.
 *
 * A best is the maximum of many noisy scores and thus biased upwards. If a recipe uses halves, the
 * evaluation that is best on one half of the problems is scored on the other half; the mean of both
 * directions does not have that bias. */
#ifndef GEPOLAB_ANALYSIS_EVALUATION_SETS_H
#define GEPOLAB_ANALYSIS_EVALUATION_SETS_H

#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/table.h"

#include <stdbool.h>
#include <stdint.h>

/* Lists the names of the sets of all runs, in the order of the recipes, *n of them; 0 if no run has
 * any. The list is allocated; the names are borrowed from the results. */
gl_status sets_names(const char ***names, size_t *n, const results *r, gl_error *err);
/* Returns true if any run has scores of halves. */
bool sets_have_halves(const results *r);

/* Ends of a run's own scores. Here and below, a run that is not finite at its end
 * (results_run_is_not_finite()) has no last score and no gap. */
series_ends sets_score_ends(const results_run *run, bool lower_is_better);
/* Ends of a run's series on a set; all NaN if it has none. */
series_ends sets_ends(const results_run *run, const char *set, bool lower_is_better);
/* Means over n sets: of bests, of lasts, of gaps. NaN if the run lacks one. */
series_ends sets_mean_ends(const results_run *run, const char *const *sets, size_t n,
                           bool lower_is_better);
/* Ends of the mean over these sets, evaluation by evaluation. *ends is NaN if the run lacks a set.
 * Errors: GL_ENOMEM. */
gl_status sets_ends_of_mean(series_ends *ends, const results_run *run, const char *const *sets,
                            size_t n, bool lower_is_better, gl_error *err);
/* Best selected on one half and scored on the other, mean of both directions; last and first are
 * means of the halves. NaN if the run has no halves of the set. */
series_ends sets_halved_ends(const results_run *run, const char *set, bool lower_is_better);

/* Name of the mean over all sets. */
#define SETS_MEAN "mean"
/* For runs with scores of halves: fills in best_until of the set that is their own score, without
 * the upward bias of the maximum. Errors: GL_ENOMEM. */
gl_status sets_use_halves(results *r, gl_error *err);
/* Makes the scores of that set, or of the mean over all sets, the runs' scores; their bests use
 * halves if there are any. Errors: GL_ENOMEM, GL_EINPUT (no run has the set, with the nearest name;
 * the study has no sets). */
gl_status sets_choose(results *r, const char *set, gl_error *err);

/* --- the table of benchmarks --- */
/* Best and last scores of several benchmarks side by side, with averages. Used for a study's
 * evaluation sets and for other programs' exports with labels. Prefix: benchmarks_. */

/* The scores of one run (a seed of a row) on one benchmark. Texts are borrowed. */
typedef struct benchmark_score {
  const char *row, *benchmark;
  uint64_t seed;
  double best, last, gap;
} benchmark_score;

typedef struct benchmarks {
  const char **benchmark; /* [n_benchmarks] in order of appearance */
  size_t n_benchmarks;
  const char **row; /* [n_rows] in order of appearance */
  size_t n_rows;
  interval *best, *last, *gap; /* [n_rows * n_benchmarks] over the seeds of a row */
  /* [n_rows] averages over all benchmarks, per seed that has all of them: of bests, of lasts, of
   * gaps. If no seed has all benchmarks but the row does: the average of the row's values. */
  interval *average_best, *average_last, *average_gap;
  arena memory; /* memory of all of these */
} benchmarks;

/* Builds the table of n scores, in any order within a row and benchmark. Release with
 * benchmarks_fini(), also after an error. Errors: GL_ENOMEM. */
gl_status benchmarks_init(benchmarks *b, const benchmark_score *score, size_t n, gl_error *err);
void benchmarks_fini(benchmarks *b);

/* Writes a document: as JSON "benchmarks": {labels, rows: [{run, best: [], last: [], gap: [],
 * average_best, average_last, average_gap}]}. Its last column is the printed table, with a line for
 * each row, a pair of columns for each benchmark and one for the averages. row_head: heading of the
 * first column; what: title of the pairs, "Best and last by label". */
void benchmarks_report(table *to, const benchmarks *b, const char *row_head, const char *what);

#endif
