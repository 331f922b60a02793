/* Makes a description of a cluster for `gepolab plan` (experiments/plan/plan.h) from a trainer's
 * logs: with a number for each step, with a line for each response, or both. Formulas:
 * paper/methods.md 10.14. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_LOG_DESCRIPTION_H
#define GEPOLAB_EXPERIMENTS_CLOCK_LOG_DESCRIPTION_H

#include "core/base/table.h"
#include "core/config/config.h"
#include "experiments/clock/calibrate.h"
#include "experiments/clock/fit_log.h"

#include <stddef.h>

typedef struct log_description {
  cfg_doc *doc;              /* the description; owned */
  table *read;               /* document: what was read from the log, given and assumed; owned */
  double responses_per_hour; /* throughput of the logged run; NaN: no seconds in the log */
  double staleness;          /* mean staleness of the logged run; NaN: not in the log */
} log_description;

/* Borrowed. */
typedef struct log_description_request {
  const calibrate_log *steps; /* n 0: there is no log with a number for each step */
  const fit_log *responses;   /* all zero: there is no log with a line for each response */
  const char *name;           /* name of the description */
  size_t samplers; /* number of engines of the logged run; 0: as many as fit on the GPUs of
                      plan.sites that the learner does not use */
  const char *const *overrides; /* [n_overrides] fields of the description */
  size_t n_overrides;
} log_description_request;

/* Overrides must give what no log contains (the GPUs, the responses of an update, and whatever else
 * the logs lack), and replace values of the logs. Call log_description_fini() even after an error.
 * Errors: GL_EINPUT with what to add (a field that no log says, fewer than FIT_LEAST_VALUES steps,
 * no seconds from which the learner's or the samplers' speed follows), those of recipe_load_text(),
 * GL_ENOMEM. */
gl_status log_describe(log_description *out, const log_description_request *q, gl_error *err);
void log_description_fini(log_description *d);

#endif
