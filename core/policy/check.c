/* Which fields of an algorithm go together. */
#include "core/policy/algorithm.h"

#include <math.h>

/* A choice that holds none of its values can only come from our own code: a recipe's are read by
 * name. NULL: all are right. */
static const policy_field *impossible_choice(const policy_algorithm *algorithm, int *value) {
  for (size_t i = 0; i < policy_fields_count(); i++) {
    const policy_field *f = policy_fields_at(i);
    if (f->kind != FIELD_CHOICE) continue;
    *value = *(const int *)(const void *)((const char *)algorithm + f->offset);
    if (*value < 0 || *value >= f->n_choices) return f;
  }
  return NULL;
}

static int has_two_sides(policy_mis_test test) {
  return test == MIS_RATIO || test == MIS_K1;
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
  int disco = algorithm->objective == OBJECTIVE_DISCO;
  if (ratio->gradient == RATIO_GRADIENT_NONE && algorithm->ratio_gradient && !disco)
    return gl_fail(err, GL_EINPUT,
                   "algorithm %s: ratio: %s is a constant without a gradient; set ratio_gradient: "
                   "false",
                   algorithm->name, ratio->name);
  const struct {
    int wrong;
    const char *why;
  } rules[] = {
      {algorithm->clip == CLIP_GAMMA && algorithm->ratio_gradient && !disco,
       "clip: gamma has no ratio gradient; set ratio_gradient: false"},
      {algorithm->clip == CLIP_TOKEN_LOG &&
           (algorithm->ratio != RATIO_SEQUENCE || algorithm->log_prob != LOG_PROB_MEAN ||
            !algorithm->ratio_gradient),
       "clip: token_log needs ratio: sequence, log_prob: mean and ratio_gradient: true"},
      {algorithm->clip == CLIP_SECOND_MOMENT && algorithm->ratio != RATIO_TOKEN,
       "clip: second_moment needs ratio: token"},
      {algorithm->clip == CLIP_GAMMA && algorithm->ratio != RATIO_SEQUENCE,
       "clip: gamma needs ratio: sequence"},
      {algorithm->clip == CLIP_GAMMA && algorithm->tis_level != LEVEL_NONE &&
           algorithm->tis_level != LEVEL_TOKEN,
       "clip: gamma adds the logarithms of token factors to ln W; set tis_level: none or token"},
      {(algorithm->clip == CLIP_BINARY_TV || algorithm->clip == CLIP_BINARY_KL) &&
           (algorithm->ratio != RATIO_TOKEN || algorithm->ratio_gradient) && !disco,
       "clip: binary_tv and binary_kl need ratio: token and ratio_gradient: false"},
      {algorithm->baseline == BASELINE_RUNNER_UP && algorithm->scale != SCALE_NONE &&
           algorithm->scale != SCALE_GROUP_STD && algorithm->scale != SCALE_REWARD_STD && !disco,
       "baseline: runner_up needs scale: none, group_std or reward_std: the others centre rewards "
       "again or share a mean"},
      {algorithm->ref_kl_ratio && algorithm->ratio != RATIO_TOKEN &&
           algorithm->ratio != RATIO_SEQUENCE,
       "ref_kl_ratio: true needs ratio: token or sequence"},
      {algorithm->ref_kl_ratio && (disco || algorithm->clip == CLIP_GAMMA),
       "ref_kl_ratio: true has no meaning for objective: disco and clip: gamma"},
      {algorithm->kl_share < 1 && disco,
       "kl_share orders tokens by advantages, which objective: disco has none of; set kl_share: 1"},
      {(algorithm->mis_level == MASK_LEVEL_SEQUENCE_MAX && has_two_sides(algorithm->mis_test)) ||
           (algorithm->mis2_level == MASK_LEVEL_SEQUENCE_MAX &&
            has_two_sides(algorithm->mis2_test)),
       "a response's largest value is tested by mis_test: k2 or k3, which grow on both sides; so "
       "for mis2_test"},
      {algorithm->scale == SCALE_BETA && algorithm->baseline != BASELINE_GROUP_MEAN,
       "scale: beta is defined about the group's mean; set baseline: group_mean"},
      {algorithm->clip == CLIP_PPO_POWER && ratio->unit != RATIO_OF_TOKEN,
       "clip: ppo_power needs a token ratio (token, prefix)"},
      {algorithm->denominator_gradient && (!algorithm->ratio_gradient || algorithm->kappa > 0 ||
                                           !policy_denominator_contains_p(algorithm)),
       "denominator_gradient: true needs ratio_gradient: true, kappa: 0 and a denominator that "
       "contains P (ratio: self_normalised, or group_expectation with denominator: expected_p)"},
      {policy_needs_exact_denominator(algorithm) &&
           (algorithm->log_prob != LOG_PROB_SUM || algorithm->group_scope != SCOPE_PROMPT),
       "denominator: exact needs log_prob: sum and group_scope: prompt"},
      {algorithm->mixture_anneal && algorithm->ratio != RATIO_TOKEN_MIXTURE,
       "mixture_anneal: true is for ratio: token_mixture"},
      {algorithm->gate.of == GATE_SAMPLER && algorithm->gate.scope == SCOPE_MICROBATCH,
       "gate.scope: microbatch is for gate.of: group_expectation; a response's own Q needs no "
       "others"},
      {disco && (algorithm->gate.negative_below > 0 || !isinf(algorithm->gate.positive_above)),
       "objective: disco has no advantages that a gate could look at"},
      {disco && algorithm->ratio != RATIO_NONE && algorithm->ratio != RATIO_TOKEN,
       "objective: disco needs ratio: none (log-L) or token (L-ratio)"},
      {disco && (algorithm->clip != CLIP_NONE || algorithm->tis_level || algorithm->mis_level ||
                 algorithm->mis2_level || algorithm->token_mask ||
                 algorithm->off_policy_mask < INFINITY || algorithm->top_entropy < 1),
       "objective: disco takes no clip, truncation or mask"},
      {algorithm->mis_min > algorithm->mis_max || algorithm->mis2_min > algorithm->mis2_max ||
           algorithm->tis_min > algorithm->tis_max ||
           algorithm->positive_low > algorithm->positive_high ||
           algorithm->negative_low > algorithm->negative_high,
       "a lower limit is above its upper limit (tis_, mis_, mis2_, positive_ or negative_)"},
  };
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (rules[i].wrong)
      return gl_fail(err, GL_EINPUT, "algorithm %s: %s", algorithm->name, rules[i].why);
  return GL_OK;
}

/* The field that compares the responses of a group, and its value's name; NULL: none does. */
static const char *comparing_field(const policy_algorithm *algorithm, const char **value) {
  switch (algorithm->objective) {
  case OBJECTIVE_POLICY_GRADIENT:
    break;
  case OBJECTIVE_DISCO:
    *value = "disco";
    return "objective";
  }
  switch (algorithm->baseline) {
  case BASELINE_NONE:
  case BASELINE_CONSTANT:
    break;
  case BASELINE_GROUP_MEAN:
    *value = "group_mean";
    return "baseline";
  case BASELINE_LEAVE_ONE_OUT:
    *value = "leave_one_out";
    return "baseline";
  case BASELINE_LENGTH_WEIGHTED:
    *value = "length_weighted";
    return "baseline";
  case BASELINE_RUNNER_UP:
    *value = "runner_up";
    return "baseline";
  }
  switch (algorithm->scale) {
  case SCALE_NONE:
  case SCALE_BATCH_STD:
  case SCALE_REWARD_STD:
  case SCALE_TOKEN_STD:
  case SCALE_NONZERO_SHARE:
    break;
  case SCALE_GROUP_STD:
    *value = "group_std";
    return "scale";
  case SCALE_BETA:
    *value = "beta";
    return "scale";
  }
  return NULL;
}

gl_status policy_algorithm_check_group_size(const policy_algorithm *algorithm, size_t group_size,
                                            gl_error *err) {
  const char *value = "", *field = comparing_field(algorithm, &value);
  if (group_size != 1 || field == NULL) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "algorithm %s: %s: %s compares the responses of a group, and a group_size of 1 "
                 "leaves nothing to compare; set group_size to 2 or more, or baseline: none (or "
                 "constant) and scale: none in an algorithm that has them",
                 algorithm->name, field, value);
}
