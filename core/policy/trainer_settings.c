/* Settings of trainers: which switches make which algorithm, on top of the trainer's defaults, what
 * the trainer does differently, and where that was read. One line for each algorithm and trainer; a
 * trainer without a line for an algorithm has no such setting at the version that was read.
 * Switches are written as `gepolab list algorithms --from` reads them; text in brackets is no
 * switch.
 */
#include "core/policy/trainer_settings.h"

#include <assert.h>
#include <string.h>

static const policy_trainer_info trainers[TRAINER_COUNT] = {
    [TRAINER_TRL] = {"TRL", "trl", "TR", "f2cd577 (places), 1.16"},
    [TRAINER_VERL] = {"verl", "verl", "ve", "b178a3c (places), 0.9.1"},
    [TRAINER_AREAL] = {"AReaL", "areal", "AR", "cbff54d"},
    [TRAINER_PRIME_RL] = {"prime-rl", "prime-rl", "pr", "559b447"},
    [TRAINER_SLIME] = {"slime, miles", "slime", "sl", "slime 624b824, miles 31f1ca9"},
    [TRAINER_NEMO_RL] = {"NeMo-RL", "nemo-rl", "Ne", "7ea279a"},
    [TRAINER_SKYRL] = {"SkyRL", "skyrl", "Sk", "a956457"},
    [TRAINER_ROLL] = {"ROLL", "roll", "RO", "8eb27cc"},
    [TRAINER_OPENRLHF] = {"OpenRLHF", "openrlhf", "OR", "3c3be62"},
};

static const policy_setting settings[] = {
    {"reinforce", TRAINER_VERL, "adv_estimator=rloo loss_mode=gpg loss_agg_mode=seq-mean-token-sum",
     "with the default loss a ratio and a clip, which do nothing on-policy", "core_algos.py:476",
     SETTING_RUN},
    {"reinforce", TRAINER_NEMO_RL,
     "disable_ppo_ratio=true use_leave_one_out_baseline=true normalize_rewards=false "
     "token_level_loss=true reference_policy_kl_penalty=0",
     "token mean", "loss_functions.py:187", SETTING_RUN},
    {"reinforce", TRAINER_SKYRL,
     "advantage_estimator=rloo policy_loss_type=regular use_kl_loss=false",
     "a ratio of each token, with a clip", "ppo_utils.py:1259", SETTING_READ},
    {"reinforce", TRAINER_ROLL, "pg_variant=vanilla loss_agg_mode=seq-mean-token-sum",
     "advantage as configured", "agentic_actor_pg_worker.py:200", SETTING_READ},
    {"is", TRAINER_TRL, "(RLOOTrainer; this row with clip: ppo, both widths its epsilon)", "",
     "rloo_trainer.py", SETTING_RUN},
    {"is", TRAINER_OPENRLHF, "advantage.estimator=rloo policy_loss_type=ppo",
     "ratio of each token, with a clip", "experience_maker.py:264", SETTING_READ},
    {"tis", TRAINER_VERL,
     "adv_estimator=rloo loss_mode=bypass_mode loss_type=reinforce rollout_is=sequence "
     "rollout_is_threshold=1 loss_agg_mode=seq-mean-token-sum",
     "its weight is a factor of the loss: the same gradient", "core_algos.py:2064", SETTING_RUN},
    {"tis", TRAINER_ROLL, "pg_variant=tis tis_upper_bound=1", "ratio of each token",
     "agentic_actor_pg_worker.py:214", SETTING_READ},
    {"grpo", TRAINER_TRL, "loss_type=grpo", "", "grpo_trainer.py:3083", SETTING_RUN},
    {"grpo", TRAINER_VERL, "adv_estimator=grpo loss_agg_mode=seq-mean-token-mean",
     "its default aggregation is token-mean", "core_algos.py:1159", SETTING_RUN},
    {"grpo", TRAINER_AREAL, "reward_norm.mean_level=group reward_norm.std_level=group eps_clip=0.2",
     "token mean", "functional.py:452", SETTING_RUN},
    {"grpo", TRAINER_SLIME, "advantage_estimator=grpo eps_clip=0.2", "",
     "slime loss.py:1036, ppo_utils.py:125", SETTING_RUN},
    {"grpo", TRAINER_NEMO_RL,
     "ratio_clip_min=0.2 ratio_clip_max=0.2 token_level_loss=false "
     "use_leave_one_out_baseline=false reference_policy_kl_penalty=0",
     "std only where it is not 0, plus 1e-6", "loss_functions.py:526, advantage_estimator.py:57",
     SETTING_RUN},
    {"grpo", TRAINER_SKYRL,
     "policy_loss_type=regular loss_reduction=sequence_mean use_kl_loss=false", "",
     "ppo_utils.py:555", SETTING_RUN},
    {"grpo", TRAINER_ROLL, "pg_variant=ppo adv_estimator=grpo loss_agg_mode=seq-mean-token-mean",
     "", "agentic_actor_pg_worker.py:150", SETTING_RUN},
    {"grpo", TRAINER_OPENRLHF, "advantage.estimator=group_norm policy_loss_type=ppo",
     "token mean unless token_level_loss false", "models/loss.py:167, experience_maker.py:269",
     SETTING_RUN},
    {"dr_grpo", TRAINER_TRL, "loss_type=dr_grpo scale_rewards=none", "", "grpo_trainer.py:3134",
     SETTING_RUN},
    {"dr_grpo", TRAINER_VERL, "norm_adv_by_std_in_grpo=false loss_agg_mode=seq-mean-token-sum-norm",
     "b178a3c multiplies seq-mean-token-sum-norm by the number of responses", "core_algos.py:1159",
     SETTING_RUN},
    {"dr_grpo", TRAINER_SLIME, "disable_grpo_std_normalization=true calculate_per_token_loss=true",
     "token mean in place of a constant length", "slime arguments.py:1006", SETTING_READ},
    {"dr_grpo", TRAINER_SKYRL,
     "loss_reduction=seq_mean_token_sum_norm grpo_norm_by_std=false "
     "policy_loss_type=regular use_kl_loss=false",
     "", "ppo_utils.py:1197", SETTING_READ},
    {"dr_grpo", TRAINER_OPENRLHF, "advantage.estimator=dr_grpo",
     "token mean in place of a constant length", "experience_maker.py:267", SETTING_READ},
    {"dapo", TRAINER_TRL, "loss_type=dapo epsilon_high=0.28", "", "grpo_trainer.py:3139",
     SETTING_RUN},
    {"dapo", TRAINER_VERL, "loss_agg_mode=token-mean clip_ratio_high=0.28", "",
     "core_algos.py:1159", SETTING_RUN},
    {"dapo", TRAINER_AREAL,
     "reward_norm.mean_level=group reward_norm.std_level=group eps_clip_higher=0.28", "",
     "functional.py:452", SETTING_RUN},
    {"dapo", TRAINER_SLIME, "eps_clip_high=0.28 calculate_per_token_loss=true", "",
     "slime arguments.py:900", SETTING_READ},
    {"dapo", TRAINER_NEMO_RL,
     "ratio_clip_min=0.2 ratio_clip_max=0.28 token_level_loss=true "
     "use_leave_one_out_baseline=false reference_policy_kl_penalty=0",
     "", "loss_functions.py:111", SETTING_RUN},
    {"dapo", TRAINER_SKYRL,
     "policy_loss_type=regular eps_clip_high=0.28 loss_reduction=token_mean "
     "use_kl_loss=false",
     "", "ppo_utils.py:555", SETTING_RUN},
    {"dapo", TRAINER_OPENRLHF, "advantage.estimator=group_norm eps_clip_low_high=0.2,0.28", "",
     "models/loss.py:116", SETTING_RUN},
    {"gspo", TRAINER_TRL,
     "loss_type=grpo importance_sampling_level=sequence epsilon=3e-4 epsilon_high=4e-4", "",
     "grpo_trainer.py:3057", SETTING_RUN},
    {"gspo", TRAINER_VERL,
     "loss_mode=gspo clip_ratio_low=3e-4 clip_ratio_high=4e-4 "
     "loss_agg_mode=seq-mean-token-mean",
     "the gradient of gspo; token weights make it gspo_token", "core_algos.py:1253", SETTING_RUN},
    {"gspo", TRAINER_AREAL,
     "importance_sampling_level=sequence eps_clip=3e-4 eps_clip_higher=4e-4 "
     "reward_norm.mean_level=group reward_norm.std_level=group",
     "token mean", "functional.py:56", SETTING_RUN},
    {"gspo", TRAINER_SLIME, "advantage_estimator=gspo eps_clip=3e-4 eps_clip_high=4e-4", "",
     "slime ppo_utils.py:95", SETTING_RUN},
    {"gspo", TRAINER_NEMO_RL,
     "sequence_level_importance_ratios=true token_level_loss=false ratio_clip_min=3e-4 "
     "ratio_clip_max=4e-4 use_leave_one_out_baseline=false reference_policy_kl_penalty=0",
     "", "loss_functions.py:528", SETTING_RUN},
    {"gspo", TRAINER_OPENRLHF,
     "advantage.estimator=group_norm policy_loss_type=gspo eps_clip_low_high=3e-4,4e-4",
     "with vllm correction the ratio is of learner and sampler", "models/loss.py:170", SETTING_RUN},
    {"gspo_token", TRAINER_TRL,
     "loss_type=grpo importance_sampling_level=sequence_token epsilon=3e-4 "
     "epsilon_high=4e-4",
     "", "grpo_trainer.py:3057", SETTING_RUN},
    {"gspo_token", TRAINER_VERL,
     "loss_mode=gspo clip_ratio_low=3e-4 clip_ratio_high=4e-4 "
     "loss_agg_mode=seq-mean-token-mean",
     "", "core_algos.py:1253", SETTING_RUN},
    {"gspo_token", TRAINER_SKYRL,
     "policy_loss_type=gspo loss_reduction=sequence_mean eps_clip_low=3e-4 "
     "eps_clip_high=4e-4 use_kl_loss=false",
     "", "ppo_utils.py:663", SETTING_RUN},
    {"gmpo", TRAINER_TRL, "(GMPOTrainer of trl.experimental.gmpo)", "", "trl/experimental/gmpo",
     SETTING_RUN},
    {"gmpo", TRAINER_VERL, "loss_mode=geo_mean clip_ratio_low=0.4 clip_ratio_high=0.4", "",
     "core_algos.py:1635", SETTING_RUN},
    {"cispo", TRAINER_TRL, "loss_type=cispo epsilon_high=5", "its cap is epsilon_high itself",
     "grpo_trainer.py:3080", SETTING_RUN},
    {"cispo", TRAINER_VERL, "loss_mode=cispo clip_ratio_low=10 clip_ratio_high=4", "",
     "core_algos.py:1721", SETTING_RUN},
    {"cispo", TRAINER_AREAL,
     "use_cispo_loss=true eps_clip=1 eps_clip_higher=4 reward_norm.mean_level=group "
     "reward_norm.std_level=group",
     "lower bound 0", "functional.py:678", SETTING_RUN},
    {"cispo", TRAINER_SLIME, "advantage_estimator=cispo eps_clip=1 eps_clip_high=4",
     "sequence mean unless --calculate-per-token-loss; miles has none", "slime ppo_utils.py:152",
     SETTING_RUN},
    {"cispo", TRAINER_NEMO_RL,
     "use_cispo=true token_level_loss=true ratio_clip_min=10 ratio_clip_max=4 "
     "use_leave_one_out_baseline=false reference_policy_kl_penalty=0",
     "bounds 1 - ratio_clip_min, 1 + ratio_clip_max", "loss_functions.py:545", SETTING_RUN},
    {"cispo", TRAINER_SKYRL,
     "policy_loss_type=cispo cispo_eps_clip_low=10 cispo_eps_clip_high=4 "
     "loss_reduction=token_mean use_kl_loss=false",
     "both bounds; cispo_anchor rollout takes the sampler", "ppo_utils.py:732", SETTING_RUN},
    {"cispo", TRAINER_ROLL, "pg_variant=cispo adv_estimator=grpo loss_agg_mode=token-mean",
     "bounds 0.9 and 1.1", "agentic_actor_pg_worker.py:351", SETTING_RUN},
    {"topr", TRAINER_ROLL, "pg_variant=topr", "ratio of each token, sign of the score",
     "agentic_actor_pg_worker.py:260", SETTING_READ},
    {"decoupled_ppo", TRAINER_AREAL,
     "use_decoupled_loss=true prox_logp_method=recompute reward_norm.mean_level=group "
     "reward_norm.std_level=group",
     "its weight of proximal policy and sampler is in float32", "functional.py:452", SETTING_READ},
    {"icepop", TRAINER_VERL,
     "rollout_is=token rollout_is_threshold=0.5_5.0 loss_agg_mode=seq-mean-token-mean", "",
     "core_algos.py:1159", SETTING_READ},
    {"icepop", TRAINER_SLIME,
     "use_tis=true custom_tis_function_path=…icepop_function tis_clip_low=0.5 tis_clip=5", "",
     "slime loss.py:908", SETTING_RUN},
    {"icepop", TRAINER_NEMO_RL,
     "use_importance_sampling_correction=true truncated_importance_sampling_type=icepop "
     "truncated_importance_sampling_ratio_min=0.5 truncated_importance_sampling_ratio=5 "
     "token_level_loss=false use_leave_one_out_baseline=false "
     "reference_policy_kl_penalty=0",
     "", "loss_functions.py:617", SETTING_RUN},
    {"icepop", TRAINER_OPENRLHF,
     "advantage.estimator=group_norm is_correction_enable=true is_correction_type=icepop "
     "is_correction_threshold=0.5,5",
     "token mean", "models/loss.py:200", SETTING_RUN},
    {"m2po", TRAINER_AREAL,
     "m2_threshold=0.04 (and m2_set all) "
     "reward_norm.mean_level=group reward_norm.std_level=group",
     "all tokens, strict limit, of lx - lq", "actor.py:933", SETTING_READ},
    {"sapo", TRAINER_TRL, "loss_type=sapo", "", "grpo_trainer.py:3092", SETTING_RUN},
    {"sapo", TRAINER_VERL, "loss_mode=sapo loss_agg_mode=seq-mean-token-mean", "",
     "core_algos.py:1329", SETTING_RUN},
    {"sapo", TRAINER_AREAL,
     "use_sapo_loss=true reward_norm.mean_level=group reward_norm.std_level=group", "token mean",
     "functional.py:599", SETTING_RUN},
    {"sapo", TRAINER_SKYRL, "policy_loss_type=sapo loss_reduction=sequence_mean use_kl_loss=false",
     "", "ppo_utils.py:590", SETTING_RUN},
    {"vespo", TRAINER_TRL, "loss_type=vespo", "", "grpo_trainer.py:3096", SETTING_RUN},
    {"reinforce_plus_plus", TRAINER_VERL, "adv_estimator=reinforce_plus_plus (and gamma 1)", "",
     "core_algos.py:582", SETTING_RUN},
    {"reinforce_plus_plus_baseline", TRAINER_VERL, "adv_estimator=reinforce_plus_plus_baseline", "",
     "core_algos.py:422", SETTING_RUN},
    {"reinforce_plus_plus_baseline", TRAINER_SLIME,
     "advantage_estimator=reinforce_plus_plus_baseline calculate_per_token_loss=true", "",
     "slime ppo_utils.py:448", SETTING_READ},
    {"reinforce_plus_plus_baseline", TRAINER_OPENRLHF, "advantage.estimator=reinforce_baseline", "",
     "experience_maker.py:315", SETTING_READ},
    {"gpg", TRAINER_VERL, "adv_estimator=gpg loss_mode=gpg", "", "core_algos.py:1414", SETTING_RUN},
    {"opo", TRAINER_VERL, "adv_estimator=opo loss_mode=gpg",
     "with the default loss a ratio and a clip, which do nothing on-policy", "core_algos.py:528",
     SETTING_RUN},
    {"grpo_passk", TRAINER_VERL, "adv_estimator=grpo_passk", "", "core_algos.py:360", SETTING_RUN},
    {"kl_cov", TRAINER_VERL, "loss_mode=kl_cov kl_cov_ratio=0.002 ppo_kl_coef=1", "",
     "core_algos.py:1555", SETTING_RUN},
    {"kl_cov", TRAINER_SKYRL,
     "policy_loss_type=kl_cov kl_cov_frac=0.002 ppo_kl_coef=1 use_kl_loss=false", "",
     "ppo_utils.py:1001", SETTING_READ},
    {"dppo_tv", TRAINER_VERL,
     "loss_mode=dppo_tv clip_ratio_low=0.15 clip_ratio_high=0.15 clip_ratio_c=10000 "
     "norm_adv_by_std_in_grpo=false loss_agg_mode=seq-mean-token-sum-norm",
     "", "0.9.1", SETTING_RUN},
    {"dppo_tv", TRAINER_PRIME_RL, "loss=default kl_tau=0", "widths 0.2, no cap, token mean",
     "loss.py:109", SETTING_RUN},
    {"dppo_tv", TRAINER_SKYRL,
     "policy_loss_type=dppo dppo_type=binary_tv delta_low=0.15 delta_high=0.15 "
     "grpo_norm_by_std=false loss_reduction=seq_mean_token_sum_norm use_kl_loss=false",
     "no cap", "ppo_utils.py:866", SETTING_RUN},
    {"dppo_kl", TRAINER_VERL,
     "loss_mode=dppo_kl clip_ratio_low=0.05 clip_ratio_high=0.05 clip_ratio_c=10000 "
     "norm_adv_by_std_in_grpo=false loss_agg_mode=seq-mean-token-sum-norm",
     "", "0.9.1", SETTING_RUN},
    {"dppo_kl", TRAINER_SKYRL,
     "policy_loss_type=dppo dppo_type=binary_kl delta_low=0.05 delta_high=0.05 "
     "grpo_norm_by_std=false loss_reduction=seq_mean_token_sum_norm use_kl_loss=false",
     "no cap", "ppo_utils.py:866", SETTING_RUN},
    {"maxrl", TRAINER_PRIME_RL, "algo=max_rl loss=default",
     "no epsilon, A = 0 where the mean is 0; the loss about it is prime_rl", "max_rl.py:33",
     SETTING_READ},
    {"maxrl", TRAINER_SKYRL,
     "advantage_estimator=maxrl policy_loss_type=regular loss_reduction=token_mean "
     "use_kl_loss=false",
     "a group of one keeps its reward", "ppo_utils.py:1396", SETTING_READ},
    {"prime_rl", TRAINER_PRIME_RL,
     "loss=default dppo_mask_low=0.2 dppo_mask_high=0.2 kl_tau=1e-3 algo=grpo", "", "loss.py:109",
     SETTING_RUN},
    {"prime_rl_ipo", TRAINER_PRIME_RL, "loss=ipo ipo_threshold=0.1", "", "loss.py:164",
     SETTING_RUN},
    {"opsm", TRAINER_TRL, "loss_type=grpo off_policy_mask_threshold=1e-4", "",
     "grpo_trainer.py:2920", SETTING_RUN},
    {"opsm", TRAINER_SLIME, "use_opsm=true opsm_delta=1e-4", "", "slime ppo_utils.py:54",
     SETTING_RUN},
    {"rollout_is", TRAINER_SKYRL,
     "policy_loss_type=rollout_is loss_reduction=token_mean use_kl_loss=false", "open interval",
     "ppo_utils.py:824", SETTING_RUN},
    {"kimi15", TRAINER_VERL, "loss_mode=dro dro_beta=0.1 norm_adv_by_std_in_grpo=false (0.9.1)",
     "token mean", "core_algos.py of 0.9.1", SETTING_RUN},
    {"kimi15", TRAINER_ROLL,
     "pg_variant=kimi15 kimi15_tau=0.1 norm_mean_type=group "
     "loss_agg_mode=seq-mean-token-mean",
     "advantage as configured", "agentic_actor_pg_worker.py:427", SETTING_RUN},
    {"trm", TRAINER_VERL, "rollout_rs=seq_max_k3 rollout_rs_threshold=0.05",
     "the test compares the learner at the step's start with the sampler",
     "rollout_corr_helper.py:320", SETTING_RUN},
    {"a3po", TRAINER_AREAL,
     "use_decoupled_loss=true prox_logp_method=loglinear reward_norm.mean_level=group "
     "reward_norm.std_level=group",
     "", "actor.py:826", SETTING_RUN},
};

const policy_trainer_info *policy_trainer_about(policy_trainer trainer) {
  assert((unsigned)trainer < TRAINER_COUNT);
  return &trainers[trainer];
}

size_t policy_settings_count(void) {
  return sizeof settings / sizeof *settings;
}

const policy_setting *policy_settings_at(size_t i) {
  return &settings[i];
}

const policy_setting *policy_settings_find(const char *algorithm, policy_trainer trainer) {
  for (size_t i = 0; i < policy_settings_count(); ++i)
    if (settings[i].trainer == trainer && strcmp(settings[i].algorithm, algorithm) == 0)
      return &settings[i];
  return NULL;
}

const char *policy_setting_text(const char *algorithm, policy_trainer trainer) {
  const policy_setting *s = policy_settings_find(algorithm, trainer);
  return s != NULL ? s->setting : "none";
}
