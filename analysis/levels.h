/* Levels of the runs of a study, by arm: where runs end, how far that is from their best, and what
 * diversity they end with. */
#ifndef GEPOLAB_ANALYSIS_LEVELS_H
#define GEPOLAB_ANALYSIS_LEVELS_H

#include "analysis/results.h"
#include "core/base/table.h"

/* Adds `levels` to a document: for each algorithm and setting (learning rates apart) interquartile
 * means over seeds with 95 % bootstrap intervals (the range of fewer than five runs) of run_level
 * and of the means of pass_at_g, distinct_right and entropy over the last tenth of the updates.
 * Failed runs are omitted. Errors: GL_ENOMEM. */
gl_status levels_report(table *to, const results *r, gl_error *err);

#endif
