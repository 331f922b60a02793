/* Output of `gepolab sim`: a schedule as text and CSV (schedule_to_json() gives JSON), the fates of
 * its units, and a comparison with theory. Check ferror(to) for write errors of the text. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_SIM_PRINT_H
#define GEPOLAB_EXPERIMENTS_CLOCK_SIM_PRINT_H

#include "core/base/table.h"
#include "sim/closed_forms.h"
#include "sim/schedule.h"

#include <stdio.h>

/* Prints the numbers of schedule_to_json() as lines of text. */
void schedule_print_table(const schedule *s, const cluster_spec *spec, FILE *to);
/* Prints a header and one line per trained batch: step, sampler, version, staleness and all times.
 */
void schedule_print_csv(const schedule *s, FILE *to);

/* Prints a header and one line per run of tokens of one response from one version, for all trained
 * units: the events that staleness counters are computed from (sim/trainer_counters.h). Errors:
 * GL_ENOMEM. */
gl_status schedule_print_tokens(const schedule *s, const cluster_spec *spec, uint64_t seed,
                                FILE *to, gl_error *err);

/* Adds to a document: `fates` [{fate, units, share, mean_tokens, mean_longest}], beginning with
 * `drawn`; `unit`; `mean_weight` of trained units; `by_length` [{from, to, drawn, trained, stale,
 * …}] for the length classes that have units (tokens of the longest response); and `by_prompt`
 * [{quarter, drawn, …}] if prompts have length factors. Means are null without units or without
 * lengths. */
void unit_fates_report(table *d, const schedule *s, const cluster_spec *spec);

/* Adds to a document: `form`, `range`, `source`, `updates_left_out`, `updates`, `quantities` {name:
 * {theory_low, theory_high, simulated, standard_error, difference}} and, if the closed form gives
 * it, `staleness` [{staleness, theory, simulated}]. The difference is to the nearer bound, and 0
 * between the bounds. */
void sim_theory_report(table *d, const theory *t, const theory_measured *m, const schedule *s);

#endif
