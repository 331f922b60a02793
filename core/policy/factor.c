/* Truncation (TIS) and masking (MIS) factors, constant in theta, and the aggregation weights that
 * depend on which tokens a mask keeps. paper/methods.md §3.12 and §3.10. */
#include "core/policy/internal.h"

static double correction(const policy_state *s, size_t t) {
  const policy_input *in = s->in;
  const double *now = s->algorithm->correction_of == CORRECTION_PROXIMAL && in->logprox != NULL
                          ? in->logprox
                          : in->logp;
  return now[t] - in->logq[t];
}

static double truncated(const policy_algorithm *algorithm, double log_ratio) {
  double l = policy_limit(log_ratio, -algorithm->tis_log_clamp, algorithm->tis_log_clamp);
  return policy_limit(exp(l), algorithm->tis_min, algorithm->tis_max);
}

/* Writes log factors of response tokens [lo, hi) into s->x, which is free at this stage. */
static void truncate_response(policy_state *s, size_t lo, size_t hi) {
  const policy_algorithm *algorithm = s->algorithm;
  double sum = 0;
  for (size_t t = lo; t < hi; t++) {
    double l = correction(s, t);
    if (algorithm->tis_level == LEVEL_TOKEN) s->factor[t] = truncated(algorithm, l);
    sum += algorithm->tis_level == LEVEL_TOKEN_GEOMETRIC ? log(truncated(algorithm, l)) : l;
  }
  if (algorithm->tis_level == LEVEL_TOKEN) return;
  double share = algorithm->tis_level == LEVEL_SEQUENCE ? sum : sum / (double)(hi - lo);
  double b =
      algorithm->tis_level == LEVEL_TOKEN_GEOMETRIC ? exp(share) : truncated(algorithm, share);
  for (size_t t = lo; t < hi; t++) s->factor[t] = b;
}

static int passes(const policy_algorithm *algorithm, double statistic) {
  switch (algorithm->mis_test) {
  case MIS_RATIO:
    return exp(statistic) >= algorithm->mis_min && exp(statistic) <= algorithm->mis_max;
  case MIS_K1:
    return -statistic >= log(algorithm->mis_min) && -statistic <= log(algorithm->mis_max);
  case MIS_K2:
  case MIS_K3:
    return statistic <= algorithm->mis_max;
  }
  return 0;
}

static double statistic_of(const policy_algorithm *algorithm, double l) {
  switch (algorithm->mis_test) {
  case MIS_RATIO:
  case MIS_K1:
    return l;
  case MIS_K2:
    return l * l / 2;
  case MIS_K3:
    return expm1(l) - l;
  }
  return NAN;
}

static void mask_response(policy_state *s, size_t lo, size_t hi) {
  const policy_algorithm *algorithm = s->algorithm;
  double sum = 0;
  for (size_t t = lo; t < hi; t++) {
    double v = statistic_of(algorithm, correction(s, t));
    if (algorithm->mis_level == LEVEL_TOKEN) s->keep[t] = passes(algorithm, v);
    sum += v;
  }
  if (algorithm->mis_level == LEVEL_TOKEN) return;
  if (algorithm->mis_level == LEVEL_SEQUENCE_MEAN) sum /= (double)(hi - lo);
  int kept = passes(algorithm, sum);
  for (size_t t = lo; t < hi; t++) s->keep[t] = kept;
}

void policy_factors(policy_state *s) {
  const policy_input *in = s->in;
  double sum = 0;
  for (size_t i = 0; i < in->n_responses; i++) {
    size_t lo = in->token_start[i], hi = in->token_start[i + 1];
    if (s->factor != NULL && hi > lo) truncate_response(s, lo, hi);
    if (s->keep != NULL && hi > lo) mask_response(s, lo, hi);
  }
  if (s->factor == NULL || !s->algorithm->tis_normalise) return;
  for (size_t t = 0; t < in->n_tokens; t++) sum += s->factor[t];
  double mean = sum / (double)in->n_tokens;
  for (size_t t = 0; mean > 0 && t < in->n_tokens; t++) s->factor[t] /= mean;
}

/* --- aggregation --------------------------------------------------------------------------------
 */

static double kept_tokens(const policy_state *s, size_t i) {
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  if (s->keep == NULL || s->algorithm->mask_denominator == MASK_ALL) return (double)(hi - lo);
  double n = 0;
  for (size_t t = lo; t < hi; t++) n += s->keep[t];
  return n;
}

typedef struct totals {
  double tokens, powers, longest, groups;
} totals;

static totals totals_of(policy_state *s) {
  const policy_input *in = s->in;
  totals sum = {0};
  for (size_t g = 0; g < in->n_groups; g++) {
    sum.groups += s->active[g];
    for (size_t i = in->group_start[g]; i < in->group_start[g + 1]; i++) {
      double kept = kept_tokens(s, i);
      s->kept[i] = kept;
      sum.longest = fmax(sum.longest, (double)(in->token_start[i + 1] - in->token_start[i]));
      if (s->active[g] == 0 || kept == 0) continue;
      sum.tokens += kept;
      if (s->algorithm->aggregate == AGGREGATE_LENGTH_POWER)
        sum.powers += pow(kept, -s->algorithm->length_power);
    }
  }
  return sum;
}

/* What one token counts in a response of `kept` tokens, whose group has `tokens` kept tokens and
 * shares the batch among `responses`. */
static double weight_of(const policy_state *s, const totals *sum, double kept, double tokens,
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
  }
  return NAN;
}

void policy_aggregation(policy_state *s) {
  const policy_input *in = s->in;
  totals sum = totals_of(s);
  for (size_t g = 0; g < in->n_groups; g++) {
    size_t lo = in->group_start[g], hi = in->group_start[g + 1];
    double tokens = 0, responses = sum.groups * (double)(hi - lo);
    for (size_t i = lo; i < hi; i++) tokens += s->kept[i];
    for (size_t i = lo; i < hi; i++)
      s->z[i] = s->active[g] > 0 && s->kept[i] > 0
                    ? weight_of(s, &sum, s->kept[i], tokens, responses)
                    : 0;
  }
}
