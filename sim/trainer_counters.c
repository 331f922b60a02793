/* The table of staleness counters of trainers, and their values for a schedule. */
#include "sim/trainer_counters.h"

#include "core/base/staleness_counters.h"

#include "sim/clock.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* --- the table --- */

#define COUNTER_FIELDS(name_, system_, source_, unit_, formula_)                                   \
  .name = name_, .system = system_, .source = source_, .unit = unit_, .formula = formula_
#define COUNTED(now_, then_, per_, in_) .now = now_, .then = then_, .per = per_, .in = in_

static const staleness_definition table_of_counters[] = {
    {COUNTER_GEPOLAB(COUNTER_FIELDS), COUNTED(NOW_LEARNER, THEN_BEGUN, PER_UNIT, IN_UPDATES)},
    {COUNTER_GEPOLAB_UPDATES(COUNTER_FIELDS),
     COUNTED(NOW_LEARNER, THEN_OWN, PER_TOKEN, IN_OPTIMISER), .within = true},
    {COUNTER_TRL(COUNTER_FIELDS), COUNTED(NOW_PUBLISHED, THEN_BEGUN, PER_RESPONSE, IN_SYNCS)},
    {COUNTER_VERL_STALENESS(COUNTER_FIELDS),
     COUNTED(NOW_PUBLISHED, THEN_LAST, PER_RESPONSE, IN_SYNCS)},
    {COUNTER_VERL_WORST(COUNTER_FIELDS),
     COUNTED(NOW_PUBLISHED, THEN_FIRST, PER_RESPONSE, IN_SYNCS)},
    {COUNTER_VERL_SPANS(COUNTER_FIELDS), COUNTED(NOW_LAST, THEN_FIRST, PER_RESPONSE, IN_SYNCS),
     .plus = 1},
    {COUNTER_VERL_LEGACY(COUNTER_FIELDS), COUNTED(NOW_PUBLISHED, THEN_LAST, PER_RESPONSE, IN_SYNCS),
     .as = AS_NUMBER_STALE},
    {COUNTER_AREAL_THETA(COUNTER_FIELDS), COUNTED(NOW_PUBLISHED, THEN_OWN, PER_TOKEN, IN_SYNCS)},
    {COUNTER_AREAL_PROXIMAL(COUNTER_FIELDS), COUNTED(NOW_PUBLISHED, THEN_OWN, PER_TOKEN, IN_SYNCS),
     .plus = -1},
    {COUNTER_PRIME_RL(COUNTER_FIELDS), COUNTED(NOW_LEARNER, THEN_BEGUN, PER_RESPONSE, IN_UPDATES)},
    {COUNTER_PRIME_RL_FLIGHT(COUNTER_FIELDS),
     COUNTED(NOW_LAST, THEN_BEGUN, PER_RESPONSE, IN_UPDATES)},
    {COUNTER_PRIME_RL_QUEUE(COUNTER_FIELDS),
     COUNTED(NOW_LEARNER, THEN_LAST, PER_RESPONSE, IN_UPDATES)},
    {COUNTER_SKYRL(COUNTER_FIELDS), COUNTED(NOW_LEARNER, THEN_SCHEDULED, PER_UNIT, IN_UPDATES)},
    {COUNTER_PIPELINERL(COUNTER_FIELDS),
     COUNTED(NOW_PUBLISHED, THEN_BEGUN, PER_RESPONSE, IN_SAMPLES), .as = AS_LARGEST},
    {COUNTER_MILES(COUNTER_FIELDS), COUNTED(NOW_PUBLISHED, THEN_EARLIEST_END, PER_UNIT, IN_SYNCS)},
    {COUNTER_MEGATRON(COUNTER_FIELDS),
     COUNTED(NOW_PUBLISHED, THEN_FIRST, PER_RESPONSE, IN_OPTIMISER)},
    {COUNTER_MEGATRON_CACHE(COUNTER_FIELDS),
     COUNTED(NOW_PUBLISHED, THEN_CACHE, PER_RESPONSE, IN_OPTIMISER)},
    {COUNTER_MEGATRON_GAP(COUNTER_FIELDS),
     COUNTED(NOW_PUBLISHED, THEN_LAST, PER_RESPONSE, IN_OPTIMISER)},
    {COUNTER_MIMO(COUNTER_FIELDS), COUNTED(NOW_PUBLISHED, THEN_OWN, PER_TOKEN, IN_SYNCS)},
    {COUNTER_MIMO_START(COUNTER_FIELDS), COUNTED(NOW_PUBLISHED, THEN_FIRST, PER_TOKEN, IN_SYNCS)}};
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
static void unit_lengths(double *lengths, const schedule *s, const cluster_spec *spec,
                         uint64_t seed, const schedule_batch *unit) {
  const size_t source = s->source_of != NULL ? s->source_of[unit - s->batches] : 0;
  const response_spec of =
      cluster_responses(spec, &sampler_group_of(spec, unit->sampler)->responses, source);
  const response_spec *r = &of;
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
      unit_lengths(lengths, s, spec, seed, run.unit);
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

/* Sum of weighted values, sum of weights and largest value of one counter in one update. */
typedef struct counter_tally {
  double sum, weight, most;
} counter_tally;

typedef struct counter_reader {
  const schedule *s;
  const cluster_spec *spec;
  size_t optimiser_updates;
  const schedule_update *update; /* the update that of_update counts; NULL: none yet */
  const schedule_batch *unit;    /* the unit whose versions first and last hold; NULL: none yet */
  int64_t *first, *last;         /* [unit_responses] versions of first and last tokens; -1: none */
  counter_tally of_update[STALENESS_DEFINITIONS];
  staleness_reading *out; /* sums of the updates' values so far */
} counter_reader;

/* Converts a version to the unit of a counter: updates, publications, optimiser updates or samples.
 */
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

/* The oldest version among the last tokens of the unit's responses. */
static int64_t earliest_end(const counter_reader *r) {
  int64_t least = r->last[0];
  for (size_t k = 1; k < r->spec->unit_responses; ++k)
    if (r->last[k] < least) least = r->last[k];
  return least;
}

/* The older of the two versions that the counter compares. own: the token's version, for counters
 * of tokens. */
static int64_t version_then(const counter_reader *r, counted_then then, size_t response,
                            int64_t own) {
  switch (then) {
  case THEN_BEGUN:
    return r->s->segments[r->unit->first_segment].version;
  case THEN_SCHEDULED:
    return schedule_version_at(r->s, r->update, r->unit->start_s);
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

/* Also counts the tokens of the run. Counters that refer to the version of the response's first
 * token can use it already, because runs of a response come in the order of its tokens. */
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
