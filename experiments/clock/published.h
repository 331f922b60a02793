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
  double published_s, simulated_s; /* duration of the same updates */
  double published_speedup,
      simulated_speedup; /* relative to the preceding case with in_turns; for that case 1 */
} published_case;

typedef struct published_cases {
  published_case *of; /* [n] */
  size_t n;
} published_cases;

/* Simulates the cases of a recipe, given by path or name, and appends them to `cases`. Errors:
 * GL_EINPUT with position if the recipe has no list of clusters, the first is not of preset sync, a
 * cluster has no seconds, or two have the same name. */
gl_status published_cases_add(published_cases *cases, const char *recipe,
                              const char *const *overrides, size_t n_overrides, gl_error *err);
void published_cases_fini(published_cases *cases);

#endif
