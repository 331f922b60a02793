/* The JSON Schema made from the tables of all fields that a recipe may have (core/config/fields.h).
 */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_FIELDS_H
#define GEPOLAB_EXPERIMENTS_RECIPE_FIELDS_H

#include "core/config/fields.h"

#include <cjson/cJSON.h>

/* The JSON Schema (draft 7) of recipes, for editors: the keys of every section, their values and
 * meanings. Requirements between fields are checked by the program alone. The caller deletes it. */
cJSON *recipe_schema(void);

#endif
