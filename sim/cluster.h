/* The cluster section of a recipe: samplers, links, learner, rules. */
#ifndef GEPOLAB_SIM_CLUSTER_H
#define GEPOLAB_SIM_CLUSTER_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "sim/delay.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cluster_spec cluster_spec;

/* --- rules of the clock, as a recipe names them --- */

/* How weights reach a sampler: fetched between batches once the delay drawn at the last fetch has
 * passed, or sent at every publication and arriving a delay later. */
typedef enum sync_rule { SYNC_PULL, SYNC_PUSH } sync_rule;
/* What samplers send and an update takes: whole batches, groups of responses to one prompt, or
 * single responses. Groups and responses stream: a free decoding slot takes the next response at
 * once, whichever unit it is of, and a unit is sent when its last response has ended
 * (sim/sampler.c). */
typedef enum unit_kind { UNIT_BATCH, UNIT_GROUP, UNIT_RESPONSE } unit_kind;
/* Streamed units under way when new weights are pushed to their sampler: finish under the old
 * weights, which delays the new ones; continue under the new weights; or are dropped. */
typedef enum partial_rule { PARTIAL_WAIT, PARTIAL_CONTINUE, PARTIAL_DROP } partial_rule;
/* Keys and values of earlier tokens when a response continues under new weights: recomputed by the
 * new weights, which takes the time of a prefill; or kept, so that later tokens attend to values of
 * older weights. */
typedef enum kv_cache_rule { KV_CACHE_RECOMPUTE, KV_CACHE_KEEP } kv_cache_rule;
/* Units staler than the window are dropped; or avoided, because the learner waits for units that
 * would become so and trains them first; or trained with less weight (stale_decay to the power of
 * the versions beyond the window). */
typedef enum stale_rule { STALE_DISCARD, STALE_WAIT, STALE_DOWNWEIGHT } stale_rule;
/* The unit that a full queue drops: the first that arrived, one of the oldest version, or the one
 * that arrives. */
typedef enum evict_rule { EVICT_OLDEST, EVICT_STALEST, EVICT_NEWEST } evict_rule;
/* Which waiting unit is trained next; QUEUE_HETERORL is the released rule of HeteroRL
 * (paper/methods.md §10.4). */
typedef enum queue_rule { QUEUE_HETERORL, QUEUE_FIFO, QUEUE_LIFO, QUEUE_OLDEST_VERSION } queue_rule;

/* --- presets: sets of defaults, each of which a recipe may override --- */

typedef struct cluster_preset {
  const char *name;
  const char *about;        /* one line */
  const char *source;       /* the paper (arXiv) or the file and commit that were read */
  const char *mapping;      /* the system's parameters and the fields that correspond to them */
  const char *not_modelled; /* parts of the system that the clock does not model */
  size_t samplers;
  bool one_batch; /* an update trains one batch; else as many as there are samplers */
  sync_rule sync;
  queue_rule queue;
  int64_t ahead, window; /* INT64_MAX: no limit */
  bool trains_late; /* units that arrive later than the gate foresees are trained up to `window`;
                       else the window is never above `ahead` */
  int in_flight;    /* of groups: they continue under new weights */
  kv_cache_rule kv_cache; /* where weights change in flight */
  unit_kind unit;         /* where it is no batch, response lengths are preset_lengths */
  int64_t publish_every;
  int heterorl_delays; /* HeteroRL's distribution of delays where none is given, shared by all
                          samplers */
  double eval_pause;   /* seconds */
} cluster_preset;

/* The i-th preset, NULL past the last; the first is the default. */
const cluster_preset *cluster_preset_at(size_t i);

/* The response lengths that presets of groups have, as a recipe writes them. */
extern const char preset_lengths[];

/* --- the section --- */

/* Measurements of such a cluster that its schedule is compared with: the section `cluster.compare`.
 */
enum { MEASURED_MOST = 1 << 20 }; /* staleness from here on is refused, in updates */

typedef struct measured_staleness {
  char *name, *source; /* owned; source is "" where none is said */
  uint64_t *count;     /* [n] updates of staleness 0, 1, ...; owned */
  size_t n;            /* 0: no staleness was measured */
  uint64_t updates;    /* sum of count */
  double seconds;      /* that took `seconds_of` updates; NaN: not measured */
  double seconds_of;
} measured_staleness;

/* Reads the section (NULL: the synchronous default, no delay). A batch holds groups x group_size
 * responses (train.groups, train.group_size) unless the section's samples_per_batch says otherwise.
 */
gl_status cluster_parse(cluster_spec **out, const cfg_node *cluster, size_t groups,
                        size_t group_size, gl_error *err);
void cluster_free(cluster_spec *spec);
/* The name of its preset, static. */
const char *cluster_preset_name(const cluster_spec *spec);
/* Whether the lengths of real responses drive the clock: use schedule_build_coupled(). */
bool cluster_is_coupled(const cluster_spec *spec);
/* Whether streaming responses continue under new weights while they are decoded. */
bool cluster_changes_in_flight(const cluster_spec *spec);
/* Whether samplers keep a response's keys and values when the weights change. */
bool cluster_keeps_cache(const cluster_spec *spec);
/* Whether every group of samplers has a distribution of response lengths, so that schedule_build
 * can stand in for a coupled clock. */
bool cluster_has_lengths(const cluster_spec *spec);
/* The unit of samplers and updates in plural: "batches", "groups" or "responses"; static. */
const char *cluster_unit_names(const cluster_spec *spec);
/* Groups of responses that a unit holds, of the `groups` of a batch: all of them, or one. */
size_t cluster_unit_groups(const cluster_spec *spec, size_t groups);
/* Which draw a unit of that id is: of batch `id`, `n_groups` groups and of each of them the
 * `group_size` responses behind the first `first_response`. The single responses of a sampler are
 * those of groups, one after the other, and so are drawn as those would be. */
typedef struct unit_draw {
  uint64_t id;
  size_t n_groups, group_size, first_response;
} unit_draw;
unit_draw cluster_unit_draw(const cluster_spec *spec, uint64_t unit, size_t groups);
/* Whether units are parts of groups. */
bool cluster_divides_groups(const cluster_spec *spec);
/* The weight of the loss of a unit of this staleness: 1, and less beyond the window with `stale:
 * downweight` (paper/methods.md §10.12). */
double cluster_stale_weight(const cluster_spec *spec, int64_t staleness);
/* The window, INT64_MAX: no limit. */
int64_t cluster_window(const cluster_spec *spec);
/* The largest staleness that can be trained: the window D, or 2 D where D is counted from the
 * newest version trained (queue: heterorl). INT64_MAX: there is no bound. */
int64_t cluster_staleness_bound(const cluster_spec *spec);
/* The rule for units staler than the window: "discard", "wait" or "downweight"; static. */
const char *cluster_stale(const cluster_spec *spec);
/* The name of the i-th site, borrowed; NULL past the last. */
const char *cluster_site_at(const cluster_spec *spec, size_t i);
/* How many samplers it has. */
size_t cluster_samplers(const cluster_spec *spec);
/* A distribution of the section. The group's number is 0 for those of the learner. */
typedef struct cluster_dist {
  const char *field; /* "cluster.delay", static */
  const char *unit;  /* "s", "tokens" or "" */
  size_t group;
  const delay_dist *dist; /* borrowed */
} cluster_dist;
/* The i-th distribution, field by field and within a field group by group; false past the last. */
bool cluster_dist_at(const cluster_spec *spec, size_t i, cluster_dist *out);
/* The measured staleness that the section names to compare with, borrowed; NULL: none. */
const measured_staleness *cluster_measured(const cluster_spec *spec);
/* The same where it names the seconds of updates (seconds, seconds_of, name, source). */
const measured_staleness *cluster_measured_time(const cluster_spec *spec);

/* The fields of the section `cluster`. */
extern const struct field_table sim_fields;

#endif
