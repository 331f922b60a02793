/* Arms of a study, cells of one algorithm at one setting: which are one computation, and at which
 * levels their runs end. */
#ifndef GEPOLAB_ANALYSIS_ARMS_H
#define GEPOLAB_ANALYSIS_ARMS_H

#include "analysis/results.h"
#include "core/base/table.h"

#include <stdbool.h>

/* --- equal arms --- */

/* Whether two runs have the same evaluations and, update by update, the same batch reward and
 * gradient norm. The loss is not compared: it is reported with roundings of its own. False for runs
 * without updates. */
bool runs_are_equal(const results_run *a, const results_run *b);

/* Two cells with at least one common seed, all of whose common seeds have equal runs. */
typedef struct equal_arms {
  const results_cell *first, *second;
  size_t runs; /* common seeds */
} equal_arms;
/* Lists the pairs, *n of them, in `to`; an arm is paired with the first arm that equals it. Errors:
 * GL_ENOMEM. */
gl_status equal_arms_find(equal_arms **out, size_t *n, const results *r, arena *to, gl_error *err);

/* Adds `equal_arms` to a document if there are any. Errors: GL_ENOMEM. */
gl_status equal_arms_report(table *to, const results *r, gl_error *err);

/* --- levels --- */

/* Adds `levels` to a document: for each algorithm and setting (learning rates apart) interquartile
 * means over seeds with 95 % bootstrap intervals (the range of fewer than five runs) of run_level
 * and of the means of pass_at_g, distinct_right and entropy over the last tenth of the updates.
 * Failed runs are omitted. Errors: GL_ENOMEM. */
gl_status levels_report(table *to, const results *r, gl_error *err);

#endif
