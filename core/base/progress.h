/* Progress of long computations. On a terminal: a bar with rate and time left, redrawn at most ten
 * times a second and never wider than the terminal. In a log: a line every 10 % or 30 s. Or
 * silent. Writes to stderr only; this is the only part of core that prints. Library code gets a
 * progress * from its caller (NULL: silent).
 *
 * One progress may cover several phases and several processes. Example: a sweep with a tuning
 * phase, of whose 400 runs an earlier process finished 120:
 *
 *   progress *p = progress_new("tuning", "runs", 400, PROGRESS_AUTO);
 *   progress_resume(p, 120);           shows 120/400; rate and time left use the other 280
 *   progress_workers(p, 8);
 *   progress_cost(p, 0, steps_left);   for both phases, if runs differ in length
 *   for each finished run:
 *     progress_cost(p, steps_done, steps_left);
 *     progress_at(p, ++finished, name);           finished includes the 120
 *   progress_phase(p, "delay_sweep");  a new name; count and time left continue */
#ifndef GEPOLAB_CORE_BASE_PROGRESS_H
#define GEPOLAB_CORE_BASE_PROGRESS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct progress progress;

/* AUTO: a bar if stderr is a terminal that can redraw a line (TERM is set and not "dumb") outside
 * continuous integration (CI unset, empty or "false"); otherwise lines. There are no colours. */
typedef enum progress_mode {
  PROGRESS_AUTO,
  PROGRESS_SILENT,
  PROGRESS_LINES,
  PROGRESS_BAR
} progress_mode;

/* Output, clock, terminal and environment, which tests can replace; NULL: the real ones. */
typedef struct progress_world {
  FILE *to;                  /* stderr; borrowed */
  double (*now)(void *self); /* seconds; the monotonic clock */
  size_t (*columns)(
      void *self); /* width of the terminal; default: from the terminal, else COLUMNS, else 80 */
  const char *(*variable)(const char *name); /* getenv */
  void *self;
} progress_world;

/* total 0: unknown, shows a count and a rate. what and unit are copied and escaped as in
 * core/base/display_text.h. Returns NULL if out of memory; all functions accept NULL. */
progress *progress_new(const char *what, const char *unit, uint64_t total, progress_mode mode);
progress *progress_new_in(const progress_world *world, const char *what, const char *unit,
                          uint64_t total, progress_mode mode);

/* `before` items of the total were finished by another process: they count as done, but not in the
 * rate and the time left. May be called again when more of them are found. */
void progress_resume(progress *p, uint64_t before);
/* Names the next phase. The bar stays on its line. */
void progress_phase(progress *p, const char *what);
/* Sets the number of items processed in parallel (initially 1). The time left accounts for their
 * partial progress, and for idle workers at the end. */
void progress_workers(progress *p, size_t n);
/* For items of different length: the expected cost of the items finished since progress_new(), and
 * of those remaining in all phases including running ones, in any unit proportional to time. The
 * time left is then based on costs instead of counts. Call it once at the start, and before each
 * progress_at(). */
void progress_cost(progress *p, double done, double left);

/* done: items finished, including those of progress_resume(). The note is copied and shown. */
void progress_at(progress *p, uint64_t done, const char *note_or_null);
/* Redraws with the current time, while a long item runs. */
void progress_tick(progress *p);
/* Expected seconds until the end; NaN while unknown. */
double progress_left_s(const progress *p);
/* Clears the bar; in a log, prints a final line if the work stopped before its end. */
void progress_free(progress *p);

#endif
