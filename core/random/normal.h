/* A standard normal variate from one block of addressed random numbers (Box and Muller 1958). */
#ifndef GEPOLAB_CORE_RANDOM_NORMAL_H
#define GEPOLAB_CORE_RANDOM_NORMAL_H

#include "core/random/rng.h"

#include <math.h>

static inline double toy_normal(rng_words w) {
  double radius = sqrt(-2 * log(rng_u01_53(w.v[0], w.v[1])));
  return radius * cos(6.283185307179586477 * rng_u01_53(w.v[2], w.v[3]));
}

#endif
