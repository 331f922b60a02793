/* The measurements of a laboratory recipe and the forms in which they are given: JSON, a table,
 * lines for figures, records of the store. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_TABLE_H
#define GEPOLAB_EXPERIMENTS_LAB_TABLE_H

#include "core/base/progress.h"
#include "experiments/lab/recipe.h"

#include <stdbool.h>
#include <stdio.h>

/* Result of algorithm a, size s, pair k at [(k * n_sizes + s) * n_algorithms + a]. */
typedef struct lab_table {
  const lab_recipe *recipe; /* borrowed */
  lab_result *results;
  size_t n;
} lab_table;

/* Measures everything on up to `threads` threads; the numbers do not depend on how many. `shows`:
 * how progress is shown. */
gl_status lab_table_init(lab_table *t, const lab_recipe *recipe, size_t threads,
                         progress_mode shows, gl_error *err);
void lab_table_fini(lab_table *t);

/* On stdout; algorithm slowest, then group size, then KL. */
gl_status lab_table_print(const lab_table *t, bool is_json, gl_error *err);
/* One line per measurement with a header; blocks of one algorithm and size, two empty lines apart,
 * in the order of the JSON. */
void lab_table_tsv(const lab_table *t, FILE *to);
/* Replaces the recipe's records in the table `bias` of a study file, with how they came about.
 * wall_s: seconds that measuring took. */
gl_status lab_table_store(const lab_table *t, const char *path, double wall_s, gl_error *err);

#endif
