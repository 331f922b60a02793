/* Fields that do not go together, and choices that hold none of their values, are refused. */
#include "core/policy/policy.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("policy: what is refused");

static int *choice_at(policy_algorithm *algorithm, const policy_field *f) {
  return (int *)(void *)((char *)algorithm + f->offset);
}

/* A group of two responses of one token. */
static gl_status evaluate(const policy_algorithm *algorithm, policy_workspace *ws, double weight[2],
                          gl_error *err) {
  static const size_t group[] = {0, 2}, token[] = {0, 1, 2};
  static const double reward[] = {1, 0}, logp[] = {-1, -2}, logq[] = {-1.5, -1.2};
  const policy_input in = {.n_groups = 1,
                           .n_responses = 2,
                           .n_tokens = 2,
                           .group_start = group,
                           .token_start = token,
                           .reward = reward,
                           .logp = logp,
                           .logq = logq};
  policy_output out = {.weight = weight, .skip_metrics = 1};
  return policy_evaluate(algorithm, &in, &out, ws, err);
}

/* Not the weights of the call before, which are still in the workspace. */
TEST(a_choice_with_none_of_its_values_is_refused_by_name) {
  policy_workspace *ws = policy_workspace_new();
  for (size_t i = 0; i < policy_fields_count(); i++) {
    const policy_field *f = policy_fields_at(i);
    if (f->kind != POLICY_FIELD_CHOICE) continue;
    const int wrong[] = {-1, f->n_choices, 1000};
    for (size_t k = 0; k < 3; k++) {
      policy_algorithm algorithm = *policy_algorithms_find("gepo");
      double weight[2];
      gl_error err = {0};
      CU_ASSERT_EQUAL(evaluate(&algorithm, ws, weight, &err), GL_OK);
      *choice_at(&algorithm, f) = wrong[k];
      CU_ASSERT_EQUAL(evaluate(&algorithm, ws, weight, &err), GL_EINPUT);
      CU_ASSERT_PTR_NOT_NULL(strstr(err.text, f->name));
    }
  }
  policy_workspace_free(ws);
}

TEST(every_ratio_is_described) {
  for (int r = 0; r < RATIO_COUNT; r++) {
    const policy_ratio_info *about = policy_ratio_about((policy_ratio)r);
    CU_ASSERT_PTR_NOT_NULL_FATAL(about);
    CU_ASSERT(strlen(about->name) > 0 && strlen(about->meaning) > 0);
  }
  CU_ASSERT_PTR_NULL(policy_ratio_about((policy_ratio)RATIO_COUNT));
}

/* What the table says of a ratio is what policy_evaluate() does: of two responses, the weight of
 * the first moves with the second's probabilities where, and only where, the ratio couples its
 * group. */
TEST(a_ratio_couples_its_group_where_the_table_says_so) {
  for (int r = 0; r < RATIO_COUNT; r++)
    for (int d = DENOMINATOR_SELF_NORMALISED; d <= DENOMINATOR_EXPECTED_P; d++) {
      static const size_t group[] = {0, 2}, token[] = {0, 2, 3};
      static const double reward[] = {1, 0}, exact[] = {-0.7};
      double logp[] = {-1, -0.3, -2}, logq[] = {-1.5, -0.4, -1.2}, weight[2][3];
      policy_algorithm algorithm = *policy_algorithms_find("reinforce");
      policy_workspace *ws = policy_workspace_new();
      algorithm.ratio = (policy_ratio)r;
      algorithm.denominator = (policy_denominator)d;
      for (int moved = 0; moved < 2; moved++) {
        const policy_input in = {.n_groups = 1,
                                 .n_responses = 2,
                                 .n_tokens = 3,
                                 .group_start = group,
                                 .token_start = token,
                                 .reward = reward,
                                 .logp = logp,
                                 .logq = logq,
                                 .log_denominator = exact};
        policy_output out = {.weight = weight[moved], .skip_metrics = 1};
        ASSERT_OK(policy_evaluate(&algorithm, &in, &out, ws, &err));
        logp[2] -= 0.5;
        logq[2] -= 0.1;
      }
      CU_ASSERT_EQUAL(weight[0][0] != weight[1][0], policy_couples_group(&algorithm));
      const int own = policy_ratio_about(algorithm.ratio)->unit == RATIO_OF_RESPONSE;
      CU_ASSERT(!own || weight[0][0] == weight[0][1]);
      policy_workspace_free(ws);
    }
}

/* A = (r - r) / eps = 0, or r / eps without a deviation: such a run would end without a word. */
TEST(groups_of_one_are_refused_where_responses_are_compared) {
  static const char *const compare[] = {"grpo", "dr_grpo", "is", "gepo", "bnpo", "disco"};
  gl_error err = {0};
  for (size_t i = 0; i < sizeof compare / sizeof compare[0]; i++) {
    const policy_algorithm *a = policy_algorithms_find(compare[i]);
    CU_ASSERT_EQUAL(policy_algorithm_check_group_size(a, 1, &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "group_size to 2 or more"));
    CU_ASSERT_EQUAL(policy_algorithm_check_group_size(a, 2, &err), GL_OK);
  }
  policy_algorithm scaled = *policy_algorithms_find("topr");
  CU_ASSERT_EQUAL(policy_algorithm_check_group_size(&scaled, 1, &err), GL_OK);
  scaled.scale = SCALE_BATCH_STD;
  CU_ASSERT_EQUAL(policy_algorithm_check_group_size(&scaled, 1, &err), GL_OK);
  scaled.scale = SCALE_GROUP_STD;
  err = (gl_error){0};
  CU_ASSERT_EQUAL(policy_algorithm_check_group_size(&scaled, 1, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "scale: group_std"));
}
