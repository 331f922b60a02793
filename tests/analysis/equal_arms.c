/* Arms that are one computation, and levels by arm, in small studies made by hand. */
#include "analysis/contrasts.h"
#include "tests/support/json.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

SUITE("analysis: equal arms");

enum { UPDATES = 20, EVALS = 12 };

/* norm: of every gradient; score: of evaluations after the first, which is 0.5. */
static void add_arm_run(results *r, const char *algorithm, double coefficient, uint64_t seed,
                        double norm, double score) {
  char swept[80];
  step_record step[UPDATES];
  eval_record eval[EVALS];
  for (size_t i = 0; i < UPDATES; i++) {
    step[i] = (step_record){.step = (int64_t)i + 1};
    metrics_clear(step[i].metric);
    step[i].metric[METRIC_GRAD_NORM] = norm + (double)i;
    step[i].metric[METRIC_PASS_AT_G] = i < UPDATES - 2 ? 0 : 0.25 * (double)seed;
    step[i].metric[METRIC_LOG_RATIO_NEGATIVE] = i < UPDATES - 2 ? 0 : -0.125 * (double)seed;
  }
  for (size_t i = 0; i < EVALS; i++)
    eval[i] = (eval_record){.step = (int64_t)i, .eval_score = i == 0 ? 0.5 : score};
  snprintf(swept, sizeof swept, "{\"algorithm.kl_coef\":%g}", coefficient);
  const run_record run = {.algorithm = algorithm,
                          .swept = swept,
                          .seed = seed,
                          .status = RUN_DONE,
                          .steps = step,
                          .n_steps = UPDATES,
                          .evals = eval,
                          .n_evals = EVALS};
  ASSERT_OK(results_add(r, &run, &err));
}

/* gspo with and without the KL term agree on both seeds, grpo differs in the norms of seed 2, gepo
 * in nothing but a score of seed 1. */
static results *made_of_copies(void) {
  results *r = results_new("copies");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (uint64_t seed = 1; seed <= 2; seed++) {
    const double score = 0.3 + 0.1 * (double)seed;
    add_arm_run(r, "gspo", 0, seed, 1, score);
    add_arm_run(r, "gspo", 0.005, seed, 1, score);
    add_arm_run(r, "grpo", 0, seed, seed == 2 ? 1 + 1e-15 : 1, score);
    add_arm_run(r, "gepo", 0, seed, 1, seed == 1 ? score + 1e-16 : score);
  }
  ASSERT_OK(results_arrange(r, &err));
  return r;
}

TEST(copies_are_found_and_near_copies_are_not) {
  results *r = made_of_copies();
  arena work = {0};
  equal_arms *pair = NULL;
  size_t n = 0;
  ASSERT_OK(equal_arms_find(&pair, &n, r, &work, &err));
  CU_ASSERT_EQUAL_FATAL(n, 1);
  CU_ASSERT_EQUAL(pair[0].runs, 2);
  CU_ASSERT_STRING_EQUAL(r->algorithms[pair[0].first->algorithm], "gspo");
  CU_ASSERT_STRING_EQUAL(r->algorithms[pair[0].second->algorithm], "gspo");
  CU_ASSERT(pair[0].first->group != pair[0].second->group);
  arena_fini(&work);
  results_free(r);
}

TEST(levels_are_means_by_arm) {
  results *r = made_of_copies();
  table *t = table_document();
  ASSERT_OK(levels_report(t, r, &err));
  cJSON *json = table_to_json(t);
  const cJSON *rows = member_at(json, "levels");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(rows), 4);
  const cJSON *row = cJSON_GetArrayItem(rows, 0);
  CU_ASSERT_EQUAL(number_at(row, "runs"), 2);
  /* last levels 0.4 and 0.5; the first ten of twelve evaluations hold the start of 0.5 */
  CU_ASSERT(fabs(number_at(member_at(row, "last_level"), "value") - 0.45) < 1e-12);
  CU_ASSERT(fabs(number_at(member_at(row, "last_level"), "low") - 0.4) < 1e-12);
  CU_ASSERT(fabs(number_at(member_at(row, "best_to_last"), "value") - 0.005) < 1e-12);
  CU_ASSERT(fabs(number_at(member_at(row, "below_start"), "value") - 0.5) < 1e-12);
  CU_ASSERT(fabs(number_at(member_at(row, "pass_at_g"), "value") - 0.375) < 1e-12);
  CU_ASSERT(fabs(number_at(member_at(row, "pass_at_g"), "high") - 0.5) < 1e-12);
  CU_ASSERT(fabs(number_at(member_at(row, "log_ratio_negative"), "value") + 0.1875) < 1e-12);
  cJSON_Delete(json);
  table_free(t);
  results_free(r);
}
