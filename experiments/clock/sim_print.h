/* What `gepolab sim` prints: a schedule as text and CSV (its JSON is schedule_to_json()), what
 * became of its units, and theory beside it. Write errors of the text show in ferror(to). */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_SIM_PRINT_H
#define GEPOLAB_EXPERIMENTS_CLOCK_SIM_PRINT_H

#include "core/base/table.h"
#include "sim/schedule.h"
#include "sim/theory.h"

#include <stdio.h>

/* The numbers of schedule_to_json() as lines of text. */
void schedule_print_table(const schedule *s, const cluster_spec *spec, FILE *to);
/* One line per trained batch, with a heading: step, sampler, version, staleness and all times. */
void schedule_print_csv(const schedule *s, FILE *to);

/* Adds to a document: `fates` [{fate, units, share, mean_tokens, mean_longest}] with `drawn` as the
 * first; `unit`; `mean_weight` of trained units; `by_length` [{from, to, drawn, trained, stale, …}]
 * for the classes that have units, lengths in tokens of the longest response; `by_prompt`
 * [{quarter, drawn, …}] where prompts have factors. Means are null where there are no units or no
 * lengths. */
void selection_report(table *d, const schedule *s, const cluster_spec *spec);

/* Adds to a document: `form`, `range`, `source`, `updates_left_out`, `updates`, `quantities` {name:
 * {theory_low, theory_high, simulated, standard_error, difference}} and, where the form gives it,
 * `staleness` [{staleness, theory, simulated}]. The difference is from the nearer bound, 0 within.
 */
void sim_theory_report(table *d, const theory *t, const theory_measured *m, const schedule *s);

#endif
