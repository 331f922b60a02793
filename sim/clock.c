/* The cluster's clock: events of samplers, links and the learner, until the updates are done. What
 * happens at samplers is in sampler.c, and in stream.c where they stream groups or responses. */
#include "sim/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gl_status clock_post(sim_clock *c, double time, uint32_t rank, uint32_t kind, uint32_t node,
                     uint64_t data, gl_error *err) {
  if (!isfinite(time)) return gl_fail(err, GL_ENUMERIC, "a simulated time overflows");
  if (fel_push(&c->events, time, rank, kind, node, data)) return GL_OK;
  return gl_fail_memory(err, "events");
}

/* --- the learner --- */

static gl_status wake_learner(sim_clock *c, gl_error *err) {
  if (c->learner_busy || c->wake_pending) return GL_OK;
  c->wake_pending = 1;
  return clock_post(c, c->now, RANK_LEARNER, LEARNER_STARTS, 0, 0, err);
}

gl_status clock_batch_arrives(sim_clock *c, uint32_t slot, gl_error *err) {
  buffer *b = &c->buffer;
  b->pool[slot].facts.arrived_s = c->now;
  buffer_insert(b, slot, c->spec->queue == QUEUE_HETERORL);
  if (!batch_choice_add(c, slot)) return gl_fail_memory(err, "waiting batches");
  selection_waits(c, slot);
  if (c->spec->capacity != 0 && b->waiting > c->spec->capacity) batch_choice_evict(c);
  return wake_learner(c, err);
}

static void set_published(sim_clock *c) {
  coupling_leave(c, c->published);
  c->published = c->version;
  coupling_take(c, c->published);
}

static gl_status publish(sim_clock *c, gl_error *err) {
  int pull = c->spec->sync == SYNC_PULL;
  gl_status status = GL_OK;
  if (c->net.nodes != NULL) return relay_publish(c, err);
  if (pull && c->gated == 0) return status; /* a look at each of a million would be waited for */
  for (size_t i = 0; i < c->spec->n_samplers && status == GL_OK; ++i) {
    sampler *s = &c->samplers[i];
    if (pull && s->state == SAMPLER_GATED)
      status = clock_post(c, c->now, RANK_SAMPLER, SAMPLER_STARTS, (uint32_t)i, 0, err);
    if (!pull) status = sampler_push(c, (uint32_t)i, err);
  }
  return status;
}

static int reserve_segments(sim_clock *c, size_t n) {
  if (c->out->n_segments + n <= c->segment_capacity) return 1;
  size_t capacity = 2 * c->segment_capacity + n;
  if (capacity > SIZE_MAX / sizeof(schedule_segment)) return 0;
  schedule_segment *grown = realloc(c->out->segments, capacity * sizeof *grown);
  if (grown == NULL) return 0;
  c->out->segments = grown;
  c->segment_capacity = capacity;
  return 1;
}

static int reserve_batches(sim_clock *c, size_t n) {
  if (c->out->n_batches + n <= c->batch_capacity) return 1;
  size_t capacity = 2 * c->batch_capacity + n;
  if (capacity > SIZE_MAX / sizeof(schedule_batch)) return 0;
  schedule_batch *grown = realloc(c->out->batches, capacity * sizeof *grown);
  if (grown == NULL) return 0;
  c->out->batches = grown;
  c->batch_capacity = capacity;
  return 1;
}

/* Copies a chosen batch into the schedule and gives its slot back. */
static gl_status record_batch(sim_clock *c, uint32_t slot, gl_error *err) {
  schedule *out = c->out;
  pooled_batch *p = &c->buffer.pool[slot];
  if (!reserve_segments(c, p->facts.n_segments)) return gl_fail_memory(err, "segments");
  schedule_batch *b = &out->batches[out->n_batches++];
  *b = p->facts;
  b->trained_s = c->now;
  c->waited_s += c->now - b->arrived_s;
  selection_ends(c, slot, FATE_TRAINED);
  clock_tell(c, SPAN_QUEUED, SPAN_DONE, b->sampler, b->arrived_s, c->now, b->number, -1);
  b->first_segment = out->n_segments;
  memcpy(&out->segments[out->n_segments], p->segments, b->n_segments * sizeof *p->segments);
  out->n_segments += b->n_segments;
  buffer_release(&c->buffer, slot);
  return GL_OK;
}

static gl_status learner_starts(sim_clock *c, gl_error *err) {
  c->wake_pending = 0;
  if (c->learner_busy || !batch_choice_next(c)) return GL_OK;
  if (!reserve_batches(c, c->n_chosen)) return gl_fail_memory(err, "the schedule");
  schedule *out = c->out;
  double step = delay_draw(c->spec->step, &c->step);
  out->updates[out->n_updates++] = (schedule_update){.step = c->version + 1,
                                                     .version = c->version,
                                                     .first_batch = out->n_batches,
                                                     .n_batches = c->n_chosen,
                                                     .start_s = c->now,
                                                     .end_s = c->now + step,
                                                     .wait_s = c->now - c->idle_since,
                                                     .pause_s = c->paused_s};
  clock_tell(c, SPAN_IDLE, SPAN_DONE, 0, c->idle_since, c->now, 0, -1);
  clock_tell(c, SPAN_TRAINING, SPAN_DONE, 0, c->now, c->now + step, 0, c->version);
  c->paused_s = 0;
  c->busy_s += step;
  c->learner_busy = 1;
  for (size_t i = 0; i < c->n_chosen; ++i) {
    gl_status status = record_batch(c, c->chosen[i], err);
    if (status != GL_OK) return status;
  }
  return clock_post(c, c->now + step, RANK_ARRIVAL, UPDATE_ENDS, 0, 0, err);
}

static gl_status pause_ends(sim_clock *c, gl_error *err) {
  c->learner_busy = 0;
  c->idle_since = c->now;
  return wake_learner(c, err);
}

/* Weights are published before an evaluation, so samplers catch up during it. */
static gl_status update_ends(sim_clock *c, gl_error *err) {
  ++c->version;
  int publishes = c->version % c->spec->publish_every == 0;
  if (publishes) set_published(c);
  gl_status status = coupling_update(c, err);
  if (status == GL_OK && publishes && !c->coupled.stopped) status = publish(c, err);
  if (status != GL_OK) return status;
  if (c->version % c->spec->eval_every == 0) c->paused_s = delay_draw(c->spec->pause, &c->pause);
  clock_tell(c, SPAN_EVALUATION, SPAN_DONE, 0, c->now, c->now + c->paused_s, 0, c->version);
  if (c->paused_s > 0)
    return clock_post(c, c->now + c->paused_s, RANK_ARRIVAL, PAUSE_ENDS, 0, 0, err);
  return pause_ends(c, err);
}

/* --- the loop --- */

static gl_status handle(sim_clock *c, const sim_event *e, gl_error *err) {
  const int streams = c->stream.engines != NULL;
  switch ((enum event_kind)e->kind) {
  case GENERATION_ENDS:
    return sampler_generated(c, e->node, err);
  case BATCH_ARRIVES:
    return clock_batch_arrives(c, (uint32_t)e->data, err);
  case BATCH_LOST:
    sampler_loses(c, (uint32_t)e->data);
    return GL_OK;
  case WEIGHTS_LOADED:
    return sampler_loaded(c, e->node, e->data, err);
  case LINK_FREE:
    c->samplers[e->node].resend = 0;
    return sampler_push(c, e->node, err);
  case CRASH:
    return sampler_crashes(c, e->node, err);
  case RETURN:
    return sampler_returns(c, e->node, err);
  case WEIGHTS_ARRIVE:
    return (streams ? stream_receives : sampler_receives)(c, e->node, (int64_t)e->data, err);
  case UPDATE_ENDS:
    return update_ends(c, err);
  case PAUSE_ENDS:
    return pause_ends(c, err);
  case LEARNER_STARTS:
    return learner_starts(c, err);
  case SAMPLER_STARTS:
    return (streams ? stream_starts : sampler_starts)(c, e->node, e->data == 1, err);
  case RESPONSE_ENDS:
    return stream_response_ends(c, e->node, e->data, err);
  case INTERRUPTION_ENDS:
    return interrupt_ends(c, e->node, err);
  case TRANSFER_MOVES:
    return transfer_moves(c, e->data, err);
  case NETWORK_SHARES:
    return transfer_shares(c, err);
  case FLOW_ENDS:
    return transfer_flow_ends(c, e->data, err);
  case OUTAGE_BEGINS:
    return outage_begins(c, e->node, e->data == 1, err);
  case OUTAGE_ENDS:
    return outage_ends(c, e->node, e->data == 1, err);
  }
  return gl_fail(err, GL_EINTERNAL, "unknown event %u", e->kind);
}

static gl_status deadlock(const sim_clock *c, const char *how, gl_error *err) {
  const cluster_spec *spec = c->spec;
  size_t gated = 0;
  for (size_t i = 0; i < spec->n_samplers; ++i) gated += c->samplers[i].state == SAMPLER_GATED;
  char wanted[64];
  if (spec->tokens > 0)
    snprintf(wanted, sizeof wanted, "%g tokens of %s", spec->tokens, cluster_unit_names(spec));
  else
    snprintf(wanted, sizeof wanted, "%zu %s", spec->take, cluster_unit_names(spec));
  return gl_fail(err, GL_ENUMERIC,
                 "the cluster %s after %lld updates at %g s: the learner waits for %s at "
                 "most %lld versions old and has %zu waiting; %zu of %zu samplers wait for newer "
                 "weights (the newest published is version %lld); look at window, ahead, "
                 "learner.batches and publish_every",
                 how, (long long)c->version, c->now, wanted, (long long)spec->window,
                 c->buffer.waiting, gated, spec->n_samplers, (long long)c->published);
}

/* A batch that no longer counts at the gate lets one more be begun: by the first sampler that the
 * gate is open for, where weights are pushed. Samplers that pull look again too, all of them, for
 * their weights may be due. */
static gl_status wake_gated(sim_clock *c, gl_error *err) {
  gl_status status = GL_OK;
  int pull = c->spec->sync == SYNC_PULL, places = c->wake_gated;
  c->wake_gated = 0;
  for (size_t i = 0; i < c->spec->n_samplers && status == GL_OK && places > 0; ++i) {
    const sampler *s = &c->samplers[i];
    const int waits =
        s->state == SAMPLER_GATED || (c->stream.engines != NULL && c->stream.engines[i].gated);
    if (!waits || !(pull || sampler_gate_is_open(c, s))) continue;
    places -= !pull;
    status = clock_post(c, c->now, RANK_SAMPLER, SAMPLER_STARTS, (uint32_t)i, 0, err);
  }
  return status;
}

static void ask_for(const void *of, size_t bytes) {
  for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch((const char *)of + i, 1);
}

/* Of a million samplers nearly everything that an event looks at is in main memory. What the next
 * events need is asked for together, once for each time that the list of events takes new ones
 * near: first samplers and batches that are named, then batches that samplers and segments that
 * batches name. */
static void look_ahead(const sim_clock *c) {
  const event_queue *near = &c->events.near;
  const pooled_batch *pool = c->buffer.pool;
  for (size_t i = 0; i < near->size; ++i) {
    const sim_event *e = &near->heap[i];
    if (e->kind == BATCH_ARRIVES)
      ask_for(&pool[e->data], sizeof *pool);
    else if (e->node < c->spec->n_samplers)
      ask_for(&c->samplers[e->node], e->kind == WEIGHTS_ARRIVE ? CACHE_LINE : sizeof(sampler));
  }
  for (size_t i = 0; i < near->size; ++i) {
    const sim_event *e = &near->heap[i];
    if (e->kind == BATCH_ARRIVES) ask_for(pool[e->data].segments, 1);
    if (e->kind != GENERATION_ENDS) continue;
    const uint32_t slot = c->samplers[e->node].slot;
    if (slot != BUFFER_NONE) ask_for(&pool[slot], sizeof *pool);
  }
}

static gl_status run(sim_clock *c, gl_error *err) {
  uint64_t limit = 20000000 + 2000 * (uint64_t)c->spec->n_samplers, quiet = 0, refills = 0;
  int64_t seen = 0;
  while ((size_t)c->version < c->updates && !c->coupled.stopped) {
    sim_event e;
    if (fel_size(&c->events) == 0) return deadlock(c, "stands still", err);
    if (!fel_pop(&c->events, &e)) return gl_fail_memory(err, "events");
    if (c->events.refills != refills) look_ahead(c);
    refills = c->events.refills;
    c->waiting_integral_s += (double)c->buffer.waiting * (e.time - c->now);
    c->now = e.time;
    gl_status status = handle(c, &e, err);
    if (status == GL_OK && c->wake_learner) {
      c->wake_learner = 0;
      status = wake_learner(c, err);
    }
    if (status == GL_OK && c->wake_gated && c->spec->ahead < INT64_MAX) status = wake_gated(c, err);
    if (status != GL_OK) return status;
    quiet = c->version == seen ? quiet + 1 : 0;
    seen = c->version;
    if (quiet > limit) return deadlock(c, "no longer trains", err);
  }
  return GL_OK;
}

static gl_status start(sim_clock *c, uint64_t seed, gl_error *err) {
  const cluster_spec *spec = c->spec;
  c->newest_trained = -1;
  c->seed = seed;
  c->step = (delay_source){rng_stream_at(seed, RNG_STEP, 0), 0, 0};
  c->pause = (delay_source){rng_stream_at(seed, RNG_STEP, 1), 0, 0};
  coupling_take(c, c->published);
  size_t i = 0;
  gl_status status = GL_OK;
  for (size_t g = 0; g < spec->n_groups; ++g)
    for (size_t k = 0; k < spec->groups[g].count && status == GL_OK; ++k, ++i) {
      sampler *s = &c->samplers[i];
      *s = (sampler){.group = &spec->groups[g], .slot = BUFFER_NONE};
      coupling_take(c, s->version);
      if (spec->sync == SYNC_PULL) s->due_s = sampler_weights_delay(c, (uint32_t)i);
      status = sampler_plan_crash(c, (uint32_t)i, err);
      if (status == GL_OK)
        status = clock_post(c, 0, RANK_SAMPLER, SAMPLER_STARTS, (uint32_t)i, 0, err);
    }
  if (status == GL_OK && c->net.sites != NULL) status = outage_plan(c, err);
  return status;
}

static gl_status allocate(sim_clock *c, schedule *out, const schedule_hooks *hooks, gl_error *err) {
  const cluster_spec *spec = c->spec;
  buffer_init(&c->buffer);
  fel_init(&c->events);
  eq_init(&c->slots);
  eq_init(&c->by_version);
  const size_t take = spec->tokens > 0 ? 1 : spec->take;
  if (c->updates > SIZE_MAX / take / sizeof *out->batches - 1)
    return gl_fail_memory(err, "the schedule");
  if (spec->n_samplers <= SIZE_MAX / sizeof *c->samplers)
    c->samplers = aligned_alloc(CACHE_LINE, spec->n_samplers * sizeof *c->samplers);
  out->updates = calloc(c->updates + 1, sizeof *out->updates);
  c->batch_capacity = c->updates * take + 1;
  out->batches = calloc(c->batch_capacity, sizeof *out->batches);
  c->generator = rng_gsl_new(rng_stream_at(0, RNG_LOSS, 0));
  int fits = coupling_init(&c->coupled, hooks, c->updates, spec->unit_responses);
  fits = fits && batch_choice_reserve(c, take) && c->samplers && stream_init(c) &&
         selection_init(c) && interrupt_init(c);
  fits = transfer_init(c) && fits;
  if (fits && c->generator && out->updates && out->batches) return GL_OK;
  return gl_fail_memory(err, "the schedule");
}

/* --- the whole --- */

/* What the clock's end interrupts. */
static void tell_open(const sim_clock *c) {
  for (size_t i = 0; i < c->spec->n_samplers; ++i) {
    sampler_tell(c, (uint32_t)i, SPAN_OPEN);
    interrupt_tell(c, (uint32_t)i, SPAN_OPEN);
    if (c->stream.engines != NULL) stream_tell_open(c, (uint32_t)i);
  }
  transfer_tell_open(c);
  for (uint32_t i = c->buffer.oldest; i != BUFFER_NONE; i = c->buffer.pool[i].newer) {
    const schedule_batch *b = &c->buffer.pool[i].facts;
    clock_tell(c, SPAN_QUEUED, SPAN_OPEN, b->sampler, b->arrived_s, c->now, b->number, -1);
  }
}

static gl_status build(schedule *out, const cluster_spec *spec, uint64_t seed, size_t updates,
                       const schedule_hooks *hooks, const schedule_trace *trace, gl_error *err) {
  *out = (schedule){0};
  sim_clock c = {.spec = spec, .out = out, .updates = updates, .trace = trace};
  gl_status status = allocate(&c, out, hooks, err);
  if (status == GL_OK) status = start(&c, seed, err);
  if (status == GL_OK) status = run(&c, err);
  if (status == GL_OK) status = clock_summarise(&c, err);
  if (status == GL_OK && trace != NULL) tell_open(&c);
  fel_fini(&c.events);
  eq_fini(&c.slots);
  eq_fini(&c.by_version);
  buffer_fini(&c.buffer);
  stream_fini(&c);
  interrupt_fini(&c);
  transfer_fini(&c);
  selection_fini(&c);
  coupling_fini(&c.coupled, updates);
  if (c.generator != NULL) gsl_rng_free(c.generator);
  free(c.samplers);
  free(c.chosen);
  if (status != GL_OK) schedule_fini(out);
  return status;
}

gl_status schedule_build(schedule *out, const cluster_spec *spec, uint64_t seed, size_t updates,
                         gl_error *err) {
  return build(out, spec, seed, updates, NULL, NULL, err);
}

gl_status schedule_build_coupled(schedule *out, const cluster_spec *spec, uint64_t seed,
                                 size_t updates, const schedule_hooks *hooks, gl_error *err) {
  return build(out, spec, seed, updates, hooks, NULL, err);
}

gl_status schedule_build_traced(schedule *out, const cluster_spec *spec, uint64_t seed,
                                size_t updates, const schedule_trace *trace, gl_error *err) {
  return build(out, spec, seed, updates, NULL, trace, err);
}

void schedule_fini(schedule *s) {
  free(s->updates);
  free(s->batches);
  free(s->segments);
  free(s->staleness);
  *s = (schedule){0};
}
