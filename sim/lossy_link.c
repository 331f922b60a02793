/* Messages over a single link: bandwidth, lost packets and retransmission. */
#include "sim/lossy_link.h"

#include "core/config/fields.h"

#include <gsl/gsl_randist.h>
#include <math.h>

gl_status link_parse(link_spec *out, const cfg_node *node, const char *section,
                     double largest_bytes, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, section, err);
  out->bandwidth = field_real(&r, "bandwidth");
  out->packet_bytes = field_real(&r, "packet_bytes");
  out->loss = field_real(&r, "loss");
  out->loss_bad = field_real(&r, "loss_bad");
  out->to_bad = field_real(&r, "to_bad");
  out->to_good = field_real(&r, "to_good");
  out->rto = field_real(&r, "rto");
  out->backoff = field_real(&r, "backoff");
  out->max_retries = (int)field_integer(&r, "max_retries");
  double packets = largest_bytes / out->packet_bytes;
  double runs = 2 * packets * out->to_bad * out->to_good / (out->to_bad + out->to_good);
  if (r.status == GL_OK && packets > 4e9)
    r.status = cfg_fail(node, err, "a message would be %g packets; raise packet_bytes", packets);
  if (r.status == GL_OK && runs > 1e6)
    r.status = cfg_fail(node, err,
                        "a message would see %g bursts, too many to draw (1e6); raise packet_bytes "
                        "or lower to_bad",
                        runs);
  const double least = out->to_bad > 0 ? fmin(out->loss, out->loss_bad) : out->loss;
  if (r.status == GL_OK && least >= 1)
    r.status = cfg_fail(cfg_has(&r, "loss") ? cfg_child(&r, "loss") : node, err,
                        "a loss of 1 lets no packet through; lower %s.loss", section);
  return cfg_end(&r);
}

/* Samples how many of n packets are lost. */
static unsigned lost_of(const link_spec *spec, link_state *state, gsl_rng *g, unsigned n) {
  if (spec->to_bad <= 0) return spec->loss <= 0 ? 0 : gsl_ran_binomial(g, spec->loss, n);
  unsigned lost = 0;
  while (n > 0) {
    double leave = state->bad ? spec->to_good : spec->to_bad;
    unsigned stay = gsl_ran_geometric(g, leave);
    unsigned here = stay == 0 || stay > n ? n : stay;
    lost += gsl_ran_binomial(g, state->bad ? spec->loss_bad : spec->loss, here);
    n -= here;
    if (stay == here) state->bad = !state->bad;
  }
  return lost;
}

link_trip link_send(const link_spec *spec, link_state *state, rng_stream stream, gsl_rng *generator,
                    double now, double bytes) {
  double start = fmax(now, state->free_at), wait = spec->rto;
  link_trip trip = {start + bytes / spec->bandwidth, bytes, 0, 1};
  if (spec->loss > 0 || spec->to_bad > 0) {
    uint64_t address = (uint64_t)state->messages++ << 16;
    rng_gsl_seek(generator, stream, address);
    unsigned missing =
        lost_of(spec, state, generator, (unsigned)fmax(1, ceil(bytes / spec->packet_bytes)));
    for (int k = 0; missing > 0 && k < spec->max_retries; ++k, wait *= spec->backoff) {
      double again = fmin((double)missing * spec->packet_bytes, bytes);
      trip.end_s += wait + again / spec->bandwidth;
      trip.bytes += again;
      trip.retransmissions += (double)missing;
      missing = lost_of(spec, state, generator, missing);
    }
    trip.delivered = missing == 0;
  }
  state->free_at = trip.end_s;
  return trip;
}
