/* Importance weights that vary more than they would: each response's part of the gradient is
 * multiplied by a random factor with mean 1, which adds variance and no bias (paper/methods.md
 * §12.7). It is how a study asks what the variance of weights does by itself. */
#ifndef GEPOLAB_CORE_RL_WEIGHT_NOISE_H
#define GEPOLAB_CORE_RL_WEIGHT_NOISE_H

#include <stddef.h>
#include <stdint.h>

/* The factor of response i in optimiser update `update` of learner step `step`: log-normal, mean 1,
 * the given variance (0: always 1). The same numbers give the same factor. */
double weight_noise_factor(double variance, uint64_t seed, uint64_t step, size_t update, size_t i);

/* Multiplies the coefficients of n responses by their factors; response i has the coefficients
 * token_start[i] .. token_start[i + 1] - 1. At most 2^32 responses and updates of a step. */
void weight_noise_apply(double variance, uint64_t seed, uint64_t step, size_t update,
                        const size_t *token_start, size_t n, double *coefficient);

#endif
