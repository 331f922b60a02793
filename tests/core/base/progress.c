/* Progress on terminals of any width, in logs, over several phases and processes. The clock, the
 * terminal and the environment are the tests' own. */
#define _XOPEN_SOURCE 600 /* pseudo-terminals */

#include "core/base/progress.h"

#include "core/base/display_text.h"
#include "core/base/seconds.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

SUITE("core: progress");

/* A terminal in memory, and a clock that stands still between the calls. */
typedef struct screen {
  progress_world world;
  char *text;
  size_t size;
  double t;
  size_t columns;
} screen;

static double clock_of(void *self) {
  return ((const screen *)self)->t;
}

static size_t columns_of(void *self) {
  return ((const screen *)self)->columns;
}

static void screen_init(screen *s, size_t wide) {
  *s = (screen){.columns = wide, .t = 1000};
  s->world = (progress_world){.now = clock_of, .columns = columns_of, .self = s};
  s->world.to = open_memstream(&s->text, &s->size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(s->world.to);
}

/* All that was written so far. */
static const char *written(screen *s) {
  fflush(s->world.to);
  return s->text;
}

/* What the last drawing put into the line, without what moves the cursor. */
static const char *last_line(screen *s, char line[512]) {
  const char *from = strrchr(written(s), '\r');
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  snprintf(line, 512, "%s", from + 1);
  char *end = strstr(line, "\033[K");
  CU_ASSERT_PTR_NOT_NULL_FATAL(end);
  *end = '\0';
  return line;
}

static void screen_fini(screen *s) {
  fclose(s->world.to);
  free(s->text);
}

static progress *on(screen *s, const char *what, uint64_t total, progress_mode mode) {
  progress *p = progress_new_in(&s->world, what, "runs", total, mode);
  CU_ASSERT_PTR_NOT_NULL_FATAL(p);
  return p;
}

/* --- the time left --- */

TEST(the_time_left_of_equal_items_is_that_of_those_before) {
  screen s;
  screen_init(&s, 80);
  progress *p = on(&s, "sweep", 10, PROGRESS_SILENT);
  CU_ASSERT(isnan(progress_left_s(p)));
  for (uint64_t i = 1; i <= 4; ++i) s.t += 5, progress_at(p, i, NULL);
  ASSERT_CLOSE(progress_left_s(p), 30, 1e-12);
  s.t += 2; /* counts down while an item is worked at */
  ASSERT_CLOSE(progress_left_s(p), 28, 1e-12);
  s.t += 20; /* an item that lasts longer than expected can end now at best */
  ASSERT_CLOSE(progress_left_s(p), 25, 1e-12);
  progress_at(p, 10, NULL);
  ASSERT_CLOSE(progress_left_s(p), 0, 1e-12);
  progress_free(p);
  screen_fini(&s);
}

/* 100 of 120 runs were finished by an earlier process. */
TEST(what_others_finished_counts_as_done_and_not_in_the_rate) {
  screen s;
  char line[512];
  screen_init(&s, 100);
  progress *p = on(&s, "sweep", 120, PROGRESS_BAR);
  progress_resume(p, 100);
  progress_tick(p);
  CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&s, line), "100/120 runs  0/s  ? left"));
  s.t += 10, progress_at(p, 101, NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&s, line), "101/120 runs  0.1/s  3m10s left"));
  progress_resume(p, 105); /* the second phase finds some more */
  s.t += 10, progress_at(p, 107, NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&s, line), "107/120 runs  0.1/s  2m10s left"));
  progress_resume(p, 500);
  progress_tick(p);
  ASSERT_CLOSE(progress_left_s(p), 0, 0);
  progress_free(p);
  screen_fini(&s);
}

/* Four tuning runs of 1 unit, then two runs of 10: counts alone would expect a tenth of it. */
TEST(unequal_items_in_several_phases_have_one_time_left) {
  screen s;
  char line[512];
  screen_init(&s, 100);
  progress *p = on(&s, "tuning", 6, PROGRESS_BAR);
  progress_cost(p, 0, 24);
  for (uint64_t i = 1; i <= 2; ++i) {
    s.t += 3;
    progress_cost(p, (double)i, 24 - (double)i);
    progress_at(p, i, NULL);
    ASSERT_CLOSE(progress_left_s(p), 3 * (24 - (double)i), 1e-12);
  }
  progress_phase(p, "grid");
  for (uint64_t i = 3; i <= 4; ++i)
    s.t += 3, progress_cost(p, (double)i, 24 - (double)i), progress_at(p, i, NULL);
  CU_ASSERT_EQUAL(strncmp(last_line(&s, line), "grid [", 6), 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(line, "4/6 runs  0.333/s  1m00s left"));
  s.t += 30, progress_cost(p, 14, 10), progress_at(p, 5, NULL);
  ASSERT_CLOSE(progress_left_s(p), 30, 1e-12);
  progress_free(p);
  screen_fini(&s);
}

/* What list scheduling does: `workers` side by side, each item of the given length. Returns the
 * largest error of the time left at the ends of items, the first `from` left out, as a share of
 * the whole time. */
static double worst_estimate(size_t workers, const double *length, size_t n, size_t from) {
  screen s;
  double end[16], all = 0, worst = 0, cost = 0, done_cost = 0, item[16], begun = 1000;
  size_t next = 0, running = 0;
  screen_init(&s, 80);
  progress *p = on(&s, "sweep", n, PROGRESS_SILENT);
  progress_workers(p, workers);
  for (size_t i = 0; i < n; ++i) cost += length[i];
  for (; running < workers && next < n; ++running, ++next)
    item[running] = length[next], end[running] = begun + length[next];
  double reported[256], at[256];
  for (size_t done = 1; done <= n; ++done) {
    size_t first = 0;
    for (size_t w = 1; w < running; ++w)
      if (end[w] < end[first]) first = w;
    s.t = all = end[first];
    done_cost += item[first];
    progress_cost(p, done_cost, cost - done_cost);
    progress_at(p, done, NULL);
    reported[done - 1] = progress_left_s(p), at[done - 1] = s.t;
    if (next < n) {
      item[first] = length[next], end[first] = s.t + length[next], ++next;
    } else {
      --running;
      item[first] = item[running], end[first] = end[running];
    }
  }
  for (size_t i = from; i < n; ++i)
    worst = fmax(worst, fabs(reported[i] - (all - at[i])) / (all - 1000));
  progress_free(p);
  screen_fini(&s);
  return worst;
}

TEST(the_time_left_of_parallel_work_is_close_to_what_it_takes) {
  double equal[100], mixed[100];
  for (size_t i = 0; i < 100; ++i) {
    equal[i] = 10;
    mixed[i] = 5 + (double)(i * 7 % 11);
  }
  CU_ASSERT(worst_estimate(1, equal, 100, 0) < 1e-9);
  CU_ASSERT(worst_estimate(4, equal, 100, 0) < 1e-9); /* all begin and end together */
  CU_ASSERT(worst_estimate(8, equal, 6, 0) < 1e-9);   /* more workers than items */
  CU_ASSERT(worst_estimate(8, equal, 100, 0) < 0.05); /* the last wave is half empty */
  CU_ASSERT(worst_estimate(3, mixed, 100, 0) < 0.25);
  CU_ASSERT(worst_estimate(3, mixed, 100, 15) < 0.05);
  CU_ASSERT(worst_estimate(8, mixed, 100, 15) < 0.1);
}

/* --- terminals --- */

TEST(a_bar_is_drawn_in_place_and_cleared) {
  screen s;
  screen_init(&s, 120);
  progress *p = on(&s, "sweep", 20, PROGRESS_BAR);
  progress_at(p, 1, NULL);
  CU_ASSERT_EQUAL(strncmp(written(&s), "\rsweep [#...", 12), 0);
  s.t += 0.05, progress_at(p, 2, NULL); /* ten drawings a second at most */
  CU_ASSERT_PTR_NULL(strstr(written(&s), "2/20"));
  s.t += 0.05, progress_at(p, 20, "the last");
  CU_ASSERT_PTR_NOT_NULL(strstr(written(&s), "[############################] 20/20 runs"));
  CU_ASSERT_PTR_NOT_NULL(strstr(written(&s), "0s left  the last\033[K"));
  progress_free(p);
  CU_ASSERT_STRING_EQUAL(written(&s) + s.size - 4, "\r\033[K");
  CU_ASSERT_PTR_NULL(strchr(written(&s), '\n'));
  screen_fini(&s);
}

TEST(a_bar_is_narrower_than_any_terminal) {
  screen s;
  char line[512];
  size_t wrapped = 0, without_count = 0;
  screen_init(&s, 200);
  progress *p = on(&s, "実験 delay_sweep", 400, PROGRESS_BAR);
  for (size_t wide = 0; wide <= 200; ++wide) {
    s.columns = wide; /* the window changes while it runs */
    s.t += 1;
    progress_at(p, 1 + wide, "gepo(clip=none, log_prob=mean) 実験室");
    last_line(&s, line);
    wrapped += shown_width(line) > 0 && shown_width(line) >= wide;
    without_count += wide > 40 && strstr(line, "/400 runs") == NULL;
  }
  CU_ASSERT(wrapped == 0 && without_count == 0);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(line, "実験 delay_sweep [##############..............] 201/400 runs  1/s"));
  CU_ASSERT_PTR_NOT_NULL(strstr(line, "  gepo(clip=none, log_prob=mean) 実験室"));
  s.columns = 60;
  s.t += 1, progress_tick(p);
  CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&s, line), "実験 delay_sweep ["));
  progress_free(p);
  screen_fini(&s);
}

TEST(names_and_notes_cannot_move_the_cursor) {
  screen s;
  char line[512];
  screen_init(&s, 160);
  progress *p = on(&s, "evil\033]0;x\007\n", 4, PROGRESS_BAR);
  progress_at(p, 1, "a\nb\033[2J\xff");
  CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&s, line), "evil\\x1b]0;x\\x07\\n ["));
  CU_ASSERT_PTR_NOT_NULL(strstr(line, "  a\\nb\\x1b[2J\\xff"));
  CU_ASSERT_PTR_NULL(strpbrk(line, "\033\007\n"));
  progress_free(p);
  p = on(&s, "evil\033[2J", 4, PROGRESS_LINES);
  s.t += 40, progress_at(p, 1, "a\nb");
  CU_ASSERT_PTR_NOT_NULL(
      strstr(written(&s), "evil\\x1b[2J: 1/4 runs  0.025/s  2m00s left  a\\nb\n"));
  progress_free(p);
  screen_fini(&s);
}

/* What AUTO is on a pseudo-terminal with these variables: its first drawing ends with a line break
 * only where it writes lines. */
static const char *terminal_variable, *ci_variable, *columns_variable;
static const char *variable_of(const char *name) {
  if (strcmp(name, "TERM") == 0) return terminal_variable;
  if (strcmp(name, "CI") == 0) return ci_variable;
  return strcmp(name, "COLUMNS") == 0 ? columns_variable : NULL;
}

/* The first 511 bytes that AUTO writes to a terminal of so many columns; wide 0: one that does not
 * know. A pipe instead of a terminal if `is_pipe`. */
static void automatic(char text[512], unsigned short wide, int is_pipe) {
  int ends[2] = {-1, -1};
  struct winsize size = {.ws_col = wide, .ws_row = 24};
  *text = '\0';
  if (is_pipe) {
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
  } else {
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY);
    CU_ASSERT_FATAL(ends[0] >= 0 && grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0);
    ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY);
    CU_ASSERT_EQUAL_FATAL(ioctl(ends[1], TIOCSWINSZ, &size), 0);
  }
  screen s = {.t = 1000};
  s.world = (progress_world){
      .to = fdopen(ends[1], "w"), .now = clock_of, .variable = variable_of, .self = &s};
  CU_ASSERT_PTR_NOT_NULL_FATAL(s.world.to);
  progress *p = on(&s, "sweep", 20, PROGRESS_AUTO);
  s.t += 40, progress_at(p, 10, "a note of sixty columns, so that a bar has to be cut somewhere");
  fflush(s.world.to);
  ssize_t n = read(ends[0], text, 511);
  text[n > 0 ? n : 0] = '\0';
  progress_free(p);
  fclose(s.world.to);
  close(ends[0]);
}

static size_t columns_drawn(const char *text) {
  char line[512];
  snprintf(line, sizeof line, "%s", text + (*text == '\r'));
  char *end = strstr(line, "\033[K");
  if (end != NULL) *end = '\0';
  return shown_width(line);
}

TEST(a_bar_is_for_terminals_that_can_redraw_and_nobody_else) {
  char text[512];
  terminal_variable = "xterm-256color", ci_variable = NULL, columns_variable = NULL;
  automatic(text, 50, 0);
  CU_ASSERT(text[0] == '\r' && columns_drawn(text) == 49);
  automatic(text, 0, 0); /* unknown width: the usual one */
  CU_ASSERT(text[0] == '\r' && columns_drawn(text) == 79);
  columns_variable = "64";
  automatic(text, 0, 0);
  CU_ASSERT(text[0] == '\r' && columns_drawn(text) == 63);
  columns_variable = "no number";
  automatic(text, 0, 0);
  CU_ASSERT_EQUAL(columns_drawn(text), 79);
  automatic(text, 80, 1);
  CU_ASSERT_EQUAL(strncmp(text, "sweep: 10/20 runs", 17), 0);
  ci_variable = "false";
  automatic(text, 80, 0);
  CU_ASSERT_EQUAL(text[0], '\r');
  ci_variable = "true";
  automatic(text, 80, 0);
  CU_ASSERT_EQUAL(strncmp(text, "sweep: 10/20 runs", 17), 0);
  ci_variable = NULL, terminal_variable = "dumb";
  automatic(text, 80, 0);
  CU_ASSERT_EQUAL(strncmp(text, "sweep: 10/20 runs", 17), 0);
  terminal_variable = NULL;
  automatic(text, 80, 0);
  CU_ASSERT_EQUAL(strncmp(text, "sweep: 10/20 runs", 17), 0);
}

/* --- logs --- */

static size_t lines_in(screen *s) {
  size_t n = 0;
  for (const char *c = written(s); *c != '\0'; ++c) n += *c == '\n';
  return n;
}

TEST(a_quick_job_writes_nothing_into_a_log) {
  screen s;
  screen_init(&s, 80);
  progress *p = on(&s, "sweep", 20, PROGRESS_LINES);
  for (uint64_t i = 1; i <= 20; ++i) s.t += 0.05, progress_at(p, i, NULL);
  progress_free(p);
  p = on(&s, "sweep", 20, PROGRESS_SILENT);
  s.t += 100, progress_at(p, 10, NULL);
  progress_free(p);
  CU_ASSERT_STRING_EQUAL(written(&s), "");
  screen_fini(&s);
}

TEST(a_log_gets_a_line_every_tenth_or_half_a_minute) {
  screen s;
  screen_init(&s, 80);
  progress *p = on(&s, "sweep", 1000, PROGRESS_LINES);
  progress_resume(p, 450);
  for (uint64_t i = 451; i <= 700; ++i) s.t += 1, progress_at(p, i, i == 500 ? "half" : NULL);
  /* 480, 500, 530, 560, 590, 600, 630, 660, 690, 700 */
  CU_ASSERT_EQUAL(lines_in(&s), 10);
  CU_ASSERT_EQUAL(strncmp(written(&s), "sweep: 480/1000 runs  1/s  8m40s left\n", 38), 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(written(&s), "sweep: 500/1000 runs  1/s  8m20s left  half\n"));
  CU_ASSERT_PTR_NULL(strpbrk(written(&s), "\r\033"));
  progress_free(p);
  CU_ASSERT_PTR_NOT_NULL(strstr(written(&s), "700/1000 runs  1/s  5m00s left  stopped\n"));
  screen_fini(&s);
}

TEST(progress_takes_an_unknown_total_and_no_progress_at_all) {
  screen s;
  char line[512];
  screen_init(&s, 80);
  progress *p = on(&s, "sweep", 0, PROGRESS_BAR);
  s.t += 2, progress_at(p, 5, NULL);
  CU_ASSERT_EQUAL(strncmp(last_line(&s, line), "sweep [....", 11), 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(line, "] 5 runs  2.5/s"));
  CU_ASSERT(isnan(progress_left_s(p)));
  progress_free(p);
  p = on(&s, "sweep", 5, PROGRESS_BAR);
  s.t += 2, progress_at(p, 20, NULL); /* more than the total */
  CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&s, line), "5/5 runs"));
  progress_free(p);
  progress_resume(NULL, 1);
  progress_phase(NULL, "x");
  progress_workers(NULL, 2);
  progress_cost(NULL, 1, 2);
  progress_at(NULL, 1, NULL);
  progress_tick(NULL);
  CU_ASSERT(isnan(progress_left_s(NULL)));
  progress_free(NULL);
  screen_fini(&s);
}

/* Of the real world: stderr, which is a pipe here, the monotonic clock, the environment. */
TEST(progress_new_writes_to_stderr) {
  char text[512] = "";
  int ends[2], kept = dup(STDERR_FILENO);
  CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
  fflush(stderr);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  progress *p = progress_new("sweep", "runs", 20, PROGRESS_AUTO);
  progress_at(p, 10, NULL); /* a line would be for jobs of more than two seconds */
  progress_free(p);
  p = progress_new("sweep", "runs", 20, PROGRESS_BAR);
  progress_at(p, 10, NULL);
  const double left = progress_left_s(p);
  progress_free(p);
  fflush(stderr);
  dup2(kept, STDERR_FILENO); /* closes the pipe's writing end */
  close(kept);
  ssize_t size = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  text[size > 0 ? size : 0] = '\0';
  CU_ASSERT_EQUAL(strncmp(text, "\rsweep [#", 9), 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "] 10/20 runs  "));
  CU_ASSERT(left >= 0 && left < 3600);
}

TEST(long_spans_have_hours) {
  screen s;
  char line[512];
  screen_init(&s, 100);
  progress *p = on(&s, "sweep", 4, PROGRESS_BAR);
  s.t += 3 * 3600, progress_at(p, 3, NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(last_line(&s, line), "3/4 runs  0.000278/s  1h00m left"));
  progress_free(p);
  screen_fini(&s);
}

TEST(durations_are_rounded_before_their_unit_is_chosen) {
  static const struct {
    double s;
    const char *text;
  } cases[] = {{0, "0s"},         {59.4, "59s"},   {59.6, "1m00s"},    {185, "3m05s"},
               {3599.7, "1h00m"}, {7620, "2h07m"}, {86399.8, "1d00h"}, {273600, "3d04h"},
               {-1, "?"},         {NAN, "?"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[SECONDS_TEXT_SIZE];
    CU_ASSERT_STRING_EQUAL(seconds_text(cases[i].s, text), cases[i].text);
  }
}
