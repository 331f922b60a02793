/* Samplers: fetching or receiving weights, generating whole batches, sending them, and (second part
 * of the file) streaming of groups or responses. A sampler always receives the version published
 * last; over a shared network that is decided when the bytes begin to flow (transfer.c). */
#include "core/base/array.h"
#include "sim/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- response lengths and decoding times --- */

static double draw_length(const response_spec *spec, delay_source *source, double factor) {
  return fmin(fmax(round(factor * delay_draw(spec->lengths, source)), 1), floor(spec->max_tokens));
}

/* Continuous batching: assigns the next response to the slot that is free first. */
static int take_slot(const response_spec *spec, event_queue *slots, double length, double *end) {
  double begin = 0;
  if (slots->size == spec->concurrency) {
    begin = eq_top(slots)->time;
    eq_replace(slots, begin + length, 0, 0, 0, 0);
  } else if (!eq_push(slots, length, 0, 0, 0, 0)) {
    return 0;
  }
  *end = fmax(*end, begin + length);
  return 1;
}

/* State of decoding one batch. */
typedef struct decoder {
  const response_spec *spec;
  event_queue *slots;
  size_t begun, responses;
  double tokens;
  double decoded; /* tokens decoded by the busiest slot; padded: sum of the longest responses of
                     all previous waves */
  double wave;    /* longest response of this wave */
  double longest; /* longest response of all */
} decoder;

/* Adds the time to decode the batch's next response, of this length. Returns 0 if out of memory. */
static int decode(decoder *d, double length) {
  d->tokens += length;
  d->longest = fmax(d->longest, length);
  ++d->begun;
  if (d->spec->batching == BATCHING_CONTINUOUS)
    return take_slot(d->spec, d->slots, length, &d->decoded);
  d->wave = fmax(d->wave, length);
  if (d->begun % d->spec->concurrency == 0 || d->begun == d->responses) {
    d->decoded += d->wave;
    d->wave = 0;
  }
  return 1;
}

static decoder begin(const response_spec *spec, event_queue *slots, size_t responses) {
  slots->size = 0;
  return (decoder){.spec = spec, .slots = slots, .responses = responses};
}

static response_cost decoding_cost(const decoder *d) {
  return (response_cost){
      .seconds = d->decoded / d->spec->tokens_per_s, .tokens = d->tokens, .longest = d->longest};
}

/* The lengths of a batch's responses, one after the other. */
typedef struct length_draws {
  delay_source source, prompts;
  double factor;
} length_draws;

static length_draws length_draws_of(uint64_t seed, uint64_t batch) {
  return (length_draws){
      {rng_stream_at(seed, RNG_LENGTH, batch), 0, 0}, response_prompts(seed, batch), 1};
}

static double next_length(length_draws *d, const response_spec *spec, size_t k) {
  if (spec->prompts != NULL && k % spec->group_size == 0)
    d->factor = delay_draw(spec->prompts, &d->prompts);
  return draw_length(spec, &d->source, d->factor);
}

int response_draw(response_cost *out, const response_spec *spec, event_queue *slots, uint64_t seed,
                  uint64_t batch, size_t responses) {
  length_draws draws = length_draws_of(seed, batch);
  decoder d = begin(spec, slots, responses);
  for (size_t k = 0; k < responses; ++k)
    if (!decode(&d, next_length(&draws, spec, k))) return 0;
  *out = decoding_cost(&d);
  return 1;
}

void response_batch_lengths(double *lengths, const response_spec *spec, uint64_t seed,
                            uint64_t batch, size_t responses) {
  length_draws draws = length_draws_of(seed, batch);
  for (size_t k = 0; k < responses; ++k) lengths[k] = next_length(&draws, spec, k);
}

int response_known(response_cost *out, const response_spec *spec, event_queue *slots,
                   const double *lengths, size_t responses) {
  decoder d = begin(spec, slots, responses);
  for (size_t k = 0; k < responses; ++k)
    if (!decode(&d, lengths[k])) return 0;
  *out = decoding_cost(&d);
  return 1;
}

double response_draw_lengths(double *lengths, const response_spec *spec, uint64_t seed, uint64_t id,
                             uint64_t prompt, size_t n) {
  delay_source source = {rng_stream_at(seed, RNG_LENGTH, id), 0, 0};
  const double factor = response_prompt(spec, seed, prompt);
  for (size_t k = 0; k < n; ++k) lengths[k] = draw_length(spec, &source, factor);
  return factor;
}

/* --- samplers that generate whole batches --- */

/* Minimum generation time, so that simulated time always advances. */
static const double shortest_generation_s = 1e-9;

static link_trip send_down(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  link_trip trip = link_send(&s->group->down, &s->down, sampler_losses(c, i, 0), c->generator,
                             c->now, c->spec->weights_bytes);
  c->stats.bytes_down += trip.bytes;
  c->stats.retransmissions += trip.retransmissions;
  return trip;
}

/* SYNC_PULL: fetches the newest weights while the sampler waits. */
static gl_status sampler_fetch(sim_clock *c, uint32_t i, gl_error *err) {
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

/* Replaces the decoding time of the responses sent by that of all rounds of a batch. Lengths of
 * real responses are exact in double. Returns false if out of memory. */
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

/* Computes the cost of a batch's responses from lengths of real responses or sampled lengths, or 0
 * if the cluster has no length distribution; *rounds is the number of rounds in which they were
 * sampled. */
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

/* Computes the generation time of a batch, its tokens and bytes. */
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
  if (interrupt_is_on(c, i)) return GL_OK;
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

/* Sends a unit to the learner after its generation. */
static gl_status sampler_send(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err) {
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
  if (s->state != SAMPLER_GENERATING || s->ends_s != c->now)
    return GL_OK; /* the sampler crashed meanwhile */
  s->busy_s += c->now - s->begun_s;
  sampler_enter(c, i, SAMPLER_READY, SPAN_DONE);
  gl_status status = sampler_send(c, i, s->slot, err);
  return status != GL_OK ? status : clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
}

gl_status sampler_receive(sim_clock *c, uint32_t i, int64_t version, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (version <= s->version || s->state == SAMPLER_DOWN) { /* newer weights arrived first */
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
  if (!c->interrupts.by_weights) return GL_OK;
  s->ends_s += c->spec->interrupt;
  gl_status status = interrupt_begin(c, i, c->spec->interrupt, 0, err);
  return status == GL_OK ? clock_post(c, s->ends_s, GENERATION_ENDS, i, 0, err) : status;
}

/* SYNC_PUSH: sends the newest weights now or, skipping older versions, when the link is free.
 * Messages that are lost for good are sent again. */
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

/* --- samplers that stream units --- */
/* Streaming follows engines with continuous batching: a sampler decodes up to `concurrency`
 * responses. A free slot immediately takes the next response, of the unit in progress or of a new
 * one. A unit is sent when its last response has ended, so short units arrive first, and a
 * straggler delays only its own unit.
 *
 * Weights that are due for pulling are fetched when nothing is in progress; until then no unit is
 * started. cluster.partial determines what happens to units in progress when weights are pushed. */

enum { NO_RESPONSE = UINT32_MAX };
/* Minimum decoding time of a response, so that simulated time always advances. */
static const double shortest_response_s = 1e-9;

void stream_init(sim_clock *c) {
  streaming *t = &c->stream;
  t->free = NO_RESPONSE;
  if (c->spec->unit == UNIT_BATCH) return;
  t->engines = ARENA_ARRAY(&c->memory, engine, c->spec->n_samplers);
  for (size_t i = 0; t->engines != NULL && i < c->spec->n_samplers; ++i)
    t->engines[i] = (engine){.first = NO_RESPONSE, .open = BUFFER_NONE, .coming = -1};
  load_init(c);
  turns_init(c);
}

void stream_fini(sim_clock *c) {
  streaming *t = &c->stream;
  for (size_t i = 0; i < t->n_units; ++i) {
    free(t->units[i].lengths);
    free(t->units[i].from);
  }
  free(t->units);
  free(t->running);
  load_fini(c);
  turns_fini(c);
}

size_t stream_bytes(const sim_clock *c) {
  const streaming *t = &c->stream;
  size_t bytes = t->n_units * sizeof *t->units + t->capacity * sizeof *t->running + load_bytes(c);
  for (size_t i = 0; i < t->n_units; ++i) {
    bytes += t->units[i].lengths != NULL ? c->spec->unit_responses * sizeof(double) : 0;
    bytes += t->units[i].from != NULL ? c->spec->unit_responses * sizeof(size_t) : 0;
  }
  return bytes + turns_bytes(c);
}

/* --- running responses --- */

/* Adds an entry at the head of the sampler's list; NO_RESPONSE if out of memory. */
static uint32_t take_place(streaming *t, engine *e) {
  if (t->free == NO_RESPONSE && (t->n_running >= NO_RESPONSE - 1 ||
                                 !ARRAY_RESERVE(t->running, t->capacity, t->n_running + 1)))
    return NO_RESPONSE;
  uint32_t index = t->free;
  if (index == NO_RESPONSE) {
    index = (uint32_t)t->n_running++;
    t->running[index].serial = 0;
  } else {
    t->free = t->running[index].next;
  }
  running_response *r = &t->running[index];
  r->previous = NO_RESPONSE;
  r->next = e->first;
  if (e->first != NO_RESPONSE) t->running[e->first].previous = index;
  e->first = index;
  ++e->running;
  return index;
}

static void give_place_back(streaming *t, engine *e, uint32_t index) {
  running_response *r = &t->running[index];
  *(r->previous == NO_RESPONSE ? &e->first : &t->running[r->previous].next) = r->next;
  if (r->next != NO_RESPONSE) t->running[r->next].previous = r->previous;
  ++r->serial;
  r->next = t->free;
  t->free = index;
  --e->running;
}

/* --- units --- */

/* Whether new weights make a coupled learner sample the rest of each response again. */
static bool resamples(const sim_clock *c) {
  return c->coupled.hooks != NULL && c->spec->partial == PARTIAL_CONTINUE;
}

/* Resets the progress of the unit in this slot, and allocates its arrays; false if out of memory.
 */
static bool reserve_unit(sim_clock *c, uint32_t slot) {
  streaming *t = &c->stream;
  if (slot >= t->n_units) {
    const size_t n = c->buffer.capacity;
    if (n > SIZE_MAX / sizeof *t->units) return false;
    unit_progress *more = realloc(t->units, n * sizeof *more);
    if (more == NULL) return false;
    t->units = more;
    for (; t->n_units < n; ++t->n_units) t->units[t->n_units] = (unit_progress){0};
  }
  unit_progress *u = &t->units[slot];
  u->begun = u->running = 0;
  u->prompt = 1;
  if (u->lengths == NULL) u->lengths = calloc(c->spec->unit_responses, sizeof *u->lengths);
  if (u->from == NULL && resamples(c)) u->from = calloc(c->spec->unit_responses, sizeof *u->from);
  return u->lengths != NULL && (u->from != NULL || !resamples(c));
}

/* Computes the tokens, longest response and bytes of a unit from its lengths. */
static void add_up_lengths(const cluster_spec *spec, schedule_batch *facts, const double *lengths) {
  facts->tokens = facts->longest = 0;
  for (size_t k = 0; k < spec->unit_responses; ++k) {
    facts->tokens += lengths[k];
    facts->longest = fmax(facts->longest, lengths[k]);
  }
  const double fraction = (double)spec->unit_responses / (double)spec->samples_per_batch;
  facts->bytes = spec->rollout_bytes * fraction + spec->bytes_per_token * facts->tokens;
}

/* Samples the lengths of a unit's responses, or lets the coupled learner sample the responses. */
static gl_status draw_unit(sim_clock *c, const sampler *s, uint32_t slot, gl_error *err) {
  const cluster_spec *spec = c->spec;
  const schedule_hooks *hooks = c->coupled.hooks;
  schedule_batch *facts = &c->buffer.pool[slot].facts;
  double *lengths = c->stream.units[slot].lengths;
  if (hooks != NULL) {
    gl_status status = hooks->draw(hooks->self, facts, s->version, lengths, err);
    if (status != GL_OK) return status;
  } else {
    const response_spec of =
        cluster_responses(spec, &s->group->responses, c->buffer.pool[slot].source);
    c->stream.units[slot].prompt =
        response_draw_lengths(lengths, &of, c->seed, facts->id,
                              cluster_unit_draw(spec, facts->id, 1).id, spec->unit_responses);
  }
  ++c->out->rounds;
  c->out->drawn_responses += spec->unit_responses;
  add_up_lengths(spec, facts, lengths);
  return GL_OK;
}

/* Makes a new unit, whose responses the sampler's free slots take next (the open unit). */
static gl_status begin_unit(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  const uint32_t slot = buffer_take(&c->buffer, s->version);
  if (slot == BUFFER_NONE || !reserve_unit(c, slot)) return gl_fail_memory(err, "units under way");
  schedule_batch *facts = &c->buffer.pool[slot].facts;
  c->buffer.pool[slot].source = c->spec->n_sources > 0 ? ledger_next_source(c) : 0;
  facts->id = (uint64_t)i << 32 | s->ordinal++;
  facts->number = c->ledger.begun;
  facts->sampler = i;
  facts->start_s = c->now;
  c->stream.engines[i].open = slot;
  gl_status status = draw_unit(c, s, slot, err);
  if (status == GL_OK) ledger_begin(c, slot);
  return status;
}

/* Drops a unit in progress with all its responses. */
static void end_unit(sim_clock *c, uint32_t i, uint32_t slot, span_end how) {
  const schedule_batch *b = &c->buffer.pool[slot].facts;
  clock_trace(c, (schedule_span){SPAN_GENERATION, how, i, b->start_s, c->now, b->number, -1});
  ledger_discard(c, slot, how == SPAN_LOST ? FATE_LOST : FATE_ABORTED);
}

/* Drops units in progress at a sampler whose oldest version is below `least`. A unit may be open
 * without a running response, between the end of one and the start of the next. Returns whether
 * there were any. */
static bool abort_below(sim_clock *c, uint32_t i, int64_t least, span_end how) {
  streaming *t = &c->stream;
  engine *e = &t->engines[i];
  const size_t before = e->running;
  for (uint32_t k = e->first, next; k != NO_RESPONSE; k = next) {
    const running_response *r = &t->running[k];
    const uint32_t slot = r->slot;
    next = r->next;
    if (buffer_version(&c->buffer, slot) >= least) continue;
    if (turns_hold_slot(c, k)) e->slot_s += interrupt_decoded_to(c, i) - r->begun_s;
    if (c->calls.turns != NULL) turns_drop(c, i, k);
    if (t->loads != NULL) load_leave(c, i, k);
    give_place_back(t, e, k);
    if (--t->units[slot].running == 0 && slot != e->open) end_unit(c, i, slot, how);
  }
  const bool any = e->running < before;
  if (e->open == BUFFER_NONE || buffer_version(&c->buffer, e->open) >= least) return any;
  end_unit(c, i, e->open, how);
  e->open = BUFFER_NONE;
  return true;
}

static void abort_all(sim_clock *c, uint32_t i, span_end how) {
  abort_below(c, i, INT64_MAX, how);
}

void stream_crash(sim_clock *c, uint32_t i) {
  engine *e = &c->stream.engines[i];
  abort_all(c, i, SPAN_LOST);
  if (c->stream.loads != NULL) load_crash(c, i);
  version_release(c, e->coming);
  e->coming = -1;
  e->gated = false;
}

void stream_trace_open(const sim_clock *c, uint32_t i) {
  const streaming *t = &c->stream;
  const engine *e = &t->engines[i];
  for (uint32_t r = e->first; r != NO_RESPONSE; r = t->running[r].next) {
    const schedule_batch *b = &c->buffer.pool[t->running[r].slot].facts;
    bool reported = false; /* the unit was already reported for another response */
    for (uint32_t k = e->first; k != r; k = t->running[k].next)
      reported |= t->running[k].slot == t->running[r].slot;
    if (!reported)
      clock_trace(
          c, (schedule_span){SPAN_GENERATION, SPAN_OPEN, i, b->start_s, c->now, b->number, -1});
  }
  if (t->loads != NULL) load_trace_open(c, i);
  if (c->calls.turns != NULL) turns_trace_open(c, i);
}

/* --- decoding --- */

/* Decodes a response, or its next turn, in `seconds`, starting at the end of the current pause. */
static gl_status decode_for(sim_clock *c, uint32_t i, uint32_t index, double seconds,
                            gl_error *err) {
  running_response *r = &c->stream.running[index];
  r->begun_s = interrupt_decoded_to(c, i);
  r->ends_s = r->begun_s + fmax(seconds, shortest_response_s);
  return clock_post(c, r->ends_s, RESPONSE_ENDS, i, index | (uint64_t)r->serial << 32, err);
}

/* Decodes the next turn of a response that is back from its environment. */
static gl_status decode_turn(sim_clock *c, uint32_t i, uint32_t index, gl_error *err) {
  if (c->stream.loads == NULL) return decode_for(c, i, index, c->calls.turns[index].seconds, err);
  c->stream.running[index].begun_s = interrupt_decoded_to(c, i);
  return load_return(c, i, index) ? GL_OK : gl_fail_memory(err, "responses under way");
}

/* Starts the next response of the open unit. */
static gl_status begin_response(sim_clock *c, uint32_t i, gl_error *err) {
  streaming *t = &c->stream;
  engine *e = &t->engines[i];
  const sampler *s = &c->samplers[i];
  const uint32_t slot = e->open, index = take_place(t, e);
  if (index == NO_RESPONSE) return gl_fail_memory(err, "responses under way");
  unit_progress *u = &t->units[slot];
  running_response *r = &t->running[index];
  const size_t k = u->begun++;
  ++u->running;
  if (u->begun == c->spec->unit_responses) e->open = BUFFER_NONE;
  const double jitter = sampler_jitter(c, i);
  r->slot = slot;
  r->begun_s = c->now;
  r->segment = 0;
  if (c->spec->partial == PARTIAL_CONTINUE) {
    r->segment = buffer_begin_response(&c->buffer, slot, (int64_t)k, s->version);
    if (r->segment == UINT32_MAX) return gl_fail_memory(err, "segments");
  }
  double seconds = u->lengths[k] / s->group->responses.tokens_per_s * jitter / s->group->speed;
  if (c->spec->environment != NULL) {
    if (!turns_begin(c, index, k, seconds)) return gl_fail_memory(err, "responses");
    seconds = c->calls.turns[index].seconds;
  }
  if (t->loads != NULL)
    return load_join(c, i, index, u->lengths[k], jitter) ? GL_OK : gl_fail_memory(err, "responses");
  return decode_for(c, i, index, seconds, err);
}

/* Whether a unit may be started now; the reason if not is recorded in the engine. */
static bool may_begin(const sim_clock *c, uint32_t i, bool weights_are_due) {
  engine *e = &c->stream.engines[i];
  if (e->coming >= 0 || weights_are_due) return false;
  e->gated = !sampler_gate_is_open(c, &c->samplers[i]);
  return !e->gated;
}

gl_status stream_start(sim_clock *c, uint32_t i, bool just_loaded, gl_error *err) {
  sampler *s = &c->samplers[i];
  engine *e = &c->stream.engines[i];
  const bool is_due = c->spec->sync == SYNC_PULL && s->due_s <= c->now && !just_loaded;
  gl_status status = GL_OK;
  if (s->state == SAMPLER_LOADING || s->state == SAMPLER_DOWN || interrupt_is_on(c, i))
    return GL_OK;
  e->gated = false;
  if (is_due && e->running == 0 && e->open == BUFFER_NONE) return sampler_fetch(c, i, err);
  while (status == GL_OK && turns_slots(c, i) < s->group->responses.concurrency) {
    const uint32_t back = turns_take_back(c, i);
    if (back != NO_RESPONSE) {
      status = decode_turn(c, i, back, err);
      continue;
    }
    if (c->stream.loads != NULL && !load_has_room(c, i)) break;
    if (e->open == BUFFER_NONE) {
      if (!may_begin(c, i, is_due)) break;
      status = begin_unit(c, i, err);
    }
    if (status == GL_OK) status = begin_response(c, i, err);
  }
  if (status == GL_OK && c->stream.loads != NULL) status = load_post(c, i, err);
  if (status != GL_OK) return status;
  if (e->running > 0) {
    sampler_enter(c, i, SAMPLER_GENERATING, SPAN_DONE);
    return GL_OK;
  }
  sampler_enter(c, i, SAMPLER_GATED, SPAN_DONE);
  if (c->spec->sync == SYNC_PULL && s->due_s > c->now)
    return clock_post(c, s->due_s, SAMPLER_STARTS, i, 0, err);
  return GL_OK;
}

static void use_weights(sim_clock *c, uint32_t i, int64_t version) {
  version_release(c, c->samplers[i].version);
  c->samplers[i].version = version;
}

/* A response has ended: sends its unit if it was the unit's last one, uses weights that waited for
 * units in progress if none is left, and posts the sampler's next start. */
static gl_status end_response(sim_clock *c, uint32_t i, uint32_t index, gl_error *err) {
  streaming *t = &c->stream;
  engine *e = &t->engines[i];
  const running_response *r = &t->running[index];
  const uint32_t slot = r->slot;
  unit_progress *u = &t->units[slot];
  gl_status status = GL_OK;
  e->slot_s += c->now - r->begun_s;
  give_place_back(t, e, index);
  if (--u->running == 0 && u->begun == c->spec->unit_responses) {
    const schedule_batch *b = &c->buffer.pool[slot].facts;
    if (c->spec->partial == PARTIAL_CONTINUE) buffer_join_segments(&c->buffer, slot);
    clock_trace(c,
                (schedule_span){SPAN_GENERATION, SPAN_DONE, i, b->start_s, c->now, b->number, -1});
    status = sampler_send(c, i, slot, err);
  }
  if (e->running == 0) {
    c->samplers[i].busy_s += c->now - c->samplers[i].begun_s;
    sampler_enter(c, i, SAMPLER_READY, SPAN_DONE);
  }
  if (e->running == 0 && e->open == BUFFER_NONE && e->coming >= 0) {
    use_weights(c, i, e->coming);
    e->coming = -1;
  }
  return status != GL_OK ? status : clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
}

/* A turn has ended: the response calls its environment, or ends. */
static gl_status end_turn(sim_clock *c, uint32_t i, uint32_t index, gl_error *err) {
  const bool has_loads = c->stream.loads != NULL;
  if (c->calls.turns == NULL || turns_end_one(c, index)) {
    if (has_loads) load_leave(c, i, index);
    return end_response(c, i, index, err);
  }
  running_response *r = &c->stream.running[index];
  c->stream.engines[i].slot_s += c->now - r->begun_s;
  r->begun_s = c->now;
  if (has_loads) load_call(c, i, index);
  gl_status status = turns_call(c, i, index, err);
  if (status != GL_OK || turns_hold_slot(c, index)) return status;
  return clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
}

gl_status stream_response_ends(sim_clock *c, uint32_t i, uint64_t which, gl_error *err) {
  const uint32_t index = (uint32_t)which;
  if (c->stream.running[index].serial != which >> 32)
    return GL_OK; /* its sampler crashed, or it was dropped */
  return end_turn(c, i, index, err);
}

gl_status stream_call_ends(sim_clock *c, uint32_t i, uint64_t which, gl_error *err) {
  const uint32_t index = (uint32_t)which;
  bool goes_on;
  gl_status status = turns_call_ends(c, i, which, &goes_on, err);
  if (status != GL_OK) return status;
  if (!goes_on) return clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
  c->stream.engines[i].slot_s += c->now - c->stream.running[index].begun_s;
  status = decode_turn(c, i, index, err);
  return status == GL_OK && c->stream.loads != NULL ? load_post(c, i, err) : status;
}

gl_status stream_decoding_moves(sim_clock *c, uint32_t i, uint64_t serial, gl_error *err) {
  uint32_t index;
  gl_status status = load_moves(c, i, serial, &index, err);
  if (status != GL_OK || index == NO_RESPONSE) return status;
  status = end_turn(c, i, index, err);
  return status == GL_OK ? load_post(c, i, err) : status;
}

/* --- pushed weights --- */

/* The decoded fraction of a response of sampler i. */
static double fraction_done(const sim_clock *c, uint32_t i, const running_response *r) {
  const streaming *t = &c->stream;
  if (c->calls.turns != NULL) return turns_fraction(c, i, (uint32_t)(r - t->running));
  if (t->loads != NULL) return load_fraction(c, i, (uint32_t)(r - t->running));
  return (c->now - r->begun_s) / (r->ends_s - r->begun_s);
}

/* The index of the response in its unit; only valid if segments are per response. */
static int64_t response_of(const sim_clock *c, const running_response *r) {
  return c->buffer.pool[r->slot].segments[r->segment].response;
}

/* Tokens whose keys and values the sampler holds: prompts and responses in progress. */
static double tokens_held(const sim_clock *c, uint32_t i) {
  const streaming *t = &c->stream;
  double tokens = 0;
  if (t->loads != NULL) return load_held(c, i);
  for (uint32_t k = t->engines[i].first; k != NO_RESPONSE; k = t->running[k].next) {
    const running_response *r = &t->running[k];
    const double done = fraction_done(c, i, r);
    if (done >= 1) continue;
    tokens += c->samplers[i].group->responses.prompt_tokens;
    tokens += done * t->units[r->slot].lengths[response_of(c, r)];
  }
  return tokens;
}

/* Moves the ends of running responses by `seconds` in which none is decoded. */
static gl_status move_responses(sim_clock *c, uint32_t i, double seconds, gl_error *err) {
  streaming *t = &c->stream;
  gl_status status = GL_OK;
  if (t->loads != NULL) load_pause(c, i, seconds);
  uint32_t first =
      t->engines[i]
          .first; /* first started first, so that responses that end together keep their order */
  while (t->running[first].next != NO_RESPONSE) first = t->running[first].next;
  for (uint32_t k = first; k != NO_RESPONSE && status == GL_OK; k = t->running[k].previous) {
    running_response *r = &t->running[k];
    if (fraction_done(c, i, r) >= 1 || !turns_decodes(c, k)) continue; /* it ends now */
    r->begun_s += seconds;
    if (t->loads != NULL) continue;
    r->ends_s += seconds;
    ++r->serial;
    status = clock_post(c, r->ends_s, RESPONSE_ENDS, i, k | (uint64_t)r->serial << 32, err);
  }
  if (status == GL_OK && t->loads != NULL) status = load_post(c, i, err);
  return status;
}

/* Stops decoding while weights are loaded and keys and values are recomputed. */
static gl_status stream_interrupt(sim_clock *c, uint32_t i, gl_error *err) {
  const sampler_group *g = c->samplers[i].group;
  const double prefill = g->responses.prefill_tokens_per_s * g->speed;
  const bool again = c->spec->kv_cache == KV_CACHE_RECOMPUTE && prefill > 0;
  const double tokens = again ? tokens_held(c, i) : 0;
  const double seconds = c->spec->interrupt + (again ? tokens / prefill : 0);
  gl_status status = move_responses(c, i, seconds, err);
  return status == GL_OK ? interrupt_begin(c, i, seconds, tokens, err) : status;
}

/* Writes the progress of one unit's responses to u->from, for the learner. A token in progress is
 * finished with the old weights. */
static void stream_place_responses(const sim_clock *c, uint32_t i, uint32_t slot) {
  const streaming *t = &c->stream;
  unit_progress *u = &t->units[slot];
  for (size_t k = 0; k < c->spec->unit_responses; ++k)
    u->from[k] = k < u->begun ? SCHEDULE_LEAVES : 0;
  for (uint32_t k = t->engines[i].first; k != NO_RESPONSE; k = t->running[k].next) {
    const running_response *r = &t->running[k];
    if (r->slot != slot || fraction_done(c, i, r) >= 1) continue;
    const size_t which = (size_t)response_of(c, r);
    const double at = ceil(fraction_done(c, i, r) * u->lengths[which]);
    if (at < u->lengths[which]) u->from[which] = (size_t)at;
  }
}

/* After the weights changed, the coupled learner has sampled the rest of the unit again
 * (draw_rest): scales the decoding time of its running responses by new / old length. Old lengths
 * are in c->coupled, new ones in the unit's progress. */
static gl_status rescale_running(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err) {
  streaming *t = &c->stream;
  const unit_progress *u = &t->units[slot];
  gl_status status = GL_OK;
  for (uint32_t k = t->engines[i].first; k != NO_RESPONSE && status == GL_OK;
       k = t->running[k].next) {
    running_response *r = &t->running[k];
    const size_t which = (size_t)response_of(c, r);
    const double old = r->slot == slot ? c->coupled.lengths[which] : 0;
    if (r->slot != slot || old == u->lengths[which]) continue;
    buffer_rescale_response(&c->buffer, slot, (int64_t)which, old / u->lengths[which]);
    ++r->serial;
    if (t->loads != NULL) {
      if (!load_rescale(c, i, k, u->lengths[which] / old)) return gl_fail_memory(err, "responses");
      continue;
    }
    r->ends_s = r->begun_s + (r->ends_s - r->begun_s) * (u->lengths[which] / old);
    status = clock_post(c, r->ends_s, RESPONSE_ENDS, i, k | (uint64_t)r->serial << 32, err);
  }
  return status;
}

/* Sampler i changes to the weights of `version`: the coupled learner samples the rest of the slot's
 * unit again, with new lengths. The old ones stay in c->coupled for rescale_running(). */
static gl_status draw_rest(sim_clock *c, uint32_t i, uint32_t slot, int64_t version,
                           gl_error *err) {
  const size_t n = c->spec->unit_responses;
  const unit_progress *u = &c->stream.units[slot];
  schedule_batch *facts = &c->buffer.pool[slot].facts;
  memcpy(c->coupled.lengths, u->lengths, n * sizeof *u->lengths);
  stream_place_responses(c, i, slot);
  ledger_remove_lengths(c, slot);
  gl_status status =
      c->coupled.hooks->go_on(c->coupled.hooks->self, facts, version, u->from, u->lengths, err);
  if (status != GL_OK) return status;
  add_up_lengths(c->spec, facts, u->lengths);
  ledger_add_lengths(c, slot);
  return rescale_running(c, i, slot, err);
}

/* Visits each unit in progress once: those with running responses, and the one still open. */
static gl_status draw_rests(sim_clock *c, uint32_t i, int64_t version, gl_error *err) {
  const streaming *t = &c->stream;
  const engine *e = &t->engines[i];
  gl_status status = GL_OK;
  for (uint32_t k = e->first; k != NO_RESPONSE && status == GL_OK; k = t->running[k].next) {
    const uint32_t slot = t->running[k].slot;
    uint32_t earlier = e->first;
    while (t->running[earlier].slot != slot) earlier = t->running[earlier].next;
    if (earlier == k && slot != e->open) status = draw_rest(c, i, slot, version, err);
  }
  if (status == GL_OK && e->open != BUFFER_NONE) status = draw_rest(c, i, e->open, version, err);
  return status;
}

/* Continues the responses in progress with other weights. */
static gl_status change_weights(sim_clock *c, uint32_t i, int64_t version, gl_error *err) {
  streaming *t = &c->stream;
  bool interrupts = false;
  if (resamples(c)) {
    gl_status status = draw_rests(c, i, version, err);
    if (status != GL_OK) return status;
  }
  for (uint32_t k = t->engines[i].first; k != NO_RESPONSE; k = t->running[k].next) {
    running_response *r = &t->running[k];
    const double done = fraction_done(c, i, r);
    if (done >= 1) continue;
    interrupts = true;
    r->segment = buffer_switch_response(&c->buffer, r->slot, r->segment, done, version);
    if (r->segment == UINT32_MAX) return gl_fail_memory(err, "segments");
  }
  use_weights(c, i, version);
  if (t->loads != NULL && c->spec->kv_cache == KV_CACHE_RECOMPUTE) load_recompute(c, i);
  return interrupts && c->interrupts.by_weights ? stream_interrupt(c, i, err) : GL_OK;
}

gl_status stream_receive(sim_clock *c, uint32_t i, int64_t version, gl_error *err) {
  sampler *s = &c->samplers[i];
  engine *e = &c->stream.engines[i];
  if (version <= s->version || version <= e->coming || s->state == SAMPLER_DOWN) {
    version_release(c, version); /* newer weights arrived first */
    return GL_OK;
  }
  if (interrupt_is_on(c, i)) {
    interrupt_hold(c, i, version);
    return GL_OK;
  }
  gl_status status = GL_OK;
  const bool idle = e->running == 0 && e->open == BUFFER_NONE;
  switch (c->spec->partial) {
  case PARTIAL_WAIT:
    if (idle) {
      use_weights(c, i, version);
      break;
    }
    version_release(c, e->coming);
    e->coming = version;
    return GL_OK;
  case PARTIAL_CONTINUE:
    status = change_weights(c, i, version, err);
    break;
  case PARTIAL_DROP:
    if (e->running > 0) s->busy_s += c->now - s->begun_s;
    abort_all(c, i, SPAN_DROPPED);
    if (s->state == SAMPLER_GENERATING) sampler_enter(c, i, SAMPLER_READY, SPAN_DONE);
    use_weights(c, i, version);
    break;
  }
  return status != GL_OK ? status : clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
}

gl_status stream_cancel_below(sim_clock *c, int64_t least, gl_error *err) {
  gl_status status = GL_OK;
  for (uint32_t i = 0; i < c->spec->n_samplers && status == GL_OK; ++i) {
    engine *e = &c->stream.engines[i];
    if (!abort_below(c, i, least, SPAN_DROPPED)) continue;
    if (e->running == 0 && e->open == BUFFER_NONE && e->coming >= 0) {
      use_weights(c, i, e->coming);
      e->coming = -1;
    }
    if (e->running == 0 && c->samplers[i].state == SAMPLER_GENERATING) {
      c->samplers[i].busy_s += c->now - c->samplers[i].begun_s;
      sampler_enter(c, i, SAMPLER_READY, SPAN_DONE);
    }
    status = clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
  }
  return status;
}

/* --- GPUs that switch to training --- */

gl_status sampler_stop(sim_clock *c, uint32_t i, double seconds, gl_error *err) {
  sampler *s = &c->samplers[i];
  gl_status status = GL_OK;
  if (seconds == 0) return GL_OK;
  if (c->stream.engines != NULL) {
    if (c->stream.engines[i].running > 0) status = move_responses(c, i, seconds, err);
  } else if (s->state == SAMPLER_GENERATING && s->ends_s > c->now) {
    s->ends_s += seconds;
    status = clock_post(c, s->ends_s, GENERATION_ENDS, i, 0, err);
  }
  return status == GL_OK ? interrupt_prolong(c, i, seconds, err) : status;
}
