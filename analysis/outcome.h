/* The outcome of a training run: whether it learned, whether its score collapsed, when, and
 * whether it recovered. `analyze`, `report` and the table outcomes use this
 * one rule.
 *
 * The rule is fixed in advance and is the same for all runs, so that no algorithm is judged by eye.
 * A run collapses when several evaluations in a row are below a fraction of the gain so far; a
 * single bad evaluation does not count. Only earlier evaluations decide about a collapse, so it
 * does not depend on how long the run continued. Higher scores are better. */
#ifndef GEPOLAB_ANALYSIS_OUTCOME_H
#define GEPOLAB_ANALYSIS_OUTCOME_H

#include "analysis/collapse_rate.h"
#include "analysis/results.h"
#include "analysis/stored_results.h"
#include "core/base/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Outcomes. Tested in this order: a collapse (early or late), not finite, survived (the gain
 * reaches the rule's minimum); every other run never learned. */
typedef enum outcome {
  OUTCOME_NOT_FINITE,     /* a non-finite loss or parameter ended the run before a collapse */
  OUTCOME_NEVER_LEARNED,  /* the gain was below the rule's minimum */
  OUTCOME_EARLY_COLLAPSE, /* collapsed before it had been on its plateau long enough */
  OUTCOME_LATE_COLLAPSE,  /* collapsed afterwards: the kind of collapse that papers report */
  OUTCOME_SURVIVED,
  OUTCOME_COUNT
} outcome;

/* "not finite", "never learned", "early fall", "late fall" (printed words for a collapse),
 * "survived". */
const char *outcome_name(outcome o);

/* A finer classification, as tables and figures show it. */
typedef enum run_class {
  RUN_CLASS_NOT_FINITE,
  RUN_CLASS_LOST_START,     /* the run lost its initial score before any gain */
  RUN_CLASS_NEVER_LEARNED,  /* the run never learned, without losing its initial score */
  RUN_CLASS_DIP,            /* an early or late collapse from which it recovered */
  RUN_CLASS_EARLY_COLLAPSE, /* without recovery */
  RUN_CLASS_LATE_COLLAPSE,  /* without recovery */
  RUN_CLASS_COLLAPSING,     /* the last evaluations are low, but fewer than a collapse needs */
  RUN_CLASS_STABLE,
  RUN_CLASS_COUNT
} run_class;
/* "not finite", "lost start", "never learned", "dip", "early fall", "late fall", "falling at the
 * end", "stable". */
const char *run_class_name(run_class c);

typedef struct outcome_rule {
  double least_gain; /* in units of the score; a run with less gain has learned nothing */
  double kept;       /* below first + kept * gain counts as collapsed */
  size_t in_a_row;   /* number of consecutive evaluations */
  size_t low_at_end; /* a run whose last evaluations are low, at least this many but fewer than
                        in_a_row, is collapsing (RUN_CLASS_COLLAPSING) */
  double plateau; /* plateau: at least first + plateau * gain, with the gain of the whole run before
                     the collapse */
  int64_t plateau_updates; /* minimum time on the plateau for a late collapse, in updates */
} outcome_rule;

/* The rule of all tables and figures: 0.1, 0.5, 4, 2, 0.9, 200, in the order of the fields. */
outcome_rule outcome_rule_default(void);

/* The level at which a run ends and how far that is from its best level. Levels are means of
 * OUTCOME_LEVEL evaluations in a row (of all, if there are fewer), so that the noise of a single
 * evaluation does not decide, as it does in a maximum. */
enum { OUTCOME_LEVEL = 10 };
typedef struct run_level {
  double last;         /* level of the last evaluations; NaN without evaluations */
  double best_to_last; /* highest level of the run minus the last; never negative */
  double below_start; /* fraction of the evaluations after the first whose score is below the first;
                         NaN without any */
} run_level;
/* Computes the levels of a run; evaluations that are not finite are skipped. All levels are NaN if
 * the run is not finite at its end (results_run_is_not_finite()). */
run_level run_level_of(const results_run *run);

/* Number of runs that ended finite with fewer finite evaluations than `least`: than OUTCOME_LEVEL,
 * their levels are means of all; than in_a_row + 1, no collapse can be found in them. Failed runs
 * do not count. */
size_t runs_with_fewer(const results *r, size_t least);

typedef struct run_outcome {
  outcome kind;
  double first, best, last; /* scores; NaN without evaluations. best: before the collapse if there
                               is one, as best_until has it; last: NaN for a non-finite run */
  int64_t best_step;        /* update of the highest evaluation before the collapse (the first, if
                               several are equal) */
  int64_t plateau_updates;  /* updates on the plateau before the collapse, or in total */
  int64_t onset; /* update of the first evaluation of the collapse or of the lost start; for a run
                    that is collapsing at its end its first low one; for a non-finite run its last
                    update; -1: none of these */
  int64_t recovered;  /* after a collapse: update of the first evaluation that is not low, if the
  last ones are not low either; else -1 */
  bool is_collapsing; /* the run survived, but its last evaluations are low */
  int64_t end;        /* update of the last evaluation */
  bool lost_start;    /* the run never learned and lost its initial score: as many consecutive
                         evaluations as a collapse requires are below kept * first, first is at least
                         the minimum gain, and no later one is better */
} run_outcome;

run_class run_outcome_class(const run_outcome *o);
/* Returns true for early and late collapses (dips too), non-finite runs, and runs that lost their
 * start: what counts as a collapse in analyses against learning rate or time. */
bool run_outcome_is_collapse(const run_outcome *o);

/* The outcome of a run with evaluations eval[n], in the order of their updates. not_finite: the run
 * ended for that reason. best_until[n]: the best score up to each evaluation, selected and scored
 * on different problems (analysis/evaluation_sets.h); NULL: the running maximum, which is biased
 * upwards. Evaluations that are not finite are skipped. A run that collapsed before it became
 * non-finite counts as collapsed. A run without evaluations never learned, or is non-finite. */
run_outcome outcome_of(const eval_record *eval, const double *best_until, size_t n, bool not_finite,
                       const outcome_rule *rule);
/* The outcome of a run of a study, with best scores by halves if it has any, and
 * results_run_is_not_finite(). */
run_outcome outcome_of_run(const results_run *run, const outcome_rule *rule);

/* --- the outcomes of a study --- */
/* The stability of a study: outcomes of its runs by algorithm and setting, times of collapse, and
 * the learning rate at which a given fraction collapses (a dose in analysis/collapse_rate.h).
 * `gepolab analyze --table outcomes` prints it. The figures `survival` and `frontier` plot it, for
 * a study or for the output of `gepolab analyze --table outcomes --json` stored by `gepolab results
 * keep`. */

/* The axis with the learning rates. */
#define STABILITY_RATE "optimizer.lr"

/* The reported fractions. */
enum { STABILITY_SHARES = 2 };
extern const double stability_share[STABILITY_SHARES]; /* 0.1, 0.5 */

/* The runs of one algorithm in one setting, at all learning rates. */
typedef struct stability_cell {
  size_t algorithm, setting; /* indices */
  size_t runs, failed;       /* failed runs are counted separately, because they have no outcome */
  size_t count[OUTCOME_COUNT];
  size_t lost_start;                /* number of never-learned runs that lost their start */
  size_t of_class[RUN_CLASS_COUNT]; /* runs; stored results contain only some of them */
  size_t collapses;
  interval collapse_rate; /* fraction that collapsed, with its Clopper-Pearson interval */
  survival_step *curve;   /* [n_steps] Kaplan-Meier, in updates; without at_risk and collapses */
  size_t n_steps;
  double watched; /* last update at which a run collapsed or was still observed; 0 without runs */
  double median_onset; /* infinite while fewer than half have collapsed */
  dose_group *rate;    /* [n_rates] ascending; x is the natural logarithm of the learning rate */
  size_t n_rates;
  /* The fields from here on are set by stability_fit(). */
  interval *last; /* [n_rates] last score at that learning rate, interquartile mean; unknown without
                     runs */
  size_t best_rate; /* index of the learning rate with the highest last score; n_rates: none */
  dose_fit fit;
  interval collapse_at[STABILITY_SHARES]; /* learning rates (not logarithms) at which each fraction
                                          collapses, with intervals over seeds (collapse_rate.h);
                                          open ends are 0 or infinite; NaN outside the rates run */
} stability_cell;

typedef struct stability {
  const results *from; /* borrowed; NULL if made from stored results */
  stored kept;         /* the stored results, else empty; owns the texts below */
  const char *study;
  const char **algorithms; /* [n_algorithms] */
  size_t n_algorithms;
  outcome_rule rule;
  bool has_rates;        /* 1: learning rates are swept */
  size_t rate_axis;      /* index among the study's axes; axes.n if it is not one */
  const char **settings; /* [n_settings] titles without learning rate; "" if only one */
  size_t *setting;       /* [n_groups] setting of each group */
  size_t n_settings;
  double *staleness; /* [n_settings] median of the clock in updates, mean over runs; NaN without a
                        clock */
  run_outcome *run;  /* [n_runs] as in from; undefined for failed runs */
  stability_cell *cells; /* [n_settings][n_algorithms]; runs and failed are 0 for missing cells */
  arena memory;          /* memory of the arrays */
} stability;

/* Computes the outcomes. Release with stability_fini(), also after an error. Errors: GL_ENOMEM,
 * GL_EINPUT (no run has an evaluation). */
gl_status stability_init(stability *s, const results *from, const outcome_rule *rule,
                         gl_error *err);
void stability_fini(stability *s);

/* Fits the fraction that collapses against the learning rate in each cell, and computes the last
 * scores at each learning rate. Needed for the table of outcomes and the figure `frontier`. */
gl_status stability_fit(stability *s, gl_error *err);

/* The same from stored results, whose ownership it takes: everything the figures need, without
 * single runs and the coefficients of fits. Release with stability_fini(), also after an error.
 * Errors: GL_ENOMEM, GL_EINPUT with a hint (not the output of `gepolab analyze --table outcomes
 * --json`). */
gl_status stability_of_stored(stability *s, stored *kept, gl_error *err);

/* Writes for each run of the cell the time of collapse, or of its last observation, to time[] and
 * whether it collapsed to collapsed[]; both have the length n_runs of the study. Returns how many.
 * Failed runs are omitted. Not available for stored results. */
size_t stability_times(const stability *s, const stability_cell *c, double *time,
                       uint8_t *collapsed);

/* Writes {study, collapses, cells} to a document; with_runs: also "runs": [{algorithm, setting, lr,
 * seed, outcome, onset, recovered, plateau_updates, first, best, best_step, last}] of the runs that
 * did not fail. Not available for stored results. */
void stability_report(table *to, const stability *s, bool with_runs);

#endif
