/* The gate: which responses leave the policy term by their own likelihood and the sign of their
 * advantage, which is what GEPO's clip does (paper/methods.md §3.15). It is constant in theta, and
 * averages count gated responses. */
#include "core/policy/internal.h"

int policy_has_gate(const policy_algorithm *algorithm) {
  return algorithm->gate.negative_below > 0 || !isinf(algorithm->gate.positive_above);
}

/* log P and log Q of every response as the gate takes them. */
static void sum_responses(policy_state *s) {
  const policy_input *in = s->in;
  const int mean = s->algorithm->gate.log_prob == LOG_PROB_MEAN;
  for (size_t i = 0; i < in->n_responses; i++) {
    const size_t lo = in->token_start[i], hi = in->token_start[i + 1];
    double p = 0, q = 0;
    for (size_t t = lo; t < hi; t++) {
      p += in->logp[t];
      q += in->logq[t];
    }
    const double share = mean && hi > lo ? 1 / (double)(hi - lo) : 1;
    s->seq_p[i] = p * share;
    s->seq_q[i] = q * share;
  }
}

/* Gates response i, whose likelihood has this logarithm. */
static void gate_response(policy_state *s, size_t i, double log_likelihood) {
  const policy_gate_fields *gate = &s->algorithm->gate;
  const double a = s->advantage[i];
  if ((a < 0 && log_likelihood < log(gate->negative_below)) ||
      (a > 0 && log_likelihood > log(gate->positive_above)))
    s->passes[i] = 0;
}

static void gate_scope(policy_state *s, policy_response_scope c, size_t group) {
  (void)group;
  const double expectation = policy_log_expectation(s, c);
  for (size_t i = c.first; i < c.end; i += c.step) gate_response(s, i, s->seq_p[i] - expectation);
}

void policy_gate_responses(policy_state *s) {
  const policy_algorithm *algorithm = s->algorithm;
  const size_t n = s->in->n_responses;
  for (size_t i = 0; i < n; i++) s->passes[i] = 1;
  sum_responses(s);
  switch (algorithm->gate.of) {
  case GATE_GROUP_EXPECTATION:
    policy_each_scope(s, algorithm->gate.scope, gate_scope);
    break;
  case GATE_SAMPLER:
    for (size_t i = 0; i < n; i++) gate_response(s, i, s->seq_p[i] - s->seq_q[i]);
    break;
  }
}
