/* What the settings of a study are called, headings and titles, and their order. */
#include "analysis/results.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("analysis: results");

/* A study with one run for each of swept[n]. */
static results *made(const char *const *swept, size_t n) {
  results *r = results_new("made");
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (size_t i = 0; i < n; i++) {
    const run_record run = {
        .algorithm = "grpo", .swept = swept[i], .seed = 1, .status = RUN_DONE, .reason = ""};
    ASSERT_OK(results_add(r, &run, &err));
  }
  ASSERT_OK(results_arrange(r, &err));
  CU_ASSERT_EQUAL_FATAL(r->n_groups, n);
  return r;
}

/* The preset follows from the delay; the step time never varies. Without a delay the preset stands
 * in its place. */
TEST(a_title_names_no_more_than_tells_settings_apart) {
  static const char *const swept[] = {
      "{\"cluster.preset\":\"sync\",\"cluster.learner.step\":1,\"optimizer.lr\":0.1}",
      "{\"cluster.preset\":\"fifo\",\"cluster.delay\":3,\"cluster.learner.step\":1,\"optimizer."
      "lr\":0.1}",
      "{\"cluster.preset\":\"fifo\",\"cluster.delay\":63,\"cluster.learner.step\":1,\"optimizer."
      "lr\":0.1}",
      "{\"cluster.preset\":\"sync\",\"cluster.learner.step\":1,\"optimizer.lr\":0.2}",
      "{\"cluster.preset\":\"fifo\",\"cluster.delay\":63,\"cluster.learner.step\":1,\"optimizer."
      "lr\":0.2}"};
  results *r = made(swept, 5);
  CU_ASSERT_STRING_EQUAL(r->groups[0].title, "preset sync, learning rate 0.1");
  CU_ASSERT_STRING_EQUAL(r->groups[1].title, "weight delay 3 s, learning rate 0.1");
  CU_ASSERT_STRING_EQUAL(r->groups[4].title, "weight delay 63 s, learning rate 0.2");
  CU_ASSERT_STRING_EQUAL(r->groups[1].heading, "weight delay 3 s, preset fifo, learning rate 0.1");
  arena memory = {0};
  const char **titles = results_titles(&memory, r, results_axis(r, "optimizer.lr"));
  CU_ASSERT_PTR_NOT_NULL_FATAL(titles);
  CU_ASSERT_STRING_EQUAL(titles[0], "preset sync");
  CU_ASSERT_STRING_EQUAL(titles[3], "preset sync");
  CU_ASSERT_STRING_EQUAL(titles[2], "weight delay 63 s");
  arena_fini(&memory);
  results_free(r);
}

TEST(settings_that_differ_from_a_base_are_called_by_the_difference) {
  static const char *const swept[] = {
      "{\"cluster.window\":64,\"cluster.delay\":0,\"train.group_size\":8}",
      "{\"cluster.window\":4,\"cluster.delay\":0,\"train.group_size\":8}",
      "{\"cluster.window\":64,\"cluster.delay\":60,\"train.group_size\":8}",
      "{\"cluster.window\":64,\"cluster.delay\":0,\"train.group_size\":2}"};
  results *r = made(swept, 4);
  CU_ASSERT_STRING_EQUAL(r->groups[0].title, "base setting");
  CU_ASSERT_STRING_EQUAL(r->groups[1].title, "window 4 updates");
  CU_ASSERT_STRING_EQUAL(r->groups[2].title, "weight delay 60 s");
  CU_ASSERT_STRING_EQUAL(r->groups[3].title, "group size 2");
  results_free(r);
}

TEST(crossed_settings_are_named_by_all_that_varies) {
  static const char *const swept[] = {"{\"cluster.window\":64,\"cluster.delay\":0}",
                                      "{\"cluster.window\":4,\"cluster.delay\":0}",
                                      "{\"cluster.window\":64,\"cluster.delay\":60}",
                                      "{\"cluster.window\":4,\"cluster.delay\":60}"};
  results *r = made(swept, 4);
  CU_ASSERT_STRING_EQUAL(r->groups[0].title, "weight delay 0 s, window 4 updates");
  CU_ASSERT_STRING_EQUAL(r->groups[1].title, r->groups[1].heading);
  results_free(r);
  r = made(swept, 1); /* of one setting all that a sweep named */
  CU_ASSERT_STRING_EQUAL(r->groups[0].title, "weight delay 0 s, window 64 updates");
  results_free(r);
}

static void check_headings(const char *const *swept, const char *const *headings, size_t n) {
  results *r = made(swept, n);
  for (size_t g = 0; g < n; g++) CU_ASSERT_STRING_EQUAL(r->groups[g].heading, headings[g]);
  results_free(r);
}

/* Runs of a sweep that was extended come in the order of both sweeps. */
TEST(numbers_of_an_extended_sweep_ascend) {
  static const char *const one[] = {"{\"cluster.window\":2}", "{\"cluster.window\":4}",
                                    "{\"cluster.window\":128}", "{\"cluster.window\":8}"};
  static const char *const one_sorted[] = {"window 2 updates", "window 4 updates",
                                           "window 8 updates", "window 128 updates"};
  check_headings(one, one_sorted, 4);
  /* The preset varies faster than the window, though its path is before that one's; words stay. */
  static const char *const two[] = {"{\"cluster.window\":2,\"cluster.preset\":\"sync\"}",
                                    "{\"cluster.window\":2,\"cluster.preset\":\"fifo\"}",
                                    "{\"cluster.window\":128,\"cluster.preset\":\"sync\"}",
                                    "{\"cluster.window\":8,\"cluster.preset\":\"sync\"}",
                                    "{\"cluster.window\":8,\"cluster.preset\":\"fifo\"}",
                                    "{\"cluster.window\":128,\"cluster.preset\":\"fifo\"}"};
  static const char *const two_sorted[] = {
      "preset sync, window 2 updates",   "preset fifo, window 2 updates",
      "preset sync, window 8 updates",   "preset fifo, window 8 updates",
      "preset sync, window 128 updates", "preset fifo, window 128 updates"};
  check_headings(two, two_sorted, 6);
}

/* What is no whole grid keeps its order: the base of a design stays first. */
TEST(settings_of_a_design_stay_as_they_came) {
  static const char *const swept[] = {"{\"cluster.window\":64,\"cluster.delay\":60}",
                                      "{\"cluster.window\":4,\"cluster.delay\":60}",
                                      "{\"cluster.window\":64,\"cluster.delay\":0}"};
  static const char *const headings[] = {"weight delay 60 s, window 64 updates",
                                         "weight delay 60 s, window 4 updates",
                                         "weight delay 0 s, window 64 updates"};
  check_headings(swept, headings, 3);
}
