/* `gepolab lab selection`: the expected gradient of the groups that arrive, against that of all
 * groups that were drawn (paper/methods.md §7.11). Prefix: selection_case_. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_SELECTION_H
#define GEPOLAB_EXPERIMENTS_CLOCK_SELECTION_H

#include "analysis/plot/page.h"
#include "experiments/lab/arrivals.h"
#include "experiments/recipe/recipe.h"
#include "sim/cluster.h"

/* The groups of the toy world's initial policy that one recipe's clock trains and drops; the policy
 * does not change meanwhile. Indices are the tokens of a group's longest response. */
typedef struct selection_case {
  arrivals found;
  double *arrives; /* [max_length + 1] probabilities to reach the learner, or mean weights */
  uint64_t *trained, *missed; /* [max_length + 1] groups */
  size_t max_length;
} selection_case;

/* Release with selection_case_fini(), also after an error. GL_EINPUT where the recipe has no toy
 * world whose responses can be listed, groups of one response, a clock that is not coupled, or
 * where no group reaches the learner. */
gl_status selection_case_measure(selection_case *m, const recipe *r, const cluster_spec *cluster,
                                 gl_error *err);
void selection_case_fini(selection_case *m);

/* A recipe as the command line gives it; borrowed. */
typedef struct selection_recipe {
  const char *source; /* a path or a name */
  const char *const *overrides;
  size_t n_overrides;
} selection_recipe;

/* Draws the figure `selection`: the policy for stale data of the recipe's cluster, which is
 * `policy` and gave `own`, beside the others that this cluster can have. In `own`, probabilities
 * of lengths that were never sampled become NaN. */
gl_status selection_case_draw(selection_case *own, const char *policy, const selection_recipe *of,
                              const figure_request *q, gl_error *err);

#endif
