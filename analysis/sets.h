/* Scores by evaluation set: which sets the runs of a study have, their best and last, and results
 * that show one set as if it were the run's score.
 *
 * Best and last of a set are those of its own series. Over several sets there are two bests, and
 * they differ: the mean of the sets' bests, each taken where that set is best (which is what tables
 * of benchmarks print), and the best of the sets' mean, which one version of the weights reached.
 *
 * A best is the largest of many noisy scores, and so too high. Where a recipe asks for halves, the
 * evaluation that is best on one half of the problems is scored on the other half, and the mean of
 * both ways is a best without that excess. Prefix: sets_. */
#ifndef GEPOLAB_ANALYSIS_SETS_H
#define GEPOLAB_ANALYSIS_SETS_H

#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/table.h"

#include <stdbool.h>
#include <stdint.h>

/* The names of the sets of all runs, in the order of the recipes; *n of them, 0 where no run has
 * any. The list is on the heap, the names are the results' own. */
gl_status sets_names(const char ***names, size_t *n, const results *r, gl_error *err);
/* Whether any run has scores of halves. */
bool sets_have_halves(const results *r);

/* Ends of a run's own scores. A run that is not finite at its end (results_run_is_not_finite()) has
 * no last score and no gap, here and below. */
series_ends sets_score_ends(const results_run *run, bool lower_is_better);
/* Ends of a run's series on a set; all NaN where it has none. */
series_ends sets_ends(const results_run *run, const char *set, bool lower_is_better);
/* The means of these over so many sets: of bests, of lasts, of gaps. NaN where the run lacks one.
 */
series_ends sets_mean_ends(const results_run *run, const char *const *sets, size_t n,
                           bool lower_is_better);
/* Ends of the mean over these sets, evaluation by evaluation. *ends is NaN where the run lacks a
 * set. GL_ENOMEM. */
gl_status sets_ends_of_mean(series_ends *ends, const results_run *run, const char *const *sets,
                            size_t n, bool lower_is_better, gl_error *err);
/* Best as chosen on one half and scored on the other, the mean of both ways; last and first as the
 * means of the halves; NaN where the run has no halves of the set. */
series_ends sets_halved_ends(const results_run *run, const char *set, bool lower_is_better);

/* The name of the mean over all sets. */
#define SETS_MEAN "mean"
/* Where runs have scores of halves: fills in their best score until each evaluation, of the set
 * that is their own score, without the upward bias of the largest of noisy scores. GL_ENOMEM. */
gl_status sets_use_halves(results *r, gl_error *err);
/* Makes the scores of that set, or of the mean over all sets, the runs' scores, and their bests
 * those of its halves, where it has any. GL_EINPUT, with the
 * nearest name, where no run has the set, and where the runs of the study have none. */
gl_status sets_choose(results *r, const char *set, gl_error *err);

/* --- the table of benchmarks --- */
/* Best and last of several benchmarks side by side, with their averages: the one table for a
 * study's evaluation sets and for exports of other programs that have labels. Prefix: benchmarks_.
 */

/* The scores of one run (a seed of a row) on one benchmark. Texts are borrowed. */
typedef struct benchmark_score {
  const char *row, *benchmark;
  uint64_t seed;
  double best, last, gap;
} benchmark_score;

typedef struct benchmarks {
  const char **benchmark; /* [n_benchmarks], in the order in which they came */
  size_t n_benchmarks;
  const char **row; /* [n_rows] likewise */
  size_t n_rows;
  interval *best, *last, *gap; /* [n_rows * n_benchmarks] over the seeds of a row */
  /* [n_rows] of the average over all benchmarks that each seed has: of its bests, of its lasts, of
   * its gaps. Where no seed has all benchmarks, but the row has: the average of the values. */
  interval *average_best, *average_last, *average_gap;
  arena memory; /* of all of them */
} benchmarks;

/* n scores, those of a row and benchmark in any order. Release with benchmarks_fini() in any case.
 * GL_ENOMEM. */
gl_status benchmarks_init(benchmarks *b, const benchmark_score *score, size_t n, gl_error *err);
void benchmarks_fini(benchmarks *b);

/* Into a document: "benchmarks": {labels, rows: [{run, best: [], last: [], gap: [], average_best,
 * average_last, average_gap}]} for programs; and, as its last column, a table for people with a
 * line for each row, a pair of columns for each benchmark and one for the averages. row_head: of
 * the first column; what: the title of the pairs, "Best and last by label". */
void benchmarks_report(table *to, const benchmarks *b, const char *row_head, const char *what);

#endif
