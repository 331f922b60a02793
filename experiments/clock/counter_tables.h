/* `gepolab list definitions` and `gepolab sim --definitions`: the staleness counters of trainers,
 * and what they would read for a recipe's run. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_COUNTER_TABLES_H
#define GEPOLAB_EXPERIMENTS_CLOCK_COUNTER_TABLES_H

#include "core/base/table.h"
#include "experiments/recipe/recipe.h"

/* The values that the counters would report for a recipe's runs. */
typedef struct definitions_comparison {
  table *table;
  char **names; /* [n_names] names of columns, which the table borrows */
  size_t n_names;
} definitions_comparison;

/* Makes a table with a row for each counter and a mean and a largest value for each run: that of
 * the recipe, or one for each setting of its sweep (algorithms and seeds share a clock). The caller
 * frees the table, and then the names with definitions_comparison_fini().
 * Errors: those of recipe_read(), cluster_parse() and schedule_build(); GL_EINPUT if a cluster is
 * coupled and has no distribution of lengths. */
gl_status definitions_compare(definitions_comparison *out, const recipe *r, const cfg_doc *doc,
                              gl_error *err);
void definitions_comparison_fini(definitions_comparison *c);

#endif
