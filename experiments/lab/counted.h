/* Measurements in a world whose responses are counted (toy_world_is_counted): what the laboratory
 * knows there exactly, and what it samples. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_COUNTED_H
#define GEPOLAB_EXPERIMENTS_LAB_COUNTED_H

#include "experiments/lab/recipe.h"

/* As lab_measure() of the recipe's pair and group size, into out[n_algorithms]. Exact: J, its
 * gradient, both KL divergences and the exact denominator, by dynamic programming. By Monte Carlo
 * over `samples` groups per prompt, with jackknife errors: the moments of every algorithm's step.
 * There is no population limit (applicable 0). GL_EINPUT where `samples` is 0. */
gl_status lab_counted_measure(lab_result *out, const lab_recipe *recipe, size_t pair,
                              size_t group_size, uint64_t entity, size_t threads, gl_error *err);

#endif
