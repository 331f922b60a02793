/* Arms of a study that are one computation: cells whose runs agree bit for bit. A fix whose
 * coefficient multiplies zero, or two clips that never act, would otherwise be read as two results.
 */
#ifndef GEPOLAB_ANALYSIS_EQUAL_ARMS_H
#define GEPOLAB_ANALYSIS_EQUAL_ARMS_H

#include "analysis/results.h"
#include "core/base/table.h"

#include <stdbool.h>

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

#endif
