/* Truncation (TIS) and masking (MIS, off-policy) factors, constant in theta, and the aggregation
 * weights, which depend on the tokens that masks keep. paper/methods.md §3.12 and §3.10. */
#include "core/policy/internal.h"

#include <stdlib.h>

/* The log-probabilities that corrections compare with the sampler's. */
static const double *corrected(const policy_state *s) {
  if (s->algorithm->correction_of == CORRECTION_LEARNER) return s->in->logp;
  if (s->log_between != NULL) return s->log_between;
  return s->in->logprox != NULL ? s->in->logprox : s->in->logp;
}

static double correction(const policy_state *s, size_t t) {
  const policy_input *in = s->in;
  return corrected(s)[t] - in->logq[t];
}

static double truncated(const policy_algorithm *algorithm, double log_ratio) {
  double l = policy_limit(log_ratio, -algorithm->tis_log_clamp, algorithm->tis_log_clamp);
  return policy_limit(exp(l), algorithm->tis_min, algorithm->tis_max);
}

/* FIPO (2603.19835): factors from the discounted sum of this and later log-ratios. */
static void truncate_future(policy_state *s, size_t lo, size_t hi) {
  const policy_algorithm *algorithm = s->algorithm;
  const double decay = exp2(-1 / algorithm->future_half_life), most = log(algorithm->dual_clip);
  double sum = 0;
  for (size_t t = hi; t-- > lo;) {
    const double l = correction(s, t);
    sum = policy_times(decay, sum) + (l > most ? 0 : l);
    s->factor[t] = truncated(algorithm, sum);
  }
}

/* Writes the truncation factors of tokens [lo, hi), the tokens of one response, into s->factor. */
static void truncate_response(policy_state *s, size_t lo, size_t hi) {
  const policy_algorithm *algorithm = s->algorithm;
  double sum = 0;
  if (algorithm->tis_level == LEVEL_FUTURE) {
    truncate_future(s, lo, hi);
    return;
  }
  for (size_t t = lo; t < hi; ++t) {
    double l = correction(s, t);
    if (algorithm->tis_level == LEVEL_TOKEN) s->factor[t] = truncated(algorithm, l);
    sum += algorithm->tis_level == LEVEL_TOKEN_GEOMETRIC ? log(truncated(algorithm, l)) : l;
  }
  if (algorithm->tis_level == LEVEL_TOKEN) return;
  double share = algorithm->tis_level == LEVEL_SEQUENCE ? sum : sum / (double)(hi - lo);
  double b =
      algorithm->tis_level == LEVEL_TOKEN_GEOMETRIC ? exp(share) : truncated(algorithm, share);
  for (size_t t = lo; t < hi; ++t) s->factor[t] = b;
}

/* One masking test on tokens or responses: the mis_ or the mis2_ fields. */
typedef struct mask_test {
  policy_mask_level level;
  policy_mis_test test;
  double min, max;
  double free_low, free_high; /* for MIS_RATIO: ratios beyond these pass by the sign of A */
} mask_test;

/* Whether the statistic of a token or response is within the bounds of the test. */
static int passes_test(const mask_test *m, double statistic, double advantage) {
  switch (m->test) {
  case MIS_RATIO:
    if (advantage >= 0 && exp(statistic) <= m->free_low) return 1;
    if (advantage <= 0 && exp(statistic) >= m->free_high) return 1;
    return exp(statistic) >= m->min && exp(statistic) <= m->max;
  case MIS_K1:
    return -statistic >= log(m->min) && -statistic <= log(m->max);
  case MIS_K2:
  case MIS_K3:
  case MIS_TV:
    return statistic <= m->max;
  }
  return 0;
}

/* The statistic of token t, whose limited log-ratio is l. */
static double statistic_of(const policy_state *s, const mask_test *m, double l, size_t t) {
  switch (m->test) {
  case MIS_RATIO:
  case MIS_K1:
    return l;
  case MIS_K2:
    return l * l / 2;
  case MIS_K3:
    return expm1(l) - l;
  case MIS_TV:
    return fabs(exp(corrected(s)[t]) - exp(s->in->logq[t]));
  }
  return NAN;
}

/* Sets mask_token to 0 for tokens of response i that fail the test. */
static void mask_response(policy_state *s, const mask_test *m, size_t i) {
  const size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  const double clamp = s->algorithm->mis_log_clamp, a = s->advantage[i];
  double sum = 0, largest = -INFINITY;
  for (size_t t = lo; t < hi; ++t) {
    const double v = statistic_of(s, m, policy_limit(correction(s, t), -clamp, clamp), t);
    if (m->level == MASK_LEVEL_TOKEN && !passes_test(m, v, a)) s->mask_token[t] = 0;
    sum += v;
    largest = fmax(largest, v);
  }
  switch (m->level) {
  case MASK_LEVEL_NONE:
  case MASK_LEVEL_TOKEN:
    return;
  case MASK_LEVEL_SEQUENCE:
    break;
  case MASK_LEVEL_SEQUENCE_MEAN:
    sum /= (double)(hi - lo);
    break;
  case MASK_LEVEL_SEQUENCE_MAX:
    sum = largest;
    break;
  }
  const int kept = passes_test(m, sum, a);
  for (size_t t = lo; t < hi && !kept; ++t) s->mask_token[t] = 0;
}

static void mask(policy_state *s, size_t i) {
  const policy_algorithm *a = s->algorithm;
  const mask_test first = {a->mis_level, a->mis_test,     a->mis_min,
                           a->mis_max,   a->mis_free_low, a->mis_free_high};
  const mask_test second = {a->mis2_level, a->mis2_test, a->mis2_min, a->mis2_max, 0, INFINITY};
  for (size_t t = s->in->token_start[i]; t < s->in->token_start[i + 1]; ++t) s->mask_token[t] = 1;
  mask_response(s, &first, i);
  mask_response(s, &second, i);
}

/* Divides the factors by their mean over tokens or over responses. */
static void factor_normalise(policy_state *s) {
  const policy_input *in = s->in;
  const int by_token =
      s->algorithm->tis_level == LEVEL_TOKEN || s->algorithm->tis_level == LEVEL_FUTURE;
  double sum = 0, n = 0;
  for (size_t i = 0; i < in->n_responses; ++i) {
    const size_t lo = in->token_start[i], hi = in->token_start[i + 1];
    for (size_t t = lo; t < hi && (by_token || t == lo); ++t) {
      sum += s->factor[t];
      n += 1;
    }
  }
  for (size_t t = 0; sum > 0 && t < in->n_tokens; ++t) s->factor[t] /= sum / n;
}

/* Off-policy sequence masking (DeepSeek-V3.2, 2512.02556 §3.1): masks responses with a negative
 * advantage that have become improbable under the learner. */
static void leave_out_far(policy_state *s) {
  const policy_input *in = s->in;
  for (size_t i = 0; i < in->n_responses; ++i) {
    const size_t lo = in->token_start[i], hi = in->token_start[i + 1];
    double sum = 0;
    for (size_t t = lo; t < hi; ++t) sum += in->logq[t] - in->logp[t];
    const int far = hi > lo && sum / (double)(hi - lo) > s->algorithm->off_policy_mask;
    s->mask_off_policy[i] = s->advantage[i] < 0 && far ? 0 : 1;
  }
}

static int ascending(const void *left, const void *right) {
  const policy_rank *a = left, *b = right;
  return (a->value > b->value) - (a->value < b->value);
}

/* Masks tokens of low entropy (2506.01939). The bound is a quantile, interpolated between
 * neighbours like in NumPy and PyTorch. */
static void leave_out_certain(policy_state *s) {
  const size_t n = s->in->n_tokens;
  for (size_t t = 0; t < n; ++t) s->rank[t] = (policy_rank){s->in->entropy[t], t};
  if (n == 0) return;
  qsort(s->rank, n, sizeof *s->rank, ascending);
  const double at = (1 - s->algorithm->top_entropy) * (double)(n - 1);
  const size_t below = (size_t)at, above = below + 1 < n ? below + 1 : below;
  const double low = s->rank[below].value, high = s->rank[above].value;
  const double bound = low + (at - (double)below) * (high - low);
  for (size_t t = 0; t < n; ++t) s->mask_entropy[t] = s->in->entropy[t] >= bound ? 1 : 0;
}

/* Masks tokens whose entropy left an interval about that of the proximal policy (ERC, 2512.05591;
 * the code adds the 1e-8). */
static void leave_out_changed(policy_state *s) {
  const policy_algorithm *algorithm = s->algorithm;
  const policy_input *in = s->in;
  const double *old = in->entropy_prox != NULL ? in->entropy_prox : in->entropy;
  for (size_t t = 0; t < in->n_tokens; ++t) {
    const double change = (in->entropy[t] + 1e-8) / (old[t] + 1e-8);
    if (!(change > algorithm->entropy_ratio_low && change < algorithm->entropy_ratio_high))
      s->mask_entropy[t] = 0;
  }
}

static void mask_entropies(policy_state *s) {
  for (size_t t = 0; t < s->in->n_tokens; ++t) s->mask_entropy[t] = 1;
  if (s->algorithm->top_entropy < 1) leave_out_certain(s);
  if (policy_has_entropy_ratio(s->algorithm)) leave_out_changed(s);
}

void policy_factors(policy_state *s) {
  const policy_input *in = s->in;
  for (size_t i = 0; i < in->n_responses; ++i) {
    size_t lo = in->token_start[i], hi = in->token_start[i + 1];
    if (s->factor != NULL && hi > lo) truncate_response(s, lo, hi);
    if (s->mask_token != NULL && hi > lo) mask(s, i);
  }
  if (s->factor != NULL && s->algorithm->tis_normalise) factor_normalise(s);
  if (s->mask_off_policy != NULL) leave_out_far(s);
  if (s->mask_entropy != NULL) mask_entropies(s);
}

/* --- aggregation --- */

static double kept_tokens(const policy_state *s, size_t i) {
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  if (s->mask_token == NULL || s->algorithm->mask_denominator == MASK_ALL) return (double)(hi - lo);
  double n = 0;
  for (size_t t = lo; t < hi; ++t) n += s->mask_token[t];
  return n;
}

/* Sums over unmasked responses: tokens, and tokens^-length_power of each response; tokens of the
 * longest response; number of unmasked groups. */
typedef struct totals {
  double tokens, powers, longest, groups;
} totals;

/* Computes the totals, and n_kept of every response. */
static totals totals_of(policy_state *s) {
  const policy_input *in = s->in;
  totals sum = {0};
  for (size_t g = 0; g < in->n_groups; ++g) {
    sum.groups += s->mask_group[g];
    for (size_t i = in->group_start[g]; i < in->group_start[g + 1]; ++i) {
      double kept = kept_tokens(s, i);
      s->n_kept[i] = kept;
      sum.longest = fmax(sum.longest, (double)(in->token_start[i + 1] - in->token_start[i]));
      if (s->mask_group[g] == 0 || kept == 0) continue;
      sum.tokens += kept;
      if (s->algorithm->aggregate == AGGREGATE_LENGTH_POWER)
        sum.powers += pow(kept, -s->algorithm->length_power);
    }
  }
  return sum;
}

/* The weight of one token of a response with `kept` unmasked tokens, whose group has `tokens`
 * unmasked tokens; `responses` is the number of groups times the group's size. */
static double factor_weight_of(const policy_state *s, const totals *sum, double kept, double tokens,
                               double responses) {
  switch (s->algorithm->aggregate) {
  case AGGREGATE_SEQUENCE_SUM:
    return 1 / responses;
  case AGGREGATE_SEQUENCE_MEAN:
    return 1 / (responses * kept);
  case AGGREGATE_TOKEN_MEAN:
    return 1 / sum->tokens;
  case AGGREGATE_GROUP_TOKEN_MEAN:
    return 1 / (sum->groups * tokens);
  case AGGREGATE_FIXED_LENGTH:
    return 1 / (responses * (s->in->max_length > 0 ? (double)s->in->max_length : sum->longest));
  case AGGREGATE_LENGTH_POWER:
    return pow(kept, -s->algorithm->length_power) / (sum->longest * sum->powers);
  case AGGREGATE_TOKEN_SUM:
    return 1;
  }
  return NAN;
}

void policy_aggregation(policy_state *s) {
  const policy_input *in = s->in;
  totals sum = totals_of(s);
  for (size_t g = 0; g < in->n_groups; ++g) {
    size_t lo = in->group_start[g], hi = in->group_start[g + 1];
    double tokens = 0, responses = sum.groups * (double)(hi - lo);
    for (size_t i = lo; i < hi; ++i) tokens += s->n_kept[i];
    for (size_t i = lo; i < hi; ++i)
      s->z[i] = s->mask_group[g] > 0 && s->n_kept[i] > 0
                    ? factor_weight_of(s, &sum, s->n_kept[i], tokens, responses)
                    : 0;
  }
}

/* --- the gate (paper/methods.md §3.15) --- */
/* The gate removes responses from the policy term, depending on their likelihood ratio and the sign
 * of their advantage. Its bounds negative_below and positive_above do to gradients what GEPO's clip
 * does. The gate is constant in theta. Averages still count the removed responses. */

int policy_has_gate(const policy_algorithm *algorithm) {
  return algorithm->gate.negative_below > 0 || !isinf(algorithm->gate.negative_above) ||
         !isinf(algorithm->gate.positive_above);
}

/* Sums log P and log Q of every response, or averages them over tokens (gate.log_prob: mean). */
static void sum_responses(policy_state *s) {
  const policy_input *in = s->in;
  const int mean = s->algorithm->gate.log_prob == LOG_PROB_MEAN;
  for (size_t i = 0; i < in->n_responses; ++i) {
    const size_t lo = in->token_start[i], hi = in->token_start[i + 1];
    double p = 0, q = 0;
    for (size_t t = lo; t < hi; ++t) {
      p += in->logp[t];
      q += in->logq[t];
    }
    const double share = mean && hi > lo ? 1 / (double)(hi - lo) : 1;
    s->seq_p[i] = p * share;
    s->seq_q[i] = q * share;
  }
}

/* Applies the gate to response i, given the logarithm of its likelihood ratio. */
static void gate_response(policy_state *s, size_t i, double log_likelihood) {
  const policy_gate_fields *gate = &s->algorithm->gate;
  const double a = s->advantage[i];
  if ((a < 0 && (log_likelihood < log(gate->negative_below) ||
                 log_likelihood > log(gate->negative_above))) ||
      (a > 0 && log_likelihood > log(gate->positive_above)))
    s->mask_gate[i] = 0;
}

static void gate_scope(policy_state *s, policy_response_scope c, size_t group) {
  (void)group;
  const double expectation = policy_log_expectation(s, c);
  for (size_t i = c.first; i < c.end; i += c.step) gate_response(s, i, s->seq_p[i] - expectation);
}

void policy_gate_responses(policy_state *s) {
  const policy_algorithm *algorithm = s->algorithm;
  const size_t n = s->in->n_responses;
  for (size_t i = 0; i < n; ++i) s->mask_gate[i] = 1;
  sum_responses(s);
  switch (algorithm->gate.of) {
  case GATE_GROUP_EXPECTATION:
    policy_each_scope(s, algorithm->gate.scope, gate_scope);
    break;
  case GATE_SAMPLER:
    for (size_t i = 0; i < n; ++i) gate_response(s, i, s->seq_p[i] - s->seq_q[i]);
    break;
  }
}
