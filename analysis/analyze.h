/* The tables of `gepolab analyze` of a study: the verdict, cells, clock, correlations and
 * evaluation sets. Prefix: analyze_. */
#ifndef GEPOLAB_ANALYSIS_ANALYZE_H
#define GEPOLAB_ANALYSIS_ANALYZE_H

#include "analysis/summary.h"
#include "core/base/error.h"
#include "core/base/table.h"
#include "core/store/store.h"

/* Reports every study of a store to a document. If the store has one study: that study; else
 * {"studies": […]}. A study is {"study", "repeats_left_out", "verdict" (analysis/verdict.h),
 * "cells": [{algorithm, axes, done, diverged, collapsed, not_finite, failed, lr, best, last,
 * best_to_last, ...}], "correlations", "correlations_within"}; the last is the same over the runs
 * of each algorithm. An estimate with an interval is {"iqm", "low", "high"}; an unknown correlation
 * (null) has the reason in "why".
 *
 * A study with evaluation sets also has "sets": [{algorithm, axes, set, runs, best, last,
 * best_to_last}] with the lines "average" and "of the mean" and, for halves, best_by_halves, and
 * "benchmarks" (analysis/evaluation_sets.h). set: the set whose score all tables use, as for
 * sets_choose(); NULL: the run's own score. Errors: those of results_load() and sets_choose(). */
gl_status analyze_study(table *to, store *s, const char *set, gl_error *err);
/* Best, last and gap of a cell on an evaluation set (an index in sets_names()), and the number of
 * runs, as in the tables of sets. Errors: GL_ENOMEM. */
gl_status analyze_set_cell(interval ends[3], size_t *runs, const results *r,
                           const results_cell *cell, size_t set, gl_error *err);

#endif
