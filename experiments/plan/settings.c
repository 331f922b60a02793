/* Prints the settings with which a trainer runs a plan. The table has one line for each trainer and
 * quantity of a plan, with the place in the trainer's source that defines the setting. */
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/plan/plan.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef enum trainer_kind { VERL, PRIME_RL, AREAL, NEMO_RL, TRL, SLIME, TRAINERS } trainer_kind;

static const plan_trainer trainers[TRAINERS] = {
    [VERL] = {"verl", "verl", "0.10.0.dev, 1dda039"},
    [PRIME_RL] = {"prime-rl", "prime-rl", "0.8.0, 559b447"},
    [AREAL] = {"areal", "AReaL", "2.0.0, cbff54d"},
    [NEMO_RL] = {"nemo-rl", "NeMo-RL", "0.6.0, 7ea279a"},
    [TRL] = {"trl", "TRL", "1.16.0"},
    [SLIME] = {"slime", "slime", "0.3.1, 624b824"},
};

/* The quantity of a plan that a setting contains. */
typedef enum quantity {
  ALWAYS, /* a constant: the switch to asynchronous training */
  LEARNER_GPUS,
  LEARNER_NODES, /* nodes with equally many GPUs, at most NODE_GPUS */
  LEARNER_NODE_GPUS,
  SAMPLER_GPUS,
  SAMPLER_NODES,
  SAMPLER_NODE_GPUS,
  SAMPLERS,
  ENGINE_GPUS, /* GPUs of one sampler */
  PROMPTS,     /* prompts per update */
  RESPONSES,
  GROUP_SIZE,
  ENGINE_CONCURRENCY, /* responses that a sampler decodes at once */
  IN_FLIGHT,          /* responses that all samplers together decode at once */
  GROUPS_IN_FLIGHT,
  WINDOW,       /* maximum staleness in updates */
  WINDOW_SPAN,  /* versions from the oldest one allowed to the learner's, both counted */
  WINDOW_SYNCS, /* the window in publications */
  PUBLISH,      /* updates between publications */
  STALE_RULE,
  STALE_CHOICE, /* drop or wait, where a trainer has the choice */
  STALE_WEIGHT, /* a smaller weight, where it has not */
  SITES         /* samplers at several sites */
} quantity;
enum { NODE_GPUS = 8 };

/* A trainer's setting for a quantity. `setting` has %s in the place of the value (a constant has
 * none); if it is NULL, the trainer has no such setting and `why` has the reason. */
typedef struct plan_setting {
  trainer_kind trainer;
  quantity what;
  const char *setting, *place, *why;
} plan_setting;

#define VERL_YAML "verl/trainer/config/ppo_trainer.yaml"
#define VERL_ROLLOUT "verl/trainer/config/rollout/rollout.yaml"
#define PRIME "packages/prime-rl-configs/src/prime_rl/configs/"
#define AREAL_ARGS "areal/api/cli_args.py"
#define NEMO_YAML "examples/configs/grpo_math_1B.yaml"
#define TRL_CONFIG "trl/experimental/async_grpo/async_grpo_config.py"
#define SLIME_ARGS "slime/utils/arguments.py"

static const plan_setting settings[] = {
    {VERL, ALWAYS, "trainer.v1.trainer_mode=separate_async", VERL_YAML ":228", NULL},
    {VERL, LEARNER_NODES, "trainer.nnodes=%s", VERL_YAML ":164", NULL},
    {VERL, LEARNER_NODE_GPUS, "trainer.n_gpus_per_node=%s", VERL_YAML ":167", NULL},
    {VERL, SAMPLER_NODES, "actor_rollout_ref.rollout.nnodes=%s", VERL_ROLLOUT ":11", NULL},
    {VERL, SAMPLER_NODE_GPUS, "actor_rollout_ref.rollout.n_gpus_per_node=%s", VERL_ROLLOUT ":14",
     NULL},
    {VERL, ENGINE_GPUS, "actor_rollout_ref.rollout.tensor_model_parallel_size=%s",
     VERL_ROLLOUT ":64", NULL},
    {VERL, ENGINE_CONCURRENCY, "actor_rollout_ref.rollout.max_num_seqs=%s", VERL_ROLLOUT ":84",
     NULL},
    {VERL, PROMPTS, "data.train_batch_size=%s", "verl/trainer/config/data/legacy_data.yaml:42",
     NULL},
    {VERL, GROUP_SIZE, "actor_rollout_ref.rollout.n=%s", VERL_ROLLOUT ":127", NULL},
    {VERL, WINDOW_SPAN, "trainer.v1.sampler.max_off_policy_threshold=%s", VERL_YAML ":279",
     "counts both ends: the window plus 1 (verl/trainer/ppo/v1/replay_buffer.py:511)"},
    {VERL, STALE_CHOICE, "trainer.v1.sampler.max_off_policy_strategy=%s", VERL_YAML ":284", NULL},
    {VERL, STALE_WEIGHT, NULL, VERL_YAML ":284", "it is dropped or waited for, not weighed less"},
    {VERL, PUBLISH, "trainer.v1.separate_async.parameter_sync_step=%s", VERL_YAML ":246", NULL},
    {VERL, SITES, NULL, "", "nodes are those of one Ray cluster; a place for each is not set"},

    {PRIME_RL, LEARNER_GPUS, "deployment.num_train_gpus=%s", PRIME "rl.py:180",
     "of one node; on several deployment.num_train_nodes (rl.py:200)"},
    {PRIME_RL, SAMPLER_GPUS, "deployment.num_infer_gpus=%s", PRIME "rl.py:183",
     "of one node; on several deployment.num_infer_nodes (rl.py:203)"},
    {PRIME_RL, ENGINE_GPUS, "inference.vllm.tensor_parallel_size=%s", PRIME "inference.py:84",
     NULL},
    {PRIME_RL, RESPONSES, "orchestrator.batch_size=%s", PRIME "orchestrator.py:508", NULL},
    {PRIME_RL, GROUP_SIZE, "orchestrator.group_size=%s", PRIME "orchestrator.py:517", NULL},
    {PRIME_RL, IN_FLIGHT, "orchestrator.concurrency.max_inflight=%s", PRIME "orchestrator.py:434",
     "an upper limit: the number itself adapts"},
    {PRIME_RL, WINDOW, "orchestrator.max_off_policy_steps=%s", PRIME "orchestrator.py:532",
     "older episodes are dropped, also in flight"},
    {PRIME_RL, PUBLISH, NULL, "src/prime_rl/orchestrator/orchestrator.py:104",
     "weights are published at every step, and a batch is shipped at most one version ahead "
     "(TARGET_LAG = 1)"},
    {PRIME_RL, STALE_RULE, NULL, PRIME "orchestrator.py:532", "old episodes are always dropped"},
    {PRIME_RL, SITES, NULL, "", "inference servers of other places are started there by hand"},

    {AREAL, LEARNER_GPUS, "actor.backend=fsdp:d%s", AREAL_ARGS ":1410",
     "data parallel; other splits of these GPUs are named there too"},
    {AREAL, SAMPLERS, "rollout.backend=sglang:d%s", AREAL_ARGS ":2585",
     "followed by tN for N GPUs of an engine, as in d4t2"},
    {AREAL, ENGINE_GPUS, "rollout.backend=…t%s", AREAL_ARGS ":2585", NULL},
    {AREAL, PROMPTS, "train_dataset.batch_size=%s", AREAL_ARGS ":3097", NULL},
    {AREAL, GROUP_SIZE, "gconfig.n_samples=%s", AREAL_ARGS ":167", NULL},
    {AREAL, GROUPS_IN_FLIGHT, "rollout.max_concurrent_rollouts=%s", AREAL_ARGS ":2487",
     "counts prompts"},
    {AREAL, WINDOW, "rollout.max_head_offpolicyness=%s", AREAL_ARGS ":2502", NULL},
    {AREAL, STALE_RULE, NULL, AREAL_ARGS ":2502",
     "no request is accepted that could become too old: nothing is dropped"},
    {AREAL, PUBLISH, NULL, "areal/trainer/rl_trainer.py:890",
     "weights are published at every step"},
    {AREAL, SITES, NULL, "", "a place for each engine is not set"},

    {NEMO_RL, ALWAYS, "grpo.async_grpo.enabled=true", NEMO_YAML ":57", NULL},
    {NEMO_RL, ALWAYS, "policy.generation.colocated.enabled=false", NEMO_YAML ":439", NULL},
    {NEMO_RL, LEARNER_GPUS, NULL, NEMO_YAML ":520",
     "the learner has those GPUs of cluster.gpus_per_node and cluster.num_nodes that generation "
     "has not"},
    {NEMO_RL, SAMPLER_NODES, "policy.generation.colocated.resources.num_nodes=%s", NEMO_YAML ":443",
     NULL},
    {NEMO_RL, SAMPLER_NODE_GPUS, "policy.generation.colocated.resources.gpus_per_node=%s",
     NEMO_YAML ":442", NULL},
    {NEMO_RL, ENGINE_GPUS, "policy.generation.vllm_cfg.tensor_parallel_size=%s", NEMO_YAML ":416",
     NULL},
    {NEMO_RL, PROMPTS, "grpo.num_prompts_per_step=%s", NEMO_YAML ":3", NULL},
    {NEMO_RL, GROUP_SIZE, "grpo.num_generations_per_prompt=%s", NEMO_YAML ":4", NULL},
    {NEMO_RL, RESPONSES, "policy.train_global_batch_size=%s", NEMO_YAML ":132", NULL},
    {NEMO_RL, WINDOW, "grpo.async_grpo.max_trajectory_age_steps=%s", NEMO_YAML ":59",
     "at least 1; for a window of 0 grpo.async_grpo.enabled=false"},
    {NEMO_RL, IN_FLIGHT, NULL, NEMO_YAML ":59", "follows from the age and the prompts of a step"},
    {NEMO_RL, PUBLISH, NULL, "", "weights are published at every step"},
    {NEMO_RL, STALE_RULE, NULL, "", "prompts are paced so that nothing becomes too old"},
    {NEMO_RL, SITES, NULL, "", "a place for each engine is not set"},

    {TRL, LEARNER_GPUS, "accelerate launch --num_processes %s", "accelerate", NULL},
    {TRL, SAMPLER_GPUS, NULL, TRL_CONFIG ":300",
     "the GPUs that the vLLM servers behind vllm_server_base_url were started on"},
    {TRL, ENGINE_GPUS, NULL, "vLLM", "vllm serve --tensor-parallel-size"},
    {TRL, RESPONSES, "per_device_train_batch_size x gradient_accumulation_steps x processes = %s",
     TRL_CONFIG ":123", NULL},
    {TRL, GROUP_SIZE, "num_generations=%s", TRL_CONFIG ":233", NULL},
    {TRL, IN_FLIGHT, "max_inflight_tasks=%s", TRL_CONFIG ":350", NULL},
    {TRL, WINDOW_SYNCS, "max_staleness=%s", TRL_CONFIG ":360",
     "counts publications; older samples are dropped"},
    {TRL, PUBLISH, "weight_sync_steps=%s", TRL_CONFIG ":371", NULL},
    {TRL, STALE_RULE, NULL, TRL_CONFIG ":360", "old samples are always dropped"},
    {TRL, SITES, NULL, "", "vLLM servers of other places are started there by hand"},

    {SLIME, ALWAYS, "python train_async.py", "train_async.py:40", NULL},
    {SLIME, LEARNER_NODES, "--actor-num-nodes %s", SLIME_ARGS ":39", NULL},
    {SLIME, LEARNER_NODE_GPUS, "--actor-num-gpus-per-node %s", SLIME_ARGS ":41", NULL},
    {SLIME, SAMPLER_GPUS, "--rollout-num-gpus %s", SLIME_ARGS ":45", NULL},
    {SLIME, ENGINE_GPUS, "--rollout-num-gpus-per-engine %s", SLIME_ARGS ":56", NULL},
    {SLIME, ENGINE_CONCURRENCY, "--sglang-server-concurrency %s",
     "slime/backends/sglang_utils/arguments.py:47", NULL},
    {SLIME, PROMPTS, "--rollout-batch-size %s", SLIME_ARGS ":691", NULL},
    {SLIME, GROUP_SIZE, "--n-samples-per-prompt %s", SLIME_ARGS ":700", NULL},
    {SLIME, RESPONSES, "--global-batch-size %s", SLIME_ARGS ":706", NULL},
    {SLIME, PUBLISH, "--update-weights-interval %s", SLIME_ARGS ":537",
     "generation stops while weights are published (train_async.py:67)"},
    {SLIME, WINDOW, NULL, "train_async.py:40",
     "one rollout is generated ahead: the window is one rollout"},
    {SLIME, STALE_RULE, NULL, "", "nothing is dropped"},
    {SLIME, SITES, NULL, "", "a place for each engine is not set"},
};
enum { N_SETTINGS = sizeof settings / sizeof *settings };

const plan_trainer *plan_trainer_at(size_t i) {
  return i < TRAINERS ? &trainers[i] : NULL;
}

/* --- values --- */

/* GPUs of a node: the largest number up to NODE_GPUS that divides n. */
static size_t gpus_of_node(size_t n) {
  size_t per = NODE_GPUS;
  while (per > 1 && n % per != 0) --per;
  return per;
}

static bool stale_is(const plan_result *r, const char *rule) {
  return strcmp(cluster_stale(r->system[r->chosen].setup.cluster), rule) == 0;
}

/* Number of samplers, and number of samplers that are not at the learner's site. */
typedef struct sampler_counts {
  size_t all, away;
} sampler_counts;

static sampler_counts count_samplers(const plan_candidate *c, const plan_description *d) {
  sampler_counts n = {plan_candidate_samplers(c, d), 0};
  n.away = n.all - c->samplers[c->learner_site];
  return n;
}

/* The value of a quantity; 0: the plan does not determine it. */
static size_t number_of(quantity what, const plan_result *r) {
  const plan_candidate *c = &r->system[r->chosen].candidate;
  const plan_description *d = r->d;
  const sampler_counts samplers = count_samplers(c, d);
  const size_t gpus = samplers.all * d->sampler_gpus, prompts = d->groups * (size_t)c->batches;
  const size_t decoded = d->n_decoding > 0 ? d->decoding[c->decoding].concurrency : 0;
  switch (what) {
  case ALWAYS:
    return 1;
  case LEARNER_GPUS:
    return c->learner_gpus;
  case LEARNER_NODES:
    return c->learner_gpus / gpus_of_node(c->learner_gpus);
  case LEARNER_NODE_GPUS:
    return gpus_of_node(c->learner_gpus);
  case SAMPLER_GPUS:
    return gpus;
  case SAMPLER_NODES:
    return gpus / gpus_of_node(gpus);
  case SAMPLER_NODE_GPUS:
    return gpus_of_node(gpus);
  case SAMPLERS:
    return samplers.all;
  case ENGINE_GPUS:
    return d->sampler_gpus;
  case PROMPTS:
    return prompts;
  case RESPONSES:
    return prompts * d->group_size;
  case GROUP_SIZE:
    return d->group_size;
  case ENGINE_CONCURRENCY:
    return decoded;
  case IN_FLIGHT:
    return decoded * samplers.all;
  case GROUPS_IN_FLIGHT:
    return decoded * samplers.all / d->group_size;
  case WINDOW:
    return (size_t)c->window;
  case WINDOW_SPAN:
    return (size_t)c->window + 1;
  case WINDOW_SYNCS:
    return ((size_t)c->window + (size_t)c->publish - 1) / (size_t)c->publish;
  case PUBLISH:
    return (size_t)c->publish;
  case STALE_RULE:
    return 1;
  case STALE_CHOICE:
    return !stale_is(r, "downweight");
  case STALE_WEIGHT:
    return stale_is(r, "downweight");
  case SITES:
    return samplers.away;
  }
  assert(0);
  return 0;
}

/* Returns true if the plan determines this quantity, so that the trainer's setting must state it.
 */
static bool is_of_plan(quantity what, const plan_result *r) {
  const bool is_window = what == WINDOW || what == WINDOW_SPAN || what == WINDOW_SYNCS;
  return is_window || number_of(what, r) > 0;
}

enum { SETTING_SIZE = 200 };

static void setting_text(char text[SETTING_SIZE], const plan_setting *s, const plan_result *r) {
  const char *at = strstr(s->setting, "%s");
  char value[24];
  snprintf(value, sizeof value, "%zu", number_of(s->what, r));
  if (at == NULL)
    snprintf(text, SETTING_SIZE, "%s", s->setting);
  else
    snprintf(text, SETTING_SIZE, "%.*s%s%s", (int)(at - s->setting), s->setting,
             s->what != STALE_CHOICE ? value
             : stale_is(r, "wait")   ? "wait"
                                     : "drop",
             at + 2);
}

static const char *const quantity_names[] = {
    [ALWAYS] = "the mode",
    [LEARNER_GPUS] = "GPUs of the learner",
    [LEARNER_NODES] = "nodes of the learner",
    [LEARNER_NODE_GPUS] = "GPUs of its nodes",
    [SAMPLER_GPUS] = "GPUs of the samplers",
    [SAMPLER_NODES] = "nodes of the samplers",
    [SAMPLER_NODE_GPUS] = "GPUs of their nodes",
    [SAMPLERS] = "samplers",
    [ENGINE_GPUS] = "GPUs of a sampler",
    [PROMPTS] = "prompts of an update",
    [RESPONSES] = "responses of an update",
    [GROUP_SIZE] = "responses of a prompt",
    [ENGINE_CONCURRENCY] = "responses that a sampler decodes at once",
    [IN_FLIGHT] = "responses in flight",
    [GROUPS_IN_FLIGHT] = "prompts in flight",
    [WINDOW] = "the window",
    [WINDOW_SPAN] = "the window",
    [WINDOW_SYNCS] = "the window",
    [PUBLISH] = "updates between publications",
    [STALE_RULE] = "what happens to data beyond the window",
    [STALE_CHOICE] = "what happens to data beyond the window",
    [STALE_WEIGHT] = "what happens to data beyond the window",
    [SITES] = "samplers at other sites than the learner",
};

void plan_settings_print(const plan_result *r, size_t trainer, FILE *to) {
  char text[SETTING_SIZE];
  fprintf(to, "\n# settings of %s (names read in %s)\n", trainers[trainer].name,
          trainers[trainer].version);
  for (size_t i = 0; i < N_SETTINGS; ++i) {
    const plan_setting *s = &settings[i];
    if (s->trainer != trainer || s->setting == NULL || !is_of_plan(s->what, r)) continue;
    setting_text(text, s, r);
    fprintf(to, "%s\n    # %s; %s%s%s\n", text, quantity_names[s->what], s->place,
            s->why != NULL ? "; " : "", s->why != NULL ? s->why : "");
  }
  for (size_t i = 0; i < N_SETTINGS; ++i) {
    const plan_setting *s = &settings[i];
    if (s->trainer != trainer || s->setting != NULL || !is_of_plan(s->what, r)) continue;
    fprintf(to, "# not a setting: %s: %s%s%s\n", quantity_names[s->what], s->why,
            *s->place != '\0' ? "; " : "", s->place);
  }
}

void plan_settings_json(cJSON *to, const plan_result *r, size_t trainer) {
  char text[SETTING_SIZE];
  json_put(to, "trainer %s, version %s", trainers[trainer].word, trainers[trainer].version);
  cJSON *set = json_list(to, "settings"), *not_set = json_list(to, "not_settings");
  for (size_t i = 0; i < N_SETTINGS; ++i) {
    const plan_setting *s = &settings[i];
    if (s->trainer != trainer || !is_of_plan(s->what, r)) continue;
    cJSON *o = json_object(s->setting != NULL ? set : not_set, NULL);
    if (s->setting != NULL) setting_text(text, s, r), json_put(o, "setting %s", text);
    json_put(o, "quantity %s, place %s", quantity_names[s->what], s->place);
    if (s->why != NULL) json_put(o, "note %s", s->why);
  }
}

/* --- the verdict --- */

plan_verdict plan_verdict_of(const plan_result *r) {
  const plan_system *s = &r->system[r->chosen];
  const double learner = plan_use(s, PLAN_LEARNER, 0), samplers = plan_use(s, PLAN_SAMPLERS, 0);
  double weights = 0;
  for (size_t i = 0; i < r->d->n_sites; ++i) weights = fmax(weights, plan_use(s, PLAN_WEIGHTS, i));
  const double sum = learner + samplers + weights;
  return (plan_verdict){.overlap_limit = sum / fmax(fmax(learner, samplers), weights),
                        .overlap_gain = sum};
}

void plan_verdict_print(const plan_result *r, FILE *to) {
  const plan_verdict v = plan_verdict_of(r);
  const char *binds = r->bottleneck == PLAN_LEARNER     ? "the learner binds"
                      : r->bottleneck == PLAN_SAMPLERS  ? "the samplers bind"
                      : r->bottleneck == PLAN_RESOURCES ? "no resource binds"
                                                        : "the network binds";
  fprintf(to,
          "verdict: %s; asynchrony can make this split at most %.2f\n"
          "times as fast as generating, training and publishing in turn; the plan makes it\n"
          "%.2f times as fast\n",
          binds, v.overlap_limit, v.overlap_gain);
}
