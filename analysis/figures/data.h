/* The data of a study's figures, and helpers shared by several figures. Private to this folder. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_DATA_H
#define GEPOLAB_ANALYSIS_FIGURES_DATA_H

#include "analysis/figures/figures.h"
#include "analysis/plot/page.h"
#include "analysis/summary.h"

#include <stdbool.h>

typedef struct figure_data {
  const summary *s;
  const staleness_histogram *measured; /* measured staleness; NULL: none */
} figure_data;

/* Adds a remark with the study's settings (groups) that are not among shown[n]. */
gl_status leave_out_settings(figure_page *p, const results *r, const size_t *shown, size_t n,
                             gl_error *err);

/* The run of a cell with the most evaluations; NULL if the cell has no run. */
const results_run *longest_evaluated(const results *r, const results_cell *c);
/* Returns k: figures draw every k-th of n evaluations, so that they have at most a few thousand
 * points. */
size_t evaluations_apart(size_t n);
/* Adds a remark that only every k-th evaluation is drawn (`every`: k), once per page. */
gl_status remark_every(figure_page *p, size_t every, gl_error *err);
/* Adds a remark with the number of runs that are not finite at their end, if there are any. For
 * figures of last scores, and of curves that go on as the mean of the other runs. */
gl_status remark_not_finite(figure_page *p, const results *r, gl_error *err);
/* Returns true if a run of the group has an evaluation. */
bool group_evaluated(const results *r, size_t group);
/* The groups with the smallest and the largest delay, with all other settings as in the first
 * group. Without a delay axis: the first and the last group with evaluations. *n becomes 1 or 2. */
gl_status extreme_groups(const results *r, size_t groups[2], size_t *n, gl_error *err);
/* The staleness of an update: in optimiser updates if the study has it, else in versions; NaN if it
 * has neither. In staleness.c. */
double staleness_of(const step_record *s);
/* Returns true if runs differ in some setting. In relations.c. */
bool sweeps_something(const results *r);

/* --- a swept quantity as x: sweep_axis.c --- */

typedef enum x_kind { X_DELAY, X_LOSS, X_WINDOW, X_SAMPLERS } x_kind;

/* An axis as x: its distinct numbers, ascending, and the settings of all other axes (slices). Group
 * g is at index place[g] of slice[g]. If its value is not a number, it has place n_x and slice
 * n_slices. */
typedef struct x_grid {
  const char *name; /* axis label with unit: "max delay [s]" */
  double *x;
  size_t n_x;
  size_t *place, *slice;
  const char **headings; /* titles of the slices */
  size_t n_slices;
  arena memory;
} x_grid;

/* Builds the grid of the first axis of that kind with several numbers. n_x is 0 or 1 if there is
 * none. Release with grid_fini(), unless it fails. */
gl_status grid_init(x_grid *grid, const results *r, x_kind kind, gl_error *err);
void grid_fini(x_grid *grid);
/* The group at index `place` of that slice, or r->n_groups if there is none. */
size_t grid_group(const x_grid *grid, const results *r, size_t slice, size_t place);
/* Adds a remark with the settings that are in none of the slices[n] (NULL: all slices are shown) or
 * have no number on the axis. */
gl_status grid_leave_out(figure_page *p, const x_grid *grid, const results *r, const size_t *slices,
                         size_t n, gl_error *err);
/* Sets the page's x axis to the grid's numbers; logarithmic if they span more than a factor of
 * thirty. */
void grid_set_x(figure_page *p, const x_grid *grid);
/* Writes one data record: the value at an index of the grid. */
void grid_write(figure_page *p, size_t panel, const char *line, const x_grid *grid, size_t place,
                interval v);

/* --- quantities against updates: curves.c --- */

/* A quantity as a function of updates. */
typedef struct curve {
  metric m; /* METRIC_COUNT: the evaluation score. For a logarithm (log_...), its exponential is
               plotted. */
  bool logarithmic; /* logarithmic axis */
} curve;

/* Writes the metric's axis label, such as "KL(p‖q) [nats]" or "evaluation score" (METRIC_COUNT).
 * For a logarithm: the label of its exponential. */
void axis_of(metric m, char text[METRIC_AXIS_SIZE]);
/* is_logarithm: the store has the metric's natural logarithm. drawn_value() then returns its
 * exponential, for a logarithmic axis. */
bool is_logarithm(metric m);
double drawn_value(metric m, double stored);
interval drawn_interval(metric m, interval stored);

/* has_values: some run has a finite value of the metric at an update; for the score, an evaluation.
 * has_line: some run has the metric at several updates, so that it has a line over updates (a table
 * of means has none); infinite values count. For the score one evaluation suffices. */
bool has_values(const results *r, const curve *c);
bool has_line(const results *r, const curve *c);

#endif
