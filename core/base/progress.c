/* Shows a progress bar on a terminal, or writes occasional lines to a log. */
#include "core/base/progress.h"

#include "core/base/display_text.h"
#include "core/base/seconds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct progress {
  progress_world world;
  progress_mode mode; /* BAR, LINES or SILENT */
  shown_text what, unit, note;
  uint64_t total, before, done;
  int has_cost;
  double cost_done, cost_left;
  size_t workers;
  double *
      begun; /* [workers] ring buffer of the start times of items in progress, oldest at `oldest` */
  size_t oldest;
  double spent; /* worker-seconds spent on items finished in this process */
  double started, drawn;
  int has_drawn;
  uint64_t next_tenth; /* LINES: the next tenth of the total to report */
};

/* --- terminal and environment --- */

static double monotonic_s(void *self) {
  (void)self;
  return seconds_now();
}

static const char *environment(const char *name) {
  return getenv(name);
}

static double progress_now_s(const progress *p) {
  return p->world.now(p->world.self);
}

/* Queried at every redraw, because windows are resized. */
static size_t columns(const progress *p) {
  enum { USUAL = 80, MOST = 10000 };
  struct winsize size;
  if (p->world.columns != NULL) return p->world.columns(p->world.self);
  if (ioctl(fileno(p->world.to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char *text = p->world.variable("COLUMNS");
  long n = text != NULL ? strtol(text, NULL, 10) : 0;
  return n > 0 && n <= MOST ? (size_t)n : USUAL;
}

static int can_redraw(const progress_world *w) {
  const char *terminal = w->variable("TERM"), *ci = w->variable("CI");
  if (ci != NULL && *ci != '\0' && strcmp(ci, "false") != 0) return 0;
  return terminal != NULL && *terminal != '\0' && strcmp(terminal, "dumb") != 0 &&
         isatty(fileno(w->to));
}

/* --- counts and costs --- */

/* Maximum columns of names, notes and units. */
enum { NAME_COLUMNS = 60, UNIT_COLUMNS = 20 };

progress *progress_new(const char *what, const char *unit, uint64_t total, progress_mode mode) {
  return progress_new_in(&(progress_world){0}, what, unit, total, mode);
}

progress *progress_new_in(const progress_world *world, const char *what, const char *unit,
                          uint64_t total, progress_mode mode) {
  progress *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->world = *world;
  if (p->world.to == NULL) p->world.to = stderr;
  if (p->world.now == NULL) p->world.now = monotonic_s;
  if (p->world.variable == NULL) p->world.variable = environment;
  shown_cut(what, NAME_COLUMNS, &p->what);
  shown_cut(unit, UNIT_COLUMNS, &p->unit);
  p->total = total;
  p->mode = mode;
  if (mode == PROGRESS_AUTO) p->mode = can_redraw(&p->world) ? PROGRESS_BAR : PROGRESS_LINES;
  p->started = progress_now_s(p);
  p->next_tenth = 1;
  progress_workers(p, 1);
  if (p->begun != NULL) return p;
  free(p);
  return NULL;
}

static uint64_t tenths(const progress *p) {
  return (uint64_t)((double)p->done * 10 / (double)p->total);
}

void progress_resume(progress *p, uint64_t before) {
  if (p == NULL) return;
  uint64_t here = p->done - p->before;
  p->before = p->total != 0 && before > p->total ? p->total : before;
  p->done = p->before + here;
  if (p->total != 0 && p->done > p->total) p->done = p->total;
  if (p->total != 0) p->next_tenth = tenths(p) + 1;
}

void progress_phase(progress *p, const char *what) {
  if (p != NULL) shown_cut(what, NAME_COLUMNS, &p->what);
}

void progress_workers(progress *p, size_t n) {
  if (p == NULL || n == 0) return;
  double *begun = calloc(n, sizeof *begun);
  if (begun == NULL) return; /* the estimate then assumes fewer workers */
  const double t = progress_now_s(p);
  for (size_t i = 0; i < n; ++i) begun[i] = t;
  free(p->begun);
  p->begun = begun;
  p->workers = n;
  p->oldest = 0;
}

void progress_cost(progress *p, double done, double left) {
  if (p == NULL) return;
  p->has_cost = 1;
  p->cost_done = fmax(done, 0);
  p->cost_left = fmax(left, 0);
}

/* --- the time left --- */

/* n items end at time t, assumed to be the oldest ones. New items replace them. */
static void note_ends(progress *p, uint64_t n, double t) {
  for (; n > 0 && p->begun[p->oldest] < t; --n) {
    p->spent += t - p->begun[p->oldest];
    p->begun[p->oldest] = t;
    p->oldest = (p->oldest + 1) % p->workers;
  }
}

double progress_left_s(const progress *p) {
  if (p == NULL || p->total == 0) return NAN;
  if (p->done == p->total) return 0;
  const uint64_t items = p->total - p->done;
  const double done = p->has_cost ? p->cost_done : (double)(p->done - p->before);
  double left = p->has_cost ? p->cost_left : (double)items;
  const double speed = done / p->spent, each = left / (double)items, t = progress_now_s(p);
  if (!(speed > 0 && isfinite(speed))) return NAN;
  const size_t at_work = items < p->workers ? (size_t)items : p->workers;
  double behind = 0; /* work done on the youngest item */
  for (size_t i = 0; i < at_work; ++i) {
    behind = fmin(each, (t - p->begun[(p->oldest + i) % p->workers]) * speed);
    left -= behind;
  }
  /* Workers share the remaining items, but each item is processed by one worker. */
  return fmax(fmax(left, 0) / (speed * (double)p->workers), (each - behind) / speed);
}

/* --- the line --- */

enum { STATUS_SIZE = SHOWN_SIZE + 128 };

/* "120/400 runs  8.1/s  35s left" */
static void status_text(const progress *p, double t, char *text, size_t size) {
  double rate = (double)(p->done - p->before) / (t - p->started + 1e-9);
  char left[SECONDS_TEXT_SIZE];
  if (p->total == 0) {
    snprintf(text, size, "%llu %s  %.3g/s", (unsigned long long)p->done, p->unit.text, rate);
    return;
  }
  snprintf(text, size, "%llu/%llu %s  %.3g/s  %s left", (unsigned long long)p->done,
           (unsigned long long)p->total, p->unit.text, rate,
           seconds_text(progress_left_s(p), left));
}

/* Fits the line into the terminal, in this order of priority: status, name, a bar of 4 to 28
 * columns, note. */
static void draw_bar(progress *p, double t) {
  enum { SHORTEST = 4, LONGEST = 28, FRAME = 4 /* " [] " */ };
  char bar[LONGEST + 1] = "", status[STATUS_SIZE];
  shown_text what, cut, note = {""};
  size_t room = columns(p), length = 0;
  room -= room > 0; /* some terminals wrap in the last column */
  status_text(p, t, status, sizeof status);
  room -= shown_cut(status, room, &cut);
  room -= shown_cut(p->what.text, room > 0 ? room - 1 : 0, &what);
  if (room >= SHORTEST + FRAME) {
    length = room - FRAME < LONGEST ? room - FRAME : LONGEST;
    room -= length + FRAME;
  } else if (what.text[0] != '\0') {
    room -= 1;
  }
  size_t full = p->total == 0 ? 0 : (size_t)((double)p->done / (double)p->total * (double)length);
  for (size_t i = 0; i < length; ++i) bar[i] = i < full ? '#' : '.';
  if (room > 2) shown_cut(p->note.text, room - 2, &note);
  fprintf(p->world.to, "\r%s%s%s%s%s%s%s\033[K", what.text, length > 0 ? " [" : "", bar,
          length > 0             ? "] "
          : what.text[0] != '\0' ? " "
                                 : "",
          cut.text, note.text[0] != '\0' ? "  " : "", note.text);
  fflush(p->world.to);
}

static void progress_print_line(const progress *p, double t, const char *note) {
  char status[STATUS_SIZE];
  status_text(p, t, status, sizeof status);
  fprintf(p->world.to, "%s: %s%s%s\n", p->what.text, status, *note != '\0' ? "  " : "", note);
}

/* Redraws the bar at most ten times a second, or writes a line: after each tenth of the total, and
 * 30 s after the last one. Jobs shorter than 2 s write none. */
static void progress_draw(progress *p) {
  if (p->mode == PROGRESS_SILENT) return;
  double t = progress_now_s(p);
  if (p->mode == PROGRESS_BAR) {
    if (p->has_drawn && t - p->drawn < 0.1 && p->done != p->total) return;
    draw_bar(p, t);
  } else {
    int tenth = p->total != 0 && tenths(p) >= p->next_tenth;
    double last = p->has_drawn ? p->drawn : p->started;
    if (t - p->started < 2 || (!tenth && t - last < 30)) return;
    if (p->total != 0) p->next_tenth = tenths(p) + 1;
    progress_print_line(p, t, p->note.text);
  }
  p->drawn = t;
  p->has_drawn = 1;
}

void progress_at(progress *p, uint64_t done, const char *note) {
  if (p == NULL) return;
  if (p->total != 0 && done > p->total) done = p->total;
  if (done < p->before) done = p->before;
  if (done > p->done) note_ends(p, done - p->done, progress_now_s(p));
  p->done = done;
  shown_cut(note != NULL ? note : "", NAME_COLUMNS, &p->note);
  progress_draw(p);
}

void progress_tick(progress *p) {
  if (p != NULL) progress_draw(p);
}

void progress_free(progress *p) {
  if (p == NULL) return;
  if (p->mode == PROGRESS_BAR && p->has_drawn) fputs("\r\033[K", p->world.to);
  if (p->mode == PROGRESS_LINES && p->has_drawn && p->done != p->total)
    progress_print_line(p, progress_now_s(p), "stopped");
  free(p->begun);
  free(p);
}
