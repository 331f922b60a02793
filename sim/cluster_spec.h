/* The parsed section `cluster` of a recipe. Private to sim/; others use cluster.h. */
#ifndef GEPOLAB_SIM_CLUSTER_SPEC_H
#define GEPOLAB_SIM_CLUSTER_SPEC_H

#include "core/base/arena.h"
#include "sim/cluster.h"
#include "sim/delay.h"
#include "sim/lossy_link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- responses --- */

/* Response lengths and their cost: the seconds to generate a batch and its bytes, if these depend
 * on lengths sampled from a distribution (empirical for measured lengths) or on lengths of real
 * responses (cluster.coupled).
 *
 * A sampler decodes up to `concurrency` responses in parallel, each at `tokens_per_s`:
 *
 *   continuous  a slot takes the next response, in order, as soon as its own has ended (continuous
 *               batching of vLLM and SGLang)
 *   padded      the next `concurrency` responses start when the longest of the previous ones has
 *               ended
 *
 * In this model more responses in parallel do not slow each other down, unless the cluster has a
 * decoding_spec; a slower sampler has a lower tokens_per_s. Lengths are rounded to whole tokens
 * in 1..max_tokens. Response k of a batch is sample k of the stream (RNG_LENGTH, batch id), so a
 * batch's lengths depend on nothing else.
 *
 * Prompts may differ in the lengths of their responses: a factor per group, sample g of the stream
 * (RNG_LENGTH, batch id + RESPONSE_PROMPTS), multiplies the lengths of its responses before
 * rounding. */

#define RESPONSE_PROMPTS ((uint64_t)1 << 63)

typedef enum response_batching { BATCHING_CONTINUOUS, BATCHING_PADDED } response_batching;

typedef struct response_spec {
  delay_dist *lengths; /* tokens; owned; NULL: cost does not depend on lengths */
  double max_tokens, tokens_per_s;
  double prompt_tokens;        /* length of every prompt */
  double prefill_tokens_per_s; /* speed of recomputing keys and values; 0: takes no time */
  size_t concurrency;
  response_batching batching;
  const delay_dist *prompts; /* length factor of all responses of a group; borrowed; NULL: 1 */
  size_t group_size;         /* responses per group; not used if prompts is NULL */
} response_spec;

typedef struct response_cost {
  double seconds; /* on a sampler with speed 1 */
  double tokens;  /* total of all responses */
  double longest; /* length of the longest response, in tokens */
} response_cost;

/* --- cluster.decoding --- */

/* Time of a decoding step, in which every response that a sampler decodes gets a token:
 *
 *   measured  seconds at some numbers of responses, linear between them and beyond the last
 *   roofline  overhead_s + max(least_s, responses x response_s): the weights are read once, and
 *             every response takes its arithmetic
 *
 * and cached_s for each token whose keys and values are held and read. */
typedef struct decoding_spec {
  double *running, *step_s; /* [n_points] measured; owned; n_points 0: a roofline */
  size_t n_points;
  double overhead_s, least_s, response_s;
  double cached_s;
  double kv_tokens; /* tokens whose keys and values fit into memory; may be infinite */
  prefix_cache_rule prefix_cache;
} decoding_spec;

/* --- cluster.sources --- */

/* Groups come from several sources of prompts (tasks, environments, data sets). */
typedef struct prompt_source {
  char *name;          /* owned */
  double fraction;     /* of the groups that are begun, or with quotas of every update */
  size_t quota;        /* units that every update takes from it; 0 without quotas */
  delay_dist *lengths; /* tokens; owned; NULL: those of the samplers */
  double reject;       /* as cluster_spec.reject */
} prompt_source;

/* --- cluster.grader --- */

/* Units that have reached the learner are graded at a limited number of places, first come, first
 * served. A unit whose grading takes longer than the time-out is rejected at that time. */
typedef struct grader_spec {
  size_t places;
  delay_dist *time; /* seconds to grade a unit; owned */
  double timeout;   /* seconds; may be infinite */
} grader_spec;

/* --- cluster.environment --- */

/* A response has several turns, of equal length. Between two of them it calls a tool or an
 * environment at one of the places, first come, first served. During a call its decoding slot
 * is held, or freed for other responses. */
typedef struct environment_spec {
  delay_dist *turns; /* number of turns of a response; owned */
  delay_dist *time;  /* seconds of a call; owned */
  size_t places;
  bool frees_slot;
} environment_spec;

/* --- cluster.colocated --- */

/* Samplers on the learner's GPUs. The GPUs switch to training when the waiting units fill `high`
 * updates. They switch back after every update or, with when_idle, after an update that leaves
 * fewer waiting units than `low` updates take. */
typedef struct colocated_spec {
  delay_dist *to_training, *to_generation; /* seconds of a switch; owned */
  bool when_idle;
  double high, low; /* when_idle: the GPUs change to training when as much waits as `high` updates
                       take, and back when less waits than `low` updates take; at least 1 */
} colocated_spec;

/* --- cluster.network --- */

/* How transfers share the learner's side of the network: simultaneously with max-min fair rates, or
 * one after the other. */
typedef enum share_rule { SHARE_FAIR, SHARE_QUEUE } share_rule;

typedef struct network_port {
  double bandwidth; /* bytes per second; may be infinite */
  share_rule share;
} network_port;

typedef struct site_outage {
  double from_s, to_s;
} site_outage;

/* A site of samplers, or the learner's site. latency, bandwidth and loss have one element per
 * site: the value from this site to that one. All pointers are owned. */
typedef struct network_site {
  char *name;
  double *latency;   /* seconds, one way */
  double *bandwidth; /* bytes per second, shared by all transfers in that direction; infinite: no
                        limit */
  double
      *loss; /* probability that a packet is lost, in addition to the loss of the sampler's link */
  site_outage *outages; /* [n_outages] */
  size_t n_outages;
  delay_dist *mtbf,
      *mttr; /* seconds until an outage, and its duration; mtbf 0: no sampled outages */
} network_site;

typedef struct network_spec {
  network_port egress, ingress; /* bandwidth out of the learner and into it */
  double round_trips;           /* number of round trips before a transfer starts */
  double rtt;                   /* seconds per round trip; 0: from the latencies of sites */
  double delta_fraction; /* size of a delta as a fraction of the weights' bytes; 1: no deltas are
                            sent */
  int64_t full_every;    /* every n-th transfer of weights to a sampler is complete; 0: none */
  size_t fanout; /* number of samplers to which a node of the relay tree forwards; 0: no relay */
  size_t shards; /* number of shards per version */
  double relay_bandwidth; /* bytes per second of a forwarding sampler; 0: that of its uplink */
  network_site *sites;    /* [n_sites] the learner's first; none: everything is at one place */
  size_t n_sites;
  arena memory;             /* of sites, their names, rows and outages */
  bool interrupted_is_lost; /* transfers interrupted by an outage are lost; otherwise they resume */
} network_spec;

/* --- cluster.restarts --- */

/* Restarts of the whole job. Times (at) are simulated seconds since the start. */
typedef struct restart_spec {
  delay_dist *every;           /* seconds from a start to the next restart; zero: none; owned */
  delay_dist *down, *recovery; /* seconds until the job is back, and to load its state; owned */
  double *at;                  /* [n_at] times of restarts; owned */
  double *before;              /* [n_before] updates that begin with a restart, ascending; owned */
  size_t n_at, n_before;
  restart_keeps keeps;
  int64_t checkpoint_every; /* updates between checkpoints; those after the last one are repeated */
} restart_spec;

/* --- cluster --- */

/* A group of identical samplers. It owns its distributions. */
typedef struct sampler_group {
  size_t count;
  bool colocated; /* on the learner's GPUs */
  size_t site;    /* index in cluster.network.sites; 0: the learner's site */
  double speed;   /* generation times are divided by this */
  delay_dist
      *generation; /* seconds per batch at speed 1, in addition to the time of its responses */
  response_spec responses;
  delay_dist *jitter;     /* factor on a generation time */
  delay_dist *delay;      /* delay of weights */
  delay_dist *data_delay; /* delay of batches */
  delay_dist *mtbf; /* seconds from a return to the next crash; zero distribution: no crashes */
  delay_dist *mttr; /* seconds from a crash to the return */
  link_spec up, down;
} sampler_group;

struct cluster_spec {
  const char *preset; /* static */
  sampler_group *groups;
  size_t n_groups, n_samplers;
  bool shared_delays; /* all samplers use the same sequence of sampled weight delays */
  sync_rule sync;
  queue_rule queue;
  bool coupled;   /* lengths of real responses drive the clock */
  bool in_flight; /* weights that arrive during generation are used from then on */
  int64_t ahead;  /* a sampler may start batch b if b / batches <= its version + ahead */
  int64_t
      window; /* largest staleness that is trained (QUEUE_HETERORL: D of paper/methods.md §10.4) */
  unit_kind unit;
  partial_rule partial; /* for streamed units */
  kv_cache_rule kv_cache;
  double interrupt;      /* seconds that decoding stops when new weights arrive */
  size_t unit_responses; /* responses per unit */
  size_t group_size;     /* responses of a group */
  size_t batches;        /* batches per update */
  size_t take;           /* units per update: as many as have the responses of `batches` batches */
  double
      tokens; /* > 0: an update takes units up to this number of tokens, instead of `take` units */
  size_t lookback;        /* QUEUE_HETERORL: number of newest batches considered */
  double reject;          /* probability that a unit is rejected when it reaches the learner */
  bool quotas;            /* every update takes the quota of each source */
  prompt_source *sources; /* [n_sources] owned */
  size_t n_sources;       /* 0: one source without a name */
  size_t capacity;        /* maximum number of waiting units; 0: no limit */
  stale_rule stale;
  double
      oversample; /* units that may be started for an update, divided by the units that it takes */
  size_t surplus; /* units that may be started beyond those that the gate's updates take */
  bool aborts_surplus; /* units that an update does not take are dropped when it starts */
  bool cancels_stale;  /* units in progress that have become staler than the window are cancelled */
  double stale_decay;
  evict_rule evict;
  delay_dist *step;    /* seconds per update */
  delay_dist *pause;   /* seconds per evaluation */
  delay_dist *prompts; /* length factor of all responses of a group; NULL: 1 */
  int64_t eval_every, publish_every;
  cluster_measurements measured; /* to compare a schedule with */
  double weights_bytes, rollout_bytes, bytes_per_token;
  size_t samples_per_batch;
  restart_spec *restarts;        /* owned; NULL: none */
  decoding_spec *decoding;       /* owned; NULL: responses do not slow each other down */
  grader_spec *grader;           /* owned; NULL: grading takes no time */
  colocated_spec *colocated;     /* owned; NULL: samplers have their own GPUs */
  environment_spec *environment; /* owned; NULL: a response is one turn */
  network_spec *network; /* owned; NULL: every sampler has its own links, and nothing is shared */
};

/* Whether the queue waits for units in progress that come before waiting ones. */
static inline bool cluster_keeps_order(const cluster_spec *spec) {
  return spec->queue == QUEUE_VERSION_ORDER || spec->queue == QUEUE_IN_ORDER;
}

/* The responses of a unit from this source. */
static inline response_spec cluster_responses(const cluster_spec *spec, const response_spec *of,
                                              size_t source) {
  response_spec r = *of;
  if (source < spec->n_sources && spec->sources[source].lengths != NULL)
    r.lengths = spec->sources[source].lengths;
  return r;
}

/* --- cluster_sections.c --- */

/* Reads {histogram} or {trace, column}, and optionally {seconds, updates}, at least one of them,
 * with {name, source}; NULL: no comparison. A trace is a CSV file with one update's staleness per
 * line, rounded to whole updates. Errors: GL_EINPUT with position in the recipe, also if the file
 * is missing or its column is ambiguous. */
gl_status measured_read(cluster_measurements *m, const cfg_node *compare, gl_error *err);
/* Reads a section into the cluster, which stays without it if the section is missing. Errors:
 * GL_ENOMEM, GL_EINPUT, also for rules of the cluster that cannot be combined with the section. */
gl_status restarts_read(cluster_spec *c, const cfg_node *node, gl_error *err);
gl_status decoding_read(cluster_spec *c, const cfg_node *node, gl_error *err);
/* After the learner's section, whose `quotas` and size of an update it needs. */
gl_status sources_read(cluster_spec *c, const cfg_node *node, gl_error *err);
gl_status grader_read(cluster_spec *c, const cfg_node *node, gl_error *err);
/* Also marks the groups that share GPUs with the learner. is_preset: the preset is colocated, so
 * the section may be missing. at: position in messages about the rest of the cluster. */
gl_status colocated_read(cluster_spec *c, const cfg_node *node, const cfg_node *at, bool is_preset,
                         gl_error *err);
gl_status environment_read(cluster_spec *c, const cfg_node *node, gl_error *err);
/* Frees what these functions read. */
void sections_free(cluster_spec *c);
/* Sets *out to NULL if the section is missing or has no effect. */
gl_status network_parse(network_spec **out, const cfg_node *node, gl_error *err);
/* Sets *site to the index of the site that node names; 0, the learner's, if node is NULL. */
gl_status network_site_of(const network_spec *spec, const cfg_node *node, size_t *site,
                          gl_error *err);

#endif
