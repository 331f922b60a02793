/* One-at-a-time designs: their settings, their overrides, and what is refused. */
#include "experiments/recipe/designs.h"

#include "tests/support/recipes.h"
#include "tests/support/suite.h"

#include <string.h>

static gl_status expand(cfg_doc **doc, const char *sweep, const char *override, gl_error *err) {
  char text[1024];
  snprintf(text, sizeof text, "tune: {lr: [1, 2], seeds: [9]}\nsweep:\n  algorithm: [grpo]\n%s\n",
           sweep);
  const gl_status status = recipe_resolved(doc, text, override, err);
  return status == GL_OK ? one_at_a_time_expand(*doc, err) : status;
}

/* The base comes first; a time has its unit taken off as anywhere else. */
static void every_setting_differs_from_the_base_in_one_field(void) {
  static const char *const paths[] = {"algorithm.kl_coef", "cluster.max_delay",
                                      "sampling.temperature"};
  static const double expected[][3] = {{8, 0, 1},   {4, 0, 1},    {16, 0, 1},
                                       {8, 600, 1}, {8, 0, 0.25}, {8, 0, 0.5}};
  cfg_doc *doc = NULL;
  ASSERT_OK(expand(&doc,
                   "  one_at_a_time: {algorithm.kl_coef: [8, 4, 16], "
                   "cluster.max_delay: [0, 10m], sampling.temperature: [2, 3]}",
                   "sweep.one_at_a_time.sampling.temperature=[1, 0.25, 0.5]", &err));
  const cfg_node *list = cfg_find(cfg_find(cfg_root(doc), "sweep"), "one_at_a_time");
  CU_ASSERT_EQUAL_FATAL(cfg_size(list), sizeof expected / sizeof expected[0]);
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; ++i) {
    CU_ASSERT_EQUAL(cfg_size(cfg_at(list, i)), 3);
    for (size_t k = 0; k < 3; ++k)
      CU_ASSERT_EQUAL(listed_number(list, i, paths[k]), expected[i][k]);
  }
  cfg_free(doc);
}

static void what_is_no_design_is_refused_by_name(void) {
  static const struct {
    const char *sweep, *says;
  } wrong[] = {
      {"  one_at_a_time: {}", "needs fields and their values"},
      {"  one_at_a_time: [1, 2]", "needs fields and their values"},
      {"  one_at_a_time: {steps: [1]}", "its base value and one or more others"},
      {"  one_at_a_time: {steps: 7}", "its base value and one or more others"},
      {"  one_at_a_time: {seed: [1, 2]}", "an axis of its own"},
      {"  one_at_a_time: {algorithm: [grpo, gepo]}", "an axis of its own"},
      {"  one_at_a_time: {optimizer: [{lr: 1}, {lr: 2}]}", "tune chooses it"},
      {"  one_at_a_time: {steps: [1, 2]}\n  steps: [3, 4]", "sweep.steps lists its values"},
      {"  one_at_a_time: {algorithm.clip: [ppo, none]}\n  algorithm.clip: [ppo]",
       "sweep.algorithm.clip lists its values"},
      {"  one_at_a_time: {train: [{}, {}], train.groups: [1, 2]}", "one inside the other"},
      {"  one_at_a_time: {steps: [1, 2]}\n  random: {draws: 2}", "keep one"},
      {"  one_at_a_time: {steps: [1, 2]}\n  factorial: {factors: {}}", "keep one"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    cfg_doc *doc = NULL;
    gl_error err = {0};
    CU_ASSERT_EQUAL(expand(&doc, wrong[i].sweep, NULL, &err), GL_EINPUT);
    CU_ASSERT(strstr(err.text, wrong[i].says) != NULL && strstr(err.text, "r.yaml:4") != NULL);
    if (strstr(err.text, wrong[i].says) == NULL)
      fprintf(stderr, "%s\n  says: %s\n", wrong[i].sweep, err.text);
    cfg_free(doc);
  }
}

SUITE(recipe_one_at_a_time, "cli: one-at-a-time designs",
      TEST(every_setting_differs_from_the_base_in_one_field),
      TEST(what_is_no_design_is_refused_by_name));
