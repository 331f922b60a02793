/* Wall-clock time, for what is reported and never for what is computed. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_SECONDS_H
#define GEPOLAB_EXPERIMENTS_BASE_SECONDS_H

#include <time.h>

/* Seconds on a clock that only goes forward. */
static inline double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
