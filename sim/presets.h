/* The presets of a cluster: sets of defaults, each of which a recipe may override. One entry of a
 * table each, in presets.c, with where it comes from; what the fields mean is in
 * paper/methods.md §10.5. */
#ifndef GEPOLAB_SIM_PRESETS_H
#define GEPOLAB_SIM_PRESETS_H

#include "sim/cluster_spec.h"

typedef struct cluster_preset {
  const char *name;
  const char *about;        /* one line */
  const char *source;       /* the paper (arXiv) or the file and commit that were read */
  const char *mapping;      /* the system's parameters, and the fields that stand for them */
  const char *not_modelled; /* what of the system has no counterpart in the clock */
  size_t samplers;
  int one_batch_each; /* an update trains as many batches as there are samplers; else one */
  sync_rule sync;
  queue_rule queue;
  int64_t ahead, window;  /* INT64_MAX: no limit */
  int trains_late;        /* what comes later than the gate foresees is trained up to `window`; else
                             the window is never above ahead */
  int in_flight;          /* of groups: they continue under new weights */
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

#endif
