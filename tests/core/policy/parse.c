/* Algorithms from recipes: overrides, and errors that name the place. */
#include "core/policy/algorithm.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("policy: algorithms in recipes");

static gl_status parse(const char *yaml, policy_algorithm *algorithm, gl_error *err) {
  cfg_doc *doc = NULL;
  memset(err, 0, sizeof *err);
  CU_ASSERT_EQUAL_FATAL(cfg_load_text(&doc, yaml, strlen(yaml), "r.yaml", err), GL_OK);
  gl_status status = policy_algorithm_parse(algorithm, cfg_find(cfg_root(doc), "algorithm"), err);
  cfg_free(doc);
  return status;
}

TEST(a_map_changes_fields_of_its_base) {
  policy_algorithm algorithm;
  ASSERT_OK(
      parse("algorithm: {base: gepo, clip: none, baseline: leave_one_out}\n", &algorithm, &err));
  CU_ASSERT_EQUAL(algorithm.clip, CLIP_NONE);
  CU_ASSERT_EQUAL(algorithm.baseline, BASELINE_LEAVE_ONE_OUT);
  CU_ASSERT_STRING_EQUAL(algorithm.base, "gepo");
}

TEST(a_gate_is_a_map_within_the_map) {
  policy_algorithm algorithm;
  ASSERT_OK(parse("algorithm: {base: gspo, gate: {negative_below: 0.8, scope: microbatch}}\n",
                  &algorithm, &err));
  CU_ASSERT_EQUAL(algorithm.gate.negative_below, 0.8);
  CU_ASSERT_EQUAL(algorithm.gate.scope, SCOPE_MICROBATCH);
  CU_ASSERT_EQUAL(algorithm.gate.log_prob, LOG_PROB_MEAN);
  CU_ASSERT(isinf(algorithm.gate.positive_above));
  CU_ASSERT_STRING_EQUAL(algorithm.name, "gspo(gate.negative_below=0.8, gate.scope=microbatch)");
}

TEST(wrong_rows_are_refused_with_their_place) {
  static const char *const wrong[][2] = {
      {"algorithm: gepoo\n", "gepo"},
      {"algorithm: {base: gepo, clipp: none}\n", "clip"},
      {"algorithm: {base: gepo, clip: never}\n", "ppo"},
      {"algorithm: {base: grpo, eps_low: -1}\n", "eps_low"},
      {"algorithm: {clip: none}\n", "algorithm.base=grpo on the command line, {base: grpo"},
      {"algorithm: [gepo]\n", "list"},
      {"algorithm: {base: gepo, denominator: exact, log_prob: mean}\n", "denominator: exact"},
      {"algorithm: {base: reinforce, ratio_gradient: true}\n", "ratio_gradient"},
      {"algorithm: {base: vespo, tis_level: sequence}\n", "clip: gamma"},
      {"algorithm: {base: bnpo, baseline: none}\n", "scale: beta"},
      {"algorithm: {base: grpo, mis_level: token_geometric}\n", "mis_level"},
      {"algorithm: {base: grpo, gate: 0.8}\n", "'algorithm.gate' is"},
      {"algorithm: {base: grpo, gate: {negative_blow: 0.8}}\n", "negative_below"},
      {"algorithm: {base: grpo, gate: {of: group}}\n", "group_expectation"},
      {"algorithm: {base: grpo, gate: {of: sampler, scope: microbatch}}\n", "gate.scope"},
      {"algorithm: {base: disco, gate: {negative_below: 1}}\n", "gate"},
      {"algorithm: {base: grpo, mixture_anneal: true}\n", "token_mixture"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    policy_algorithm algorithm;
    gl_error err;
    CU_ASSERT_EQUAL(parse(wrong[i][0], &algorithm, &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "r.yaml:1:"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i][1]));
    if (strstr(err.text, wrong[i][1]) == NULL) fprintf(stderr, "%s\n", err.text);
  }
}

TEST(every_published_row_is_valid_and_prints) {
  for (size_t i = 0; i < policy_algorithms_count(); i++) {
    char text[POLICY_FIELD_TEXT_SIZE];
    ASSERT_OK(policy_algorithm_check(policy_algorithms_at(i), &err));
    for (size_t k = 0; k < policy_fields_count(); k++)
      CU_ASSERT(strlen(policy_algorithm_field(policy_algorithms_at(i), k, text)) > 0);
    CU_ASSERT(strlen(policy_algorithms_info(i)->source) > 0);
  }
}
