/* What became of the units that a clock began, by their lengths and prompts: whether what is
 * trained is what was drawn. For people and programs. */
#ifndef GEPOLAB_SIM_SELECTION_PRINT_H
#define GEPOLAB_SIM_SELECTION_PRINT_H

#include "sim/schedule.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* Adds to `to`: `unit`, `fates` [{fate, units, share, mean_tokens, mean_longest}] with `drawn` as
 * the first; `by_length` [{from, to, drawn, trained, stale, …}] for the classes that have units,
 * lengths in tokens of the longest response; `by_prompt` [{quarter, drawn, …}] where prompts have
 * factors; and `mean_weight` of trained units. Means are null where there are no units or no
 * lengths. 0 if memory is short. */
int selection_to_json(cJSON *to, const schedule *s, const cluster_spec *spec);
/* The same as lines of text; write errors show in ferror(to). */
void selection_print_table(const schedule *s, const cluster_spec *spec, FILE *to);

#endif
