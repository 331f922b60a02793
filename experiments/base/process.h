/* Time as it is reported, and stopping on request. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_PROCESS_H
#define GEPOLAB_EXPERIMENTS_BASE_PROCESS_H

#include <stddef.h>
#include <time.h>

/* --- time --- */

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

/* --- signals --- */

/* Stopping on request: a command that has work to save notes the first signal and looks it up
 * between steps. */

/* From here on the first SIGINT, SIGTERM or SIGHUP is noted instead of ending the process; a second
 * of the same kind ends it. */
void signals_catch(void);
/* SIGTERM alone, noted every time: for a worker, which its parent stops with it. */
void signals_catch_term(void);
/* The noted signal, or 0. */
int signals_caught(void);

#endif
