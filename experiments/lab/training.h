/* Bias against sample efficiency: learning curves in exact return at a fixed staleness, with each
 * algorithm's exact bias and variance along its own path. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_TRAINING_H
#define GEPOLAB_EXPERIMENTS_LAB_TRAINING_H

#include "core/base/progress.h"
#include "experiments/lab/recipe.h"

#include <stdbool.h>
#include <stdio.h>

/* Means over the reported seeds at one recorded update of one algorithm. */
typedef struct lab_point {
  double samples;            /* responses sampled so far */
  double value, value_error; /* exact return and its standard error over seeds */
  double kl;                 /* KL(p||q) to the sampler's policy */
  double cosine, scaled_bias, variance;
  double ascent; /* fraction of seeds in which the expected direction is an ascent direction (cosine
                    > 0) */
} lab_point;

/* Callback at updates 0, record_every, 2 record_every, … of a path. learner[n_parameters] are the
 * learner's parameters, sampler[n_parameters] those of the policy that the batch is sampled from.
 */
typedef gl_status (*lab_path_visit)(void *context, size_t update, const double *learner,
                                    const double *sampler, gl_error *err);
/* One training run, as the recipe's `training` describes, but with this staleness. */
typedef struct lab_path {
  const lab_recipe *r;
  const policy_algorithm *algorithm;
  size_t staleness; /* in updates */
  double lr;
  uint64_t seed;
} lab_path;
/* Trains and calls visit at each recorded point of the path. */
gl_status lab_train_path(const lab_path *of, lab_path_visit visit, void *context, gl_error *err);
/* Returns the recipe's learning rate with the best mean return over the path at that staleness, on
 * the tuning seeds, which differ from the reported seeds 1, 2, …. counter (may be NULL) counts
 * paths. */
gl_status lab_tuned_rate(const lab_recipe *r, const policy_algorithm *algorithm, size_t staleness,
                         lab_counter *counter, double *lr, gl_error *err);

typedef struct lab_curves {
  const lab_recipe *recipe; /* borrowed */
  size_t n_points;
  lab_point *points; /* [n_algorithms * n_points] */
  double *lr;        /* [n_algorithms] the chosen learning rates */
} lab_curves;

/* Trains on up to `threads` threads. `shows`: progress display. */
gl_status lab_curves_init(lab_curves *c, const lab_recipe *recipe, size_t threads,
                          progress_mode shows, gl_error *err);
void lab_curves_fini(lab_curves *c);
/* Prints to stdout: JSON has a row per recorded point, text one per algorithm. */
gl_status lab_curves_print(const lab_curves *c, bool is_json, gl_error *err);
/* Writes blocks of one algorithm each, separated by two empty lines. */
void lab_curves_tsv(const lab_curves *c, FILE *to);

#endif
