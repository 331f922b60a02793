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

/* A span as a person says it: "35s", "3m05s", "2h07m", "3d04h"; "?" for what is no span. Returns
 * text. */
enum { SECONDS_TEXT_SIZE = 24 };
char *seconds_text(double s, char text[SECONDS_TEXT_SIZE]);

#endif
