/* Messages as transfers, if the cluster has a network (cluster.network). Each passes through
 *
 *   its sampler's own link, one message per direction at a time (batches queue; of weights the
 *     newest are sent when the link is free)
 *   a handshake
 *   the learner's side of the network, shared by all transfers in that direction
 *   the waiting times for retransmissions of lost packets (sim/lossy_link.h), all at the end
 *   the latency and the sampled delay, which block nothing else
 *
 * A transfer of weights carries the newest version published when its bytes start to flow. Private
 * to sim/: sim/clock.h holds the state and declares the operations, which are in sim/transfer.c.
 */
#ifndef GEPOLAB_SIM_NETWORK_H
#define GEPOLAB_SIM_NETWORK_H

#include "sim/cluster_spec.h"
#include "sim/lossy_link.h"
#include "sim/shared_capacity.h"

#include <stdbool.h>

/* --- histogram of times --- */

/* A histogram of times in classes of 1.1 % width, for quantiles of any number of times in little
 * memory. Seconds. */
enum { TALLY_PER_OCTAVE = 64, TALLY_OCTAVES = 96, TALLY_LOWEST = -40 };

typedef struct tally {
  uint64_t n;
  double sum, least, most;
  uint64_t count[TALLY_PER_OCTAVE * TALLY_OCTAVES]; /* number of times in each class;
                                                       class k begins at 2^(TALLY_LOWEST + k /
                                                       TALLY_PER_OCTAVE) seconds */
} tally;

/* Adds a non-negative time. */
void tally_add(tally *t, double seconds);
/* The p-quantile, p in (0, 1], within 0.6 %; exact if all times are equal; NaN if there are none.
 */
double tally_quantile(const tally *t, double p);

/* --- transfers --- */

enum { TRANSFER_NONE = UINT32_MAX };

typedef enum transfer_cargo {
  CARGO_WEIGHTS,
  CARGO_SHARD, /* a part of the weights, in a tree of relays */
  CARGO_BATCH
} transfer_cargo;

typedef enum transfer_state {
  TRANSFER_FREE,
  TRANSFER_WAITS,       /* waits for its sampler's link */
  TRANSFER_HANDSHAKE,   /* in the handshake */
  TRANSFER_QUEUES,      /* waits for the learner's side */
  TRANSFER_FLOWS,       /* its bytes are being sent */
  TRANSFER_RETRANSMITS, /* waits for retransmissions */
  TRANSFER_IN_FLIGHT    /* in latency and delay */
} transfer_state;

typedef struct transfer {
  transfer_state state;
  transfer_cargo cargo;
  uint32_t from;  /* for a shard: the forwarding node */
  bool is_begun;  /* was interrupted by an outage and continues */
  bool delivered; /* no packet was given up */
  bool is_delta;  /* a delta: weights that require the previous ones */
  uint32_t sampler;
  uint32_t slot;    /* slot of the batch */
  uint32_t next;    /* next in a queue or in the list of free entries */
  uint32_t serial;  /* counts uses of this entry; events of earlier uses are ignored */
  uint32_t crashes; /* crashes of the sampler when its bytes started to flow */
  int64_t version;  /* version of the weights */
  double asked_s, begun_s;
  double bytes; /* still to be sent at since_s, including retransmissions */
  double since_s;
  double wait_s; /* waiting time for retransmissions */
} transfer;

/* A queue of transfers. */
typedef struct transfer_line {
  uint32_t first, last;
} transfer_line;

/* One direction of the learner's side of the network. */
typedef struct transfer_port {
  share_rule share;
  uint32_t resource; /* FLOW_NONE: unlimited */
  transfer_line line;
  size_t active; /* number of transfers whose bytes flow */
  double busy_since_s;
} transfer_port;

/* One direction between the learner and the samplers of a group. */
typedef struct transfer_route {
  uint32_t from, to;  /* sites */
  double latency_s;   /* one way */
  double handshake_s; /* duration of the handshake */
  link_spec link;     /* without its bandwidth */
  double cap;         /* bytes per second of one transfer */
  uint32_t class;     /* class of its flows; FLOW_NONE: it uses no shared resource */
} transfer_route;

/* A sampler's end of its links. */
typedef struct transfer_peer {
  uint32_t up, down;  /* the transfer that uses the link; TRANSFER_NONE */
  transfer_line line; /* batches waiting for `up` */
  uint32_t sent;      /* number of transfers of weights so far */
  bool needs_full;    /* lacks the weights that a delta refers to */
} transfer_peer;

/* The learner (0) or a sampler (its number + 1) in a tree of relays: node x forwards to nodes
 * fanout * x + 1 … fanout * x + fanout, one shard at a time. */
typedef struct relay_node {
  transfer_port port;
  uint32_t got;  /* shards received of the version in transfer */
  uint32_t open; /* shards sent that have not arrived */
  uint32_t sent; /* number of versions forwarded */
  bool is_held;  /* holds a reference to version `passed`, which its children are still receiving */
  int64_t have, passed;    /* newest complete version; version that it sends or sent last */
  double have_s, passed_s; /* time when the learner started to send these versions */
  double first_s; /* time when the first shard of the version in transfer started to flow */
  double bytes;   /* size of a shard of the version that it sends */
} relay_node;

/* A site that outages can cut off from the others. */
typedef struct transfer_site {
  uint32_t outages; /* number of current outages */
  uint32_t n_drawn; /* sampled outages so far */
  double since_s;   /* start of the first current outage */
} transfer_site;

/* All arrays except pool are allocated in the clock's arena. */
typedef struct network {
  transfer_peer *peers;      /* [samplers]; NULL: the cluster has no network */
  transfer_route *up, *down; /* [groups] routes between each group of samplers and the learner */
  transfer *pool;            /* [n] all transfers, in reusable entries; owned */
  size_t capacity;
  uint32_t n, free;
  transfer_port egress, ingress;
  flow_net flows;
  uint32_t shares; /* counts assignments of rates; ends posted under earlier rates are ignored */
  bool share_pending;
  double deltas, fulls;
  relay_node *nodes;    /* [samplers + 1]; NULL: no relay */
  transfer_route *hops; /* [groups + 1][groups] routes from each group, and from the learner (the
                           last index), to each group */
  transfer_site *sites; /* [sites]; NULL: no sites */
  uint32_t *pipes; /* [sites][sites] flow resource from one site to another; FLOW_NONE: unlimited */
  transfer_line parked; /* transfers waiting for the end of an outage */
  double interrupted, outage_s;
  tally *weights, *batches; /* seconds from request to arrival */
} network;

#endif
