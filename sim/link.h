/* A link between a sampler and the learner: bandwidth, one message at a time, packets that are lost
 * and sent again. Latency is a delay distribution of its own (sim/delay.h) and added by the caller.
 *
 * A message of B bytes is n = ceil(B / packet_bytes) packets, at least one. They are sent in
 * rounds: all n, then those that were lost, then those of them that were lost again. In a round of
 * n packets with independent losses the number lost is Binomial(n, loss), drawn as such: the
 * distribution of the message is exact and costs one draw a round, not one a packet. With to_bad >
 * 0 losses come in bursts (Gilbert-Elliott): a chain over packets with geometric stays, losing with
 * probability `loss` in the good state and `loss_bad` in the bad one; its state carries over to the
 * next message. Before round k + 1 the sender waits rto * backoff^k seconds. Packets still missing
 * after max_retries further rounds lose the message. The next message starts when this one has
 * ended, as on one ordered connection.
 *
 * Prefix: link_. */
#ifndef GEPOLAB_SIM_LINK_H
#define GEPOLAB_SIM_LINK_H

#include "core/config/config.h"
#include "core/random/rng.h"

typedef struct link_spec {
  double bandwidth; /* bytes per second; infinite by default */
  double packet_bytes;
  double loss, loss_bad;  /* chance that a packet is lost, in the good and in the bad state */
  double to_bad, to_good; /* chance to change the state after a packet; to_bad 0: always good */
  double rto, backoff;    /* seconds before the first repetition, and its factor for each further */
  int max_retries;
} link_spec;

typedef struct link_state {
  double free_at; /* when the message being sent ends; simulated seconds */
  uint32_t messages;
  int bad;
} link_state;

typedef struct link_trip {
  double end_s;           /* last packet sent, or given up */
  double bytes;           /* sent, repetitions included */
  double retransmissions; /* packets sent again */
  int delivered;
} link_trip;

/* Reads a section {bandwidth, packet_bytes, loss, ...}; NULL gives a perfect link. largest_bytes:
 * the largest message, to refuse bursts so short that drawing them would take forever. */
gl_status link_parse(link_spec *out, const cfg_node *node, const char *section,
                     double largest_bytes, gl_error *err);
/* Sends a message now or when the link is free. The generator is a GSL one of core/random/rng.h,
 * sought to this message's address in the link's stream (of RNG_LOSS). */
link_trip link_send(const link_spec *spec, link_state *state, rng_stream stream, gsl_rng *generator,
                    double now, double bytes);

#endif
