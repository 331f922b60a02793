/* The tables of all fields that a recipe may have (core/config/fields.h), and the JSON Schema that
 * is made from them. */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_FIELDS_H
#define GEPOLAB_EXPERIMENTS_RECIPE_FIELDS_H

#include "core/config/fields.h"

#include <cjson/cJSON.h>

/* Registers the tables of the rooms whose sections a recipe has. Before any recipe is read. */
void recipe_fields_use(void);

/* The JSON Schema (draft 7) of recipes, for editors: the keys of every section, their values and
 * meanings. Requirements between fields are checked by the program alone. The caller deletes it. */
cJSON *recipe_schema(void);

#endif
