/* The fields that a recipe's `tune` chooses: optimizer.lr where it has `lr`, and those that are
 * listed under `fields`. Prefix: tuned_fields_. */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_TUNED_FIELDS_H
#define GEPOLAB_EXPERIMENTS_RECIPE_TUNED_FIELDS_H

#include "core/config/config.h"

#include <stddef.h>

enum { TUNED_FIELDS_MOST = 8 };

typedef struct tuned_fields {
  const char *path[TUNED_FIELDS_MOST];       /* [n] dotted; borrowed from the doc */
  const cfg_node *values[TUNED_FIELDS_MOST]; /* what is tried, as the recipe has it; borrowed */
  size_t n;                                  /* 0: the recipe tunes nothing */
} tuned_fields;

/* What stands there, right or wrong; fields beyond the most are left out, which tune_plan_read()
 * refuses. */
tuned_fields tuned_fields_of(const cfg_doc *doc);
/* The field that tune chooses and that is `path`, inside of it or around it; NULL: none. */
const char *tuned_fields_meet(const cfg_doc *doc, const char *path);

#endif
