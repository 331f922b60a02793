/* What `gepolab analyze` says about one study, as tables. */
#ifndef GEPOLAB_ANALYSIS_ANALYZE_H
#define GEPOLAB_ANALYSIS_ANALYZE_H

#include "analysis/results.h"
#include "analysis/statistics.h"
#include "core/base/error.h"
#include "core/base/table.h"
#include "core/store/store.h"

/* Every study of a store into a document. A store with one study: that study; with several:
 * {"studies": […]}. A study:
 * {"study", "repeats_left_out", "cells":
 * [{algorithm, axes, done, diverged, failed, lr, best, last, best_to_last, ...}], "correlations",
 * "correlations_within": the same over the runs of each algorithm};
 * an estimate with an interval is {"iqm", "low", "high"}; a correlation that is not told (null)
 * says "why". Of a study with evaluation sets also "sets": [{algorithm, axes, set, runs, best,
 * last, best_to_last}], with the lines "average" and "of the mean" and, of halves, best_by_halves,
 * and "benchmarks" (analysis/benchmarks.h). set (NULL: the run's own score): the set whose score
 * all tables show, as sets_choose() takes it. */
gl_status analyze_study(table *to, store *s, const char *set, gl_error *err);
/* Best, last and their gap of a cell on an evaluation set (its index in sets_names()), and of how
 * many runs, as the tables of sets have them. GL_ENOMEM. */
gl_status analyze_set_cell(interval ends[3], size_t *runs, const results *r,
                           const results_cell *cell, size_t set, gl_error *err);
#endif
