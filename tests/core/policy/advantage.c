/* Advantages in closed form, those that a caller gives, and terms that look at advantages. */
#include "core/policy/policy.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

SUITE("policy: advantages");

enum { GROUPS = 2, RESPONSES = 5, TOKENS = 10 };

static const size_t groups[] = {0, 3, RESPONSES};
static const size_t tokens[] = {0, 1, 4, 6, 9, TOKENS};
static const double rewards[] = {1, 0, 3, 2, 0};
static const double logq[] = {-1, -0.4, -2, -0.7, -0.2, -1.3, -0.9, -0.5, -1.1, -0.3};
static const double logp[] = {-0.8, -0.6, -1.9, -0.9, -0.3, -1, -1.4, -0.6, -1.3, -0.2};
static const double entropy[] = {0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.6, 0.4, 0.5, 1};

typedef struct result {
  double advantage[RESPONSES], coefficient[TOKENS], baseline[GROUPS], scale[GROUPS];
  policy_output out;
  gl_status status;
  gl_error err;
} result;

static policy_input input(void) {
  return (policy_input){.n_groups = GROUPS,
                        .n_responses = RESPONSES,
                        .n_tokens = TOKENS,
                        .group_start = groups,
                        .token_start = tokens,
                        .reward = rewards,
                        .logp = logp,
                        .logq = logq};
}

static result evaluate(const policy_algorithm *algorithm, const policy_input *in) {
  result r;
  memset(&r, 0, sizeof r);
  r.out.advantage = r.advantage;
  r.out.coefficient = r.coefficient;
  r.out.baseline = r.baseline;
  r.out.scale = r.scale;
  policy_workspace *ws = policy_workspace_new();
  r.status = policy_evaluate(algorithm, in, &r.out, ws, &r.err);
  policy_workspace_free(ws);
  return r;
}

static void are(const double *have, const double *want, size_t n) {
  for (size_t i = 0; i < n; i++) CU_ASSERT_DOUBLE_EQUAL(have[i], want[i], 1e-12);
}

/* Lengths 1, 3, 2 and 3, 1: baselines (1 + 0 + 6) / 6 and 6 / 4. */
TEST(opo_weighs_rewards_by_lengths) {
  const policy_input in = input();
  const double want[] = {1 - 7 / 6.0, -7 / 6.0, 3 - 7 / 6.0, 0.5, -1.5};
  const result r = evaluate(policy_algorithms_find("opo"), &in);
  are(r.advantage, want, RESPONSES);
}

/* Three of five rewards are not 0: alpha is 5/3. */
TEST(gpg_grows_as_rewards_become_rare) {
  const policy_input in = input();
  const double a = 5.0 / 3, third = 4.0 / 3;
  const double want[] = {a * (1 - third), -a * third, a * (3 - third), a, -a};
  const result r = evaluate(policy_algorithms_find("gpg"), &in);
  are(r.advantage, want, RESPONSES);
}

/* Rewards of which nothing follows about other responses: of the first group, or of the batch. */
TEST(a_scale_that_only_guards_against_division_by_zero_is_unknown) {
  static const double first[] = {1, 1, 1, 0, 1}, none[] = {0, 0, 0, 1, 0}, all[] = {1, 1, 1, 1, 1};
  static const struct {
    policy_scale scale;
    const double *reward;
    bool of_batch;
  } cases[] = {{SCALE_GROUP_STD, first, false}, {SCALE_BETA, first, false},
               {SCALE_GROUP_MEAN, none, false}, {SCALE_BATCH_STD, all, true},
               {SCALE_REWARD_STD, all, true},   {SCALE_TOKEN_STD, all, true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    policy_algorithm a = *policy_algorithms_find("dr_grpo");
    policy_input in = input();
    a.scale = cases[i].scale;
    in.reward = cases[i].reward;
    const result r = evaluate(&a, &in);
    CU_ASSERT_EQUAL(r.status, GL_OK);
    CU_ASSERT(isnan(r.scale[0]) && isnan(r.scale[1]) == cases[i].of_batch);
    in.reward = (const double[]){1, 0, 0, 1, 0};
    const result other = evaluate(&a, &in);
    CU_ASSERT(isfinite(other.scale[0]) && isfinite(other.scale[1]));
  }
}

TEST(only_the_best_response_leads) {
  policy_algorithm algorithm = *policy_algorithms_find("grpo_passk");
  const policy_input in = input();
  algorithm.scale = SCALE_NONE;
  const double want[] = {0, 0, 2, 2, 0};
  const result r = evaluate(&algorithm, &in);
  are(r.advantage, want, RESPONSES);
  CU_ASSERT(isnan(r.baseline[0]));
}

/* Over tokens: 1 of reward 1, 3 of 0, 2 of 3, 3 of 2, 1 of 0. */
TEST(reinforce_plus_plus_counts_tokens) {
  const policy_input in = input();
  const double mean = 13 / 10.0, squares = 1 * 1 + 2 * 9 + 3 * 4 - 10 * mean * mean;
  const double sd = sqrt(squares / 9 + 1e-8);
  const result r = evaluate(policy_algorithms_find("reinforce_plus_plus"), &in);
  for (size_t i = 0; i < RESPONSES; i++)
    CU_ASSERT_DOUBLE_EQUAL(r.advantage[i], (rewards[i] - mean) / sd, 1e-12);
}

TEST(given_advantages_stand_in_place_of_rewards) {
  const double given[] = {0.5, -1, 0.25, 0, 2};
  policy_input in = input();
  in.advantage = given;
  const result r = evaluate(policy_algorithms_find("grpo"), &in);
  CU_ASSERT_EQUAL(r.status, GL_OK);
  are(r.advantage, given, RESPONSES);
  CU_ASSERT(isnan(r.baseline[0]));
  policy_algorithm plain = *policy_algorithms_find("grpo");
  plain.baseline = BASELINE_NONE;
  plain.scale = SCALE_NONE;
  in.advantage = NULL;
  in.reward = given;
  const result same = evaluate(&plain, &in);
  CU_ASSERT_EQUAL(same.out.loss, r.out.loss);
  are(same.coefficient, r.coefficient, TOKENS);
}

TEST(disco_takes_no_advantages) {
  static const double given[RESPONSES] = {1, 0, 1, 1, 0};
  policy_input in = input();
  in.reward = in.advantage = given;
  const result r = evaluate(policy_algorithms_find("disco"), &in);
  CU_ASSERT_EQUAL(r.status, GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err.text, "takes no advantages"));
}

/* Of ten entropies 0.1 .. 1 the upper 0.4 begin at 0.64. */
TEST(low_entropies_lose_the_policy_term) {
  policy_algorithm algorithm = *policy_algorithms_find("grpo");
  policy_input in = input();
  algorithm.top_entropy = 0.4;
  result r = evaluate(&algorithm, &in);
  CU_ASSERT_EQUAL(r.status, GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err.text, "top_entropy"));
  in.entropy = entropy;
  r = evaluate(&algorithm, &in);
  algorithm.top_entropy = 1;
  const result all = evaluate(&algorithm, &in);
  for (size_t t = 0; t < TOKENS; t++)
    CU_ASSERT_EQUAL(r.coefficient[t], entropy[t] >= 0.64 ? all.coefficient[t] : 0);
}

TEST(far_responses_of_negative_advantage_leave) {
  policy_algorithm algorithm = *policy_algorithms_find("dr_grpo");
  const policy_input in = input();
  const result all = evaluate(&algorithm, &in);
  algorithm.off_policy_mask = 0.05;
  const result r = evaluate(&algorithm, &in);
  for (size_t i = 0; i < RESPONSES; i++) {
    double sum = 0;
    for (size_t t = tokens[i]; t < tokens[i + 1]; t++) sum += logq[t] - logp[t];
    const int far = sum / (double)(tokens[i + 1] - tokens[i]) > 0.05;
    for (size_t t = tokens[i]; t < tokens[i + 1]; t++)
      CU_ASSERT_EQUAL(r.coefficient[t], far && all.advantage[i] < 0 ? 0 : all.coefficient[t]);
  }
  CU_ASSERT(all.advantage[1] < 0 && all.coefficient[1] != 0 && r.coefficient[1] == 0);
}

TEST(what_does_not_go_together_is_refused_by_name) {
  static const struct {
    const char *base, *change, *says;
  } wrong[] = {
      {"grpo", "clip: binary_tv", "binary_tv"},
      {"magistral", "baseline: runner_up", "runner_up"},
      {"gepo", "ref_kl_ratio: true", "ref_kl_ratio"},
      {"vespo", "ref_kl_ratio: true", "ref_kl_ratio"},
      {"disco", "kl_share: 0.5", "kl_share"},
      {"disco", "top_entropy: 0.5", "objective: disco"},
      {"disco", "off_policy_mask: 0", "objective: disco"},
      {"disco", "mis2_level: token", "objective: disco"},
      {"grpo", "mis_level: sequence_max", "k2, k3 or tv"},
      {"grpo", "mis2_level: sequence_max", "k2, k3 or tv"},
      {"grpo", "mis2_level: token, mis2_min: 4", "mis2_"},
      {"grpo", "top_entropy: 0", "top_entropy"},
      {"grpo", "kl_share: 2", "kl_share"},
      {"grpo", "tis_level: sequence_max", "tis_level"},
  };
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    char text[160];
    cfg_doc *doc = NULL;
    policy_algorithm algorithm;
    gl_error err = {0};
    snprintf(text, sizeof text, "algorithm: {base: %s, %s}\n", wrong[k].base, wrong[k].change);
    CU_ASSERT_EQUAL_FATAL(cfg_load_text(&doc, text, strlen(text), "test", &err), GL_OK);
    const cfg_node *node = cfg_find(cfg_root(doc), "algorithm");
    CU_ASSERT_EQUAL(policy_algorithm_parse(&algorithm, node, &err), GL_EINPUT);
    const int named = strstr(err.text, wrong[k].says) != NULL;
    if (!named) fprintf(stderr, "%s: %s\n", wrong[k].change, err.text);
    CU_ASSERT(named);
    cfg_free(doc);
  }
}

/* (r - mean) / deviation of two rewards is sqrt(1/2), whatever their unit; 1e200 squared is not a
 * double. */
TEST(rewards_beyond_the_root_of_the_largest_double_have_a_deviation) {
  static const double large[] = {1, 1e200}, log[] = {-1, -1};
  static const size_t one_group[] = {0, 2}, each[] = {0, 1, 2};
  const policy_input in = {.n_groups = 1,
                           .n_responses = 2,
                           .n_tokens = 2,
                           .group_start = one_group,
                           .token_start = each,
                           .reward = large,
                           .logp = log,
                           .logq = log};
  const double want[] = {-sqrt(0.5), sqrt(0.5)};
  const result r = evaluate(policy_algorithms_find("grpo"), &in);
  CU_ASSERT_EQUAL(r.status, GL_OK);
  are(r.advantage, want, 2);
}
