/* Scores by evaluation set: stored, exported, merged, checked, repaired and salvaged; and runs that
 * have none are the records they were before. */
#include "tests/support/run_parts.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("core: scores by evaluation set");

enum { SETS = 2, EVALS = 2 };

/* A run with the scores of two sets, of which the second has halves. */
static void put(store *s, int ordinal, double score) {
  static sample_run sample;
  set_eval_record sets[EVALS * 4];
  size_t n = 0;
  gl_error err = {0};
  sample_run_init(&sample, ordinal, 4);
  for (int64_t e = 0; e < EVALS; ++e) {
    sets[n++] = (set_eval_record){10 * e, 5, score + 0.125 * (double)e, 0, 0, "own"};
    for (int32_t half = 0; half < 3; ++half)
      sets[n++] = (set_eval_record){10 * e, 5, half == 2 ? NAN : 0.5, 1, half, "a, \"b\""};
  }
  sample.run.set_evals = sets;
  sample.run.n_set_evals = n;
  if (store_put_run(s, &sample.run, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(err.status, GL_OK);
}

static const run_part part = {.table = "set_evals",
                              .sum = "sum_set_evals",
                              .disagrees = "its records in the table set_evals differ",
                              .records = EVALS * 4,
                              .put = put};

TEST(scores_by_set_are_exported_in_order) {
  char *text = part_exported(&part);
  const char *head = strstr(text, ",step,eval_set,half,time_s,eval_score\n");
  CU_ASSERT_PTR_NOT_NULL_FATAL(head);
  const char *first = strstr(text, ",0,own,0,5,0.25\n"),
             *whole = strstr(text, ",0,\"a, \"\"b\"\"\",0,5,0.5\n"),
             *half = strstr(text, ",0,\"a, \"\"b\"\"\",2,5,\n"),
             *later = strstr(text, ",10,own,0,5,0.375\n"),
             *other = strstr(text, ",10,own,0,5,0.625\n");
  CU_ASSERT(first && whole && half && later && other);
  CU_ASSERT(first < whole && whole < half && half < later && later < other);
  free(text);
}

TEST(runs_without_sets_have_no_sum_of_them) {
  check_runs_without_part_have_no_sum(&part);
}

TEST(damage_is_found_by_those_who_read_and_by_check) {
  static const char *const damages[] = {
      "UPDATE set_evals SET eval_score = 0.75 WHERE step = 10 AND place = 0",
      "UPDATE set_evals SET eval_set = 'other' WHERE place = 0",
      "UPDATE set_evals SET half = 2 WHERE place = 0",
      "DELETE FROM set_evals WHERE place = 1 AND half = 2 AND step = 0",
      "DELETE FROM set_evals",
      "UPDATE set_evals SET eval_set = printf('%.70c', 'x')",
      "INSERT INTO set_evals SELECT id, 0, 0, 7, 'new', 0, 0 FROM runs WHERE ordinal = 2"};
  check_damage_of_part_is_found(&part, damages, sizeof damages / sizeof *damages);
}

TEST(studies_are_merged_with_their_sets_and_disagreement_is_refused) {
  check_part_is_merged(&part);
}

TEST(a_salvaged_study_has_its_sets) {
  check_part_is_salvaged(&part);
}
