/* Progress of long work: on a terminal a bar with rate and time left, redrawn at most ten times a
 * second and never wider than the terminal; in a log a line now and then (every 10 % or 30 s);
 * silent when asked. Writes to stderr only, and is the only part of core that prints. Library code
 * gets a progress * from its caller (NULL: silent).
 *
 * One progress may span several phases and several processes. A sweep that tunes first and of whose
 * 400 runs an earlier process finished 120:
 *
 *   progress *p = progress_new("tuning", "runs", 400, PROGRESS_AUTO);
 *   progress_resume(p, 120);           shows 120/400; rate and time left count the other 280
 *   progress_workers(p, 8);
 *   progress_cost(p, 0, steps_left);   of both phases, if runs differ in length
 *   for each finished run:
 *     progress_cost(p, steps_done, steps_left);
 *     progress_at(p, ++finished, name);           finished includes the 120
 *   progress_phase(p, "delay_sweep");  a new name; count and time left continue
 */
#ifndef GEPOLAB_CORE_BASE_PROGRESS_H
#define GEPOLAB_CORE_BASE_PROGRESS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct progress progress;

/* AUTO: a bar where stderr is a terminal that can redraw a line (TERM is set and not "dumb")
 * outside continuous integration (CI unset, empty or "false"); else lines. There are no colours. */
typedef enum progress_mode {
  PROGRESS_AUTO,
  PROGRESS_SILENT,
  PROGRESS_LINES,
  PROGRESS_BAR
} progress_mode;

/* Its output, clock, terminal and environment, which tests replace; NULL: the real one. */
typedef struct progress_world {
  FILE *to;                      /* stderr; borrowed */
  double (*now)(void *self);     /* seconds; the monotonic clock */
  size_t (*columns)(void *self); /* of the terminal; asked of the terminal, else COLUMNS, else 80 */
  const char *(*variable)(const char *name); /* getenv */
  void *self;
} progress_world;

/* total 0: unknown, shows a count and a rate. what and unit are copied and shown as
 * core/base/shown.h does. NULL if memory is short; all calls accept NULL. */
progress *progress_new(const char *what, const char *unit, uint64_t total, progress_mode mode);
progress *progress_new_in(const progress_world *world, const char *what, const char *unit,
                          uint64_t total, progress_mode mode);

/* Of the total, `before` were finished by somebody else (an earlier process): they count as done,
 * but not in the rate and the time left. May be called again when more of them are found. */
void progress_resume(progress *p, uint64_t before);
/* Names the next phase. A bar continues in its line. */
void progress_phase(progress *p, const char *what);
/* n items are processed in parallel from now on (1 at the beginning). The time left includes their
 * partial progress, and idle workers at the end. */
void progress_workers(progress *p, size_t n);
/* For items of different length: the expected cost of the items finished since progress_new(), and
 * of those left in all phases, running ones included, in any unit proportional to time. The time
 * left then comes from costs instead of counts. Call it once at the beginning, and before each
 * progress_at(). */
void progress_cost(progress *p, double done, double left);

/* done: items finished, those of progress_resume() included. The note is shown and copied. */
void progress_at(progress *p, uint64_t done, const char *note_or_null);
/* Redraws with the time that has passed, while a long item runs. */
void progress_tick(progress *p);
/* Expected seconds until the end; NaN while unknown. */
double progress_left_s(const progress *p);
/* Clears the bar or prints the closing line. */
void progress_free(progress *p);

#endif
