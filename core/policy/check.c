/* Which fields of a row go together. */
#include "core/policy/algorithm.h"

gl_status policy_row_check(const policy_row *row, gl_error *err) {
  int token = row->ratio == RATIO_NONE || row->ratio == RATIO_TOKEN || row->ratio == RATIO_PREFIX ||
              row->ratio == RATIO_VTRACE;
  int stopped = row->ratio == RATIO_NONE || row->ratio == RATIO_VTRACE || row->clip == CLIP_GAMMA;
  int disco = row->objective == OBJECTIVE_DISCO;
  const struct {
    int wrong;
    const char *why;
  } rules[] = {
      {stopped && row->ratio_gradient && !disco, "ratio: none, ratio: vtrace and clip: gamma have "
                                                 "no ratio gradient; set ratio_gradient: false"},
      {row->clip == CLIP_TOKEN_LOG &&
           (row->ratio != RATIO_SEQUENCE || row->log_prob != LOG_PROB_MEAN || !row->ratio_gradient),
       "clip: token_log needs ratio: sequence, log_prob: mean and ratio_gradient: true"},
      {row->clip == CLIP_SECOND_MOMENT && row->ratio != RATIO_TOKEN,
       "clip: second_moment needs ratio: token"},
      {row->clip == CLIP_GAMMA && row->ratio != RATIO_SEQUENCE,
       "clip: gamma needs ratio: sequence"},
      {row->clip == CLIP_GAMMA && row->tis_level != LEVEL_NONE && row->tis_level != LEVEL_TOKEN,
       "clip: gamma adds the logarithms of token factors to ln W; set tis_level: none or token"},
      {row->scale == SCALE_BETA && row->baseline != BASELINE_GROUP_MEAN,
       "scale: beta is defined about the group's mean; set baseline: group_mean"},
      {row->clip == CLIP_PPO_POWER && !token,
       "clip: ppo_power needs a token ratio (token, prefix)"},
      {row->denominator_gradient &&
           (!row->ratio_gradient || row->kappa > 0 ||
            !(row->ratio == RATIO_SELF_NORMALISED || (row->ratio == RATIO_GROUP_EXPECTATION &&
                                                      row->denominator == DENOMINATOR_EXPECTED_P))),
       "denominator_gradient: true needs ratio_gradient: true, kappa: 0 and a denominator that "
       "contains P (ratio: self_normalised, or group_expectation with denominator: expected_p)"},
      {row->ratio == RATIO_GROUP_EXPECTATION && row->denominator == DENOMINATOR_EXACT &&
           (row->log_prob != LOG_PROB_SUM || row->group_scope != SCOPE_PROMPT),
       "denominator: exact needs log_prob: sum and group_scope: prompt"},
      {disco && row->ratio != RATIO_NONE && row->ratio != RATIO_TOKEN,
       "objective: disco needs ratio: none (log-L) or token (L-ratio)"},
      {disco && (row->clip != CLIP_NONE || row->tis_level || row->mis_level || row->token_mask),
       "objective: disco takes no clip, truncation or mask"},
      {row->mis_min > row->mis_max || row->tis_min > row->tis_max ||
           row->positive_low > row->positive_high || row->negative_low > row->negative_high,
       "a lower limit is above its upper limit (tis_, mis_, positive_ or negative_)"},
  };
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (rules[i].wrong) return gl_fail(err, GL_EINPUT, "algorithm %s: %s", row->name, rules[i].why);
  return GL_OK;
}
