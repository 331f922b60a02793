/* Simulation of published cases. A recipe's sweep lists clusters, each with the published seconds
 * of its updates (cluster.compare.seconds). Speedups are relative to the preceding cluster with the
 * preset sync. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_PUBLISHED_H
#define GEPOLAB_EXPERIMENTS_CLOCK_PUBLISHED_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct published_case {
  char *name, *preset, *source;    /* owned */
  bool in_turns;                   /* preset sync: generation and training alternate */
  bool fitted;                     /* a value in the recipe was fitted to the published time */
  double published_s, simulated_s; /* duration of the same updates */
  double published_speedup,
      simulated_speedup; /* relative to the preceding case with in_turns; for that case 1 */
} published_case;

typedef struct published_cases {
  published_case *of; /* [n] cases */
  size_t n;
} published_cases;

/* Simulates the cases of a recipe, given by path or name, and appends them to `cases`. Errors:
 * GL_EINPUT with position if the recipe has no list of clusters, the first is not of preset sync, a
 * cluster has no seconds, or two have the same name. */
gl_status published_cases_add(published_cases *cases, const char *recipe,
                              const char *const *overrides, size_t n_overrides, gl_error *err);
void published_cases_fini(published_cases *cases);

/* Predictions that were committed before they were compared (experiments/predictions). */
typedef struct declared_prediction {
  char *name, *quantity, *unit, *source; /* owned */
  /* In `unit`; least, largest: ends of the range that was declared with the prediction. */
  double predicted, least, largest, measured;
  bool seen; /* whoever predicted it had seen the measured value */
} declared_prediction;

typedef struct declared_predictions {
  declared_prediction *of; /* [n] */
  size_t n;
} declared_predictions;

/* Reads a table like experiments/predictions/compared.tsv; `name` is that of the file, for
 * messages. Errors: GL_ENOMEM, GL_EINPUT with line and column. */
gl_status predictions_read(declared_predictions *out, const char *text, const char *name,
                           gl_error *err);
void predictions_fini(declared_predictions *p);

#endif
