/* Divergence terms: from the sampler (kl_coef) and from a reference policy (ref_kl_coef). Both use
 * the algorithm's aggregation weights without truncation factors. */
#include "core/policy/internal.h"

typedef struct kl_value {
  double value, slope; /* slope = d value / d logp */
} kl_value;

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
  }
  return (kl_value){NAN, NAN};
}

/* Adds to the coefficients and returns the addition to the loss. */
double policy_kl_terms(policy_state *s) {
  const policy_algorithm *algorithm = s->algorithm;
  const policy_input *in = s->in;
  int drops = s->keep != NULL && algorithm->mask_denominator == MASK_KEPT;
  double sum = 0;
  if (algorithm->kl_coef == 0 && algorithm->ref_kl_coef == 0) return 0;
  for (size_t i = 0; i < in->n_responses; i++)
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; t++) {
      double z = drops ? s->z[i] * s->keep[t] : s->z[i];
      if (z == 0) continue;
      if (algorithm->kl_coef > 0) {
        kl_value k = sampler_term(algorithm->kl_form, in->logp[t] - in->logq[t]);
        sum += algorithm->kl_coef * z * k.value;
        s->coefficient[t] -= algorithm->kl_coef * z * k.slope;
      }
      if (algorithm->ref_kl_coef > 0) {
        kl_value k = reference_term(algorithm->ref_kl_form, in->logp[t] - in->logref[t]);
        sum += algorithm->ref_kl_coef * z * k.value;
        s->coefficient[t] -= algorithm->ref_kl_coef * z * k.slope;
      }
    }
  return sum;
}
