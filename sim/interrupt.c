/* Weights that come while a sampler decodes, where taking them over takes time: decoding stands
 * still for cluster.interrupt, and where keys and values are computed again (kv_cache: recompute)
 * for a prefill of all tokens under way. Weights that come meanwhile are taken over when it ends.
 * Where neither takes any time they are used at once, and nothing of this is kept. */
#include "sim/clock.h"

#include <math.h>
#include <stdlib.h>

static int takes_time(const cluster_spec *spec) {
  int prefills = 0;
  for (size_t i = 0; i < spec->n_groups; ++i)
    prefills |= spec->groups[i].responses.prefill_tokens_per_s > 0;
  return spec->interrupt > 0 || (spec->kv_cache == KV_CACHE_RECOMPUTE && prefills);
}

int interrupt_init(sim_clock *c) {
  if (!takes_time(c->spec)) return 1;
  c->interrupts.of = calloc(c->spec->n_samplers, sizeof *c->interrupts.of);
  for (size_t i = 0; c->interrupts.of != NULL && i < c->spec->n_samplers; ++i)
    c->interrupts.of[i].coming = -1;
  return c->interrupts.of != NULL;
}

void interrupt_fini(sim_clock *c) {
  free(c->interrupts.of);
  c->interrupts = (interruptions){0};
}

/* The sampler does not generate meanwhile. */
gl_status interrupt_begins(sim_clock *c, uint32_t i, double seconds, double tokens, gl_error *err) {
  interruption *p = &c->interrupts.of[i];
  ++c->interrupts.n;
  c->interrupts.tokens += tokens;
  if (seconds <= 0) return GL_OK;
  p->begun_s = c->now;
  p->ends_s = c->now + seconds;
  p->stood_s += seconds;
  c->interrupts.seconds += seconds;
  c->samplers[i].busy_s -= seconds;
  return clock_post(c, p->ends_s, RANK_ARRIVAL, INTERRUPTION_ENDS, i, 0, err);
}

void interrupt_keeps(sim_clock *c, uint32_t i, int64_t version) {
  interruption *p = &c->interrupts.of[i];
  const int newer = version > p->coming;
  coupling_leave(c, newer ? p->coming : version);
  if (newer) p->coming = version;
}

void interrupt_tell(const sim_clock *c, uint32_t i, span_end end) {
  if (interrupt_stands(c, i))
    clock_tell(c, SPAN_INTERRUPT, end, i, c->interrupts.of[i].begun_s, c->now, 0,
               c->samplers[i].version);
}

void interrupt_begins_batch(sim_clock *c, uint32_t i) {
  if (c->interrupts.of != NULL) c->interrupts.of[i].stood_s = 0;
}

gl_status interrupt_ends(sim_clock *c, uint32_t i, gl_error *err) {
  interruption *p = &c->interrupts.of[i];
  if (p->ends_s != c->now) return GL_OK; /* its sampler crashed */
  const int64_t next = p->coming;
  interrupt_tell(c, i, SPAN_DONE);
  p->ends_s = 0;
  p->coming = -1;
  if (next >= 0)
    return (c->stream.engines != NULL ? stream_receives : sampler_receives)(c, i, next, err);
  return clock_post(c, c->now, RANK_SAMPLER, SAMPLER_STARTS, i, 0, err);
}

void interrupt_crashes(sim_clock *c, uint32_t i) {
  if (c->interrupts.of == NULL) return;
  interruption *p = &c->interrupts.of[i];
  const double rest = interrupt_rest(c, i);
  interrupt_tell(c, i, SPAN_LOST);
  c->interrupts.seconds -= rest;
  c->samplers[i].busy_s += rest;
  coupling_leave(c, p->coming);
  *p = (interruption){.coming = -1};
}
