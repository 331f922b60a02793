/* What `gepolab sim` shows: a schedule as text and CSV; what became of its units and what theory
 * says beside it, as text and JSON (the schedule's own JSON is sim/schedule.h's). Write errors of
 * the text show in ferror(to). */
#ifndef GEPOLAB_EXPERIMENTS_CLI_SIM_PRINT_H
#define GEPOLAB_EXPERIMENTS_CLI_SIM_PRINT_H

#include "sim/schedule.h"
#include "sim/theory.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* The numbers of schedule_to_json() as lines of text. */
void schedule_print_table(const schedule *s, const cluster_spec *spec, FILE *to);
/* One line per trained batch, with a heading: step, sampler, version, staleness and all times. */
void schedule_print_csv(const schedule *s, FILE *to);

/* Adds to `to`: `unit`, `fates` [{fate, units, share, mean_tokens, mean_longest}] with `drawn` as
 * the first; `by_length` [{from, to, drawn, trained, stale, …}] for the classes that have units,
 * lengths in tokens of the longest response; `by_prompt` [{quarter, drawn, …}] where prompts have
 * factors; and `mean_weight` of trained units. Means are null where there are no units or no
 * lengths. 0 if memory is short. */
int selection_to_json(cJSON *to, const schedule *s, const cluster_spec *spec);
/* The same as lines of text. */
void selection_print_table(const schedule *s, const cluster_spec *spec, FILE *to);

/* Adds to `to`: `form`, `range`, `source`, `updates_left_out`, `updates`, `quantities` {name:
 * {theory_low, theory_high, simulated, standard_error, difference}} and, where the form gives it,
 * `staleness` [{staleness, theory, simulated}]. The difference is from the nearer bound, 0 within.
 * 0 if memory is short. */
int sim_theory_to_json(cJSON *to, const theory *t, const theory_measured *m, const schedule *s);
/* The same as lines of text. */
void sim_theory_print_table(const theory *t, const theory_measured *m, const schedule *s, FILE *to);

#endif
