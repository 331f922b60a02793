/* Makes a description of a cluster for `gepolab plan` (experiments/plan/plan.h) from a trainer's
 * log with a number for each step. Formulas: paper/methods.md 10.14. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_LOG_DESCRIPTION_H
#define GEPOLAB_EXPERIMENTS_CLOCK_LOG_DESCRIPTION_H

#include "core/base/table.h"
#include "core/config/config.h"
#include "experiments/clock/calibrate.h"

#include <stddef.h>

typedef struct log_description {
  cfg_doc *doc;              /* the description; owned */
  table *read;               /* document: what was read from the log, given and assumed; owned */
  double responses_per_hour; /* throughput of the logged run */
  double staleness;          /* mean staleness of the logged run; NaN: not in the log */
} log_description;

/* samplers: number of engines of the logged run; 0: as many as fit on the GPUs of plan.sites that
 * the learner does not use. name: name of the description. Overrides are fields of the description:
 * they must give what no log contains (the GPUs, and the responses of an update), and replace
 * values of the log. Call log_description_fini() even after an error. Errors: GL_EINPUT with what
 * to add (a field that no log says, fewer than FIT_LEAST_VALUES steps, no seconds from which the
 * learner's or the samplers' speed follows), those of recipe_load_text(), GL_ENOMEM. */
gl_status log_describe(log_description *out, const calibrate_log *log, const char *name,
                       size_t samplers, const char *const *overrides, size_t n_overrides,
                       gl_error *err);
void log_description_fini(log_description *d);

#endif
