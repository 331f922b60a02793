/* The `cluster` section of a recipe: samplers, links, learner and rules. */
#ifndef GEPOLAB_SIM_CLUSTER_H
#define GEPOLAB_SIM_CLUSTER_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "sim/delay.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cluster_spec cluster_spec;

/* --- rules of the clock --- */

/* How weights reach a sampler. SYNC_PULL: fetched between batches, once the delay sampled at the
 * last fetch has passed. SYNC_PUSH: sent at every publication, arriving after a delay. */
typedef enum sync_rule { SYNC_PULL, SYNC_PUSH } sync_rule;
/* The unit that samplers send and updates train: whole batches, groups of responses to one prompt,
 * or single responses. Groups and responses stream: a free decoding slot takes the next response at
 * once, whatever its unit, and a unit is sent when its last response has ended (sim/sampler.c). */
typedef enum unit_kind { UNIT_BATCH, UNIT_GROUP, UNIT_RESPONSE } unit_kind;
/* What happens to streamed units in progress when new weights are pushed: they finish under the old
 * weights, which delays the new ones; continue under the new weights; or are dropped. */
typedef enum partial_rule { PARTIAL_WAIT, PARTIAL_CONTINUE, PARTIAL_DROP } partial_rule;
/* Keys and values of earlier tokens when a response continues under new weights: recomputed with
 * the new weights, which takes the time of a prefill; or kept, so that later tokens attend to
 * values from older weights. */
typedef enum kv_cache_rule { KV_CACHE_RECOMPUTE, KV_CACHE_KEEP } kv_cache_rule;
/* Keys and values of prompts (cluster.decoding): computed in no time, by every response for itself;
 * computed by every response; shared by the responses of a group that begin under the same weights;
 * shared by all of them. */
typedef enum prefix_cache_rule {
  PREFIX_CACHE_FREE,
  PREFIX_CACHE_NONE,
  PREFIX_CACHE_VERSION,
  PREFIX_CACHE_ALL
} prefix_cache_rule;
/* Units staler than the window are dropped (DISCARD); avoided, because the learner waits for units
 * that would become too stale and trains them first (WAIT); or trained with less weight
 * (DOWNWEIGHT: stale_decay to the power of the versions beyond the window). */
typedef enum stale_rule { STALE_DISCARD, STALE_WAIT, STALE_DOWNWEIGHT } stale_rule;
/* The unit that a full queue drops: the first to arrive, one of the oldest version, or the arriving
 * one. */
typedef enum evict_rule { EVICT_OLDEST, EVICT_STALEST, EVICT_NEWEST } evict_rule;
/* What survives a restart of the whole job: nothing; units that wait at the learner; or these and
 * everything under way, which continues where it was (cluster.restarts). */
typedef enum restart_keeps {
  RESTART_KEEPS_NOTHING,
  RESTART_KEEPS_QUEUE,
  RESTART_KEEPS_RESPONSES
} restart_keeps;
/* The waiting unit that is trained next; QUEUE_HETERORL is HeteroRL's released rule
 * (paper/methods.md §10.4). The last two wait for units in progress: of older versions, or of
 * earlier updates by the order in which units were begun. */
typedef enum queue_rule {
  QUEUE_HETERORL,
  QUEUE_FIFO,
  QUEUE_LIFO,
  QUEUE_OLDEST_VERSION,
  QUEUE_VERSION_ORDER,
  QUEUE_IN_ORDER
} queue_rule;

/* --- presets: sets of defaults, each of which a recipe may override --- */

typedef struct cluster_preset {
  const char *name;
  const char *about;        /* one line */
  const char *source;       /* the paper (arXiv), or the file and commit of the source code */
  const char *read;         /* month of the source, YYYY-MM; NULL: before 2026 */
  const char *mapping;      /* the system's parameters and the fields that correspond to them */
  const char *not_modelled; /* parts of the system that the clock does not model */
  size_t samplers;
  bool one_batch; /* an update trains one batch; otherwise one per sampler */
  sync_rule sync;
  queue_rule queue;
  int64_t ahead, window; /* INT64_MAX: no limit */
  bool trains_late; /* units that arrive later than the gate predicts are trained up to `window`;
                       otherwise the window is at most `ahead` */
  int in_flight;    /* for groups: responses continue under new weights */
  kv_cache_rule kv_cache; /* used if weights change in flight */
  unit_kind unit;         /* if not a batch, response lengths default to preset_lengths */
  int64_t publish_every;
  int cancels_stale;   /* units in progress that have become staler than the window are cancelled */
  bool colocated;      /* samplers are on the learner's GPUs */
  int heterorl_delays; /* the default is HeteroRL's delay distribution, shared by all samplers */
  double eval_pause;   /* seconds */
} cluster_preset;

/* The i-th preset, NULL past the last; the first is the default. */
const cluster_preset *cluster_preset_at(size_t i);

/* Most sources of prompts (cluster.sources). */
enum { MOST_SOURCES = 16 };

/* The default response lengths of presets with groups, in recipe syntax. */
#define PRESET_LENGTHS "{distribution: lognormal, mu: 6.5, sigma: 0.8}"
extern const char preset_lengths[];

/* --- the section --- */

/* Measurements of a real cluster to compare the schedule with: the section `cluster.compare`. */
enum { MEASURED_MOST = 1 << 20 }; /* a measured staleness of this many updates or more is refused */

typedef struct cluster_measurements {
  char *name, *source; /* owned; source is "" if not given */
  bool fitted;         /* the recipe was fitted to these measurements */
  uint64_t *count;     /* [n] number of updates with staleness 0, 1, ...; owned */
  size_t n;            /* 0: no staleness was measured */
  uint64_t updates;    /* sum of count */
  double seconds;      /* duration of `seconds_of` updates; NaN: not measured */
  double seconds_of;
} cluster_measurements;

/* Reads the section (NULL: the synchronous default without delay). A batch has groups x group_size
 * responses (train.groups, train.group_size) unless samples_per_batch is set. Errors: GL_ENOMEM,
 * GL_EINPUT. */
gl_status cluster_parse(cluster_spec **out, const cfg_node *cluster, size_t groups,
                        size_t group_size, gl_error *err);
void cluster_free(cluster_spec *spec);
/* The name of the cluster's preset, static. */
const char *cluster_preset_name(const cluster_spec *spec);
/* Whether the lengths of real responses drive the clock; then use schedule_build_coupled(). */
bool cluster_is_coupled(const cluster_spec *spec);
/* Whether streaming responses continue under new weights while they are decoded. */
bool cluster_changes_in_flight(const cluster_spec *spec);
/* Whether samplers keep the keys and values of a response when the weights change. */
bool cluster_keeps_cache(const cluster_spec *spec);
/* Whether every group of samplers has a distribution of response lengths, so that schedule_build()
 * can replace a coupled clock. */
bool cluster_has_lengths(const cluster_spec *spec);
/* The plural of the unit: "batches", "groups" or "responses"; static. */
const char *cluster_unit_names(const cluster_spec *spec);
/* The number of groups per unit, out of the `groups` of a batch: all of them, or one. */
size_t cluster_unit_groups(const cluster_spec *spec, size_t groups);
/* Which responses a unit contains: those of `n_groups` groups of batch `id`, in each group the
 * `group_size` responses starting at `first_response`. With unit: response,
 * consecutive units of a sampler are the responses of one group after another, and are sampled
 * like the responses of a group. */
typedef struct unit_draw {
  uint64_t id;
  size_t n_groups, group_size, first_response;
} unit_draw;
unit_draw cluster_unit_draw(const cluster_spec *spec, uint64_t unit, size_t groups);
/* Whether a unit is part of a group. */
bool cluster_divides_groups(const cluster_spec *spec);
/* The loss weight of a unit with this staleness: 1, or less beyond the window with `stale:
 * downweight` (paper/methods.md §10.12). */
double cluster_stale_weight(const cluster_spec *spec, int64_t staleness);
/* The window; INT64_MAX: no limit. */
int64_t cluster_window(const cluster_spec *spec);
/* The largest staleness that can be trained: the window D, or 2 D with queue: heterorl, where D is
 * relative to the newest trained version. INT64_MAX: no bound. */
int64_t cluster_staleness_bound(const cluster_spec *spec);
/* The rule for units staler than the window: "discard", "wait" or "downweight"; static. */
const char *cluster_stale(const cluster_spec *spec);
/* The name of the i-th site, borrowed; NULL past the last. */
const char *cluster_site_at(const cluster_spec *spec, size_t i);
/* The name of the i-th source of prompts, borrowed; NULL past the last. */
const char *cluster_source_at(const cluster_spec *spec, size_t i);
/* The number of samplers. */
size_t cluster_samplers(const cluster_spec *spec);
/* The number of batches that an update takes. */
size_t cluster_batches(const cluster_spec *spec);
/* A distribution of the section. `group` is 0 for distributions of the learner. */
typedef struct cluster_dist {
  const char *field; /* "cluster.delay", static */
  const char *unit;  /* "s", "tokens" or "" */
  size_t group;
  const delay_dist *dist; /* borrowed */
} cluster_dist;
/* The i-th distribution, ordered by field, then by group; returns false past the last. */
bool cluster_dist_at(const cluster_spec *spec, size_t i, cluster_dist *out);
/* The measurements in the section, borrowed; without any n is 0 and seconds is NaN. */
const cluster_measurements *cluster_measured(const cluster_spec *spec);

/* The recipe fields of the section `cluster`. */
extern const struct field_table sim_fields, sim_own;

#endif
