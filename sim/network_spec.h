/* What the section cluster.network says, once it has been read. Inside sim/ only.
 *
 * Without the section each sampler has two links of its own (sim/link.h), and nothing is shared:
 * the clock knows a message's end when it begins. With it messages are transfers with a life of
 * their own (sim/network.h). Prefix: network_. */
#ifndef GEPOLAB_SIM_NETWORK_SPEC_H
#define GEPOLAB_SIM_NETWORK_SPEC_H

#include "core/config/config.h"
#include "sim/delay.h"

#include <stddef.h>
#include <stdint.h>

/* How transfers through the learner's side of the network share it: at once, each with its fair
 * share (max-min); or one after the other. */
typedef enum share_rule { SHARE_FAIR, SHARE_QUEUE } share_rule;

typedef struct network_port {
  double bandwidth; /* bytes per second; may be infinite */
  share_rule share;
} network_port;

typedef struct site_outage {
  double from_s, to_s;
} site_outage;

/* A place with samplers, or the learner's. Rows are of the matrices between sites: [sites], from
 * this one to each. All owned. */
typedef struct network_site {
  char *name;
  double *latency;   /* seconds, one way */
  double *bandwidth; /* bytes per second, shared by all transfers of that direction; or infinite */
  double *loss;      /* chance that a packet is lost, besides what the sampler's link loses */
  site_outage *outages; /* [n_outages] */
  size_t n_outages;
  delay_dist *mtbf, *mttr; /* seconds to an outage, and to its end; mtbf of 0: none is drawn */
} network_site;

typedef struct network_spec {
  network_port egress, ingress; /* of the learner */
  double round_trips;           /* before a transfer begins, */
  double rtt;                   /* each of so many seconds; 0: as the latencies of sites say */
  double delta_share;           /* of the bytes of the weights that a delta has; 1: none is sent */
  int64_t full_every;           /* every n-th transfer of weights to a sampler is full; 0: none */
  size_t fanout; /* samplers that a node of the relay tree sends weights on to; 0: no relay */
  size_t shards; /* that weights are cut into */
  double relay_bandwidth; /* bytes per second of a sampler that sends on; 0: that of its link up */
  network_site *sites;    /* [n_sites] the learner's first; none: all is at one place */
  size_t n_sites;
  int interrupted_is_lost; /* what flows when an outage begins; else it goes on afterwards */
} network_spec;

/* Reads the section. *out is NULL where it is left out or changes nothing; else the caller
 * releases it with network_free(). GL_EINPUT names the field's place. */
gl_status network_parse(network_spec **out, const cfg_node *node, gl_error *err);
/* The number of the site that node names; 0, the learner's, where it is NULL. GL_EINPUT for a name
 * that there is not. */
gl_status network_site_of(const network_spec *spec, const cfg_node *node, size_t *site,
                          gl_error *err);
void network_free(network_spec *spec);

#endif
