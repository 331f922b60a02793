/* Effect of truncated sampling on the expected step of estimators, exactly: every distribution of
 * the recipe's `truncation` with every kind of weights (paper/methods.md §7.10). */
#ifndef GEPOLAB_EXPERIMENTS_LAB_TRUNCATION_H
#define GEPOLAB_EXPERIMENTS_LAB_TRUNCATION_H

#include "core/base/progress.h"
#include "experiments/lab/recipe.h"

#include <stdbool.h>

/* One algorithm under one distribution and one kind of weights.
 *
 * A context is a prefix that the sampler visits and at which truncation removes tokens; it is
 * weighted with its visit probability. Drifts are means over contexts of the derivative of the
 * learner's mass on the kept tokens along the expected step, normalised to length 1. `good` are
 * contexts in which the sampler's expected reward is higher than at the start, `bad` lower. NaN if
 * there is no such context. */
typedef struct lab_truncated {
  const char *weights;   /* static */
  double top_p;          /* 1: no truncation by top-p */
  size_t top_k;          /* 0: no truncation by top-k */
  const char *algorithm; /* borrowed from lab_truncation.recipe */
  int applicable;
  char why[200];
  lab_method method;
  double bias, cosine, variance; /* relative to the gradient of the learner's return */
  double cosine_kept; /* cosine of the expected step and the gradient of the expected reward of the
                         learner's distribution on the kept tokens, with the kept sets held fixed */
  double kept_mass;   /* learner's mass on the kept tokens, mean over contexts */
  double drift_good, drift_bad;
} lab_truncated;

typedef struct lab_truncation {
  lab_recipe recipe;   /* the first distribution's recipe; supplies algorithms and names */
  lab_truncated *rows; /* [n] order: weights slowest, then distribution, then algorithm */
  size_t n, n_dists;
} lab_truncation;

/* Measures every distribution of the recipe on up to `threads` threads. `shows`: progress display.
 * Errors: GL_EINPUT with its position in the recipe (a world without a list of responses, several
 * pairs of policies or several group sizes). */
gl_status lab_truncation_init(lab_truncation *t, const cfg_doc *doc, size_t threads,
                              progress_mode shows, gl_error *err);
void lab_truncation_fini(lab_truncation *t);
/* Prints to stdout. */
gl_status lab_truncation_print(const lab_truncation *t, bool is_json, gl_error *err);

#endif
