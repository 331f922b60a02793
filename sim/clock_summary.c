/* What a finished clock reports: staleness, utilisation, bytes, and counts that must agree. */
#include "sim/clock.h"

#include <stdlib.h>

int64_t schedule_staleness(const schedule *s, const schedule_update *u, const schedule_batch *b) {
  return u->version - s->segments[b->first_segment].version;
}

static gl_status count_staleness(schedule *s, gl_error *err) {
  int64_t largest = 0;
  for (size_t i = 0; i < s->n_updates; ++i)
    for (size_t k = 0; k < s->updates[i].n_batches; ++k) {
      const schedule_update *u = &s->updates[i];
      int64_t tau = schedule_staleness(s, u, &s->batches[u->first_batch + k]);
      if (tau > largest) largest = tau;
    }
  s->n_staleness = (size_t)largest + 1;
  s->staleness = calloc(s->n_staleness, sizeof *s->staleness);
  if (s->staleness == NULL) return gl_fail_memory(err, "the staleness histogram");
  for (size_t i = 0; i < s->n_updates; ++i)
    for (size_t k = 0; k < s->updates[i].n_batches; ++k) {
      const schedule_update *u = &s->updates[i];
      ++s->staleness[schedule_staleness(s, u, &s->batches[u->first_batch + k])];
    }
  return GL_OK;
}

/* Smallest staleness at which the histogram holds at least p of the batches. */
static double staleness_quantile(const schedule *s, double p) {
  double below = 0;
  for (size_t i = 0; i < s->n_staleness; ++i) {
    below += (double)s->staleness[i];
    if (below >= p * (double)s->n_batches) return (double)i;
  }
  return 0;
}

static void summarise(sim_clock *c) {
  schedule *s = c->out;
  double busy = 0, sum = 0, span = c->now, n = (double)c->spec->n_samplers;
  for (size_t i = 0; i < c->spec->n_samplers; ++i) {
    const sampler *p = &c->samplers[i];
    busy += p->busy_s + (p->state == SAMPLER_GENERATING ? span - p->begun_s : 0);
    busy += interrupt_rest(c, (uint32_t)i);
  }
  for (size_t i = 0; i < s->n_staleness; ++i) sum += (double)i * (double)s->staleness[i];
  double trained = (double)s->n_batches;
  s->clock = (clock_record){
      .simulated_s = span,
      .learner_utilisation = span > 0 ? c->busy_s / span : 0,
      .sampler_utilisation = span > 0 ? busy / (span * n) : 0,
      .samples_per_s = span > 0 ? trained * (double)c->spec->unit_responses / span : 0,
      .bytes_up = c->bytes_up,
      .bytes_down = c->bytes_down,
      .staleness_mean = trained > 0 ? sum / trained : 0,
      .staleness_max = (double)s->n_staleness - 1,
      .staleness_p50 = staleness_quantile(s, 0.5),
      .staleness_p95 = staleness_quantile(s, 0.95),
      .batches_generated = (double)c->generated,
      .batches_trained = trained,
      .batches_dropped = (double)c->dropped,
      .batches_lost = (double)c->lost,
      .retransmissions = c->retransmissions,
  };
}

static void take_counts(sim_clock *c) {
  schedule *s = c->out;
  const buffer *b = &c->buffer;
  s->waited_s = c->waited_s;
  for (uint32_t i = b->oldest; i != BUFFER_NONE; i = b->pool[i].newer)
    s->waited_s += c->now - b->pool[i].facts.arrived_s;
  s->waiting_integral_s = c->waiting_integral_s;
  s->begun = c->begun;
  s->pending = buffer_in_use(b);
  s->sampler_bytes = sizeof(sampler) + (c->stream.engines != NULL ? sizeof(engine) : 0) +
                     (c->interrupts.of != NULL ? sizeof(interruption) : 0);
  s->batch_bytes = buffer_bytes(b) + stream_bytes(c);
  s->event_bytes = fel_bytes(&c->events);
  s->events = c->events.near.inserted - fel_size(&c->events);
  s->unit_responses = c->spec->unit_responses;
}

static void take_interrupts(sim_clock *c) {
  const interruptions *t = &c->interrupts;
  if (t->of == NULL) return;
  double rest = 0;
  for (size_t i = 0; i < c->spec->n_samplers; ++i) rest += interrupt_rest(c, (uint32_t)i);
  c->out->interrupts = 1;
  c->out->n_interrupts = t->n;
  c->out->interrupted_s = t->seconds - rest;
  c->out->recomputed_tokens = t->tokens;
}

/* Decoding seconds against those that all slots have. */
static void take_slots(sim_clock *c) {
  double used = 0, slots = 0;
  if (c->stream.engines == NULL) return;
  for (size_t i = 0; i < c->spec->n_samplers; ++i) {
    const engine *e = &c->stream.engines[i];
    slots += (double)c->samplers[i].group->responses.concurrency;
    used += e->slot_s;
    for (uint32_t r = e->first; r != UINT32_MAX; r = c->stream.running[r].next)
      used += interrupt_decoded_to(c, (uint32_t)i) - c->stream.running[r].begun_s;
  }
  c->out->streams = 1;
  c->out->aborted = c->stream.aborted;
  c->out->slot_utilisation = c->now > 0 ? used / (slots * c->now) : 0;
}

gl_status clock_summarise(sim_clock *c, gl_error *err) {
  gl_status status = count_staleness(c->out, err);
  if (status != GL_OK) return status;
  summarise(c);
  take_counts(c);
  selection_count_pending(c);
  take_slots(c);
  take_interrupts(c);
  transfer_report(c);
  return GL_OK;
}
