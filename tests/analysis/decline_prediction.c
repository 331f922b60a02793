/* Which metrics announce the next decline: runs made up so that every AUC can be counted by hand,
 * and a log that a trainer's own code wrote. */
#include "analysis/decline_prediction.h"
#include "analysis/import/gather.h"
#include "analysis/statistics.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("analysis: declines");

enum { EVALS = 7, UPDATES = 4 * EVALS };

/* A run with evaluations after every four updates. score[EVALS]; before[k]: the gradient norm of
 * the window after evaluation k, which entropy mirrors. */
static void add_run(results *r, uint64_t seed, const double *score, const double *before) {
  step_record steps[UPDATES];
  eval_record evals[EVALS];
  char swept[40];
  snprintf(swept, sizeof swept, "{\"optimizer.lr\":%llu}", (unsigned long long)seed);
  for (int i = 0; i < UPDATES; i++) {
    steps[i] = (step_record){.step = i + 1, .time_s = NAN, .wait_s = NAN};
    metrics_clear(steps[i].metric);
    /* the window's mean is what counts, not its single updates */
    steps[i].metric[METRIC_GRAD_NORM] = before[i / 4] + (i % 2 ? 0.4 : -0.4);
    steps[i].metric[METRIC_ENTROPY] = -before[i / 4];
    if (i % 4 == 1) steps[i].metric[METRIC_KL_K3] = NAN;
  }
  for (int k = 0; k < EVALS; k++) evals[k] = (eval_record){4 * k, NAN, score[k]};
  const run_record run = {.algorithm = "a",
                          .swept = swept,
                          .seed = seed,
                          .lr = NAN,
                          .status = RUN_DONE,
                          .steps = steps,
                          .n_steps = UPDATES,
                          .evals = evals,
                          .n_evals = EVALS};
  CU_ASSERT_EQUAL_FATAL(results_add(r, &run, NULL), GL_OK);
}

static results *made_runs(void) {
  /* declines from evaluation 2 to 3 and 4 to 5: the windows after evaluations 1 and 3 */
  static const double scores[] = {0.1, 0.2, 0.5, 0.4, 0.6, 0.3, 0.4};
  static const double rising[] = {1, 5, 2, 4, 3, 9, 9};  /* windows 0 .. 4: 1 5* 2 4* 3 */
  static const double mixed[] = {3, 1, 2, 4, 0, 9, 9};   /* 3 1* 2 4* 0 */
  static const double falling[] = {5, 1, 4, 2, 3, 9, 9}; /* 5 1* 4 2* 3 */
  static const double flat[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7};
  results *r = results_new("made");
  add_run(r, 1, scores, rising);
  add_run(r, 2, scores, mixed);
  add_run(r, 3, scores, falling);
  add_run(r, 4, flat, rising); /* no decline */
  CU_ASSERT_EQUAL_FATAL(results_arrange(r, NULL), GL_OK);
  return r;
}

static const decline_auc *auc_of(const declines *d, metric m) {
  for (size_t i = 0; i < d->n; i++)
    if (d->of[i].m == m) return &d->of[i];
  CU_FAIL_FATAL("a metric is missing");
  return NULL;
}

/* U of windows a and b of five before a decline, the predictor rising by window. */
static int u_of(int a, int b) {
  int u = 0;
  for (int k = 0; k < 5; k++)
    if (k != a && k != b) u += (k < a) + (k < b);
  return u;
}

/* Fraction of the ways to choose two of five windows in each of three runs whose sum of U is at
 * least as far from its mean, 9, as u is. */
static double fraction_as_far(int u) {
  int of[10], n = 0, far = 0;
  for (int a = 0; a < 5; a++)
    for (int b = a + 1; b < 5; b++) of[n++] = u_of(a, b);
  for (int i = 0; i < n * n * n; i++)
    far += abs(of[i % n] + of[i / n % n] + of[i / n / n] - 9) >= abs(u - 9);
  return (double)far / (n * n * n);
}

TEST(areas_are_those_counted_by_hand) {
  results *r = made_runs();
  const results *from[] = {r};
  declines d;
  CU_ASSERT_EQUAL_FATAL(declines_of(&d, from, 1, &(declines_rule){0}, NULL), GL_OK);
  CU_ASSERT(d.runs == 3 && d.declines == 6 && d.others == 9 && d.left_out == 1);
  CU_ASSERT_EQUAL(d.by_reward, 0);
  /* U of the runs: 6, 1 + 3 = 4 (1 exceeds 0; 4 exceeds all), 0, of 6 pairs each */
  const decline_auc *norm = auc_of(&d, METRIC_GRAD_NORM), *entropy = auc_of(&d, METRIC_ENTROPY);
  CU_ASSERT_DOUBLE_EQUAL(norm->auc.value, 10.0 / 18, 1e-12);
  CU_ASSERT_DOUBLE_EQUAL(entropy->auc.value, 8.0 / 18, 1e-12);
  CU_ASSERT(norm->runs == 3 && norm->declines == 6 && norm->auc.low == 0 && norm->auc.high == 1);
  /* left out: the others of run 1 have 4/12 (so 0 of 6), of run 2 6/12 (3), of run 3 10/12 (0) */
  CU_ASSERT_DOUBLE_EQUAL(norm->left_out, 3.0 / 18, 1e-12);
  CU_ASSERT_DOUBLE_EQUAL(entropy->left_out, 3.0 / 18, 1e-12);
  CU_ASSERT_DOUBLE_EQUAL(norm->p, fraction_as_far(10), 1e-12);
  for (size_t i = 0; i < d.n; i++) CU_ASSERT(d.of[i].m != METRIC_KL_K3); /* NaN throughout */
  /* only the decline of 0.3 counts */
  CU_ASSERT_EQUAL_FATAL(declines_of(&d, from, 1, &(declines_rule){.least = 0.2}, NULL), GL_OK);
  CU_ASSERT(d.declines == 3 && d.others == 12);
  results_free(r);
}

TEST(one_run_has_the_exact_test_and_no_other_to_learn_from) {
  const char *files[] = {"tests/golden/trainer_logs/prime_rl"};
  gathered g;
  results *r = NULL;
  CU_ASSERT_EQUAL_FATAL(gather(&g, &(gather_request){.files = files, .n_files = 1}, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(gathered_results(&r, NULL, &g, NULL), GL_OK);
  gathered_fini(&g);
  declines d;
  const results *from[] = {r};
  /* its reward rises to step 8 and falls then: 4 declines among 11 windows, at the end */
  const gl_status status = declines_of(&d, from, 1, &(declines_rule){0}, NULL);
  results_free(r);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  CU_ASSERT(d.by_reward == 1 && d.declines == 4 && d.others == 7);
  const decline_auc *norm = auc_of(&d, METRIC_GRAD_NORM), *stale = auc_of(&d, METRIC_STALENESS);
  CU_ASSERT(norm->auc.value == 1 && isnan(norm->auc.low) && isnan(norm->left_out));
  CU_ASSERT_DOUBLE_EQUAL(norm->p, 2.0 / 330, 1e-12);
  CU_ASSERT_EQUAL(stale->auc.value, 1);
}

TEST(runs_without_both_kinds_of_windows_are_refused) {
  static const double flat[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7};
  results *r = results_new("flat");
  gl_error err = {0};
  declines d;
  add_run(r, 1, flat, flat);
  CU_ASSERT_EQUAL_FATAL(results_arrange(r, NULL), GL_OK);
  CU_ASSERT_EQUAL(declines_of(&d, (const results *const[]){r}, 1, &(declines_rule){0}, &err),
                  GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no run has both a decline"));
  results_free(r);
}
