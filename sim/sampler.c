/* Samplers that generate whole batches, and what every sampler does: it fetches or is sent weights
 * and sends what it has generated. Where units stream, stream.c says what is generated when. */
#include "sim/clock.h"

#include <math.h>
#include <stdlib.h>

/* No generation takes less, so that simulated time always moves on. */
static const double shortest_generation_s = 1e-9;

static link_trip send_down(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  link_trip trip = link_send(&s->group->down, &s->down, sampler_losses(c, i, 0), c->generator,
                             c->now, c->spec->weights_bytes);
  c->stats.bytes_down += trip.bytes;
  c->stats.retransmissions += trip.retransmissions;
  return trip;
}

gl_status sampler_fetch(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (c->net.peers != NULL) {
    sampler_enter(c, i, SAMPLER_LOADING, SPAN_DONE);
    s->ends_s = INFINITY; /* unknown */
    return transfer_weights(c, i, err);
  }
  link_trip trip = send_down(c, i);
  sampler_enter(c, i, SAMPLER_LOADING, SPAN_DONE);
  s->ends_s = trip.end_s;
  clock_trace(c, (schedule_span){SPAN_DOWNLOAD, trip.delivered ? SPAN_DONE : SPAN_LOST, i, c->now,
                                 trip.end_s, 0, c->learner.published});
  uint64_t version = trip.delivered ? (uint64_t)c->learner.published : UINT64_MAX;
  if (trip.delivered) version_add_ref(c, c->learner.published);
  return clock_post(c, trip.end_s, WEIGHTS_LOADED, i, version, err);
}

/* Puts the seconds of all rounds of a batch in place of those of what it sends. Lengths of real
 * responses fit the clock's doubles. False: memory is short. */
static bool rounds_cost(sim_clock *c, const response_spec *r, const schedule_rounds *taken,
                        response_cost *cost) {
  double *lengths = calloc(taken->responses, sizeof *lengths);
  bool fits = lengths != NULL;
  cost->seconds = 0;
  for (size_t k = 0; k < taken->n && fits; ++k) {
    response_cost of_round;
    for (size_t i = 0; i < taken->responses; ++i)
      lengths[i] = taken->lengths[k * taken->responses + i];
    fits = response_known(&of_round, r, &c->slots, lengths, taken->responses);
    cost->seconds += of_round.seconds;
  }
  free(lengths);
  return fits;
}

/* What the responses of a batch cost: by the lengths of real responses, by drawn lengths, or
 * nothing where the cluster has no distribution of lengths; and in how many rounds they were drawn.
 */
static gl_status draw_lengths(sim_clock *c, sampler *s, const schedule_batch *facts,
                              response_cost *cost, size_t *rounds, gl_error *err) {
  const response_spec *r = &s->group->responses;
  const schedule_hooks *hooks = c->coupled.hooks;
  const size_t n = c->spec->samples_per_batch;
  schedule_rounds taken = {0};
  bool fits = true;
  *cost = (response_cost){0, 0, 0};
  if (hooks != NULL) {
    gl_status status = hooks->draw(hooks->self, facts, s->version, c->coupled.lengths, err);
    if (status != GL_OK) return status;
    fits = response_known(cost, r, &c->slots, c->coupled.lengths, n);
    if (hooks->rounds != NULL) hooks->rounds(hooks->self, facts, &taken);
    if (fits && taken.n > 0) fits = rounds_cost(c, r, &taken, cost);
  } else if (r->lengths != NULL) {
    fits = response_draw(cost, r, &c->slots, c->seed, facts->id, n);
  }
  *rounds = taken.n > 0 ? taken.n : 1;
  c->out->rounds += *rounds;
  c->out->drawn_responses += taken.n > 0 ? taken.n * taken.responses : n;
  return fits ? GL_OK : gl_fail_memory(err, "response lengths");
}

/* Seconds that a batch will take, its tokens and bytes. */
static gl_status draw_generation(sim_clock *c, sampler *s, schedule_batch *facts, double *seconds,
                                 gl_error *err) {
  const sampler_group *g = s->group;
  response_cost cost;
  size_t rounds;
  gl_status status = draw_lengths(c, s, facts, &cost, &rounds, err);
  if (status != GL_OK) return status;
  double once = 0;
  for (size_t k = 0; k < rounds; ++k) once += sampler_generation(c, facts->sampler);
  double factor = sampler_jitter(c, facts->sampler);
  *seconds = (once + cost.seconds) * factor / g->speed;
  facts->tokens = cost.tokens;
  facts->longest = cost.longest;
  facts->bytes = c->spec->rollout_bytes + c->spec->bytes_per_token * cost.tokens;
  return GL_OK;
}

gl_status sampler_start(sim_clock *c, uint32_t i, bool just_loaded, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (s->state != SAMPLER_READY && s->state != SAMPLER_GATED) return GL_OK;
  if (c->spec->sync == SYNC_PULL && s->due_s <= c->now && !just_loaded)
    return sampler_fetch(c, i, err);
  if (!sampler_gate_is_open(c, s)) {
    sampler_enter(c, i, SAMPLER_GATED, SPAN_DONE);
    if (c->spec->sync == SYNC_PULL && s->due_s > c->now)
      return clock_post(c, s->due_s, SAMPLER_STARTS, i, 0, err);
    return GL_OK;
  }
  sampler_enter(c, i, SAMPLER_GENERATING, SPAN_DONE);
  interrupt_reset(c, i);
  s->slot = buffer_take(&c->buffer, s->version);
  if (s->slot == BUFFER_NONE) return gl_fail_memory(err, "batches in flight");
  schedule_batch *facts = &c->buffer.pool[s->slot].facts;
  facts->id = (uint64_t)i << 32 | s->ordinal++;
  facts->number = c->ledger.begun;
  facts->sampler = i;
  double time;
  gl_status status = draw_generation(c, s, facts, &time, err);
  if (status != GL_OK) return status;
  ledger_begin(c, s->slot);
  facts->start_s = c->now;
  s->ends_s = c->now + fmax(time, shortest_generation_s);
  return clock_post(c, s->ends_s, GENERATION_ENDS, i, 0, err);
}

gl_status sampler_send(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err) {
  sampler *s = &c->samplers[i];
  schedule_batch *facts = &c->buffer.pool[slot].facts;
  facts->generated_s = c->now;
  ++c->ledger.generated;
  if (c->net.peers != NULL) return transfer_batch(c, i, slot, err);
  link_trip trip =
      link_send(&s->group->up, &s->up, sampler_losses(c, i, 1), c->generator, c->now, facts->bytes);
  c->stats.bytes_up += trip.bytes;
  c->stats.retransmissions += trip.retransmissions;
  double arrival = trip.end_s + sampler_data_delay(c, i);
  const event_kind kind = trip.delivered ? BATCH_ARRIVES : BATCH_LOST;
  clock_trace(c, (schedule_span){SPAN_UPLOAD, trip.delivered ? SPAN_DONE : SPAN_LOST, i, c->now,
                                 arrival, facts->number, -1});
  return clock_post(c, arrival, kind, i, slot, err);
}

gl_status sampler_generated(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (s->state != SAMPLER_GENERATING || s->ends_s != c->now) return GL_OK; /* crashed since */
  s->busy_s += c->now - s->begun_s;
  sampler_enter(c, i, SAMPLER_READY, SPAN_DONE);
  gl_status status = sampler_send(c, i, s->slot, err);
  return status != GL_OK ? status : clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
}

gl_status sampler_receive(sim_clock *c, uint32_t i, int64_t version, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (version <= s->version || s->state == SAMPLER_DOWN) { /* overtaken on the way */
    version_release(c, version);
    return GL_OK;
  }
  if (interrupt_is_on(c, i)) {
    interrupt_hold(c, i, version);
    return GL_OK;
  }
  version_release(c, s->version);
  s->version = version;
  if (s->state == SAMPLER_GATED) return clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
  if (s->state != SAMPLER_GENERATING || !c->spec->in_flight) return GL_OK;
  const double begun = s->begun_s + (c->interrupts.of != NULL ? c->interrupts.of[i].paused_s : 0);
  const double done = (c->now - begun) / (s->ends_s - begun);
  if (done >= 1) return GL_OK;
  if (!buffer_switch(&c->buffer, s->slot, done, version)) return gl_fail_memory(err, "segments");
  if (c->interrupts.of == NULL) return GL_OK;
  s->ends_s += c->spec->interrupt;
  gl_status status = interrupt_begin(c, i, c->spec->interrupt, 0, err);
  return status == GL_OK ? clock_post(c, s->ends_s, GENERATION_ENDS, i, 0, err) : status;
}

/* SYNC_PUSH: sends the newest weights, or once the link is free: older ones are then skipped. What
 * is lost for good is sent again. */
gl_status sampler_push(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (c->net.peers != NULL) return transfer_weights(c, i, err);
  if (s->down.free_at > c->now) {
    if (s->resend) return GL_OK;
    s->resend = 1;
    return clock_post(c, s->down.free_at, LINK_FREE, i, 0, err);
  }
  link_trip trip = send_down(c, i);
  if (!trip.delivered) {
    s->resend = 1;
    clock_trace(c, (schedule_span){SPAN_DOWNLOAD, SPAN_LOST, i, c->now, trip.end_s, 0,
                                   c->learner.published});
    return clock_post(c, trip.end_s, LINK_FREE, i, 0, err);
  }
  double arrival = trip.end_s + sampler_weights_delay(c, i);
  version_add_ref(c, c->learner.published);
  clock_trace(
      c, (schedule_span){SPAN_DOWNLOAD, SPAN_DONE, i, c->now, arrival, 0, c->learner.published});
  return clock_post(c, arrival, WEIGHTS_ARRIVE, i, (uint64_t)c->learner.published, err);
}
