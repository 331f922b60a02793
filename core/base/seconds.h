/* A clock, and durations as text. */
#ifndef GEPOLAB_CORE_BASE_SECONDS_H
#define GEPOLAB_CORE_BASE_SECONDS_H

#include <time.h>

/* Seconds on a monotonic clock. */
static inline double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A duration: "35s", "3m05s", "2h07m", "3d04h"; "?" if s is negative or not finite. Returns text.
 */
enum { SECONDS_TEXT_SIZE = 24 };
char *seconds_text(double s, char text[SECONDS_TEXT_SIZE]);

#endif
