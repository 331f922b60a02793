/* A schedule for people and programs: JSON, a table, the updates as CSV. */
#ifndef GEPOLAB_SIM_SCHEDULE_PRINT_H
#define GEPOLAB_SIM_SCHEDULE_PRINT_H

#include "sim/schedule.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* The summary: `staleness` {mean, max, p50, p95, histogram}, `learner_utilisation`,
 * `sampler_utilisation`, `batches_generated/_trained/_dropped/_lost`, `samples_per_s`, `bytes_up`,
 * `bytes_down`, `retransmissions`, `simulated_s`, `updates`; with `compare` in the recipe also
 * `ks_distance`, null where the trace is absent. *out is the caller's (cJSON_Delete). */
gl_status schedule_to_json(const schedule *s, const cluster_spec *spec, cJSON **out, gl_error *err);
/* The same as lines of text; write errors show in ferror(to). */
void schedule_print_table(const schedule *s, const cluster_spec *spec, FILE *to);
/* One line per trained batch, with a heading: step, sampler, version, staleness and all times. */
void schedule_print_csv(const schedule *s, FILE *to);

/* Kolmogorov-Smirnov distance between per-update staleness (of an update's first batch) and the
 * recipe's measured trace, over as many updates as both have. NaN with GL_OK where the recipe names
 * none or its file is absent. */
gl_status schedule_ks(const schedule *s, const cluster_spec *spec, double *distance, gl_error *err);

#endif
