/* Divergence terms: from the sampler (kl_coef) and from a reference policy (ref_kl_coef). Both use
 * the algorithm's aggregation weights without truncation factors. */
#include "core/policy/internal.h"

#include <stdlib.h>

typedef struct kl_value {
  double value, slope; /* slope = d value / d logp */
} kl_value;

static double sign_of(double x) {
  return x > 0 ? 1 : (x < 0 ? -1 : 0);
}

static kl_value sampler_term(policy_kl_form form, double l) {
  switch (form) {
  case KL_K1:
    return (kl_value){-l, -1};
  case KL_K2:
    return (kl_value){l * l / 2, l};
  case KL_K3:
    return (kl_value){expm1(l) - l, expm1(l)};
  case KL_CPPO:
    return (kl_value){expm1(-l) + l, -expm1(-l)};
  case KL_ABS:
    return (kl_value){fabs(l), sign_of(l)};
  }
  return (kl_value){NAN, NAN};
}

static kl_value reference_term(policy_ref_kl_form form, double d) {
  switch (form) {
  case REF_KL_K1:
    return (kl_value){d, 1};
  case REF_KL_K2:
    return (kl_value){d * d / 2, d};
  case REF_KL_K3:
    return (kl_value){expm1(-d) + d, -expm1(-d)};
  case REF_KL_ABS:
    return (kl_value){fabs(d), sign_of(d)};
  case REF_KL_K1_PLUS:
    return (kl_value){d, d};
  case REF_KL_K3_PLUS:
    return (kl_value){expm1(-d) + d, d};
  }
  return (kl_value){NAN, NAN};
}

/* --- which tokens the term from the sampler is for (KL-Cov, 2505.22617) --- */

/* Largest first; of equal ones the earlier first. */
static int kl_descending(const void *left, const void *right) {
  const policy_rank *a = left, *b = right;
  if (a->value != b->value) return a->value > b->value ? -1 : 1;
  return a->token < b->token ? -1 : a->token > b->token;
}

/* Which tokens kl_share chooses: those whose product of advantage and log-probability, about their
 * means over the batch's tokens, is above `product`; and of those that have just this product the
 * more probable ones, as far as `last`. That order does not depend on how responses are numbered.
 */
typedef struct chosen {
  int all;
  double mean_advantage, mean_logp, product;
  policy_rank last; /* log-probability and token */
} chosen;

static double product_of(const policy_state *s, const chosen *c, size_t i, size_t t) {
  return (s->advantage[i] - c->mean_advantage) * (s->in->logp[t] - c->mean_logp);
}

static void find_means(const policy_state *s, chosen *c) {
  const policy_input *in = s->in;
  double advantage = 0, logp = 0;
  for (size_t i = 0; i < in->n_responses; ++i)
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
      advantage += s->advantage[i];
      logp += in->logp[t];
    }
  c->mean_advantage = advantage / (double)in->n_tokens;
  c->mean_logp = logp / (double)in->n_tokens;
}

static chosen choose_tokens(policy_state *s) {
  const policy_input *in = s->in;
  chosen c = {.all = s->algorithm->kl_coef == 0 || s->algorithm->kl_share >= 1};
  if (c.all || in->n_tokens == 0) return c;
  const double share = floor((double)in->n_tokens * s->algorithm->kl_share);
  const size_t count = share >= 1 ? (size_t)share : 1;
  find_means(s, &c);
  for (size_t i = 0; i < in->n_responses; ++i)
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t)
      s->rank[t] = (policy_rank){.value = product_of(s, &c, i, t), .token = t};
  qsort(s->rank, in->n_tokens, sizeof *s->rank, kl_descending);
  c.product = s->rank[count - 1].value;
  size_t above = 0, equal = 0;
  while (s->rank[above].value > c.product) above++;
  for (size_t k = above; k < in->n_tokens && s->rank[k].value == c.product; ++k) {
    const size_t t = s->rank[k].token;
    s->rank[equal++] = (policy_rank){.value = in->logp[t], .token = t};
  }
  qsort(s->rank, equal, sizeof *s->rank, kl_descending);
  c.last = s->rank[count - above - 1];
  return c;
}

static int kl_is_chosen(const policy_state *s, const chosen *c, size_t i, size_t t) {
  if (c->all) return 1;
  const double product = product_of(s, c, i, t);
  if (product != c->product) return product > c->product;
  const policy_rank mine = {.value = s->in->logp[t], .token = t};
  return kl_descending(&mine, &c->last) <= 0;
}

/* --- the terms --- */

/* ref_kl_ratio: the ratio that multiplies a token's term, and through which its gradient goes too:
 * by that token's log-probability, or by those of the whole response. */
static double kl_ratio(const policy_state *s, size_t i, size_t t) {
  if (!s->algorithm->ref_kl_ratio) return 1;
  return s->sequence_level ? exp(s->seq_x[i]) : s->weight[t];
}

static double reference_response(policy_state *s, size_t i, int drops) {
  const policy_algorithm *algorithm = s->algorithm;
  const policy_input *in = s->in;
  double sum = 0;
  for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
    const double z = algorithm->ref_kl_coef * (drops ? s->z[i] * s->mask_token[t] : s->z[i]);
    if (z == 0) continue;
    const kl_value k = reference_term(algorithm->ref_kl_form, in->logp[t] - in->logref[t]);
    const double value = policy_times(kl_ratio(s, i, t), z * k.value);
    sum += value;
    s->coefficient[t] -= policy_times(kl_ratio(s, i, t), z * k.slope);
    if (algorithm->ref_kl_ratio && !s->sequence_level && policy_token_open(s, t))
      s->coefficient[t] -= value;
  }
  if (!algorithm->ref_kl_ratio || !s->sequence_level || s->seq_in_limits[i] == 0) return sum;
  for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t)
    if (policy_token_open(s, t) && !policy_token_masked(s, i, t))
      s->coefficient[t] -= sum * s->seq_jacobian[i];
  return sum;
}

static double sampler_response(policy_state *s, const chosen *c, size_t i, int drops) {
  const policy_algorithm *algorithm = s->algorithm;
  const policy_input *in = s->in;
  double sum = 0;
  for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
    const double z = drops ? s->z[i] * s->mask_token[t] : s->z[i];
    if (z == 0 || !kl_is_chosen(s, c, i, t)) continue;
    const kl_value k = sampler_term(algorithm->kl_form, in->logp[t] - in->logq[t]);
    sum += algorithm->kl_coef * z * k.value;
    s->coefficient[t] -= algorithm->kl_coef * z * k.slope;
  }
  return sum;
}

/* Adds to the coefficients and returns the addition to the loss. */
double policy_kl_terms(policy_state *s) {
  const policy_algorithm *algorithm = s->algorithm;
  const int drops = s->mask_token != NULL && algorithm->mask_denominator == MASK_KEPT;
  double sum = 0;
  if (algorithm->kl_coef == 0 && algorithm->ref_kl_coef == 0) return 0;
  const chosen c = choose_tokens(s);
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    if (algorithm->kl_coef > 0) sum += sampler_response(s, &c, i, drops);
    if (algorithm->ref_kl_coef > 0) sum += reference_response(s, i, drops);
  }
  return sum;
}
