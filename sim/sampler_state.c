/* A sampler's state, what it draws, and its pauses. */
#include "core/random/rng.h"
#include "sim/clock.h"

#include <math.h>
#include <stdlib.h>

/* RNG_DELAY entities: 2i and 2i + 1 are the up and down links of sampler i. */
static const uint64_t shared_link = UINT64_MAX;
/* The next draw of a sampler's distribution; few bytes of state, for there may be millions of
 * samplers. */
static double sampler_draw(const delay_dist *dist, uint64_t seed, rng_purpose purpose,
                           uint64_t entity, draw_state *state) {
  delay_source source = {rng_stream_at(seed, purpose, entity), state->index, (int)state->bad};
  double x = delay_draw(dist, &source);
  *state = (draw_state){(uint32_t)source.index, (uint32_t)source.bad};
  return x;
}

double sampler_weights_delay(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  uint64_t link = c->spec->shared_delays ? shared_link : 2 * (uint64_t)i + 1;
  return sampler_draw(s->group->delay, c->seed, RNG_DELAY, link, &s->delay);
}

double sampler_data_delay(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  return sampler_draw(s->group->data_delay, c->seed, RNG_DELAY, 2 * (uint64_t)i, &s->data_delay);
}

double sampler_generation(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  return sampler_draw(s->group->generation, c->seed, RNG_GENERATION, 2 * (uint64_t)i,
                      &s->generation);
}

double sampler_jitter(sim_clock *c, uint32_t i) {
  sampler *s = &c->samplers[i];
  return sampler_draw(s->group->jitter, c->seed, RNG_GENERATION, 2 * (uint64_t)i + 1, &s->jitter);
}

rng_stream sampler_losses(const sim_clock *c, uint32_t i, bool up) {
  return rng_stream_at(c->seed, RNG_LOSS, 2 * (uint64_t)i + !up);
}

/* --- states --- */

void sampler_trace(const sim_clock *c, uint32_t i, span_end end) {
  const sampler *s = &c->samplers[i];
  switch (s->state) {
  case SAMPLER_READY:
    return;
  case SAMPLER_GENERATING:
    if (c->stream.engines != NULL) return; /* units are reported one by one */
    clock_trace(c, (schedule_span){SPAN_GENERATION, end, i, s->begun_s, c->now,
                                   c->buffer.pool[s->slot].facts.number, -1});
    return;
  case SAMPLER_GATED:
    clock_trace(c, (schedule_span){SPAN_GATED, end, i, s->begun_s, c->now, 0, -1});
    return;
  case SAMPLER_LOADING:
    clock_trace(c, (schedule_span){SPAN_FETCH, end, i, s->begun_s, c->now, 0, -1});
    return;
  case SAMPLER_DOWN:
    clock_trace(c, (schedule_span){SPAN_DOWN, end, i, s->begun_s, c->now, 0, -1});
    return;
  }
}

void sampler_enter(sim_clock *c, uint32_t i, sampler_state state, span_end end) {
  sampler *s = &c->samplers[i];
  if (s->state == state) return;
  if (c->trace != NULL) sampler_trace(c, i, end);
  c->n_gated += state == SAMPLER_GATED;
  c->n_gated -= s->state == SAMPLER_GATED;
  s->state = state;
  s->begun_s = c->now;
}

gl_status sampler_loaded(sim_clock *c, uint32_t i, uint64_t version, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (s->state != SAMPLER_LOADING || s->ends_s != c->now) { /* crashed since */
    version_release(c, version != UINT64_MAX ? (int64_t)version : -1);
    return GL_OK;
  }
  if (version != UINT64_MAX) {
    version_release(c, s->version);
    s->version = (int64_t)version;
  }
  s->due_s = c->now + sampler_weights_delay(c, i);
  sampler_enter(c, i, SAMPLER_READY, version != UINT64_MAX ? SPAN_DONE : SPAN_LOST);
  return clock_post(c, c->now, SAMPLER_STARTS, i, 1, err);
}

/* Bounded staleness: unit number `gate_count` belongs to update gate_count / take, which may be
 * at most `ahead` past the version it is generated with. */
bool sampler_gate_is_open(const sim_clock *c, const sampler *s) {
  if (s->version < 0) return false; /* back from a crash, without weights */
  int64_t ahead = c->spec->ahead;
  int64_t update = (int64_t)(c->ledger.gate_count / c->spec->take);
  return update - s->version <= ahead;
}

/* --- pauses --- */

/* Weights that come while a sampler decodes, where taking them over takes time: decoding stands
 * still for cluster.interrupt, and where keys and values are computed again (kv_cache: recompute)
 * for a prefill of all tokens under way. Weights that come meanwhile are taken over when it ends.
 * Where neither takes any time they are used at once, and nothing of this is kept. */

static bool interrupting_takes_time(const cluster_spec *spec) {
  bool prefills = false;
  for (size_t i = 0; i < spec->n_groups; ++i)
    prefills |= spec->groups[i].responses.prefill_tokens_per_s > 0;
  return spec->interrupt > 0 || (spec->kv_cache == KV_CACHE_RECOMPUTE && prefills);
}

bool interrupt_init(sim_clock *c) {
  if (!interrupting_takes_time(c->spec)) return true;
  c->interrupts.of = calloc(c->spec->n_samplers, sizeof *c->interrupts.of);
  for (size_t i = 0; c->interrupts.of != NULL && i < c->spec->n_samplers; ++i)
    c->interrupts.of[i].coming = -1;
  return c->interrupts.of != NULL;
}

void interrupt_fini(sim_clock *c) {
  free(c->interrupts.of);
  c->interrupts = (interruptions){0};
}

gl_status interrupt_begin(sim_clock *c, uint32_t i, double seconds, double tokens, gl_error *err) {
  interruption *p = &c->interrupts.of[i];
  ++c->interrupts.n;
  c->interrupts.tokens += tokens;
  if (seconds <= 0) return GL_OK;
  p->begun_s = c->now;
  p->ends_s = c->now + seconds;
  p->paused_s += seconds;
  c->interrupts.seconds += seconds;
  c->samplers[i].busy_s -= seconds;
  return clock_post(c, p->ends_s, INTERRUPTION_ENDS, i, 0, err);
}

void interrupt_hold(sim_clock *c, uint32_t i, int64_t version) {
  interruption *p = &c->interrupts.of[i];
  const bool newer = version > p->coming;
  version_release(c, newer ? p->coming : version);
  if (newer) p->coming = version;
}

void interrupt_trace(const sim_clock *c, uint32_t i, span_end end) {
  if (interrupt_is_on(c, i))
    clock_trace(c, (schedule_span){SPAN_INTERRUPT, end, i, c->interrupts.of[i].begun_s, c->now, 0,
                                   c->samplers[i].version});
}

void interrupt_reset(sim_clock *c, uint32_t i) {
  if (c->interrupts.of != NULL) c->interrupts.of[i].paused_s = 0;
}

bool interrupt_end(sim_clock *c, uint32_t i, int64_t *next) {
  interruption *p = &c->interrupts.of[i];
  if (p->ends_s != c->now) return false;
  *next = p->coming;
  interrupt_trace(c, i, SPAN_DONE);
  p->ends_s = 0;
  p->coming = -1;
  return true;
}

void interrupt_crash(sim_clock *c, uint32_t i) {
  if (c->interrupts.of == NULL) return;
  interruption *p = &c->interrupts.of[i];
  const double rest = interrupt_rest(c, i);
  interrupt_trace(c, i, SPAN_LOST);
  c->interrupts.seconds -= rest;
  c->samplers[i].busy_s += rest;
  version_release(c, p->coming);
  *p = (interruption){.coming = -1};
}
