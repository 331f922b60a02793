/* What happens at samplers: weights come, batches are generated and sent, crashes. Where units
 * stream, stream.c says what is generated when. */
#include "core/random/rng.h"
#include "sim/clock.h"

#include <math.h>
#include <stdlib.h>

/* No generation takes less, so that simulated time always moves on. */
static const double shortest_generation_s = 1e-9;
/* RNG_DELAY entities: 2i and 2i + 1 are the up and down links of sampler i. */
static const uint64_t shared_link = UINT64_MAX;

/* The next draw of a sampler's distribution; few bytes of state, for there may be millions of
 * samplers. */
static double draw(const delay_dist *dist, uint64_t seed, rng_purpose purpose, uint64_t entity,
                   draw_state *state) {
  delay_source source = {rng_stream_at(seed, purpose, entity), state->index, (int)state->bad};
  double x = delay_draw(dist, &source);
  *state = (draw_state){(uint32_t)source.index, (uint32_t)source.bad};
  return x;
}

double sampler_weights_delay(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  uint64_t link = c->spec->shared_delays ? shared_link : 2 * (uint64_t)i + 1;
  return draw(s->group->delay, c->seed, RNG_DELAY, link, &s->delay);
}

double sampler_data_delay(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  return draw(s->group->data_delay, c->seed, RNG_DELAY, 2 * (uint64_t)i, &s->data_delay);
}

void sampler_tell(const sim_clock *c, uint32_t i, span_end end) {
  const sampler *s = &c->samplers[i];
  switch (s->state) {
  case SAMPLER_READY:
    return;
  case SAMPLER_GENERATING:
    if (c->stream.engines != NULL) return; /* told of unit by unit */
    clock_tell(c, SPAN_GENERATION, end, i, s->begun_s, c->now, c->buffer.pool[s->slot].facts.number,
               -1);
    return;
  case SAMPLER_GATED:
    clock_tell(c, SPAN_GATED, end, i, s->begun_s, c->now, 0, -1);
    return;
  case SAMPLER_LOADING:
    clock_tell(c, SPAN_FETCH, end, i, s->begun_s, c->now, 0, -1);
    return;
  case SAMPLER_DOWN:
    clock_tell(c, SPAN_DOWN, end, i, s->begun_s, c->now, 0, -1);
    return;
  }
}

void sampler_enter(sim_clock *c, uint32_t i, sampler_state state, span_end end) {
  sampler *s = &c->samplers[i];
  if (s->state == state) return;
  if (c->trace != NULL) sampler_tell(c, i, end);
  c->gated += state == SAMPLER_GATED;
  c->gated -= s->state == SAMPLER_GATED;
  s->state = state;
  s->begun_s = c->now;
}

rng_stream sampler_losses(const sim_clock *c, uint32_t i, int up) {
  return rng_stream_at(c->seed, RNG_LOSS, 2 * (uint64_t)i + !up);
}

static link_trip send_down(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  link_trip trip = link_send(&s->group->down, &s->down, sampler_losses(c, i, 0), c->generator,
                             c->now, c->spec->weights_bytes);
  c->bytes_down += trip.bytes;
  c->retransmissions += trip.retransmissions;
  return trip;
}

gl_status sampler_fetches(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (c->net.peers != NULL) {
    sampler_enter(c, i, SAMPLER_LOADING, SPAN_DONE);
    s->ends_s = INFINITY; /* unknown */
    return transfer_weights(c, i, err);
  }
  link_trip trip = send_down(c, i);
  sampler_enter(c, i, SAMPLER_LOADING, SPAN_DONE);
  s->ends_s = trip.end_s;
  clock_tell(c, SPAN_DOWNLOAD, trip.delivered ? SPAN_DONE : SPAN_LOST, i, c->now, trip.end_s, 0,
             c->published);
  uint64_t version = trip.delivered ? (uint64_t)c->published : UINT64_MAX;
  if (trip.delivered) coupling_take(c, c->published);
  return clock_post(c, trip.end_s, RANK_ARRIVAL, WEIGHTS_LOADED, i, version, err);
}

gl_status sampler_loaded(sim_clock *c, uint32_t i, uint64_t version, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (s->state != SAMPLER_LOADING || s->ends_s != c->now) { /* crashed since */
    coupling_leave(c, version != UINT64_MAX ? (int64_t)version : -1);
    return GL_OK;
  }
  if (version != UINT64_MAX) {
    coupling_leave(c, s->version);
    s->version = (int64_t)version;
  }
  s->due_s = c->now + sampler_weights_delay(c, i);
  sampler_enter(c, i, SAMPLER_READY, version != UINT64_MAX ? SPAN_DONE : SPAN_LOST);
  return clock_post(c, c->now, RANK_SAMPLER, SAMPLER_STARTS, i, 1, err);
}

/* Bounded staleness: unit number `gate_count` belongs to update gate_count / take, which may be
 * at most `ahead` past the version it is generated with. */
int sampler_gate_is_open(const sim_clock *c, const sampler *s) {
  if (s->version < 0) return 0; /* back from a crash, without weights */
  int64_t ahead = c->spec->ahead;
  int64_t update = (int64_t)(c->gate_count / c->spec->take);
  return update - s->version <= ahead;
}

/* Puts the seconds of all rounds of a batch in place of those of what it sends. Lengths of real
 * responses fit the clock's doubles. 0: memory is short. */
static int rounds_cost(sim_clock *c, const response_spec *r, const schedule_rounds *taken,
                       response_cost *cost) {
  double *lengths = calloc(taken->responses, sizeof *lengths);
  int fits = lengths != NULL;
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
  int fits = 1;
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

double sampler_jitter(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  return draw(s->group->jitter, c->seed, RNG_GENERATION, 2 * (uint64_t)i + 1, &s->jitter);
}

/* Seconds that a batch will take, its tokens and bytes. */
static gl_status draw_generation(sim_clock *c, sampler *s, schedule_batch *facts, double *seconds,
                                 gl_error *err) {
  const sampler_group *g = s->group;
  response_cost cost;
  size_t rounds;
  gl_status status = draw_lengths(c, s, facts, &cost, &rounds, err);
  if (status != GL_OK) return status;
  uint64_t i = facts->sampler;
  double once = 0;
  for (size_t k = 0; k < rounds; ++k)
    once += draw(g->generation, c->seed, RNG_GENERATION, 2 * i, &s->generation);
  double factor = sampler_jitter(c, facts->sampler);
  *seconds = (once + cost.seconds) * factor / g->speed;
  facts->tokens = cost.tokens;
  facts->longest = cost.longest;
  facts->bytes = c->spec->rollout_bytes + c->spec->bytes_per_token * cost.tokens;
  return GL_OK;
}

/* just_loaded: weights came this moment, and a delay of 0 does not fetch them twice. */
gl_status sampler_starts(sim_clock *c, uint32_t i, int just_loaded, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (s->state != SAMPLER_READY && s->state != SAMPLER_GATED) return GL_OK;
  if (c->spec->sync == SYNC_PULL && s->due_s <= c->now && !just_loaded)
    return sampler_fetches(c, i, err);
  if (!sampler_gate_is_open(c, s)) {
    sampler_enter(c, i, SAMPLER_GATED, SPAN_DONE);
    if (c->spec->sync == SYNC_PULL && s->due_s > c->now)
      return clock_post(c, s->due_s, RANK_SAMPLER, SAMPLER_STARTS, i, 0, err);
    return GL_OK;
  }
  sampler_enter(c, i, SAMPLER_GENERATING, SPAN_DONE);
  interrupt_begins_batch(c, i);
  s->slot = buffer_take(&c->buffer, s->version);
  if (s->slot == BUFFER_NONE) return gl_fail_memory(err, "batches in flight");
  schedule_batch *facts = &c->buffer.pool[s->slot].facts;
  facts->id = (uint64_t)i << 32 | s->ordinal++;
  facts->number = c->begun;
  facts->sampler = i;
  double time;
  gl_status status = draw_generation(c, s, facts, &time, err);
  if (status != GL_OK) return status;
  selection_begins(c, s->slot);
  facts->start_s = c->now;
  s->ends_s = c->now + fmax(time, shortest_generation_s);
  ++c->gate_count;
  return clock_post(c, s->ends_s, RANK_ARRIVAL, GENERATION_ENDS, i, 0, err);
}

gl_status sampler_sends(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err) {
  sampler *s = &c->samplers[i];
  schedule_batch *facts = &c->buffer.pool[slot].facts;
  facts->generated_s = c->now;
  ++c->generated;
  if (c->net.peers != NULL) return transfer_batch(c, i, slot, err);
  link_trip trip =
      link_send(&s->group->up, &s->up, sampler_losses(c, i, 1), c->generator, c->now, facts->bytes);
  c->bytes_up += trip.bytes;
  c->retransmissions += trip.retransmissions;
  double arrival = trip.end_s + sampler_data_delay(c, i);
  uint32_t kind = trip.delivered ? BATCH_ARRIVES : BATCH_LOST;
  clock_tell(c, SPAN_UPLOAD, trip.delivered ? SPAN_DONE : SPAN_LOST, i, c->now, arrival,
             facts->number, -1);
  return clock_post(c, arrival, RANK_ARRIVAL, kind, i, slot, err);
}

gl_status sampler_generated(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (s->state != SAMPLER_GENERATING || s->ends_s != c->now) return GL_OK; /* crashed since */
  s->busy_s += c->now - s->begun_s;
  sampler_enter(c, i, SAMPLER_READY, SPAN_DONE);
  gl_status status = sampler_sends(c, i, s->slot, err);
  return status != GL_OK ? status : clock_post(c, c->now, RANK_SAMPLER, SAMPLER_STARTS, i, 0, err);
}

gl_status sampler_receives(sim_clock *c, uint32_t i, int64_t version, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (version <= s->version || s->state == SAMPLER_DOWN) { /* overtaken on the way */
    coupling_leave(c, version);
    return GL_OK;
  }
  if (interrupt_stands(c, i)) {
    interrupt_keeps(c, i, version);
    return GL_OK;
  }
  coupling_leave(c, s->version);
  s->version = version;
  if (s->state == SAMPLER_GATED)
    return clock_post(c, c->now, RANK_SAMPLER, SAMPLER_STARTS, i, 0, err);
  if (s->state != SAMPLER_GENERATING || !c->spec->in_flight) return GL_OK;
  const double begun = s->begun_s + (c->interrupts.of != NULL ? c->interrupts.of[i].stood_s : 0);
  const double done = (c->now - begun) / (s->ends_s - begun);
  if (done >= 1) return GL_OK;
  if (!buffer_switch(&c->buffer, s->slot, done, version)) return gl_fail_memory(err, "segments");
  if (c->interrupts.of == NULL) return GL_OK;
  s->ends_s += c->spec->interrupt;
  gl_status status = interrupt_begins(c, i, c->spec->interrupt, 0, err);
  return status == GL_OK ? clock_post(c, s->ends_s, RANK_ARRIVAL, GENERATION_ENDS, i, 0, err)
                         : status;
}

/* SYNC_PUSH: sends the newest weights, or once the link is free: older ones are then skipped. What
 * is lost for good is sent again. */
gl_status sampler_push(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (c->net.peers != NULL) return transfer_weights(c, i, err);
  if (s->down.free_at > c->now) {
    if (s->resend) return GL_OK;
    s->resend = 1;
    return clock_post(c, s->down.free_at, RANK_ARRIVAL, LINK_FREE, i, 0, err);
  }
  link_trip trip = send_down(c, i);
  if (!trip.delivered) {
    s->resend = 1;
    clock_tell(c, SPAN_DOWNLOAD, SPAN_LOST, i, c->now, trip.end_s, 0, c->published);
    return clock_post(c, trip.end_s, RANK_ARRIVAL, LINK_FREE, i, 0, err);
  }
  double arrival = trip.end_s + sampler_weights_delay(c, i);
  coupling_take(c, c->published);
  clock_tell(c, SPAN_DOWNLOAD, SPAN_DONE, i, c->now, arrival, 0, c->published);
  return clock_post(c, arrival, RANK_ARRIVAL, WEIGHTS_ARRIVE, i, (uint64_t)c->published, err);
}

void sampler_loses(sim_clock *c, uint32_t slot) {
  ++c->lost;
  forget_batch(c, slot, FATE_LOST);
}

gl_status sampler_plan_crash(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (delay_is_zero(s->group->mtbf)) return GL_OK;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, i), 2 * (uint64_t)s->crashes, 0};
  double up = fmax(delay_draw(s->group->mtbf, &draw), shortest_generation_s);
  return clock_post(c, c->now + up, RANK_ARRIVAL, CRASH, i, 0, err);
}

/* A crash loses the batch being generated and the weights; what is on its way still arrives. */
gl_status sampler_crashes(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  const int generates = s->state == SAMPLER_GENERATING;
  if (generates) s->busy_s += c->now - s->begun_s;
  sampler_enter(c, i, SAMPLER_DOWN, generates ? SPAN_LOST : SPAN_DONE);
  if (c->stream.engines != NULL)
    stream_crashes(c, i);
  else if (generates)
    sampler_loses(c, s->slot);
  interrupt_crashes(c, i);
  if (c->net.peers != NULL) transfer_crash(c, i);
  coupling_leave(c, s->version);
  s->version = -1;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, i), 2 * (uint64_t)s->crashes++ + 1, 0};
  return clock_post(c, c->now + delay_draw(s->group->mttr, &draw), RANK_ARRIVAL, RETURN, i, 0, err);
}

gl_status sampler_returns(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  sampler_enter(c, i, SAMPLER_GATED, SPAN_DONE);
  s->due_s = c->now;
  gl_status status = sampler_plan_crash(c, i, err);
  if (status != GL_OK) return status;
  if (c->spec->sync == SYNC_PUSH) return sampler_push(c, i, err);
  return clock_post(c, c->now, RANK_SAMPLER, SAMPLER_STARTS, i, 0, err);
}
