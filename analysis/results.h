/* A study in memory, arranged for analysis: runs that differ only in their seed form a cell, cells
 * of one combination of settings form a group. What is a setting is found by comparing the runs'
 * recipes (core/config/axes.h). Algorithms and groups keep the order of the grid.
 */
#ifndef GEPOLAB_ANALYSIS_RESULTS_H
#define GEPOLAB_ANALYSIS_RESULTS_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/config/axes.h"
#include "core/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path of the axis that says which benchmark or study a run is of, where several are shown
 * together; no field of a recipe. */
#define RESULTS_LABEL "label"

typedef struct results_run {
  size_t algorithm, group; /* indices into results; after results_arrange() */
  char *key;               /* NULL: it has none */
  uint64_t seed;
  double lr;
  run_status status;
  char *reason; /* why it failed or diverged; "" when done */
  clock_record clock;
  step_record *steps;
  size_t n_steps;
  eval_record *evals;
  size_t n_evals;
  double *best_until; /* [n_evals] the best score until then as one half of the problems chooses it
                         and the other scores it (sets_use_halves); NULL: the largest */
  set_eval_record *set_evals; /* [n_set_evals] by evaluation set (analysis/sets.h) */
  size_t n_set_evals;
  uint64_t *staleness; /* histogram */
  size_t n_staleness;
  /* Its recipe and settings, by which results_arrange() compares it with other runs. */
  char *shown, *recipe, *swept, *chosen, *in_effect;
  int64_t meaning;
} results_run;

/* Runs first .. first + n - 1 of results; n may be 0 where the grid has a hole. */
typedef struct results_cell {
  size_t algorithm, group, first, n;
} results_cell;

/* One combination of the axes' values. */
typedef struct results_group {
  const axis_value *value; /* [results.axes.n] */
  const char *label;       /* "600" or "600, 0.1": the values in the order of the axes */
  const char *heading;     /* "max delay 600 s, loss down 0.1": what varies in the study; "" where
                        there is no axis */
  const char *title;       /* as results_titles() has it */
  double delay; /* in the axis cluster.max_delay, else cluster.delay; NaN without them and
                   for a value that is not a number */
} results_group;

typedef struct results {
  char *study;
  axis_table axes; /* what tells the groups apart; axes.value is by run as they were added, not as
                they are arranged */
  bool lower_is_better; /* of two scores; 0 unless it is set before the results are summarised */
  const char
      *axis_label; /* "max delay [s]" or "max delay [s], loss down"; "" where there is no axis */
  const char **algorithms;
  size_t n_algorithms;
  results_group *groups;
  size_t n_groups;
  results_run *runs;
  size_t n_runs;
  results_run *repeats; /* [n_repeats] left out of runs, and in no cell: their recipes mean the same
                           as another's of the same seed */
  size_t n_repeats;
  results_cell *cells; /* [n_groups * n_algorithms], group by group; after results_arrange() */
  arena memory;        /* of all but runs and axes */
} results;

/* The names of the studies in a store, in the order of their names; on the heap, *n of them, one
 * block to free. GL_EIO as the database says, GL_EINPUT if the store holds no run. */
gl_status results_studies(char ***names, size_t *n, store *s, gl_error *err);

/* All runs of one study in the store, arranged; study NULL: of the only one. Release with
 * results_free(). GL_EIO as the database says; GL_EINPUT if the store holds no run, none of that
 * study, or several studies where none is named. */
gl_status results_load(results **out, store *s, const char *study, gl_error *err);
void results_free(results *r);

/* An empty study to add runs to by hand. NULL if memory is short. */
results *results_new(const char *study);
/* Appends a deep copy of the run (its recipe may be NULL: then only run->swept distinguishes it).
 * Call in grid order. */
gl_status results_add(results *r, const run_record *run, gl_error *err);
/* Sorts runs into cells; call once after the last results_add(). GL_EIO if a recipe is damaged. */
gl_status results_arrange(results *r, gl_error *err);

/* Whether the run ended because its loss, its gradient or its score was no finite number. A run
 * that is called diverged because its score collapsed went on to its last update, and is not one.
 */
bool results_run_is_not_finite(const results_run *run);

/* The cell of that group and algorithm. */
const results_cell *results_cell_at(const results *r, size_t group, size_t algorithm);

/* The index of the axis with that path; r->axes.n if there is none. */
size_t results_axis(const results *r, const char *path);
/* The value as it is written in headings: its text, or "not given". Borrowed. */
const char *results_value_text(axis_value v);
/* Titles [n_groups] that are as short as they can be and distinguish the groups that differ in the
 * axes but one (r->axes.n: in all of them): an axis that follows from the others is not named,
 * unless one of the others is not given. Where more than two axes vary and each group differs in
 * one of them from a base, the title is that difference. In `to`, which the caller checks before
 * it reads them. */
const char **results_titles(arena *to, const results *r, size_t without);

/* --- lists of different texts, in the order in which they were added --- */

/* The index of the text in list[n]; n: it is not in the list. */
size_t text_list_find(const char *const *list, size_t n, const char *text);
/* The same, after it was added at the end where the list lacks it. The list has room for it, and
 * borrows it. */
size_t text_list_add(const char **list, size_t *n, const char *text);

#endif
