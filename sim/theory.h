/* Closed forms from queueing theory and order statistics of a cluster's staleness, throughput and
 * utilisation in the long run. Formulas, ranges and sources are those of
 * paper/methods.md §10.11; sim/theory.c has a line of a table for each form.
 *
 * A form holds for the clusters within its range. Each condition of a range is a sentence that
 * names its field; for a cluster that no form holds for, the error names the broken conditions.
 * Prefix: sim_theory_. */
#ifndef GEPOLAB_SIM_THEORY_H
#define GEPOLAB_SIM_THEORY_H

#include "sim/cluster.h"
#include "sim/schedule.h"

#include <stddef.h>

typedef enum theory_quantity {
  THEORY_STALENESS,           /* mean over trained batches, in versions */
  THEORY_SAMPLES_PER_S,       /* trained responses per simulated second */
  THEORY_LEARNER_UTILISATION, /* fraction of the time that it trains */
  THEORY_SAMPLER_UTILISATION, /* mean fraction of the time that samplers generate */
  THEORY_QUANTITIES
} theory_quantity;

/* Bounds of a quantity; low == high where the form gives its value. */
typedef struct theory_value {
  double low, high;
} theory_value;

typedef struct theory {
  const char *form, *range, *source; /* static: name, where it holds, whose it is */
  theory_value value[THEORY_QUANTITIES];
  double *staleness; /* [n_staleness] owned: fraction of trained batches by staleness; NULL: the
                        form gives no distribution */
  size_t n_staleness;
} theory;

/* The values of the first form whose range has the cluster. GL_EINPUT where it is outside
 * of all, with the condition it breaks (of every form, where forms differ); GL_ENUMERIC where an
 * integral misses its error of 1e-9. *out is empty after an error; release with sim_theory_fini().
 */
gl_status sim_theory_of(theory *out, const cluster_spec *spec, gl_error *err);
void sim_theory_fini(theory *t);
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
/* The name of a quantity in text and JSON, static. */
const char *sim_theory_quantity_name(theory_quantity q);
/* The i-th form's name and range, NULL past the last; range may be NULL. */
const char *sim_theory_form_at(size_t i, const char **range);

#endif
