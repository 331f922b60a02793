/* A star of many samplers around one learner, on the bare list of events: what the clock costs when
 * nothing but events is left. It measures speed and memory; clusters of recipes run on
 * sim/schedule.h.
 *
 * A sampler generates, its batch travels up, and new weights travel down, all for exponential
 * times; every `batches_per_update` batches the learner publishes a version. An event that ends
 * one leg is followed by the one that ends the next, so that each sampler has exactly one event in
 * the list; the version its batch comes from travels in it.
 *
 * In the long run a sampler delivers once per generation + up + down, and as many batches arrive
 * during a cycle as there are samplers (Little's law), whatever the distributions: mean staleness
 * is samplers / batches_per_update. Prefix: star_. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_STAR_H
#define GEPOLAB_EXPERIMENTS_BENCH_STAR_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct star_spec {
  uint32_t samplers, batches_per_update;
  double generation_s, up_s, down_s; /* means */
} star_spec;

typedef struct star_result {
  uint64_t events, batches, updates;
  double simulated_s;
  double mean_staleness;    /* versions published between a batch's weights and its arrival */
  size_t bytes_per_sampler; /* of state, besides its event */
  size_t bytes_per_event;
  size_t event_bytes; /* of all events */
} star_result;

/* Handles `events` events. Draw k of a sampler is word k mod 4 of block k / 4 of its stream
 * (RNG_GENERATION, sampler). GL_EINPUT unless all counts and means are positive. */
gl_status star_run(star_result *out, const star_spec *spec, uint64_t seed, uint64_t events,
                   gl_error *err);

#endif
