/* The JSON Schema of recipes, built from the tables of all fields (core/config/fields.h). */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_FIELDS_H
#define GEPOLAB_EXPERIMENTS_RECIPE_FIELDS_H

#include "core/config/fields.h"

#include <cjson/cJSON.h>

/* Returns the JSON Schema (draft 7) of recipes, for editors: the keys of every section, their
 * values and descriptions. Constraints between fields are checked by the program only. The caller
 * deletes it. */
cJSON *recipe_schema(void);

#endif
