/* The outcome of a training run: whether it learned, whether its score collapsed (a fall), and
 * when.
 *
 * The rule is fixed beforehand and the same for all runs, so that no method is judged by eye. A run
 * falls when several evaluations in a row lie below a share of what had been gained until then; a
 * single bad evaluation is none. Only evaluations before it decide about a fall, so that a fall
 * does not depend on how long the run was watched afterwards. Scores are better when higher.
 */
#ifndef GEPOLAB_ANALYSIS_OUTCOME_H
#define GEPOLAB_ANALYSIS_OUTCOME_H

#include "analysis/results.h"
#include "analysis/statistics.h"
#include "analysis/stored.h"
#include "core/base/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* In the order in which they are tested, but for survival, which is the rest. */
typedef enum outcome {
  OUTCOME_NOT_FINITE,    /* a loss or parameter that is no number ended it before it fell */
  OUTCOME_NEVER_LEARNED, /* it gained less than the rule's least gain */
  OUTCOME_EARLY_FALL,    /* it fell before it had been on its plateau long enough */
  OUTCOME_LATE_FALL,     /* it fell afterwards: the published kind of collapse */
  OUTCOME_SURVIVED,
  OUTCOME_COUNT
} outcome;

/* "not finite", "never learned", "early fall", "late fall", "survived". */
const char *outcome_name(outcome o);

typedef struct outcome_rule {
  double least_gain;       /* in units of the score; below it a run has learned nothing */
  double kept;             /* below first + kept * gain is a fall */
  size_t in_a_row;         /* so many evaluations in a row */
  double plateau;          /* at least first + plateau * gain is the plateau, gain being the whole
                              run's before the fall */
  int64_t plateau_updates; /* a late fall has been on it so long, in updates */
} outcome_rule;

/* 0.1, half, four, 0.9, 200 updates. */
outcome_rule outcome_rule_default(void);

typedef struct run_outcome {
  outcome kind;
  double first, best, last; /* scores; NaN without an evaluation */
  int64_t best_step;        /* update of the best evaluation (the first of equal ones) */
  int64_t plateau_updates;  /* updates on the plateau before the fall, or in all */
  int64_t onset;            /* update of the first evaluation of the fall, or of the loss of the
                               start; of a run that is not finite its last; -1: none of them */
  int64_t end;              /* the last evaluation */
  bool lost_start;          /* it never learned, and lost what it began with: as many evaluations in
                              a row as a fall needs lie below kept * first, first being at least
                              the least gain, without a better one after them */
} run_outcome;

/* 1 for early and late falls, for runs that are not finite, and for those that lost their start:
 * what counts as a fall when falls are set against a dose or a time. */
bool run_outcome_is_fall(const run_outcome *o);

/* The outcome of a run with evaluations eval[n] in the order of their updates; not_finite: it ended
 * for that reason. best_until: [n] the best score until each evaluation, as it was chosen and
 * scored on different problems (analysis/sets.h); NULL: the largest one, which is biased upwards.
 * Evaluations that are NaN are skipped. A run that fell before it was not finite is a fall. Without
 * evaluations it never learned, or is not finite. */
run_outcome outcome_of(const eval_record *eval, const double *best_until, size_t n, bool not_finite,
                       const outcome_rule *rule);
/* The same of a run of a study, by its halves where it has any. Not finite is what
 * results_run_is_not_finite() says. */
run_outcome outcome_of_run(const results_run *run, const outcome_rule *rule);

/* --- the outcomes of a study --- */
/* The stability of a study: the outcomes of its runs by method and setting, when they
 * fell, and at which dose (learning rate) which share falls. `gepolab analyze --table outcomes`
 * prints it; the figures `survival` and `frontier` draw it, of a study or of what `gepolab analyze
 * --table outcomes --json` said of one and `gepolab results keep` stored. */

/* The axis whose numbers are doses. */
#define STABILITY_DOSE "optimizer.lr"

/* The shares that are told. */
enum { STABILITY_SHARES = 2 };
extern const double stability_share[STABILITY_SHARES]; /* 0.1, 0.5 */

/* The runs of one algorithm at one setting, all doses together. */
typedef struct stability_cell {
  size_t algorithm, setting; /* indices */
  size_t runs, failed;       /* failed runs (which say nothing) are counted apart */
  size_t count[OUTCOME_COUNT];
  size_t lost_start; /* of those that never learned */
  size_t falls;
  interval fallen;      /* share of falls among runs, Clopper-Pearson */
  survival_step *curve; /* [n_steps] Kaplan-Meier, in updates; at_risk and falls are not stored */
  size_t n_steps;
  double watched;      /* the last update at which a run fell or was still up; 0 without runs */
  double median_onset; /* infinite while fewer than half have fallen */
  dose_group *dose;    /* [n_doses] ascending, x the natural logarithm */
  size_t n_doses;
  /* From here on by stability_fit(). */
  interval *last; /* [n_doses] last score at that dose, interquartile mean; unknown without runs */
  size_t best_dose; /* index of the dose with the highest last score; n_doses: none */
  dose_fit fit;
  interval falls_at[STABILITY_SHARES]; /* doses, not logarithms; ends 0 or infinite where open */
} stability_cell;

typedef struct stability {
  const results *from; /* borrowed; NULL: made of stored results */
  stored kept;         /* these, else empty; texts below are of it */
  const char *study;
  const char **algorithms; /* [n_algorithms] */
  size_t n_algorithms;
  outcome_rule rule;
  bool has_doses;        /* STABILITY_DOSE is swept */
  size_t dose_axis;      /* its index among the axes of a study; axes.n where it is none */
  const char **settings; /* [n_settings] titles without the dose; "" where there is but one */
  size_t *setting;       /* [n_groups] of each group */
  size_t n_settings;
  double *staleness; /* [n_settings] the clock's median in updates, mean over runs; NaN: no clock */
  run_outcome *run;  /* [n_runs], as in from; of failed runs without meaning */
  stability_cell
      *cells;   /* [n_settings][n_algorithms]; runs and failed 0 where the grid has a hole */
  arena memory; /* of the arrays */
} stability;

/* GL_EINPUT where no run has an evaluation. Release with stability_fini() in any case. */
gl_status stability_init(stability *s, const results *from, const outcome_rule *rule,
                         gl_error *err);
void stability_fini(stability *s);

/* Fits the share of falls against the dose in each cell, and finds the last scores at each dose:
 * as the table of outcomes and the figure `frontier` need them. */
gl_status stability_fit(stability *s, gl_error *err);

/* The same from stored results, which it takes over: all that the figures need, but neither single
 * runs nor the coefficients of fits. GL_EINPUT, naming the remedy, where they are not those of
 * `gepolab analyze --table outcomes --json`. Release with stability_fini() in any case. */
gl_status stability_of_stored(stability *s, stored *kept, gl_error *err);

/* The times at which the cell's runs fell, or until which they were watched: time[] and fell[] hold
 * n_runs of the study; how many were written. Failed runs are none of them. Not of stored results.
 */
size_t stability_times(const stability *s, const stability_cell *c, double *time, uint8_t *fell);

/* Into a document: {study, cells}. */
void stability_report(table *to, const stability *s);

#endif
