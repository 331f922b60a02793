/* The staleness counters of trainers: name, system with version, place in its source, unit and what
 * it counts. One macro for each: COUNTER_X(F) is F(name, system, source, unit, formula), and F
 * takes the fields that it wants. Used where logs are read (analysis/import/trainer_metrics.c),
 * where runs are diagnosed, and where simulated runs are counted (sim/trainer_counters.c).
 *
 * A value is one of an update: a mean over its responses or tokens, unless the formula says
 * otherwise. */
#ifndef GEPOLAB_CORE_BASE_STALENESS_COUNTERS_H
#define GEPOLAB_CORE_BASE_STALENESS_COUNTERS_H

/* An F that expands to the counter's name. */
#define COUNTER_NAME(name, system, source, unit, formula) name

#define COUNTER_GEPOLAB(F)                                                                         \
  F("gepolab/staleness", "gepolab", "sim/staleness.c: schedule_staleness()", "updates",            \
    "learner's version less the unit's oldest version, mean over units")
#define COUNTER_GEPOLAB_UPDATES(F)                                                                 \
  F("gepolab/staleness_updates", "gepolab", "core/rl/learner.c: the metric staleness_updates",     \
    "optimiser updates",                                                                           \
    "optimiser updates between the parameters that generated a token and those it trains, with "   \
    "those made before it within the same update; mean over tokens")
#define COUNTER_TRL(F)                                                                             \
  F("trl/sample/staleness", "TRL 1.16.0, AsyncGRPO",                                               \
    "trl/experimental/async_grpo/async_grpo_trainer.py:368", "syncs",                              \
    "published version when a sample leaves the queue, less the version when its group was "       \
    "begun, "                                                                                      \
    "mean over samples; dropped samples are not counted")
#define COUNTER_VERL_STALENESS(F)                                                                  \
  F("verl_v1/trajectory_staleness", "verl 0.9.1", "verl/trainer/ppo/v1/trainer_base.py:1979",      \
    "syncs",                                                                                       \
    "published version less the newest version in the trajectory, mean over trajectories: a "      \
    "lower "                                                                                       \
    "bound where a trajectory has several")
#define COUNTER_VERL_WORST(F)                                                                      \
  F("verl_v1/trajectory_staleness_worst", "verl 0.9.1",                                            \
    "verl/trainer/ppo/v1/trainer_base.py:1980", "syncs",                                           \
    "published version less the oldest version in the trajectory, mean over trajectories")
#define COUNTER_VERL_SPANS(F)                                                                      \
  F("verl_v1/trajectory_spans", "verl 0.9.1", "verl/trainer/ppo/v1/trainer_base.py:1978", "syncs", \
    "newest less oldest version in the trajectory, plus 1, mean over trajectories")
#define COUNTER_VERL_LEGACY(F)                                                                     \
  F("verl_legacy/stale_trajectory_processed", "verl 0.9.1",                                        \
    "verl/experimental/fully_async_policy/fully_async_trainer.py:1039", "trajectories",            \
    "trajectories of the update whose newest version is older than the published one: a number, "  \
    "not an age (the log adds them up over updates)")
#define COUNTER_AREAL_THETA(F)                                                                     \
  F("areal/sample_staleness_theta", "AReaL 2.0.0", "areal/trainer/ppo/actor.py:1257 at cbff54d",   \
    "syncs", "published version less the token's version")
#define COUNTER_AREAL_PROXIMAL(F)                                                                  \
  F("areal/sample_staleness_proximal", "AReaL 2.0.0",                                              \
    "areal/trainer/ppo/actor.py:1256 at cbff54d", "syncs",                                         \
    "the version before the published one less the token's version; -1 if on-policy")
#define COUNTER_PRIME_RL(F)                                                                        \
  F("prime_rl/off_policy", "prime-rl 0.8.0", "src/prime_rl/orchestrator/utils.py:67 at 559b447",   \
    "updates",                                                                                     \
    "version that the batch trains on, less the version when the rollout's group was begun, its "  \
    "time in the queue included; mean over episodes")
#define COUNTER_PRIME_RL_FLIGHT(F)                                                                 \
  F("prime_rl/off_policy/in_flight", "prime-rl 0.8.0",                                             \
    "src/prime_rl/orchestrator/utils.py:68 at 559b447", "updates",                                 \
    "version when the rollout ended less the version when its group was begun, mean over "         \
    "episodes")
#define COUNTER_PRIME_RL_QUEUE(F)                                                                  \
  F("prime_rl/off_policy/in_queue", "prime-rl 0.8.0",                                              \
    "src/prime_rl/orchestrator/utils.py:69 at 559b447", "updates",                                 \
    "version that the batch trains on less the version when the rollout ended, mean over "         \
    "episodes")
#define COUNTER_SKYRL(F)                                                                           \
  F("skyrl/async/staleness", "SkyRL 0.3.0", "skyrl/train/fully_async_trainer.py:997 at a956457",   \
    "updates",                                                                                     \
    "updates since the group was begun, whatever weights it was begun with, mean over groups")
#define COUNTER_PIPELINERL(F)                                                                      \
  F("pipelinerl/stats/lag", "PipelineRL 0.1.0", "pipelinerl/finetune_loop.py:881 at 58d3934",      \
    "samples",                                                                                     \
    "samples trained between the oldest version of the whole update and the published version: "   \
    "in samples, not versions")
#define COUNTER_MILES(F)                                                                           \
  F("miles/rollout/fully_async/staleness", "miles 0.1.0",                                          \
    "miles/rollout/fully_async_data_buffer.py:192 at 31f1ca9", "syncs",                            \
    "published version less the oldest version at which a turn of the group ended (one turn a "    \
    "response here); the engine reports no earlier version")
#define COUNTER_MEGATRON(F)                                                                        \
  F("megatron/policy_staleness", "Megatron-LM 0.20.0", "megatron/rl/rl_utils.py:1592 at d98e8a6",  \
    "optimiser updates",                                                                           \
    "iteration in which it is collected less the iteration of its first token's weights, mean "    \
    "over rollouts")
#define COUNTER_MEGATRON_CACHE(F)                                                                  \
  F("megatron/kv_cache_staleness", "Megatron-LM 0.20.0",                                           \
    "megatron/rl/rl_utils.py:1593 at d98e8a6", "optimiser updates",                                \
    "iteration in which it is collected less that of its first token's keys and values, mean "     \
    "over "                                                                                        \
    "rollouts")
#define COUNTER_MEGATRON_GAP(F)                                                                    \
  F("megatron/completion_gap", "Megatron-LM 0.20.0", "megatron/rl/rl_utils.py:1729 at d98e8a6",    \
    "optimiser updates",                                                                           \
    "iteration in which it is collected less that of the weights it ended with, mean over "        \
    "rollouts: the wait alone")
#define COUNTER_MIMO(F)                                                                            \
  F("mimo/partial/avg_staleness", "MiMo dashboard", "no public source", "syncs",                   \
    "published version less the token's own version, mean over tokens (the first of two possible " \
    "readings)")
#define COUNTER_MIMO_START(F)                                                                      \
  F("mimo/partial/avg_staleness_from_start", "MiMo dashboard", "no public source", "syncs",        \
    "published version less the version its response was begun with, mean over tokens (the "       \
    "second of two possible readings)")

#endif
