/* Leaders that are clear by hand. */
#include "analysis/verdict.h"
#include "tests/support/json.h"
#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("analysis: verdict");

static void add_last(results *r, const char *algorithm, uint64_t seed, double last) {
  eval_record eval[] = {{0, 0, 0.1}, {1, 1, last}};
  const run_record run = {.algorithm = algorithm,
                          .swept = "{}",
                          .seed = seed,
                          .status = RUN_DONE,
                          .evals = eval,
                          .n_evals = 2};
  ASSERT_OK(results_add(r, &run, &err));
}

/* Starts differ far more than methods: gepo is 0.05 above grpo on every one, and 0.001 above gspo.
 */
static results *made(uint64_t seeds) {
  results *r = results_new("made");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    const double start = 0.2 + 0.1 * (double)seed;
    add_last(r, "grpo", seed, start - 0.05);
    add_last(r, "gspo", seed, start - 0.001);
    add_last(r, "gepo", seed, start);
  }
  ASSERT_OK(results_arrange(r, &err));
  return r;
}

/* A run of grpo ends not finite: its pair is left out and counted. */
TEST(pairs_without_a_last_score_are_counted) {
  results *r = made(6);
  summary s;
  verdicts v;
  size_t i = 0;
  while (strcmp(r->algorithms[r->runs[i].algorithm], "grpo") != 0 || r->runs[i].seed != 6) i++;
  r->runs[i].status = RUN_DIVERGED;
  ASSERT_OK(summary_init(&s, r, &err));
  ASSERT_OK(verdicts_init(&v, &s, &err));
  const verdict_pair *gspo = &v.of[0].pair[0], *grpo = &v.of[0].pair[1];
  CU_ASSERT(gspo->pairs == 6 && gspo->without_value == 0);
  CU_ASSERT(grpo->pairs == 5 && grpo->without_value == 1);
  verdicts_fini(&v);
  summary_fini(&s);
  results_free(r);
}

TEST(overlapping_intervals_are_no_verdict_but_pairs_are) {
  results *r = made(6);
  summary s;
  verdicts v;
  ASSERT_OK(summary_init(&s, r, &err));
  ASSERT_OK(verdicts_init(&v, &s, &err));
  CU_ASSERT_STRING_EQUAL(r->algorithms[v.of[0].leader->cell->algorithm], "gepo");
  CU_ASSERT_EQUAL_FATAL(v.of[0].n_pairs, 2);
  const verdict_pair *gspo = &v.of[0].pair[0], *grpo = &v.of[0].pair[1];
  CU_ASSERT_STRING_EQUAL(r->algorithms[gspo->algorithm], "gspo");
  CU_ASSERT(s.cells[0].last.high > s.cells[2].last.low); /* the intervals overlap */
  CU_ASSERT(grpo->pairs == 6 && grpo->improvement == 1 && grpo->is_distinguishable);
  ASSERT_CLOSE(grpo->difference.value, 0.05, 1e-12);
  ASSERT_CLOSE(grpo->difference.low, 0.05, 1e-12);
  /* As sure, and less than the margin. */
  CU_ASSERT(gspo->improvement == 1 && gspo->difference.low > 0 && !gspo->is_distinguishable);
  CU_ASSERT(verdict_reaches(&v, &s.cells[2]) && verdict_reaches(&v, &s.cells[1]) &&
            !verdict_reaches(&v, &s.cells[0]));
  verdicts_fini(&v);
  summary_fini(&s);
  results_free(r);
}

TEST(four_seeds_distinguish_nothing_and_have_a_range) {
  results *r = made(4);
  summary s;
  verdicts v;
  ASSERT_OK(summary_init(&s, r, &err));
  ASSERT_OK(verdicts_init(&v, &s, &err));
  CU_ASSERT_FALSE(v.of[0].pair[1].is_distinguishable);
  ASSERT_CLOSE(s.cells[2].last.low, 0.3, 1e-12);
  ASSERT_CLOSE(s.cells[2].last.high, 0.6, 1e-12);
  table *t = table_document();
  verdicts_report(t, &v);
  char *text = written_table(t, TABLE_AS_TEXT);
  cJSON *json = read_table(t);
  table_free(t);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "too few seeds"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "0.45 *"));
  const cJSON *rows = member_at(json, "verdict"), *last = cJSON_GetArrayItem(rows, 1);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(rows), 2);
  CU_ASSERT_STRING_EQUAL(text_at(last, "algorithm"), "grpo");
  CU_ASSERT_EQUAL(number_at(last, "probability_of_improvement"), 1);
  CU_ASSERT(cJSON_IsFalse(member_at(last, "distinguishable")));
  cJSON_Delete(json);
  free(text);
  verdicts_fini(&v);
  summary_fini(&s);
  results_free(r);
}
