/* The gate against GEPO's clip, whose effect on gradients it is, and against the definition. */
#include "core/policy/policy.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

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
  gl_error err = {0};
  w->out = (policy_output){.coefficient = w->coefficient};
  CU_ASSERT_EQUAL(policy_evaluate(algorithm, &in, &w->out, ws, &err), GL_OK);
  policy_workspace_free(ws);
}

static policy_algorithm gated(const char *base) {
  policy_algorithm a = *policy_algorithms_find(base);
  a.gate.negative_below = 0.8;
  a.gate.positive_above = 1.2;
  return a;
}

static void the_gate_alone_has_the_gradient_of_gepos_clip(void) {
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

static void a_gate_by_the_sampler_looks_at_each_response_alone(void) {
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

SUITE(policy_gate, "policy: gate", TEST(the_gate_alone_has_the_gradient_of_gepos_clip),
      TEST(a_gate_by_the_sampler_looks_at_each_response_alone));
