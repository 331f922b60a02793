/* The table of all fields of an algorithm: name, valid values and meaning. It is used to read
 * recipes, print algorithms and word errors. */
#include "core/config/fields.h"
#include "core/base/json.h"
#include "core/policy/algorithm.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Choices are read and written as int. */
_Static_assert(sizeof(policy_ratio) == sizeof(int), "enums are as wide as int");

/* Defines the function kind_name(value) and the constant kind_count for a list of values. */
#define NAME_OF(value, name) name
#define NAMES(kind, LIST)                                                                          \
  static const char *const kind##_names[] = {LIST(NAME_OF)};                                       \
  enum { kind##_count = sizeof kind##_names / sizeof kind##_names[0] };                            \
  static const char *kind##_name(int value) {                                                      \
    return kind##_names[value];                                                                    \
  }

NAMES(objective, POLICY_OBJECTIVES)
NAMES(baseline, POLICY_BASELINES)
NAMES(scale, POLICY_SCALES)
NAMES(log_prob, POLICY_LOG_PROBS)
NAMES(gate_of, POLICY_GATE_OF)
NAMES(old_policy, POLICY_OLD_POLICIES)
NAMES(denominator, POLICY_DENOMINATORS)
NAMES(group_scope, POLICY_SCOPES)
NAMES(clip, POLICY_CLIPS)
NAMES(m2_form, POLICY_M2_FORMS)
NAMES(m2_set, POLICY_M2_SETS)
NAMES(aggregate, POLICY_AGGREGATES)
NAMES(kl_form, POLICY_KL_FORMS)
NAMES(ref_kl_form, POLICY_REF_KL_FORMS)
NAMES(correction_of, POLICY_CORRECTION_OF)
NAMES(level, POLICY_LEVELS)
NAMES(mask_level, POLICY_MASK_LEVELS)
NAMES(mis_test, POLICY_MIS_TESTS)
NAMES(mask_denominator, POLICY_MASK_DENOMINATORS)
NAMES(negatives, POLICY_NEGATIVES)
NAMES(reward_kl_of, POLICY_REWARD_KL_OF)

static const char *ratio_name(int value) {
  return policy_ratio_about((policy_ratio)value)->name;
}
enum { ratio_count = RATIO_COUNT };

#define CHOICE_OF(field, kind, count, text)                                                        \
  { #field, POLICY_FIELD_CHOICE, offsetof(policy_algorithm, field), kind##_name, count, 0, 0, text }
#define CHOICE(field, text) CHOICE_OF(field, field, field##_count, text)
#define BOOLEAN(field, text)                                                                       \
  { #field, POLICY_FIELD_FLAG, offsetof(policy_algorithm, field), NULL, 0, 0, 0, text }
#define COUNT(field, lo, hi, text)                                                                 \
  { #field, POLICY_FIELD_COUNT, offsetof(policy_algorithm, field), NULL, 0, lo, hi, text }
#define NUMBER(field, lo, hi, text)                                                                \
  { #field, POLICY_FIELD_NUMBER, offsetof(policy_algorithm, field), NULL, 0, lo, hi, text }
#define TINY 1e-300
#define LARGE 1e100 /* bound of coefficients, so that their products with terms are finite */

static const policy_field fields[] = {
    CHOICE(objective,
           "policy_gradient: advantages times ratios; disco: scores of right answers against those "
           "of wrong ones; real: a classifier's loss on both (REAL)"),
    CHOICE(baseline,
           "what is subtracted from a reward; length_weighted: the group's mean with lengths as "
           "weights; runner_up: the best response keeps its lead over the second best, the others "
           "get 0; off_policy: the mean with squared P / Q times lengths as weights (VCPO); "
           "soft_maximum: the log of the mean of exp(reward / baseline_temperature), times that "
           "temperature (OPMD)"),
    NUMBER(baseline_value, -LARGE, LARGE,
           "the constant of baseline: constant; added to the baselines group_mean, leave_one_out, "
           "length_weighted and off_policy (AsymRE)"),
    NUMBER(baseline_temperature, TINY, LARGE, "temperature of baseline: soft_maximum"),
    CHOICE(
        scale,
        "what the centred reward is divided by: the group's standard deviation, the batch's "
        "(after centring again by the batch mean), BNPO's Beta density at the group mean, the "
        "standard deviation of the batch's rewards, that of the batch with a response counted "
        "once a token (after centring again likewise), the fraction of rewards that are not 0, or "
        "the group's mean reward (MaxRL)"),
    NUMBER(scale_eps, 0, INFINITY,
           "added to the standard deviation (to its square, for scale: token_std) or to the mean"),
    COUNT(std_ddof, 0, 1,
          "the standard deviation divides by n - std_ddof (a group of one has deviation 0)"),
    BOOLEAN(drop_equal, "groups whose rewards are all equal leave the batch and its averages"),
    NUMBER(reward_kl_coef, 0, LARGE,
           "a reward loses this times the response's summed log-ratio, a constant, before the "
           "baseline (for baseline: soft_maximum after it)"),
    CHOICE(reward_kl_of, "that log-ratio's denominator: the sampler, or the reference policy"),
    CHOICE(
        ratio,
        "importance ratio of learner and sampler; p and q are probabilities of a token, P and Q of "
        "the response"),
    CHOICE(log_prob, "response probability: true product (sum) or geometric mean per token (mean)"),
    CHOICE(
        old_policy,
        "the ratio's denominator policy: the sampler's log-probabilities, those of the learner at "
        "the batch's first update, or (interpolated, A-3PO) between sampler and learner by a "
        "token's staleness d: logq + (1 - 1/d) (logp - logq), a constant"),
    NUMBER(proximal_decay, 0, 1,
           "old_policy: proximal; the proximal policy has a moving average of the learner's "
           "parameters, whose weights decay by this at every optimiser update (PPO-EWMA); 0: the "
           "learner at the batch's first update"),
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
           "fraction of P in the mixture ratio's denominator, and of p in token_mixture's"),
    BOOLEAN(mixture_anneal,
            "token_mixture: the weight decreases with a token's staleness d, in versions, as "
            "1 / (1 + exp(mixture_slope (d - mixture_midpoint))), in place of mixture"),
    NUMBER(mixture_midpoint, 0, INFINITY, "staleness at which the annealed fraction is a half"),
    NUMBER(mixture_slope, TINY, LARGE, "slope of the annealed fraction"),
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
        "probability has moved too far (DPPO); probability: ppo with bounds that widen as q "
        "falls (DCPO); reciprocal: q / p for A > 0 (ASPO)"),
    NUMBER(eps_low, 0, INFINITY,
           "lower clip width (a log width for ppo_power and token_log, a divergence for binary_tv "
           "and binary_kl)"),
    NUMBER(eps_high, 0, INFINITY, "upper clip width, likewise"),
    NUMBER(dual_clip, TINY, INFINITY,
           "for A < 0, upper limit of the ratio (of |log ratio| / t^clip_power for ppo_power)"),
    NUMBER(
        cap, 0, INFINITY,
        "upper limit of the ratio for clip: cap, binary_tv and binary_kl, of the upper bound for "
        "clip: probability"),
    NUMBER(keep_low, 0, LARGE,
           "ppo with ratio_gradient: false: a token below the lower bound has this times the bound "
           "as factor (GPPO 1, CE-GPPO's beta_1; 0: PPO's gradient)"),
    NUMBER(keep_high, 0, LARGE, "the same above the upper bound, for A > 0"),
    NUMBER(balance, 0, INFINITY,
           "ppo: the lower bound rises, then the upper, by balance_step until the sum of positive "
           "token terms is this times that of negative ones (BAPO); 0: fixed bounds"),
    NUMBER(balance_step, TINY, INFINITY, "one step of a bound (of the ratio)"),
    NUMBER(balance_low, 0, INFINITY, "the lower bound rises to this at most"),
    NUMBER(balance_high, 0, INFINITY, "the upper bound rises to this at most"),
    NUMBER(clip_power, 0, INFINITY, "exponent of ppo_power's bounds"),
    NUMBER(positive_low, 0, LARGE, "signed_clamp, A >= 0: lower limit"),
    NUMBER(positive_high, 0, INFINITY, "signed_clamp, A >= 0: upper limit"),
    NUMBER(negative_low, 0, LARGE, "signed_clamp, A < 0: lower limit"),
    NUMBER(negative_high, 0, INFINITY, "signed_clamp, A < 0: upper limit"),
    NUMBER(tau_positive, TINY, LARGE, "SAPO's temperature for A > 0"),
    NUMBER(tau_negative, TINY, LARGE, "SAPO's temperature for A <= 0"),
    NUMBER(tanh_scale, TINY, LARGE, "MHPO's c"),
    NUMBER(hazard_power_up, 0, INFINITY, "MHPO's k+"),
    NUMBER(hazard_width_up, TINY, INFINITY, "MHPO's Lambda+"),
    NUMBER(hazard_power_down, 0, INFINITY, "MHPO's k-"),
    NUMBER(hazard_width_down, TINY, INFINITY, "MHPO's Lambda-"),
    NUMBER(gamma_k_positive, 0, LARGE, "VESPO's k for A >= 0"),
    NUMBER(gamma_rate_positive, 0, LARGE, "VESPO's lambda for A >= 0"),
    NUMBER(gamma_k_negative, 0, LARGE, "VESPO's k for A < 0"),
    NUMBER(gamma_rate_negative, 0, LARGE, "VESPO's lambda for A < 0"),
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
    NUMBER(
        gate.negative_above, 0, INFINITY,
        "responses with A < 0 whose likelihood is above this leave the policy term (a placebo for "
        "negative_below)"),
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
    NUMBER(length_power, 0, 100, "length_power's exponent alpha"),
    NUMBER(kl_coef, 0, LARGE, "weight of the divergence from the sampler"),
    CHOICE(kl_form,
           "of l = logp - logq: cppo exp(-l)+l-1, k1 -l, k2 l^2/2, k3 exp(l)-l-1, abs |l|; "
           "aggregated as the policy term"),
    NUMBER(kl_share, 0, 1,
           "fraction of the batch's tokens that kl_coef is for: those with the largest product of "
           "A and logp about their means (KL-Cov), one token at least"),
    NUMBER(ref_kl_coef, 0, LARGE, "weight of the divergence from the reference policy"),
    CHOICE(ref_kl_form,
           "of d = logp - logref: k1 d, k2 d^2/2, k3 exp(-d)+d-1 (what GRPO prints), abs |d|; "
           "k1_plus and k3_plus have the gradient of k2"),
    BOOLEAN(ref_kl_ratio,
            "multiply that term by the ratio (of the token or the response), differentiated"),
    CHOICE(correction_of, "truncation and masking look at l0 = logprox - logq or logp - logq"),
    CHOICE_OF(
        tis_level, level, level_count,
        "truncated factor exp(l0): per token, of the response (sum), its geometric mean, the "
        "geometric mean of the truncated token factors, or (future, FIPO) of the sum over this and "
        "later tokens, each halved every future_half_life tokens; constant in theta"),
    NUMBER(future_half_life, TINY, INFINITY,
           "tis_level: future; tokens with l0 above log dual_clip do not count"),
    NUMBER(tis_min, 0, LARGE, "lower limit of the factor"),
    NUMBER(tis_max, 0, INFINITY, "upper limit of the factor"),
    NUMBER(tis_log_clamp, 0, INFINITY, "l0 (or its sum) is limited to +- this first"),
    BOOLEAN(
        tis_normalise,
        "divide the factors by their mean over the batch: over tokens for tis_level: token, else "
        "over responses"),
    CHOICE_OF(
        mis_level, mask_level, mask_level_count,
        "0/1 factor by a test on a token, or on a response's sum, mean or largest (k2, k3, tv)"),
    CHOICE(mis_test, "ratio: exp(l0) in [mis_min, mis_max]; k1: -l0 in [log mis_min, log mis_max]; "
                     "k2 l0^2/2, k3 exp(l0)-l0-1 and tv, the difference of the token's two "
                     "probabilities: at most mis_max"),
    NUMBER(
        mis_free_low, 0, INFINITY,
        "mis_test: ratio; where A > 0 a ratio at or below this stays in spite of the test (REC)"),
    NUMBER(mis_free_high, 0, INFINITY, "where A < 0 a ratio at or above this stays"),
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
           "fraction of the batch's tokens that keep their policy term: those where the learner's "
           "policy has the largest entropy; not in the laboratory"),
    NUMBER(entropy_ratio_low, 0, INFINITY,
           "old_policy: proximal; tokens keep their policy term where the learner's entropy over "
           "that of the proximal policy is above this (ERC); not in the laboratory"),
    NUMBER(entropy_ratio_high, 0, INFINITY, "and below this"),
    CHOICE(mask_denominator,
           "masked tokens count in averages (all), or leave them, the KL terms and the response's "
           "ratio (kept)"),
    CHOICE(negatives,
           "disco: wrong answers weigh as a softmax of their scores, or equally (DisCO-b)"),
    NUMBER(disco_tau, TINY, LARGE, "temperature of disco and real"),
    NUMBER(penalty, 0, LARGE,
           "disco: slope of the penalty once mean(logq - logp) exceeds "
           "penalty_margin"),
    NUMBER(penalty_margin, 0, INFINITY, "disco's delta"),
};

_Static_assert(sizeof fields / sizeof fields[0] + 8 <= CFG_READER_MAX_KEYS, "a reader has room");
_Static_assert(sizeof fields / sizeof fields[0] <= POLICY_MOST_FIELDS, "callers have room");

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
  case POLICY_FIELD_CHOICE:
    snprintf(text, POLICY_FIELD_TEXT_SIZE, "%s", f->choice(*(const int *)at));
    break;
  case POLICY_FIELD_FLAG:
    snprintf(text, POLICY_FIELD_TEXT_SIZE, "%s", *(const int *)at ? "true" : "false");
    break;
  case POLICY_FIELD_COUNT:
    snprintf(text, POLICY_FIELD_TEXT_SIZE, "%zu", *(const size_t *)at);
    break;
  case POLICY_FIELD_NUMBER:
    number_text(*(const double *)at, text);
    break;
  }
  return text;
}

/* --- the shown name --- */
/* The shown name: the base and the changed fields, as in `gepo(clip=none)`, unless the recipe sets
 * a name. */

static int fields_equal(const policy_algorithm *a, const policy_algorithm *b, size_t i) {
  char one[POLICY_FIELD_TEXT_SIZE], other[POLICY_FIELD_TEXT_SIZE];
  return strcmp(policy_algorithm_field(a, i, one), policy_algorithm_field(b, i, other)) == 0;
}

static int all_fields_equal(const policy_algorithm *a, const policy_algorithm *b) {
  for (size_t i = 0; i < policy_fields_count(); ++i)
    if (!fields_equal(a, b, i)) return 0;
  return 1;
}

static int is_left_out(const char *own, const char *const *left_out, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (strcmp(own, left_out[i]) == 0) return 1;
  return 0;
}

gl_status policy_algorithm_set_name(policy_algorithm *algorithm, const char *const *left_out,
                                    size_t n_left_out, gl_error *err) {
  const policy_algorithm *base = policy_algorithms_find(algorithm->base);
  assert(base != NULL);
  if (algorithm->has_own_name) return GL_OK;
  char *name = algorithm->name;
  const size_t size = sizeof algorithm->name;
  size_t at = (size_t)snprintf(name, size, "%s", base->name), changed = 0;
  for (size_t i = 0; i < policy_fields_count() && at < size; ++i) {
    const char *own = policy_fields_at(i)->name;
    char value[POLICY_FIELD_TEXT_SIZE];
    if (fields_equal(algorithm, base, i) || is_left_out(own, left_out, n_left_out)) continue;
    at += (size_t)snprintf(name + at, size - at, "%s%s=%s", changed++ == 0 ? "(" : ", ", own,
                           policy_algorithm_field(algorithm, i, value));
  }
  if (changed > 0 && at < size) at += (size_t)snprintf(name + at, size - at, ")");
  if (at < size) return GL_OK;
  static const char cut[] = "…)";
  memcpy(name + size - sizeof cut, cut, sizeof cut);
  return gl_fail(err, GL_EINPUT,
                 "%s with these changes has a name of more than %zu characters; give it a `name`",
                 base->name, size - 1);
}

/* Errors: GL_EINPUT if the shown name is that of a published algorithm with different fields. */
static gl_status algorithm_check_name(const policy_algorithm *algorithm, gl_error *err) {
  const policy_algorithm *published = policy_algorithms_find(algorithm->name);
  if (published == NULL || strcmp(published->name, algorithm->name) != 0 ||
      all_fields_equal(algorithm, published))
    return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "'%s' is the name of a published algorithm, whose fields are others; leave `name` "
                 "out, and what was changed is shown with the base, or choose another",
                 algorithm->name);
}

/* --- reading a recipe --- */

static gl_status algorithm_unknown(const cfg_node *node, gl_error *err) {
  const char *names[POLICY_MOST_ALGORITHMS];
  size_t n = policy_algorithms_count();
  for (size_t i = 0; i < n; ++i) names[i] = policy_algorithms_at(i)->name;
  char near[CFG_HINT_SIZE], other[FIELD_HINT_SIZE];
  if (*fields_value_elsewhere("algorithm", cfg_text(node), other) != '\0')
    return cfg_fail(node, err, "no algorithm '%s'; write %s", cfg_text(node), other);
  const char *name = cfg_text(node), *many = strchr(name, ','), *json = strstr(name, ".json");
  if (many != NULL)
    return cfg_fail(node, err,
                    "no algorithm '%s'; give one at a time (`gepolab sweep` takes a list: "
                    "sweep.algorithm=[%s])",
                    name, name);
  if (strchr(name, ':') != NULL)
    return cfg_fail(node, err,
                    "no algorithm '%s'; a map is put in quotes, with a blank behind each colon: "
                    "'{base: gepo, clip: none}'",
                    name);
  if (json != NULL)
    return cfg_fail(node, err, "no algorithm '%s', which is a file's name; write -a NAME %s", name,
                    name);
  return cfg_fail(
      node, err,
      "no algorithm '%s'; `gepolab list algorithms` lists them, and one of your own is defined "
      "in a file: --algorithms FILE or $GEPOLAB_ALGORITHMS%s",
      cfg_text(node), cfg_hint(cfg_text(node), names, n, near));
}

static void algorithm_read_field(policy_algorithm *algorithm, const policy_field *f,
                                 const char *key, cfg_reader *r) {
  void *at = (char *)algorithm + f->offset;
  const char *names[POLICY_MOST_CHOICES];
  switch (f->kind) {
  case POLICY_FIELD_CHOICE:
    for (int i = 0; i < f->n_choices; ++i) names[i] = f->choice(i);
    *(int *)at = cfg_choice(r, key, *(int *)at, names, f->n_choices);
    break;
  case POLICY_FIELD_FLAG:
    *(int *)at = cfg_bool(r, key, *(int *)at);
    break;
  case POLICY_FIELD_COUNT:
    *(size_t *)at = cfg_count(r, key, *(size_t *)at, (size_t)f->lo, (size_t)f->hi);
    break;
  case POLICY_FIELD_NUMBER:
    *(double *)at = cfg_double(r, key, *(double *)at, f->lo, f->hi);
    break;
  }
}

/* Fields named `gate.NAME` are keys of the map `gate`. */
static const char gate_section[] = "gate.";

static const char *key_in_gate(const policy_field *f) {
  const size_t n = sizeof gate_section - 1;
  return strncmp(f->name, gate_section, n) == 0 ? f->name + n : NULL;
}

static void read_fields(policy_algorithm *algorithm, cfg_reader *r) {
  cfg_reader gate;
  cfg_begin(&gate, cfg_child(r, "gate"), "algorithm.gate", r->err);
  if (r->status != GL_OK) gate.status = r->status;
  for (size_t i = 0; i < policy_fields_count(); ++i) {
    const policy_field *f = policy_fields_at(i);
    const char *key = key_in_gate(f);
    if (key != NULL)
      algorithm_read_field(algorithm, f, key, &gate);
    else
      algorithm_read_field(algorithm, f, f->name, r);
  }
  if (cfg_end(&gate) != GL_OK && r->status == GL_OK) r->status = gate.status;
}

/* Uses the recipe's `name:` if there is one, otherwise a name made of the changed fields. */
static gl_status algorithm_read_name(policy_algorithm *algorithm, const cfg_node *map, int shortens,
                                     gl_error *err) {
  const cfg_node *node = cfg_find(map, "name");
  gl_error why = {0};
  algorithm->has_own_name = node != NULL && !cfg_is_null(node);
  if (!algorithm->has_own_name) {
    gl_status status = policy_algorithm_set_name(algorithm, NULL, 0, &why);
    if (status == GL_OK || shortens) return GL_OK;
    return cfg_fail(map, err, "%s", why.text);
  }
  const char *name = cfg_text(node);
  if (name[0] == '\0') return cfg_fail(node, err, "the algorithm's name is empty");
  if (strlen(name) >= sizeof algorithm->name)
    return cfg_fail(node, err, "the algorithm's name is longer than %zu characters",
                    sizeof algorithm->name - 1);
  snprintf(algorithm->name, sizeof algorithm->name, "%s", name);
  if (algorithm_check_name(algorithm, &why) != GL_OK) return cfg_fail(node, err, "%s", why.text);
  return GL_OK;
}

static gl_status algorithm_parse(policy_algorithm *algorithm, const cfg_node *node, int shortens,
                                 gl_error *err) {
  const policy_algorithm *base = policy_algorithms_find("grpo");
  const cfg_node *name = node;
  gl_error why = {0};
  cfg_reader r;
  *algorithm = *base;
  if (node == NULL) return GL_OK;
  if (cfg_kind_of(node) == CFG_LIST)
    return cfg_fail(
        node, err,
        "algorithm is a list; give an algorithm's name or a map {base: NAME, ...}; several "
        "are an axis of a sweep: sweep.algorithm=[...]");
  if (cfg_kind_of(node) == CFG_MAP) name = cfg_find(node, "base");
  for (size_t i = 0; name == NULL && i < cfg_size(node); ++i)
    if (strchr(cfg_key_at(node, i), ':') != NULL)
      return cfg_fail(node, err, "'%s': YAML needs a blank behind a colon, as in {base: grpo}",
                      cfg_key_at(node, i));
  if (name == NULL)
    return cfg_fail(node, err,
                    "algorithm has no 'base'; name the algorithm whose fields it changes: "
                    "algorithm.base=grpo on the command line, {base: grpo, ...} in a recipe");
  base = policy_algorithms_find(cfg_text(name));
  if (cfg_kind_of(name) != CFG_SCALAR || base == NULL) return algorithm_unknown(name, err);
  *algorithm = *base;
  if (cfg_kind_of(node) != CFG_MAP) return GL_OK;
  cfg_begin(&r, node, "algorithm", err);
  cfg_string(&r, "base", NULL);
  cfg_string(&r, "name", NULL);
  read_fields(algorithm, &r);
  gl_status status = cfg_end(&r);
  if (status == GL_OK) status = algorithm_read_name(algorithm, node, shortens, err);
  if (status != GL_OK) return status;
  if (policy_algorithm_check(algorithm, &why) != GL_OK) return cfg_fail(node, err, "%s", why.text);
  return GL_OK;
}

gl_status policy_algorithm_parse(policy_algorithm *algorithm, const cfg_node *node, gl_error *err) {
  return algorithm_parse(algorithm, node, 0, err);
}

gl_status policy_algorithm_parse_alone(policy_algorithm *algorithm, const cfg_node *node,
                                       gl_error *err) {
  return algorithm_parse(algorithm, node, 1, err);
}

/* --- the user's own algorithms --- */

static const char *algorithm_published(const char *name) {
  const policy_algorithm *published = policy_algorithms_find(name);
  return published != NULL ? published->name : NULL;
}

static gl_status algorithm_check_own(const cfg_node *section, gl_error *err) {
  policy_algorithm made;
  return policy_algorithm_parse_alone(&made, section, err);
}

static const own_kind own_algorithms = {.key = "algorithms",
                                        .aside = "algorithms\n",
                                        .section = "algorithm",
                                        .base = "base",
                                        .noun = "algorithm",
                                        .example = "my_grpo: {base: grpo, clip: none}",
                                        .is_word = true,
                                        .published = algorithm_published,
                                        .check = algorithm_check_own};

const field_table policy_own = {.own = &own_algorithms};

gl_status policy_algorithms_own(policy_algorithm *out, const cfg_own *own, size_t i,
                                gl_error *err) {
  const char *name = "";
  const cfg_node *section = cfg_own_at(own, own_algorithms.key, i, &name);
  const gl_status status = policy_algorithm_parse_alone(out, section, err);
  snprintf(out->name, sizeof out->name, "%s", name);
  out->has_own_name = 1;
  return status;
}

/* --- compatible fields --- */

int policy_has_entropy_ratio(const policy_algorithm *a) {
  return a->entropy_ratio_low > 0 || !isinf(a->entropy_ratio_high);
}

int policy_needs_entropy(const policy_algorithm *algorithm) {
  return algorithm->top_entropy < 1 || policy_has_entropy_ratio(algorithm);
}

/* Returns a field whose choice has a value outside its enum, or NULL if all are valid. Only our own
 * code can cause this, because recipes name choices. */
static const policy_field *impossible_choice(const policy_algorithm *algorithm, int *value) {
  for (size_t i = 0; i < policy_fields_count(); ++i) {
    const policy_field *f = policy_fields_at(i);
    if (f->kind != POLICY_FIELD_CHOICE) continue;
    *value = *(const int *)(const void *)((const char *)algorithm + f->offset);
    if (*value < 0 || *value >= f->n_choices) return f;
  }
  return NULL;
}

static int has_two_sides(policy_mis_test test) {
  return test == MIS_RATIO || test == MIS_K1;
}

/* The most steps that balance can take. */
enum { MOST_BALANCE_STEPS = 10000 };
static double balance_steps(const policy_algorithm *a) {
  return (fmax(0, a->balance_low - (1 - a->eps_low)) +
          fmax(0, a->balance_high - (1 + a->eps_high))) /
         a->balance_step;
}

/* Whether an algorithm has a combination of values without meaning (wrong), and what to set
 * instead (why). */
typedef struct algorithm_rule {
  int wrong;
  const char *why;
} algorithm_rule;

static gl_status refuse_first(const policy_algorithm *a, const algorithm_rule *rules, size_t n,
                              gl_error *err) {
  for (size_t i = 0; i < n; ++i)
    if (rules[i].wrong) return gl_fail(err, GL_EINPUT, "algorithm %s: %s", a->name, rules[i].why);
  return GL_OK;
}

/* The clip, and masks by importance ratios. */
static gl_status check_clip(const policy_algorithm *a, gl_error *err) {
  const bool scores = a->objective != OBJECTIVE_POLICY_GRADIENT;
  const algorithm_rule rules[] = {
      {a->clip == CLIP_GAMMA && a->ratio_gradient && !scores,
       "clip: gamma has no ratio gradient; set ratio_gradient: false"},
      {a->clip == CLIP_TOKEN_LOG &&
           (a->ratio != RATIO_SEQUENCE || a->log_prob != LOG_PROB_MEAN || !a->ratio_gradient),
       "clip: token_log needs ratio: sequence, log_prob: mean and ratio_gradient: true"},
      {a->clip == CLIP_SECOND_MOMENT && a->ratio != RATIO_TOKEN,
       "clip: second_moment needs ratio: token"},
      {a->clip == CLIP_GAMMA && a->ratio != RATIO_SEQUENCE, "clip: gamma needs ratio: sequence"},
      {a->clip == CLIP_GAMMA && a->tis_level != LEVEL_NONE && a->tis_level != LEVEL_TOKEN,
       "clip: gamma adds the logarithms of token factors to ln W; set tis_level: none or token"},
      {(a->clip == CLIP_BINARY_TV || a->clip == CLIP_BINARY_KL) &&
           (a->ratio != RATIO_TOKEN || a->ratio_gradient) && !scores,
       "clip: binary_tv and binary_kl need ratio: token and ratio_gradient: false"},
      {a->clip == CLIP_PROBABILITY && a->ratio != RATIO_TOKEN,
       "clip: probability needs ratio: token"},
      {a->clip == CLIP_RECIPROCAL && (a->ratio != RATIO_TOKEN || a->ratio_gradient),
       "clip: reciprocal needs ratio: token and ratio_gradient: false"},
      {(a->keep_low != 1 || a->keep_high != 1) && (a->clip != CLIP_PPO || a->ratio_gradient),
       "keep_low and keep_high need clip: ppo and ratio_gradient: false"},
      {a->balance > 0 && (a->clip != CLIP_PPO || a->ratio != RATIO_TOKEN),
       "balance needs clip: ppo and ratio: token"},
      {a->balance > 0 && balance_steps(a) > MOST_BALANCE_STEPS,
       "balance_step divides the ways to balance_low and balance_high into more than 10000 steps; "
       "set a larger balance_step"},
      {(a->mis_free_low > 0 || !isinf(a->mis_free_high)) &&
           (a->mis_test != MIS_RATIO || a->mis_level == MASK_LEVEL_NONE),
       "mis_free_low and mis_free_high are for mis_test: ratio at a mis_level"},
  };
  return refuse_first(a, rules, sizeof rules / sizeof rules[0], err);
}

/* Baseline, scale and divergence terms. */
static gl_status check_advantage(const policy_algorithm *a, gl_error *err) {
  const bool scores = a->objective != OBJECTIVE_POLICY_GRADIENT;
  const algorithm_rule rules[] = {
      {a->scale == SCALE_GROUP_MEAN && a->baseline == BASELINE_RUNNER_UP,
       "scale: group_mean needs a baseline other than runner_up"},
      {a->reward_kl_coef > 0 &&
           (scores || a->baseline == BASELINE_RUNNER_UP || a->scale == SCALE_BETA ||
            a->scale == SCALE_NONZERO_SHARE || a->scale == SCALE_GROUP_MEAN),
       "reward_kl_coef changes rewards, which objective: disco and real, baseline: runner_up and "
       "scale: "
       "beta, nonzero_share and group_mean need as they are"},
      {a->baseline == BASELINE_RUNNER_UP && a->scale != SCALE_NONE && a->scale != SCALE_GROUP_STD &&
           a->scale != SCALE_REWARD_STD && !scores,
       "baseline: runner_up needs scale: none, group_std or reward_std: the others centre rewards "
       "again or share a mean"},
      {a->ref_kl_ratio && a->ratio != RATIO_TOKEN && a->ratio != RATIO_SEQUENCE,
       "ref_kl_ratio: true needs ratio: token or sequence"},
      {a->ref_kl_ratio && (scores || a->clip == CLIP_GAMMA),
       "ref_kl_ratio: true has no meaning for objective: disco and real and for clip: gamma"},
      {a->kl_share < 1 && scores,
       "kl_share orders tokens by advantages, which objective: disco and real have none of; set "
       "kl_share: 1"},
      {(a->mis_level == MASK_LEVEL_SEQUENCE_MAX && has_two_sides(a->mis_test)) ||
           (a->mis2_level == MASK_LEVEL_SEQUENCE_MAX && has_two_sides(a->mis2_test)),
       "a response's largest value is tested by mis_test: k2, k3 or tv, which grow on both sides; "
       "so for mis2_test"},
      {a->scale == SCALE_BETA && a->baseline != BASELINE_GROUP_MEAN,
       "scale: beta is defined about the group's mean; set baseline: group_mean"},
  };
  return refuse_first(a, rules, sizeof rules / sizeof rules[0], err);
}

/* Denominators, negative clip, objectives by scores, and intervals. */
static gl_status check_rest(const policy_algorithm *a, gl_error *err) {
  const bool scores = a->objective != OBJECTIVE_POLICY_GRADIENT;
  const algorithm_rule rules[] = {
      {a->clip == CLIP_PPO_POWER && policy_ratio_about(a->ratio)->unit != RATIO_OF_TOKEN,
       "clip: ppo_power needs a token ratio (token, prefix)"},
      {a->denominator_gradient &&
           (!a->ratio_gradient || a->kappa > 0 || !policy_denominator_contains_p(a)),
       "denominator_gradient: true needs ratio_gradient: true, kappa: 0 and a denominator that "
       "contains P (ratio: self_normalised, or group_expectation with denominator: expected_p)"},
      {policy_needs_exact_denominator(a) &&
           (a->log_prob != LOG_PROB_SUM || a->group_scope != SCOPE_PROMPT),
       "denominator: exact needs log_prob: sum and group_scope: prompt"},
      {a->mixture_anneal && a->ratio != RATIO_TOKEN_MIXTURE,
       "mixture_anneal: true is for ratio: token_mixture"},
      {a->gate.of == GATE_SAMPLER && a->gate.scope == SCOPE_MICROBATCH,
       "gate.scope: microbatch is for gate.of: group_expectation; a response's own Q needs no "
       "others"},
      {scores && (a->gate.negative_below > 0 || !isinf(a->gate.negative_above) ||
                  !isinf(a->gate.positive_above)),
       "objective: disco and real have no advantages that gate.negative_below, gate.negative_above "
       "and "
       "gate.positive_above could look at"},
      {scores && a->ratio != RATIO_NONE && a->ratio != RATIO_TOKEN,
       "objective: disco needs ratio: none (log-L) or token (L-ratio)"},
      {a->objective == OBJECTIVE_REAL && a->ratio != RATIO_TOKEN,
       "objective: real scores responses by their ratios; set ratio: token"},
      {scores && (a->clip != CLIP_NONE || a->tis_level || a->mis_level || a->mis2_level ||
                  a->token_mask || a->off_policy_mask < INFINITY || policy_needs_entropy(a)),
       "objective: disco and real take no clip, truncation or mask"},
      {(a->proximal_decay > 0 || policy_has_entropy_ratio(a)) && a->old_policy != OLD_PROXIMAL,
       "proximal_decay, entropy_ratio_low and entropy_ratio_high need old_policy: proximal"},
      {a->entropy_ratio_low >= a->entropy_ratio_high,
       "entropy_ratio_low is not below entropy_ratio_high"},
      {a->mis_min > a->mis_max, "mis_min is above mis_max"},
      {a->mis2_min > a->mis2_max, "mis2_min is above mis2_max"},
      {a->tis_min > a->tis_max, "tis_min is above tis_max"},
      {a->positive_low > a->positive_high, "positive_low is above positive_high"},
      {a->negative_low > a->negative_high, "negative_low is above negative_high"},
  };
  return refuse_first(a, rules, sizeof rules / sizeof rules[0], err);
}

gl_status policy_algorithm_check(const policy_algorithm *algorithm, gl_error *err) {
  int value = 0;
  const policy_field *impossible = impossible_choice(algorithm, &value);
  if (impossible != NULL)
    return gl_fail(err, GL_EINPUT, "algorithm %s: %s has no value number %d", algorithm->name,
                   impossible->name, value);
  const policy_ratio_info *ratio = policy_ratio_about(algorithm->ratio);
  if (ratio == NULL)
    return gl_fail(err, GL_EINPUT, "algorithm %s: nothing is known of ratio number %d",
                   algorithm->name, (int)algorithm->ratio);
  const bool scores = algorithm->objective != OBJECTIVE_POLICY_GRADIENT;
  if (ratio->gradient == RATIO_GRADIENT_NONE && algorithm->ratio_gradient && !scores)
    return gl_fail(err, GL_EINPUT,
                   "algorithm %s: ratio: %s is a constant without a gradient; set ratio_gradient: "
                   "false",
                   algorithm->name, ratio->name);
  gl_status status = check_clip(algorithm, err);
  if (status == GL_OK) status = check_advantage(algorithm, err);
  return status == GL_OK ? check_rest(algorithm, err) : status;
}

/* The field that makes the algorithm compare the responses of a group; NULL if none does. */
static const char *comparing_field(const policy_algorithm *a) {
  if (a->objective != OBJECTIVE_POLICY_GRADIENT) return "objective";
  if (a->baseline != BASELINE_NONE && a->baseline != BASELINE_CONSTANT) return "baseline";
  return a->scale == SCALE_GROUP_STD || a->scale == SCALE_BETA || a->scale == SCALE_GROUP_MEAN
             ? "scale"
             : NULL;
}

gl_status policy_algorithm_check_group_size(const policy_algorithm *algorithm, size_t group_size,
                                            gl_error *err) {
  const char *comparing = comparing_field(algorithm);
  char value[POLICY_FIELD_TEXT_SIZE];
  size_t i = 0;
  if (group_size != 1 || comparing == NULL) return GL_OK;
  while (strcmp(policy_fields_at(i)->name, comparing) != 0) ++i;
  return gl_fail(err, GL_EINPUT,
                 "algorithm %s: %s: %s compares the responses of a group, and a group_size of 1 "
                 "leaves nothing to compare; set group_size to 2 or more, or baseline: none (or "
                 "constant) and scale: none in an algorithm that has them",
                 algorithm->name, comparing, policy_algorithm_field(algorithm, i, value));
}
