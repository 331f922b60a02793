/* When sites are cut off from the others: at stated times, and as their distributions are drawn.
 * Outages of a site may overlap. What becomes of transfers is in transfer.c. */
#include "core/random/rng.h"
#include "sim/clock.h"

#include <math.h>

/* RNG_FAILURE entities: samplers by their number, sites from here on. */
static const uint64_t first_site = (uint64_t)1 << 63;
/* No time to an outage is less, so that simulated time always moves on. */
static const double shortest_s = 1e-9;

/* The next outage that is drawn for the site. */
static gl_status plan_drawn(sim_clock *c, uint32_t site, gl_error *err) {
  const network_site *spec = &c->spec->network->sites[site];
  if (delay_is_zero(spec->mtbf)) return GL_OK;
  delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, first_site + site),
                       2 * (uint64_t)c->net.sites[site].drawn, 0};
  const double up = fmax(delay_draw(spec->mtbf, &draw), shortest_s);
  return clock_post(c, c->now + up, RANK_ARRIVAL, OUTAGE_BEGINS, site, 1, err);
}

gl_status outage_plan(sim_clock *c, gl_error *err) {
  gl_status status = GL_OK;
  for (uint32_t i = 0; i < c->spec->network->n_sites && status == GL_OK; ++i) {
    const network_site *spec = &c->spec->network->sites[i];
    for (size_t k = 0; k < spec->n_outages && status == GL_OK; ++k) {
      const site_outage *o = &spec->outages[k];
      status = clock_post(c, o->from_s, RANK_ARRIVAL, OUTAGE_BEGINS, i, 0, err);
      if (status == GL_OK) status = clock_post(c, o->to_s, RANK_ARRIVAL, OUTAGE_ENDS, i, 0, err);
    }
    if (status == GL_OK) status = plan_drawn(c, i, err);
  }
  return status;
}

gl_status outage_begins(sim_clock *c, uint32_t site, int drawn, gl_error *err) {
  transfer_site *s = &c->net.sites[site];
  gl_status status = GL_OK;
  if (drawn) {
    delay_source draw = {rng_stream_at(c->seed, RNG_FAILURE, first_site + site),
                         2 * (uint64_t)s->drawn++ + 1, 0};
    const double down = delay_draw(c->spec->network->sites[site].mttr, &draw);
    status = clock_post(c, c->now + down, RANK_ARRIVAL, OUTAGE_ENDS, site, 1, err);
  }
  if (status != GL_OK || s->outages++ > 0) return status;
  s->since_s = c->now;
  return transfer_outage_begins(c, err);
}

gl_status outage_ends(sim_clock *c, uint32_t site, int drawn, gl_error *err) {
  transfer_site *s = &c->net.sites[site];
  gl_status status = drawn ? plan_drawn(c, site, err) : GL_OK;
  if (status != GL_OK || --s->outages > 0) return status;
  c->net.outage_s += c->now - s->since_s;
  clock_tell(c, SPAN_OUTAGE, SPAN_DONE, site, s->since_s, c->now, 0, -1);
  return transfer_outage_ends(c, err);
}
