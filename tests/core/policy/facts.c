/* Facts that tie algorithms to each other and to their own losses. */
#include "core/policy/policy.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("policy: facts");

enum { TOKENS = 9, RESPONSES = 4 };

static const size_t groups[] = {0, RESPONSES};
static const size_t tokens[] = {0, 2, 3, 6, TOKENS};
static const double rewards[] = {1, 0, 0.5, 0};
static const double logq[] = {-1, -0.4, -2, -0.7, -0.2, -1.3, -0.9, -0.5, -1.1};
static const double shift[] = {0.3, -0.2, 0.5, -0.4, 0.1, 0.25, -0.6, 0.15, 0.05};

typedef struct world {
  double logp[TOKENS], coefficient[TOKENS], weight[TOKENS], advantage[RESPONSES], baseline, scale;
  policy_output out;
} world;

static void at_shift(world *w, double size) {
  for (size_t t = 0; t < TOKENS; t++) w->logp[t] = logq[t] + size * shift[t];
}

static policy_input input_of(const world *w) {
  policy_input in = {.n_groups = 1, .n_responses = RESPONSES, .n_tokens = TOKENS};
  in.group_start = groups;
  in.token_start = tokens;
  in.reward = rewards;
  in.logp = w->logp;
  in.logq = logq;
  in.entropy = logq; /* any numbers: the ratio of entropies at a first update is 1 */
  in.max_length = 5;
  return in;
}

static double evaluate_on(const policy_algorithm *algorithm, const policy_input *in, world *w) {
  policy_workspace *ws = policy_workspace_new();
  w->out.coefficient = w->coefficient;
  w->out.weight = w->weight;
  w->out.advantage = w->advantage;
  w->out.baseline = &w->baseline;
  w->out.scale = &w->scale;
  ASSERT_OK(policy_evaluate(algorithm, in, &w->out, ws, &err));
  policy_workspace_free(ws);
  return w->out.loss;
}

static double evaluate(const policy_algorithm *algorithm, world *w) {
  policy_input in = input_of(w);
  return evaluate_on(algorithm, &in, w);
}

TEST(coefficients_are_finite_differences_of_the_loss) {
  static const char *const names[] = {
      "is",   "grpo",      "dr_grpo", "dapo",  "gspo", "gepo",           "eqp",  "bnpo", "delta_l",
      "gmpo", "magistral", "sapo",    "maxrl", "opsm", "raft_plus_plus", "dcpo", "bapo", "trm"};
  const double h = 1e-5;
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    policy_algorithm algorithm = *policy_algorithms_find(names[k]);
    world w = {0};
    algorithm.kl_coef = 0.1;
    for (size_t t = 0; t < TOKENS; t++) {
      at_shift(&w, 1);
      w.logp[t] += h;
      double up = evaluate(&algorithm, &w);
      w.logp[t] -= 2 * h;
      double down = evaluate(&algorithm, &w);
      w.logp[t] += h;
      evaluate(&algorithm, &w);
      ASSERT_CLOSE(w.coefficient[t], -(up - down) / (2 * h), 1e-8);
    }
  }
}

TEST(self_normalised_weights_sum_to_the_group_size) {
  world w = {0};
  at_shift(&w, 1);
  evaluate(policy_algorithms_find("snis"), &w);
  double sum = 0;
  for (size_t i = 0; i < RESPONSES; i++) sum += w.weight[tokens[i]];
  ASSERT_CLOSE(sum, RESPONSES, 1e-14);
}

TEST(self_normalised_denominator_is_sum_q_squared_over_sum_q) {
  world w = {0};
  double q[RESPONSES], p[RESPONSES], squares = 0, sum = 0;
  at_shift(&w, 1);
  evaluate(policy_algorithms_find("gepo"), &w);
  for (size_t i = 0; i < RESPONSES; i++) {
    p[i] = q[i] = 1;
    for (size_t t = tokens[i]; t < tokens[i + 1]; t++) {
      p[i] *= exp(w.logp[t]);
      q[i] *= exp(logq[t]);
    }
    squares += q[i] * q[i];
    sum += q[i];
  }
  for (size_t i = 0; i < RESPONSES; i++)
    ASSERT_CLOSE(w.weight[tokens[i]], p[i] / (squares / sum), 1e-14);
}

TEST(group_mean_shrinks_leave_one_out_by_one_over_group_size) {
  world one = {0}, mean = {0};
  policy_algorithm algorithm = *policy_algorithms_find("is");
  at_shift(&one, 1);
  at_shift(&mean, 1);
  evaluate(&algorithm, &one);
  algorithm.baseline = BASELINE_GROUP_MEAN;
  evaluate(&algorithm, &mean);
  for (size_t t = 0; t < TOKENS; t++)
    ASSERT_CLOSE(mean.coefficient[t], one.coefficient[t] * (RESPONSES - 1) / RESPONSES, 1e-14);
}

TEST(on_policy_clipping_changes_nothing_and_importance_sampling_is_reinforce) {
  world a = {0}, b = {0};
  at_shift(&a, 0);
  at_shift(&b, 0);
  policy_algorithm algorithm = *policy_algorithms_find("grpo");
  evaluate(&algorithm, &a);
  algorithm.clip = CLIP_NONE;
  evaluate(&algorithm, &b);
  CU_ASSERT_EQUAL(memcmp(a.coefficient, b.coefficient, sizeof a.coefficient), 0);
  evaluate(policy_algorithms_find("is"), &a);
  evaluate(policy_algorithms_find("reinforce"), &b);
  for (size_t t = 0; t < TOKENS; t++) ASSERT_CLOSE(a.coefficient[t], b.coefficient[t], 1e-15);
}

/* v_t = V + rho_t (r_t + v_{t+1}' - V ...): with one value b, no discount and reward r at the end,
 * delta_t = 0 before the end and rho_T (r - b) there; v_t - b = delta_t + c_t (v_{t+1} - b); the
 * gradient's factor is rho_t (r_t + v_{t+1} - b). */
TEST(vtrace_equals_its_recursion) {
  policy_algorithm algorithm = *policy_algorithms_find("vtrace");
  world w = {0};
  algorithm.rho_bar = 1.2;
  algorithm.c_bar = 1.1;
  at_shift(&w, 1);
  evaluate(&algorithm, &w);
  for (size_t i = 0; i < RESPONSES; i++) {
    double v = 0;
    for (size_t t = tokens[i + 1]; t-- > tokens[i];) {
      double u = exp(w.logp[t] - logq[t]), rho = fmin(algorithm.rho_bar, u),
             c = fmin(algorithm.c_bar, u);
      int last = t + 1 == tokens[i + 1];
      double gain = last ? w.advantage[i] : v;
      ASSERT_CLOSE(w.coefficient[t], rho * gain / RESPONSES, 1e-14);
      v = last ? rho * w.advantage[i] : c * v;
    }
  }
}

TEST(without_a_proximal_policy_the_update_is_a_first_one) {
  const policy_algorithm *algorithm = policy_algorithms_find("decoupled_ppo");
  world none = {0}, same = {0};
  at_shift(&none, 1);
  at_shift(&same, 1);
  policy_input in = input_of(&same);
  in.logprox = same.logp;
  double loss = evaluate_on(algorithm, &in, &same);
  CU_ASSERT_EQUAL(evaluate(algorithm, &none), loss);
  CU_ASSERT_EQUAL(memcmp(none.coefficient, same.coefficient, sizeof none.coefficient), 0);
  for (size_t t = 0; t < TOKENS; t++) CU_ASSERT_EQUAL(none.weight[t], 1);
}

/* Over y ~ p, k3 has the gradient of KL(ref || p) and k2 that of KL(p || ref) (methods §3.11). One
 * response of one token for each of four tokens; each counts with its probability. */
TEST(reference_terms_k3_and_k2_have_the_gradients_of_forward_and_reverse_divergence) {
  static const double p[] = {0.5, 0.3, 0.15, 0.05}, ref[] = {0.2, 0.25, 0.3, 0.25};
  static const size_t one_token[] = {0, 1, 2, 3, RESPONSES};
  static const policy_ref_kl_form forms[] = {REF_KL_K3, REF_KL_K2};
  static const double equal_rewards[RESPONSES] = {0};
  double logref[RESPONSES], reverse = 0;
  world w = {0};
  for (size_t a = 0; a < RESPONSES; a++) {
    w.logp[a] = log(p[a]), logref[a] = log(ref[a]);
    reverse += p[a] * log(p[a] / ref[a]);
  }
  for (size_t k = 0; k < 2; k++) {
    policy_algorithm algorithm = *policy_algorithms_find("grpo");
    algorithm.ref_kl_coef = 1, algorithm.ref_kl_form = forms[k];
    policy_input in = input_of(&w);
    in.n_tokens = RESPONSES, in.token_start = one_token, in.reward = equal_rewards;
    in.logq = w.logp, in.logref = logref;
    evaluate_on(&algorithm, &in, &w);
    for (size_t j = 0; j < RESPONSES; j++) {
      double gradient = 0; /* with respect to logit j */
      for (size_t a = 0; a < RESPONSES; a++)
        gradient -= RESPONSES * p[a] * w.coefficient[a] * ((a == j) - p[j]);
      const double want = k == 0 ? p[j] - ref[j] : p[j] * (log(p[j] / ref[j]) - reverse);
      ASSERT_CLOSE(gradient, want, 1e-14);
    }
  }
}

TEST(metrics_of_what_the_input_lacks_are_not_numbers) {
  world w = {0};
  at_shift(&w, 1);
  evaluate(policy_algorithms_find("gepo"), &w);
  CU_ASSERT(isnan(w.out.metric[METRIC_KL_REF]));
  CU_ASSERT(isnan(w.out.metric[METRIC_STALENESS]) && isnan(w.out.metric[METRIC_STALENESS_MAX]));
  CU_ASSERT(isnan(w.out.metric[METRIC_GRAD_NORM]) && isnan(w.out.metric[METRIC_ENTROPY]));
}

/* One refusal each for what the input may lack. */
TEST(a_row_that_needs_more_than_the_input_names_it) {
  policy_workspace *ws = policy_workspace_new();
  policy_algorithm reference = *policy_algorithms_find("grpo"),
                   exact = *policy_algorithms_find("gepo");
  reference.ref_kl_coef = 0.1;
  exact.denominator = DENOMINATOR_EXACT;
  const struct {
    const policy_algorithm *algorithm;
    const char *names;
  } wanting[] = {{&reference, "logref"},
                 {&exact, "denominator: exact"},
                 {policy_algorithms_find("mois"), "version_gap"},
                 {policy_algorithms_find("disco"), "response 2"},
                 {policy_algorithms_find("real"), "response 2"},
                 {policy_algorithms_find("ppo_ewma"), "logprox"}};
  for (size_t k = 0; k < sizeof wanting / sizeof wanting[0]; k++) {
    world w = {0};
    gl_error err = {0};
    at_shift(&w, 1);
    policy_input in = input_of(&w);
    CU_ASSERT_EQUAL(policy_evaluate(wanting[k].algorithm, &in, &w.out, ws, &err), GL_EINPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wanting[k].names));
  }
  policy_workspace_free(ws);
}

TEST(beyond_double_range_results_are_infinite_but_never_nan) {
  for (size_t k = 0; k < policy_algorithms_count(); k++)
    for (int sign = -1; sign <= 1; sign += 2) {
      world w = {0};
      policy_algorithm algorithm = *policy_algorithms_at(k);
      if (algorithm.objective != OBJECTIVE_POLICY_GRADIENT) continue;
      algorithm.mixture_anneal = 0; /* these tokens have no staleness */
      if (algorithm.old_policy == OLD_INTERPOLATED) algorithm.old_policy = OLD_SAMPLER;
      algorithm.reward_kl_of = REWARD_KL_SAMPLER; /* nor a reference policy */
      algorithm.proximal_decay = 0;               /* nor an averaged one */
      at_shift(&w, 4000.0 * sign);
      evaluate(&algorithm, &w);
      CU_ASSERT(!isnan(w.out.loss));
      for (size_t t = 0; t < TOKENS; t++) CU_ASSERT(!isnan(w.coefficient[t]));
      CU_ASSERT(isfinite(w.out.metric[METRIC_LOG_IW_VARIANCE_PQ]));
      CU_ASSERT(isfinite(w.out.metric[METRIC_LOG_IW_MAX]));
    }
}

/* The others' coefficients are those without the mask; with sequence_mean 1 / (G n_i) of A u. */
TEST(a_response_rejected_whole_still_counts_in_its_group) {
  static const char *const names[] = {"grpo", "gepo"};
  for (size_t k = 0; k < 2; k++) {
    world all = {0}, kept = {0};
    policy_algorithm algorithm = *policy_algorithms_find(names[k]);
    algorithm.clip = CLIP_NONE;
    at_shift(&all, 1), at_shift(&kept, 1);
    evaluate(&algorithm, &all);
    algorithm.mis_level = MASK_LEVEL_SEQUENCE; /* log-ratios 0.1, 0.5, -0.05 and -0.4 */
    algorithm.mis_max = exp(0.3);
    algorithm.mask_denominator = MASK_KEPT;
    evaluate(&algorithm, &kept);
    for (size_t t = 0; t < TOKENS; t++)
      ASSERT_CLOSE(kept.coefficient[t], t == 2 ? 0 : all.coefficient[t], 1e-14);
    if (k == 0)
      ASSERT_CLOSE(kept.coefficient[0], kept.advantage[0] * exp(shift[0]) / (RESPONSES * 2), 1e-14);
  }
}
