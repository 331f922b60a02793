/* The self-test of gepolab doctor: it passes here, says what it compared, and gives every speed. */
#include "experiments/doctor/doctor.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: doctor's self-test");

static const bench_number *speed(const self_test *t, const char *key) {
  for (size_t i = 0; i < t->speeds.n; ++i)
    if (strcmp(t->speeds.numbers[i].key, key) == 0) return &t->speeds.numbers[i];
  return NULL;
}

TEST(all_parts_pass_and_are_timed) {
  static const char *const keys[] = {"updates_per_s", "gepo_tokens_per_s", "lab_exact_groups_per_s",
                                     "llm_64x2_train_tokens_per_s"};
  self_test *t = malloc(sizeof *t);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  self_test_run(t);
  CU_ASSERT_EQUAL(t->n_checks, 3);
  CU_ASSERT(self_test_passed(t));
  for (size_t i = 0; i < t->n_checks; ++i)
    if (!t->checks[i].passed) fprintf(stderr, "%s: %s\n", t->checks[i].name, t->checks[i].detail);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i) {
    const bench_number *number = speed(t, keys[i]);
    CU_ASSERT_PTR_NOT_NULL_FATAL(number);
    /* A machine that others use may come to the end of its ten seconds first. */
    CU_ASSERT(number->rate.n == 0 || number->rate.median > 0);
  }
  free(t);
}

TEST(one_failure_fails_all) {
  self_test t = {.checks = {{"a", 1, ""}, {"b", 1, ""}}, .n_checks = 2};
  CU_ASSERT(self_test_passed(&t));
  t.checks[1].passed = 0;
  CU_ASSERT(!self_test_passed(&t));
}
