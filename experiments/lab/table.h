/* The measurements of a laboratory recipe and their output formats: JSON, a printed table, TSV for
 * figures, records of the store. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_TABLE_H
#define GEPOLAB_EXPERIMENTS_LAB_TABLE_H

#include "core/base/progress.h"
#include "experiments/lab/recipe.h"

#include <stdbool.h>
#include <stdio.h>

/* The result of algorithm a, size s, pair k is at [(k * n_sizes + s) * n_algorithms + a]. */
typedef struct lab_table {
  const lab_recipe *recipe; /* borrowed */
  lab_result *results;
  size_t n;
} lab_table;

/* Runs all measurements on up to `threads` threads; results do not depend on their number. `shows`:
 * progress display. */
gl_status lab_table_init(lab_table *t, const lab_recipe *recipe, size_t threads,
                         progress_mode shows, gl_error *err);
void lab_table_fini(lab_table *t);

/* Prints to stdout; order: algorithm slowest, then group size, then KL. */
gl_status lab_table_print(const lab_table *t, bool is_json, gl_error *err);
/* Writes a header and one line per measurement, in the order of the JSON. Blocks of one algorithm
 * and size are separated by two empty lines. */
void lab_table_tsv(const lab_table *t, FILE *to);
/* Replaces the recipe's records in the table `bias` of a study file, with their provenance. wall_s:
 * duration of the measurements in seconds. */
gl_status lab_table_store(const lab_table *t, const char *path, double wall_s, gl_error *err);

/* --- many random directions --- */

/* The quantities of one direction. */
typedef enum lab_quantity {
  LAB_QUANTITY_COSINE,     /* cosine of the expected and the true gradient */
  LAB_QUANTITY_BIAS,       /* length of the bias over that of the true gradient */
  LAB_QUANTITY_MSE,        /* mean squared error over that of the recipe's first algorithm */
  LAB_QUANTITY_SCALED_MSE, /* the same ratio, each estimator scaled by the factor that
                           minimises its error */
  LAB_QUANTITIES
} lab_quantity;

enum { LAB_QUANTILES = 3 };

/* An algorithm at one group size and KL, over the directions in which it and the first algorithm
 * are measured. */
typedef struct lab_over_directions {
  double kl;
  size_t n; /* number of directions */
  double quantile[LAB_QUANTITIES]
                 [LAB_QUANTILES];        /* median, 10 and 90 % quantile; NaN: none measured */
  double fraction_below[LAB_QUANTITIES]; /* fraction of directions below the threshold: cosine
                                            below 0 (wrong way), other quantities below 1; for the
                                            two errors: smaller than the first algorithm's */
} lab_over_directions;

/* Summarises over directions. k: index of the KL value. scratch has recipe->directions items. */
lab_over_directions lab_directions_measured(const lab_table *t, size_t algorithm, size_t size,
                                            size_t k, double *scratch);

/* Prints to stdout, for a recipe with dial.directions: one line per algorithm, group size and KL.
 * Mean squared errors are relative to those of the recipe's first algorithm along the same
 * direction. */
gl_status lab_directions_print(const lab_table *t, bool is_json, gl_error *err);

#endif
