/* Limits of the methods of 2025 and 2026, as their papers state them: where a method becomes
 * another one, and identities that its formula implies. */
#include "core/policy/policy.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("policy: limits of methods");

enum { RESPONSES = 6, TOKENS = 13 };

static const size_t groups[] = {0, 3, 6}, starts[RESPONSES + 1] = {0, 2, 3, 6, 8, 11, 13};

typedef struct world {
  double reward[RESPONSES], logp[TOKENS], logq[TOKENS], logref[TOKENS], gap[TOKENS];
  double advantage[RESPONSES], weight[TOKENS], c[TOKENS], baseline[2];
} world;

/* Log-ratios from -1 to 1, or times `spread`. */
static world make(double spread) {
  world w = {.reward = {1, 0, 1, 0, 0, 1}};
  for (size_t t = 0; t < TOKENS; t++) {
    w.logq[t] = -0.4 - 0.15 * (double)(t % 5);
    w.logp[t] = w.logq[t] + spread * sin(2.1 * (double)t + 0.3);
    w.logp[t] = fmin(w.logp[t], -1e-3);
    w.logref[t] = w.logq[t] - 0.1 * cos((double)t);
    w.gap[t] = 1;
  }
  return w;
}

static void run(const policy_algorithm *a, world *w) {
  const policy_input in = {.n_groups = 2,
                           .n_responses = RESPONSES,
                           .n_tokens = TOKENS,
                           .group_start = groups,
                           .token_start = starts,
                           .reward = w->reward,
                           .logp = w->logp,
                           .logq = w->logq,
                           .logref = w->logref,
                           .version_gap = w->gap};
  policy_output out = {.advantage = w->advantage,
                       .weight = w->weight,
                       .coefficient = w->c,
                       .baseline = w->baseline,
                       .skip_metrics = 1};
  policy_workspace *ws = policy_workspace_new();
  ASSERT_OK(policy_evaluate(a, &in, &out, ws, &err));
  policy_workspace_free(ws);
}

static policy_algorithm row(const char *name) {
  const policy_algorithm *a = policy_algorithms_find(name);
  CU_ASSERT_PTR_NOT_NULL_FATAL(a);
  return *a;
}

/* Both have the same coefficients on the world. */
static void check_equal(const policy_algorithm *a, const policy_algorithm *b, world w) {
  world other = w;
  run(a, &w);
  run(b, &other);
  for (size_t t = 0; t < TOKENS; t++) {
    if (!(fabs(w.c[t] - other.c[t]) <= 1e-12))
      fprintf(stderr, "%s and %s: token %zu, %g and %g\n", a->name, b->name, t, w.c[t], other.c[t]);
    CU_ASSERT(fabs(w.c[t] - other.c[t]) <= 1e-12);
  }
}

TEST(kept_gradients_at_zero_are_those_of_ppo) {
  policy_algorithm a = row("ce_gppo"), ppo = row("dapo");
  a.keep_low = a.keep_high = 0;
  ppo.eps_high = 0.2;
  check_equal(&a, &ppo, make(1));
}

TEST(one_side_with_importance_weights_is_ppo) {
  policy_algorithm a = row("rec_one_side"), ppo = row("dapo");
  a.ratio = RATIO_TOKEN;
  ppo.scale = SCALE_NONE;
  ppo.eps_high = 0.2;
  check_equal(&a, &ppo, make(1));
}

/* Ring with the inner bounds as outer ones is one side; without outer ones two sides. */
TEST(a_ring_lies_between_one_side_and_two) {
  policy_algorithm ring = row("rec_ring"), one = row("rec_one_side"), two = row("rec_two_side");
  ring.mis_free_low = 0.8, ring.mis_free_high = 1.2;
  check_equal(&ring, &one, make(1));
  ring.mis_free_low = 0, ring.mis_free_high = INFINITY;
  check_equal(&ring, &two, make(1));
}

TEST(masks_and_balances_that_are_off_leave_their_base) {
  policy_algorithm a = row("opsm"), grpo = row("grpo"), token_mean = row("dapo");
  a.off_policy_mask = INFINITY;
  check_equal(&a, &grpo, make(1));
  token_mean.eps_high = 0.2;
  a = row("trm");
  a.mis_max = INFINITY;
  check_equal(&a, &token_mean, make(1));
  a = row("bapo");
  a.balance = 0;
  token_mean.eps_low = 0.4, token_mean.dual_clip = 3;
  check_equal(&a, &token_mean, make(1));
  a = row("prime_rl");
  policy_algorithm plain = row("prime_rl_ipo");
  a.eps_low = a.eps_high = 1, a.kl_coef = 0; /* a difference of probabilities is below 1 */
  plain.mis_max = 1, plain.kl_coef = 0;
  check_equal(&a, &plain, make(1));
}

/* At logp = logq every ratio is 1, and bounds do not act. */
TEST(on_policy_the_clips_are_none) {
  static const char *const names[] = {"bapo", "ce_gppo", "gppo", "aspo", "fipo"};
  policy_algorithm plain = row("dapo");
  plain.clip = CLIP_NONE;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    const policy_algorithm a = row(names[k]);
    check_equal(&a, &plain, make(0));
  }
  const policy_algorithm dcpo = row("dcpo");
  plain = row("grpo");
  check_equal(&dcpo, &plain, make(0));
}

/* DCPO's bounds solve |u - 1| u q = eps: just inside them a token has its gradient, outside none.
 */
TEST(dcpo_bounds_the_change_of_a_tokens_probability) {
  policy_algorithm a = row("dcpo");
  a.cap = INFINITY;
  for (int sign = -1; sign <= 1; sign += 2)
    for (double q = 0.7; q > 0.01; q /= 2) {
      const double eps = sign > 0 ? a.eps_high : a.eps_low;
      if (sign < 0 && q < 4 * eps) continue; /* the bound is 1/2, where no u fulfils the equation */
      const double u = (1 + sqrt(1 + sign * 4 * eps / q)) / 2;
      CU_ASSERT(fabs(fabs(u - 1) * u * q - eps) < 1e-12);
      for (int outside = 0; outside < 2; outside++) {
        world w = make(0);
        const size_t t = sign > 0 ? 0 : 2; /* a right and a wrong response */
        w.logq[t] = log(q);
        w.logp[t] = log(q) + log(u) + (outside ? sign : -sign) * 1e-6;
        run(&a, &w);
        CU_ASSERT_EQUAL(w.c[t] == 0, outside);
      }
    }
}

/* ASPO: for A > 0 the product of weight and ratio is 1; for A < 0 the weight is the ratio. */
TEST(aspo_weighs_right_answers_by_the_inverse_ratio) {
  const policy_algorithm aspo = row("aspo");
  policy_algorithm plain = row("dapo");
  plain.clip = CLIP_NONE, plain.ratio = RATIO_NONE, plain.ratio_gradient = 0;
  world w = make(0.15), one = w;
  run(&aspo, &w);
  run(&plain, &one);
  for (size_t i = 0; i < RESPONSES; i++)
    for (size_t t = starts[i]; t < starts[i + 1]; t++) {
      const double u = exp(w.logp[t] - w.logq[t]);
      ASSERT_CLOSE(w.c[t], one.c[t] * (w.advantage[i] > 0 ? 1 / u : u), 1e-14);
    }
}

/* A-3PO: with a staleness of 1 the sampler is the proximal policy; with a large one the learner is,
 * and what remains is A times the token's own ratio without a clip. */
TEST(a3po_moves_from_ppo_to_a_plain_weight) {
  const policy_algorithm a = row("a3po");
  policy_algorithm ppo = row("dapo"), plain = row("dapo");
  ppo.eps_high = 0.2;
  check_equal(&a, &ppo, make(1));
  plain.clip = CLIP_NONE;
  world w = make(1), other = w;
  for (size_t t = 0; t < TOKENS; t++) w.gap[t] = 1e15;
  run(&a, &w);
  run(&plain, &other);
  for (size_t t = 0; t < TOKENS; t++) ASSERT_CLOSE(w.c[t], other.c[t], 1e-12);
}

/* FIPO: with a short half-life the factor is the token's own ratio, limited. */
TEST(fipo_of_no_future_is_truncated_importance_sampling) {
  policy_algorithm a = row("fipo"), token = row("fipo");
  a.future_half_life = 1e-6;
  token.tis_level = LEVEL_TOKEN;
  check_equal(&a, &token, make(1));
}

/* MaxRL: the mean of A times a score is the mean score of right answers less that of all. */
TEST(maxrl_estimates_the_gradient_of_the_log_of_the_pass_rate) {
  policy_algorithm a = row("maxrl");
  a.scale_eps = 0;
  world w = make(0);
  run(&a, &w);
  for (size_t g = 0; g < 2; g++) {
    double right = 0;
    for (size_t i = groups[g]; i < groups[g + 1]; i++) right += w.reward[i];
    for (size_t i = groups[g]; i < groups[g + 1]; i++)
      ASSERT_CLOSE(w.advantage[i] / 3, w.reward[i] / right - 1.0 / 3, 1e-15);
  }
}

TEST(baselines_have_the_means_that_they_should) {
  policy_algorithm a = row("asymre"), opmd = row("opmd"), vcpo = row("vcpo");
  world w = make(0);
  run(&a, &w);
  ASSERT_CLOSE(w.advantage[0] + w.advantage[1] + w.advantage[2], 0.3, 1e-14);
  opmd.baseline_temperature =
      1e7; /* the soft maximum tends to the mean, a small one to the maximum */
  run(&opmd, &w);
  ASSERT_CLOSE(w.baseline[0], 2.0 / 3, 1e-7);
  opmd.baseline_temperature = 1e-3;
  run(&opmd, &w);
  ASSERT_CLOSE(w.baseline[0], 1 - 1e-3 * log(1.5), 1e-12);
  run(&vcpo, &w); /* on-policy the mean with lengths as weights: 2, 1 and 3 tokens */
  ASSERT_CLOSE(w.baseline[0], 5.0 / 6, 1e-14);
  w = make(1);
  run(&vcpo, &w);
  double sum = 0, all = 0;
  for (size_t i = 0; i < 3; i++) {
    double l = 0;
    for (size_t t = starts[i]; t < starts[i + 1]; t++) l += w.logp[t] - w.logq[t];
    all += exp(2 * l) * (double)(starts[i + 1] - starts[i]);
    sum += exp(2 * l) * (double)(starts[i + 1] - starts[i]) * w.reward[i];
  }
  ASSERT_CLOSE(w.baseline[0], sum / all, 1e-14);
}

/* Trajectory balance is solved where reward and log-ratio agree up to a constant of the group. */
TEST(trajectory_balance_has_no_gradient_at_its_solution) {
  const policy_algorithm tba = row("tba");
  world w = make(0);
  for (size_t i = 0; i < RESPONSES; i++)
    for (size_t t = starts[i]; t < starts[i + 1]; t++)
      w.logref[t] = w.logp[t] - (w.reward[i] + 0.2 * (double)(i / 3)) / tba.reward_kl_coef /
                                    (double)(starts[i + 1] - starts[i]);
  run(&tba, &w);
  for (size_t t = 0; t < TOKENS; t++) ASSERT_CLOSE(w.c[t], 0, 1e-12);
}
