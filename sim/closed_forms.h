/* Closed forms from queueing theory and order statistics for a cluster's long-run staleness,
 * throughput and utilisation. paper/methods.md §10.11 has the formulas, conditions and sources;
 * sim/closed_forms.c has a table entry for each form.
 *
 * A form applies to the clusters that satisfy its conditions. Each condition is a sentence that
 * names its field; if no form applies to a cluster, the error lists the violated conditions.
 * Prefix: sim_theory_. */
#ifndef GEPOLAB_SIM_CLOSED_FORMS_H
#define GEPOLAB_SIM_CLOSED_FORMS_H

#include "sim/cluster.h"
#include "sim/schedule.h"

#include <stddef.h>

typedef enum theory_quantity {
  THEORY_STALENESS,           /* mean over trained batches, in versions */
  THEORY_SAMPLES_PER_S,       /* trained responses per simulated second */
  THEORY_LEARNER_UTILISATION, /* fraction of the time that the learner trains */
  THEORY_SAMPLER_UTILISATION, /* mean fraction of the time that samplers generate */
  THEORY_QUANTITIES
} theory_quantity;

/* Bounds of a quantity; low == high if the form gives its value. */
typedef struct theory_value {
  double low, high;
} theory_value;

typedef struct theory {
  const char *form, *range, *source; /* static: name, conditions, source */
  theory_value value[THEORY_QUANTITIES];
  double *staleness; /* [n_staleness] owned: fraction of trained batches by staleness; NULL: not
                        given by the form */
  size_t n_staleness;
} theory;

/* Computes the first form that applies to the cluster. Release with sim_theory_fini(); *out is
 * empty after an error. Errors: GL_EINPUT if no form applies, with the violated conditions;
 * GL_ENUMERIC if an integral misses its error of 1e-9. */
gl_status sim_theory_of(theory *out, const cluster_spec *spec, gl_error *err);
void sim_theory_fini(theory *t);
/* Long-run measurements of a schedule. The first fifth is omitted, the rest is divided into
 * THEORY_BLOCKS blocks with equal numbers of updates; the standard error is that of the mean over
 * blocks (batch means). */
enum { THEORY_BLOCKS = 20, THEORY_LEAST_UPDATES = 100 };
typedef struct theory_measured {
  double mean[THEORY_QUANTITIES], error[THEORY_QUANTITIES];
  size_t first_update; /* index of the first measured update, from 0 */
  size_t n_updates;    /* number of measured updates */
} theory_measured;

/* Measures the schedule. Sampler utilisation only counts batches that are trained. Errors:
 * GL_EINPUT if the schedule has fewer than THEORY_LEAST_UPDATES updates or its blocks take no time.
 */
gl_status sim_theory_measure(theory_measured *out, const schedule *s, const cluster_spec *spec,
                             gl_error *err);
/* The name of a quantity in text and JSON, static. */
const char *sim_theory_quantity_name(theory_quantity q);

#endif
