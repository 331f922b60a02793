#include "core/policy_row.h"

#include <stdio.h>
#include <string.h>

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
      {row->mis_level == LEVEL_TOKEN_GEOMETRIC, "mis_level: token_geometric does not exist; use "
                                                "token, sequence or sequence_mean"},
      {row->mis_min > row->mis_max || row->tis_min > row->tis_max ||
           row->positive_low > row->positive_high || row->negative_low > row->negative_high,
       "a lower limit is above its upper limit (tis_, mis_, positive_ or negative_)"},
  };
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (rules[i].wrong) return gl_fail(err, GL_EINPUT, "algorithm %s: %s", row->name, rules[i].why);
  return GL_OK;
}

static gl_status unknown_row(const cfg_node *node, gl_error *err) {
  const char *names[64];
  size_t n = policy_rows_count();
  for (size_t i = 0; i < n; i++) names[i] = policy_rows_at(i)->name;
  char near[CFG_HINT_SIZE];
  return cfg_fail(node, err, "no algorithm '%s'; `gepolab algorithms` lists them%s", cfg_text(node),
                  cfg_hint(cfg_text(node), names, n, near));
}

static void read_field(policy_row *row, const policy_field *f, cfg_reader *r) {
  void *at = (char *)row + f->offset;
  switch (f->kind) {
  case FIELD_CHOICE:
    *(int *)at = cfg_choice(r, f->name, *(int *)at, f->choices, f->n_choices);
    break;
  case FIELD_BOOL:
    *(int *)at = cfg_bool(r, f->name, *(int *)at);
    break;
  case FIELD_COUNT:
    *(size_t *)at = cfg_count(r, f->name, *(size_t *)at, (size_t)f->lo, (size_t)f->hi);
    break;
  case FIELD_NUMBER:
    *(double *)at = cfg_double(r, f->name, *(double *)at, f->lo, f->hi);
    break;
  }
}

gl_status policy_row_parse(policy_row *row, const cfg_node *node, gl_error *err) {
  const policy_row *base = policy_rows_find("grpo");
  const cfg_node *name = node;
  gl_error why = {0};
  cfg_reader r;
  *row = *base;
  if (node == NULL) return GL_OK;
  if (cfg_kind_of(node) == CFG_LIST)
    return cfg_fail(node, err, "algorithm is a list; give a row's name or a map {base: ROW, ...}");
  if (cfg_kind_of(node) == CFG_MAP) name = cfg_find(node, "base");
  if (name == NULL) return cfg_fail(node, err, "algorithm has no 'base'; name the row it changes");
  base = policy_rows_find(cfg_text(name));
  if (cfg_kind_of(name) != CFG_SCALAR || base == NULL) return unknown_row(name, err);
  *row = *base;
  if (cfg_kind_of(node) != CFG_MAP) return GL_OK;
  cfg_begin(&r, node, "algorithm", err);
  cfg_string(&r, "base", NULL);
  const char *shown = cfg_string(&r, "name", base->name);
  for (size_t i = 0; i < policy_fields_count(); i++) read_field(row, policy_fields_at(i), &r);
  gl_status status = cfg_end(&r);
  if (status != GL_OK) return status;
  if (strlen(shown) >= sizeof row->name)
    return cfg_fail(node, err, "name is longer than %zu characters", sizeof row->name - 1);
  snprintf(row->name, sizeof row->name, "%s", shown);
  if (policy_row_check(row, &why) != GL_OK) return cfg_fail(node, err, "%s", why.text);
  return GL_OK;
}
