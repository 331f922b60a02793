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
 * Links that several transfers share are the flows below. Prefixes: link_, flow_. */
#ifndef GEPOLAB_SIM_LINK_H
#define GEPOLAB_SIM_LINK_H

#include "core/config/config.h"
#include "core/random/rng.h"
#include "sim/event_queue.h"

#include <stdbool.h>

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
  bool delivered;
} link_trip;

/* Reads a section {bandwidth, packet_bytes, loss, ...}; NULL gives a perfect link. largest_bytes:
 * the largest message, to refuse bursts so short that drawing them would take forever. */
gl_status link_parse(link_spec *out, const cfg_node *node, const char *section,
                     double largest_bytes, gl_error *err);
/* Sends a message now or when the link is free. The generator is a GSL one of core/random/rng.h,
 * sought to this message's address in the link's stream (of RNG_LOSS). */
link_trip link_send(const link_spec *spec, link_state *state, rng_stream stream, gsl_rng *generator,
                    double now, double bytes);

/* --- flows: capacity that transfers share --- */

/* Transfers that share capacity, exactly and by events.
 *
 * A flow is so many bytes that go at once through a few resources, each of so many bytes a second,
 * and are at most `cap` bytes a second by themselves. Rates are max-min fair (Bertsekas and
 * Gallager, Data Networks, 1992, §6.5.2): no flow could be faster without one that is not faster
 * becoming slower. One resource alone is processor sharing. Rates change only when a flow joins or
 * leaves, so between these moments bytes grow linearly and the next end is known without error.
 *
 * Flows of the same resources and the same cap are a class: they all have one rate. A class keeps
 * the bytes that each of its flows has had since it was last empty, and its flows in the order in
 * which they reach theirs; so a change costs O(classes x resources + log flows), however many flows
 * there are.
 *
 * The owner keeps the clock: flow_advance to the moment, flow_join and flow_finish, then flow_share
 * and flow_next. Bytes, and seconds that are not negative; no more than one owner at
 * a time. */

enum { FLOW_MOST_VIA = 3, FLOW_NONE = UINT32_MAX };

typedef struct flow_resource {
  double capacity; /* bytes per second, finite */
  double carried;  /* bytes, until `now` */
  double left;     /* scratch of flow_share: capacity that is not given away */
  size_t open;     /* scratch of flow_share: flows without a rate */
} flow_resource;

typedef struct flow_class {
  uint32_t via[FLOW_MOST_VIA]; /* [n_via] resources */
  size_t n_via;
  uint32_t label;    /* the owner's */
  double cap;        /* bytes per second of one flow; may be infinite */
  double rate;       /* of each flow; 0 while there is none */
  double service;    /* bytes that a flow has had that joined when the class was last empty */
  event_queue flows; /* by the service at which they end */
  int is_open;       /* scratch of flow_share */
} flow_class;

typedef struct flow_net {
  flow_class *classes; /* [n_classes] owned */
  size_t n_classes, capacity;
  flow_resource *resources; /* [n_resources] owned */
  size_t n_resources;
  double now; /* rates have held since */
} flow_net;

void flow_init(flow_net *net);
void flow_fini(flow_net *net);
/* A resource of so many bytes per second (positive, finite); FLOW_NONE if memory is short. */
uint32_t flow_resource_add(flow_net *net, double capacity);
/* The class of flows through via[n_via] (at most FLOW_MOST_VIA) with this cap and the owner's
 * label; FLOW_NONE if memory is short. */
uint32_t flow_class_of(flow_net *net, const uint32_t *via, size_t n_via, double cap,
                       uint32_t label);
/* Lets time pass at the present rates. */
void flow_advance(flow_net *net, double now);
/* Adds a flow of so many bytes, known to the owner by a number; false if memory is short. Rates are
 * those of before until flow_share. */
bool flow_join(flow_net *net, uint32_t class, double bytes, uint64_t id);
/* Gives every class its rate. */
void flow_share(flow_net *net);
/* When the next flow ends if nothing joins before, and in which class; false: there is no flow. */
bool flow_next(const flow_net *net, double *time, uint32_t *class);
/* Takes the first flow of a class that has one, which is at its end. */
uint64_t flow_finish(flow_net *net, uint32_t class);
/* Takes any flow of the class, wherever it stands, with the bytes that it still lacks; false: the
 * class has none. */
bool flow_take(flow_net *net, uint32_t class, uint64_t *id, double *bytes);

#endif
