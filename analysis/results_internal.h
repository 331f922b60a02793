/* What the files results*.c share. */
#ifndef GEPOLAB_ANALYSIS_RESULTS_INTERNAL_H
#define GEPOLAB_ANALYSIS_RESULTS_INTERNAL_H

#include "analysis/results.h"

/* Whether the values are the same text, or both are not given. */
int results_same_value(axis_value a, axis_value b);

/* Sorts the groups: by the fields that no sweep named, and within a grid as the sweep's axes vary,
 * numbers ascending and words as they came. GL_ENOMEM. */
gl_status results_order_groups(results *r, gl_error *err);

/* Fills in the names of axes and of all groups. GL_ENOMEM. */
gl_status results_name_groups(results *r, gl_error *err);

#endif
