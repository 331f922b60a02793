/* Runs whose fate is clear by hand, and the edges of the rule. */
#include "analysis/outcome.h"
#include "tests/support/suite.h"

/* An evaluation every 50 updates. */
static run_outcome judged(const double *score, size_t n, int not_finite) {
  eval_record eval[64];
  const outcome_rule rule = outcome_rule_default();
  for (size_t i = 0; i < n; i++)
    eval[i] = (eval_record){.step = (int64_t)i * 50, .eval_score = score[i]};
  return outcome_of(eval, n, not_finite, &rule);
}
#define JUDGED(...)                                                                                \
  judged((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double), 0)

static void a_run_that_keeps_its_score_survives(void) {
  const run_outcome o = JUDGED(0.1, 0.4, 0.7, 0.8, 0.75, 0.79);
  CU_ASSERT_EQUAL(o.kind, OUTCOME_SURVIVED);
  CU_ASSERT_EQUAL(o.first, 0.1);
  CU_ASSERT_EQUAL(o.best, 0.8);
  CU_ASSERT_EQUAL(o.best_step, 150);
  CU_ASSERT_EQUAL(o.last, 0.79);
  CU_ASSERT_EQUAL(o.end, 250);
  CU_ASSERT_EQUAL(o.onset, -1);
  CU_ASSERT_FALSE(run_outcome_is_fall(&o));
}

static void a_run_that_gains_too_little_never_learned(void) {
  const run_outcome o = JUDGED(0.3, 0.35, 0.39, 0.2, 0.2, 0.2, 0.2, 0.2);
  CU_ASSERT_EQUAL(o.kind, OUTCOME_NEVER_LEARNED);
  CU_ASSERT_FALSE(o.lost_start);
  CU_ASSERT_FALSE(run_outcome_is_fall(&o));
  const run_outcome start = JUDGED(0.0, 0.0, 0.0, 0.0, 0.0);
  CU_ASSERT_EQUAL(start.kind, OUTCOME_NEVER_LEARNED);
  CU_ASSERT_FALSE(start.lost_start);
}

static void a_start_that_is_lost_is_told_and_counts_as_a_fall(void) {
  const run_outcome o = JUDGED(0.5, 0.55, 0.2, 0.1, 0.0, 0.0);
  CU_ASSERT_EQUAL(o.kind, OUTCOME_NEVER_LEARNED);
  CU_ASSERT(o.lost_start);
  CU_ASSERT_EQUAL(o.onset, 100);
  CU_ASSERT(run_outcome_is_fall(&o));
  const run_outcome back = JUDGED(0.5, 0.2, 0.1, 0.0, 0.0, 0.4);
  CU_ASSERT_FALSE(back.lost_start);
}

static void three_low_evaluations_are_no_fall_and_four_are(void) {
  const run_outcome three = JUDGED(0, 0.8, 0.3, 0.3, 0.3, 0.5, 0.3, 0.3, 0.3);
  CU_ASSERT_EQUAL(three.kind, OUTCOME_SURVIVED);
  const run_outcome four = JUDGED(0, 0.8, 0.3, 0.3, 0.3, 0.3, 0.9, 0.9);
  CU_ASSERT_EQUAL(four.kind, OUTCOME_EARLY_FALL);
  CU_ASSERT_EQUAL(four.onset, 100);
  CU_ASSERT(run_outcome_is_fall(&four));
}

/* Half of the gain until then: 0.4 above 0.1. What comes after does not make it a fall. */
static void only_what_was_gained_before_decides(void) {
  const run_outcome above = JUDGED(0.1, 0.5, 0.31, 0.31, 0.31, 0.31, 0.9);
  CU_ASSERT_EQUAL(above.kind, OUTCOME_SURVIVED);
  const run_outcome below = JUDGED(0.1, 0.5, 0.29, 0.29, 0.29, 0.29, 0.9);
  CU_ASSERT_EQUAL(below.kind, OUTCOME_EARLY_FALL);
  CU_ASSERT_EQUAL(below.best, 0.5);
}

/* Five evaluations on the plateau of 0.9 gain, 50 updates each, are 250 updates; three are 150. */
static void a_fall_after_a_plateau_is_late(void) {
  const run_outcome late = JUDGED(0, 0.8, 0.8, 0.79, 0.5, 0.8, 0.8, 0, 0, 0, 0);
  CU_ASSERT_EQUAL(late.kind, OUTCOME_LATE_FALL);
  CU_ASSERT_EQUAL(late.plateau_updates, 250);
  CU_ASSERT_EQUAL(late.onset, 350);
  const run_outcome early = JUDGED(0, 0.8, 0.8, 0.79, 0.5, 0, 0, 0, 0);
  CU_ASSERT_EQUAL(early.kind, OUTCOME_EARLY_FALL);
  CU_ASSERT_EQUAL(early.plateau_updates, 150);
}

static void what_is_not_finite_ends_there_unless_it_had_fallen(void) {
  static const double rising[] = {0, 0.4, 0.8, NAN}, fallen[] = {0, 0.8, 0, 0, 0, 0, NAN};
  const run_outcome o = judged(rising, 4, 1);
  CU_ASSERT_EQUAL(o.kind, OUTCOME_NOT_FINITE);
  CU_ASSERT_EQUAL(o.onset, 100);
  CU_ASSERT(run_outcome_is_fall(&o));
  CU_ASSERT_EQUAL(judged(fallen, 7, 1).kind, OUTCOME_EARLY_FALL);
  CU_ASSERT_EQUAL(judged(rising, 0, 1).kind, OUTCOME_NOT_FINITE);
}

/* Both are called diverged in a study: one went on to its last update with a score of nothing, the
 * other ended at a loss that is no number. */
static void a_diverged_run_is_not_finite_only_where_it_ended_for_it(void) {
  const outcome_rule rule = outcome_rule_default();
  eval_record eval[] = {{0, 0, 0.5}, {1, 1, 0}, {2, 2, 0}, {3, 3, 0}, {4, 4, 0}};
  step_record steps[4];
  for (int i = 0; i < 4; i++) {
    steps[i] = (step_record){.step = i + 1};
    metrics_clear(steps[i].metric);
    steps[i].metric[METRIC_LOSS] = steps[i].metric[METRIC_GRAD_NORM] = 1;
  }
  results_run run = {
      .status = RUN_DIVERGED, .steps = steps, .n_steps = 4, .evals = eval, .n_evals = 5};
  const run_outcome collapsed = outcome_of_run(&run, &rule);
  CU_ASSERT_EQUAL(collapsed.kind, OUTCOME_NEVER_LEARNED);
  CU_ASSERT(collapsed.lost_start);
  steps[3].metric[METRIC_LOSS] = NAN;
  CU_ASSERT_EQUAL(outcome_of_run(&run, &rule).kind, OUTCOME_NOT_FINITE);
  steps[3].metric[METRIC_LOSS] = 1;
  run.n_evals = 3;
  CU_ASSERT_EQUAL(outcome_of_run(&run, &rule).kind, OUTCOME_NOT_FINITE);
}

static void a_run_without_evaluations_has_no_scores(void) {
  const run_outcome o = judged(NULL, 0, 0);
  CU_ASSERT_EQUAL(o.kind, OUTCOME_NEVER_LEARNED);
  CU_ASSERT(isnan(o.first) && isnan(o.best) && isnan(o.last));
  CU_ASSERT_EQUAL(o.onset, -1);
}

static void every_outcome_has_a_name_of_its_own(void) {
  for (outcome a = 0; a < OUTCOME_COUNT; a++)
    for (outcome b = 0; b < a; b++) CU_ASSERT_STRING_NOT_EQUAL(outcome_name(a), outcome_name(b));
}

/* One lucky evaluation makes a fall of what comes after it, unless its best is scored elsewhere. */
static void a_lucky_evaluation_is_no_gain_where_halves_score_the_best(void) {
  static const double score[] = {0.1, 0.9, 0.2, 0.2, 0.2, 0.2, 0.2},
                      until[] = {0.1, 0.21, 0.21, 0.21, 0.21, 0.21, 0.21};
  enum { N = sizeof score / sizeof *score };
  const outcome_rule rule = outcome_rule_default();
  eval_record eval[N];
  for (int i = 0; i < N; i++) eval[i] = (eval_record){.step = 10 * i, .eval_score = score[i]};
  const run_outcome lucky = outcome_of(eval, N, 0, &rule),
                    fair = outcome_of_bests(eval, until, N, 0, &rule);
  CU_ASSERT(lucky.kind == OUTCOME_EARLY_FALL && lucky.best == 0.9);
  CU_ASSERT(fair.kind == OUTCOME_SURVIVED && fair.best == 0.21 && fair.onset == -1);
  CU_ASSERT(fair.best_step == 10 && fair.last == 0.2);
}

SUITE(analysis_outcome, "analysis: outcomes", TEST(a_run_that_keeps_its_score_survives),
      TEST(a_run_that_gains_too_little_never_learned),
      TEST(a_start_that_is_lost_is_told_and_counts_as_a_fall),
      TEST(three_low_evaluations_are_no_fall_and_four_are),
      TEST(only_what_was_gained_before_decides), TEST(a_fall_after_a_plateau_is_late),
      TEST(what_is_not_finite_ends_there_unless_it_had_fallen),
      TEST(a_diverged_run_is_not_finite_only_where_it_ended_for_it),
      TEST(a_run_without_evaluations_has_no_scores), TEST(every_outcome_has_a_name_of_its_own),
      TEST(a_lucky_evaluation_is_no_gain_where_halves_score_the_best));
