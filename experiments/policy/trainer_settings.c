/* Switches of verl, TRL and prime-rl as fields of an algorithm: one line for each switch and value.
 * The versions are those of core/policy/settings.c. */
#include "experiments/policy/trainer_settings.h"

#include "core/config/config.h"
#include "experiments/base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the tables --- */

typedef struct trainer_switch {
  policy_trainer trainer;
  const char *key, *value; /* value NULL: a number; "*": any text */
  const char *fields;      /* assignments in the order given; "@" stands for the number */
  const char *note;        /* NULL: none */
  double scale, shift;     /* @ is value * scale + shift; scale 0 stands for 1 */
} trainer_switch;

#define NO_ROW "no algorithm here has it: "
#define VERL TRAINER_VERL
#define TRL TRAINER_TRL
#define PRIME TRAINER_PRIME_RL

/* Applied in this order, whatever the order of the command line: what a loss sets comes before what
 * its numbers change. */
static const trainer_switch table[] = {
    {VERL, "adv_estimator", "grpo", "", NULL, 0, 0},
    {VERL, "adv_estimator", "grpo_vectorized", "", NULL, 0, 0},
    {VERL, "adv_estimator", "rloo", "baseline=leave_one_out scale=none", NULL, 0, 0},
    {VERL, "adv_estimator", "rloo_vectorized", "baseline=leave_one_out scale=none", NULL, 0, 0},
    {VERL, "adv_estimator", "opo", "baseline=length_weighted scale=none", NULL, 0, 0},
    {VERL, "adv_estimator", "gpg", "scale=nonzero_share", NULL, 0, 0},
    {VERL, "adv_estimator", "grpo_passk", "baseline=runner_up", NULL, 0, 0},
    {VERL, "adv_estimator", "reinforce_plus_plus", "baseline=none scale=token_std scale_eps=1e-8",
     "with gamma 1", 0, 0},
    {VERL, "adv_estimator", "reinforce_plus_plus_baseline", "scale=token_std scale_eps=1e-8", NULL,
     0, 0},
    {VERL, "adv_estimator", "remax", "baseline=none scale=none",
     "give rewards less the greedy response's", 0, 0},
    {VERL, "adv_estimator", "gae", "", NO_ROW "advantages of a critic; give them as advantages", 0,
     0},
    {VERL, "norm_adv_by_std_in_grpo", "false", "scale=none", NULL, 0, 0},
    {VERL, "norm_adv_by_std_in_grpo", "true", "", NULL, 0, 0},
    {VERL, "loss_agg_mode", "token-mean", "aggregate=token_mean", NULL, 0, 0},
    {VERL, "loss_agg_mode", "token-sum", "aggregate=token_sum", NULL, 0, 0},
    {VERL, "loss_agg_mode", "seq-mean-token-mean", "aggregate=sequence_mean", NULL, 0, 0},
    {VERL, "loss_agg_mode", "seq-mean-token-sum", "aggregate=sequence_sum", NULL, 0, 0},
    {VERL, "loss_agg_mode", "seq-mean-token-sum-norm", "aggregate=fixed_length",
     "b178a3c multiplies it by the number of responses", 0, 0},
    {VERL, "loss_mode", "vanilla", "", NULL, 0, 0},
    {VERL, "loss_mode", "gspo",
     "ratio=sequence_token log_prob=mean log_cap=10 dual_clip=.inf token_log_clamp=.inf "
     "aggregate=sequence_mean",
     "the gradient of gspo, unless weights of tokens multiply it", 0, 0},
    {VERL, "loss_mode", "sapo", "clip=sigmoid dual_clip=.inf", NULL, 0, 0},
    {VERL, "loss_mode", "gpg",
     "clip=none ratio=none ratio_gradient=false dual_clip=.inf "
     "token_log_clamp=.inf",
     NULL, 0, 0},
    {VERL, "loss_mode", "geo_mean",
     "ratio=sequence log_prob=mean clip=token_log dual_clip=.inf token_log_clamp=.inf "
     "aggregate=sequence_mean",
     NULL, 0, 0},
    {VERL, "loss_mode", "cispo", "clip=clamp ratio_gradient=false dual_clip=.inf", NULL, 0, 0},
    {VERL, "loss_mode", "kl_cov",
     "clip=none dual_clip=.inf token_log_clamp=.inf kl_form=abs kl_coef=0.1 kl_share=2e-4", NULL, 0,
     0},
    {VERL, "loss_mode", "clip_cov", "", NO_ROW "clip_cov leaves out random tokens", 0, 0},
    {VERL, "loss_mode", "dppo_tv", "clip=binary_tv ratio_gradient=false dual_clip=.inf cap=3", NULL,
     0, 0},
    {VERL, "loss_mode", "dppo_kl", "clip=binary_kl ratio_gradient=false dual_clip=.inf cap=3", NULL,
     0, 0},
    {VERL, "loss_mode", "dro",
     "clip=none ratio=none ratio_gradient=false dual_clip=.inf token_log_clamp=.inf kl_form=k2",
     NULL, 0, 0},
    {VERL, "kl_cov_ratio", NULL, "kl_share=@", NULL, 0, 0},
    {VERL, "ppo_kl_coef", NULL, "kl_coef=@", NULL, 0, 0},
    {VERL, "dro_beta", NULL, "kl_coef=@", NULL, 0, 0},
    {VERL, "tau_pos", NULL, "tau_positive=@", NULL, 0, 0},
    {VERL, "tau_neg", NULL, "tau_negative=@", NULL, 0, 0},
    {VERL, "clip_ratio", NULL, "eps_low=@ eps_high=@", NULL, 0, 0},
    {VERL, "clip_ratio_low", NULL, "eps_low=@", NULL, 0, 0},
    {VERL, "clip_ratio_high", NULL, "eps_high=@", NULL, 0, 0},
    {VERL, "clip_ratio_c", NULL, "dual_clip=@", NULL, 0, 0},
    {VERL, "rollout_is", "token", "old_policy=proximal tis_level=token tis_max=2 tis_log_clamp=20",
     NULL, 0, 0},
    {VERL, "rollout_is", "sequence",
     "old_policy=proximal tis_level=sequence tis_max=2 tis_log_clamp=20", NULL, 0, 0},
    {VERL, "rollout_is", "null", "", NULL, 0, 0},
    {VERL, "rollout_is_threshold", NULL, "tis_max=@", NULL, 0, 0},
    {VERL, "rollout_is_batch_normalize", "true", "tis_normalise=true", NULL, 0, 0},
    {VERL, "rollout_is_batch_normalize", "false", "", NULL, 0, 0},
    {VERL, "use_kl_loss", "true", "ref_kl_coef=0.001 ref_kl_form=k3", "verl limits its k3 to +-10",
     0, 0},
    {VERL, "use_kl_loss", "false", "", NULL, 0, 0},
    {VERL, "kl_loss_coef", NULL, "ref_kl_coef=@", NULL, 0, 0},
    {VERL, "kl_loss_type", "kl", "ref_kl_form=k1", NULL, 0, 0},
    {VERL, "kl_loss_type", "k1", "ref_kl_form=k1", NULL, 0, 0},
    {VERL, "kl_loss_type", "abs", "ref_kl_form=abs", NULL, 0, 0},
    {VERL, "kl_loss_type", "mse", "ref_kl_form=k2", NULL, 0, 0},
    {VERL, "kl_loss_type", "k2", "ref_kl_form=k2", NULL, 0, 0},
    {VERL, "kl_loss_type", "low_var_kl", "ref_kl_form=k3", NULL, 0, 0},
    {VERL, "kl_loss_type", "k3", "ref_kl_form=k3", NULL, 0, 0},
    {VERL, "use_kl_in_reward", "true", "",
     "its penalty of every token is taken off the rewards; for the response's sum: reward_kl_coef "
     "and reward_kl_of: reference",
     0, 0},
    {VERL, "use_kl_in_reward", "false", "", NULL, 0, 0},
    {VERL, "entropy_coeff", NULL, "",
     NO_ROW "an entropy bonus, whose gradient is none of sampled tokens' log-probabilities", 0, 0},

    {TRL, "scale_rewards", "group", "", NULL, 0, 0},
    {TRL, "scale_rewards", "true", "", NULL, 0, 0},
    {TRL, "scale_rewards", "batch", "scale=reward_std", NULL, 0, 0},
    {TRL, "scale_rewards", "none", "scale=none", NULL, 0, 0},
    {TRL, "scale_rewards", "false", "scale=none", NULL, 0, 0},
    {TRL, "importance_sampling_level", "token", "", NULL, 0, 0},
    {TRL, "importance_sampling_level", "sequence", "ratio=sequence log_prob=mean", NULL, 0, 0},
    {TRL, "importance_sampling_level", "sequence_token", "ratio=sequence_token log_prob=mean", NULL,
     0, 0},
    {TRL, "loss_type", "grpo", "aggregate=sequence_mean", NULL, 0, 0},
    {TRL, "loss_type", "bnpo", "aggregate=token_mean",
     "its loss_type bnpo is a token mean, without BNPO's Beta", 0, 0},
    {TRL, "loss_type", "dapo", "aggregate=token_mean", NULL, 0, 0},
    {TRL, "loss_type", "dr_grpo", "aggregate=fixed_length", NULL, 0, 0},
    {TRL, "loss_type", "luspo", "ratio=sequence_token log_prob=mean aggregate=sequence_sum", NULL,
     0, 0},
    {TRL, "loss_type", "sapo", "clip=sigmoid aggregate=sequence_mean", NULL, 0, 0},
    {TRL, "loss_type", "cispo", "clip=clamp eps_low=10 ratio_gradient=false aggregate=token_mean",
     NULL, 0, 0},
    {TRL, "loss_type", "vespo",
     "ratio=sequence clip=gamma ratio_gradient=false aggregate=token_mean token_log_clamp=20 "
     "log_floor=-18.420680743952367 log_cap=20",
     NULL, 0, 0},
    {TRL, "epsilon", NULL, "eps_low=@ eps_high=@", NULL, 0, 0},
    {TRL, "epsilon_high", NULL, "eps_high=@", NULL, 0, 0},
    {TRL, "delta", NULL, "dual_clip=@", NULL, 0, 0},
    {TRL, "beta", NULL, "ref_kl_coef=@", NULL, 0, 0},
    {TRL, "use_bias_correction_kl", "true", "ref_kl_ratio=true", NULL, 0, 0},
    {TRL, "use_bias_correction_kl", "false", "", NULL, 0, 0},
    {TRL, "off_policy_mask_threshold", NULL, "off_policy_mask=@", NULL, 0, 0},
    {TRL, "top_entropy_quantile", NULL, "top_entropy=@", NULL, 0, 0},
    {TRL, "sapo_temperature_pos", NULL, "tau_positive=@", NULL, 0, 0},
    {TRL, "sapo_temperature_neg", NULL, "tau_negative=@", NULL, 0, 0},
    {TRL, "vllm_importance_sampling_mode", "token_truncate",
     "old_policy=proximal tis_level=token tis_max=3", NULL, 0, 0},
    {TRL, "vllm_importance_sampling_mode", "sequence_truncate",
     "old_policy=proximal tis_level=sequence tis_max=3", NULL, 0, 0},
    {TRL, "vllm_importance_sampling_mode", "token_mask",
     "old_policy=proximal tis_level=token tis_max=.inf mis_level=token", NULL, 0, 0},
    {TRL, "vllm_importance_sampling_mode", "sequence_mask",
     "old_policy=proximal tis_level=sequence tis_max=.inf mis_level=sequence", NULL, 0, 0},
    {TRL, "entropy_coef", NULL, "",
     NO_ROW "an entropy bonus, whose gradient is none of sampled tokens' log-probabilities", 0, 0},

    {PRIME, "algo", "grpo", "", NULL, 0, 0},
    {PRIME, "algo", "max_rl", "scale=group_mean scale_eps=0", "a group whose mean is 0 has A = 0",
     0, 0},
    {PRIME, "loss", "default", "", NULL, 0, 0},
    {PRIME, "loss", "ipo",
     "clip=none cap=1 eps_low=0.2 eps_high=0.2 mis_level=token mis_test=tv mis_max=0.1 "
     "correction_of=learner",
     NULL, 0, 0},
    {PRIME, "dppo_mask_low", NULL, "eps_low=@", NULL, 0, 0},
    {PRIME, "dppo_mask_high", NULL, "eps_high=@", NULL, 0, 0},
    {PRIME, "ipo_threshold", NULL, "mis_max=@", NULL, 0, 0},
    {PRIME, "kl_tau", NULL, "kl_coef=@", NULL, 2, 0},
    {PRIME, "adv_tau", NULL, "", "adv_tau multiplies every advantage: scale the learning rate", 0,
     0},
};
enum { SWITCHES = sizeof table / sizeof *table };

/* The defaults, as a recipe's algorithm. */
static const char *defaults_of(policy_trainer trainer) {
  switch (trainer) {
  case TRAINER_VERL:
    return "{base: grpo, scale_eps: 1e-6, dual_clip: 3, token_log_clamp: 20, aggregate: "
           "token_mean}";
  case TRAINER_TRL:
    return "{base: grpo, aggregate: token_mean}";
  case TRAINER_PRIME_RL:
    return "{base: prime_rl}";
  case TRAINER_AREAL:
  case TRAINER_SLIME:
  case TRAINER_NEMO_RL:
  case TRAINER_SKYRL:
  case TRAINER_ROLL:
  case TRAINER_OPENRLHF:
  case TRAINER_COUNT:
    return NULL;
  }
  return NULL;
}

int trainer_is_readable(policy_trainer trainer) {
  return defaults_of(trainer) != NULL;
}

/* --- one switch --- */

typedef struct given {
  char key[64], value[64];
} given;

static gl_status switch_split(given *g, const char *text, gl_error *err) {
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text || strlen(equals + 1) >= sizeof g->value)
    return gl_fail(err, GL_EINPUT, "'%.80s' is no switch of a trainer; write name=value", text);
  const char *start = equals;
  while (start > text && start[-1] != '.') --start;
  if ((size_t)(equals - start) >= sizeof g->key)
    return gl_fail(err, GL_EINPUT, "'%.80s' has too long a name", text);
  snprintf(g->key, sizeof g->key, "%.*s", (int)(equals - start), start);
  snprintf(g->value, sizeof g->value, "%s", equals + 1);
  for (char *c = g->value; *c != '\0'; ++c)
    if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
  return GL_OK;
}

static int trainer_is_number(const char *text, double *value) {
  char *end = NULL;
  *value = strtod(text, &end);
  return end != text && *end == '\0';
}

static int switch_matches(const trainer_switch *s, policy_trainer trainer, const given *g) {
  double value;
  if (s->trainer != trainer || strcmp(s->key, g->key) != 0) return 0;
  return s->value == NULL ? trainer_is_number(g->value, &value) : strcmp(s->value, g->value) == 0;
}

static int knows_key(policy_trainer trainer, const char *key) {
  for (size_t i = 0; i < SWITCHES; ++i)
    if (table[i].trainer == trainer && strcmp(table[i].key, key) == 0) return 1;
  return 0;
}

static gl_status switch_check(policy_trainer trainer, const given *g, gl_error *err) {
  const char *names[SWITCHES];
  char hint[CFG_HINT_SIZE];
  size_t n = 0;
  const int known = knows_key(trainer, g->key);
  for (size_t i = 0; i < SWITCHES; ++i) {
    if (switch_matches(&table[i], trainer, g)) return GL_OK;
    if (table[i].trainer != trainer) continue;
    if (!known)
      names[n++] = table[i].key;
    else if (strcmp(table[i].key, g->key) == 0)
      names[n++] = table[i].value != NULL ? table[i].value : "a number";
  }
  if (!known)
    return gl_fail(err, GL_EINPUT, "%s's switch '%s' is not known here%s",
                   policy_trainer_about(trainer)->name, g->key, cfg_hint(g->key, names, n, hint));
  return gl_fail(err, GL_EINPUT, "%s's %s has no value '%s' here%s; one is %s",
                 policy_trainer_about(trainer)->name, g->key, g->value,
                 cfg_hint(g->value, names, n, hint), names[0]);
}

/* --- fields --- */

static gl_status apply_one(cfg_doc *doc, const char *field, size_t length, double value,
                           gl_error *err) {
  char assignment[160], number[40];
  const char *at = memchr(field, '@', length);
  snprintf(number, sizeof number, "%.17g", value);
  if (at != NULL)
    snprintf(assignment, sizeof assignment, "algorithm.%.*s%s", (int)(at - field), field,
             isinf(value) ? ".inf" : number);
  else
    snprintf(assignment, sizeof assignment, "algorithm.%.*s", (int)length, field);
  return cfg_override(doc, assignment, err);
}

static gl_status apply_switch(cfg_doc *doc, const trainer_switch *s, const given *g,
                              gl_error *err) {
  double value = NAN;
  gl_status status = GL_OK;
  if (s->value == NULL && trainer_is_number(g->value, &value))
    value = value * (s->scale != 0 ? s->scale : 1) + s->shift;
  for (const char *at = s->fields; *at != '\0' && status == GL_OK;) {
    const size_t length = strcspn(at, " ");
    status = apply_one(doc, at, length, value, err);
    at += length + (at[length] == ' ');
  }
  return status;
}

/* What depends on two switches: DPPO's dual clip is its cap, and TRL's CISPO caps at epsilon_high
 * itself. */
static void trainer_settle(policy_algorithm *a, policy_trainer trainer) {
  const int binary = a->clip == CLIP_BINARY_TV || a->clip == CLIP_BINARY_KL;
  if (trainer == TRAINER_VERL && binary && !isinf(a->dual_clip)) {
    a->cap = a->dual_clip;
    a->dual_clip = INFINITY;
  }
  if (trainer == TRAINER_TRL && a->clip == CLIP_CLAMP) {
    a->eps_low = 10;
    a->eps_high -= 1;
  }
}

/* --- the nearest published algorithm --- */

/* Choices decide what numbers mean, so that they weigh more. */
static size_t trainer_differences(const policy_algorithm *a, const policy_algorithm *b) {
  char one[POLICY_FIELD_TEXT_SIZE], other[POLICY_FIELD_TEXT_SIZE];
  size_t sum = 0;
  for (size_t i = 0; i < policy_fields_count(); ++i)
    if (strcmp(policy_algorithm_field(a, i, one), policy_algorithm_field(b, i, other)) != 0)
      sum += policy_fields_at(i)->kind == FIELD_CHOICE ? 8 : 1;
  return sum;
}

static void name_by_nearest(trainer_reading *r) {
  policy_algorithm *a = &r->algorithm;
  const policy_algorithm *best = policy_algorithms_at(0);
  size_t least = trainer_differences(a, best);
  for (size_t i = 1; i < policy_algorithms_count(); ++i) {
    const size_t n = trainer_differences(a, policy_algorithms_at(i));
    if (n < least) least = n, best = policy_algorithms_at(i);
  }
  snprintf(a->base, sizeof a->base, "%s", best->base);
  a->has_own_name = 0;
  (void)policy_algorithm_set_name(a, NULL, 0, NULL); /* a long one is cut */
  r->is_published = least == 0;
}

/* --- all of them --- */

static gl_status apply_all(trainer_reading *out, policy_trainer trainer, const given *all, size_t n,
                           gl_error *err) {
  cfg_doc *doc = NULL;
  char *start = must_textf("a trainer's defaults", "algorithm: %s", defaults_of(trainer));
  gl_status status = cfg_load_text(&doc, start, strlen(start), "defaults", err);
  free(start);
  for (size_t i = 0; i < SWITCHES && status == GL_OK; ++i)
    for (size_t k = 0; k < n && status == GL_OK; ++k) {
      if (!switch_matches(&table[i], trainer, &all[k])) continue;
      status = apply_switch(doc, &table[i], &all[k], err);
      if (table[i].note != NULL && out->n_notes < TRAINER_NOTES_MOST)
        out->notes[out->n_notes++] = table[i].note;
    }
  if (status == GL_OK)
    status =
        policy_algorithm_parse_alone(&out->algorithm, cfg_find(cfg_root(doc), "algorithm"), err);
  cfg_free(doc);
  return status;
}

static gl_status read_given(trainer_reading *out, policy_trainer trainer, const given *all,
                            size_t n, gl_error *err) {
  *out = (trainer_reading){.n_notes = 0};
  gl_status status = apply_all(out, trainer, all, n, err);
  if (status != GL_OK) return status;
  trainer_settle(&out->algorithm, trainer);
  name_by_nearest(out);
  return policy_algorithm_check(&out->algorithm, err);
}

gl_status trainer_read(trainer_reading *out, policy_trainer trainer, const char *const *switches,
                       size_t n, gl_error *err) {
  given *all = MUST_ARRAY(given, n + 1, "a trainer's switches");
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    status = switch_split(&all[i], switches[i], err);
    if (status == GL_OK) status = switch_check(trainer, &all[i], err);
  }
  if (status == GL_OK) status = read_given(out, trainer, all, n, err);
  free(all);
  return status;
}

/* Collects the known switches at and below a node. */
static void collect(given **all, size_t *n, policy_trainer trainer, const cfg_node *node) {
  for (size_t i = 0; cfg_kind_of(node) == CFG_MAP && i < cfg_size(node); ++i) {
    const cfg_node *value = cfg_at(node, i);
    const char *key = cfg_key_at(node, i);
    if (cfg_kind_of(value) != CFG_SCALAR) {
      const cfg_node *type = cfg_kind_of(value) == CFG_MAP ? cfg_find(value, "type") : NULL;
      collect(all, n, trainer, value);
      if (type == NULL || cfg_kind_of(type) != CFG_SCALAR) continue;
      value = type; /* prime-rl's loss: {type: ipo} */
    }
    if (cfg_is_null(value) || !knows_key(trainer, key)) continue;
    given *g = MUST_ADD(*all, *n, "a trainer's switches");
    char *text = must_textf("a trainer's switch", "%s=%s", key, cfg_text(value));
    gl_error err = {0};
    if (switch_split(g, text, &err) != GL_OK) --*n;
    free(text);
  }
}

gl_status trainer_read_file(trainer_reading *out, policy_trainer trainer, const char *path,
                            gl_error *err) {
  cfg_doc *doc = NULL;
  given *all = NULL;
  size_t n = 0;
  gl_status status = cfg_load_file(&doc, path, err);
  if (status == GL_OK) collect(&all, &n, trainer, cfg_root(doc));
  if (status == GL_OK && n == 0)
    status = gl_fail(err, GL_EINPUT, "%s has no switch of %s that is known here", path,
                     policy_trainer_about(trainer)->name);
  for (size_t i = 0; i < n && status == GL_OK; ++i) status = switch_check(trainer, &all[i], err);
  if (status == GL_OK) status = read_given(out, trainer, all, n, err);
  free(all);
  cfg_free(doc);
  return status;
}
