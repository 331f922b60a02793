/* Converts switches of trainers to fields of an algorithm: one line for each switch and value. The
 * versions are those of core/policy/trainer_settings.c. */
#include "experiments/policy/trainer_options.h"

#include "core/config/config.h"
#include "core/config/fields.h"
#include "experiments/base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the tables --- */

typedef struct trainer_switch {
  policy_trainer trainer;
  const char *key, *value; /* key: the last parts of a dotted name; value NULL: a number; RANGE: two
                              numbers, as in 0.5_5.0 or 0.2,0.28; "*": any text */
  const char *fields;      /* assignments in the order given; "@" stands for the number or the lower
                              one, "#" for the upper one */
  const char *note;        /* NULL: none */
  double scale, shift;     /* @ is value * scale + shift; scale 0 stands for 1 */
} trainer_switch;

#define NO_ROW "no algorithm here has it: "
#define RANGE "two numbers"
#define VERL TRAINER_VERL
#define TRL TRAINER_TRL
#define PRIME TRAINER_PRIME_RL
#define AREAL TRAINER_AREAL
#define SLIME TRAINER_SLIME
#define NEMO TRAINER_NEMO_RL
#define SKYRL TRAINER_SKYRL
#define ROLL TRAINER_ROLL
#define RLHF TRAINER_OPENRLHF
#define REJECTION(level, test)                                                                     \
  "old_policy=proximal mask_denominator=kept mis_log_clamp=20 mis_level=" level " mis_test=" test
#define ENTROPY_BONUS                                                                              \
  NO_ROW "an entropy bonus, whose gradient is none of sampled tokens' log-probabilities"

/* Applied in this order, whatever the order of the command line: first the kind of loss sets its
 * fields, then numbers change them. */
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
    {VERL, "rollout_is_threshold", RANGE,
     "tis_max=.inf tis_log_clamp=.inf mis_level=token mis_min=@ mis_max=#", NULL, 0, 0},
    {VERL, "rollout_rs", "seq_max_k2", REJECTION("sequence_max", "k2"), NULL, 0, 0},
    {VERL, "rollout_rs", "seq_max_k3", REJECTION("sequence_max", "k3"), NULL, 0, 0},
    {VERL, "rollout_rs", "seq_mean_k2", REJECTION("sequence_mean", "k2"), NULL, 0, 0},
    {VERL, "rollout_rs", "seq_mean_k3", REJECTION("sequence_mean", "k3"), NULL, 0, 0},
    {VERL, "rollout_rs", "token_k2", REJECTION("token", "k2"), NULL, 0, 0},
    {VERL, "rollout_rs", "token_k3", REJECTION("token", "k3"), NULL, 0, 0},
    {VERL, "rollout_rs_threshold", NULL, "mis_max=@", NULL, 0, 0},
    {VERL, "loss_mode", "bypass_mode", "", "its old policy is the sampler", 0, 0},
    {VERL, "loss_type", "reinforce",
     "clip=none ratio=none ratio_gradient=false dual_clip=.inf token_log_clamp=.inf "
     "correction_of=learner old_policy=sampler",
     NULL, 0, 0},
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

    {AREAL, "reward_norm.mean_level", "group", "baseline=group_mean", NULL, 0, 0},
    {AREAL, "reward_norm.mean_level", "batch", "", NO_ROW "a baseline over the whole batch", 0, 0},
    {AREAL, "reward_norm.mean_leave1out", "true", "baseline=leave_one_out", NULL, 0, 0},
    {AREAL, "reward_norm.mean_leave1out", "false", "", NULL, 0, 0},
    {AREAL, "reward_norm.std_level", "group", "scale=group_std", NULL, 0, 0},
    {AREAL, "reward_norm.std_level", "batch", "scale=reward_std", NULL, 0, 0},
    {AREAL, "reward_norm.std_unbiased", "true", "std_ddof=1", NULL, 0, 0},
    {AREAL, "reward_norm.std_unbiased", "false", "std_ddof=0", NULL, 0, 0},
    {AREAL, "adv_norm.mean_level", "group", "baseline=group_mean", NULL, 0, 0},
    {AREAL, "adv_norm.mean_level", "batch", "", "its mean is over the batch's tokens", 0, 0},
    {AREAL, "adv_norm.std_level", "group", "scale=group_std", NULL, 0, 0},
    {AREAL, "adv_norm.std_level", "batch", "scale=token_std",
     "over the batch's tokens; an earlier scale of rewards is left out: no algorithm here has two",
     0, 0},
    {AREAL, "use_sapo_loss", "true", "clip=sigmoid", NULL, 0, 0},
    {AREAL, "use_sapo_loss", "false", "", NULL, 0, 0},
    {AREAL, "use_cispo_loss", "true", "clip=clamp ratio_gradient=false", NULL, 0, 0},
    {AREAL, "use_cispo_loss", "false", "", NULL, 0, 0},
    {AREAL, "sapo_tau_pos", NULL, "tau_positive=@", NULL, 0, 0},
    {AREAL, "sapo_tau_neg", NULL, "tau_negative=@", NULL, 0, 0},
    {AREAL, "importance_sampling_level", "token", "", NULL, 0, 0},
    {AREAL, "importance_sampling_level", "sequence", "ratio=sequence log_prob=mean", NULL, 0, 0},
    {AREAL, "eps_clip", NULL, "eps_low=@ eps_high=@", NULL, 0, 0},
    {AREAL, "eps_clip_higher", NULL, "eps_high=@", NULL, 0, 0},
    {AREAL, "c_clip", NULL, "dual_clip=@", NULL, 0, 0},
    {AREAL, "use_decoupled_loss", "true", "old_policy=proximal tis_level=token tis_max=.inf",
     "the factor is in float32", 0, 0},
    {AREAL, "use_decoupled_loss", "false", "", NULL, 0, 0},
    {AREAL, "prox_logp_method", "recompute", "", NULL, 0, 0},
    {AREAL, "prox_logp_method", "loglinear", "old_policy=interpolated", NULL, 0, 0},
    {AREAL, "rejection_sampling.level", "token", "mis_level=token", NULL, 0, 0},
    {AREAL, "rejection_sampling.level", "sequence", "mis_level=sequence_mean", NULL, 0, 0},
    {AREAL, "rejection_sampling.metric", "ratio", "", NULL, 0, 0},
    {AREAL, "rejection_sampling.metric", "kl_k2", "mis_test=k2", NULL, 0, 0},
    {AREAL, "rejection_sampling.metric", "kl_k3", "mis_test=k3", NULL, 0, 0},
    {AREAL, "rejection_sampling.upper", NULL, "mis_max=@ tis_max=@", NULL, 0, 0},
    {AREAL, "rejection_sampling.lower", NULL, "mis_min=@ tis_min=@", NULL, 0, 0},
    {AREAL, "rejection_sampling.action", "mask", "tis_min=0 tis_max=.inf", NULL, 0, 0},
    {AREAL, "rejection_sampling.action", "clamp", "mis_level=none mis_min=0", NULL, 0, 0},
    {AREAL, "m2_threshold", NULL, "", NO_ROW "M2PO's mask beside PPO's clip", 0, 0},
    {AREAL, "kl_ctl", NULL, "",
     "its penalty of every token is taken off the rewards, if there is a reference", 0, 0},

    {SLIME, "advantage_estimator", "grpo", "", NULL, 0, 0},
    {SLIME, "advantage_estimator", "gspo", "ratio=sequence log_prob=mean", NULL, 0, 0},
    {SLIME, "advantage_estimator", "cispo", "clip=clamp ratio_gradient=false", NULL, 0, 0},
    {SLIME, "advantage_estimator", "reinforce_plus_plus",
     "baseline=none scale=token_std scale_eps=1e-8", NULL, 0, 0},
    {SLIME, "advantage_estimator", "reinforce_plus_plus_baseline", "scale=token_std scale_eps=1e-8",
     NULL, 0, 0},
    {SLIME, "advantage_estimator", "ppo", "", NO_ROW "advantages of a critic", 0, 0},
    {SLIME, "disable_grpo_std_normalization", "true", "scale=none", NULL, 0, 0},
    {SLIME, "calculate_per_token_loss", "true", "aggregate=token_mean", NULL, 0, 0},
    {SLIME, "eps_clip", NULL, "eps_low=@ eps_high=@", NULL, 0, 0},
    {SLIME, "eps_clip_high", NULL, "eps_high=@", NULL, 0, 0},
    {SLIME, "eps_clip_c", NULL, "dual_clip=@", NULL, 0, 0},
    {SLIME, "use_opsm", "true", "off_policy_mask=1e-4", NULL, 0, 0},
    {SLIME, "opsm_delta", NULL, "off_policy_mask=@", NULL, 0, 0},
    {SLIME, "use_tis", "true", "old_policy=proximal tis_level=token tis_max=2", NULL, 0, 0},
    {SLIME, "tis_clip", NULL, "tis_max=@ mis_max=@", NULL, 0, 0},
    {SLIME, "tis_clip_low", NULL, "tis_min=@ mis_min=@", NULL, 0, 0},
    {SLIME, "custom_tis_function_path", "*", "mis_level=token tis_min=0 tis_max=.inf",
     "read as its icepop_function", 0, 0},
    {SLIME, "use_kl_loss", "true", "ref_kl_form=k1", NULL, 0, 0},
    {SLIME, "kl_loss_coef", NULL, "ref_kl_coef=@", NULL, 0, 0},
    {SLIME, "kl_loss_type", "k1", "ref_kl_form=k1", NULL, 0, 0},
    {SLIME, "kl_loss_type", "k2", "ref_kl_form=k2", NULL, 0, 0},
    {SLIME, "kl_loss_type", "k3", "ref_kl_form=k3", NULL, 0, 0},
    {SLIME, "kl_loss_type", "low_var_kl", "ref_kl_form=k3", NULL, 0, 0},
    {SLIME, "entropy_coef", NULL, "", ENTROPY_BONUS, 0, 0},

    {NEMO, "normalize_rewards", "true", "scale=group_std", NULL, 0, 0},
    {NEMO, "normalize_rewards", "false", "scale=none", NULL, 0, 0},
    {NEMO, "use_leave_one_out_baseline", "true", "baseline=leave_one_out", NULL, 0, 0},
    {NEMO, "use_leave_one_out_baseline", "false", "baseline=group_mean", NULL, 0, 0},
    {NEMO, "token_level_loss", "true", "aggregate=token_mean", NULL, 0, 0},
    {NEMO, "token_level_loss", "false", "aggregate=sequence_mean", NULL, 0, 0},
    {NEMO, "sequence_level_importance_ratios", "true", "ratio=sequence log_prob=mean", NULL, 0, 0},
    {NEMO, "sequence_level_importance_ratios", "false", "", NULL, 0, 0},
    {NEMO, "use_cispo", "true", "clip=clamp ratio_gradient=false", NULL, 0, 0},
    {NEMO, "use_cispo", "false", "", NULL, 0, 0},
    {NEMO, "disable_ppo_ratio", "true", "ratio=none clip=none ratio_gradient=false", NULL, 0, 0},
    {NEMO, "disable_ppo_ratio", "false", "", NULL, 0, 0},
    {NEMO, "force_on_policy_ratio", "true", "ratio=none clip=none ratio_gradient=false", NULL, 0,
     0},
    {NEMO, "force_on_policy_ratio", "false", "", NULL, 0, 0},
    {NEMO, "ratio_clip_min", NULL, "eps_low=@", NULL, 0, 0},
    {NEMO, "ratio_clip_max", NULL, "eps_high=@", NULL, 0, 0},
    {NEMO, "ratio_clip_c", NULL, "dual_clip=@", NULL, 0, 0},
    {NEMO, "reference_policy_kl_penalty", NULL, "ref_kl_coef=@",
     "NeMo-RL limits its log-ratio to +-20 and the term to +-10", 0, 0},
    {NEMO, "reference_policy_kl_type", "k1", "ref_kl_form=k1", NULL, 0, 0},
    {NEMO, "reference_policy_kl_type", "k2", "ref_kl_form=k2", NULL, 0, 0},
    {NEMO, "reference_policy_kl_type", "k3", "ref_kl_form=k3", NULL, 0, 0},
    {NEMO, "use_importance_sampling_correction", "true",
     "old_policy=proximal tis_level=token tis_max=.inf", NULL, 0, 0},
    {NEMO, "use_importance_sampling_correction", "false", "", NULL, 0, 0},
    {NEMO, "truncated_importance_sampling_ratio", NULL, "tis_max=@ mis_max=@", NULL, 0, 0},
    {NEMO, "truncated_importance_sampling_ratio_min", NULL, "tis_min=@ mis_min=@", NULL, 0, 0},
    {NEMO, "truncated_importance_sampling_type", "tis", "", NULL, 0, 0},
    {NEMO, "truncated_importance_sampling_type", "icepop", "mis_level=token tis_min=0 tis_max=.inf",
     NULL, 0, 0},
    {NEMO, "truncated_importance_sampling_type", "seq-mask-tis",
     "mis_level=sequence_mean tis_min=0 tis_max=.inf", NULL, 0, 0},
    {NEMO, "positive_example_nll_weight", NULL, "",
     "above 0 no algorithm here has it: a likelihood of right answers beside the loss", 0, 0},

    {SKYRL, "advantage_estimator", "grpo", "", NULL, 0, 0},
    {SKYRL, "advantage_estimator", "rloo", "baseline=leave_one_out scale=none", NULL, 0, 0},
    {SKYRL, "advantage_estimator", "maxrl", "scale=group_mean", NULL, 0, 0},
    {SKYRL, "advantage_estimator", "reinforce++", "baseline=none scale=token_std scale_eps=1e-8",
     "with gamma 1", 0, 0},
    {SKYRL, "advantage_estimator", "gae", "", NO_ROW "advantages of a critic", 0, 0},
    {SKYRL, "grpo_norm_by_std", "true", "", NULL, 0, 0},
    {SKYRL, "grpo_norm_by_std", "false", "scale=none", NULL, 0, 0},
    {SKYRL, "zero_variance_filter", "true", "drop_equal=true", NULL, 0, 0},
    {SKYRL, "zero_variance_filter", "false", "", NULL, 0, 0},
    {SKYRL, "loss_reduction", "token_mean", "aggregate=token_mean", NULL, 0, 0},
    {SKYRL, "loss_reduction", "sequence_mean", "aggregate=sequence_mean", NULL, 0, 0},
    {SKYRL, "loss_reduction", "prompt_mean", "aggregate=group_token_mean", NULL, 0, 0},
    {SKYRL, "loss_reduction", "seq_mean_token_sum_norm", "aggregate=fixed_length", NULL, 0, 0},
    {SKYRL, "clip_ratio_c", NULL, "dual_clip=@", NULL, 0, 0},
    {SKYRL, "eps_clip_low", NULL, "eps_low=@", NULL, 0, 0},
    {SKYRL, "eps_clip_high", NULL, "eps_high=@", NULL, 0, 0},
    {SKYRL, "policy_loss_type", "regular", "dual_clip=.inf", NULL, 0, 0},
    {SKYRL, "policy_loss_type", "dual_clip", "", NULL, 0, 0},
    {SKYRL, "policy_loss_type", "gspo",
     "ratio=sequence_token log_prob=mean log_cap=10 token_log_clamp=.inf dual_clip=.inf", NULL, 0,
     0},
    {SKYRL, "policy_loss_type", "cispo", "clip=clamp ratio_gradient=false dual_clip=.inf", NULL, 0,
     0},
    {SKYRL, "policy_loss_type", "sapo", "clip=sigmoid dual_clip=.inf", NULL, 0, 0},
    {SKYRL, "policy_loss_type", "rollout_is",
     "clip=none ratio_gradient=false dual_clip=.inf mis_level=token mis_min=0.8 mis_max=1.2 "
     "correction_of=learner",
     "widths other than 0.2 are mis_min and mis_max here", 0, 0},
    {SKYRL, "policy_loss_type", "dppo",
     "clip=binary_tv ratio_gradient=false cap=.inf token_log_clamp=.inf dual_clip=.inf", NULL, 0,
     0},
    {SKYRL, "policy_loss_type", "kl_cov",
     "clip=none dual_clip=.inf token_log_clamp=.inf kl_form=abs kl_coef=1 kl_share=0.2", NULL, 0,
     0},
    {SKYRL, "policy_loss_type", "clip_cov", "", NO_ROW "clip_cov leaves out random tokens", 0, 0},
    {SKYRL, "cispo_eps_clip_low", NULL, "eps_low=@", NULL, 0, 0},
    {SKYRL, "cispo_eps_clip_high", NULL, "eps_high=@", NULL, 0, 0},
    {SKYRL, "dppo_type", "binary_tv", "", NULL, 0, 0},
    {SKYRL, "dppo_type", "binary_kl", "clip=binary_kl", NULL, 0, 0},
    {SKYRL, "delta_low", NULL, "eps_low=@", NULL, 0, 0},
    {SKYRL, "delta_high", NULL, "eps_high=@", NULL, 0, 0},
    {SKYRL, "kl_cov_frac", NULL, "kl_share=@", NULL, 0, 0},
    {SKYRL, "ppo_kl_coef", NULL, "kl_coef=@", NULL, 0, 0},
    {SKYRL, "tau_pos", NULL, "tau_positive=@", NULL, 0, 0},
    {SKYRL, "tau_neg", NULL, "tau_negative=@", NULL, 0, 0},
    {SKYRL, "kl_loss_coef", NULL, "ref_kl_coef=@", NULL, 0, 0},
    {SKYRL, "kl_estimator_type", "k1", "ref_kl_form=k1", NULL, 0, 0},
    {SKYRL, "kl_estimator_type", "k2", "ref_kl_form=k2", NULL, 0, 0},
    {SKYRL, "kl_estimator_type", "k3", "ref_kl_form=k3", NULL, 0, 0},
    {SKYRL, "kl_estimator_type", "abs", "ref_kl_form=abs", NULL, 0, 0},
    {SKYRL, "use_kl_loss", "true", "", NULL, 0, 0},
    {SKYRL, "use_kl_loss", "false", "ref_kl_coef=0", NULL, 0, 0},
    {SKYRL, "tis_ratio_type", "token", "old_policy=proximal tis_level=token", NULL, 0, 0},
    {SKYRL, "tis_ratio_type", "sequence", "old_policy=proximal tis_level=sequence", NULL, 0, 0},
    {SKYRL, "token_tis_ratio_clip_high", NULL, "tis_max=@", NULL, 0, 0},
    {SKYRL, "use_entropy_loss", "true", "", ENTROPY_BONUS, 0, 0},
    {SKYRL, "use_entropy_loss", "false", "", NULL, 0, 0},

    {ROLL, "adv_estimator", "grpo", "baseline=group_mean scale=group_std", NULL, 0, 0},
    {ROLL, "adv_estimator", "reinforce", "", NULL, 0, 0},
    {ROLL, "adv_estimator", "gae", "", NO_ROW "advantages of a critic", 0, 0},
    {ROLL, "norm_mean_type", "group", "baseline=group_mean", NULL, 0, 0},
    {ROLL, "norm_mean_type", "batch", "", NO_ROW "a baseline over the whole batch", 0, 0},
    {ROLL, "norm_std_type", "group", "scale=group_std", NULL, 0, 0},
    {ROLL, "norm_std_type", "batch", "scale=reward_std", NULL, 0, 0},
    {ROLL, "loss_agg_mode", "token-mean", "aggregate=token_mean", NULL, 0, 0},
    {ROLL, "loss_agg_mode", "seq-mean-token-mean", "aggregate=sequence_mean", NULL, 0, 0},
    {ROLL, "loss_agg_mode", "seq-mean-token-sum", "aggregate=sequence_sum", NULL, 0, 0},
    {ROLL, "loss_agg_mode", "seq-mean-token-sum-norm", "aggregate=fixed_length", NULL, 0, 0},
    {ROLL, "pg_clip", NULL, "eps_low=@ eps_high=@", NULL, 0, 0},
    {ROLL, "use_pg_clip_range", "true", "", NULL, 0, 0},
    {ROLL, "use_pg_clip_range", "false", "", NULL, 0, 0},
    {ROLL, "pg_clip_low", NULL, "eps_low=@", "counts with use_pg_clip_range", 0, 0},
    {ROLL, "pg_clip_high", NULL, "eps_high=@", NULL, 0, 0},
    {ROLL, "dual_clip_loss", "true", "dual_clip=1.4", "its bound is 1 + 2 pg_clip", 0, 0},
    {ROLL, "dual_clip_loss", "false", "", NULL, 0, 0},
    {ROLL, "pg_variant", "ppo", "", NULL, 0, 0},
    {ROLL, "pg_variant", "vanilla", "ratio=none clip=none ratio_gradient=false", NULL, 0, 0},
    {ROLL, "pg_variant", "tis", "clip=clamp eps_low=1 eps_high=0 ratio_gradient=false", NULL, 0, 0},
    {ROLL, "pg_variant", "cispo", "clip=clamp eps_low=0.1 eps_high=0.1 ratio_gradient=false", NULL,
     0, 0},
    {ROLL, "pg_variant", "topr", "clip=signed_clamp ratio_gradient=false",
     "its sides are those of the score, here of the advantage", 0, 0},
    {ROLL, "pg_variant", "kimi15",
     "ratio=none clip=none ratio_gradient=false kl_form=k2 kl_coef=0.1", NULL, 0, 0},
    {ROLL, "cispo_epsilon_low", NULL, "eps_low=@", NULL, 0, 0},
    {ROLL, "cispo_epsilon_high", NULL, "eps_high=@", NULL, 0, 0},
    {ROLL, "tis_upper_bound", NULL, "eps_high=@", NULL, 1, -1},
    {ROLL, "tis_lower_bound", NULL, "eps_low=@", NULL, -1, 1},
    {ROLL, "kimi15_tau", NULL, "kl_coef=@", NULL, 0, 0},
    {ROLL, "kl_loss_coef", NULL, "ref_kl_coef=@", NULL, 0, 0},
    {ROLL, "use_kl_loss", "true", "ref_kl_form=k3", NULL, 0, 0},
    {ROLL, "use_kl_loss", "false", "ref_kl_coef=0", NULL, 0, 0},
    {ROLL, "entropy_loss_coef", NULL, "", ENTROPY_BONUS, 0, 0},

    {RLHF, "advantage.estimator", "group_norm", "", NULL, 0, 0},
    {RLHF, "advantage.estimator", "dr_grpo", "scale=none", NULL, 0, 0},
    {RLHF, "advantage.estimator", "rloo", "baseline=leave_one_out scale=none", NULL, 0, 0},
    {RLHF, "advantage.estimator", "reinforce_baseline", "scale=token_std scale_eps=1e-8", NULL, 0,
     0},
    {RLHF, "advantage.estimator", "reinforce", "baseline=none scale=token_std scale_eps=1e-8",
     "with gamma 1", 0, 0},
    {RLHF, "advantage.estimator", "gae", "", NO_ROW "advantages of a critic", 0, 0},
    {RLHF, "no_std_norm", "true", "scale=none", NULL, 0, 0},
    {RLHF, "policy_loss_type", "ppo", "", NULL, 0, 0},
    {RLHF, "policy_loss_type", "gspo",
     "ratio=sequence log_prob=mean aggregate=sequence_mean token_log_clamp=.inf", NULL, 0, 0},
    {RLHF, "eps_clip", NULL, "eps_low=@ eps_high=@", NULL, 0, 0},
    {RLHF, "eps_clip_low_high", RANGE, "eps_low=@ eps_high=#", NULL, 0, 0},
    {RLHF, "dual_clip", NULL, "dual_clip=@", NULL, 0, 0},
    {RLHF, "is_correction_enable", "true",
     "old_policy=proximal tis_level=token tis_min=0.5 tis_max=5 mis_min=0.5 mis_max=5", NULL, 0, 0},
    {RLHF, "is_correction_threshold", RANGE, "tis_min=@ tis_max=# mis_min=@ mis_max=#", NULL, 0, 0},
    {RLHF, "is_correction_type", "tis", "", NULL, 0, 0},
    {RLHF, "is_correction_type", "icepop", "mis_level=token tis_min=0 tis_max=.inf", NULL, 0, 0},
    {RLHF, "is_correction_type", "seq-mask-tis", "mis_level=sequence_mean tis_min=0 tis_max=.inf",
     NULL, 0, 0},
    {RLHF, "kl.init_coef", NULL, "", "its penalty is taken off the rewards, unless kl.use_loss", 0,
     0},
    {RLHF, "entropy_coef", NULL, "", ENTROPY_BONUS, 0, 0},
};
enum { SWITCHES = sizeof table / sizeof *table };

/* The trainer's default loss, written as in a recipe. */
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
    return "{base: grpo, baseline: none, scale: none, scale_eps: 1e-5, aggregate: token_mean}";
  case TRAINER_SLIME:
    return "{base: grpo, scale_eps: 1e-6}";
  case TRAINER_NEMO_RL:
    return "{base: grpo, baseline: leave_one_out, scale_eps: 1e-6, aggregate: token_mean, "
           "ref_kl_coef: 0.01}";
  case TRAINER_SKYRL:
    return "{base: grpo, scale_eps: 1e-6, token_log_clamp: 20, aggregate: token_mean, "
           "ref_kl_coef: 0.001}";
  case TRAINER_ROLL:
    return "{base: grpo, baseline: none, scale: none, scale_eps: 1e-6}";
  case TRAINER_OPENRLHF:
    return "{base: grpo, scale_eps: 1e-9, token_log_clamp: 20, aggregate: token_mean}";
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
  char key[160]; /* the whole dotted name */
  char value[1024];
} given;

static gl_status switch_split(given *g, const char *text, gl_error *err) {
  const char *equals = strchr(text, '=');
  const char *start = text + strspn(text, "-+");
  if (equals == NULL || equals <= start)
    return gl_fail(err, GL_EINPUT, "'%.80s' is no switch of a trainer; write name=value", text);
  if (strlen(equals + 1) >= sizeof g->value)
    return gl_fail(err, GL_EINPUT, "the value of '%.80s...' is longer than %zu characters", text,
                   sizeof g->value - 1);
  if ((size_t)(equals - start) >= sizeof g->key)
    return gl_fail(err, GL_EINPUT, "'%.80s' has too long a name", text);
  snprintf(g->key, sizeof g->key, "%.*s", (int)(equals - start), start);
  for (char *c = g->key; *c != '\0'; ++c)
    if (*c == '-') *c = '_'; /* --eps-clip is eps_clip in a file */
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

/* Reads a range LOW_HIGH or LOW,HIGH. Returns 1 if the text is one. */
static int trainer_is_range(const char *text, double value[2]) {
  char *end = NULL;
  value[0] = strtod(text, &end);
  return end != text && (*end == '_' || *end == ',') && trainer_is_number(end + 1, &value[1]);
}

/* Whether a dotted name is `key` or ends in it. */
static int switch_ends_in(const char *name, const char *key) {
  const size_t n = strlen(name), m = strlen(key);
  return n >= m && strcmp(name + n - m, key) == 0 && (n == m || name[n - m - 1] == '.');
}

static int switch_matches(const trainer_switch *s, policy_trainer trainer, const given *g) {
  double value[2];
  if (s->trainer != trainer || !switch_ends_in(g->key, s->key)) return 0;
  if (s->value == NULL) return trainer_is_number(g->value, value);
  if (strcmp(s->value, RANGE) == 0) return trainer_is_range(g->value, value);
  return strcmp(s->value, "*") == 0 || strcmp(s->value, g->value) == 0;
}

static int knows_key(policy_trainer trainer, const char *key) {
  for (size_t i = 0; i < SWITCHES; ++i)
    if (table[i].trainer == trainer && switch_ends_in(key, table[i].key)) return 1;
  return 0;
}

/* Refuses a switch or a value that the table does not have, with the nearest one. */
static gl_status switch_check(policy_trainer trainer, const given *g, gl_error *err) {
  const char *names[SWITCHES];
  char hint[CFG_HINT_SIZE], values[400] = "";
  size_t n = 0;
  const int known = knows_key(trainer, g->key);
  for (size_t i = 0; i < SWITCHES; ++i) {
    if (switch_matches(&table[i], trainer, g)) return GL_OK;
    if (table[i].trainer != trainer) continue;
    if (!known)
      names[n++] = table[i].key;
    else if (switch_ends_in(g->key, table[i].key))
      names[n++] = table[i].value != NULL ? table[i].value : "a number";
  }
  if (!known)
    return gl_fail(err, GL_EINPUT, "%s's switch '%s' is not known here%s",
                   policy_trainer_about(trainer)->name, field_last_word(g->key),
                   cfg_hint(field_last_word(g->key), names, n, hint));
  for (size_t i = 0, at = 0; i < n && at < sizeof values; ++i)
    at += (size_t)snprintf(values + at, sizeof values - at, "%s%s", i > 0 ? ", " : "", names[i]);
  return gl_fail(err, GL_EINPUT, "%s's %s has no value '%s' here%s; it takes %s",
                 policy_trainer_about(trainer)->name, field_last_word(g->key), g->value,
                 cfg_hint(g->value, names, n, hint), values);
}

/* --- fields --- */

/* Applies an assignment from the column `fields` of the table to the algorithm, with the number
 * inserted. */
static gl_status apply_one(cfg_doc *doc, const char *text, size_t length, const double value[2],
                           gl_error *err) {
  char assignment[160], number[40];
  size_t to = length;
  for (size_t i = 0; i < length; ++i)
    if (text[i] == '@' || text[i] == '#') to = i;
  number[0] = '\0';
  if (to < length) {
    const double v = value[text[to] == '#'];
    if (isinf(v))
      snprintf(number, sizeof number, ".inf");
    else
      snprintf(number, sizeof number, "%.17g", v);
  }
  snprintf(assignment, sizeof assignment, "algorithm.%.*s%s", (int)to, text, number);
  return cfg_override(doc, assignment, err);
}

static gl_status apply_switch(cfg_doc *doc, const trainer_switch *s, const given *g,
                              gl_error *err) {
  double value[2] = {NAN, NAN};
  gl_status status = GL_OK;
  if (!trainer_is_range(g->value, value) && s->value == NULL &&
      trainer_is_number(g->value, &value[0]))
    value[0] = value[0] * (s->scale != 0 ? s->scale : 1) + s->shift;
  for (const char *at = s->fields; *at != '\0' && status == GL_OK;) {
    const size_t length = strcspn(at, " ");
    status = apply_one(doc, at, length, value, err);
    at += length + (at[length] == ' ');
  }
  return status;
}

/* Settles fields that depend on two switches: DPPO's dual clip is its cap, TRL's CISPO caps at
 * epsilon_high itself (0.2 by default, which no width of `clamp` gives), and ROLL's dual clip
 * follows its widths. */
static void trainer_settle(policy_algorithm *a, policy_trainer trainer) {
  const int binary = a->clip == CLIP_BINARY_TV || a->clip == CLIP_BINARY_KL;
  if (trainer == TRAINER_VERL && binary && !isinf(a->dual_clip)) {
    a->cap = a->dual_clip;
    a->dual_clip = INFINITY;
  }
  if (trainer == TRAINER_TRL && a->clip == CLIP_CLAMP && a->eps_high < 1) {
    const policy_algorithm *plain = policy_algorithms_find("reinforce");
    a->clip = CLIP_CAP;
    a->cap = a->eps_high;
    a->eps_low = plain->eps_low; /* not used by this clip */
    a->eps_high = plain->eps_high;
  } else if (trainer == TRAINER_TRL && a->clip == CLIP_CLAMP) {
    a->eps_low = 10;
    a->eps_high -= 1;
  }
  if (trainer == TRAINER_ROLL && !isinf(a->dual_clip)) a->dual_clip = 1 + 2 * a->eps_low;
  if (trainer == TRAINER_NEMO_RL && a->ratio == RATIO_SEQUENCE && a->tis_level == LEVEL_TOKEN)
    a->tis_level = LEVEL_SEQUENCE; /* NeMo-RL corrects at the level of the ratio */
  if (a->mis_test == MIS_K2 || a->mis_test == MIS_K3) a->mis_min = 0;
  /* These scales do not use scale_eps. The default lets name_by_nearest() find the algorithm. */
  if (a->scale == SCALE_NONE || a->scale == SCALE_NONZERO_SHARE)
    a->scale_eps = policy_algorithms_find("reinforce")->scale_eps;
}

/* --- the nearest published algorithm --- */

/* Returns the distance of two algorithms: a weighted number of different fields. Fields that define
 * the kind of loss weigh most, so an algorithm of another kind is never the nearest one if there is
 * one of the same kind. Other choices weigh more than numbers, whose meaning depends on them. */
static size_t trainer_differences(const policy_algorithm *a, const policy_algorithm *b) {
  char one[POLICY_FIELD_TEXT_SIZE], other[POLICY_FIELD_TEXT_SIZE];
  size_t sum = 0;
  for (size_t i = 0; i < policy_fields_count(); ++i)
    if (strcmp(policy_algorithm_field(a, i, one), policy_algorithm_field(b, i, other)) != 0)
      sum += policy_fields_at(i)->kind == POLICY_FIELD_CHOICE ? 8 : 1;
  return sum + (size_t)1000 * (size_t)((a->objective != b->objective) + (a->ratio != b->ratio) +
                                       (a->clip != b->clip) + (a->denominator != b->denominator));
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
  (void)policy_algorithm_set_name(a, NULL, 0, NULL); /* a long name is truncated */
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

gl_status trainer_read_text(trainer_reading *out, policy_trainer trainer, const char *text,
                            gl_error *err) {
  char *copy = must_copy(text, "a trainer's switches"), *rest = NULL;
  const char **words = NULL;
  size_t n = 0;
  int depth = 0;
  for (char *c = copy; *c != '\0'; ++c) { /* words in brackets are blanked */
    const int closes = *c == ')' && depth > 0;
    depth += *c == '(';
    if (depth > 0) *c = ' ';
    depth -= closes;
  }
  for (char *w = strtok_r(copy, " \t\n", &rest); w != NULL; w = strtok_r(NULL, " \t\n", &rest))
    *MUST_ADD(words, n, "a trainer's switches") = w;
  const gl_status status = n > 0 ? trainer_read(out, trainer, words, n, err)
                                 : gl_fail(err, GL_EINPUT,
                                           "switches of %s are given as name=value, and there is "
                                           "none",
                                           policy_trainer_about(trainer)->name);
  free(words);
  free(copy);
  return status;
}

/* Collects the known switches at and below a node, whose dotted name is `above`. */
static gl_status collect(given **all, size_t *n, policy_trainer trainer, const char *above,
                         const cfg_node *node, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; status == GL_OK && cfg_kind_of(node) == CFG_MAP && i < cfg_size(node); ++i) {
    const cfg_node *value = cfg_at(node, i);
    char key[160];
    snprintf(key, sizeof key, "%s%s%s", above, *above != '\0' ? "." : "", cfg_key_at(node, i));
    if (cfg_kind_of(value) != CFG_SCALAR) {
      const cfg_node *type = cfg_kind_of(value) == CFG_MAP ? cfg_find(value, "type") : NULL;
      status = collect(all, n, trainer, key, value, err);
      if (status != GL_OK || type == NULL || cfg_kind_of(type) != CFG_SCALAR) continue;
      value = type; /* prime-rl's loss: {type: ipo} */
    }
    if (cfg_is_null(value) || !knows_key(trainer, key)) continue;
    given *g = MUST_ADD(*all, *n, "a trainer's switches");
    char *text = must_textf("a trainer's switch", "%s=%s", key, cfg_text(value));
    status = switch_split(g, text, err);
    free(text);
  }
  return status;
}

gl_status trainer_read_file(trainer_reading *out, policy_trainer trainer, const char *path,
                            gl_error *err) {
  cfg_doc *doc = NULL;
  given *all = NULL;
  size_t n = 0;
  gl_status status = cfg_load_file(&doc, path, err);
  if (status == GL_OK) status = collect(&all, &n, trainer, "", cfg_root(doc), err);
  if (status == GL_OK && n == 0)
    status = gl_fail(err, GL_EINPUT, "%s has no switch of %s that is known here", path,
                     policy_trainer_about(trainer)->name);
  for (size_t i = 0; i < n && status == GL_OK; ++i) status = switch_check(trainer, &all[i], err);
  if (status == GL_OK) status = read_given(out, trainer, all, n, err);
  free(all);
  cfg_free(doc);
  return status;
}
