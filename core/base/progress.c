/* Draws a progress bar on a terminal, or writes a line now and then into a log. */
#include "core/base/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct progress {
  char what[64], unit[32];
  uint64_t total, done;
  progress_mode mode; /* BAR, LINES or SILENT */
  double started, drawn;
  uint64_t next_tenth; /* LINES: the next tenth of the way to be reported */
};

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

progress *progress_new(const char *what, const char *unit, uint64_t total, progress_mode mode) {
  progress *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  snprintf(p->what, sizeof p->what, "%s", what);
  snprintf(p->unit, sizeof p->unit, "%s", unit);
  p->total = total;
  p->mode = mode;
  if (mode == PROGRESS_AUTO) p->mode = isatty(STDERR_FILENO) ? PROGRESS_BAR : PROGRESS_LINES;
  p->started = now_s();
  p->next_tenth = 1;
  return p;
}

/* "3m05s"; for a span that cannot be told, "?" */
static void span_text(double s, char *text, size_t size) {
  if (!(s >= 0 && s < 1e7))
    snprintf(text, size, "?");
  else if (s < 60)
    snprintf(text, size, "%.0fs", s);
  else if (s < 3600)
    snprintf(text, size, "%dm%02ds", (int)s / 60, (int)s % 60);
  else
    snprintf(text, size, "%dh%02dm", (int)s / 3600, (int)s % 3600 / 60);
}

/* "120/400 runs  8.1/s  35s left" */
static void status_text(const progress *p, double t, char *text, size_t size) {
  double rate = (double)p->done / (t - p->started + 1e-9);
  char left[24];
  if (p->total == 0) {
    snprintf(text, size, "%llu %s  %.3g/s", (unsigned long long)p->done, p->unit, rate);
    return;
  }
  span_text((double)(p->total - p->done) / rate, left, sizeof left);
  snprintf(text, size, "%llu/%llu %s  %.3g/s  %s left", (unsigned long long)p->done,
           (unsigned long long)p->total, p->unit, rate, left);
}

static void draw_bar(progress *p, double t, const char *note) {
  enum { WIDTH = 28 };
  char bar[WIDTH + 1], status[128];
  size_t full = p->total == 0 ? 0 : (size_t)((double)p->done / (double)p->total * WIDTH);
  for (size_t i = 0; i < WIDTH; ++i) bar[i] = i < full ? '#' : '.';
  bar[WIDTH] = '\0';
  status_text(p, t, status, sizeof status);
  fprintf(stderr, "\r%s [%s] %s  %.24s\033[K", p->what, bar, status, note != NULL ? note : "");
  fflush(stderr);
}

static void print_line(const progress *p, double t, const char *note) {
  char status[128];
  status_text(p, t, status, sizeof status);
  fprintf(stderr, "%s: %s%s%s\n", p->what, status, note != NULL ? "  " : "",
          note != NULL ? note : "");
}

void progress_at(progress *p, uint64_t done, const char *note) {
  if (p == NULL || p->mode == PROGRESS_SILENT) return;
  p->done = p->total != 0 && done > p->total ? p->total : done;
  double t = now_s();
  if (p->mode == PROGRESS_BAR) {
    if (t - p->drawn < 0.1 && p->done != p->total) return;
    draw_bar(p, t, note);
  } else {
    int tenth = p->total != 0 && (double)p->done * 10 >= (double)(p->next_tenth * p->total);
    /* a job of a few milliseconds needs no lines at all */
    if (t - p->started < 2 || (!tenth && t - p->drawn < 30)) return;
    if (p->total != 0) p->next_tenth = p->done * 10 / p->total + 1;
    print_line(p, t, note);
  }
  p->drawn = t;
}

void progress_free(progress *p) {
  if (p == NULL) return;
  if (p->mode == PROGRESS_BAR && p->drawn > 0) fputs("\r\033[K", stderr);
  if (p->mode == PROGRESS_LINES && p->drawn > 0 && p->done != p->total)
    print_line(p, now_s(), "stopped");
  free(p);
}
