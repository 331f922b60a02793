/* Crashes of samplers, and when sites are cut off from the others: at stated times, and as their
 * distributions are drawn. Outages of a site may overlap. What becomes of transfers is in
 * transfer.c. */
#include "core/random/rng.h"
#include "sim/clock.h"

#include <math.h>

/* RNG_FAILURE entities: samplers by their number, sites from here on. */
static const uint64_t first_site = (uint64_t)1 << 63;
/* No time to a crash or an outage is less, so that simulated time always moves on. */
static const double shortest_s = 1e-9;

/* --- samplers --- */

gl_status sampler_plan_crash(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  if (delay_is_zero(s->group->mtbf)) return GL_OK;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, i), 2 * (uint64_t)s->crashes, 0};
  double up = fmax(delay_draw(s->group->mtbf, &draw), shortest_s);
  return clock_post(c, c->now + up, CRASH, i, 0, err);
}

/* A crash loses the batch being generated and the weights; what is on its way still arrives. */
gl_status sampler_crash(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  const bool generates = s->state == SAMPLER_GENERATING;
  if (generates) s->busy_s += c->now - s->begun_s;
  sampler_enter(c, i, SAMPLER_DOWN, generates ? SPAN_LOST : SPAN_DONE);
  if (c->stream.engines != NULL)
    stream_crash(c, i);
  else if (generates)
    ledger_discard(c, s->slot, FATE_LOST);
  interrupt_crash(c, i);
  if (c->net.peers != NULL) transfer_crash(c, i);
  version_release(c, s->version);
  s->version = -1;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, i), 2 * (uint64_t)s->crashes++ + 1, 0};
  return clock_post(c, c->now + delay_draw(s->group->mttr, &draw), RETURN, i, 0, err);
}

gl_status sampler_return(sim_clock *c, uint32_t i, gl_error *err) {
  sampler *s = &c->samplers[i];
  sampler_enter(c, i, SAMPLER_GATED, SPAN_DONE);
  s->due_s = c->now;
  gl_status status = sampler_plan_crash(c, i, err);
  if (status != GL_OK) return status;
  if (c->spec->sync == SYNC_PUSH) return sampler_push(c, i, err);
  return clock_post(c, c->now, SAMPLER_STARTS, i, 0, err);
}

/* --- sites --- */

/* The next outage that is drawn for the site. */
static gl_status plan_outage(sim_clock *c, uint32_t site, gl_error *err) {
  const network_site *spec = &c->spec->network->sites[site];
  if (delay_is_zero(spec->mtbf)) return GL_OK;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, first_site + site),
                       2 * (uint64_t)c->net.sites[site].drawn, 0};
  const double up = fmax(delay_draw(spec->mtbf, &draw), shortest_s);
  return clock_post(c, c->now + up, OUTAGE_BEGINS, site, 1, err);
}

gl_status outage_plan(sim_clock *c, gl_error *err) {
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

gl_status outage_begin(sim_clock *c, uint32_t site, bool drawn, gl_error *err) {
  transfer_site *s = &c->net.sites[site];
  gl_status status = GL_OK;
  if (drawn) {
    delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, first_site + site),
                         2 * (uint64_t)s->drawn++ + 1, 0};
    const double down = delay_draw(c->spec->network->sites[site].mttr, &draw);
    status = clock_post(c, c->now + down, OUTAGE_ENDS, site, 1, err);
  }
  if (status != GL_OK || s->outages++ > 0) return status;
  s->since_s = c->now;
  return transfer_cut(c, err);
}

gl_status outage_end(sim_clock *c, uint32_t site, bool drawn, gl_error *err) {
  transfer_site *s = &c->net.sites[site];
  gl_status status = drawn ? plan_outage(c, site, err) : GL_OK;
  if (status != GL_OK || --s->outages > 0) return status;
  c->net.outage_s += c->now - s->since_s;
  clock_trace(c, (schedule_span){SPAN_OUTAGE, SPAN_DONE, site, s->since_s, c->now, 0, -1});
  return transfer_resume(c, err);
}
