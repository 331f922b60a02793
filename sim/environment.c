/* Environments (cluster.environment): a response has several turns, and between two of them a tool
 * or an environment is called at one of a limited number of places, which all samplers share. */
#include "sim/clock.h"

#include "core/base/array.h"
#include "core/random/rng.h"

#include <math.h>
#include <stdlib.h>

static const double most_turns = 1e6; /* below 2^20: calls of a response have as many addresses */

void turns_init(sim_clock *c) {
  if (c->spec->environment == NULL) return;
  c->calls.back = ARENA_ARRAY(&c->memory, event_queue, c->spec->n_samplers);
  c->calls.away = ARENA_ARRAY(&c->memory, size_t, c->spec->n_samplers);
}

void turns_fini(sim_clock *c) {
  for (size_t i = 0; c->calls.back != NULL && i < c->spec->n_samplers; ++i)
    eq_fini(&c->calls.back[i]);
  eq_fini(&c->calls.queue);
  free(c->calls.turns);
}

size_t turns_bytes(const sim_clock *c) {
  size_t bytes = c->calls.capacity * sizeof *c->calls.turns;
  for (size_t i = 0; c->calls.back != NULL && i < c->spec->n_samplers; ++i)
    bytes += c->calls.back[i].capacity * sizeof(sim_event);
  return bytes + c->calls.queue.capacity * sizeof(sim_event);
}

bool turns_begin(sim_clock *c, uint32_t index, size_t response, double seconds) {
  environment_calls *e = &c->calls;
  const uint64_t unit = c->buffer.pool[c->stream.running[index].slot].facts.number;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, RNG_FAILURE_TURNS + unit), response, 0};
  if (!ARRAY_RESERVE(e->turns, e->capacity, c->stream.n_running)) return false;
  const double n = fmin(fmax(round(delay_draw(c->spec->environment->turns, &draw)), 1), most_turns);
  e->turns[index] =
      (response_turns){.n = (uint32_t)n, .response = (uint32_t)response, .seconds = seconds / n};
  return true;
}

double turns_fraction(const sim_clock *c, uint32_t i, uint32_t index) {
  const response_turns *t = &c->calls.turns[index];
  const running_response *r = &c->stream.running[index];
  const double of_turn = t->where != TURN_DECODES ? 0
                         : c->stream.loads != NULL
                             ? load_fraction(c, i, index)
                             : (c->now - r->begun_s) / (r->ends_s - r->begun_s);
  return (t->done + fmax(of_turn, 0)) / t->n;
}

static void trace_call(const sim_clock *c, uint32_t i, uint32_t index, span_end end) {
  const response_turns *t = &c->calls.turns[index];
  const span_kind kind = t->where == TURN_CALLS ? SPAN_CALL : SPAN_CALL_WAITS;
  const uint64_t unit = c->buffer.pool[c->stream.running[index].slot].facts.number;
  if (t->where == TURN_CALLS || t->where == TURN_QUEUES)
    clock_trace(c, (schedule_span){kind, end, i, t->since_s, c->now, unit, -1});
}

void turns_trace_open(const sim_clock *c, uint32_t i) {
  for (uint32_t k = c->stream.engines[i].first; k != UINT32_MAX; k = c->stream.running[k].next)
    trace_call(c, i, k, SPAN_OPEN);
}

/* --- places --- */

/* Adds `more` to the number of places in use, after updating its time integral. */
static void use_places(environment_calls *e, double now, int more) {
  e->busy_integral_s += (double)e->busy * (now - e->at_s);
  e->at_s = now;
  e->busy += (size_t)more;
}

static gl_status begin_call(sim_clock *c, uint32_t i, uint32_t index, gl_error *err) {
  environment_calls *e = &c->calls;
  response_turns *t = &e->turns[index];
  const running_response *r = &c->stream.running[index];
  const uint64_t unit = c->buffer.pool[r->slot].facts.number;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, RNG_FAILURE_CALLS + unit),
                       (uint64_t)t->response << 20 | t->done, 0};
  trace_call(c, i, index, SPAN_DONE);
  ++e->begun;
  e->waited_s += c->now - t->since_s;
  use_places(e, c->now, 1);
  t->where = TURN_CALLS;
  t->since_s = c->now;
  return clock_post(c, c->now + delay_draw(c->spec->environment->time, &draw), CALL_ENDS, i,
                    index | (uint64_t)r->serial << 32, err);
}

bool turns_end_one(sim_clock *c, uint32_t index) {
  response_turns *t = &c->calls.turns[index];
  return ++t->done == t->n;
}

gl_status turns_call(sim_clock *c, uint32_t i, uint32_t index, gl_error *err) {
  environment_calls *e = &c->calls;
  response_turns *t = &e->turns[index];
  t->where = TURN_QUEUES;
  t->since_s = c->now;
  t->slotless = c->spec->environment->frees_slot;
  e->away[i] += t->slotless;
  if (e->busy < c->spec->environment->places) return begin_call(c, i, index, err);
  return eq_push(&e->queue, c->now, 0, i, index, c->stream.running[index].serial)
             ? GL_OK
             : gl_fail_memory(err, "calls of an environment");
}

/* Entries of responses that were dropped meanwhile are skipped. */
static bool take_queued(const sim_clock *c, event_queue *q, sim_event *out) {
  while (!eq_is_empty(q)) {
    *out = *eq_top(q);
    eq_pop(q);
    if (c->stream.running[out->node].serial == (uint32_t)out->data) return true;
  }
  return false;
}

gl_status turns_call_ends(sim_clock *c, uint32_t i, uint64_t which, bool *goes_on, gl_error *err) {
  const uint32_t index = (uint32_t)which;
  environment_calls *e = &c->calls;
  sim_event next;
  gl_status status = GL_OK;
  *goes_on = false;
  use_places(e, c->now, -1);
  if (take_queued(c, &e->queue, &next)) status = begin_call(c, next.kind, next.node, err);
  if (status != GL_OK || c->stream.running[index].serial != which >> 32) return status;
  response_turns *t = &e->turns[index];
  trace_call(c, i, index, SPAN_DONE);
  t->where = t->slotless ? TURN_BACK : TURN_DECODES;
  *goes_on = !t->slotless;
  if (t->slotless && !eq_push(&e->back[i], c->now, 0, 0, index, which >> 32))
    return gl_fail_memory(err, "calls of an environment");
  return GL_OK;
}

uint32_t turns_take_back(sim_clock *c, uint32_t i) {
  sim_event next;
  if (c->calls.back == NULL || !take_queued(c, &c->calls.back[i], &next)) return UINT32_MAX;
  response_turns *t = &c->calls.turns[next.node];
  t->slotless = false;
  t->where = TURN_DECODES;
  --c->calls.away[i];
  return next.node;
}

void turns_drop(sim_clock *c, uint32_t i, uint32_t index) {
  trace_call(c, i, index, SPAN_DROPPED);
  c->calls.away[i] -= c->calls.turns[index].slotless;
}

/* At a restart that loses all responses, the tool calls under way are lost too, as are those that
 * wait for a place. */
void turns_stop(sim_clock *c) {
  if (c->calls.turns == NULL) return;
  use_places(&c->calls, c->now, -(int)c->calls.busy);
  c->calls.queue.size = 0;
}

void turns_move(sim_clock *c, uint32_t index, double seconds) {
  if (c->calls.turns != NULL) c->calls.turns[index].since_s += seconds;
}

void turns_report(sim_clock *c) {
  environment_calls *e = &c->calls;
  use_places(e, c->now, 0);
  c->out->environment = (environment_report){
      c->spec->environment != NULL, e->begun > 0 ? e->waited_s / (double)e->begun : 0,
      c->now > 0 ? e->busy_integral_s / c->now : 0, (double)e->begun};
}
