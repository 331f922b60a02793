/* Progress of long work: on a terminal a bar with rate and time left, redrawn at most ten times a
 * second and never wider than the terminal; in a log a line now and then (every 10 % or 30 s);
 * silent when asked. Writes to stderr only, and is the one piece of core that prints, because that
 * is its purpose: library code is handed a progress * (NULL: silent) and never decides.
 *
 * One progress may span several phases and several processes. A sweep that tunes first and of whose
 * 400 runs an earlier process finished 120:
 *
 *   progress *p = progress_new("tuning", "runs", 400, PROGRESS_AUTO);
 *   progress_resume(p, 120);           120/400 from the start; rate and time left are of what
 * follows progress_workers(p, 8); progress_cost(p, 0, steps_left);   of both phases, where runs
 * differ in length for each finished run: progress_cost(p, steps_done, steps_left); progress_at(p,
 * ++finished, name); finished counts the 120 too progress_phase(p, "delay_sweep");   the same count
 * and time left go on
 */
#ifndef GEPOLAB_CORE_BASE_PROGRESS_H
#define GEPOLAB_CORE_BASE_PROGRESS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct progress progress;

/* AUTO: a bar where stderr is a terminal that can redraw a line (TERM is set and not "dumb") and no
 * continuous integration is at work (CI unset, empty or "false"); else lines. There are no colours,
 * so that NO_COLOR asks for nothing. */
typedef enum progress_mode {
  PROGRESS_AUTO,
  PROGRESS_SILENT,
  PROGRESS_LINES,
  PROGRESS_BAR
} progress_mode;

/* Where it writes and what it sees of the world, for tests; every NULL stands for the real one. */
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
/* The name of what is done from now on. A bar goes on in its line, lines get the name. */
void progress_phase(progress *p, const char *what);
/* So many items are worked at side by side from now on (1 at the beginning). The time left counts
 * what has been done of them, and that the last ones leave workers idle. */
void progress_workers(progress *p, size_t n);
/* For items of different length: the expected cost of what was finished since progress_new(), and
 * of what is left in all phases, those that are worked at included. Any unit will do in which what
 * costs twice as much takes twice as long. The time left then comes from costs instead of counts.
 * To be called before the progress_at() that it belongs to, and once at the beginning. */
void progress_cost(progress *p, double done, double left);

/* done: items finished, those of progress_resume() included. The note is shown and copied. */
void progress_at(progress *p, uint64_t done, const char *note_or_null);
/* Redraws with the time that has passed: for who waits for an item that takes long. */
void progress_tick(progress *p);
/* Seconds that the rest is expected to take; NaN where nothing is known yet. */
double progress_left_s(const progress *p);
/* Clears the bar or prints the closing line. */
void progress_free(progress *p);

#endif
