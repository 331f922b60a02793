/* Progress of long work: on a terminal a bar with rate and time left, redrawn at most ten times a
 * second; in a log a line now and then (every 10 % or 30 s); silent when asked. Writes to stderr
 * only, and is the one piece of core that prints, because that is its purpose: library code is
 * handed a progress * (NULL: silent) and never decides. */
#ifndef GEPOLAB_CORE_BASE_PROGRESS_H
#define GEPOLAB_CORE_BASE_PROGRESS_H

#include <stdint.h>

typedef struct progress progress;

typedef enum progress_mode {
  PROGRESS_AUTO,
  PROGRESS_SILENT,
  PROGRESS_LINES,
  PROGRESS_BAR
} progress_mode;

/* total 0: unknown, shows a count and a rate. NULL if memory is short; all calls accept NULL. */
progress *progress_new(const char *what, const char *unit, uint64_t total, progress_mode mode);
void progress_at(progress *p, uint64_t done, const char *note_or_null);
/* Clears the bar or prints the closing line. */
void progress_free(progress *p);

#endif
