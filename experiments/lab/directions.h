/* Measurements along many random directions, as medians and fractions over the directions. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_DIRECTIONS_H
#define GEPOLAB_EXPERIMENTS_LAB_DIRECTIONS_H

#include "experiments/lab/table.h"

#include <stdbool.h>

/* Prints to stdout, for a recipe with dial.directions: one line per algorithm, group size and KL.
 * Mean squared errors are relative to those of the recipe's first algorithm along the same
 * direction. */
gl_status lab_directions_print(const lab_table *t, bool is_json, gl_error *err);

#endif
