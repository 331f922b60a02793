/* The data of a study's figures, and helpers that several of them use. Only for the files of this
 * folder. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_DATA_H
#define GEPOLAB_ANALYSIS_FIGURES_DATA_H

#include "analysis/figures/figures.h"
#include "analysis/plot/page.h"
#include "analysis/summary.h"

#include <stdbool.h>

typedef struct figure_data {
  const summary *s;
  const staleness_histogram *measured; /* NULL: none */
} figure_data;

/* Says on the page which of the study's settings (groups) are not among shown[n]. */
gl_status leave_out_settings(figure_page *p, const results *r, const size_t *shown, size_t n,
                             gl_error *err);
/* The summary of that group's and algorithm's cell; NULL where the grid has a hole. */
const cell_summary *cell_of(const summary *s, size_t group, size_t algorithm);

/* The run of a cell with the most evaluations; NULL where the cell has no run. */
const results_run *longest_evaluated(const results *r, const results_cell *c);
/* Every so many-th of n evaluations is drawn: a figure shows no more than some thousand. */
size_t evaluations_apart(size_t n);
/* Says so on the page, once. */
gl_status remark_every(figure_page *p, size_t every, gl_error *err);
/* Whether a run of the group has an evaluation. */
bool group_evaluated(const results *r, size_t group);
/* The groups of the smallest and the largest delay, all other settings being those of the first
 * group; without a delay the first and the last group that have evaluations. *n is 1 or 2. */
gl_status extreme_groups(const results *r, size_t groups[2], size_t *n, gl_error *err);
/* The staleness of an update: in optimiser updates where the study has it, else in versions; NaN
 * where it has neither. by_staleness.c. */
double staleness_of(const step_record *s);
/* Whether runs differ in some setting: sensitivity.c. */
bool sweeps_something(const results *r);

/* --- a swept quantity as x: grid.c --- */

typedef enum x_kind { X_DELAY, X_LOSS, X_WINDOW, X_SAMPLERS } x_kind;

/* The distinct numbers of one axis, ascending, and the settings of all the other axes (slices):
 * group g is at place[g] of slice[g], or not in the grid (place n_x of slice n_slices) if its value
 * is not a number. */
typedef struct x_grid {
  const char *name; /* of the axis, with its unit: "max delay [s]" */
  double *x;
  size_t n_x;
  size_t *place, *slice;
  const char **headings; /* of slices */
  size_t n_slices;
  arena memory;
} x_grid;

/* The grid over the first axis of that kind that the study sweeps over several numbers; n_x is 0 or
 * 1 where there is none. Release with grid_fini(), not after a failure. */
gl_status grid_init(x_grid *grid, const results *r, x_kind kind, gl_error *err);
void grid_fini(x_grid *grid);
/* The group at that place of that slice, or r->n_groups. */
size_t grid_group(const x_grid *grid, const results *r, size_t slice, size_t place);
/* Says on the page which settings are in none of the slices[n] (NULL: all are shown), or nowhere on
 * the axis. */
gl_status grid_leave_out(figure_page *p, const x_grid *grid, const results *r, const size_t *slices,
                         size_t n, gl_error *err);
/* The page's x axis: the numbers themselves, on a logarithmic axis where they span more than a
 * factor of thirty. */
void grid_set_x(figure_page *p, const x_grid *grid);
/* One record of data: the value at a place of the grid. */
void grid_write(figure_page *p, size_t panel, const char *line, const x_grid *grid, size_t place,
                interval v);

/* --- quantities against updates: curves.c --- */

/* A quantity over updates. */
typedef struct curve {
  metric m; /* METRIC_COUNT: the evaluation score; a logarithm, log_...: its exponential is drawn */
  bool logarithmic; /* its axis is */
} curve;

/* The metric's name on an axis, "KL(p‖q) [nats]", "evaluation score" (METRIC_COUNT); of a logarithm
 * the name of its exponential. */
void axis_of(metric m, char text[METRIC_AXIS_SIZE]);
/* Whether the store keeps the metric's natural logarithm; drawn_value() is then its exponential, as
 * the axes are logarithmic themselves. */
bool is_logarithm(metric m);
double drawn_value(metric m, double stored);
interval drawn_interval(metric m, interval stored);

/* Whether any run has the quantity; and whether one has it at several updates, so that it has a
 * course (a table of means has none), or evaluations. */
bool has_curve(const results *r, const curve *c);
bool has_course(const results *r, const curve *c);

#endif
