/* A study in memory, arranged for analysis. Runs that differ only in their seed form a cell; cells
 * with the same combination of settings form a group. Settings are found by comparing the runs'
 * recipes (core/config/axes.h). Algorithms and groups keep the order of the grid. */
#ifndef GEPOLAB_ANALYSIS_RESULTS_H
#define GEPOLAB_ANALYSIS_RESULTS_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/config/axes.h"
#include "core/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Path of the axis for the benchmark or study of a run, when several are analysed together; it is
 * not a recipe field. */
#define RESULTS_LABEL "label"

typedef struct results_run {
  size_t algorithm, group; /* indices, set by results_arrange() */
  char *key;               /* NULL: no key */
  uint64_t seed;
  double lr;
  run_status status;
  char *reason; /* reason of failure or divergence; "" when done */
  clock_record clock;
  step_record *steps;
  size_t n_steps;
  eval_record *evals;
  size_t n_evals;
  double *best_until; /* [n_evals] best score up to each evaluation, selected on one half of the
                         problems and scored on the other (sets_use_halves); NULL: the running
                         maximum */
  set_eval_record
      *set_evals; /* [n_set_evals] scores by evaluation set (analysis/evaluation_sets.h) */
  size_t n_set_evals;
  uint64_t *staleness; /* histogram */
  size_t n_staleness;
  /* Recipe and settings, by which results_arrange() compares runs. shown: name of the algorithm;
   * recipe: its canonical JSON, NULL: none; swept, chosen: JSON objects of the swept and of the
   * tuned fields; in_effect: JSON of every field's value and origin, NULL: unknown; meaning:
   * RECIPE_MEANING of the program that made the run. */
  char *shown, *recipe, *swept, *chosen, *in_effect;
  int64_t meaning;
} results_run;

/* Runs first .. first + n - 1; n may be 0 if the grid has no run there. */
typedef struct results_cell {
  size_t algorithm, group, first, n;
} results_cell;

/* One combination of the axes' values. */
typedef struct results_group {
  const axis_value *value; /* [results.axes.n] */
  const char *label;       /* "600" or "600, 0.1": the values in the order of the axes */
  const char *heading; /* "max delay 600 s, loss down 0.1": the values that vary in the study; "" if
                          there is no axis */
  const char *title;   /* short title, see results_titles() */
  double delay; /* value of the axis cluster.max_delay, else of cluster.delay; NaN without these and
                   for non-numeric values */
} results_group;

typedef struct results {
  char *study;
  axis_table axes; /* axes that distinguish the groups; axes.value is indexed by run in the order of
                      results_add() */
  bool lower_is_better; /* 1: lower scores are better; set before summaries if needed */
  const char
      *axis_label; /* "max delay [s]" or "max delay [s], loss down"; "" if there is no axis */
  const char **algorithms;
  size_t n_algorithms;
  results_group *groups;
  size_t n_groups;
  results_run *runs;
  size_t n_runs;
  results_run *repeats; /* [n_repeats] runs omitted from runs and cells, because their recipes mean
                           the same as another's with the same seed */
  size_t n_repeats;
  results_cell *cells; /* [n_groups * n_algorithms] group by group; set by results_arrange() */
  arena memory;        /* memory of everything except runs and axes */
} results;

/* Lists the names of the studies in a store, sorted, *n of them; allocated as one block. Errors:
 * GL_ENOMEM, GL_EIO (database error), GL_EINPUT (the store has no run). */
gl_status results_studies(char ***names, size_t *n, store *s, gl_error *err);

/* Loads all runs of a study and arranges them; study NULL: the only one. Release with
 * results_free(). Errors: GL_ENOMEM, GL_EIO (database error), GL_EINPUT (no run, no run of that
 * study, or several studies and no name). */
gl_status results_load(results **out, store *s, const char *study, gl_error *err);
void results_free(results *r);

/* Allocates an empty study to which runs are added; NULL if memory runs out. */
results *results_new(const char *study);
/* Appends a deep copy of the run. If its recipe is NULL, only run->swept distinguishes it. Call in
 * grid order. */
gl_status results_add(results *r, const run_record *run, gl_error *err);
/* Sorts runs into cells; call once after the last results_add(). Errors: GL_ENOMEM, GL_EIO (a
 * recipe is damaged). */
gl_status results_arrange(results *r, gl_error *err);

/* Returns true if the run ended because its loss, gradient or score was not finite. A run that is
 * marked diverged because its score collapsed continued to its last update and does not count. */
bool results_run_is_not_finite(const results_run *run);

/* The cell of that group and algorithm. */
const results_cell *results_cell_at(const results *r, size_t group, size_t algorithm);

/* Returns the index of the axis with that path; r->axes.n if there is none. */
size_t results_axis(const results *r, const char *path);
/* Returns the value as written in titles: its text, or "not given". Borrowed. */
const char *results_value_text(axis_value v);
/* Returns titles [n_groups] that are as short as possible and distinguish groups that differ in the
 * axes other than `without` (r->axes.n: in all axes). An axis that follows from the others is not
 * named, unless one of the others is not given. If more than two axes vary and each group differs
 * in one of them from a base, the title is that difference. Allocated in `to`; NULL if memory ran
 * out: call arena_check(to) before reading the titles. */
const char **results_titles(arena *to, const results *r, size_t without);

/* --- lists of distinct texts, in the order of insertion --- */

/* Returns the index of the text in list[n]; n if it is not there. */
size_t text_list_find(const char *const *list, size_t n, const char *text);
/* The same, but appends the text (borrowed) if it is not there. The list must have room for it. */
size_t text_list_add(const char **list, size_t *n, const char *text);

#endif
