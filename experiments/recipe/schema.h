/* The JSON Schema (draft 7) of recipes, for editors: the keys of every section, what they may be
 * and what they mean. What fields require of each other is checked by the program alone. */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_SCHEMA_H
#define GEPOLAB_EXPERIMENTS_RECIPE_SCHEMA_H

#include <cjson/cJSON.h>

/* The caller deletes it. */
cJSON *recipe_schema(void);

#endif
