/* The table of metrics of other programs. l stands for the logarithm of a token's ratio, learner's
 * probability over sampler's. */
#include "analysis/import/metric_names.h"

#include "core/base/staleness_counters.h"

#include <stdbool.h>
#include <string.h>

#define VERL "verl 0.10.0.dev, 1dda039"
#define TRL "TRL 1.16.0"
#define ASYNC "TRL 1.16.0, AsyncGRPO"
#define PRIME "prime-rl 0.8.0, 559b447"
#define SKYRL "SkyRL 0.3.0, a956457"
#define MILES "miles 0.1.0, 31f1ca9"
#define MEGATRON "Megatron-LM, d98e8a6"
#define PIPELINE "PipelineRL, 58d3934"
#define ROLL "ROLL, 8eb27cc"
#define MIMO "MiMo-V2.6 dashboard, 2026-09"

#define MEAN(name_, system_, source_, unit_, formula_)                                             \
  .system = system_, .source = source_, .definition = "in " unit_ ": " formula_
#define LARGEST(name_, system_, source_, unit_, formula_)                                          \
  .system = system_, .source = source_,                                                            \
  .definition = "in " unit_ ": " formula_ "; the largest of a step"

static const foreign_metric names[] = {
    /* --- staleness: core/base/staleness_counters.h --- */
    {.name = "training/off_policy/trajectory_staleness/mean",
     .known = METRIC_STALENESS,
     COUNTER_VERL_STALENESS(MEAN)},
    {.name = "training/off_policy/trajectory_staleness/max",
     .known = METRIC_COUNT,
     COUNTER_VERL_STALENESS(LARGEST)},
    {.name = "training/off_policy/trajectory_staleness_worst/mean",
     .known = METRIC_COUNT,
     COUNTER_VERL_WORST(MEAN)},
    {.name = "training/off_policy/trajectory_staleness_worst/max",
     .known = METRIC_STALENESS_MAX,
     COUNTER_VERL_WORST(LARGEST)},
    {.name = "training/off_policy/trajectory_spans/mean",
     .known = METRIC_COUNT,
     COUNTER_VERL_SPANS(MEAN)},
    {.name = "fully_async/count/stale_trajectory_processed",
     .known = METRIC_COUNT,
     COUNTER_VERL_LEGACY(MEAN)},
    {.name = "sample/staleness_mean", .known = METRIC_STALENESS, COUNTER_TRL(MEAN)},
    {.name = "sample/staleness_max", .known = METRIC_STALENESS_MAX, COUNTER_TRL(LARGEST)},
    {.name = "off_policy/mean", .known = METRIC_STALENESS, COUNTER_PRIME_RL(MEAN)},
    {.name = "off_policy/max", .known = METRIC_STALENESS_MAX, COUNTER_PRIME_RL(LARGEST)},
    {.name = "off_policy/in_flight/mean", .known = METRIC_COUNT, COUNTER_PRIME_RL_FLIGHT(MEAN)},
    {.name = "off_policy/in_queue/mean", .known = METRIC_COUNT, COUNTER_PRIME_RL_QUEUE(MEAN)},
    {.name = "async/staleness_mean", .known = METRIC_STALENESS, COUNTER_SKYRL(MEAN)},
    {.name = "async/staleness_max", .known = METRIC_STALENESS_MAX, COUNTER_SKYRL(LARGEST)},
    {.name = "mean_policy_staleness", .known = METRIC_STALENESS, COUNTER_MEGATRON(MEAN)},
    {.name = "max_policy_staleness", .known = METRIC_STALENESS_MAX, COUNTER_MEGATRON(LARGEST)},
    {.name = "mean_kv_cache_staleness", .known = METRIC_COUNT, COUNTER_MEGATRON_CACHE(MEAN)},
    {.name = "mean_completion_gap", .known = METRIC_COUNT, COUNTER_MEGATRON_GAP(MEAN)},
    {.name = "stats/lag", .known = METRIC_COUNT, COUNTER_PIPELINERL(MEAN)},
    {.name = "partial/avg_staleness", .known = METRIC_STALENESS, COUNTER_MIMO(MEAN)},
    /* --- beside it --- */
    {"training/off_policy/evicted_samples", VERL, METRIC_COUNT,
     "prompts dropped as too stale in the step", "verl/trainer/ppo/v1/replay_buffer.py:350"},
    {"fully_async/count/dropped_stale_samples", VERL, METRIC_COUNT,
     "samples dropped so far as too stale",
     "verl/experimental/fully_async_policy/fully_async_rollouter.py:1177"},
    {"sample/dropped_stale_total", ASYNC, METRIC_COUNT, "samples dropped as too stale",
     "trl/experimental/async_grpo/async_grpo_trainer.py:371"},
    {"off_policy/dropped", PRIME, METRIC_COUNT,
     "traces dropped from the queue as too stale since the last batch",
     "src/prime_rl/orchestrator/orchestrator.py:742"},
    {"async/staleness_ratio", SKYRL, METRIC_COUNT, "fraction of groups with a staleness above 0",
     "skyrl/train/fully_async_trainer.py:1120"},
    {"async/num_groups_dropped", SKYRL, METRIC_COUNT,
     "groups dropped while a minibatch was collected", "skyrl/train/fully_async_trainer.py:573"},
    {"async/keep_rate", SKYRL, METRIC_COUNT,
     "fraction of the groups drained for a minibatch that are trained",
     "skyrl/train/fully_async_trainer.py:574"},
    {"mean_policy_last_token_staleness", MEGATRON, METRIC_COUNT,
     "iteration less that of the parameters of a rollout's last token, mean: by the newest version",
     "megatron/rl/rl_utils.py:1595"},
    {"scheduler/off_policy_ratio", ROLL, METRIC_STALENESS,
     "current step less the step at which sampling began, mean over responses (no ratio)",
     "roll/distributed/scheduler/generate_scheduler.py:726"},
    {"partial/<k>/frac", MIMO, METRIC_COUNT,
     "fraction of the step's tokens that k versions before the learner's generated",
     "huanghw1989/mimo-rl-telemetry, notes 02"},
    {"train/verdicts/rejected", MIMO, METRIC_COUNT, "sequences of the step that are not trained",
     "huanghw1989/mimo-rl-telemetry, notes 02"},
    {"train/verdicts/carried", MIMO, METRIC_COUNT,
     "sequences of the step that go on in the next one", "huanghw1989/mimo-rl-telemetry, notes 02"},
    /* --- divergence of learner and sampler --- */
    {"partial/<k>/train_infer_diff/new_infer/kl", MIMO, METRIC_COUNT,
     "divergence of learner and sampler on tokens of lag k alone; lags hold different tasks",
     "huanghw1989/mimo-rl-telemetry, notes 02"},
    {"rollout_corr/k3_kl", VERL, METRIC_KL_K3,
     "exp(l) - l - 1, token mean, with the learner of the step's start and the rollout engine",
     "verl/trainer/ppo/rollout_corr_helper.py:964"},
    {"rollout_corr/kl", VERL, METRIC_COUNT,
     "-l, token mean: the estimator k1 of KL(q||p), of either sign",
     "verl/trainer/ppo/rollout_corr_helper.py:959"},
    {"rollout_corr/chi2_token", VERL, METRIC_COUNT, "exp(2 l), token mean, less 1",
     "verl/trainer/ppo/rollout_corr_helper.py:1000"},
    {"rollout_corr/chi2_seq", VERL, METRIC_COUNT,
     "exp(2 sum of l) over responses, mean, less 1; sums of l are limited to 20",
     "verl/trainer/ppo/rollout_corr_helper.py:1007"},
    {"rollout_corr/ppl_ratio", VERL, METRIC_COUNT,
     "exp of a response's mean -l, mean over responses",
     "verl/trainer/ppo/rollout_corr_helper.py:990"},
    {"rollout_corr/rollout_is_mean", VERL, METRIC_IW_MEAN,
     "mean over the batch's tokens of the applied weights, after truncation (gepolab: within "
     "groups, before it)",
     "verl/trainer/ppo/rollout_corr_helper.py:712"},
    {"rollout_corr/rollout_is_max", VERL, METRIC_IW_MAX,
     "largest weight of the batch: of sequences before truncation, of tokens after it",
     "verl/trainer/ppo/rollout_corr_helper.py:708"},
    {"rollout_corr/rollout_is_std", VERL, METRIC_COUNT,
     "standard deviation of the truncated weights over tokens",
     "verl/trainer/ppo/rollout_corr_helper.py:749"},
    {"rollout_corr/rollout_is_eff_sample_size", VERL, METRIC_ESS,
     "1 / mean of (w / mean w)^2 of the truncated weights over the batch's tokens (gepolab: within "
     "groups)",
     "verl/trainer/ppo/rollout_corr_helper.py:757"},
    {"training/rollout_probs_diff_mean", VERL, METRIC_COUNT,
     "|p - q| of the drawn tokens, token mean, with the learner of the step's start",
     "verl/utils/debug/metrics.py:118"},
    {"training/rollout_probs_diff_max", VERL, METRIC_COUNT, "the same, largest of the batch",
     "verl/utils/debug/metrics.py:117"},
    {"actor/ppo_kl", VERL, METRIC_COUNT,
     "mean of log p(step's start) - log p(now), token mean: k1 of the updates within a step, not "
     "of the sampler; 0 with one update a step",
     "verl/trainer/ppo/core_algos.py:1258"},
    {"actor/kl_loss", VERL, METRIC_KL_REF, "KL to the reference by the estimator of kl_loss_type",
     "verl/workers/utils/losses.py"},
    {"kl_k3", ASYNC, METRIC_KL_K3,
     "the log's kl: exp(l) - l - 1, token mean (GRPOTrainer's kl is the KL to the reference)",
     "trl/experimental/async_grpo/async_grpo_trainer.py:1555"},
    {"kl", TRL, METRIC_KL_REF,
     "exp(-d) + d - 1 of d = log p - log p(reference), token mean (AsyncGRPO: see kl_k3)",
     "trl/trainer/grpo_trainer.py:3268"},
    {"ratio", ASYNC, METRIC_COUNT, "exp(l), token mean",
     "trl/experimental/async_grpo/async_grpo_trainer.py:1588"},
    {"sampling/sampling_logp_difference/mean", TRL, METRIC_COUNT,
     "|l|, token mean, with the learner before the step's updates",
     "trl/trainer/grpo_trainer.py:2868"},
    {"sampling/sampling_logp_difference/max", TRL, METRIC_COUNT, "the same, largest of the batch",
     "trl/trainer/grpo_trainer.py:2871"},
    {"sampling/importance_sampling_ratio/mean", TRL, METRIC_COUNT,
     "mean of the correction weights (of tokens, or of sequences), after their cap",
     "trl/trainer/grpo_trainer.py:2891"},
    {"mismatch_kl/all/mean", PRIME, METRIC_KL_K3,
     "exp(l) - l - 1, mean over the trained tokens of all environments",
     "src/prime_rl/trainer/rl/loss.py:105"},
    {"mismatch_kl/all/max", PRIME, METRIC_COUNT, "the same, largest of a token",
     "src/prime_rl/trainer/utils.py:276"},
    {"is_masked/mean", PRIME, METRIC_CLIP_FRACTION,
     "fraction of trained tokens that the trust region masks",
     "src/prime_rl/trainer/rl/loss.py:154"},
    {"train/train_rollout_kl", MILES, METRIC_KL_K3,
     "exp(l) - l - 1 with |l| limited to 10, mean over responses of their token means",
     "miles/backends/training_utils/loss_hub/losses.py:354"},
    {"train/train_rollout_logprob_abs_diff", MILES, METRIC_COUNT,
     "|l|, mean over responses of their token means",
     "miles/backends/training_utils/loss_hub/losses.py:351"},
    {"train/ppo_kl", MILES, METRIC_COUNT,
     "mean of log p(old) - log p(now): k1 of the updates within a step",
     "miles/backends/training_utils/loss_hub/losses.py:185"},
    {"train/ess_ratio", MILES, METRIC_COUNT,
     "effective sample size of p(now) / p(old), over its number of tokens",
     "miles/backends/training_utils/loss_hub/losses.py:287"},
    {"rl/ess", PIPELINE, METRIC_COUNT,
     "(sum w)^2 / (n sum w^2) of p(now) / p(old) over the step's tokens",
     "pipelinerl/finetune_loop.py:909"},
    /* --- the learner --- */
    {"actor/entropy", VERL, METRIC_ENTROPY,
     "entropy of a token's distribution at the step's start, aggregated as the loss is",
     "verl/trainer/ppo/v1/trainer_base.py:1579"},
    {"actor/entropy_loss", VERL, METRIC_COUNT, "the entropy term of the loss",
     "verl/workers/utils/losses.py:129"},
    {"actor/pg_loss", VERL, METRIC_LOSS, "the policy term of the loss",
     "verl/workers/utils/losses.py:119"},
    {"actor/pg_clipfrac", VERL, METRIC_CLIP_FRACTION,
     "fraction of tokens whose upper or lower clip acts (the dual clip is counted apart)",
     "verl/trainer/ppo/core_algos.py:1273"},
    {"actor/grad_norm", VERL, METRIC_GRAD_NORM, "before clipping, mean over the step's updates",
     "verl/trainer/ppo/ray_trainer.py:1788"},
    {"critic/score/mean", VERL, METRIC_REWARD_MEAN,
     "sum of a response's token scores, mean over responses that were not aborted",
     "verl/trainer/ppo/metric_utils.py:556"},
    {"critic/rewards/mean", VERL, METRIC_COUNT,
     "the same, less the KL penalty if it is in the reward (algorithm.use_kl_in_reward)",
     "verl/trainer/ppo/metric_utils.py:560"},
    {"response_length/mean", VERL, METRIC_RESPONSE_LENGTH, "tokens of a response, mean",
     "verl/trainer/ppo/metric_utils.py:573"},
    {"response_length/clip_ratio", VERL, METRIC_COUNT,
     "fraction of responses that are as long as the limit", "verl/trainer/ppo/metric_utils.py:576"},
    {"timing_s/step", VERL, METRIC_COUNT, "seconds of the step",
     "verl/trainer/ppo/metric_utils.py:645"},
    {"reward", TRL, METRIC_REWARD_MEAN, "weighted sum of the rewards, mean over completions",
     "trl/trainer/grpo_trainer.py:2828"},
    {"completions/mean_length", TRL, METRIC_RESPONSE_LENGTH, "tokens of a completion, mean",
     "trl/trainer/grpo_trainer.py:2232"},
    {"clip_ratio/region_mean", TRL, METRIC_CLIP_FRACTION,
     "fraction of tokens (sequences for sequence ratios) whose lower or upper clip acts",
     "trl/trainer/grpo_trainer.py:3279"},
    {"clip_ratio/low_mean", TRL, METRIC_COUNT,
     "fraction of all tokens with A < 0 and a ratio below the interval (clipped_negative: of the "
     "tokens with A < 0)",
     "trl/trainer/grpo_trainer.py:3277"},
    {"clip_ratio/high_mean", TRL, METRIC_COUNT,
     "fraction of all tokens with A > 0 and a ratio above the interval (clipped_positive: of the "
     "tokens with A > 0)",
     "trl/trainer/grpo_trainer.py:3278"},
    {"train/agg/effective/<name>/reward/mean", PRIME, METRIC_REWARD_MEAN,
     "reward of an agent, mean over the traces of the step's batch, all environments",
     "src/prime_rl/orchestrator/orchestrator.py:699"},
    {"train/agg/effective/<name>/num_output_tokens/mean", PRIME, METRIC_RESPONSE_LENGTH,
     "generated tokens of a trace, mean over the traces of the step's batch",
     "src/prime_rl/orchestrator/orchestrator.py:699"},
    {"train/<name>/<name>/<name>/reward/mean", PRIME, METRIC_COUNT,
     "the same, of one environment, or (all) of every episode that arrived",
     "src/prime_rl/orchestrator/orchestrator.py:699"},
    {"entropy/all/mean", PRIME, METRIC_ENTROPY,
     "entropy of a token's distribution, mean over the trained tokens",
     "src/prime_rl/trainer/rl/train.py:484"},
    {"optim/lr", PRIME, METRIC_LR, "learning rate of the step",
     "src/prime_rl/trainer/rl/train.py:662"},
    {"optim/grad_norm", PRIME, METRIC_GRAD_NORM, "before clipping",
     "src/prime_rl/trainer/rl/train.py:666"},
    {"loss/mean", PRIME, METRIC_LOSS, "loss of a microbatch, mean",
     "src/prime_rl/trainer/rl/train.py:638"},
    {"stats/grad_norm", PIPELINE, METRIC_GRAD_NORM, "before clipping",
     "pipelinerl/finetune_loop.py:872"},
    {"stats/lr", PIPELINE, METRIC_LR, "learning rate of the step",
     "pipelinerl/finetune_loop.py:871"},
};
enum { N_NAMES = sizeof names / sizeof *names };

const foreign_metric *foreign_at(size_t i) {
  return i < N_NAMES ? &names[i] : NULL;
}

/* Whether the name matches the entry, in which <k> stands for a number and <name> for any word
 * between slashes. */
static bool is_entry(const char *entry, const char *name) {
  if (strcmp(entry, name) == 0) return true;
  for (;; entry++, name++) {
    if (*entry == '<') {
      const size_t n = entry[1] == 'k' ? strspn(name, "0123456789") : strcspn(name, "/");
      if (n == 0) return false;
      entry = strchr(entry, '>') + 1, name += n;
    }
    if (*entry != *name) return false;
    if (*entry == '\0') return true;
  }
}

static const foreign_metric *find_exact(const char *name) {
  for (size_t i = 0; i < N_NAMES; i++)
    if (is_entry(names[i].name, name)) return &names[i];
  return NULL;
}

const foreign_metric *foreign_find(const char *name) {
  static const char prefix[] = "train/";
  const foreign_metric *f = find_exact(name);
  if (!f && strncmp(name, prefix, sizeof prefix - 1) == 0) f = find_exact(name + sizeof prefix - 1);
  return f;
}
