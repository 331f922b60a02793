/* Theorems 1 and 3 on pairs of distributions from training: the learner and the policy that its
 * batch was drawn from, along the paths of several algorithms at several stalenesses. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_THEORY_TRAINING_H
#define GEPOLAB_EXPERIMENTS_LAB_THEORY_TRAINING_H

#include "core/base/json.h"
#include "core/base/progress.h"
#include "experiments/lab/recipe.h"

#include <stdio.h>

/* {"outcomes", "theorem", "smallest": {expected, computed}, "training": [{algorithm, staleness, lr,
 * pairs, pairs_far, infinite, kl_median, kl_max, medians of variances, and for each denominator
 * {share_theorem1_holds, largest_constant, share_w_varies_more, highest_kl_w_varies_more,
 * share_aw_varies_more, share_w_and_aw_disagree; the last two with A = r - E_q r ("_group"); the
 * first and third share among the pairs_far, whose KL is 0.01 or more ("_far")}}], "together": the
 * same of all algorithms at each staleness}. A pair is of one prompt, at every recorded update
 * whose batch has the full staleness. GL_EINPUT where the recipe has no `training` with
 * `stalenesses`, prompts with different numbers of responses, or nothing is recorded late enough.
 */
gl_status theory_training_run(cJSON **out, const lab_recipe *r, size_t threads, progress_mode shows,
                              gl_error *err);
void theory_training_print(const cJSON *document, FILE *to);

#endif
