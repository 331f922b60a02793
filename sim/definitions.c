/* The table of staleness counters of trainers, and their values for a schedule. */
#include "sim/definitions.h"

#include "sim/clock.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* --- the table --- */

static const char megatron[] = "Megatron-LM 0.20.0", verl[] = "verl 0.9.1", miles[] = "miles 0.1.0",
                  prime_rl[] = "prime-rl 0.8.0", areal[] = "AReaL 2.0.0", ours[] = "gepolab",
                  mimo[] = "MiMo dashboard", closed[] = "no public source";

#define VERL_V1(name_, line, then_, words)                                                         \
  {                                                                                                \
    .name = "verl_v1/" name_, .system = verl,                                                      \
    .source = "verl/trainer/ppo/v1/trainer_base.py:" line, .unit = "syncs", .formula = words,      \
    .now = NOW_PUBLISHED, .then = then_, .per = PER_RESPONSE, .in = IN_SYNCS                       \
  }
#define AREAL(name_, line, add, words)                                                             \
  {                                                                                                \
    .name = "areal/" name_, .system = areal,                                                       \
    .source = "areal/trainer/ppo/actor.py:" line " at cbff54d", .unit = "syncs", .formula = words, \
    .now = NOW_PUBLISHED, .then = THEN_OWN, .per = PER_TOKEN, .in = IN_SYNCS, .plus = add          \
  }
#define PRIME_RL(name_, line, now_, then_, words)                                                  \
  {                                                                                                \
    .name = "prime_rl/" name_, .system = prime_rl,                                                 \
    .source = "src/prime_rl/orchestrator/utils.py:" line " at 559b447", .unit = "updates",         \
    .formula = words, .now = now_, .then = then_, .per = PER_RESPONSE, .in = IN_UPDATES            \
  }
#define MEGATRON(name_, line, then_, words)                                                        \
  {                                                                                                \
    .name = "megatron/" name_, .system = megatron,                                                 \
    .source = "megatron/rl/rl_utils.py:" line " at d98e8a6", .unit = "optimiser updates",          \
    .formula = words, .now = NOW_PUBLISHED, .then = then_, .per = PER_RESPONSE, .in = IN_OPTIMISER \
  }
#define MIMO(name_, then_, words)                                                                  \
  {                                                                                                \
    .name = "mimo/" name_, .system = mimo, .source = closed, .unit = "syncs", .formula = words,    \
    .now = NOW_PUBLISHED, .then = then_, .per = PER_TOKEN, .in = IN_SYNCS                          \
  }

static const staleness_definition table_of_counters[] = {
    {.name = "gepolab/staleness",
     .system = ours,
     .source = "sim/statistics.c: schedule_staleness()",
     .unit = "updates",
     .formula = "learner's version less the unit's oldest version, mean over units",
     .now = NOW_LEARNER,
     .then = THEN_BEGUN,
     .per = PER_UNIT,
     .in = IN_UPDATES},
    {.name = "gepolab/staleness_updates",
     .system = ours,
     .source = "core/rl/learner.c: the metric staleness_updates",
     .unit = "optimiser updates",
     .formula = "optimiser updates between the parameters that generated a token and those it "
                "trains, with those made before it within the same update; mean over tokens",
     .now = NOW_LEARNER,
     .then = THEN_OWN,
     .per = PER_TOKEN,
     .in = IN_OPTIMISER,
     .within = true},
    {.name = "trl/sample/staleness",
     .system = "TRL 1.16.0",
     .source = "trl/experimental/async_grpo/async_grpo_trainer.py:368",
     .unit = "syncs",
     .formula = "published version less the version when the sample's group was begun, mean over "
                "samples",
     .now = NOW_PUBLISHED,
     .then = THEN_BEGUN,
     .per = PER_RESPONSE,
     .in = IN_SYNCS},
    VERL_V1("trajectory_staleness", "1979", THEN_LAST,
            "published version less the newest version in the trajectory"),
    VERL_V1("trajectory_staleness_worst", "1980", THEN_FIRST,
            "published version less the oldest version in the trajectory"),
    {.name = "verl_v1/trajectory_spans",
     .system = verl,
     .source = "verl/trainer/ppo/v1/trainer_base.py:1978",
     .unit = "syncs",
     .formula = "newest less oldest version in the trajectory, plus 1",
     .now = NOW_LAST,
     .then = THEN_FIRST,
     .per = PER_RESPONSE,
     .in = IN_SYNCS,
     .plus = 1},
    {.name = "verl_legacy/stale_trajectory_processed",
     .system = verl,
     .source = "verl/experimental/fully_async_policy/fully_async_trainer.py:1039",
     .unit = "trajectories",
     .formula = "trajectories of the update whose newest version is older than the published one "
                "(the log adds them up over updates)",
     .now = NOW_PUBLISHED,
     .then = THEN_LAST,
     .per = PER_RESPONSE,
     .in = IN_SYNCS,
     .as = AS_NUMBER_STALE},
    AREAL("sample_staleness_theta", "1257", 0, "published version less the token's version"),
    AREAL("sample_staleness_proximal", "1256", -1,
          "the version before the published one less the token's version; -1 if on-policy"),
    PRIME_RL("off_policy", "67", NOW_LEARNER, THEN_BEGUN,
             "learner's version less the version when the rollout's group was begun"),
    PRIME_RL("off_policy/in_flight", "68", NOW_LAST, THEN_BEGUN,
             "version when the rollout ended less the version when its group was begun"),
    PRIME_RL("off_policy/in_queue", "69", NOW_LEARNER, THEN_LAST,
             "learner's version less the version when the rollout ended"),
    {.name = "skyrl/async/staleness",
     .system = "SkyRL 0.3.0",
     .source = "skyrl/train/fully_async_trainer.py:997 at a956457",
     .unit = "updates",
     .formula = "updates since the group was begun, whatever weights it was begun with",
     .now = NOW_LEARNER,
     .then = THEN_SCHEDULED,
     .per = PER_UNIT,
     .in = IN_UPDATES},
    {.name = "pipelinerl/stats/lag",
     .system = "PipelineRL 0.1.0",
     .source = "pipelinerl/finetune_loop.py:881 at 58d3934",
     .unit = "samples",
     .formula = "samples trained between the oldest version of the whole update and the published "
                "version",
     .now = NOW_PUBLISHED,
     .then = THEN_BEGUN,
     .per = PER_RESPONSE,
     .in = IN_SAMPLES,
     .as = AS_LARGEST},
    {.name = "miles/rollout/fully_async/staleness",
     .system = miles,
     .source = "miles/rollout/fully_async_data_buffer.py:192 at 31f1ca9",
     .unit = "syncs",
     .formula = "published version less the oldest version at which a turn of the group ended "
                "(one turn a response here); the engine reports no earlier version",
     .now = NOW_PUBLISHED,
     .then = THEN_EARLIEST_END,
     .per = PER_UNIT,
     .in = IN_SYNCS},
    MEGATRON("policy_staleness", "1592", THEN_FIRST,
             "iteration in which it is collected less the iteration of its first token's weights"),
    MEGATRON("kv_cache_staleness", "1593", THEN_CACHE,
             "iteration in which it is collected less that of its first token's keys and values"),
    MEGATRON("completion_gap", "1729", THEN_LAST,
             "iteration in which it is collected less that of the weights it ended with"),
    MIMO("partial/avg_staleness", THEN_OWN,
         "published version less the token's own version, mean over tokens (the first of two "
         "possible readings)"),
    MIMO("partial/avg_staleness_from_start", THEN_FIRST,
         "published version less the version its response was begun with, mean over tokens (the "
         "second of two possible readings)")};
_Static_assert(sizeof table_of_counters / sizeof *table_of_counters == STALENESS_DEFINITIONS,
               "the number of definitions");

const staleness_definition *staleness_definition_at(size_t i) {
  return i < STALENESS_DEFINITIONS ? &table_of_counters[i] : NULL;
}

/* --- tokens of trained units --- */

static const sampler_group *sampler_group_of(const cluster_spec *spec, uint32_t number) {
  const sampler_group *g = spec->groups;
  for (size_t first = 0; number - first >= g->count; ++g) first += g->count;
  return g;
}

/* The lengths of the unit's responses, sampled again at their addresses. */
static void unit_lengths(double *lengths, const cluster_spec *spec, uint64_t seed,
                         const schedule_batch *unit) {
  const response_spec *r = &sampler_group_of(spec, unit->sampler)->responses;
  const size_t n = spec->unit_responses;
  for (size_t k = 0; k < n && r->lengths == NULL; ++k) lengths[k] = 1;
  if (r->lengths == NULL) return;
  if (spec->unit == UNIT_BATCH)
    response_batch_lengths(lengths, r, seed, unit->id, n);
  else
    response_draw_lengths(lengths, r, seed, unit->id, cluster_unit_draw(spec, unit->id, 1).id, n);
}

gl_status schedule_token_runs(const schedule *s, const cluster_spec *spec, uint64_t seed,
                              void (*each)(void *self, const token_run *run), void *self,
                              gl_error *err) {
  const size_t n = spec->unit_responses;
  double *lengths = calloc(n, sizeof *lengths);
  if (lengths == NULL) return gl_fail_memory(err, "response lengths");
  for (size_t i = 0; i < s->n_updates; ++i)
    for (size_t k = 0; k < s->updates[i].n_batches; ++k) {
      token_run run = {.update = &s->updates[i],
                       .unit = &s->batches[s->updates[i].first_batch + k]};
      unit_lengths(lengths, spec, seed, run.unit);
      for (size_t j = 0; j < run.unit->n_segments; ++j) {
        const schedule_segment *p = &s->segments[run.unit->first_segment + j];
        const bool all = p->response == SEGMENT_OF_ALL;
        run.version = p->version;
        for (size_t r = all ? 0 : (size_t)p->response; r < (all ? n : (size_t)p->response + 1);
             ++r) {
          run.response = r;
          run.tokens = (p->to - p->from) * lengths[r];
          each(self, &run);
        }
      }
    }
  free(lengths);
  return GL_OK;
}

/* --- reading the counters --- */

/* Values of the update, or of all updates. */
typedef struct counter_tally {
  double sum, weight, most;
} counter_tally;

typedef struct counter_reader {
  const schedule *s;
  const cluster_spec *spec;
  size_t optimiser_updates;
  const schedule_update *update; /* of the tallies; NULL: none yet */
  const schedule_batch *unit;    /* of the versions; NULL: none yet */
  int64_t *first, *last;         /* [unit_responses] versions of first and last tokens; -1: none */
  counter_tally of_update[STALENESS_DEFINITIONS];
  staleness_reading *out; /* sums of the updates' values so far */
} counter_reader;

/* The place of a version on the axis that a counter counts in. */
static int64_t position_of(const counter_reader *r, counted_in in, int64_t version) {
  switch (in) {
  case IN_UPDATES:
    return version;
  case IN_SYNCS:
    return version / r->spec->publish_every;
  case IN_OPTIMISER:
    return version * (int64_t)r->optimiser_updates;
  case IN_SAMPLES:
    return (int64_t)(r->s->updates[version].first_batch * r->spec->unit_responses);
  }
  return 0;
}

static int64_t version_now(const counter_reader *r, counted_now now, size_t response) {
  switch (now) {
  case NOW_LEARNER:
    return r->update->version;
  case NOW_PUBLISHED:
    return r->update->published;
  case NOW_LAST:
    return r->last[response];
  }
  return 0;
}

static int64_t earliest_end(const counter_reader *r) {
  int64_t least = r->last[0];
  for (size_t k = 1; k < r->spec->unit_responses; ++k)
    if (r->last[k] < least) least = r->last[k];
  return least;
}

/* `own` is the version of a token, where tokens are counted. */
static int64_t version_then(const counter_reader *r, counted_then then, size_t response,
                            int64_t own) {
  switch (then) {
  case THEN_BEGUN:
    return r->s->segments[r->unit->first_segment].version;
  case THEN_SCHEDULED:
    return schedule_version_at(r->s, r->unit->start_s);
  case THEN_FIRST:
    return r->first[response];
  case THEN_LAST:
    return r->last[response];
  case THEN_CACHE:
    return r->spec->kv_cache == KV_CACHE_KEEP ? r->first[response] : r->last[response];
  case THEN_EARLIEST_END:
    return earliest_end(r);
  case THEN_OWN:
    return own;
  }
  return 0;
}

static void count_value(counter_reader *r, size_t i, size_t response, int64_t own, double weight) {
  const staleness_definition *d = &table_of_counters[i];
  counter_tally *t = &r->of_update[i];
  const int64_t now = position_of(r, d->in, version_now(r, d->now, response)),
                then = position_of(r, d->in, version_then(r, d->then, response, own));
  const double value = (double)(now - then + d->plus),
               before = d->within ? (double)r->optimiser_updates - 1 : 0;
  t->sum += d->as == AS_NUMBER_STALE ? value >= 1 : weight * (value + before / 2);
  t->weight += weight;
  t->most = fmax(t->most, value + before);
}

/* Counts the unit whose versions have been collected, except by token. */
static void end_counted_unit(counter_reader *r) {
  if (r->unit == NULL) return;
  for (size_t i = 0; i < STALENESS_DEFINITIONS; ++i) {
    if (table_of_counters[i].per == PER_UNIT) count_value(r, i, 0, -1, 1);
    if (table_of_counters[i].per != PER_RESPONSE) continue;
    for (size_t k = 0; k < r->spec->unit_responses; ++k) count_value(r, i, k, -1, 1);
  }
  for (size_t k = 0; k < r->spec->unit_responses; ++k) r->first[k] = -1;
  r->unit = NULL;
}

static void end_counted_update(counter_reader *r) {
  end_counted_unit(r);
  for (size_t i = 0; i < STALENESS_DEFINITIONS && r->update != NULL; ++i) {
    const counter_tally *t = &r->of_update[i];
    const counted_as as = table_of_counters[i].as;
    const double value = as == AS_LARGEST ? t->most : as == AS_MEAN ? t->sum / t->weight : t->sum;
    r->out[i].mean += value;
    r->out[i].max = fmax(r->out[i].max, as == AS_NUMBER_STALE ? value : t->most);
  }
  for (size_t i = 0; i < STALENESS_DEFINITIONS; ++i)
    r->of_update[i] = (counter_tally){.most = -INFINITY};
}

static void count_run(void *self, const token_run *run) {
  counter_reader *r = self;
  if (run->update != r->update) {
    end_counted_update(r);
    r->update = run->update;
  }
  if (run->unit != r->unit) {
    end_counted_unit(r);
    r->unit = run->unit;
  }
  if (r->first[run->response] < 0) r->first[run->response] = run->version;
  r->last[run->response] = run->version;
}

/* Counters of tokens that refer to the first token's version can only be computed when that is
 * known, which it is at every run: runs of a response come in the order of its tokens. */
static void count_tokens_of_run(void *self, const token_run *run) {
  counter_reader *r = self;
  count_run(r, run);
  for (size_t i = 0; i < STALENESS_DEFINITIONS; ++i)
    if (table_of_counters[i].per == PER_TOKEN)
      count_value(r, i, run->response, run->version, run->tokens);
}

gl_status staleness_read(staleness_reading out[STALENESS_DEFINITIONS], const schedule *s,
                         const cluster_spec *spec, uint64_t seed, size_t optimiser_updates,
                         gl_error *err) {
  assert(optimiser_updates > 0);
  const size_t n = spec->unit_responses;
  counter_reader r = {.s = s, .spec = spec, .optimiser_updates = optimiser_updates, .out = out};
  r.first = calloc(n, sizeof *r.first);
  r.last = calloc(n, sizeof *r.last);
  const bool fits = r.first != NULL && r.last != NULL;
  gl_status status = fits ? GL_OK : gl_fail_memory(err, "versions of responses");
  for (size_t i = 0; i < STALENESS_DEFINITIONS; ++i)
    out[i] = (staleness_reading){.mean = 0, .max = -INFINITY};
  for (size_t k = 0; k < n && fits; ++k) r.first[k] = -1;
  if (status == GL_OK) {
    end_counted_update(&r);
    status = schedule_token_runs(s, spec, seed, count_tokens_of_run, &r, err);
    end_counted_update(&r);
  }
  for (size_t i = 0; i < STALENESS_DEFINITIONS; ++i) {
    out[i].mean = s->n_updates > 0 ? out[i].mean / (double)s->n_updates : NAN;
    if (s->n_updates == 0) out[i].max = NAN;
  }
  free(r.first);
  free(r.last);
  return status;
}
