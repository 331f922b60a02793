/* A link between a sampler and the learner: bandwidth, one message at a time, lost packets that are
 * retransmitted. The caller adds latency, which is a delay distribution (sim/delay.h).
 *
 * A message of B bytes has n = ceil(B / packet_bytes) packets, at least one. They are sent in
 * rounds: first all n, then those that were lost, and so on. In a round of n packets with
 * independent losses the number lost is Binomial(n, loss) and sampled as such: the distribution of
 * the message is exact and costs one sample per round instead of one per packet. With to_bad > 0
 * losses come in bursts (Gilbert-Elliott): a Markov chain over packets with loss probability `loss`
 * in the good state and `loss_bad` in the bad state; its state carries over to the next message.
 * The k-th round of retransmissions, k = 1, 2, ..., begins rto * backoff^(k - 1) seconds after the
 * round before it has been sent. If packets are still missing after
 * max_retries further rounds, the message is lost. The next message starts when this one has ended,
 * as on one ordered connection. Links shared by several transfers are in sim/shared_capacity.h.
 * Prefix: link_. */
#ifndef GEPOLAB_SIM_LOSSY_LINK_H
#define GEPOLAB_SIM_LOSSY_LINK_H

#include "core/config/config.h"
#include "core/random/rng.h"

#include <stdbool.h>

typedef struct link_spec {
  double bandwidth; /* bytes per second; infinite by default */
  double packet_bytes;
  double loss, loss_bad; /* probability of losing a packet, in the good and in the bad state */
  double to_bad,
      to_good; /* probability of changing the state after a packet; to_bad 0: always good */
  double rto,
      backoff; /* seconds before the first retransmission, and factor for each further one */
  int max_retries;
} link_spec;

typedef struct link_state {
  double free_at; /* end of the message being sent; simulated seconds */
  uint32_t messages;
  int bad;
} link_state;

typedef struct link_trip {
  double end_s;           /* time when the last packet was sent or given up */
  double bytes;           /* bytes sent, including retransmissions */
  double retransmissions; /* packets sent again */
  bool delivered;
} link_trip;

/* Reads a section {bandwidth, packet_bytes, loss, ...}; NULL gives a perfect link. largest_bytes:
 * the largest message, used to refuse bursts so short that sampling them would take too long. */
gl_status link_parse(link_spec *out, const cfg_node *node, const char *section,
                     double largest_bytes, gl_error *err);
/* Sends a message now or when the link is free. The generator is a GSL one of core/random/rng.h,
 * positioned at this message in the link's stream (of RNG_LOSS). */
link_trip link_send(const link_spec *spec, link_state *state, rng_stream stream, gsl_rng *generator,
                    double now, double bytes);

#endif
