/* The cluster section of a recipe: samplers, links, learner, rules. */
#ifndef GEPOLAB_SIM_CLUSTER_H
#define GEPOLAB_SIM_CLUSTER_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "sim/delay.h"
#include "sim/measured.h"

typedef struct cluster_spec cluster_spec;

/* Reads the section (NULL: the synchronous default, no delay). batch_responses is what a batch
 * holds (train.groups x train.group_size) unless the section's samples_per_batch says otherwise. */
gl_status cluster_parse(cluster_spec **out, const cfg_node *cluster, size_t batch_responses,
                        gl_error *err);
void cluster_free(cluster_spec *spec);
/* Whether real response lengths shall drive the clock: schedule_build_coupled, not schedule_build.
 */
int cluster_is_coupled(const cluster_spec *spec);
/* Whether every group of samplers has a law of response lengths, so that schedule_build can stand
 * in for a coupled clock. */
int cluster_has_lengths(const cluster_spec *spec);
/* How many samplers it has. */
size_t cluster_samplers(const cluster_spec *spec);
/* A law of the section. The group's number is 0 for those of the learner. */
typedef struct cluster_law {
  const char *field; /* "cluster.delay", static */
  const char *unit;  /* "s", "tokens" or "" */
  size_t group;
  const delay_law *law; /* borrowed */
} cluster_law;
/* The i-th law, field by field and within a field group by group; 0 past the last. */
int cluster_law_at(const cluster_spec *spec, size_t i, cluster_law *out);
/* The measured staleness that the section names to compare with, borrowed; NULL: none. */
const measured_staleness *cluster_measured(const cluster_spec *spec);

#endif
