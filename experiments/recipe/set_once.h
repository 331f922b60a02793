/* What a design of a sweep sets, it sets once, and nothing else in the recipe sets it. */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_SET_ONCE_H
#define GEPOLAB_EXPERIMENTS_RECIPE_SET_ONCE_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>

typedef struct set_once {
  const cfg_doc *doc;
  const char *sets;   /* who sets, as messages begin: "sweep.random draws" */
  const char *beside; /* an axis that may be around what is set and is set first; NULL: none */
} set_once;

/* GL_EINPUT at its value where path number `own` of a map from paths is also chosen by `tune` or
 * listed by an axis of the sweep, or meets an earlier path of the map. */
gl_status set_once_check(const set_once *who, const cfg_node *fields, size_t own, gl_error *err);

#endif
