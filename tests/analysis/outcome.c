/* Runs whose fate is clear by hand, and the edges of the rule. */
#include "analysis/outcome.h"
#include "analysis/summary.h"
#include "tests/support/json.h"
#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("analysis: outcomes");

/* An evaluation every 50 updates. */
static run_outcome judged(const double *score, size_t n, int not_finite) {
  eval_record eval[64];
  const outcome_rule rule = outcome_rule_default();
  for (size_t i = 0; i < n; i++)
    eval[i] = (eval_record){.step = (int64_t)i * 50, .eval_score = score[i]};
  return outcome_of(eval, NULL, n, not_finite, &rule);
}
#define JUDGED(...)                                                                                \
  judged((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double), 0)

TEST(a_run_that_keeps_its_score_survives) {
  const run_outcome o = JUDGED(0.1, 0.4, 0.7, 0.8, 0.75, 0.79);
  CU_ASSERT_EQUAL(o.kind, OUTCOME_SURVIVED);
  CU_ASSERT_EQUAL(o.first, 0.1);
  CU_ASSERT_EQUAL(o.best, 0.8);
  CU_ASSERT_EQUAL(o.best_step, 150);
  CU_ASSERT_EQUAL(o.last, 0.79);
  CU_ASSERT_EQUAL(o.end, 250);
  CU_ASSERT_EQUAL(o.onset, -1);
  CU_ASSERT_FALSE(run_outcome_is_collapse(&o));
}

TEST(a_run_that_gains_too_little_never_learned) {
  const run_outcome o = JUDGED(0.3, 0.35, 0.39, 0.2, 0.2, 0.2, 0.2, 0.2);
  CU_ASSERT_EQUAL(o.kind, OUTCOME_NEVER_LEARNED);
  CU_ASSERT_FALSE(o.lost_start);
  CU_ASSERT_FALSE(run_outcome_is_collapse(&o));
  const run_outcome start = JUDGED(0.0, 0.0, 0.0, 0.0, 0.0);
  CU_ASSERT_EQUAL(start.kind, OUTCOME_NEVER_LEARNED);
  CU_ASSERT_FALSE(start.lost_start);
}

TEST(a_start_that_is_lost_is_told_and_counts_as_a_fall) {
  const run_outcome o = JUDGED(0.5, 0.55, 0.2, 0.1, 0.0, 0.0);
  CU_ASSERT_EQUAL(o.kind, OUTCOME_NEVER_LEARNED);
  CU_ASSERT(o.lost_start);
  CU_ASSERT_EQUAL(o.onset, 100);
  CU_ASSERT(run_outcome_is_collapse(&o));
  const run_outcome back = JUDGED(0.5, 0.2, 0.1, 0.0, 0.0, 0.4);
  CU_ASSERT_FALSE(back.lost_start);
}

TEST(three_low_evaluations_are_no_fall_and_four_are) {
  const run_outcome three = JUDGED(0, 0.8, 0.3, 0.3, 0.3, 0.5, 0.3, 0.3, 0.3);
  CU_ASSERT_EQUAL(three.kind, OUTCOME_SURVIVED);
  const run_outcome four = JUDGED(0, 0.8, 0.3, 0.3, 0.3, 0.3, 0.9, 0.9);
  CU_ASSERT_EQUAL(four.kind, OUTCOME_EARLY_COLLAPSE);
  CU_ASSERT_EQUAL(four.onset, 100);
  CU_ASSERT(run_outcome_is_collapse(&four));
}

/* Half of the gain until then: 0.4 above 0.1. What comes after does not make it a fall. */
TEST(only_what_was_gained_before_decides) {
  const run_outcome above = JUDGED(0.1, 0.5, 0.31, 0.31, 0.31, 0.31, 0.9);
  CU_ASSERT_EQUAL(above.kind, OUTCOME_SURVIVED);
  const run_outcome below = JUDGED(0.1, 0.5, 0.29, 0.29, 0.29, 0.29, 0.9);
  CU_ASSERT_EQUAL(below.kind, OUTCOME_EARLY_COLLAPSE);
  CU_ASSERT_EQUAL(below.best, 0.5);
}

/* Five evaluations on the plateau of 0.9 gain, 50 updates each, are 250 updates; three are 150. */
TEST(a_fall_after_a_plateau_is_late) {
  const run_outcome late = JUDGED(0, 0.8, 0.8, 0.79, 0.5, 0.8, 0.8, 0, 0, 0, 0);
  CU_ASSERT_EQUAL(late.kind, OUTCOME_LATE_COLLAPSE);
  CU_ASSERT_EQUAL(late.plateau_updates, 250);
  CU_ASSERT_EQUAL(late.onset, 350);
  const run_outcome early = JUDGED(0, 0.8, 0.8, 0.79, 0.5, 0, 0, 0, 0);
  CU_ASSERT_EQUAL(early.kind, OUTCOME_EARLY_COLLAPSE);
  CU_ASSERT_EQUAL(early.plateau_updates, 150);
}

TEST(what_is_not_finite_ends_there_unless_it_had_fallen) {
  static const double rising[] = {0, 0.4, 0.8, NAN}, collapse_rate[] = {0, 0.8, 0, 0, 0, 0, NAN};
  const run_outcome o = judged(rising, 4, 1);
  CU_ASSERT_EQUAL(o.kind, OUTCOME_NOT_FINITE);
  CU_ASSERT_EQUAL(o.onset, 100);
  CU_ASSERT(o.best == 0.8 && isnan(o.last));
  CU_ASSERT(run_outcome_is_collapse(&o));
  CU_ASSERT_EQUAL(judged(collapse_rate, 7, 1).kind, OUTCOME_EARLY_COLLAPSE);
  CU_ASSERT_EQUAL(judged(rising, 0, 1).kind, OUTCOME_NOT_FINITE);
}

/* Both are called diverged in a study: one went on to its last update with a score of nothing, the
 * other ended at a loss that is no number. */
TEST(a_diverged_run_is_not_finite_only_where_it_ended_for_it) {
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
  eval[4].eval_score = INFINITY;
  CU_ASSERT_EQUAL(outcome_of_run(&run, &rule).kind, OUTCOME_NOT_FINITE);
  run.n_evals = 3;
  CU_ASSERT_EQUAL(outcome_of_run(&run, &rule).kind, OUTCOME_NOT_FINITE);
}

TEST(a_run_without_evaluations_has_no_scores) {
  const run_outcome o = judged(NULL, 0, 0);
  CU_ASSERT_EQUAL(o.kind, OUTCOME_NEVER_LEARNED);
  CU_ASSERT(isnan(o.first) && isnan(o.best) && isnan(o.last));
  CU_ASSERT_EQUAL(o.onset, -1);
}

TEST(every_outcome_has_a_name_of_its_own) {
  for (outcome a = 0; a < OUTCOME_COUNT; a++)
    for (outcome b = 0; b < a; b++) CU_ASSERT_STRING_NOT_EQUAL(outcome_name(a), outcome_name(b));
}

/* One lucky evaluation makes a fall of what comes after it, unless its best is scored elsewhere. */
TEST(a_lucky_evaluation_is_no_gain_where_halves_score_the_best) {
  static const double score[] = {0.1, 0.9, 0.2, 0.2, 0.2, 0.2, 0.2},
                      until[] = {0.1, 0.21, 0.21, 0.21, 0.21, 0.21, 0.21};
  enum { N = sizeof score / sizeof *score };
  const outcome_rule rule = outcome_rule_default();
  eval_record eval[N];
  for (int i = 0; i < N; i++) eval[i] = (eval_record){.step = 10 * i, .eval_score = score[i]};
  const run_outcome lucky = outcome_of(eval, NULL, N, false, &rule),
                    fair = outcome_of(eval, until, N, false, &rule);
  CU_ASSERT(lucky.kind == OUTCOME_EARLY_COLLAPSE && lucky.best == 0.9);
  CU_ASSERT(fair.kind == OUTCOME_SURVIVED && fair.best == 0.21 && fair.onset == -1);
  CU_ASSERT(fair.best_step == 10 && fair.last == 0.2);
}

/* Means of ten in a row against a plain double loop, with a NaN that is skipped. */
TEST(levels_are_means_of_ten_evaluations) {
  enum { N = 40 };
  eval_record eval[N];
  double score[N], best = 0, last = 0;
  size_t n = 0, below = 0;
  for (size_t i = 0; i < N; i++) {
    const double y = i == 7 ? NAN : 0.5 + 0.4 * sin(0.3 * (double)i);
    eval[i] = (eval_record){.step = (int64_t)i, .eval_score = y};
    if (i != 7) score[n++] = y;
  }
  for (size_t i = 1; i < n; i++) below += score[i] < score[0];
  for (size_t i = 0; i + 10 <= n; i++) {
    last = 0;
    for (size_t k = i; k < i + 10; k++) last += score[k] / 10;
    best = fmax(best, last);
  }
  results_run run = {.status = RUN_DONE, .evals = eval};
  const run_level none = run_level_of(&run);
  run.n_evals = 3;
  const run_level few = run_level_of(&run);
  run.n_evals = N;
  const run_level found = run_level_of(&run);
  run.status = RUN_DIVERGED; /* without updates: not finite at its end */
  const run_level gone = run_level_of(&run);
  CU_ASSERT(fabs(found.last - last) < 1e-12);
  CU_ASSERT(fabs(found.best_to_last - (best - last)) < 1e-12);
  CU_ASSERT(best - last > 0.1);
  CU_ASSERT_EQUAL(found.below_start, (double)below / (double)(n - 1));
  CU_ASSERT(fabs(few.last - (score[0] + score[1] + score[2]) / 3) < 1e-12);
  CU_ASSERT_EQUAL(few.best_to_last, 0);
  CU_ASSERT(isnan(gone.last) && isnan(gone.best_to_last) && isnan(gone.below_start));
  CU_ASSERT(isnan(none.last) && isnan(none.best_to_last) && isnan(none.below_start));
}

/* Of four evaluations three are finite; the second run is not finite at its end, the third failed.
 */
TEST(runs_with_few_evaluations_are_counted) {
  eval_record eval[] = {{0, 0, 0.5}, {1, 1, NAN}, {2, 2, 0.5}, {3, 3, 0.5}};
  results_run run[3];
  for (int i = 0; i < 3; i++)
    run[i] = (results_run){.status = (run_status[]){RUN_DONE, RUN_DIVERGED, RUN_FAILED}[i],
                           .evals = eval,
                           .n_evals = 4};
  const results r = {.runs = run, .n_runs = 3};
  CU_ASSERT(runs_with_fewer(&r, 4) == 1 && runs_with_fewer(&r, 3) == 0);
}

static run_class class_of(run_outcome o) {
  return run_outcome_class(&o);
}
#define FATE(...) class_of(JUDGED(__VA_ARGS__))

/* The paper's own GRPO ends so: 0.70, then 0.27 twice. */
TEST(two_low_evaluations_at_the_end_are_a_run_that_is_falling) {
  const run_outcome o = JUDGED(0.2, 0.5, 0.7, 0.68, 0.27, 0.28);
  CU_ASSERT_EQUAL(o.kind, OUTCOME_SURVIVED);
  CU_ASSERT_EQUAL(run_outcome_class(&o), RUN_CLASS_COLLAPSING);
  CU_ASSERT_EQUAL(o.onset, 200);
  CU_ASSERT_FALSE(run_outcome_is_collapse(&o));
  CU_ASSERT_EQUAL(FATE(0.2, 0.5, 0.7, 0.68, 0.27), RUN_CLASS_STABLE);
  CU_ASSERT_EQUAL(FATE(0.2, 0.5, 0.7, 0.27, 0.27, 0.68), RUN_CLASS_STABLE);
}

TEST(a_fall_and_a_recovery_are_a_dip) {
  const run_outcome dip = JUDGED(0, 0.8, 0.3, 0.3, 0.3, 0.3, 0.7, 0.8);
  CU_ASSERT_EQUAL(run_outcome_class(&dip), RUN_CLASS_DIP);
  CU_ASSERT(dip.onset == 100 && dip.recovered == 300 && run_outcome_is_collapse(&dip));
  CU_ASSERT_EQUAL(FATE(0, 0.8, 0.3, 0.3, 0.3, 0.3, 0.7, 0.3), RUN_CLASS_DIP);
  const run_outcome down = JUDGED(0, 0.8, 0.3, 0.3, 0.3, 0.3, 0.7, 0.3, 0.3);
  CU_ASSERT(run_outcome_class(&down) == RUN_CLASS_EARLY_COLLAPSE && down.recovered == -1);
}

TEST(every_fate_is_found_and_named) {
  static const double broken[] = {0, 0.8, NAN};
  CU_ASSERT_EQUAL(FATE(0.5, 0.2, 0.1, 0.1, 0.1), RUN_CLASS_LOST_START);
  CU_ASSERT_EQUAL(FATE(0.3, 0.35, 0.3), RUN_CLASS_NEVER_LEARNED);
  CU_ASSERT_EQUAL(FATE(0, 0.8, 0, 0, 0, 0), RUN_CLASS_EARLY_COLLAPSE);
  CU_ASSERT_EQUAL(FATE(0, 0.8, 0.8, 0.79, 0.8, 0.8, 0, 0, 0, 0), RUN_CLASS_LATE_COLLAPSE);
  CU_ASSERT_EQUAL(FATE(0, 0.8, 0.8), RUN_CLASS_STABLE);
  const run_outcome o = judged(broken, 3, 1);
  CU_ASSERT_EQUAL(run_outcome_class(&o), RUN_CLASS_NOT_FINITE);
  for (run_class a = 0; a < RUN_CLASS_COUNT; a++)
    for (run_class b = 0; b < a; b++)
      CU_ASSERT_STRING_NOT_EQUAL(run_class_name(a), run_class_name(b));
}

/* --- Outcomes of a small study by hand: counts, shares, onsets, doses, text and JSON --- */

SUITE("analysis: stability");

enum { EVALS = 8 };

/* Rises to 0.8, and from evaluation `fall` on stands at 0. */
static void add_run(results *r, const char *algorithm, double staleness, double lr, uint64_t seed,
                    size_t collapse, run_status status) {
  char swept[120];
  eval_record eval[EVALS];
  gl_error err = {0};
  for (size_t i = 0; i < EVALS; i++)
    eval[i] = (eval_record){.step = (int64_t)i * 100,
                            .eval_score = i >= collapse ? 0
                                          : i == 0      ? 0
                                                        : 0.8};
  snprintf(swept, sizeof swept, "{\"cluster.delay\":%g,\"optimizer.lr\":%g}", staleness, lr);
  const run_record run = {.algorithm = algorithm,
                          .swept = swept,
                          .seed = seed,
                          .lr = lr,
                          .status = status,
                          .evals = eval,
                          .n_evals = status == RUN_FAILED ? 0 : EVALS};
  CU_ASSERT_EQUAL_FATAL(results_add(r, &run, &err), GL_OK);
}

/* grpo falls at the larger rate, at the longer delay also at the smaller one; gepo never does, and
 * has one failed run. */
static results *made(void) {
  results *r = results_new("made");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (uint64_t seed = 1; seed <= 3; seed++)
    for (int delay = 0; delay <= 4; delay += 4)
      for (int rate = 0; rate < 2; rate++) {
        const int collapses = rate == 1 || (delay == 4 && seed > 1);
        const double lr = rate ? 1e-2 : 1e-3;
        add_run(r, "grpo", delay, lr, seed, collapses ? 2 + seed % 2 : EVALS, RUN_DONE);
        add_run(r, "gepo", delay, lr, seed, EVALS,
                seed == 3 && rate && delay ? RUN_FAILED : RUN_DONE);
      }
  ASSERT_OK(results_arrange(r, &err));
  return r;
}

TEST(a_study_of_failed_runs_has_no_finished_run) {
  results *r = results_new("failed");
  stability s;
  gl_error why = {0};
  const outcome_rule rule = outcome_rule_default();
  add_run(r, "grpo", 0, 1e-3, 1, 2, RUN_FAILED);
  ASSERT_OK(results_arrange(r, &err));
  CU_ASSERT_EQUAL(stability_init(&s, r, &rule, &why), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "no run of failed has finished"));
  stability_fini(&s);
  results_free(r);
}

static const stability_cell *cell_at(const stability *s, const char *algorithm, size_t setting) {
  for (size_t a = 0; a < s->n_algorithms; a++)
    if (strcmp(s->algorithms[a], algorithm) == 0) return &s->cells[setting * s->n_algorithms + a];
  return NULL;
}

TEST(runs_are_counted_by_method_and_setting) {
  const outcome_rule rule = outcome_rule_default();
  results *r = made();
  stability s;
  ASSERT_OK(stability_init(&s, r, &rule, &err));
  ASSERT_OK(stability_fit(&s, &err));
  CU_ASSERT_EQUAL_FATAL(s.n_settings, 2);
  const stability_cell *near = cell_at(&s, "grpo", 0), *far = cell_at(&s, "grpo", 1);
  CU_ASSERT_EQUAL(near->runs, 6);
  CU_ASSERT_EQUAL(near->collapses, 3);
  CU_ASSERT_EQUAL(near->count[OUTCOME_SURVIVED], 3);
  CU_ASSERT_EQUAL(far->collapses, 5);
  CU_ASSERT_EQUAL(far->count[OUTCOME_EARLY_COLLAPSE] + far->count[OUTCOME_LATE_COLLAPSE], 5);
  CU_ASSERT_EQUAL(near->n_rates, 2);
  CU_ASSERT_EQUAL(near->rate[0].collapses, 0);
  CU_ASSERT_EQUAL(near->rate[1].collapses, 3);
  CU_ASSERT(fabs(near->collapse_at[1].value / 3.1622776601683795e-3 - 1) < 1e-6);
  CU_ASSERT(near->collapse_at[1].low < near->collapse_at[1].value);
  CU_ASSERT(!(far->collapse_at[1].value >= near->collapse_at[1].value));
  CU_ASSERT_EQUAL(near->best_rate, 0);
  CU_ASSERT(fabs(near->last[0].value - 0.8) < 1e-12 && near->last[1].value == 0);
  const stability_cell *gepo = cell_at(&s, "gepo", 1);
  CU_ASSERT_EQUAL(gepo->runs, 5);
  CU_ASSERT_EQUAL(gepo->failed, 1);
  CU_ASSERT_STRING_EQUAL(gepo->fit.why, "no run collapses");
  CU_ASSERT(isinf(gepo->median_onset));
  stability_fini(&s);
  results_free(r);
}

/* Runs that collapse at the smaller rate alone: JSON has the reason that text prints. */
TEST(collapses_that_do_not_increase_with_the_rate_are_a_reason) {
  const outcome_rule rule = outcome_rule_default();
  results *r = results_new("falling");
  for (uint64_t seed = 1; seed <= 3; seed++) {
    add_run(r, "grpo", 0, 1e-3, seed, 2, RUN_DONE);
    add_run(r, "grpo", 0, 1e-2, seed, EVALS, RUN_DONE);
  }
  ASSERT_OK(results_arrange(r, &err));
  stability s;
  ASSERT_OK(stability_init(&s, r, &rule, &err));
  ASSERT_OK(stability_fit(&s, &err));
  table *t = table_document();
  stability_report(t, &s, false);
  cJSON *json = read_table(t);
  const cJSON *cell = cJSON_GetArrayItem(member_at(json, "cells"), 0);
  CU_ASSERT_STRING_EQUAL(text_at(cell, "why"), "collapses do not increase with it");
  cJSON_Delete(json);
  table_free(t);
  stability_fini(&s);
  results_free(r);
}

TEST(analyze_and_outcomes_count_the_same_collapsed_runs) {
  const outcome_rule rule = outcome_rule_default();
  results *r = made();
  stability s;
  summary sum;
  ASSERT_OK(stability_init(&s, r, &rule, &err));
  ASSERT_OK(summary_init(&sum, r, &err));
  size_t of_analyze = 0, of_outcomes = 0;
  for (size_t i = 0; i < sum.n_cells; i++) of_analyze += sum.cells[i].collapsed;
  for (size_t i = 0; i < s.n_settings * s.n_algorithms; i++) of_outcomes += s.cells[i].collapses;
  CU_ASSERT(of_analyze == 8 && of_outcomes == 8);
  summary_fini(&sum);
  stability_fini(&s);
  results_free(r);
}

/* Three of six fall at updates 200 and 300: half have by 300. */
TEST(onsets_are_those_of_kaplan_and_meier) {
  const outcome_rule rule = outcome_rule_default();
  results *r = made();
  stability s;
  CU_ASSERT_EQUAL_FATAL(stability_init(&s, r, &rule, NULL), GL_OK);
  const stability_cell *near = cell_at(&s, "grpo", 0);
  CU_ASSERT_EQUAL(near->median_onset, 300);
  double time[24];
  uint8_t collapsed[24];
  CU_ASSERT_EQUAL(stability_times(&s, near, time, collapsed), 6);
  double sum = 0;
  for (size_t i = 0; i < 6; i++) sum += time[i];
  CU_ASSERT_EQUAL(sum, 3 * 700 + 200 + 300 + 300);
  stability_fini(&s);
  results_free(r);
}

TEST(text_and_json_say_the_same) {
  const outcome_rule rule = outcome_rule_default();
  results *r = made();
  stability s;
  ASSERT_OK(stability_init(&s, r, &rule, &err));
  ASSERT_OK(stability_fit(&s, &err));
  for (size_t k = 0; k < s.n_settings; k++)
    s.staleness[k] = 200; /* a collapse begins at 200 or 300 */
  table *t = table_document();
  stability_report(t, &s, true);
  char *text = written_table(t, TABLE_AS_TEXT);
  cJSON *json = read_table(t);
  table_free(t);
  CU_ASSERT_EQUAL(number_at(json, "collapses.all"), 8);
  CU_ASSERT_EQUAL(number_at(json, "collapses.lost_start"), 0);
  CU_ASSERT_EQUAL(number_at(json, "collapses.before_full_staleness"), 3); /* of the even seed */
  CU_ASSERT(table_says(text, "Of 8 collapses 0 are lost starts, and 3 began before"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "0.50 [0.12, 0.88]"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\xe2\x80\x93 (no run collapses)"));
  const cJSON *cells = member_at(json, "cells");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(cells), 4);
  const cJSON *cell = cJSON_GetArrayItem(cells, 0);
  CU_ASSERT_STRING_EQUAL(text_at(cell, "algorithm"), "grpo");
  const cJSON *rate = cJSON_GetArrayItem(member_at(cell, "doses"), 0);
  CU_ASSERT_EQUAL(number_at(rate, "dose"), 1e-3);
  CU_ASSERT_EQUAL(number_at(cell, "best_dose"), 1e-3);
  CU_ASSERT(cJSON_IsNull(member_at(cJSON_GetArrayItem(cells, 1), "median_onset")));
  const cJSON *runs = member_at(json, "runs");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(runs), 23); /* of 24 one failed */
  size_t down = 0;
  for (const cJSON *run = runs->child; run != NULL; run = run->next)
    if (strstr(text_at(run, "outcome"), " fall") != NULL) {
      CU_ASSERT(number_at(run, "onset") >= 200 && number_at(run, "last") == 0);
      down++;
    }
  CU_ASSERT_EQUAL(down, 8);
  cJSON_Delete(json);
  free(text);
  stability_fini(&s);
  results_free(r);
}

TEST(a_study_without_evaluations_is_refused) {
  const outcome_rule rule = outcome_rule_default();
  results *r = results_new("bare");
  gl_error err = {0};
  stability s;
  const run_record run = {.algorithm = "grpo", .swept = "{}", .seed = 1, .status = RUN_DONE};
  CU_ASSERT_EQUAL(results_add(r, &run, &err), GL_OK);
  CU_ASSERT_EQUAL(results_arrange(r, &err), GL_OK);
  CU_ASSERT_EQUAL(stability_init(&s, r, &rule, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "eval_every"));
  stability_fini(&s);
  results_free(r);
}

static const char kept_path[] = "build/stability_test.tsv";

/* What the JSON says, kept and read again. */
static gl_status keep_and_read(stability *out, const cJSON *json, gl_error *err) {
  const stored_head head = {"made", "abc", "a processor", "gepolab sweep made", "2026-11-22"};
  stored kept = {0};
  int is = 0;
  FILE *to = fopen(kept_path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  CU_ASSERT_EQUAL(stored_write(to, &head, json, NULL, NULL, err), GL_OK);
  fclose(to);
  CU_ASSERT(stored_recognise(kept_path, &is, err) == GL_OK && is);
  gl_status status = stored_read(&kept, kept_path, err);
  if (status == GL_OK) status = stability_of_stored(out, &kept, err);
  stored_fini(&kept);
  remove(kept_path);
  return status;
}

static int alike(double a, double b) {
  return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-11 * fabs(b);
}

static void assert_same_cell(const stability_cell *a, const stability_cell *b) {
  CU_ASSERT(a->runs == b->runs && a->failed == b->failed && a->collapses == b->collapses);
  CU_ASSERT(a->n_steps == b->n_steps && a->n_rates == b->n_rates && a->best_rate == b->best_rate);
  CU_ASSERT(a->watched == b->watched && a->median_onset == b->median_onset);
  for (size_t i = 0; i < a->n_steps; i++)
    CU_ASSERT(a->curve[i].time == b->curve[i].time &&
              alike(a->curve[i].survival, b->curve[i].survival) &&
              alike(a->curve[i].error, b->curve[i].error));
  for (size_t i = 0; i < a->n_rates; i++)
    CU_ASSERT(alike(a->rate[i].x, b->rate[i].x) && a->rate[i].runs == b->rate[i].runs &&
              a->rate[i].collapses == b->rate[i].collapses &&
              alike(a->last[i].value, b->last[i].value));
  for (size_t i = 0; i < STABILITY_SHARES; i++)
    if (b->fit.why == NULL)
      CU_ASSERT(alike(a->collapse_at[i].value, b->collapse_at[i].value) &&
                alike(a->collapse_at[i].low, b->collapse_at[i].low) &&
                alike(a->collapse_at[i].high, b->collapse_at[i].high));
  CU_ASSERT((a->fit.why == NULL) == (b->fit.why == NULL));
}

TEST(stored_outcomes_are_read_as_they_were) {
  const outcome_rule rule = outcome_rule_default();
  results *r = made();
  stability s, again;
  ASSERT_OK(stability_init(&s, r, &rule, &err));
  ASSERT_OK(stability_fit(&s, &err));
  table *t = table_document();
  stability_report(t, &s, true);
  cJSON *json = table_to_json(t);
  table_free(t);
  ASSERT_OK(keep_and_read(&again, json, &err));
  CU_ASSERT_STRING_EQUAL(again.study, "made");
  CU_ASSERT(again.has_rates && again.n_algorithms == 2 && again.n_settings == 2);
  for (size_t i = 0; i < 2; i++) { /* in the study's order, which is not that of the names */
    CU_ASSERT_STRING_EQUAL(again.algorithms[i], s.algorithms[i]);
    CU_ASSERT_STRING_EQUAL(again.settings[i], s.settings[i]);
    CU_ASSERT(alike(again.staleness[i], s.staleness[i]));
  }
  for (size_t i = 0; i < 4; i++) assert_same_cell(&again.cells[i], &s.cells[i]);
  cJSON_Delete(json);
  stability_fini(&again);
  stability_fini(&s);
  results_free(r);
}

TEST(other_results_are_no_outcomes) {
  cJSON *json = cJSON_Parse("{\"cells\": [{\"algorithm\": \"gepo\", \"best\": 1}]}");
  gl_error err = {0};
  stability s;
  CU_ASSERT_EQUAL(keep_and_read(&s, json, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "gepolab analyze --table outcomes STUDY.db --json"));
  stability_fini(&s);
  cJSON_Delete(json);
}
