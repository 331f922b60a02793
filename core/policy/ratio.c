/* Log importance ratios: per token, per prefix, per response, relative to a group expectation, and
 * V-trace's products. paper/methods.md §3.5 to §3.7. */
#include "core/base/simd.h"
#include "core/policy/internal.h"

#include <assert.h>

double policy_log_sum(const double *value, size_t first, size_t step, size_t n) {
  double top = -INFINITY, sum = 0;
  for (size_t i = first; i < n; i += step) top = fmax(top, value[i]);
  if (isinf(top)) return top;
  for (size_t i = first; i < n; i += step) sum += exp(value[i] - top);
  return top + log(sum);
}

CLONES static void subtract(const double *p, const double *q, size_t n, double *difference) {
  for (size_t t = 0; t < n; ++t) difference[t] = p[t] - q[t];
}

void policy_log_ratios(const policy_algorithm *algorithm, const double *p, const double *q,
                       size_t n, double *log_ratio) {
  const double clamp = algorithm->token_log_clamp;
  subtract(p, q, n, log_ratio);
  for (size_t t = 0; t < n && !isinf(clamp); ++t)
    log_ratio[t] = policy_limit(log_ratio[t], -clamp, clamp);
}

static void token_ratios(policy_state *s, size_t i) {
  const size_t lo = s->in->token_start[i], n = s->in->token_start[i + 1] - lo;
  policy_log_ratios(s->algorithm, s->in->logp + lo, s->logold + lo, n, s->log_ratio + lo);
}

static void token_weights(policy_state *s, size_t i) {
  const size_t lo = s->in->token_start[i], n = s->in->token_start[i + 1] - lo;
  vector_exp(s->x + lo, n, s->weight + lo);
}

static void token_ratios_and_weights(policy_state *s, size_t i) {
  token_ratios(s, i);
  token_weights(s, i);
}

/* Each formula below has one entry in the table at the end of this file. Formulas of token ratios
 * write s->x[]. Formulas of response ratios modify s->seq_x[], which initially holds log P - log Q.
 */

static void constant_ratios(policy_state *s) {
  for (size_t t = 0; t < s->in->n_tokens; ++t) s->x[t] = 0;
}

static void own_ratios(policy_state *s) {
  s->x = s->log_ratio;
}

static void prefix_ratios(policy_state *s) {
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    double sum = 0;
    for (size_t t = s->in->token_start[i]; t < s->in->token_start[i + 1]; ++t) {
      sum += s->log_ratio[t];
      s->x[t] = policy_limit(sum, s->algorithm->log_floor, s->algorithm->log_cap);
    }
  }
}

/* w_t = rho_t (prod_{t<s<T} c_s) rho_T, and rho_T at T (1802.01561, reward at the end). */
static void vtrace_ratios(policy_state *s) {
  double rho_bar = log(s->algorithm->rho_bar), c_bar = log(s->algorithm->c_bar);
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
    if (hi == lo) continue;
    double tail = fmin(rho_bar, s->log_ratio[hi - 1]);
    s->x[hi - 1] = tail;
    for (size_t t = hi - 1; t-- > lo;) {
      s->x[t] = fmin(rho_bar, s->log_ratio[t]) + tail;
      tail += fmin(c_bar, s->log_ratio[t]);
    }
  }
}

/* Sums of three arrays at once, bit-identical to three calls of lane4_sum() in a third of the time,
 * because the three chains of additions are independent. If c is NULL, a - b is summed instead. */
CLONES static void three_sums(const double *a, const double *b, const double *c, size_t n,
                              double sum[3]) {
  lane4 sa = {0}, sb = {0}, sc = {0}, x, y, z;
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    x = *(const lane4 *)(a + k), y = *(const lane4 *)(b + k), z = x - y;
    if (c != NULL) z = *(const lane4 *)(c + k);
    sa += x, sb += y, sc += z;
  }
  lane4_some(a + k, n - k, &x);
  lane4_some(b + k, n - k, &y);
  z = x - y;
  if (c != NULL) lane4_some(c + k, n - k, &z);
  sa += x, sb += y, sc += z;
  sum[0] = lane4_total(&sa);
  sum[1] = lane4_total(&sb);
  sum[2] = lane4_total(&sc);
}

/* The same sums over unmasked tokens only. */
static void three_kept_sums(const policy_state *s, size_t i, double sum[3]) {
  sum[0] = sum[1] = sum[2] = 0;
  for (size_t t = s->in->token_start[i]; t < s->in->token_start[i + 1]; ++t) {
    if (policy_token_masked(s, i, t)) continue;
    sum[0] += s->in->logp[t];
    sum[1] += s->logold[t];
    sum[2] += s->log_ratio[t];
  }
}

void policy_sum_response(policy_state *s, size_t i, const double *p, const double *q,
                         const double *log_ratio) {
  const size_t n = s->in->token_start[i + 1] - s->in->token_start[i];
  const int mean = s->algorithm->log_prob == LOG_PROB_MEAN;
  const double share = mean && n > 0 ? 1 / policy_ratio_tokens(s, i) : 1;
  double sum[3];
  if (s->mask_token != NULL)
    three_kept_sums(s, i, sum);
  else
    three_sums(p, q, log_ratio, n, sum);
  s->seq_p[i] = sum[0] * share;
  s->seq_q[i] = sum[1] * share;
  s->seq_x[i] = sum[2] * share;
  s->seq_jacobian[i] = share;
  s->seq_share[i] = 0;
  s->seq_in_limits[i] = 1;
}

static void sequence_sums(policy_state *s, size_t i) {
  const size_t lo = s->in->token_start[i];
  token_ratios(s, i);
  policy_sum_response(s, i, s->in->logp + lo, s->logold + lo, s->log_ratio + lo);
}

typedef policy_response_scope scope;

double policy_log_expectation(policy_state *s, policy_response_scope c) {
  const double *q = s->seq_q;
  double *v = s->seq_g;
  for (size_t i = c.first; i < c.end; i += c.step) v[i] = 2 * q[i];
  return policy_log_sum(v, c.first, c.step, c.end) - policy_log_sum(q, c.first, c.step, c.end);
}

/* Returns the log of the denominator of a scope's group expectation. If the denominator contains P,
 * sets seq_share to the derivative of that log with respect to log P_i. Overwrites seq_g. */
static double log_expectation(policy_state *s, scope c, size_t group) {
  const double *q = s->seq_q;
  double *v = s->seq_g;
  double total = policy_log_sum(q, c.first, c.step, c.end);
  double count = (double)((c.end - c.first + c.step - 1) / c.step);
  double cross = NAN;
  switch (s->algorithm->denominator) {
  case DENOMINATOR_MEAN:
    return total - log(count);
  case DENOMINATOR_EXACT:
    return s->in->log_denominator[group];
  case DENOMINATOR_SELF_NORMALISED:
    return policy_log_expectation(s, c);
  case DENOMINATOR_EXPECTED_P:
    for (size_t i = c.first; i < c.end; i += c.step) v[i] = q[i] + s->seq_p[i];
    cross = policy_log_sum(v, c.first, c.step, c.end);
    for (size_t i = c.first; i < c.end; i += c.step) s->seq_share[i] = exp(v[i] - cross);
    return cross - total;
  }
  return cross;
}

static double cppo_mean(const policy_state *s, size_t i) {
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  double sum = 0;
  for (size_t t = lo; t < hi; ++t) {
    double l = s->in->logp[t] - s->in->logq[t];
    sum += expm1(-l) + l;
  }
  return hi > lo ? sum / (double)(hi - lo) : 0;
}

/* Divides P by the group expectation of Q, or by Q for responses that have hardly changed (kappa).
 */
static void over_expectation(policy_state *s, scope c, size_t group) {
  double denominator = log_expectation(s, c, group);
  for (size_t i = c.first; i < c.end; i += c.step) {
    int near = s->algorithm->kappa > 0 && cppo_mean(s, i) < s->algorithm->kappa;
    s->seq_x[i] = s->seq_p[i] - (near ? s->seq_q[i] : denominator);
  }
}

static void over_mean_ratio(policy_state *s, scope c, size_t group) {
  (void)group;
  double sum = policy_log_sum(s->seq_x, c.first, c.step, c.end);
  double count = (double)((c.end - c.first + c.step - 1) / c.step);
  for (size_t i = c.first; i < c.end; i += c.step) {
    s->seq_share[i] = exp(s->seq_x[i] - sum);
    s->seq_x[i] += log(count) - sum;
  }
}

static void mean_ratio(policy_state *s, scope c, size_t group) {
  (void)group;
  const double sum = policy_log_sum(s->seq_x, c.first, c.step, c.end);
  const double count = (double)((c.end - c.first + c.step - 1) / c.step);
  for (size_t i = c.first; i < c.end; i += c.step) s->seq_x[i] = sum - log(count);
}

void policy_each_scope(policy_state *s, policy_scope which,
                       void (*visit)(policy_state *, policy_response_scope, size_t group)) {
  const policy_input *in = s->in;
  size_t parts = (in->n_responses + s->algorithm->microbatch - 1) / s->algorithm->microbatch;
  switch (which) {
  case SCOPE_PROMPT:
    for (size_t g = 0; g < in->n_groups; ++g)
      visit(s, (scope){in->group_start[g], 1, in->group_start[g + 1]}, g);
    break;
  case SCOPE_MICROBATCH:
    for (size_t k = 0; k < parts; ++k) visit(s, (scope){k, parts, in->n_responses}, 0);
    break;
  }
}

static void expectation_ratios(policy_state *s) {
  policy_each_scope(s, s->algorithm->group_scope, over_expectation);
}

static void self_normalised_ratios(policy_state *s) {
  policy_each_scope(s, s->algorithm->group_scope, over_mean_ratio);
}

static void group_mean_ratios(policy_state *s) {
  policy_each_scope(s, s->algorithm->group_scope, mean_ratio);
}

/* Returns log(P / (a P + (1 - a) Q)) for x = log P - log Q, and sets *slope to its derivative in
 * log P. */
static double over_mixture(double x, double a, double *slope) {
  if (x > 0) {
    const double e = exp(-x);
    *slope = policy_times(1 - a, e) / (a + (1 - a) * e);
    return a == 1 ? 0 : -log(a + (1 - a) * e);
  }
  const double e = exp(x);
  *slope = (1 - a) / (a * e + 1 - a);
  return a == 1 ? 0 : x - log(a * e + 1 - a);
}

static void mixture_ratios(policy_state *s) {
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    double slope;
    s->seq_x[i] = over_mixture(s->seq_x[i], s->algorithm->mixture, &slope);
    s->seq_jacobian[i] *= slope;
  }
}

/* The weight of p in a token's mixture: constant, or decreasing with the token's staleness. */
static double token_share(const policy_state *s, size_t t) {
  const policy_algorithm *algorithm = s->algorithm;
  if (!algorithm->mixture_anneal) return algorithm->mixture;
  const double gap = s->in->version_gap[t];
  return 1 / (1 + exp(algorithm->mixture_slope * (gap - algorithm->mixture_midpoint)));
}

static void token_mixture_ratios(policy_state *s) {
  for (size_t t = 0; t < s->in->n_tokens; ++t)
    s->x[t] = over_mixture(s->log_ratio[t], token_share(s, t), &s->x_slope[t]);
}

static void limit_sequences(policy_state *s) {
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    double x = s->seq_x[i], kept = policy_limit(x, s->algorithm->log_floor, s->algorithm->log_cap);
    if (kept != x) s->seq_in_limits[i] = 0;
    s->seq_x[i] = kept;
  }
}

static void add_truncation(policy_state *s) {
  const policy_input *in = s->in;
  for (size_t i = 0; s->factor != NULL && i < in->n_responses; ++i)
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t)
      if (!policy_token_masked(s, i, t)) s->seq_x[i] += log(s->factor[t]);
  s->factor = NULL;
}

/* --- the table --- */

typedef struct ratio {
  policy_ratio_info info;
  void (*formula)(policy_state *s); /* NULL: P / Q of the response, unchanged */
} ratio;

/* A value of the enum without an entry does not compile. */
#define LINE(value, formula, ...) static const ratio line_##value = {{__VA_ARGS__}, formula};
#define ADDRESS(value) &line_##value
LINE(RATIO_NONE, constant_ratios, "none", "1", RATIO_OF_TOKEN, RATIO_GRADIENT_NONE, RATIO_ALONE, 1,
     0)
LINE(RATIO_TOKEN, own_ratios, "token", "p / q of the token", RATIO_OF_TOKEN,
     RATIO_GRADIENT_OWN_TOKEN, RATIO_ALONE, 1, 0)
LINE(RATIO_PREFIX, prefix_ratios, "prefix", "product of p / q of the tokens up to this one (CTPO)",
     RATIO_OF_TOKEN, RATIO_GRADIENT_OWN_TOKEN, RATIO_ALONE, 1, 1)
LINE(RATIO_SEQUENCE, NULL, "sequence", "P / Q of the response", RATIO_OF_RESPONSE,
     RATIO_GRADIENT_RESPONSE, RATIO_ALONE, 1, 1)
LINE(RATIO_SEQUENCE_TOKEN, NULL, "sequence_token",
     "P / Q of the response, with the gradient of each token's own p "
     "(GSPO-token)",
     RATIO_OF_RESPONSE, RATIO_GRADIENT_OWN_TOKEN, RATIO_ALONE, 1, 1)
LINE(RATIO_GROUP_EXPECTATION, expectation_ratios, "group_expectation",
     "P over the group's expectation of Q, see denominator (GEPO)", RATIO_OF_RESPONSE,
     RATIO_GRADIENT_RESPONSE, RATIO_COUPLED_BY_DENOMINATOR, 0, 1)
LINE(RATIO_SELF_NORMALISED, self_normalised_ratios, "self_normalised",
     "P / Q over its mean in the group", RATIO_OF_RESPONSE, RATIO_GRADIENT_RESPONSE,
     RATIO_COUPLED_BY_P, 1, 1)
LINE(RATIO_MIXTURE, mixture_ratios, "mixture", "P over a mixture of P and Q, see mixture",
     RATIO_OF_RESPONSE, RATIO_GRADIENT_RESPONSE, RATIO_ALONE, 1, 1)
LINE(RATIO_TOKEN_MIXTURE, token_mixture_ratios, "token_mixture",
     "p over a mixture of p and q of the token, see mixture and "
     "mixture_anneal",
     RATIO_OF_TOKEN, RATIO_GRADIENT_OWN_TOKEN, RATIO_ALONE, 1, 0)
LINE(RATIO_VTRACE, vtrace_ratios, "vtrace",
     "V-trace's products of capped p / q, see rho_bar and c_bar", RATIO_OF_TOKEN,
     RATIO_GRADIENT_NONE, RATIO_ALONE, 1, 0)
LINE(RATIO_GROUP_MEAN, group_mean_ratios, "group_mean",
     "the mean of P / Q over the group, the same for all its responses, with "
     "the gradient of each token's own p",
     RATIO_OF_RESPONSE, RATIO_GRADIENT_OWN_TOKEN, RATIO_COUPLED_BY_RATIOS, 1, 1)

static const ratio *const table[] = {POLICY_RATIOS(ADDRESS)};

const policy_ratio_info *policy_ratio_about(policy_ratio which) {
  return (unsigned)which < RATIO_COUNT ? &table[which]->info : NULL;
}

static int coupled_by_denominator(policy_denominator denominator) {
  switch (denominator) {
  case DENOMINATOR_EXACT:
    return 0;
  case DENOMINATOR_SELF_NORMALISED:
  case DENOMINATOR_MEAN:
  case DENOMINATOR_EXPECTED_P:
    return 1;
  }
  return 1;
}

int policy_couples_group(const policy_algorithm *algorithm) {
  switch (table[algorithm->ratio]->info.coupling) {
  case RATIO_ALONE:
    return 0;
  case RATIO_COUPLED_BY_P:
  case RATIO_COUPLED_BY_RATIOS:
    return 1;
  case RATIO_COUPLED_BY_DENOMINATOR:
    return coupled_by_denominator(algorithm->denominator);
  }
  return 1;
}

int policy_denominator_contains_p(const policy_algorithm *algorithm) {
  switch (table[algorithm->ratio]->info.coupling) {
  case RATIO_ALONE:
  case RATIO_COUPLED_BY_RATIOS:
    return 0;
  case RATIO_COUPLED_BY_P:
    return 1;
  case RATIO_COUPLED_BY_DENOMINATOR:
    return algorithm->denominator == DENOMINATOR_EXPECTED_P;
  }
  return 0;
}

int policy_needs_version_gap(const policy_algorithm *algorithm) {
  return (algorithm->ratio == RATIO_TOKEN_MIXTURE && algorithm->mixture_anneal) ||
         algorithm->old_policy == OLD_INTERPOLATED;
}

int policy_needs_reference(const policy_algorithm *algorithm) {
  return algorithm->ref_kl_coef > 0 ||
         (algorithm->reward_kl_coef > 0 && algorithm->reward_kl_of == REWARD_KL_REFERENCE);
}

int policy_needs_exact_denominator(const policy_algorithm *algorithm) {
  return table[algorithm->ratio]->info.coupling == RATIO_COUPLED_BY_DENOMINATOR &&
         algorithm->denominator == DENOMINATOR_EXACT;
}

int policy_has_own_ratios(const policy_algorithm *algorithm) {
  return table[algorithm->ratio]->formula == own_ratios;
}

gl_status policy_response_ratios(policy_state *s, gl_error *err) {
  const policy_algorithm *algorithm = s->algorithm;
  const ratio *r = table[algorithm->ratio];
  if (policy_needs_exact_denominator(algorithm) && s->in->log_denominator == NULL)
    return gl_fail(err, GL_EINPUT,
                   "denominator: exact needs an enumerable world, which gives sum q^2; use mean or "
                   "self_normalised");
  if (r->formula != NULL) r->formula(s);
  if (algorithm->clip == CLIP_GAMMA) add_truncation(s);
  if (!isinf(algorithm->log_floor) || !isinf(algorithm->log_cap)) limit_sequences(s);
  return GL_OK;
}

/* Ratios and weights of all tokens, then those parts of clips that depend on the whole batch. */
static void all_token_ratios(policy_state *s) {
  const policy_algorithm *algorithm = s->algorithm;
  const ratio *r = table[algorithm->ratio];
  assert(r->formula != NULL);
  if (policy_has_own_ratios(algorithm)) { /* independent of other tokens: ratio and weight in one
                                             pass over the cache */
    own_ratios(s);
    policy_each(s, s->in->n_responses, token_ratios_and_weights);
  } else {
    policy_each(s, s->in->n_responses, token_ratios);
    r->formula(s);
    policy_each(s, s->in->n_responses, token_weights);
  }
  if (algorithm->clip == CLIP_SECOND_MOMENT) policy_second_moment(s);
  if (algorithm->balance > 0) policy_balance_bounds(s);
  if (algorithm->clip == CLIP_BINARY_TV || algorithm->clip == CLIP_BINARY_KL)
    policy_binary_divergence(s);
}

gl_status policy_ratios(policy_state *s, gl_error *err) {
  if (!s->sequence_level) {
    all_token_ratios(s);
    return GL_OK;
  }
  policy_each(s, s->in->n_responses, sequence_sums);
  return policy_response_ratios(s, err);
}
