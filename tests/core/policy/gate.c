/* The gate against GEPO's clip, whose effect on gradients it is, and against the definition. */
#include "core/policy/policy.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("policy: gate");

enum { RESPONSES = 8, TOKENS = 16 };

typedef struct world {
  size_t group[3], start[RESPONSES + 1];
  double reward[RESPONSES], logp[TOKENS], logq[TOKENS], coefficient[TOKENS];
  policy_output out;
} world;

/* Two groups of four responses of two tokens, likelihoods from 0.3 to 2 times their group's. */
static void make(world *w) {
  static const double p[RESPONSES] = {-0.2, -1.4, -0.9, -0.3, -0.5, -1.1, -0.4, -0.8};
  *w = (world){.group = {0, 4, 8}};
  for (size_t i = 0; i < RESPONSES; i++) {
    w->start[i + 1] = 2 * (i + 1);
    w->reward[i] = i % 2 == 0;
    w->logp[2 * i] = p[i], w->logp[2 * i + 1] = p[i] - 0.1;
    w->logq[2 * i] = p[i] + (i % 3 == 0 ? 0.3 : -0.1), w->logq[2 * i + 1] = p[i];
  }
}

static void evaluate(world *w, const policy_algorithm *algorithm) {
  const policy_input in = {.n_groups = 2,
                           .n_responses = RESPONSES,
                           .n_tokens = TOKENS,
                           .group_start = w->group,
                           .token_start = w->start,
                           .reward = w->reward,
                           .logp = w->logp,
                           .logq = w->logq};
  policy_workspace *ws = policy_workspace_new();
  w->out = (policy_output){.coefficient = w->coefficient};
  ASSERT_OK(policy_evaluate(algorithm, &in, &w->out, ws, &err));
  policy_workspace_free(ws);
}

static policy_algorithm gated(const char *base) {
  policy_algorithm a = *policy_algorithms_find(base);
  a.gate.negative_below = 0.8;
  a.gate.positive_above = 1.2;
  return a;
}

TEST(the_gate_alone_has_the_gradient_of_gepos_clip) {
  for (int scope = SCOPE_PROMPT; scope <= SCOPE_MICROBATCH; scope++)
    for (int form = LOG_PROB_SUM; form <= LOG_PROB_MEAN; form++) {
      static world clipped, open;
      policy_algorithm clip = *policy_algorithms_find("gepo"), gate = gated("gepo");
      make(&clipped), make(&open);
      clip.log_prob = gate.log_prob = gate.gate.log_prob = (policy_log_prob)form;
      clip.group_scope = gate.group_scope = gate.gate.scope = (policy_scope)scope;
      clip.microbatch = gate.microbatch = 4;
      gate.clip = CLIP_NONE;
      evaluate(&clipped, &clip);
      evaluate(&open, &gate);
      CU_ASSERT_EQUAL(memcmp(clipped.coefficient, open.coefficient, sizeof open.coefficient), 0);
      const double share = open.out.metric[METRIC_CLIP_FRACTION];
      CU_ASSERT(share > 0 && share < 1);
      CU_ASSERT_EQUAL(share, clipped.out.metric[METRIC_CLIP_FRACTION]);
    }
}

TEST(a_gate_by_the_sampler_looks_at_each_response_alone) {
  static world free, w;
  policy_algorithm a = *policy_algorithms_find("is");
  make(&free), make(&w);
  evaluate(&free, &a);
  a.gate.of = GATE_SAMPLER;
  a.gate.negative_below = 0.9;
  evaluate(&w, &a);
  for (size_t i = 0; i < RESPONSES; i++) {
    const double mean = (w.logp[2 * i] + w.logp[2 * i + 1] - w.logq[2 * i] - w.logq[2 * i + 1]) / 2;
    const int out = w.reward[i] == 0 && exp(mean) < 0.9;
    CU_ASSERT_EQUAL(w.coefficient[2 * i], out ? 0 : free.coefficient[2 * i]);
  }
}

/* Of the responses with that sign of the advantage, those beyond GEPO's bound on their own side, by
 * the definition: P < 0.8 E or P > 1.2 E with E = sum Q^2 / sum Q of the group. */
static double share_beyond(const world *w, const double *advantage, int positive) {
  double beyond = 0, all = 0;
  for (size_t g = 0; g < 2; g++) {
    double sum = 0, squares = 0;
    for (size_t i = w->group[g]; i < w->group[g + 1]; i++) {
      const double q = exp(w->logq[2 * i] + w->logq[2 * i + 1]);
      sum += q, squares += q * q;
    }
    for (size_t i = w->group[g]; i < w->group[g + 1]; i++) {
      const double ratio = exp(w->logp[2 * i] + w->logp[2 * i + 1]) / (squares / sum);
      if ((advantage[i] > 0) != positive) continue;
      all += 1;
      beyond += positive ? ratio > 1.2 : ratio < 0.8;
    }
  }
  return beyond / all;
}

TEST(shares_are_told_by_the_sign_of_the_advantage) {
  static world clipped, open;
  double advantage[RESPONSES];
  policy_algorithm clip = *policy_algorithms_find("gepo"), gate = gated("gepo");
  clip.log_prob = gate.log_prob = gate.gate.log_prob = LOG_PROB_SUM;
  gate.clip = CLIP_NONE;
  make(&clipped), make(&open);
  for (size_t i = 0; i < RESPONSES; i++) advantage[i] = clipped.reward[i] - 0.5;
  for (size_t t = 0; t < TOKENS; t++) clipped.logq[t] -= 0.4, open.logq[t] -= 0.4;
  evaluate(&clipped, &clip);
  evaluate(&open, &gate);
  const double up = share_beyond(&open, advantage, 1), down = share_beyond(&open, advantage, 0);
  const double *of_clip = clipped.out.metric, *of_gate = open.out.metric;
  CU_ASSERT(up > 0 && up < 1 && down > 0 && down < 1);
  CU_ASSERT_EQUAL(of_clip[METRIC_CLIPPED_POSITIVE], up);
  CU_ASSERT_EQUAL(of_clip[METRIC_CLIPPED_NEGATIVE], down);
  CU_ASSERT(isnan(of_clip[METRIC_GATED_POSITIVE]) && isnan(of_clip[METRIC_GATED_NEGATIVE]));
  CU_ASSERT_EQUAL(of_gate[METRIC_GATED_POSITIVE], up);
  CU_ASSERT_EQUAL(of_gate[METRIC_GATED_NEGATIVE], down);
  CU_ASSERT(of_gate[METRIC_CLIPPED_POSITIVE] == 0 && of_gate[METRIC_CLIPPED_NEGATIVE] == 0);
}

/* PPO's clip on tokens, and groups of equal rewards, which have no sign. */
TEST(tokens_are_counted_where_ratios_are_theirs) {
  static world w;
  policy_algorithm grpo = *policy_algorithms_find("grpo");
  make(&w);
  for (size_t i = 0; i < 4; i++) w.reward[i] = 1;
  w.logq[12] -= 0.6;
  w.logq[10] += 0.4, w.logq[11] += 0.4;
  evaluate(&w, &grpo);
  double above = 0, below = 0;
  for (size_t i = 4; i < RESPONSES; i++)
    for (size_t t = 2 * i; t < 2 * i + 2; t++) {
      const double u = exp(w.logp[t] - w.logq[t]);
      above += w.reward[i] == 1 && u > 1.2;
      below += w.reward[i] == 0 && u < 0.8;
    }
  CU_ASSERT(above == 1 && below == 2);
  CU_ASSERT_EQUAL(w.out.metric[METRIC_CLIPPED_POSITIVE], above / 4);
  CU_ASSERT_EQUAL(w.out.metric[METRIC_CLIPPED_NEGATIVE], below / 4);
  for (size_t i = 0; i < RESPONSES; i++) w.reward[i] = 1;
  evaluate(&w, &grpo);
  CU_ASSERT(isnan(w.out.metric[METRIC_CLIPPED_POSITIVE]) &&
            isnan(w.out.metric[METRIC_CLIPPED_NEGATIVE]));
}
