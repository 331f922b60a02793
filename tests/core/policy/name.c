/* Names under which algorithms are shown: what was changed, and none that misleads. */
#include "core/policy/algorithm.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("policy: names of algorithms");

static gl_status parse(const char *value, policy_algorithm *algorithm, gl_error *err) {
  char yaml[1024];
  cfg_doc *doc = NULL;
  memset(err, 0, sizeof *err);
  snprintf(yaml, sizeof yaml, "algorithm: %s\n", value);
  CU_ASSERT_EQUAL_FATAL(cfg_load_text(&doc, yaml, strlen(yaml), "r.yaml", err), GL_OK);
  gl_status status = policy_algorithm_parse(algorithm, cfg_find(cfg_root(doc), "algorithm"), err);
  cfg_free(doc);
  return status;
}

TEST(a_changed_algorithm_is_shown_with_what_was_changed) {
  static const char *const shown[][2] = {
      {"gepo", "gepo"},
      {"{base: gepo}", "gepo"},
      {"{base: gepo, log_prob: sum, clip: ppo}", "gepo"}, /* both are gepo's own */
      {"{base: gepo, clip: none}", "gepo(clip=none)"},
      {"{base: gepo, log_prob: mean}", "gepo(log_prob=mean)"},
      {"{clip: none, denominator: mean, base: gepo}", "gepo(denominator=mean, clip=none)"},
      {"{base: grpo, eps_high: 0.28}", "grpo(eps_high=0.28)"},
      {"{base: grpo, std_ddof: 0, drop_equal: true}", "grpo(std_ddof=0, drop_equal=true)"},
      {"{base: gepo, clip: none, name: mine}", "mine"},
      {"{base: gepo, name: gepo}", "gepo"},
  };
  for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
    policy_algorithm algorithm;
    ASSERT_OK(parse(shown[i][0], &algorithm, &err));
    CU_ASSERT_STRING_EQUAL(algorithm.name, shown[i][1]);
  }
}

TEST(an_axis_of_a_sweep_is_not_part_of_the_name) {
  static const char *const axes[] = {"eps_low", "kappa"};
  policy_algorithm algorithm;
  ASSERT_OK(parse("{base: grpo, eps_low: 0.1, eps_high: 0.3}", &algorithm, &err));
  ASSERT_OK(policy_algorithm_set_name(&algorithm, axes, 2, &err));
  CU_ASSERT_STRING_EQUAL(algorithm.name, "grpo(eps_high=0.3)");
  ASSERT_OK(parse("{base: grpo, eps_low: 0.1, name: mine}", &algorithm, &err));
  ASSERT_OK(policy_algorithm_set_name(&algorithm, axes, 2, &err));
  CU_ASSERT_STRING_EQUAL(algorithm.name, "mine");
}

TEST(names_that_mislead_are_refused_with_their_place) {
  static const char *const wrong[][3] = {
      {"{base: gepo, name: gepo, clip: none}", "r.yaml:1:31", "published"},
      {"{base: grpo, name: gspo}", "r.yaml:1:31", "'gspo'"},
      {"{base: grpo, name: ''}", "r.yaml:1:31", "empty"},
      {"{base: mhpo, tanh_scale: 1.0000000000000002, hazard_power_up: 1.0000000000000002, "
       "hazard_width_up: 1.0000000000000002, hazard_power_down: 1.0000000000000002}",
       "r.yaml:1:", "give it a `name`"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    policy_algorithm algorithm;
    gl_error err;
    CU_ASSERT_EQUAL(parse(wrong[i][0], &algorithm, &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i][1]));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i][2]));
    if (strstr(err.text, wrong[i][2]) == NULL) fprintf(stderr, "%s\n", err.text);
  }
}
