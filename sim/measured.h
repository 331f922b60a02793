/* What was measured of the cluster that a recipe describes, to compare its schedule with:
 * staleness, or the seconds that updates took. The section `cluster.compare`. */
#ifndef GEPOLAB_SIM_MEASURED_H
#define GEPOLAB_SIM_MEASURED_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>
#include <stdint.h>

enum { MEASURED_MOST = 1 << 20 }; /* staleness from here on is refused, in updates */

typedef struct measured_staleness {
  char *name, *source; /* owned; source is "" where none is said */
  uint64_t *count;     /* [n] updates of staleness 0, 1, ...; owned */
  size_t n;            /* 0: no staleness was measured */
  uint64_t updates;    /* sum of count */
  double seconds;      /* that took `seconds_of` updates; NaN: not measured */
  double seconds_of;
} measured_staleness;

/* Reads {histogram} or {trace, column} or neither, {seconds, updates} or not, but one of them, with
 * {name, source}; NULL: nothing to compare with. A trace is a CSV with one update's staleness per
 * line, rounded to whole updates. Errors: GL_EINPUT at the place in the recipe, also where the file
 * is missing or its column is not clear. Release in any case. */
gl_status measured_read(measured_staleness *m, const cfg_node *compare, gl_error *err);
void measured_fini(measured_staleness *m);

#endif
