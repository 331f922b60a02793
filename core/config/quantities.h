/* Units of documents whose fields are not those of a recipe (core/config/fields.h): a room that
 * reads sections of its own says which of their values have a unit. */
#ifndef GEPOLAB_CORE_CONFIG_QUANTITIES_H
#define GEPOLAB_CORE_CONFIG_QUANTITIES_H

#include "core/config/config.h"

/* A value, or the values of a list or of a distribution, at a dotted path; items of a list have the
 * path of the list. */
typedef struct cfg_quantity {
  const char *path, *unit; /* of core/config/units.h; both live as long as the doc */
} cfg_quantity;

/* Makes numbers with a unit, 10m, 1.5GiB, those of the quantities' units, as cfg_resolve() does for
 * the fields of recipes. GL_EINPUT for a unit of another dimension, and an unknown one. */
gl_status cfg_resolve_quantities(cfg_doc *doc, const cfg_quantity *table, size_t n, gl_error *err);

#endif
