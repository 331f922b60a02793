/* What a cluster section says, once it has been read. Inside sim/ only; others see cluster.h. */
#ifndef GEPOLAB_SIM_CLUSTER_SPEC_H
#define GEPOLAB_SIM_CLUSTER_SPEC_H

#include "sim/delay.h"
#include "sim/link.h"
#include "sim/measured.h"
#include "sim/network_spec.h"
#include "sim/response.h"

#include <stddef.h>
#include <stdint.h>

/* How weights reach a sampler: fetched between batches once the delay drawn at the last fetch has
 * passed, or sent at every publication and arriving a delay later. */
typedef enum sync_rule { SYNC_PULL, SYNC_PUSH } sync_rule;
/* Which waiting batch is trained next (paper/methods.md §10.4). QUEUE_HETERORL is the
 * released rule, paper/methods.md §10.4. */
/* What samplers send and an update takes: whole batches, groups of responses to one prompt, or
 * single responses. Groups and responses stream: a free decoding slot takes the next response at
 * once, whichever unit it is of, and a unit is sent when its last response has ended
 * (sim/stream.c). */
typedef enum unit_kind { UNIT_BATCH, UNIT_GROUP, UNIT_RESPONSE } unit_kind;
/* What becomes of streamed units that are under way when new weights are pushed to their sampler:
 * they are finished with the weights they began with, and the new ones wait; they go on under the
 * new weights; they are thrown away. */
typedef enum partial_rule { PARTIAL_WAIT, PARTIAL_CONTINUE, PARTIAL_DROP } partial_rule;
/* What becomes of the keys and values of the tokens there are, when a response goes on under new
 * weights: they stay, so that later tokens attend to what older weights computed; or they are
 * computed again by the new ones, which takes the time of a prefill. */
typedef enum kv_cache_rule { KV_CACHE_RECOMPUTE, KV_CACHE_KEEP } kv_cache_rule;
/* What becomes of units that are staler than the window: thrown away; or there are none, because
 * the learner waits for those that would become so and trains them first; or trained all the same,
 * with less weight (stale_decay to the power of the versions beyond the window). */
typedef enum stale_rule { STALE_DISCARD, STALE_WAIT, STALE_DOWNWEIGHT } stale_rule;
/* What a full queue throws away: the first that arrived, one of the oldest version, or what comes.
 */
typedef enum evict_rule { EVICT_OLDEST, EVICT_STALEST, EVICT_NEWEST } evict_rule;
typedef enum queue_rule { QUEUE_HETERORL, QUEUE_FIFO, QUEUE_LIFO, QUEUE_OLDEST_VERSION } queue_rule;

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

typedef struct cluster_spec {
  const char *preset; /* static */
  sampler_group *groups;
  size_t n_groups, n_samplers;
  int shared_delays;
  sync_rule sync;
  queue_rule queue;
  int coupled;    /* real responses drive the clock */
  int in_flight;  /* weights that arrive during generation are used from then on */
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
} cluster_spec;

#endif
