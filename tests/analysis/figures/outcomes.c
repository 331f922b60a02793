/* The figures `survival`, `frontier` and `announcements` of a study by hand. */
#include "analysis/figures/figures.h"
#include "analysis/figures/without_study.h"
#include "analysis/outcome.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("analysis: figures of falls");

static const char folder[] = "build/figures_of_falls_test";

enum { EVALS = 8, SEEDS = 4, STEPS = 14 };

/* Rises to 0.8 at once and stands at 0 from evaluation `fall` on. The effective sample size is 0.9
 * where it will fall, else 1, but 0.5 in the first run that survives. */
static void add_run(results *r, const char *algorithm, double delay, double lr, uint64_t seed,
                    size_t collapse) {
  char swept[120];
  eval_record eval[EVALS];
  step_record step[STEPS];
  const int collapses = collapse < EVALS, odd = !collapses && seed == 1 && lr < 1e-3;
  gl_error err = {0};
  for (size_t i = 0; i < EVALS; i++)
    eval[i] =
        (eval_record){.step = (int64_t)i * 100, .eval_score = i == 0 || i >= collapse ? 0 : 0.8};
  for (int k = 0; k < STEPS; k++) {
    step[k] = (step_record){.step = k + 1};
    metrics_clear(step[k].metric);
    step[k].metric[METRIC_ESS] = collapses ? 0.9 : (odd ? 0.5 : 1);
  }
  snprintf(swept, sizeof swept, "{\"cluster.delay\":%g,\"optimizer.lr\":%g}", delay, lr);
  const run_record run = {.algorithm = algorithm,
                          .swept = swept,
                          .seed = seed,
                          .lr = lr,
                          .status = RUN_DONE,
                          .clock = {.staleness_p50 = delay},
                          .steps = step,
                          .n_steps = STEPS,
                          .evals = eval,
                          .n_evals = EVALS};
  CU_ASSERT_EQUAL_FATAL(results_add(r, &run, &err), GL_OK);
}

/* Three rates: grpo falls at the largest, at the longer delay at the two largest, at updates 200
 * and 300; gepo never. */
static results *made(void) {
  static const double rates[] = {1e-4, 1e-3, 1e-2};
  results *r = results_new("falls");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (int delay = 0; delay <= 8; delay += 8)
    for (int rate = 0; rate < 3; rate++)
      for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const int collapses = rate == 2 || (rate == 1 && delay == 8);
        add_run(r, "grpo", delay, rates[rate], seed, collapses ? 2 + seed % 2 : EVALS);
        add_run(r, "gepo", delay, rates[rate], seed, EVALS);
      }
  ASSERT_OK(results_arrange(r, &err));
  return r;
}

static const char *script(const char *path) {
  static char room[16384];
  FILE *f = fopen(path, "r");
  if (f == NULL) return NULL;
  room[fread(room, 1, sizeof room - 1, f)] = 0;
  fclose(f);
  return room;
}

typedef struct heard {
  char drawn[64], noted[1024];
} heard;

static void report(void *context, const char *file, const char *why) {
  if (why == NULL) strcat(((heard *)context)->drawn, file);
}

static void noted(void *context, const char *file, const char *left_out) {
  (void)file;
  strncat(((heard *)context)->noted, left_out, 1000);
}

static char *text_of(const char *only) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s.tsv", folder, only);
  char *text = files_text(path);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  return text;
}

static gl_status draw_study(const results *r, const char *only, heard *h, gl_error *err) {
  const figure_request q = {.folder = folder,
                            .only = only,
                            .gnuplot = "true",
                            .script = script,
                            .report = report,
                            .noted = noted,
                            .context = h};
  *h = (heard){0};
  return figures_draw(r, NULL, &q, err);
}

static char *draw(const char *only, heard *h) {
  results *r = made();
  gl_error err = {0};
  CU_ASSERT_EQUAL(draw_study(r, only, h, &err), GL_OK);
  if (*err.text) fprintf(stderr, "%s\n", err.text);
  results_free(r);
  return text_of(only);
}

/* Without delay 4 of 12 fall, two at update 200 and two at 300: 10/12, then 8/12, until 700. */
TEST(steps_are_those_of_kaplan_and_meier) {
  heard h;
  char *text = draw("survival", &h);
  CU_ASSERT_STRING_EQUAL(h.drawn, "survival");
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n0\tgrpo\t0\t1\t\t\n0\tgrpo\t200\t1\t\t\n"
                                      "0\tgrpo\t200\t0.8333333333333334\t"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n0\tgrpo\t300\t0.6666666666666667\t"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n0\tgrpo\t700\t0.6666666666666667\t"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n0\tgepo\t0\t1\t\t\n0\tgepo\t700\t1\t\t\n"));
  free(text);
}

/* Between the rates that never and that always fall, in the middle by symmetry: 10^-2.5 and
 * 10^-3.5 for half of the runs. */
TEST(the_frontier_lies_between_the_rates_that_do_not_fall_and_those_that_do) {
  heard h;
  char *text = draw("frontier", &h);
  double near, low, high, far;
  const char *at = strstr(text, "\n1\tgrpo\t0\t"), *then = strstr(text, "\n1\tgrpo\t1\t");
  CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  CU_ASSERT_PTR_NOT_NULL_FATAL(then);
  CU_ASSERT_EQUAL(sscanf(at, "\n1\tgrpo\t0\t%lf\t%lf\t%lf", &near, &low, &high), 3);
  CU_ASSERT_EQUAL(sscanf(then, "\n1\tgrpo\t1\t%lf", &far), 1);
  CU_ASSERT(near > 1e-3 && near < 1e-2 && low < near && high > near && high <= 3e-2);
  CU_ASSERT(far > 1e-4 && far < 1e-3);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n1\tgepo\t0\tNaN\tNaN\tNaN\n1\tgepo\t1\tNaN\t"));
  CU_ASSERT_PTR_NOT_NULL(strstr(h.noted, "gepo at staleness 8 (no run collapses)"));
  free(text);
}

/* What `gepolab outcomes` knows is enough for the figures, without the runs. */
TEST(stored_outcomes_are_drawn_like_their_study) {
  static const char *const names[] = {"survival", "frontier"};
  const outcome_rule rule = outcome_rule_default();
  const figure_request q = {.folder = folder, .gnuplot = "true", .script = script};
  heard h;
  char *of_study[] = {draw("survival", &h), draw("frontier", &h)};
  results *r = made();
  stability s;
  ASSERT_OK(stability_init(&s, r, &rule, &err));
  ASSERT_OK(stability_fit(&s, &err));
  ASSERT_OK(figures_of_outcomes(&s, &q, &err));
  for (size_t i = 0; i < 2; i++) {
    char *text = text_of(names[i]);
    CU_ASSERT_STRING_EQUAL(text, of_study[i]);
    free(text), free(of_study[i]);
  }
  stability_fini(&s);
  results_free(r);
}

/* As results of older versions have it. */
TEST(a_rate_outside_those_of_the_study_is_a_gap) {
  const outcome_rule rule = outcome_rule_default();
  heard h = {0};
  const figure_request q = {.folder = folder,
                            .only = "frontier",
                            .gnuplot = "true",
                            .script = script,
                            .noted = noted,
                            .context = &h};
  results *r = made();
  stability s;
  ASSERT_OK(stability_init(&s, r, &rule, &err));
  ASSERT_OK(stability_fit(&s, &err));
  for (size_t i = 0; i < s.n_settings * s.n_algorithms; i++) s.cells[i].collapse_at[0].value = 1e-9;
  ASSERT_OK(figures_of_outcomes(&s, &q, &err));
  char *text = text_of("frontier");
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n0\tgrpo\t0\tNaN\t"));
  CU_ASSERT_PTR_NULL(strstr(text, "\n1\tgrpo\t0\tNaN\t"));
  CU_ASSERT_PTR_NOT_NULL(strstr(h.noted, "(rate of 10 % not between those of the study)"));
  free(text);
  stability_fini(&s);
  results_free(r);
}

/* Six algorithms at two delays; without delay none falls. */
TEST(of_many_methods_each_has_a_panel_and_settings_without_falls_are_left_out) {
  static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
  results *r = results_new("many");
  heard h;
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (size_t i = 0; i < 6; i++)
    for (int delay = 0; delay <= 8; delay += 8)
      for (int rate = 0; rate < 2; rate++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
          add_run(r, names[i], delay, rate ? 1e-2 : 1e-3, seed, delay && rate ? 2 : EVALS);
  ASSERT_OK(results_arrange(r, &err));
  ASSERT_OK(draw_study(r, "survival", &h, &err));
  CU_ASSERT_PTR_NOT_NULL(strstr(h.noted, "weight delay 0 s (no run collapsed)"));
  ASSERT_OK(draw_study(r, "frontier", &h, &err));
  char *text = text_of("frontier");
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n5\t10 % collapse\t1\t"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n5\t50 % collapse\t1\t"));
  CU_ASSERT_PTR_NULL(strstr(text, "\n6\t"));
  free(text);
  results_free(r);
}

TEST(what_says_nothing_is_not_drawn) {
  results *r = results_new("one");
  heard h;
  gl_error err = {0};
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (int rate = 0; rate < 2; rate++)
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
      add_run(r, "gepo", 0, rate ? 1e-2 : 1e-3, seed, rate ? 2 : EVALS);
  CU_ASSERT_EQUAL_FATAL(results_arrange(r, &err), GL_OK);
  CU_ASSERT_EQUAL(draw_study(r, "frontier", &h, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "one setting besides optimizer.lr"));
  results_free(r);
  r = results_new("up");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (uint64_t seed = 1; seed <= SEEDS; seed++) add_run(r, "gepo", 0, 1e-3, seed, EVALS);
  CU_ASSERT_EQUAL_FATAL(results_arrange(r, &err), GL_OK);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(draw_study(r, "survival", &h, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no run collapsed"));
  results_free(r);
}

/* 12 of the 48 runs fall. Four of the survivors (of each algorithm the first seed at the smallest
 * rate, at two delays) have a lower value than any that falls: 4 of 36 alarms before the first true
 * one. */
TEST(the_curve_of_announcements_goes_through_shares_of_runs) {
  heard h;
  char *text = draw("announcements", &h), point[80];
  CU_ASSERT_STRING_EQUAL(h.drawn, "announcements");
  snprintf(point, sizeof point, "0\tess\t0\t0\t\t\n0\tess\t%.16g\t0\t\t\n0\tess\t%.16g\t1\t\t\n",
           4.0 / 36, 4.0 / 36);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, point));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n0\tess\t1\t1\t"));
  free(text);
}

/* Two seeds of one cell fall and two survive: at every lead that lies in the run they are compared.
 */
TEST(falls_are_compared_with_survivors_of_their_cell) {
  results *r = results_new("one");
  heard h;
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (uint64_t seed = 1; seed <= 4; seed++)
    add_run(r, "gepo", 0, 1e-3, seed, seed <= 2 ? EVALS / 2 : EVALS);
  ASSERT_OK(results_arrange(r, &err));
  ASSERT_OK(draw_study(r, "announcements", &h, &err));
  char *text = text_of("announcements");
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n1\tess\t1\t"));
  free(text);
  results_free(r);
}
