/* Cases that were published, simulated: a recipe's sweep lists clusters, each with the seconds that
 * its updates took (cluster.compare.seconds). A cluster of the preset sync is what the ones behind
 * it are compared with. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_PUBLISHED_H
#define GEPOLAB_EXPERIMENTS_CLOCK_PUBLISHED_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct published_case {
  char *name, *preset, *source;                /* owned */
  bool in_turns;                               /* preset sync: generation and training take turns */
  double published_s, simulated_s;             /* of the same updates */
  double published_speedup, simulated_speedup; /* over the case in turns before it; that one: 1 */
} published_case;

typedef struct published_cases {
  published_case *of; /* [n] */
  size_t n;
} published_cases;

/* Simulates the cases of a recipe, by path or name, behind those there are. GL_EINPUT, at the place
 * in the recipe, where it has no list of clusters, the first is not in turns, one has no seconds,
 * or two have one name. */
gl_status published_cases_add(published_cases *cases, const char *recipe,
                              const char *const *overrides, size_t n_overrides, gl_error *err);
void published_cases_fini(published_cases *cases);

#endif
