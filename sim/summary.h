/* What a schedule amounts to: its numbers, as a list and as JSON, and how near it is to what was
 * measured. */
#ifndef GEPOLAB_SIM_SUMMARY_H
#define GEPOLAB_SIM_SUMMARY_H

#include "sim/schedule.h"

#include <cjson/cJSON.h>

/* The summary: `staleness` {mean, max, p50, p95, histogram}, `learner_utilisation`,
 * `sampler_utilisation`, `batches_generated/_trained/_dropped/_lost`, `samples_per_s`, `bytes_up`,
 * `bytes_down`, `retransmissions`, `simulated_s`, `updates`; where units stream also `unit` (what
 * all counts of batches count), `slot_utilisation` and `batches_aborted`; with `compare` in the
 * recipe also `ks_distance` or `measured_s` and `compared_s` (measured and simulated seconds of as
 * many updates), `compared_with` and `compared_source`. *out is the caller's (cJSON_Delete). */
gl_status schedule_to_json(const schedule *s, const cluster_spec *spec, cJSON **out, gl_error *err);
/* The same numbers as a list: those that every schedule has (SCHEDULE_COMMON_NUMBERS), the mean,
 * median, 95 % quantile and maximum of staleness, and those of a network where there is one.
 * Returns how many. */
enum { SCHEDULE_COMMON_NUMBERS = 12, SCHEDULE_MOST_NUMBERS = 64 };
typedef struct schedule_number {
  const char *name, *unit; /* static */
  double value;
} schedule_number;
size_t schedule_numbers(const schedule *s, schedule_number out[SCHEDULE_MOST_NUMBERS]);
/* Kolmogorov-Smirnov distance between the staleness of the updates (of an update's first batch; of
 * as many updates from the first on as were measured) and the recipe's measured staleness. NaN with
 * GL_OK where the recipe names none. */
gl_status schedule_ks(const schedule *s, const cluster_spec *spec, double *distance, gl_error *err);
/* Mean seconds that `updates` updates take, in the later half of the schedule, where the queues
 * have filled. NaN if there is no update. */
double schedule_seconds(const schedule *s, double updates);

#endif
