/* Standard normal numbers from addressed random numbers, by the method of Box and Muller (1958):
 * with two uniform numbers u and v, sqrt(-2 ln u) cos(2 pi v) and sqrt(-2 ln u) sin(2 pi v) are
 * independent and normal. All normal numbers of the program are drawn here. Prefix: rng_normal. */
#ifndef GEPOLAB_CORE_RANDOM_NORMAL_H
#define GEPOLAB_CORE_RANDOM_NORMAL_H

#include "core/random/rng.h"

#include <math.h>

/* Both normal numbers of a block, each uniform of 53 bits: scale * cosine into out[0], scale * sine
 * into out[1]. */
RNG_FUNCTION void rng_normal_pair(rng_words w, double scale, double out[2]) {
  const double radius = scale * sqrt(-2 * log(rng_u01_53(w.v[0], w.v[1])));
  const double angle = 6.283185307179586477 * rng_u01_53(w.v[2], w.v[3]);
  out[0] = radius * cos(angle);
  out[1] = radius * sin(angle);
}

/* The first of them alone. */
static inline double rng_normal(rng_words w) {
  const double radius = sqrt(-2 * log(rng_u01_53(w.v[0], w.v[1])));
  return radius * cos(6.283185307179586477 * rng_u01_53(w.v[2], w.v[3]));
}

/* One normal number from uniforms of 32 bits, the block's first two words: at most 6.8 in size.
 * For directions, whose stored results were drawn so. */
static inline double rng_normal_32(rng_words w) {
  return sqrt(-2 * log(rng_u01(w.v[0]))) * cos(6.283185307179586477 * rng_u01(w.v[1]));
}

#endif
