/* Best and last of several benchmarks side by side, with their averages: the one table for a
 * study's evaluation sets and for exports of other programs that have labels. Prefix: benchmarks_.
 */
#ifndef GEPOLAB_ANALYSIS_BENCHMARKS_H
#define GEPOLAB_ANALYSIS_BENCHMARKS_H

#include "analysis/statistics.h"
#include "core/base/table.h"

#include <stdint.h>

/* What one run (a seed of a row) reached on one benchmark. Texts are borrowed. */
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
} benchmarks;

/* n scores, those of a row and benchmark in any order. Release with benchmarks_fini() in any case.
 * GL_ENOMEM. */
gl_status benchmarks_init(benchmarks *b, const benchmark_score *score, size_t n, gl_error *err);
void benchmarks_fini(benchmarks *b);

/* Into a document: "benchmarks": {labels, rows: [{run, best: [], last: [], gap: [], average_best,
 * average_last, average_gap}]} for programs; and, as its last column, a table for people with a
 * line for each row, a pair of columns for each benchmark and one for the averages. row_head: of
 * the first column; what: what stands in the pairs, "Best and last by label". */
void benchmarks_report(table *to, const benchmarks *b, const char *row_head, const char *what);

#endif
