/* Figures of a recorded run from numbers made by hand: medians, quartiles, classes, and which lines
 * stand for which algorithms. */
#include "analysis/figures/recorded.h"
#include "tests/support/figure_files.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("analysis: recorded runs");

static const char folder[] = "build/recorded_test";

static const char *script(const char *path) {
  static char room[3][16384]; /* the style and two shapes */
  const int at = strcmp(path, "plots/page.gp") == 0   ? 0
                 : strcmp(path, "plots/rows.gp") == 0 ? 1
                                                      : 2;
  FILE *f = fopen(path, "r");
  if (f == NULL) return NULL;
  room[at][fread(room[at], 1, sizeof room[at] - 1, f)] = 0;
  fclose(f);
  return room[at];
}

/* The four numbers of the k-th record of a line of a panel; columns that are empty are NaN. */
static int record_of(const char *data, int panel, const char *line, int k, double out[4]) {
  char start[80];
  snprintf(start, sizeof start, "%d\t%s\t", panel, line);
  for (const char *at = data; at != NULL; at = strchr(at, '\n'), at = at == NULL ? at : at + 1) {
    if (strncmp(at, start, strlen(start)) != 0 || k-- > 0) continue;
    const char *cell = at + strlen(start);
    for (int i = 0; i < 4; ++i) {
      char *end;
      const double value = strtod(cell, &end);
      out[i] = end == cell || *cell == '\t' || *cell == '\n' ? NAN : value;
      cell += strcspn(cell, "\t\n");
      cell += *cell == '\t';
    }
    return 1;
  }
  return 0;
}

enum { UPDATES = 8, ROWS = 4, WIDTH = RECORDED_VALUES + ROWS * RECORDED_OF_ALGORITHM };
static const char *const rows[ROWS] = {"is", "grpo", "dapo", "reinforce"};

/* In update i the KL of a response is i, the variance of P/Q and of `is` 2^i, that of grpo and dapo
 * 3^i, and reinforce weighs nothing. */
static void make(double value[UPDATES * WIDTH]) {
  static const double staleness[UPDATES] = {0, 0, 0, 2, 2, 2, 2, 5};
  for (int i = 0; i < UPDATES; ++i) {
    double *u = value + i * WIDTH, *row = u + RECORDED_VALUES;
    u[RECORDED_STALENESS] = staleness[i];
    u[RECORDED_KL_TOKEN] = 0.1 * i;
    u[RECORDED_KL_RESPONSE] = i;
    u[RECORDED_LOG_VARIANCE_PQ] = i * log(2);
    for (int k = 0; k < ROWS; ++k, row += RECORDED_OF_ALGORITHM) {
      row[RECORDED_LOG_VARIANCE] = k == 0 ? i * log(2) : k < 3 ? i * log(3) : -INFINITY;
      row[RECORDED_ESS] = 1 - 0.1 * i;
      row[RECORDED_CLIPPED] = k == 2 ? 0.5 : 0;
      row[RECORDED_IDLE] = k == 3 ? NAN : 0.25;
    }
  }
}

static gl_status draw(const recorded *r, const char *only, gl_error *err) {
  const figure_request q = {.folder = folder, .script = script, .only = only, .formats = "svg"};
  *err = (gl_error){0};
  return figures_of_recorded(r, &q, err);
}

static void check(const char *data, int panel, const char *line, int k, double a, double b,
                  double c, double d) {
  const double want[4] = {a, b, c, d};
  double got[4];
  CU_ASSERT_FATAL(record_of(data, panel, line, k, got));
  for (int i = 0; i < 4; ++i)
    if (isnan(want[i])) {
      CU_ASSERT(isnan(got[i]));
    } else {
      ASSERT_CLOSE(got[i], want[i], 1e-12);
    }
}

TEST(points_are_medians_of_the_updates_of_a_staleness) {
  double value[UPDATES * WIDTH], none[4];
  make(value);
  ASSERT_OK(draw(&(recorded){value, UPDATES, rows, ROWS}, NULL, &err));
  char *data = figure_file(folder, "whatif_staleness.tsv"),
       *gp = figure_file(folder, "whatif_staleness.gp");
  check(data, 0, "recorded", 0, 0, 0.1, 0.05, 0.15);
  check(data, 0, "recorded", 1, 2, 0.45, 0.375, 0.525);
  check(data, 0, "recorded", 2, 5, 0.7, 0.7, 0.7);
  CU_ASSERT(!record_of(data, 0, "recorded", 3, none));
  check(data, 1, "recorded", 1, 2, 4.5, 3.75, 5.25);
  check(data, 2, "recorded", 0, 0, 2, sqrt(2), 2 * sqrt(2));
  check(data, 3, "recorded", 1, 2, 4, NAN, NAN);
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "KL(q‖p) per response, k3 [nats]"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "bins of 1 version; bands: quartiles"));
  free(data), free(gp);
}

TEST(variances_stand_against_kl_and_equal_weights_have_one_line) {
  double value[UPDATES * WIDTH], none[4];
  make(value);
  ASSERT_OK(draw(&(recorded){value, UPDATES, rows, ROWS}, "whatif_variance", &err));
  char *data = figure_file(folder, "whatif_variance.tsv"),
       *gp = figure_file(folder, "whatif_variance.gp");
  check(data, 0, "P/Q of the response", 0, 4, 16, pow(2, 2.5), pow(2, 5.5));
  check(data, 0, "grpo", 0, 4, 81, NAN, NAN);
  CU_ASSERT(!record_of(data, 0, "is", 0, none) && !record_of(data, 0, "dapo", 0, none));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "also stands for is."));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "grpo also stands for dapo"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "Without weights that vary: reinforce"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "over 8 updates: 1.00"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "not shown: 1 of 8 updates, without a KL above 0"));
  free(data), free(gp);
}

TEST(shares_stand_in_a_row_for_each_algorithm) {
  double value[UPDATES * WIDTH], none[4];
  make(value);
  ASSERT_OK(draw(&(recorded){value, UPDATES, rows, ROWS}, "whatif_algorithms", &err));
  char *data = figure_file(folder, "whatif_algorithms.tsv");
  check(data, 0, "dapo", 0, 3, 0.65, 0.475, 0.825);
  check(data, 1, "dapo", 0, 3, 0.5, 0.5, 0.5);
  check(data, 1, "grpo", 0, 2, 0, 0, 0);
  check(data, 2, "is", 0, 1, 0.25, 0.25, 0.25);
  CU_ASSERT(!record_of(data, 2, "reinforce", 0, none));
  free(data);
}

TEST(what_a_log_does_not_tell_is_said) {
  double value[UPDATES * WIDTH];
  gl_error err = {0};
  make(value);
  const recorded r = {value, UPDATES, rows, ROWS};
  for (int i = 0; i < UPDATES; ++i) value[i * WIDTH + RECORDED_STALENESS] = NAN;
  CU_ASSERT_EQUAL(draw(&r, "whatif_staleness", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no record of the log has version_gap"));
  for (int i = 0; i < UPDATES; ++i) value[i * WIDTH + RECORDED_STALENESS] = 4;
  CU_ASSERT_EQUAL(draw(&r, "whatif_staleness", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "all updates of the log have one staleness"));
  for (int i = 0; i < UPDATES; ++i) value[i * WIDTH + RECORDED_KL_RESPONSE] = 0;
  CU_ASSERT_EQUAL(draw(&r, "whatif_variance", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "alike in every update"));
  CU_ASSERT_EQUAL(draw(&r, "whatif_variances", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "did you mean 'whatif_variance'?"));
  const figure_request q = {.folder = folder, .script = script, .highlight = "gepp"};
  CU_ASSERT_EQUAL(figures_of_recorded(&r, &q, &err), GL_EINPUT);
}
