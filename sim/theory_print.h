/* What theory says of a cluster beside what its schedule measured, for people and programs. */
#ifndef GEPOLAB_SIM_THEORY_PRINT_H
#define GEPOLAB_SIM_THEORY_PRINT_H

#include "sim/schedule.h"
#include "sim/theory.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* A schedule's long run: its first fifth is left out, the rest is cut into THEORY_BLOCKS blocks of
 * as many updates each; the standard error is that of the mean over blocks (batch means). */
enum { THEORY_BLOCKS = 20, THEORY_LEAST_UPDATES = 100 };
typedef struct theory_measured {
  double mean[THEORY_QUANTITIES], error[THEORY_QUANTITIES];
  size_t first_update; /* of those that count, from 0 */
  size_t n_updates;    /* that count */
} theory_measured;

/* Utilisation of samplers is that of the batches which are trained. GL_EINPUT where the schedule
 * has fewer than THEORY_LEAST_UPDATES updates or its blocks take no time. */
gl_status sim_theory_measure(theory_measured *out, const schedule *s, const cluster_spec *spec,
                             gl_error *err);
/* The name of a quantity in both forms, static. */
const char *sim_theory_quantity_name(theory_quantity q);
/* Adds to `to`: `form`, `range`, `source`, `updates_left_out`, `updates`, `quantities` {name:
 * {theory_low, theory_high, simulated, standard_error, difference}} and, where the form gives it,
 * `staleness` [{staleness, theory, simulated}]. The difference is from the nearer bound, 0 within.
 * 0 if memory is short. */
int sim_theory_to_json(cJSON *to, const theory *t, const theory_measured *m, const schedule *s);
/* The same as lines of text; write errors show in ferror(to). */
void sim_theory_print_table(const theory *t, const theory_measured *m, const schedule *s, FILE *to);

#endif
