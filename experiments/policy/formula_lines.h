/* An algorithm as formulas, written from its fields in the notation of paper/methods.md. */
#ifndef GEPOLAB_EXPERIMENTS_POLICY_FORMULA_LINES_H
#define GEPOLAB_EXPERIMENTS_POLICY_FORMULA_LINES_H

#include "core/policy/algorithm.h"

/* Returns lines for advantage, ratio, clip and loss, malloc'd. Fields that the formulas do not
 * contain and that differ from those of `plain` are listed in a last line, `besides: FIELD: value;
 * …`. */
char *formula_lines(const policy_algorithm *algorithm, const policy_algorithm *plain);

#endif
