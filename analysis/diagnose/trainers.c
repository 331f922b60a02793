/* Fields and settings of trainers, as their sources have them. */
#include "analysis/diagnose/internal.h"
#include "analysis/import/foreign.h"

#include <string.h>

/* Looked up at:
 *   NeMo-RL 0.6.0 (7ea279a) nemo_rl/algorithms/grpo.py:3637-3652,
 * examples/configs/grpo_math_1B.yaml prime-rl 0.8.0 (559b447)
 * packages/prime-rl-configs/src/prime_rl/configs/{orchestrator,trainer, rl,monitors}.py,
 * src/prime_rl/trainer/rl/token_export.py verl 0.10.0.dev (1dda039)
 * verl/trainer/config/ppo_trainer.yaml:222-285,
 *     verl/trainer/config/algorithm/rollout_correction.yaml
 *   TRL 1.16.0 trl/experimental/async_grpo/async_grpo_config.py, trl/trainer/grpo_config.py:322-345
 *   AReaL 2.0.0 (cbff54d) areal/api/cli_args.py:1505, 2487-2550, 3241
 *   SkyRL (a956457) skyrl/train/config/config.py:190, 793, 945-956, 1390
 *   miles 0.1 (31f1ca9) miles/utils/arguments.py:119, 672-713, 780, 1082, 1355, 1539, 2096 */
static const trainer_info trainers[] = {
    {.name = "any",
     .title = "a trainer that is not known",
     .log_tokens = "log-probabilities of sampler and learner for every trained token",
     .log_versions = "the version of the weights that generated each token",
     .log_times = "seconds of a step, and of its waiting, generation, training and weight sync"},
    {.name = "gepolab",
     .title = "gepolab's group log",
     .logp = "logp",
     .logq = "logq",
     .versions = "version_gap",
     .rewards = "rewards",
     .log_tokens = "log_groups=\"run.jsonl\" of the Python package",
     .log_versions = "\"version_gap\", shaped as logp",
     .log_times = "\"time_s\" in every record, and the trainer's own log of times",
     .setting = {[CAUSE_MISMATCH] = "sampling.behaviour",
                 [CAUSE_AGE] = "cluster.window",
                 [CAUSE_RATE] = "optimizer.lr",
                 [CAUSE_SMALL_BATCH] = "train.groups",
                 [CAUSE_DISCARD] = "cluster.stale: wait",
                 [CAUSE_GENERATION] = "cluster.samplers",
                 [CAUSE_SYNC] = "cluster.learner.publish_every"}},
    {.name = "nemo_rl",
     .title = "NeMo-RL 0.6.0",
     .logp = "prev_logprobs",
     .logq = "generation_logprobs",
     .rewards = "rewards",
     .dropped = "sample_loss_mask",
     .log_tokens = "train_data_step*.jsonl is written by default (logger.log_dir)",
     .log_versions = "compare with a run with grpo.async_grpo.enabled: false, because "
                     "train_data_step*.jsonl has no versions",
     .log_times = "timing/train/* of the metrics logger (logger.tensorboard_enabled: true), as CSV",
     .setting = {[CAUSE_MISMATCH] = "loss_fn.use_importance_sampling_correction: true, "
                                    "loss_fn.truncated_importance_sampling_type: tis, "
                                    "loss_fn.truncated_importance_sampling_ratio: 2",
                 [CAUSE_AGE] = "grpo.async_grpo.max_trajectory_age_steps",
                 [CAUSE_RATE] = "policy.optimizer.kwargs.lr",
                 [CAUSE_SMALL_BATCH] =
                     "grpo.num_prompts_per_step and policy.train_global_batch_size",
                 [CAUSE_DISCARD] = "grpo.overlong_filtering: false, or a larger "
                                   "policy.max_total_sequence_length",
                 [CAUSE_GENERATION] = "grpo.async_grpo.enabled: true, policy.generation.colocated."
                                      "enabled: false",
                 [CAUSE_SYNC] = "policy.generation.refit_transport",
                 [CAUSE_ENVIRONMENT] = "env.*.num_workers"}},
    {.name = "prime_rl",
     .title = "prime-rl 0.8.0",
     .logp = "trainer_logprobs",
     .logq = "inference_logprobs",
     .log_tokens = "trainer.enable_token_export",
     .log_versions = "off_policy/* of the file monitor (monitors.file)",
     .log_times = "time/* of the file monitor (monitors.file)",
     .setting = {[CAUSE_MISMATCH] = "trainer.loss.dppo_mask_low and dppo_mask_high",
                 [CAUSE_AGE] = "orchestrator.max_off_policy_steps",
                 [CAUSE_RATE] = "trainer.optim.lr",
                 [CAUSE_SMALL_BATCH] = "orchestrator.batch_size",
                 [CAUSE_DISCARD] = "a larger orchestrator.max_off_policy_steps, or a smaller "
                                   "orchestrator.concurrency.max_inflight",
                 [CAUSE_GENERATION] = "deployment.num_infer_gpus",
                 [CAUSE_SYNC] = "weight_broadcast.type: nccl",
                 [CAUSE_ENVIRONMENT] = "orchestrator.concurrency.max_inflight"}},
    {.name = "verl",
     .title = "verl 0.10.0.dev, V1 trainer",
     .log_tokens = "trainer.rollout_data_dir",
     .log_versions = "training/off_policy/* of trainer.logger: [file] (V1 trainer)",
     .log_times = "timing_s/* of trainer.logger: [file]",
     .setting = {[CAUSE_MISMATCH] = "algorithm.rollout_correction.rollout_is: token, "
                                    "rollout_is_threshold: 2.0",
                 [CAUSE_AGE] = "trainer.v1.sampler.max_off_policy_threshold, "
                               "trainer.v1.separate_async.parameter_sync_step",
                 [CAUSE_RATE] = "actor_rollout_ref.actor.optim.lr",
                 [CAUSE_SMALL_BATCH] = "data.train_batch_size and "
                                       "actor_rollout_ref.actor.ppo_mini_batch_size",
                 [CAUSE_DISCARD] = "trainer.v1.sampler.max_off_policy_strategy: wait",
                 [CAUSE_GENERATION] = "trainer.v1.trainer_mode: separate_async, "
                                      "hybrid_rollout.enable_switch: true",
                 [CAUSE_SYNC] = "trainer.v1.separate_async.parameter_sync_step",
                 [CAUSE_ENVIRONMENT] = "actor_rollout_ref.rollout.agent.num_workers"}},
    {.name = "trl",
     .title = "TRL 1.16.0",
     .log_tokens = "log_groups=\"run.jsonl\" of gepolab's Python package",
     .log_versions = "sample/staleness_* of AsyncGRPOTrainer (trainer_state.json)",
     .log_times = "perf/* of AsyncGRPOTrainer (trainer_state.json)",
     .setting = {[CAUSE_MISMATCH] = "vllm_importance_sampling_correction=True, "
                                    "vllm_importance_sampling_mode (GRPOConfig)",
                 [CAUSE_AGE] = "max_staleness (AsyncGRPOConfig)",
                 [CAUSE_RATE] = "learning_rate",
                 [CAUSE_SMALL_BATCH] = "gradient_accumulation_steps",
                 [CAUSE_DISCARD] = "max_staleness larger, or max_inflight_tasks smaller "
                                   "(AsyncGRPOConfig)",
                 [CAUSE_GENERATION] = "more vLLM servers behind vllm_server_base_url, or "
                                      "max_inflight_tasks (AsyncGRPOConfig)",
                 [CAUSE_SYNC] = "weight_sync_steps (AsyncGRPOConfig)",
                 [CAUSE_ENVIRONMENT] = "max_inflight_tasks (AsyncGRPOConfig)"}},
    {.name = "areal",
     .title = "AReaL 2.0.0",
     .log_times = "perf_tracer.enabled: true (sessions-r*.jsonl)",
     .setting = {[CAUSE_MISMATCH] = "actor.use_decoupled_loss: true with actor.rejection_sampling",
                 [CAUSE_AGE] = "rollout.max_head_offpolicyness",
                 [CAUSE_RATE] = "actor.optimizer.lr",
                 [CAUSE_SMALL_BATCH] = "train_dataset.batch_size",
                 [CAUSE_DISCARD] = "rollout.max_head_offpolicyness larger",
                 [CAUSE_GENERATION] = "rollout.max_concurrent_rollouts",
                 [CAUSE_SYNC] = "actor.weight_update_mode"}},
    {.name = "skyrl",
     .title = "SkyRL 0.3",
     .log_tokens = "trainer.dump_data_batch: true",
     .log_versions = "async/staleness_* (trainer.fully_async.enabled: true)",
     .log_times = "timing/*",
     .setting = {[CAUSE_MISMATCH] = "trainer.algorithm.off_policy_correction.tis_ratio_type: token",
                 [CAUSE_AGE] = "trainer.fully_async.max_staleness_steps",
                 [CAUSE_RATE] = "trainer.policy.optimizer_config.lr",
                 [CAUSE_SMALL_BATCH] = "trainer.train_batch_size",
                 [CAUSE_DISCARD] = "trainer.fully_async.max_staleness_steps",
                 [CAUSE_GENERATION] = "trainer.fully_async.num_parallel_generation_workers"}},
    {.name = "miles",
     .title = "miles 0.1",
     .logp = "log_probs",
     .logq = "rollout_log_probs",
     .versions = "weight_versions",
     .rewards = "rewards",
     .log_tokens = "--dump-details DIR",
     .log_versions = "--dump-details DIR (weight_versions)",
     .log_times = "perf/*_time of the dashboard's metrics.jsonl (--dump-details DIR)",
     .setting = {[CAUSE_MISMATCH] = "--use-tis --tis-clip 2",
                 [CAUSE_AGE] = "--max-weight-staleness",
                 [CAUSE_RATE] = "--lr",
                 [CAUSE_SMALL_BATCH] = "--rollout-batch-size",
                 [CAUSE_DISCARD] = "--async-unused-samples-handler retry",
                 [CAUSE_GENERATION] = "--rollout-num-gpus, --async-max-concurrent-samples",
                 [CAUSE_SYNC] = "--update-weights-interval"}},
};
enum { N_TRAINERS = sizeof trainers / sizeof *trainers };

const char *diagnose_trainer_at(size_t i) {
  return i + 1 < N_TRAINERS ? trainers[i + 1].name : NULL;
}

const trainer_info *trainer_find(const char *name) {
  for (size_t i = 0; i < N_TRAINERS; ++i)
    if (strcmp(trainers[i].name, name != NULL ? name : "any") == 0) return &trainers[i];
  return &trainers[0];
}

/* How the systems of the table of foreign metrics begin; trainer NULL: its settings are not known.
 */
static const struct {
  const char *system, *trainer;
} systems[] = {{"TRL ", "trl"},     {"verl ", "verl"},   {"prime-rl ", "prime_rl"},
               {"SkyRL ", "skyrl"}, {"miles ", "miles"}, {"MiMo", NULL}};
enum { N_SYSTEMS = sizeof systems / sizeof *systems };

/* The system that most of the series are named by; of equals the first in the table. */
static const char *trainer_of_series(const gathered *from) {
  size_t n[N_SYSTEMS] = {0}, best = 0;
  for (size_t i = 0; from != NULL && i < from->n_series; ++i) {
    const foreign_metric *f = foreign_find(from->series[i].metric);
    for (size_t k = 0; f != NULL && k < N_SYSTEMS; ++k)
      n[k] += strncmp(f->system, systems[k].system, strlen(systems[k].system)) == 0;
  }
  for (size_t k = 1; k < N_SYSTEMS; ++k)
    if (n[k] > n[best]) best = k;
  return n[best] > 0 ? systems[best].trainer : NULL;
}

const trainer_info *trainer_of(const diagnosis *d) {
  if (d->request.trainer != NULL) return trainer_find(d->request.trainer);
  return trainer_find(trainer_of_series(d->gathered));
}
