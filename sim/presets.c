/* Presets of the simulated cluster, after systems; `mapping` is from `source` unless marked as
 * assumed. */
#include "sim/cluster.h"

#define UNLIMITED INT64_MAX

const char preset_lengths[] = "{lengths: " PRESET_LENGTHS "}";

/* Number of samplers, who starts a transfer of weights, queue order, `ahead`, `window` and
 * `publish_every`. */
#define RULES(n, transfer, order, gate, limit, updates)                                            \
  .samplers = (n), .sync = SYNC_##transfer, .queue = QUEUE_##order, .ahead = (gate),               \
  .window = (limit), .publish_every = (updates)

static const cluster_preset preset_table[] = {
    {.name = "sync",
     .about = "generation and training take turns",
     .source = "what the systems below compare themselves with",
     .mapping = "no update overlaps with generation: ahead 0",
     .not_modelled = "that both share the same GPUs, and what it takes to change between them (put "
                     "it into learner.step)",
     RULES(1, PUSH, FIFO, 0, UNLIMITED, 1)},
    {.name = "one_step_off",
     .about = "trains batches of the version before",
     .source = "2410.18252; verl, docs/advance/one_step_off.md at e55d143",
     .mapping = "the next batch is generated while one is trained: ahead 1",
     .not_modelled = "how GPUs are divided (say it with samplers, concurrency and learner.step)",
     RULES(1, PUSH, FIFO, 1, UNLIMITED, 1)},
    {.name = "areal",
     .about = "bounded staleness, new weights in the middle of a batch (AReaL)",
     .source = "2505.24298; AReaL, blog/AReaL_v0_3.md at 177dce5",
     .mapping = "max_head_offpolicyness: ahead (4); interruptible generation: in_flight, or with "
                "unit: group partial: continue; the oldest data first: learner.queue (assumed)",
     .not_modelled = "that groups stream, unless unit: group and lengths are given; what an "
                     "interruption takes, unless interrupt and prefill_tokens_per_s are given",
     RULES(4, PUSH, OLDEST_VERSION, 4, UNLIMITED, 1),
     .in_flight = true},
    {.name = "verl_async",
     .about = "groups stream to a learner that shares its weights every few updates (verl)",
     .source = "verl, docs/advance/fully_async.md at 2147009",
     .mapping = "staleness_threshold s (0.5) and trigger_parameter_sync_step n (4): ahead is "
                "(1 + s) n - 1 and learner.publish_every n, so that s = 0 with n = 1 is sync; "
                "require_batches x ppo_mini_batch_size: train.groups x learner.batches; "
                "partial_rollout: partial: continue, else wait",
     .not_modelled = "an s for which (1 + s) n is no whole number; validation on the generating "
                     "GPUs; putting engines to sleep and waking them, unless interrupt is given",
     RULES(4, PUSH, FIFO, 5, UNLIMITED, 4),
     .trains_late = true,
     .in_flight = true,
     .unit = UNIT_GROUP},
    {.name = "prime_rl",
     .about =
         "groups stream, and are dropped when they have become too old (prime-rl before 0.8; from "
         "0.8 on: prime_rl_08)",
     .source = "prime-rl, docs/async.md at 19b7c55, and docs.primeintellect.ai/prime-rl/async",
     .mapping = "max_async_level: ahead (2); max_off_policy_steps: window (8, assumed), stale: "
                "discard; rollouts go on under new weights: partial: continue",
     .not_modelled = "the orchestrator's filters; the time of a broadcast of weights (give delay "
                     "or weights_bytes)",
     RULES(4, PUSH, FIFO, 2, 8, 1),
     .trains_late = true,
     .in_flight = true,
     .unit = UNIT_GROUP},
    {.name = "intellect2",
     .about = "workers anywhere fetch weights and send batches, two steps behind (INTELLECT-2)",
     .source = "2505.07291; prime-rl, docs.primeintellect.ai/prime-rl/async",
     .mapping = "two steps of asynchrony, which hide a broadcast over the internet: ahead 2 and "
                "window 2; workers fetch from relays: sync: pull; a file of rollouts: a batch "
                "(assumed)",
     .not_modelled = "SHARDCAST's tree of relays, unless sync: push, weights_bytes and network: "
                     "{relay: {kind: tree, fanout, shards}} are given (its inner nodes are "
                     "servers, here samplers); the checks of TOPLOC; workers that come and go, but "
                     "for mtbf and mttr",
     RULES(4, PULL, FIFO, 2, UNLIMITED, 1)},
    {.name = "pipelinerl",
     .about = "weights change in flight after every update, no limit of staleness (PipelineRL)",
     .source = "2509.19128; PipelineRL, conf/base.yaml at 0176c4f",
     .mapping = "in-flight weight updates: partial: continue, kv_cache: keep (assumed); max_lag "
                "null: no ahead and no "
                "window; llm_max_rollouts: concurrency; pop_old_data with ring_buffer_size: "
                "learner.capacity with evict: oldest",
     .not_modelled = "the ring buffer, unless learner.capacity is given; the stage that prepares "
                     "data",
     RULES(4, PUSH, FIFO, UNLIMITED, UNLIMITED, 1),
     .in_flight = true,
     .kv_cache = KV_CACHE_KEEP,
     .unit = UNIT_GROUP},
    {.name = "streamrl",
     .about = "groups stream to a learner one step ahead (StreamRL)",
     .source = "2504.15930, the abstract",
     .mapping = "stream generation: unit: group; asynchronous RL by one step: ahead 1 (assumed); "
                "responses end with the weights they began with: partial: wait (assumed)",
     .not_modelled = "the ranking of prompts by expected length and the dispatch that follows it; "
                     "training on parts of a batch before it is whole; sites of unlike GPUs",
     RULES(4, PUSH, FIFO, 1, UNLIMITED, 1),
     .trains_late = true,
     .unit = UNIT_GROUP},
    {.name = "asyncflow",
     .about = "groups stream through a queue, weights are taken a step late (AsyncFlow)",
     .source = "2507.01663, the abstract",
     .mapping = "streamed data: unit: group; weights deferred within a staleness threshold: ahead "
                "(1, assumed); partial: wait (assumed)",
     .not_modelled = "the time of TransferQueue; balancing of load between tasks other than "
                     "generation and update",
     RULES(4, PUSH, FIFO, 1, UNLIMITED, 1),
     .trains_late = true,
     .unit = UNIT_GROUP},
    {.name = "llamarl",
     .about = "generator and trainer side by side, a batch apart (LlamaRL)",
     .source = "2505.24034, the abstract",
     .mapping = "asynchronous off-policy training: ahead 1 (assumed); whole batches (assumed)",
     .not_modelled = "other sharding and precision of the generator, offloading, and direct memory "
                     "access for weights (put their times into generation, learner.step and delay)",
     RULES(4, PUSH, FIFO, 1, UNLIMITED, 1)},
    {.name = "magistral",
     .about = "generators never stop, and new weights reach them in flight (Magistral)",
     .source = "2506.10910, cited from its mention in verl, docs/advance/fully_async.md at 2147009",
     .mapping =
         "generators that do not wait: no ahead and no window; weights in flight: partial: "
         "continue, kv_cache: keep; first come, first trained: learner.queue fifo (all assumed)",
     .not_modelled = "verifiers' time",
     RULES(4, PUSH, FIFO, UNLIMITED, UNLIMITED, 1),
     .in_flight = true,
     .kv_cache = KV_CACHE_KEEP,
     .unit = UNIT_GROUP},
    {.name = "laminar",
     .about = "every generator takes the newest weights when it is free (Laminar)",
     .source = "2510.12633, the abstract",
     .mapping = "relay workers from which a rollout pulls the latest weights at any time: sync: "
                "pull without delay; each trajectory by itself: unit: group, for advantages need "
                "one; no limit of staleness (assumed)",
     .not_modelled = "repacking of long responses onto few generators; what it takes the relays to "
                     "get new weights, unless sync: push, weights_bytes and network: {relay: "
                     "{kind: tree, fanout: 1, shards}} are given (a chain, assumed); failures, but "
                     "for mtbf and mttr",
     RULES(4, PULL, FIFO, UNLIMITED, UNLIMITED, 1),
     .unit = UNIT_GROUP},
    {.name = "roll_flash",
     .about = "groups stream, a whole number of batches ahead (ROLL Flash)",
     .source = "2510.11345, the abstract and section 1; alibaba.github.io/ROLL, async_training",
     .mapping = "async_generation_ratio: ahead (1; 0 is synchronous); queue scheduling: unit: "
                "group; responses under way: partial: wait (assumed)",
     .not_modelled =
         "prompt replication and redundant rollouts; environments of agents; the quotas "
         "of domains, unless sources and learner.quotas are given",
     RULES(4, PUSH, FIFO, 1, UNLIMITED, 1),
     .trains_late = true,
     .unit = UNIT_GROUP},
    {.name = "slime",
     .about = "the next batch is generated while one is trained (slime's train_async)",
     .source = "slime, train_async.py at 03f3392",
     .mapping = "one rollout begun beforehand: ahead 1; update_weights_interval: "
                "learner.publish_every; generation ends before weights change: in_flight false",
     .not_modelled = "the fully asynchronous rollout, in which groups stream (preset slime_03); an "
                     "interval above 1, unless ahead is as large",
     RULES(4, PUSH, FIFO, 1, UNLIMITED, 1)},
    {.name = "skyrl",
     .about = "groups stream within a bound of staleness, weights change in flight (SkyRL)",
     .source = "SkyRL, skyrl-train/docs/tutorials/fully_async.rst at 53c8c47",
     .mapping = "max_staleness_steps S with the capacity (S + step) x mini batch: ahead (4); no "
                "trajectory is dropped: no window; pause, update and resume: partial: continue; "
                "num_parallel_generation_workers: samplers x concurrency",
     .not_modelled = "the pause of an update of weights, unless interrupt is given; ends of "
                     "epochs, at which it waits; environments of agents",
     RULES(4, PUSH, FIFO, 4, UNLIMITED, 1),
     .trains_late = true,
     .in_flight = true,
     .unit = UNIT_GROUP},
    {.name = "verl_v1",
     .about = "verl's trainer of 2026 with separate GPUs: weights every four updates, stale groups "
              "dropped (separate_async)",
     .source = "verl 0.9.1, verl/trainer/ppo/v1/trainer_separate_async.py and "
               "trainer/config/ppo_trainer.yaml",
     .read = "2026-08",
     .mapping = "parameter_sync_step n (4): learner.publish_every; num_warmup_batches b (1): ahead "
                "(1 + b) n - 1; max_off_policy_threshold t (8), strategy drop: window t n - 1; "
                "requests are aborted and continue: partial: continue",
     .not_modelled =
         "the strategy wait (stale: wait with learner.queue oldest_version comes near); "
         "that groups of equal rewards are replaced. hybrid_rollout.enable_switch: a group of "
         "samplers with colocated: true, and colocated: {to_training, to_generation, switch: "
         "idle}; its threshold above one update, which adapts, and the comparison of a switch's "
         "cost with its benefit are not modelled. trainer_mode sync is preset sync, colocate_async "
         "verl_v1_colocate",
     RULES(4, PUSH, FIFO, 7, 31, 4),
     .trains_late = true,
     .in_flight = true,
     .unit = UNIT_GROUP},
    {.name = "verl_v1_colocate",
     .about =
         "generation and training take turns on the same GPUs, unfinished groups continue after "
         "an update (verl's colocate_async)",
     .source = "verl 0.9.1, verl/trainer/ppo/v1/trainer_colocate_async.py at 1dda039b9",
     .read = "2026-08",
     .mapping = "num_warmup_batches b (1): ahead b; requests are aborted, engines sleep, and both "
                "continue after the update: colocated with switch: always, partial: continue; "
                "max_off_policy_threshold t (8): window t - 1, stale: discard",
     .not_modelled = "what sleeping, waking and loading weights take, unless "
                     "colocated.to_training and colocated.to_generation are given; that groups "
                     "of equal rewards are replaced; that a response continues at another engine",
     RULES(4, PUSH, FIFO, 1, 7, 1),
     .trains_late = true,
     .in_flight = true,
     .colocated = true,
     .unit = UNIT_GROUP},
    {.name = "prime_rl_08",
     .about = "groups stream without a gate, and are cancelled in flight when they are too old "
              "(prime-rl from 0.8 on)",
     .source =
         "prime-rl 0.8.0, src/prime_rl/orchestrator: orchestrator.py, dispatcher.py, train_sink.py "
         "at 559b447",
     .read = "2026-08",
     .mapping =
         "max_off_policy_steps: window (8), stale: discard, cancel_stale: true; no "
         "max_async_level: no ahead; concurrency.max_inflight (1024): samplers x concurrency; "
         "weights in flight: partial: continue",
     .not_modelled = "TARGET_LAG 1, by which a batch is put together up to one update before it is "
                     "trained; the adaptation of max_inflight; batches counted in tokens, unless "
                     "learner.tokens is given; the orchestrator's filters; several environments, "
                     "unless sources are given",
     RULES(4, PUSH, FIFO, UNLIMITED, 8, 1),
     .trains_late = true,
     .in_flight = true,
     .cancels_stale = true,
     .unit = UNIT_GROUP},
    {.name = "areal_2",
     .about = "groups stream within a bound, and continue under new weights (AReaL 2.0)",
     .source = "AReaL 2.0.0, areal/infra/staleness_manager.py and the examples' yaml at cbff54d",
     .read = "2026-08",
     .mapping = "max_head_offpolicyness s: ahead (2, as most examples have it; the default is 0); "
                "capacity (s + version + 1) x batch less accepted and running; interruptible "
                "generation: partial: continue",
     .not_modelled = "max_concurrent_rollouts, unless concurrency is given; rejected trajectories, "
                     "whose places are given back; the pause of an update of weights, unless "
                     "interrupt is given",
     RULES(4, PUSH, FIFO, 2, UNLIMITED, 1),
     .trains_late = true,
     .in_flight = true,
     .unit = UNIT_GROUP},
    {.name = "nemo_rl",
     .about = "groups stream a batch ahead, none is discarded (NeMo-RL's sampler ready_first)",
     .source = "NeMo-RL, nemo_rl/algorithms/async_utils/staleness_sampler.py at 7ea279abf",
     .read = "2026-08",
     .mapping =
         "max_staleness_versions s: ahead (1); first ready in the order of dispatch: "
         "learner.queue oldest_version (assumed); in_flight_weight_updates false: partial: "
         "wait. Sampler windowed: no ahead, window 1, stale: discard, learner.queue fifo, or "
         "lifo for sample_freshest_first",
     .not_modelled = "updates of fewer groups than a batch (min_prompt_groups); the samplers "
                     "weight_fifo and in_order are nemo_rl_weight_fifo and nemo_rl_in_order",
     RULES(4, PUSH, OLDEST_VERSION, 1, UNLIMITED, 1),
     .trains_late = true,
     .unit = UNIT_GROUP},
    {.name = "nemo_rl_weight_fifo",
     .about = "groups stream a batch ahead, versions are trained one after the other (NeMo-RL's "
              "sampler weight_fifo)",
     .source = "NeMo-RL, nemo_rl/algorithms/async_utils/staleness_sampler.py at 7ea279abf",
     .read = "2026-08",
     .mapping =
         "max_staleness_versions s: ahead and window (1), stale: discard; the oldest version "
         "in the window, for which others wait: learner.queue version_order; "
         "in_flight_weight_updates false: partial: wait",
     .not_modelled =
         "updates of fewer groups than a batch (min_prompt_groups): here what a version "
         "lacks comes from the next, once nothing of it is in work",
     RULES(4, PUSH, VERSION_ORDER, 1, UNLIMITED, 1),
     .unit = UNIT_GROUP},
    {.name = "nemo_rl_in_order",
     .about = "groups stream a batch ahead, each update trains the batch dispatched for it "
              "(NeMo-RL's sampler in_order)",
     .source = "NeMo-RL, nemo_rl/algorithms/async_utils/staleness_sampler.py at 7ea279abf",
     .read = "2026-08",
     .mapping = "max_lookahead_versions s: ahead (1); target_step, the index of dispatch: "
                "learner.queue in_order; in_flight_weight_updates false: partial: wait",
     .not_modelled = "groups that are lost: here those of the next batch take their place",
     RULES(4, PUSH, IN_ORDER, 1, UNLIMITED, 1),
     .trains_late = true,
     .unit = UNIT_GROUP},
    {.name = "trl_async",
     .about = "samples stream, and are dropped when they are more than four syncs old (TRL's "
              "async_grpo)",
     .source = "TRL 1.16.0, trl/experimental/async_grpo/async_grpo_{config,trainer}.py",
     .read = "2026-10",
     .mapping =
         "max_staleness: window (4), stale: discard; weight_sync_steps: learner.publish_every "
         "(1); max_inflight_tasks (max_staleness x batch): samplers x concurrency, no ahead; "
         "vLLM's pause in mode keep with cleared caches: partial: continue, kv_cache: "
         "recompute; a sample has the version of its group",
     .not_modelled = "queue_maxsize (1024), at which generation stands still; the pause of a sync, "
                     "unless interrupt is given; rows packed by tokens",
     RULES(4, PUSH, FIFO, UNLIMITED, 4, 1),
     .trains_late = true,
     .in_flight = true,
     .unit = UNIT_GROUP},
    {.name = "skyrl_03",
     .about = "groups stream within a bound of staleness, keys and values are kept (SkyRL 0.3)",
     .source = "SkyRL 0.3.0, skyrl/train/fully_async_trainer.py and train/config/config.py at "
               "a956457",
     .read = "2026-08",
     .mapping = "max_staleness_steps S with the capacity (S + step) x mini batch: ahead (4); "
                "clear_kv_cache_on_weight_sync false: kv_cache: keep; no trajectory is dropped: no "
                "window; num_parallel_generation_workers (768): samplers x concurrency",
     .not_modelled =
         "sample_full_batch, which replaces groups of equal rewards; ends of epochs, at "
         "which it waits; the pause of an update of weights, unless interrupt is given",
     RULES(4, PUSH, FIFO, 4, UNLIMITED, 1),
     .trains_late = true,
     .in_flight = true,
     .kv_cache = KV_CACHE_KEEP,
     .unit = UNIT_GROUP},
    {.name = "tinker",
     .about =
         "groups stream, stale ones are dropped and their prompts asked again (tinker-cookbook)",
     .source = "tinker-cookbook, tinker_cookbook/rl/train.py at 9dfcc3a2",
     .read = "2026-08",
     .mapping =
         "AsyncConfig.max_steps_off_policy: window (2, as in its test), stale: discard; "
         "groups_per_batch: train.groups x learner.batches; a group ends with the weights it "
         "began with: partial: wait (assumed)",
     .not_modelled =
         "that a dropped group's prompt is asked again; the limit of groups under way "
         "by workers (give concurrency); stream_minibatch, which trains parts of a batch",
     RULES(4, PUSH, FIFO, UNLIMITED, 2, 1),
     .trains_late = true,
     .unit = UNIT_GROUP},
    {.name = "mimo",
     .about = "partial rollouts: unfinished responses continue under the next weights (MiMo-V2.6)",
     .source = "none public; the run's dashboard, archived in huanghw1989/mimo-rl-telemetry",
     .read = "2026-09",
     .mapping = "partial rollouts: unit: group, partial: continue; an optimiser step an update; "
                "environments in flight: samplers x concurrency; no ahead and no window (assumed); "
                "restarts of the job: restarts",
     .not_modelled = "expired sequences; rejected ones, quotas by task, environments and graders, "
                     "unless learner.reject, sources with learner.quotas, environment and grader "
                     "are given",
     RULES(4, PUSH, FIFO, UNLIMITED, UNLIMITED, 1),
     .in_flight = true,
     .unit = UNIT_GROUP},
    {.name = "slime_03",
     .about = "groups stream without a gate, responses under way continue under new weights (slime "
              "0.3.1, fully asynchronous)",
     .source = "slime v0.3.1 (a6272da0d), slime/rollout/fully_async_rollout.py lines 59, 118-131 "
               "and 165-175, update_weight_from_distributed.py lines 110-133, train_async.py",
     .read = "2026-08",
     .mapping = "sglang_server_concurrency (512 an engine): samplers x concurrency, no ahead; "
                "requests are "
                "aborted at a sync (SGLang's default mode) and their groups taken up again with "
                "their tokens: partial: "
                "continue; no bound of staleness: no window; update_weights_interval (1): "
                "learner.publish_every. Without "
                "fully_async_rollout: preset slime",
     .not_modelled =
         "that as many groups as places for responses are under way; the queue of 1000 groups, at "
         "which generation stands still; that weights are handed over only when the next batch is "
         "complete",
     RULES(4, PUSH, FIFO, UNLIMITED, UNLIMITED, 1),
     .in_flight = true,
     .unit = UNIT_GROUP},
    {.name = "miles",
     .about = "groups stream until a buffer of two batches is full (miles, --fully-async)",
     .source = "miles 0.1.0 at 31f1ca961, miles/rollout/fully_async_rollout.py lines 106-136, "
               "fully_async_data_buffer.py lines 112-164, utils/arguments.py lines 672-789, "
               "train_async.py lines 72-110",
     .read = "2026-08",
     .mapping =
         "async_data_buffer_capacity_factor c (2), one batch in flight, one complete, one in "
         "training: ahead c + 2; max_weight_staleness (none): no window, else window with "
         "stale: discard; pause_generation_mode retract: partial: continue (in_place: "
         "kv_cache: keep); update_weights_interval (1): learner.publish_every",
     .not_modelled =
         "async_max_concurrent_samples (one batch), unless concurrency is given; that weights are "
         "handed over only when the next batch is complete; async_unused_samples_handler retry; "
         "dynamic filters",
     RULES(4, PUSH, FIFO, 4, UNLIMITED, 1),
     .trains_late = true,
     .in_flight = true,
     .unit = UNIT_GROUP},
    {.name = "torchtitan_rl",
     .about = "a fixed number of groups is active, the oldest are trained first (torchtitan's RL)",
     .source = "torchtitan 0.2.2 at b5bcd76c6, torchtitan/experiments/rl/controller.py lines "
               "156-258, components/work_buffer.py lines 54-206, actors/generator.py lines 698, "
               "769-777 and 1307-1314",
     .read = "2026-08",
     .mapping = "target_offpolicy_steps S (3), of which (S + 1) batches are active: ahead S; "
                "window_fraction none: learner.queue in_order; weights change without a drain, and "
                "running requests compute their keys and values again: partial: continue",
     .not_modelled = "window_fraction (0.3), by which up to 0.3 (S + 1) batches of younger groups "
                     "pass an unfinished one (learner.queue fifo: any of them may); "
                     "that the transfer of weights overlaps with the next update's gradient",
     RULES(4, PUSH, IN_ORDER, 3, UNLIMITED, 1),
     .trains_late = true,
     .in_flight = true,
     .unit = UNIT_GROUP},
    {.name = "agent_lightning",
     .about = "generation and training take turns on the same GPUs, two batches are active (Agent "
              "Lightning 1.0)",
     .source = "Agent Lightning 1.0.0 at c632d8d, agentlightning/verl/trainer.py lines 167-189, "
               "265-273 and 361-440, agl_rollout_manager.py lines 447-533, "
               "docs/35-asynchronous-training.md",
     .read = "2026-08",
     .mapping = "async_train_batch_size A (advised: twice data.train_batch_size B; no default): "
                "ahead A / B - 1; unfinished groups carry over: colocated with switch: always, "
                "partial: continue; no bound of staleness: no window",
     .not_modelled =
         "that an update waits for requests in flight to end, so that weights change between turns "
         "of an agent, not within one (environment gives turns); that no group is begun within a "
         "step; rollouts that fail or time out (1800 s)",
     RULES(4, PUSH, FIFO, 1, UNLIMITED, 1),
     .trains_late = true,
     .in_flight = true,
     .colocated = true,
     .unit = UNIT_GROUP},
    {.name = "heterorl",
     .about = "the rule of HeteroRL as released with 2508.17850",
     .source = "2508.17850 and the code released with it, at ebda3d6",
     .mapping = "D: window (32); delays of 60 to 1800 s: delay, shared by all samplers; the rule "
                "of batches: learner.queue heterorl",
     .not_modelled = "the 400 s that the released configurations subtract from a delay (give it "
                     "offset: 400 and clamp: true)",
     RULES(4, PULL, HETERORL, UNLIMITED, 32, 1),
     .one_batch = true,
     .heterorl_delays = true,
     .eval_pause = 600},
    {.name = "fifo",
     .about = "no limit of staleness, the first batch that arrived is trained first",
     .source = "none: a plain queue",
     .mapping = "none",
     .not_modelled = "nothing: it stands for no system",
     RULES(4, PUSH, FIFO, UNLIMITED, UNLIMITED, 1),
     .one_batch = true},
    {.name = "lifo",
     .about = "no limit of staleness, the newest batch is trained first",
     .source = "none: a plain stack",
     .mapping = "none",
     .not_modelled = "nothing: it stands for no system",
     RULES(4, PUSH, LIFO, UNLIMITED, UNLIMITED, 1),
     .one_batch = true},
};

const cluster_preset *cluster_preset_at(size_t i) {
  return i < sizeof preset_table / sizeof *preset_table ? &preset_table[i] : NULL;
}
