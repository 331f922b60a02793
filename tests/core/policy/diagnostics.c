/* Diagnostics of single tokens and of few, next to the same in more digits. */
#include "core/policy/policy.h"
#include "tests/support/suite.h"

SUITE("policy: diagnostics");

enum { UNITS = 5 };

/* One group of UNITS responses of one token whose log-ratios are x. */
static void evaluate(const double x[UNITS], policy_output *out) {
  static const size_t groups[] = {0, UNITS}, tokens[] = {0, 1, 2, 3, 4, 5};
  static const double reward[UNITS] = {1, 0, 0, 1, 0}, logq[UNITS] = {0};
  policy_workspace *ws = policy_workspace_new();
  const policy_input in = {.n_groups = 1,
                           .n_responses = UNITS,
                           .n_tokens = UNITS,
                           .group_start = groups,
                           .token_start = tokens,
                           .reward = reward,
                           .logp = x,
                           .logq = logq,
                           .max_length = 1};
  *out = (policy_output){.loss = 0};
  ASSERT_OK(policy_evaluate(policy_algorithms_find("grpo"), &in, out, ws, &err));
  policy_workspace_free(ws);
}

/* e^v - 1 - v, by its series where the difference would lose digits. */
static long double excess(long double v) {
  if (fabsl(v) > 1e-3L) return expm1l(v) - v;
  return v * v / 2 * (1 + v / 3 * (1 + v / 4 * (1 + v / 5 * (1 + v / 6 * (1 + v / 7)))));
}

TEST(divergences_are_exact_to_the_last_digits_at_every_size) {
  for (double l = 1e-9; l < 40; l *= 1.07)
    for (int sign = -1; sign <= 1; sign += 2) {
      const long double v = sign * (long double)l, k3 = excess(v), cppo = excess(-v);
      const double x[UNITS] = {sign * l, sign * l, sign * l, sign * l, sign * l};
      policy_output out;
      evaluate(x, &out);
      CU_ASSERT(fabs(out.metric[METRIC_KL_K3] / (double)k3 - 1) < 4e-15);
      CU_ASSERT(fabs(out.metric[METRIC_CPPO_KL] / (double)cppo - 1) < 4e-15);
    }
}

/* Moments of weights shift with the log-ratios, also across the size from which they are formed
 * from scaled weights. */
TEST(moments_of_weights_scale_with_them) {
  const double base[UNITS] = {0.3, -0.2, 0.1, 0.7, -0.5};
  policy_output at_zero, out;
  evaluate(base, &at_zero);
  for (double shift = -600; shift <= 600; shift += 37.5) {
    double x[UNITS];
    for (size_t i = 0; i < UNITS; i++) x[i] = base[i] + shift;
    evaluate(x, &out);
    ASSERT_CLOSE(out.metric[METRIC_LOG_IW_MEAN] - shift, at_zero.metric[METRIC_LOG_IW_MEAN], 1e-12);
    ASSERT_CLOSE(out.metric[METRIC_LOG_IW_VARIANCE] - 2 * shift,
                 at_zero.metric[METRIC_LOG_IW_VARIANCE], 1e-11);
    ASSERT_CLOSE(out.metric[METRIC_ESS], at_zero.metric[METRIC_ESS], 1e-11);
    ASSERT_CLOSE(out.metric[METRIC_LOG_IW_MAX] - shift, 0.7, 1e-12);
  }
}

/* Rewards are 1, 0, 0, 1, 0: A is negative for the second, third and fifth response. */
TEST(log_ratios_are_split_by_the_sign_of_the_advantage) {
  const double x[UNITS] = {0.3, -0.2, 0.1, 0.7, -0.5};
  policy_output out;
  evaluate(x, &out);
  ASSERT_CLOSE(out.metric[METRIC_LOG_RATIO_NEGATIVE], (-0.2 + 0.1 - 0.5) / 3, 1e-15);
  ASSERT_CLOSE(out.metric[METRIC_LOG_RATIO_POSITIVE], (0.3 + 0.7) / 2, 1e-15);
}
