/* A link between a sampler and the learner: bandwidth, one message at a time, lost packets that are
 * retransmitted. The caller adds latency, which is a delay distribution (sim/delay.h).
 *
 * A message of B bytes has n = ceil(B / packet_bytes) packets, at least one. They are sent in
 * rounds: first all n, then those that were lost, and so on. In a round of n packets with
 * independent losses the number lost is Binomial(n, loss) and sampled as such: the distribution of
 * the message is exact and costs one sample per round instead of one per packet. With to_bad > 0
 * losses come in bursts (Gilbert-Elliott): a Markov chain over packets with loss probability `loss`
 * in the good state and `loss_bad` in the bad state; its state carries over to the next message.
 * Before round k + 1 the sender waits rto * backoff^k seconds. If packets are still missing after
 * max_retries further rounds, the message is lost. The next message starts when this one has ended,
 * as on one ordered connection.
 *
 * Links shared by several transfers are the flows below. Prefixes: link_, flow_. */
#ifndef GEPOLAB_SIM_LINK_H
#define GEPOLAB_SIM_LINK_H

#include "core/config/config.h"
#include "core/random/rng.h"
#include "sim/event_queue.h"

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

/* --- flows: shared capacity --- */

/* Transfers that share capacity, simulated exactly by events.
 *
 * A flow is a number of bytes that pass simultaneously through a few resources, each with a
 * capacity in bytes per second, and at most at `cap` bytes per second. Rates are max-min fair
 * (Bertsekas and Gallager, Data Networks, 1992, §6.5.2): no flow can get faster unless one that is
 * not faster gets slower. A single resource is processor sharing. Rates change only when a flow
 * joins or leaves, so in between bytes grow linearly and the next end is known exactly.
 *
 * Flows with the same resources and the same cap form a class with one rate. A class stores the
 * bytes that each of its flows has received since the class was last empty, and its flows in the
 * order of their ends, so a change costs O(classes x resources + log flows), however many flows
 * there are.
 *
 * The owner controls time: call flow_advance() to the current time, then flow_join() and
 * flow_finish(), then flow_share() and flow_next(). Units are bytes and non-negative seconds. Not
 * thread-safe. */

enum { FLOW_MOST_VIA = 3, FLOW_NONE = UINT32_MAX };

typedef struct flow_resource {
  double capacity; /* bytes per second, finite */
  double carried;  /* bytes, until `now` */
  double left;     /* scratch of flow_share: capacity not yet assigned */
  size_t open;     /* scratch of flow_share: number of flows without a rate */
} flow_resource;

typedef struct flow_class {
  uint32_t via[FLOW_MOST_VIA]; /* [n_via] resources */
  size_t n_via;
  uint32_t label;    /* the owner's label */
  double cap;        /* bytes per second of one flow; may be infinite */
  double rate;       /* rate of each flow; 0 without flows */
  double service;    /* bytes received by a flow that joined when the class was last empty */
  event_queue flows; /* ordered by the service at which they end */
  int is_open;       /* scratch of flow_share */
} flow_class;

typedef struct flow_net {
  flow_class *classes; /* [n_classes] owned */
  size_t n_classes, capacity;
  flow_resource *resources; /* [n_resources] owned */
  size_t n_resources;
  double now; /* time up to which bytes have been counted */
} flow_net;

void flow_init(flow_net *net);
void flow_fini(flow_net *net);
/* Adds a resource of `capacity` bytes per second (positive, finite); FLOW_NONE if out of memory. */
uint32_t flow_resource_add(flow_net *net, double capacity);
/* Returns the class of flows through via[n_via] (at most FLOW_MOST_VIA) with this cap and label,
 * creating it if needed; FLOW_NONE if out of memory. */
uint32_t flow_class_of(flow_net *net, const uint32_t *via, size_t n_via, double cap,
                       uint32_t label);
/* Advances time at the current rates. */
void flow_advance(flow_net *net, double now);
/* Adds a flow of `bytes` bytes, identified to the owner by a number; returns false if out of
 * memory. Rates do not change until flow_share(). */
bool flow_join(flow_net *net, uint32_t class, double bytes, uint64_t id);
/* Computes the rate of every class. */
void flow_share(flow_net *net);
/* Returns when and in which class the next flow ends if none joins before; false without flows. */
bool flow_next(const flow_net *net, double *time, uint32_t *class);
/* Removes the first flow of a non-empty class, which must be at its end; returns its number. */
uint64_t flow_finish(flow_net *net, uint32_t class);
/* Removes some flow of the class, and returns the bytes it still lacks; false if the class is
 * empty. */
bool flow_take(flow_net *net, uint32_t class, uint64_t *id, double *bytes);

#endif
