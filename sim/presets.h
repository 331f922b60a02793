/* The presets of a cluster: sets of defaults, each of which a recipe may override. One line of a
 * table each, in presets.c; what they mean is in paper/methods.md §10.5. */
#ifndef GEPOLAB_SIM_PRESETS_H
#define GEPOLAB_SIM_PRESETS_H

#include "sim/cluster_spec.h"

typedef struct cluster_preset {
  const char *name;
  const char *about; /* one line, with its source */
  size_t samplers;
  int one_batch_each; /* an update trains as many batches as there are samplers; else one */
  sync_rule sync;
  queue_rule queue;
  int64_t ahead, window; /* INT64_MAX: no limit; the window is never above ahead */
  int in_flight;
  int heterorl_delays; /* HeteroRL's law of delays where none is given, shared by all samplers */
  double eval_pause;   /* seconds */
} cluster_preset;

/* The i-th preset, NULL past the last; the first is the default. */
const cluster_preset *cluster_preset_at(size_t i);

#endif
