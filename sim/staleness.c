/* Staleness of the batches of a schedule: its histogram, and how much of it comes from the weights,
 * generation, transit, queue and pause. */
#include "sim/schedule.h"

#include <stdlib.h>

int64_t schedule_staleness(const schedule *s, const schedule_update *u, const schedule_batch *b) {
  return u->version - s->segments[b->first_segment].version;
}

int64_t schedule_version_at(const schedule *s, const schedule_update *u, double time) {
  size_t low = 0, high = (size_t)u->version;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (s->updates[middle].end_s <= time)
      low = middle + 1;
    else
      high = middle;
  }
  return (int64_t)low;
}

static uint64_t catch_ups_until(const schedule *s, int64_t version) {
  return version > 0 ? s->updates[version - 1].catch_ups : 0;
}

staleness_parts schedule_split_staleness(const schedule *s, const schedule_update *u,
                                         const schedule_batch *b) {
  const int64_t oldest = s->segments[b->first_segment].version;
  const int64_t begun = schedule_version_at(s, u, b->start_s),
                generated = schedule_version_at(s, u, b->generated_s),
                arrived = schedule_version_at(s, u, b->arrived_s);
  const uint64_t waited = (uint64_t)(u->version - arrived),
                 caught = catch_ups_until(s, u->version) - catch_ups_until(s, arrived);
  return (staleness_parts){.weights = (uint64_t)(begun - oldest),
                           .generation = (uint64_t)(generated - begun),
                           .transit = (uint64_t)(arrived - generated),
                           .queue = waited - caught,
                           .pause = caught};
}

static void count_parts(schedule *s, const schedule_update *u, const schedule_batch *b) {
  const staleness_parts one = schedule_split_staleness(s, u, b);
#define ADD_PART(name, meaning) s->parts.name += one.name;
  STALENESS_PARTS(ADD_PART)
#undef ADD_PART
}

gl_status schedule_count_staleness(schedule *s, gl_error *err) {
  int64_t largest = 0;
  for (size_t i = 0; i < s->n_updates; ++i)
    for (size_t k = 0; k < s->updates[i].n_batches; ++k) {
      const schedule_update *u = &s->updates[i];
      int64_t tau = schedule_staleness(s, u, &s->batches[u->first_batch + k]);
      if (tau > largest) largest = tau;
    }
  s->n_staleness = (size_t)largest + 1;
  s->staleness = calloc(s->n_staleness, sizeof *s->staleness);
  if (s->staleness == NULL) return gl_fail_memory(err, "the staleness histogram");
  for (size_t i = 0; i < s->n_updates; ++i)
    for (size_t k = 0; k < s->updates[i].n_batches; ++k) {
      const schedule_update *u = &s->updates[i];
      const schedule_batch *b = &s->batches[u->first_batch + k];
      ++s->staleness[schedule_staleness(s, u, b)];
      count_parts(s, u, b);
    }
  return GL_OK;
}

double schedule_staleness_quantile(const schedule *s, double p) {
  double below = 0;
  for (size_t i = 0; i < s->n_staleness; ++i) {
    below += (double)s->staleness[i];
    if (below >= p * (double)s->n_batches) return (double)i;
  }
  return 0;
}
