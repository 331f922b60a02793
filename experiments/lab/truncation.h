/* What truncated sampling does to the expected step of estimators, exactly: every distribution of
 * the recipe's `truncation` with every kind of weights (paper/methods.md §7.10). */
#ifndef GEPOLAB_EXPERIMENTS_LAB_TRUNCATION_H
#define GEPOLAB_EXPERIMENTS_LAB_TRUNCATION_H

#include "core/base/progress.h"
#include "experiments/lab/recipe.h"

#include <stdbool.h>

/* One algorithm under one distribution and one kind of weights. Drifts are means over contexts
 * (prefixes that the sampler meets and does not keep whole), weighted with how often it meets them,
 * of the derivative of the learner's mass on the kept tokens along the expected step of length 1;
 * `good` are contexts in which the sampler expects more reward than at the start, `bad` less. NaN
 * where there is no such context. */
typedef struct lab_truncated {
  const char *weights;   /* static */
  double top_p;          /* 1: off */
  size_t top_k;          /* 0: off */
  const char *algorithm; /* borrowed from lab_truncation.recipe */
  int applicable;
  char why[200];
  lab_method method;
  double bias, cosine, variance; /* against the gradient of the learner's return */
  double cosine_kept;            /* of the expected step and the gradient of the return of the
                                    learner's distribution on the kept tokens, sets held fixed */
  double kept_mass;              /* mean over contexts of the learner's mass on the kept tokens */
  double drift_good, drift_bad;
} lab_truncated;

typedef struct lab_truncation {
  lab_recipe recipe;   /* of the first distribution; algorithms and names */
  lab_truncated *rows; /* [n] weights slowest, then distribution, then algorithm */
  size_t n, n_dists;
} lab_truncation;

/* Measures the recipe's every distribution on up to `threads` threads; `shows`: how progress is
 * shown. GL_EINPUT at its place where the world has no list of responses, or there are several
 * pairs of policies or group sizes. */
gl_status lab_truncation_init(lab_truncation *t, const cfg_doc *doc, size_t threads,
                              progress_mode shows, gl_error *err);
void lab_truncation_fini(lab_truncation *t);
/* On stdout. */
gl_status lab_truncation_print(const lab_truncation *t, bool is_json, gl_error *err);

#endif
