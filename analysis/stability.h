/* What a study says about stability: the outcomes of its runs by method and setting, when they
 * fell, and at which dose (learning rate) which share falls. `gepolab analyze --table outcomes`
 * prints it; the figures `survival` and `frontier` draw it, of a study or of what `gepolab analyze
 * --table outcomes --json` said of one and `gepolab results keep` stored. */
#ifndef GEPOLAB_ANALYSIS_STABILITY_H
#define GEPOLAB_ANALYSIS_STABILITY_H

#include "analysis/dose.h"
#include "analysis/outcome.h"
#include "analysis/results.h"
#include "analysis/stored.h"
#include "core/base/table.h"

#include <stdio.h>

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
  int has_doses;    /* STABILITY_DOSE is swept */
  size_t dose_axis; /* its index among the axes of a study; axes.n where it is none */
  char **settings;  /* [n_settings] titles without the dose; "" where there is but one */
  size_t *setting;  /* [n_groups] of each group */
  size_t n_settings;
  double *staleness; /* [n_settings] the clock's median in updates, mean over runs; NaN: no clock */
  run_outcome *run;  /* [n_runs], as in from; of failed runs without meaning */
  stability_cell
      *cells; /* [n_settings][n_algorithms]; runs and failed 0 where the grid has a hole */
} stability;

/* GL_EINPUT where no run has an evaluation. Release with stability_fini() in any case. */
gl_status stability_init(stability *s, const results *from, const outcome_rule *rule,
                         gl_error *err);
void stability_fini(stability *s);

/* Fits the share of falls against the dose in each cell, and finds the last scores at each dose:
 * what the table of outcomes and the figure `frontier` need. */
gl_status stability_fit(stability *s, gl_error *err);

/* The same from stored results, which it takes: what the figures need, but neither single runs nor
 * the coefficients of fits. GL_EINPUT, naming the remedy, where they are not those of `gepolab
 * analyze --table outcomes --json`. Release with stability_fini() in any case. */
gl_status stability_of_stored(stability *s, stored *kept, gl_error *err);

/* The times at which the cell's runs fell, or until which they were watched: time[] and fell[] hold
 * n_runs of the study; how many were written. Failed runs are none of them. Not of stored results.
 */
size_t stability_times(const stability *s, const stability_cell *c, double *time, uint8_t *fell);

/* Into a document: {study, cells}. */
void stability_report(table *to, const stability *s);

#endif
