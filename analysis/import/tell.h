/* What gathered files say, as tables. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_TELL_H
#define GEPOLAB_ANALYSIS_IMPORT_TELL_H

#include "analysis/import/gather.h"
#include "analysis/import/published.h"
#include "core/base/table.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* A table with a line for each quantity of each run (of all seeds of a run where there are
 * several): how many values, the best, where it is, the last, the gap between them and the mean.
 * What is best follows from the metric; of one that only describes a run nothing is. Where runs
 * have scores under several labels, a second table has best and last side by side, a pair of
 * columns for each label, and their averages over the labels of runs that have all of them.
 * published, where it is not NULL: a third table holds printed numbers against the series.
 *
 * Into a document: {"files" (and "file", where it
 * is one), "runs": [{file, label, run, tag, metric, better, seed, n, first, best, best_step, last,
 * last_step, best_to_last, mean}], "benchmarks": {labels, "rows": [{run, best: [], last: [],
 * average_best, average_last}]}, "published": [...]}. */
gl_status tell_gathered(table *to, const gathered *g, const published *printed, gl_error *err);

/* Gathers the files and tells what they say: of one study alone as analyze_study() does (labels,
 * names and metrics are of no use there, and refused), of everything else as above. Errors: as
 * gather(). */
gl_status tell_files(table *to, const gather_request *request, const published *printed,
                     gl_error *err);

#endif
