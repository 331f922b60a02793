/* A study in memory, arranged for analysis: runs that differ only in their seed form a cell, cells
 * of one combination of swept values form a group. Algorithms and groups keep the order of the
 * grid.
 */
#ifndef GEPOLAB_ANALYSIS_RESULTS_H
#define GEPOLAB_ANALYSIS_RESULTS_H

#include "core/base/error.h"
#include "core/store/store.h"

#include <stddef.h>
#include <stdint.h>

typedef struct results_run {
  size_t algorithm, group; /* indices into results */
  uint64_t seed;
  double lr;
  run_status status;
  clock_row clock;
  step_row *steps;
  size_t n_steps;
  eval_row *evals;
  size_t n_evals;
  uint64_t *staleness; /* histogram */
  size_t n_staleness;
} results_run;

/* Runs first .. first + n - 1 of results; n may be 0 where the grid has a hole. */
typedef struct results_cell {
  size_t algorithm, group, first, n;
} results_cell;

/* One combination of swept values besides algorithm and seed. */
typedef struct results_group {
  char *axes;                 /* canonical JSON, "{}" if nothing else is swept */
  char *label;                /* "600" or "600, 0.1": the values in the order of the axes */
  char *heading;              /* "max delay 600 s, loss 0.1"; "" if nothing else is swept */
  double delay, loss, window; /* values of those axes; NaN if not swept or not a number */
} results_group;

typedef struct results {
  char *study;
  char *axis_label; /* "max_delay" or "max_delay, loss"; "" if nothing else is swept */
  char **algorithms;
  size_t n_algorithms;
  results_group *groups;
  size_t n_groups;
  results_run *runs;
  size_t n_runs;
  results_cell *cells; /* [n_groups * n_algorithms], group by group; after results_arrange() */
} results;

/* Everything in the store, arranged. Release with results_free(). GL_EIO as the database says,
 * GL_EINPUT if the store holds no run. */
gl_status results_load(results **out, store *s, gl_error *err);
void results_free(results *r);

/* An empty study to add runs to by hand. NULL if memory is short. */
results *results_new(const char *study);
/* Appends a deep copy of the run. Call in grid order. */
gl_status results_add(results *r, const run_record *run, gl_error *err);
/* Sorts runs into cells; call once after the last results_add(). */
gl_status results_arrange(results *r, gl_error *err);

/* The cell of that group and algorithm. */
const results_cell *results_cell_at(const results *r, size_t group, size_t algorithm);

/* The swept values of canonical JSON axes as a heading, without the axes whose last component holds
 * `without` (NULL: with all); delays carry their unit. On the heap, NULL if memory is short. */
char *results_heading(const char *axes, const char *without);

#endif
