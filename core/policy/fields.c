/* Every field of an algorithm once: its name, what it may be and what it means. Recipes are read,
 * algorithms are printed and errors are worded from this table. */
#include "core/base/json.h"
#include "core/policy/algorithm.h"

#include <math.h>
#include <stdio.h>

/* Choices are read and written as int. */
_Static_assert(sizeof(policy_ratio) == sizeof(int), "enums are as wide as int");

/* The function kind_name(value) and the number kind_count of an enum whose last value is `last`. */
#define NAMES(kind, last, ...)                                                                     \
  static const char *const kind##_names[] = {__VA_ARGS__};                                         \
  enum { kind##_count = sizeof kind##_names / sizeof kind##_names[0] };                            \
  _Static_assert((int)kind##_count == (int)(last) + 1, "a name for every value of " #kind);        \
  static const char *kind##_name(int value) {                                                      \
    return kind##_names[value];                                                                    \
  }

NAMES(objective, OBJECTIVE_DISCO, "policy_gradient", "disco")
NAMES(baseline, BASELINE_RUNNER_UP, "none", "constant", "group_mean", "leave_one_out",
      "length_weighted", "runner_up")
NAMES(scale, SCALE_NONZERO_SHARE, "none", "group_std", "batch_std", "beta", "reward_std",
      "token_std", "nonzero_share")
NAMES(log_prob, LOG_PROB_MEAN, "sum", "mean")
NAMES(gate_of, GATE_SAMPLER, "group_expectation", "sampler")
NAMES(old_policy, OLD_PROXIMAL, "sampler", "proximal")
NAMES(denominator, DENOMINATOR_EXPECTED_P, "self_normalised", "mean", "exact", "expected_p")
NAMES(group_scope, SCOPE_MICROBATCH, "prompt", "microbatch")
NAMES(clip, CLIP_BINARY_KL, "none", "ppo", "ppo_power", "cap", "clamp", "signed_clamp", "token_log",
      "second_moment", "sigmoid", "tanh_hazard", "gamma", "binary_tv", "binary_kl")
NAMES(m2_form, M2_THRESHOLD, "remove", "threshold")
NAMES(m2_set, M2_ALL, "improving", "clipped", "all")
NAMES(aggregate, AGGREGATE_TOKEN_SUM, "sequence_sum", "sequence_mean", "token_mean",
      "group_token_mean", "fixed_length", "length_power", "token_sum")
NAMES(kl_form, KL_ABS, "cppo", "k1", "k2", "k3", "abs")
NAMES(ref_kl_form, REF_KL_K3_PLUS, "k1", "k2", "k3", "abs", "k1_plus", "k3_plus")
NAMES(correction_of, CORRECTION_LEARNER, "proximal", "learner")
NAMES(level, LEVEL_TOKEN_GEOMETRIC, "none", "token", "sequence", "sequence_mean", "token_geometric")
NAMES(mask_level, MASK_LEVEL_SEQUENCE_MAX, "none", "token", "sequence", "sequence_mean",
      "sequence_max")
NAMES(mis_test, MIS_K3, "ratio", "k1", "k2", "k3")
NAMES(mask_denominator, MASK_KEPT, "all", "kept")
NAMES(negatives, NEGATIVES_MEAN, "softmax", "mean")

static const char *ratio_name(int value) {
  return policy_ratio_about((policy_ratio)value)->name;
}
enum { ratio_count = RATIO_COUNT };

#define CHOICE_OF(field, kind, count, text)                                                        \
  { #field, FIELD_CHOICE, offsetof(policy_algorithm, field), kind##_name, count, 0, 0, text }
#define CHOICE(field, text) CHOICE_OF(field, field, field##_count, text)
#define BOOLEAN(field, text)                                                                       \
  { #field, FIELD_BOOL, offsetof(policy_algorithm, field), NULL, 0, 0, 0, text }
#define COUNT(field, lo, hi, text)                                                                 \
  { #field, FIELD_COUNT, offsetof(policy_algorithm, field), NULL, 0, lo, hi, text }
#define NUMBER(field, lo, hi, text)                                                                \
  { #field, FIELD_NUMBER, offsetof(policy_algorithm, field), NULL, 0, lo, hi, text }
#define TINY 1e-300

static const policy_field fields[] = {
    CHOICE(objective,
           "policy_gradient: advantages times ratios; disco: scores of right answers against those "
           "of wrong ones"),
    CHOICE(baseline,
           "what is subtracted from a reward; length_weighted: the group's mean with lengths as "
           "weights; runner_up: the best response keeps its lead over the second best, the others "
           "get 0"),
    NUMBER(baseline_value, -INFINITY, INFINITY, "the constant of baseline: constant"),
    CHOICE(scale,
           "what the centred reward is divided by: the group's standard deviation, the batch's "
           "(after centring again by the batch mean), BNPO's Beta density at the group mean, the "
           "standard deviation of the batch's rewards, that of the batch with a response counted "
           "once a token (after centring again likewise), or the share of rewards that are not 0"),
    NUMBER(scale_eps, 0, INFINITY,
           "added to the standard deviation (to its square, for scale: token_std)"),
    COUNT(std_ddof, 0, 1,
          "the standard deviation divides by n - std_ddof (a group of one has deviation 0)"),
    BOOLEAN(drop_equal, "groups whose rewards are all equal leave the batch and its averages"),
    CHOICE(
        ratio,
        "importance ratio of learner and sampler; p and q are probabilities of a token, P and Q of "
        "the response"),
    CHOICE(log_prob, "response probability: true product (sum) or geometric mean per token (mean)"),
    CHOICE(
        old_policy,
        "the ratio's denominator policy: the sampler's log-probabilities or those of the learner "
        "at the batch's first update"),
    BOOLEAN(ratio_gradient,
            "true: the objective is A f(ratio), differentiated; false: f(ratio) is a constant "
            "factor of A logp"),
    CHOICE(denominator,
           "of group_expectation: sum Q^2 / sum Q, mean Q, the world's exact sum of q^2, or "
           "sum Q P / sum Q"),
    BOOLEAN(denominator_gradient,
            "differentiate the denominator too (expected_p, self_normalised)"),
    CHOICE(
        group_scope,
        "over which responses the denominator is formed: the prompt's, or micro-batches that mix "
        "prompts (of n responses in K = ceil(n / microbatch) parts, part k has k, k+K, k+2K ...)"),
    COUNT(microbatch, 1, 1e9, "responses per micro-batch for group_scope: microbatch"),
    NUMBER(kappa, 0, INFINITY,
           "responses whose token mean of exp(-l)+l-1 is below kappa use Q for the group "
           "expectation (gepo_plus); 0: none"),
    NUMBER(mixture, 0, 1,
           "share of P in the mixture ratio's denominator, and of p in token_mixture's"),
    BOOLEAN(mixture_anneal,
            "token_mixture: the share falls with a token's staleness d, in versions, as "
            "1 / (1 + exp(mixture_slope (d - mixture_midpoint))), in place of mixture"),
    NUMBER(mixture_midpoint, 0, INFINITY, "staleness at which the annealed share is a half"),
    NUMBER(mixture_slope, TINY, INFINITY, "slope of the annealed share"),
    NUMBER(rho_bar, TINY, INFINITY, "V-trace's cap of rho"),
    NUMBER(c_bar, TINY, INFINITY, "V-trace's cap of c"),
    NUMBER(
        token_log_clamp, 0, INFINITY,
        "token log-ratios are limited to +- this, gradient 0 beyond (group_expectation has none)"),
    NUMBER(log_floor, -INFINITY, 0, "lower limit of the log of a response or prefix ratio"),
    NUMBER(log_cap, 0, INFINITY, "upper limit of the log of a response or prefix ratio"),
    CHOICE(
        clip,
        "none; ppo: pessimistic minimum; ppo_power: the same on the log-ratio with bounds that "
        "grow as t^clip_power; cap, clamp, signed_clamp: the ratio itself is limited; token_log: "
        "GMPO's clip inside the geometric mean; second_moment: M2PO; sigmoid: SAPO; tanh_hazard: "
        "MHPO; gamma: VESPO; binary_tv, binary_kl: cap, and no weight where the token's own "
        "probability has moved too far (DPPO)"),
    NUMBER(eps_low, 0, INFINITY,
           "lower clip width (a log width for ppo_power and token_log, a divergence for binary_tv "
           "and binary_kl)"),
    NUMBER(eps_high, 0, INFINITY, "upper clip width, likewise"),
    NUMBER(dual_clip, TINY, INFINITY,
           "for A < 0, upper limit of the ratio (of |log ratio| / t^clip_power for ppo_power)"),
    NUMBER(cap, 0, INFINITY, "upper limit of the ratio for clip: cap, binary_tv and binary_kl"),
    NUMBER(clip_power, 0, INFINITY, "exponent of ppo_power's bounds"),
    NUMBER(positive_low, 0, INFINITY, "signed_clamp, A >= 0: lower limit"),
    NUMBER(positive_high, 0, INFINITY, "signed_clamp, A >= 0: upper limit"),
    NUMBER(negative_low, 0, INFINITY, "signed_clamp, A < 0: lower limit"),
    NUMBER(negative_high, 0, INFINITY, "signed_clamp, A < 0: upper limit"),
    NUMBER(tau_positive, TINY, INFINITY, "SAPO's temperature for A > 0"),
    NUMBER(tau_negative, TINY, INFINITY, "SAPO's temperature for A <= 0"),
    NUMBER(tanh_scale, TINY, INFINITY, "MHPO's c"),
    NUMBER(hazard_power_up, 0, INFINITY, "MHPO's k+"),
    NUMBER(hazard_width_up, TINY, INFINITY, "MHPO's Lambda+"),
    NUMBER(hazard_power_down, 0, INFINITY, "MHPO's k-"),
    NUMBER(hazard_width_down, TINY, INFINITY, "MHPO's Lambda-"),
    NUMBER(gamma_k_positive, 0, INFINITY, "VESPO's k for A >= 0"),
    NUMBER(gamma_rate_positive, 0, INFINITY, "VESPO's lambda for A >= 0"),
    NUMBER(gamma_k_negative, 0, INFINITY, "VESPO's k for A < 0"),
    NUMBER(gamma_rate_negative, 0, INFINITY, "VESPO's lambda for A < 0"),
    CHOICE(m2_form,
           "second_moment: remove the largest squares until the mean is below m2_tau, or clip at "
           "the threshold that brings it there"),
    CHOICE(
        m2_set,
        "tokens it looks at: those moving away from the sampler in the direction of A, those ppo "
        "would clip, or all"),
    NUMBER(m2_tau, 0, INFINITY, "limit of the mean squared log-ratio"),
    BOOLEAN(token_mask,
            "zero weight where ppo with mask_low and mask_high would clip (CISPO's M1)"),
    NUMBER(mask_low, 0, INFINITY, "lower width of token_mask"),
    NUMBER(mask_high, 0, INFINITY, "upper width of token_mask"),
    NUMBER(gate.negative_below, 0, INFINITY,
           "responses with A < 0 whose likelihood is below this leave the policy term; 0: none"),
    NUMBER(gate.positive_above, 0, INFINITY,
           "responses with A > 0 whose likelihood is above this leave the policy term"),
    CHOICE_OF(gate.of, gate_of, gate_of_count,
              "what P is divided by to give that likelihood: the group's expectation of Q, as in "
              "GEPO with denominator: self_normalised, or the response's own Q"),
    CHOICE_OF(gate.scope, group_scope, group_scope_count,
              "over which responses that expectation is formed, as group_scope says of the ratio"),
    CHOICE_OF(gate.log_prob, log_prob, log_prob_count,
              "P and Q of the gate: geometric means per token (mean) or true products (sum)"),
    CHOICE(aggregate,
           "token terms summed or averaged per response then over the group and the groups; over "
           "all tokens of the batch; over each group's tokens; over group size times max_length; "
           "with T^-length_power; or summed over the batch"),
    NUMBER(length_power, 0, INFINITY, "length_power's exponent alpha"),
    NUMBER(kl_coef, 0, INFINITY, "weight of the divergence from the sampler"),
    CHOICE(kl_form,
           "of l = logp - logq: cppo exp(-l)+l-1, k1 -l, k2 l^2/2, k3 exp(l)-l-1, abs |l|; "
           "aggregated as the policy term"),
    NUMBER(kl_share, 0, 1,
           "share of the batch's tokens that kl_coef is for: those with the largest product of "
           "A and logp about their means (KL-Cov), one token at least"),
    NUMBER(ref_kl_coef, 0, INFINITY, "weight of the divergence from the reference policy"),
    CHOICE(ref_kl_form,
           "of d = logp - logref: k1 d, k2 d^2/2, k3 exp(-d)+d-1 (what GRPO prints), abs |d|; "
           "k1_plus and k3_plus have the gradient of k2"),
    BOOLEAN(ref_kl_ratio,
            "multiply that term by the ratio (of the token or the response), differentiated"),
    CHOICE(correction_of, "truncation and masking look at l0 = logprox - logq or logp - logq"),
    CHOICE_OF(
        tis_level, level, level_count,
        "truncated factor exp(l0): per token, of the response (sum), its geometric mean, or the "
        "geometric mean of the truncated token factors; constant in theta"),
    NUMBER(tis_min, 0, INFINITY, "lower limit of the factor"),
    NUMBER(tis_max, 0, INFINITY, "upper limit of the factor"),
    NUMBER(tis_log_clamp, 0, INFINITY, "l0 (or its sum) is limited to +- this first"),
    BOOLEAN(
        tis_normalise,
        "divide the factors by their mean over the batch: over tokens for tis_level: token, else "
        "over responses"),
    CHOICE_OF(mis_level, mask_level, mask_level_count,
              "0/1 factor by a test on a token, or on a response's sum, mean or largest (k2, k3)"),
    CHOICE(mis_test, "ratio: exp(l0) in [mis_min, mis_max]; k1: -l0 in [log mis_min, log mis_max]; "
                     "k2 l0^2/2 and k3 exp(l0)-l0-1: at most mis_max"),
    NUMBER(mis_min, 0, INFINITY, "lower bound of the test"),
    NUMBER(mis_max, 0, INFINITY, "upper bound of the test"),
    CHOICE_OF(mis2_level, mask_level, mask_level_count,
              "the same for a second test; both must pass"),
    CHOICE_OF(mis2_test, mis_test, mis_test_count, "as mis_test"),
    NUMBER(mis2_min, 0, INFINITY, "as mis_min"),
    NUMBER(mis2_max, 0, INFINITY, "as mis_max"),
    NUMBER(mis_log_clamp, 0, INFINITY, "l0 is limited to +- this for both tests"),
    NUMBER(off_policy_mask, 0, INFINITY,
           "responses with A < 0 whose mean of logq - logp exceeds this lose their policy term"),
    NUMBER(top_entropy, TINY, 1,
           "share of the batch's tokens that keep their policy term: those where the learner's "
           "policy has the largest entropy; not in the laboratory"),
    CHOICE(mask_denominator,
           "masked tokens count in averages (all), or leave them, the KL terms and the response's "
           "ratio (kept)"),
    CHOICE(negatives,
           "disco: wrong answers weigh as a softmax of their scores, or equally (DisCO-b)"),
    NUMBER(disco_tau, TINY, INFINITY, "disco's temperature"),
    NUMBER(penalty, 0, INFINITY,
           "disco: slope of the penalty once mean(logq - logp) exceeds "
           "penalty_margin"),
    NUMBER(penalty_margin, 0, INFINITY, "disco's delta"),
};

size_t policy_fields_count(void) {
  return sizeof fields / sizeof fields[0];
}

const policy_field *policy_fields_at(size_t i) {
  return &fields[i];
}

const char *policy_algorithm_field(const policy_algorithm *algorithm, size_t i,
                                   char text[POLICY_FIELD_TEXT_SIZE]) {
  const policy_field *f = &fields[i];
  const void *at = (const char *)algorithm + f->offset;
  switch (f->kind) {
  case FIELD_CHOICE:
    snprintf(text, POLICY_FIELD_TEXT_SIZE, "%s", f->choice(*(const int *)at));
    break;
  case FIELD_BOOL:
    snprintf(text, POLICY_FIELD_TEXT_SIZE, "%s", *(const int *)at ? "true" : "false");
    break;
  case FIELD_COUNT:
    snprintf(text, POLICY_FIELD_TEXT_SIZE, "%zu", *(const size_t *)at);
    break;
  case FIELD_NUMBER:
    number_text(*(const double *)at, text);
    break;
  }
  return text;
}
