/* Bias against sample efficiency: learning curves in exact return at a fixed staleness, with each
 * algorithm's exact bias and variance along its own path. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_TRAINING_H
#define GEPOLAB_EXPERIMENTS_LAB_TRAINING_H

#include "core/base/progress.h"
#include "experiments/lab/recipe.h"

#include <stdio.h>

/* Means over the reported seeds at one recorded update of one algorithm. */
typedef struct lab_point {
  double samples;            /* responses drawn so far */
  double value, value_error; /* exact return and its standard error over seeds */
  double kl;                 /* KL(p||q) to the sampler's policy */
  double cosine, scaled_bias, variance;
  double ascent; /* share of seeds in which the expected direction ascends: cosine > 0 */
} lab_point;

typedef struct lab_curves {
  const lab_recipe *recipe; /* borrowed */
  size_t n_points;
  lab_point *points; /* [n_algorithms * n_points] */
  double *lr;        /* [n_algorithms] chosen */
} lab_curves;

/* Trains on up to `threads` threads; `shows`: how progress is shown. */
gl_status lab_curves_init(lab_curves *c, const lab_recipe *recipe, size_t threads,
                          progress_mode shows, gl_error *err);
void lab_curves_fini(lab_curves *c);
gl_status lab_curves_json(const lab_curves *c, gl_error *err);
void lab_curves_print(const lab_curves *c, FILE *to);
/* Blocks of one algorithm, two empty lines apart. */
void lab_curves_tsv(const lab_curves *c, FILE *to);

#endif
