/* The event loop of the simulated cluster: clock_run() removes the earliest event, sets the
 * simulated time to its time and calls the handler of its kind, until all updates are done. Then
 * it checks the totals. */
#include "sim/clock.h"

#include "core/config/fields.h"
#include "core/random/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- crashes of samplers, outages of sites --- */

/* Outages: sites are cut off at fixed times and at sampled times; outages of a site may overlap.
 * transfer.c handles interrupted transfers. */

/* Minimum time to a crash or an outage, so that simulated time always advances. */
static const double shortest_s = 1e-9;

static gl_status sampler_plan_crash(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (delay_is_zero(s->group->mtbf)) return GL_OK;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, i), 2 * (uint64_t)s->crashes, 0};
  double up = fmax(delay_draw(s->group->mtbf, &draw), shortest_s);
  return clock_post(c, c->now + up, CRASH, i, 0, err);
}

/* A crash loses the batch being generated and the weights; batches already sent still arrive. */
static gl_status sampler_crash(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  const bool generates = s->state == SAMPLER_GENERATING;
  if (generates) s->busy_s += c->now - s->begun_s;
  sampler_enter(c, i, SAMPLER_DOWN, generates ? SPAN_LOST : SPAN_DONE);
  if (c->stream.engines != NULL)
    stream_crash(c, i);
  else if (generates)
    ledger_discard(c, s->slot, FATE_LOST);
  interrupt_crash(c, i, generates);
  if (c->net.peers != NULL) transfer_crash(c, i);
  version_release(c, s->version);
  s->version = -1;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, i), 2 * (uint64_t)s->crashes++ + 1, 0};
  return clock_post(c, c->now + delay_draw(s->group->mttr, &draw), RETURN, i, 0, err);
}

static gl_status sampler_return(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  sampler_enter(c, i, SAMPLER_GATED, SPAN_DONE);
  s->due_s = c->now;
  gl_status status = sampler_plan_crash(c, i, err);
  if (status != GL_OK || c->restarts.is_down) return status; /* starts with the job */
  if (c->spec->sync == SYNC_PUSH) return sampler_push(c, i, err);
  return clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
}

/* Samples the site's next outage and posts its start. */
static gl_status plan_outage(sim_clock *c, uint32_t site, gl_error *err) {
  const network_site *spec = &c->spec->network->sites[site];
  if (delay_is_zero(spec->mtbf)) return GL_OK;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, RNG_FAILURE_SITES + site),
                       2 * (uint64_t)c->net.sites[site].n_drawn, 0};
  const double up = fmax(delay_draw(spec->mtbf, &draw), shortest_s);
  return clock_post(c, c->now + up, OUTAGE_BEGINS, site, 1, err);
}

static gl_status outage_plan(sim_clock *c, gl_error *err) {
  gl_status status = GL_OK;
  for (uint32_t i = 0; i < c->spec->network->n_sites && status == GL_OK; ++i) {
    const network_site *spec = &c->spec->network->sites[i];
    for (size_t k = 0; k < spec->n_outages && status == GL_OK; ++k) {
      const site_outage *o = &spec->outages[k];
      status = clock_post(c, o->from_s, OUTAGE_BEGINS, i, 0, err);
      if (status == GL_OK) status = clock_post(c, o->to_s, OUTAGE_ENDS, i, 0, err);
    }
    if (status == GL_OK) status = plan_outage(c, i, err);
  }
  return status;
}

/* drawn: a sampled outage, whose end is posted here; its duration has the odd number after the even
 * one of the time to it (plan_outage). */
static gl_status outage_begin(sim_clock *c, uint32_t site, bool drawn, gl_error *err) {
  transfer_site *s = &c->net.sites[site];
  gl_status status = GL_OK;
  if (drawn) {
    delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, RNG_FAILURE_SITES + site),
                         2 * (uint64_t)s->n_drawn++ + 1, 0};
    const double down = delay_draw(c->spec->network->sites[site].mttr, &draw);
    status = clock_post(c, c->now + down, OUTAGE_ENDS, site, 1, err);
  }
  if (status != GL_OK || s->outages++ > 0) return status;
  s->since_s = c->now;
  return transfer_cut(c, err);
}

static gl_status outage_end(sim_clock *c, uint32_t site, bool drawn, gl_error *err) {
  transfer_site *s = &c->net.sites[site];
  gl_status status = drawn ? plan_outage(c, site, err) : GL_OK;
  if (status != GL_OK || --s->outages > 0) return status;
  c->net.outage_s += c->now - s->since_s;
  clock_trace(c, (schedule_span){SPAN_OUTAGE, SPAN_DONE, site, s->since_s, c->now, 0, -1});
  return transfer_resume(c, err);
}

/* --- one handler for each kind of event --- */

/* SYNC_PUSH: weights arrive at a sampler. */
static gl_status weights_arrive(sim_clock *c, uint32_t i, int64_t version, gl_error *err) {
  return c->stream.engines != NULL ? stream_receive(c, i, version, err)
                                   : sampler_receive(c, i, version, err);
}

static gl_status sampler_starts(sim_clock *c, uint32_t i, bool just_loaded, gl_error *err) {
  return c->stream.engines != NULL ? stream_start(c, i, just_loaded, err)
                                   : sampler_start(c, i, just_loaded, err);
}

static gl_status link_is_free(sim_clock *c, uint32_t i, gl_error *err) {
  c->samplers[i].resend = 0;
  return sampler_push(c, i, err);
}

static gl_status interruption_ends(sim_clock *c, uint32_t i, gl_error *err) {
  int64_t next;
  if (!interrupt_end(c, i, &next)) return GL_OK;
  gl_status status = next >= 0 ? weights_arrive(c, i, next, err) : GL_OK;
  if (status != GL_OK || (next >= 0 && c->spec->colocated == NULL)) return status;
  return clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
}

static gl_status batch_lost(sim_clock *c, uint32_t slot) {
  ledger_discard(c, slot, FATE_LOST);
  return GL_OK;
}

/* Handler of TRANSFER_ARRIVES: passes a batch to the learner, or weights to a sampler. */
static gl_status transfer_arrives(sim_clock *c, uint64_t which, gl_error *err) {
  transfer t;
  if (!transfer_take_arrived(c, which, &t)) return GL_OK;
  if (t.cargo == CARGO_SHARD) return relay_shard_arrives(c, &t, err);
  if (t.cargo == CARGO_BATCH)
    return t.delivered ? learner_receive(c, t.slot, err) : batch_lost(c, t.slot);
  sampler *s = &c->samplers[t.sampler];
  if (t.is_delta &&
      s->crashes != t.crashes) { /* the sampler lost the weights that this delta refers to */
    version_release(c, t.version);
    return GL_OK;
  }
  if (c->spec->sync == SYNC_PUSH) return weights_arrive(c, t.sampler, t.version, err);
  s->ends_s = c->now;
  return sampler_loaded(c, t.sampler, (uint64_t)t.version, err);
}

static gl_status clock_handle(sim_clock *c, const sim_event *e, gl_error *err) {
  switch ((event_kind)e->kind) {
  case GENERATION_ENDS:
    return sampler_generated(c, e->node, err);
  case BATCH_ARRIVES:
    return learner_receive(c, (uint32_t)e->data, err);
  case BATCH_LOST:
    return batch_lost(c, (uint32_t)e->data);
  case WEIGHTS_LOADED:
    return sampler_loaded(c, e->node, e->data, err);
  case LINK_FREE:
    return link_is_free(c, e->node, err);
  case CRASH:
    return sampler_crash(c, e->node, err);
  case RETURN:
    return sampler_return(c, e->node, err);
  case WEIGHTS_ARRIVE:
    return weights_arrive(c, e->node, (int64_t)e->data, err);
  case GRADING_ENDS:
    return learner_graded(c, e->data, err);
  case UPDATE_ENDS:
    return learner_update_ends(c, err);
  case PAUSE_ENDS:
    return learner_pause_ends(c, err);
  case LEARNER_STARTS:
    return learner_start(c, err);
  case GPUS_SWITCHED:
    return learner_gpus_switched(c, e->data, err);
  case SAMPLER_STARTS:
    return sampler_starts(c, e->node, e->data == 1, err);
  case RESPONSE_ENDS:
    return stream_response_ends(c, e->node, e->data, err);
  case DECODING_MOVES:
    return stream_decoding_moves(c, e->node, e->data, err);
  case CALL_ENDS:
    return stream_call_ends(c, e->node, e->data, err);
  case INTERRUPTION_ENDS:
    return interruption_ends(c, e->node, err);
  case TRANSFER_MOVES:
    return transfer_moves(c, e->data, err);
  case TRANSFER_ARRIVES:
    return transfer_arrives(c, e->data, err);
  case NETWORK_SHARES:
    return transfer_shares(c, err);
  case FLOW_ENDS:
    return transfer_flow_ends(c, e->data, err);
  case OUTAGE_BEGINS:
    return outage_begin(c, e->node, e->data == 1, err);
  case OUTAGE_ENDS:
    return outage_end(c, e->node, e->data == 1, err);
  case RESTART_BEGINS:
    return restart_begin(c, err);
  case RESTART_ENDS:
    return restart_end(c, err);
  }
  return gl_fail(err, GL_EINTERNAL, "unknown event %u", e->kind);
}

/* --- the loop --- */

/* The error if the learner waits for units that can never arrive; `how` says what happened. */
static gl_status clock_deadlock(const sim_clock *c, const char *how, gl_error *err) {
  const cluster_spec *spec = c->spec;
  size_t gated = 0;
  for (size_t i = 0; i < spec->n_samplers; ++i) gated += c->samplers[i].state == SAMPLER_GATED;
  double delay = 0; /* the longest median of a group; named if it is longer than the whole run */
  for (size_t i = 0; i < spec->n_groups; ++i)
    delay = fmax(delay, delay_quantile(spec->groups[i].delay, 0.5));
  char wanted[64], weights[80] = "";
  if (delay > c->now)
    snprintf(weights, sizeof weights, "cluster.delay (weights take %g s), ", delay);
  if (spec->tokens > 0)
    snprintf(wanted, sizeof wanted, "%g tokens of %s", spec->tokens, cluster_unit_names(spec));
  else
    snprintf(wanted, sizeof wanted, "%zu %s", spec->take,
             spec->take == 1 ? field_word("cluster.unit", spec->unit) : cluster_unit_names(spec));
  return gl_fail(err, GL_ENUMERIC,
                 "the cluster %s after %lld updates at %g s: the learner waits for %s at "
                 "most %lld versions old and has %zu waiting; %zu of %zu samplers wait for newer "
                 "weights (the newest published is version %lld); look at %swindow, ahead, "
                 "learner.batches and publish_every",
                 how, (long long)c->learner.version, c->now, wanted, (long long)spec->window,
                 c->buffer.waiting, gated, spec->n_samplers, (long long)c->learner.published,
                 weights);
}

/* A dropped unit lets one more be started. If weights are pushed, wakes one gated sampler per freed
 * unit, the first ones whose gate is open. If weights are pulled, wakes all gated samplers, because
 * their weights may be due. */
static gl_status clock_wake_gated(sim_clock *c, gl_error *err) {
  gl_status status = GL_OK;
  const bool pull = c->spec->sync == SYNC_PULL;
  int places = c->ledger.freed;
  c->ledger.freed = 0;
  for (size_t i = 0; i < c->spec->n_samplers && status == GL_OK && places > 0; ++i) {
    const sampler *s = &c->samplers[i];
    const bool waits =
        s->state == SAMPLER_GATED || (c->stream.engines != NULL && c->stream.engines[i].gated);
    if (!waits || !(pull || sampler_gate_is_open(c, s))) continue;
    places -= !pull;
    status = clock_post(c, c->now, SAMPLER_STARTS, (uint32_t)i, 0, err);
  }
  return status;
}

static void ask_for(const void *of, size_t bytes) {
  for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch((const char *)of + i, 1);
}

/* With a million samplers, nearly all data of an event is in main memory. This prefetches the data
 * of the next events together, once each time that the event list refills its near heap: first the
 * samplers and batches named by the events, then the batches of those samplers and the segments of
 * those batches. */
static void clock_prefetch(const sim_clock *c) {
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

static gl_status clock_run(sim_clock *c, gl_error *err) {
  uint64_t limit = 20000000 + 2000 * (uint64_t)c->spec->n_samplers, quiet = 0, refills = 0;
  double lost_before = 0; /* units lost until the last update */
  /* restarts, which also lose batches, have a bound of their own */
  const double most_lost = c->spec->restarts != NULL ? INFINITY
                                                     : 10000 + 1000 * (double)c->spec->take +
                                                           100 * (double)c->spec->n_samplers;
  int64_t seen = 0;
  while ((size_t)c->learner.version < c->updates && !c->coupled.stopped) {
    sim_event e;
    if (fel_size(&c->events) == 0) return clock_deadlock(c, "stands still", err);
    if (!fel_pop(&c->events, &e)) return gl_fail_memory(err, "events");
    if (c->events.refills != refills) clock_prefetch(c);
    refills = c->events.refills;
    c->stats.waiting_integral_s += (double)c->buffer.waiting * (e.time - c->now);
    c->now = e.time;
    gl_status status = clock_handle(c, &e, err);
    if (status == GL_OK && c->ledger.wake_learner) {
      c->ledger.wake_learner = false;
      status = learner_wake(c, err);
    }
    if (status == GL_OK && c->ledger.freed && c->spec->ahead < INT64_MAX && !c->restarts.is_down)
      status = clock_wake_gated(c, err);
    if (status != GL_OK) return status;
    quiet = c->learner.version == seen ? quiet + 1 : 0;
    if (quiet == 0) lost_before = (double)c->out->fate[FATE_LOST].units;
    if ((double)c->out->fate[FATE_LOST].units - lost_before > most_lost)
      return gl_fail(err, GL_ENUMERIC,
                     "update %lld never comes: %.0f batches (or groups, or responses) were lost on "
                     "the way to the learner or in crashes since the last one; lower "
                     "cluster.up.loss, or raise its packet_bytes or max_retries, or mtbf",
                     (long long)c->learner.version + 1, most_lost);
    seen = c->learner.version;
    if (quiet > limit) return clock_deadlock(c, "no longer trains", err);
  }
  return GL_OK;
}

/* --- building a schedule --- */

static gl_status clock_allocate(sim_clock *c, const schedule_hooks *hooks, gl_error *err) {
  const cluster_spec *spec = c->spec;
  buffer_init(&c->buffer, spec->queue == QUEUE_HETERORL);
  fel_init(&c->events);
  eq_init(&c->slots);
  gl_status status = learner_init(c, err);
  if (spec->n_samplers <= SIZE_MAX / sizeof *c->samplers)
    c->samplers = aligned_alloc(CACHE_LINE, spec->n_samplers * sizeof *c->samplers);
  c->generator = rng_gsl_new(rng_stream_at(0, RNG_LOSS, 0));
  coupling_init(c, hooks);
  stream_init(c);
  ledger_init(c);
  interrupt_init(c);
  if (status == GL_OK) status = transfer_init(c, err);
  if (status == GL_OK && (c->samplers == NULL || c->generator == NULL))
    status = gl_fail_memory(err, "the schedule");
  return status;
}

static void clock_release(sim_clock *c) {
  fel_fini(&c->events);
  eq_fini(&c->slots);
  buffer_fini(&c->buffer);
  stream_fini(c);
  transfer_fini(c);
  coupling_fini(c);
  learner_fini(c);
  arena_fini(&c->memory);
  if (c->generator != NULL) gsl_rng_free(c->generator);
  free(c->samplers);
}

static gl_status clock_start(sim_clock *c, gl_error *err) {
  const cluster_spec *spec = c->spec;
  version_add_ref(c, c->learner.published);
  size_t i = 0;
  gl_status status = GL_OK;
  for (size_t g = 0; g < spec->n_groups; ++g)
    for (size_t k = 0; k < spec->groups[g].count && status == GL_OK; ++k, ++i) {
      sampler *s = &c->samplers[i];
      *s = (sampler){.group = &spec->groups[g], .slot = BUFFER_NONE};
      version_add_ref(c, s->version);
      if (spec->sync == SYNC_PULL) s->due_s = sampler_weights_delay(c, (uint32_t)i);
      status = sampler_plan_crash(c, (uint32_t)i, err);
      if (status == GL_OK) status = clock_post(c, 0, SAMPLER_STARTS, (uint32_t)i, 0, err);
    }
  if (status == GL_OK && c->net.sites != NULL) status = outage_plan(c, err);
  if (status == GL_OK) status = restart_plan(c, err);
  return status;
}

/* Traces spans that are still open when the clock ends. */
static void clock_trace_open(const sim_clock *c) {
  for (size_t i = 0; i < c->spec->n_samplers; ++i) {
    sampler_trace(c, (uint32_t)i, SPAN_OPEN);
    interrupt_trace(c, (uint32_t)i, SPAN_OPEN);
    if (c->stream.engines != NULL) stream_trace_open(c, (uint32_t)i);
  }
  transfer_trace_open(c);
  if (c->spec->restarts != NULL && c->learner.gpus == GPUS_SWITCH)
    learner_trace_switch(c, SPAN_OPEN, c->now);
  for (uint32_t i = c->buffer.oldest; i != BUFFER_NONE; i = c->buffer.pool[i].newer) {
    const schedule_batch *b = &c->buffer.pool[i].facts;
    clock_trace(c, (schedule_span){SPAN_QUEUED, SPAN_OPEN, b->sampler, b->arrived_s, c->now,
                                   b->number, -1});
  }
}

static gl_status clock_build(schedule *out, const cluster_spec *spec, uint64_t seed, size_t updates,
                             const schedule_hooks *hooks, const schedule_trace *trace,
                             gl_error *err) {
  *out = (schedule){0};
  sim_clock c = {.spec = spec, .seed = seed, .updates = updates, .trace = trace, .out = out};
  gl_status status = clock_allocate(&c, hooks, err);
  if (status == GL_OK) status = clock_start(&c, err);
  if (status == GL_OK) status = clock_run(&c, err);
  if (status == GL_OK) status = clock_summarise(&c, err);
  if (status == GL_OK && trace != NULL) clock_trace_open(&c);
  clock_release(&c);
  if (status != GL_OK) schedule_fini(out);
  return status;
}

gl_status schedule_build(schedule *out, const cluster_spec *spec, uint64_t seed, size_t updates,
                         gl_error *err) {
  return clock_build(out, spec, seed, updates, NULL, NULL, err);
}

gl_status schedule_build_coupled(schedule *out, const cluster_spec *spec, uint64_t seed,
                                 size_t updates, const schedule_hooks *hooks, gl_error *err) {
  return clock_build(out, spec, seed, updates, hooks, NULL, err);
}

gl_status schedule_build_traced(schedule *out, const cluster_spec *spec, uint64_t seed,
                                size_t updates, const schedule_trace *trace, gl_error *err) {
  return clock_build(out, spec, seed, updates, NULL, trace, err);
}
