/* What runs are expected to take, against sums done by hand. */
#include "experiments/sweep/forecast.h"
#include "tests/support/suite.h"

SUITE("sweep: costs");

TEST(a_kind_is_an_algorithm_at_a_setting_whatever_its_rate) {
  costs *c = costs_new();
  costs_kind *plain = costs_of(c, "gepo", "{\"cluster.max_delay\":600}");
  CU_ASSERT_PTR_EQUAL(plain, costs_of(c, "gepo", "{\"cluster.max_delay\":600}"));
  CU_ASSERT_PTR_EQUAL(plain,
                      costs_of(c, "gepo", "{\"cluster.max_delay\":600,\"optimizer.lr\":0.3}"));
  CU_ASSERT_PTR_EQUAL(costs_of(c, "gepo", "{}"), costs_of(c, "gepo", "{\"optimizer.lr\":1e-05}"));
  CU_ASSERT_PTR_EQUAL(costs_of(c, "gepo", "{\"a\":1,\"steps\":5}"),
                      costs_of(c, "gepo", "{\"a\":1,\"optimizer.lr\":0.3,\"steps\":5}"));
  CU_ASSERT_PTR_NOT_EQUAL(plain, costs_of(c, "gepo", "{\"cluster.max_delay\":60}"));
  CU_ASSERT_PTR_NOT_EQUAL(plain, costs_of(c, "grpo", "{\"cluster.max_delay\":600}"));
  costs_free(c);
}

TEST(what_is_not_known_is_taken_from_the_algorithm_then_from_all_runs) {
  costs *c = costs_new();
  costs_kind *near = costs_of(c, "gepo", "{\"d\":0}"), *far = costs_of(c, "gepo", "{\"d\":9}"),
             *other = costs_of(c, "grpo", "{\"d\":0}");
  for (int i = 0; i < 3; ++i) costs_expect(near, 10);
  for (int i = 0; i < 2; ++i) costs_expect(far, 10);
  costs_expect(other, 10);
  CU_ASSERT(isnan(costs_run_s(near)) && isnan(costs_left_s(c)) && isnan(costs_wait_s(c, 2)));
  costs_ended(near, 2, 0);
  costs_ended(near, 4, 0);
  ASSERT_CLOSE(costs_run_s(near), 3, 1e-12);
  ASSERT_CLOSE(costs_run_s(far), 3, 1e-12);
  ASSERT_CLOSE(costs_run_s(other), 3, 1e-12);
  costs_ended(far, 12, 0);
  ASSERT_CLOSE(costs_run_s(far), 12, 1e-12);
  ASSERT_CLOSE(costs_run_s(other), 6, 1e-12); /* (2 + 4 + 12) / 3 */
  ASSERT_CLOSE(costs_left_s(c), 3 + 12 + 6, 1e-12);
  ASSERT_CLOSE(costs_spent_s(c), 18, 1e-12);
  CU_ASSERT_EQUAL(costs_runs(c), 3);
  ASSERT_CLOSE(costs_wait_s(c, 1), 21, 1e-12);
  ASSERT_CLOSE(costs_wait_s(c, 16), 12, 1e-12); /* the longest run */
  costs_ended(far, 1e9, 1);                     /* failed: neither left nor learned from */
  ASSERT_CLOSE(costs_left_s(c), 3 + 6, 1e-12);
  costs_ended(near, 3, 0);
  costs_ended(other, 1, 0);
  ASSERT_CLOSE(costs_wait_s(c, 4), 0, 0);
  costs_free(c);
}

/* Work done and work left are in one unit, so an earlier sweep on a busy machine does not change
 * their ratio. */
TEST(an_earlier_load_of_the_machine_does_not_distort_what_is_left) {
  costs *c = costs_new();
  costs_kind *k = costs_of(c, "gepo", "{}");
  for (int i = 0; i < 5; ++i) costs_learn(k, 60, 10);
  ASSERT_CLOSE(costs_spent_s(c), 0, 0);
  for (int i = 0; i < 10; ++i) costs_expect(k, 10);
  costs_ended(k, 20, 0);
  costs_ended(k, 20, 0);
  ASSERT_CLOSE(costs_left_s(c) / costs_spent_s(c), 4, 1e-12);
  costs_free(c);
}

/* 12 seconds for 20 updates, earlier: a tenth of that for 2. */
TEST(runs_of_other_lengths_are_compared_by_the_update) {
  costs *c = costs_new();
  costs_kind *k = costs_of(c, "gepo", "{}");
  costs_learn(k, 12, 20);
  costs_expect(k, 2);
  ASSERT_CLOSE(costs_left_s(c), 1.2, 1e-12);
  costs_expect(k, 2);
  ASSERT_CLOSE(costs_left_s(c), 2.4, 1e-12);
  costs_kind *other = costs_of(c, "gepo", "{\"steps\":9}");
  costs_expect(other, 0); /* of an unknown number of updates: as that run */
  ASSERT_CLOSE(costs_left_s(c), 2.4 + 12, 1e-12);
  costs_expect_nothing(c);
  ASSERT_CLOSE(costs_left_s(c), 0, 0);
  costs_free(c);
}
