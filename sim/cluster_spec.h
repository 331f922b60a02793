/* The section `cluster` of a recipe, parsed. Inside sim/ only; others use cluster.h. */
#ifndef GEPOLAB_SIM_CLUSTER_SPEC_H
#define GEPOLAB_SIM_CLUSTER_SPEC_H

#include "core/base/arena.h"
#include "sim/cluster.h"
#include "sim/delay.h"
#include "sim/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- responses --- */

/* Response lengths and what they cost: the seconds a batch takes to generate and its bytes, where
 * these follow from lengths drawn from a distribution (measured lengths: an empirical one), or from
 * those of real responses (cluster.coupled).
 *
 * A sampler decodes up to `concurrency` responses side by side, each at `tokens_per_s`:
 *
 *   continuous  a slot takes the next response as soon as its own has ended (continuous batching
 *               of vLLM and SGLang), in the order of the responses
 *   padded      the next `concurrency` responses begin when the longest of the ones before has
 * ended
 *
 * Batching more responses does not slow one down in this model; a sampler that slows is one with
 * fewer tokens_per_s. Lengths are rounded to whole tokens in 1..max_tokens. Response k of a batch
 * is draw k of the stream (RNG_LENGTH, batch id), so a batch's lengths depend on nothing else.
 *
 * Prompts may differ in how long their responses are: a factor for each group of a batch, draw g of
 * the stream (RNG_LENGTH, batch id + RESPONSE_PROMPTS), multiplies the lengths of its responses
 * before they are rounded. */

#define RESPONSE_PROMPTS ((uint64_t)1 << 63)

typedef enum response_batching { BATCHING_CONTINUOUS, BATCHING_PADDED } response_batching;

typedef struct response_spec {
  delay_dist *lengths; /* tokens; owned; NULL: costs do not follow lengths */
  double max_tokens, tokens_per_s;
  double prompt_tokens;        /* of every prompt */
  double prefill_tokens_per_s; /* at which caches are computed again; 0: it takes no time */
  size_t concurrency;
  response_batching batching;
  const delay_dist
      *prompts;      /* factor on the lengths of all responses of a group; borrowed; NULL: 1 */
  size_t group_size; /* of it; has no part where prompts is NULL */
} response_spec;

typedef struct response_cost {
  double seconds; /* on a sampler of speed 1 */
  double tokens;  /* of all responses */
  double longest; /* tokens of the longest */
} response_cost;

/* --- cluster.network --- */

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
  double delta_fraction;        /* of the bytes of the weights that a delta has; 1: none is sent */
  int64_t full_every;           /* every n-th transfer of weights to a sampler is full; 0: none */
  size_t fanout; /* samplers that a node of the relay tree sends weights on to; 0: no relay */
  size_t shards; /* that weights are cut into */
  double relay_bandwidth; /* bytes per second of a sampler that sends on; 0: that of its link up */
  network_site *sites;    /* [n_sites] the learner's first; none: all is at one place */
  size_t n_sites;
  arena memory;             /* of sites, their names, rows and outages */
  bool interrupted_is_lost; /* what flows when an outage begins; else it goes on afterwards */
} network_spec;

/* --- cluster --- */

/* Samplers that are alike. Distributions are owned by the group. */
typedef struct sampler_group {
  size_t count;
  size_t site;            /* of cluster.network.sites; 0: the learner's */
  double speed;           /* generation times are divided by it */
  delay_dist *generation; /* seconds per batch at speed 1; beside those of its responses, if any */
  response_spec responses;
  delay_dist *jitter;     /* factor on a generation time */
  delay_dist *delay;      /* of weights */
  delay_dist *data_delay; /* of batches */
  delay_dist *mtbf;       /* seconds from a return to the next crash; zero distribution: never */
  delay_dist *mttr;       /* seconds from a crash to the return */
  link_spec up, down;
} sampler_group;

struct cluster_spec {
  const char *preset; /* static */
  sampler_group *groups;
  size_t n_groups, n_samplers;
  bool shared_delays; /* all samplers draw the same sequence of weight delays */
  sync_rule sync;
  queue_rule queue;
  bool coupled;   /* real responses drive the clock */
  bool in_flight; /* weights that arrive during generation are used from then on */
  int64_t ahead;  /* a sampler may begin batch b once b / batches <= its version + ahead */
  int64_t window; /* largest staleness (QUEUE_HETERORL: D of paper/methods.md §10.4) */
  unit_kind unit;
  partial_rule partial; /* of streamed units */
  kv_cache_rule kv_cache;
  double interrupt;      /* seconds that decoding stands still for weights that are taken over */
  size_t unit_responses; /* of a unit */
  size_t group_size;     /* responses of a group */
  size_t batches;        /* per update */
  size_t take;           /* units per update: as many as hold the responses of `batches` batches */
  double tokens;   /* not 0: an update takes units until they hold so many tokens, not `take` */
  size_t lookback; /* QUEUE_HETERORL: newest batches seen */
  size_t capacity; /* waiting units kept; 0: no limit */
  stale_rule stale;
  double stale_decay;
  evict_rule evict;
  delay_dist *step;    /* seconds per update */
  delay_dist *pause;   /* seconds per evaluation */
  delay_dist *prompts; /* factor on the lengths of all responses of a group; NULL: 1 */
  int64_t eval_every, publish_every;
  measured_staleness measured; /* to compare a schedule with; n == 0: none */
  double weights_bytes, rollout_bytes, bytes_per_token;
  size_t samples_per_batch;
  network_spec
      *network; /* owned; NULL: every sampler has links of its own, and nothing is shared */
};

/* --- cluster_sections.c --- */

/* Reads {histogram} or {trace, column} or neither, {seconds, updates} or not, but one of them, with
 * {name, source}; NULL: nothing to compare with. A trace is a CSV with one update's staleness per
 * line, rounded to whole updates. Errors: GL_EINPUT at the place in the recipe, also where the file
 * is missing or its column is not clear. measured_fini() releases it in any case. */
gl_status measured_read(measured_staleness *m, const cfg_node *compare, gl_error *err);
void measured_fini(measured_staleness *m);
/* *out is NULL where the section is left out or changes nothing; else network_free() releases it.
 */
gl_status network_parse(network_spec **out, const cfg_node *node, gl_error *err);
void network_free(network_spec *spec);
/* The number of the site that node names; 0, the learner's, where it is NULL. */
gl_status network_site_of(const network_spec *spec, const cfg_node *node, size_t *site,
                          gl_error *err);

#endif
