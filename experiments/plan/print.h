/* Plans as text and as JSON. */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_PRINT_H
#define GEPOLAB_EXPERIMENTS_PLAN_PRINT_H

#include "experiments/plan/search.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* The recommendation with what binds and what more would bring, and the Pareto front, as lines of
 * text; write errors show in ferror(to). */
void plan_print(const plan_result *r, FILE *to);

/* The same as JSON: `recommended` {…, `recipe`}, `front` [{…}], `binds`, `use`, `more` [{…}],
 * `selection` {…}, `candidates`, `simulations`. recipe: the recommended one, which becomes part of
 * it and is deleted also after a failure; NULL: there is none. The caller deletes the result; NULL
 * where memory is short. */
cJSON *plan_to_json(const plan_result *r, cJSON *recipe);

#endif
