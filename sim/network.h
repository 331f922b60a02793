/* Messages as transfers, where the cluster has a network (cluster.network): each goes through
 *
 *   its sampler's own link, one message of a direction at a time (batches wait in line, and of
 *   weights the newest is sent once the link is free)
 *   a handshake
 *   the learner's side of the network, shared by all of its direction
 *   the waits for lost packets that are sent again (sim/link.h), all of them at the end
 *   the latency and the drawn delay, which hold nothing up
 *
 * Which weights a transfer carries is decided when its bytes begin to flow: the newest published
 * ones. Inside sim/ only: sim/clock.h holds the state and says what is done with it, in
 * sim/transfer.c. */
#ifndef GEPOLAB_SIM_NETWORK_H
#define GEPOLAB_SIM_NETWORK_H

#include "sim/cluster_spec.h"
#include "sim/link.h"

#include <stdbool.h>

/* --- quantiles of many times --- */

/* Times counted in classes of 1.1 % each, for quantiles of any number of them in little memory.
 * Seconds. */
enum { TALLY_PER_OCTAVE = 64, TALLY_OCTAVES = 96, TALLY_LOWEST = -40 };

typedef struct tally {
  uint64_t n;
  double sum, least, most;
  uint64_t count[TALLY_PER_OCTAVE * TALLY_OCTAVES]; /* by log2, from 2^TALLY_LOWEST */
} tally;

/* Adds a time that is not negative. */
void tally_add(tally *t, double seconds);
/* The p-quantile, p in (0, 1], within 0.6 %; exact where all times are equal; NaN for none. */
double tally_quantile(const tally *t, double p);

/* --- transfers --- */

enum { TRANSFER_NONE = UINT32_MAX };

typedef enum transfer_cargo {
  CARGO_WEIGHTS,
  CARGO_SHARD, /* a part of weights, in a tree of relays */
  CARGO_BATCH
} transfer_cargo;

typedef enum transfer_state {
  TRANSFER_FREE,
  TRANSFER_WAITS,   /* for its sampler's link */
  TRANSFER_GREETS,  /* the handshake */
  TRANSFER_QUEUES,  /* for the learner's side */
  TRANSFER_FLOWS,   /* its bytes are sent */
  TRANSFER_REPEATS, /* waits for lost packets */
  TRANSFER_TRAVELS  /* latency and delay */
} transfer_state;

typedef struct transfer {
  transfer_state state;
  transfer_cargo cargo;
  uint32_t from;  /* of a shard: the node that sends it on */
  bool is_begun;  /* it was interrupted by an outage and continues */
  bool delivered; /* no packet was given up */
  bool is_delta;  /* weights that need the ones before */
  uint32_t sampler;
  uint32_t slot;    /* of the batch */
  uint32_t next;    /* in a line, or among free places */
  uint32_t serial;  /* counts uses of this place; events of earlier uses are ignored */
  uint32_t crashes; /* of the sampler when its bytes began to flow */
  int64_t version;  /* of the weights */
  double asked_s, begun_s;
  double bytes; /* to be sent from since_s on, repetitions included */
  double since_s;
  double wait_s; /* for lost packets */
} transfer;

/* Transfers one behind the other. */
typedef struct transfer_line {
  uint32_t first, last;
} transfer_line;

/* One direction of the learner's side. */
typedef struct transfer_port {
  share_rule share;
  uint32_t resource; /* FLOW_NONE: unlimited */
  transfer_line line;
  size_t active; /* transfers whose bytes flow */
  double busy_since_s;
} transfer_port;

/* A direction between the learner and the samplers of a group. */
typedef struct transfer_route {
  uint32_t from, to; /* sites */
  double latency_s;  /* one way */
  double greeting_s; /* of its handshake */
  link_spec link;    /* without its bandwidth */
  double cap;        /* bytes per second of one transfer */
  uint32_t class;    /* of flows; FLOW_NONE: nothing of it is shared */
} transfer_route;

/* A sampler's end. */
typedef struct transfer_peer {
  uint32_t up, down;  /* the transfer that uses its link; TRANSFER_NONE */
  transfer_line line; /* batches that wait for `up` */
  uint32_t sent;      /* transfers of weights */
  bool needs_full;    /* it lacks the weights that a delta refers to */
} transfer_peer;

/* The learner (0) or a sampler (its number + 1) in a tree of relays: node x sends on to the nodes
 * fanout * x + 1 … fanout * x + fanout, one shard at a time. */
typedef struct relay_node {
  transfer_port port;
  uint32_t got;            /* shards received of the version under way to it */
  uint32_t open;           /* shards that it sent and that have not arrived */
  uint32_t sent;           /* versions sent on */
  bool is_held;            /* it holds a reference to `passed`, which others still receive */
  int64_t have, passed;    /* newest complete version; version that it sends or sent last */
  double have_s, passed_s; /* when the learner began to send these */
  double first_s;          /* when the first shard of the version under way began to flow */
  double bytes;            /* of a shard of `passed` */
} relay_node;

/* A site that may be cut off from the others. */
typedef struct transfer_site {
  uint32_t outages; /* that last now */
  uint32_t drawn;   /* outages sampled so far */
  double since_s;   /* start of the first of them */
} transfer_site;

/* Arrays but pool are in the clock's arena. */
typedef struct network {
  transfer_peer *peers;      /* [samplers]; NULL: the cluster has no network */
  transfer_route *up, *down; /* [groups] */
  transfer *pool;            /* [n] owned */
  size_t capacity;
  uint32_t n, free;
  transfer_port egress, ingress;
  flow_net flows;
  uint32_t shares; /* counts assignments of rates; an end posted under earlier rates is ignored */
  bool share_pending;
  double deltas, fulls;
  relay_node *nodes;    /* [samplers + 1]; NULL: there is no relay */
  transfer_route *hops; /* [groups + 1][groups]: from a group or, last, the learner */
  transfer_site *sites; /* [sites]; NULL: there are none */
  uint32_t *pipes;      /* [sites][sites]: of flows, from and to; FLOW_NONE: unlimited */
  transfer_line parked; /* transfers that wait for the end of an outage */
  double interrupted, outage_s;
  tally *weights, *batches; /* seconds from the request to the arrival */
} network;

#endif
