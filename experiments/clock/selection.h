/* `gepolab lab selection`: compares the expected gradient of the groups that reach the learner with
 * that of all sampled groups (paper/methods.md §7.11). Prefix: selection_case_. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_SELECTION_H
#define GEPOLAB_EXPERIMENTS_CLOCK_SELECTION_H

#include "analysis/plot/page.h"
#include "experiments/lab/arrivals.h"
#include "experiments/recipe/recipe.h"
#include "sim/cluster.h"

/* The groups, sampled from the toy world's initial policy, that a recipe's clock trains and drops;
 * the policy does not change. Arrays are indexed by the number of tokens of a group's longest
 * response. */
typedef struct selection_case {
  arrivals found;
  double *arrives; /* [max_length + 1] probabilities of reaching the learner, or mean weights */
  uint64_t *trained, *missed; /* [max_length + 1] number of groups */
  size_t max_length;
} selection_case;

/* Measures the case. Call selection_case_fini() even after an error. Errors: GL_EINPUT if the
 * recipe has no toy world whose responses can be listed, has groups of one response, a clock that
 * is not coupled, or if no group reaches the learner. */
gl_status selection_case_measure(selection_case *m, const recipe *r, const cluster_spec *cluster,
                                 gl_error *err);
void selection_case_fini(selection_case *m);

/* A recipe as given on the command line; borrowed. */
typedef struct selection_recipe {
  const char *source; /* a path or a name */
  const char *const *overrides;
  size_t n_overrides;
} selection_recipe;

/* Plots the figure `selection`: the recipe's policy for stale data, `policy` with results `own`,
 * next to the other policies possible in this cluster. Sets probabilities in `own` of lengths that
 * were never sampled to NaN. */
gl_status selection_case_draw(selection_case *own, const char *policy, const selection_recipe *of,
                              const figure_request *q, gl_error *err);

#endif
