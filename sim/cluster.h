/* The cluster section of a recipe: samplers, links, learner, rules. */
#ifndef GEPOLAB_SIM_CLUSTER_H
#define GEPOLAB_SIM_CLUSTER_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "sim/delay.h"
#include "sim/measured.h"

typedef struct cluster_spec cluster_spec;

/* Reads the section (NULL: the synchronous default, no delay). A batch holds groups x group_size
 * responses (train.groups, train.group_size) unless the section's samples_per_batch says otherwise.
 */
gl_status cluster_parse(cluster_spec **out, const cfg_node *cluster, size_t groups,
                        size_t group_size, gl_error *err);
void cluster_free(cluster_spec *spec);
/* The name of its preset, static. */
const char *cluster_preset_name(const cluster_spec *spec);
/* Whether real response lengths shall drive the clock: schedule_build_coupled, not schedule_build.
 */
int cluster_is_coupled(const cluster_spec *spec);
/* Whether responses that stream go on with new weights while they are decoded. */
int cluster_changes_in_flight(const cluster_spec *spec);
/* Whether what samplers have computed of a response's keys and values stays when its weights
 * change.
 */
int cluster_keeps_cache(const cluster_spec *spec);
/* Whether every group of samplers has a distribution of response lengths, so that schedule_build
 * can stand in for a coupled clock. */
int cluster_has_lengths(const cluster_spec *spec);
/* What an update takes and samplers send, in plural: "batches", "groups" or "responses"; static. */
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
int cluster_divides_groups(const cluster_spec *spec);
/* What a unit's loss is multiplied by that is so many versions stale at its update: 1, but less
 * beyond the window where the section says `stale: downweight` (paper/methods.md §10.12). */
double cluster_stale_weight(const cluster_spec *spec, int64_t staleness);
/* What becomes of units staler than the window: "discard", "wait" or "downweight"; static. */
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
/* The i-th distribution, field by field and within a field group by group; 0 past the last. */
int cluster_dist_at(const cluster_spec *spec, size_t i, cluster_dist *out);
/* The measured staleness that the section names to compare with, borrowed; NULL: none. */
const measured_staleness *cluster_measured(const cluster_spec *spec);
/* The same where it names the seconds of updates (seconds, seconds_of, name, source). */
const measured_staleness *cluster_measured_time(const cluster_spec *spec);

/* The fields of the section `cluster`. */
extern const struct field_table sim_fields;

#endif
