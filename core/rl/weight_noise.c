/* Log-normal factors at addresses of their own. */
#include "core/rl/weight_noise.h"

#include "core/random/normal.h"
#include "core/random/rng.h"

#include <math.h>

double weight_noise_factor(double variance, uint64_t seed, uint64_t step, size_t update, size_t i) {
  if (variance == 0) return 1;
  const double width = sqrt(log1p(variance)); /* of the logarithm */
  const rng_stream stream = rng_stream_at(seed, RNG_WEIGHT_NOISE, step);
  const rng_words w = rng_block(stream, (uint64_t)update << 32 | (uint64_t)i);
  return exp(width * rng_normal(w) - width * width / 2);
}

void weight_noise_apply(double variance, uint64_t seed, uint64_t step, size_t update,
                        const size_t *token_start, size_t n, double *coefficient) {
  for (size_t i = 0; variance != 0 && i < n; ++i) {
    const double factor = weight_noise_factor(variance, seed, step, update, i);
    for (size_t k = token_start[i]; k < token_start[i + 1]; ++k) coefficient[k] *= factor;
  }
}
