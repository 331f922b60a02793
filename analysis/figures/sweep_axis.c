/* A swept quantity as the x axis, for figures with one value per cell. */
#include "analysis/figures/data.h"

#include "core/base/array.h"
#include "core/base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gl_status leave_out_settings(figure_page *p, const results *r, const size_t *shown, size_t n,
                             gl_error *err) {
  gl_status status = GL_OK;
  for (size_t g = 0; g < r->n_groups && status == GL_OK; g++) {
    size_t i = 0;
    while (i < n && shown[i] != g) i++;
    if (i == n) status = page_leave_out(p, err, "%s", r->groups[g].title);
  }
  return status;
}

const results_run *longest_evaluated(const results *r, const results_cell *c) {
  const results_run *longest = NULL;
  for (size_t k = 0; k < c->n; k++)
    if (!longest || r->runs[c->first + k].n_evals > longest->n_evals)
      longest = &r->runs[c->first + k];
  return longest;
}

enum { MOST_EVALUATIONS = 1000 };

size_t evaluations_apart(size_t n) {
  return n < MOST_EVALUATIONS ? 1 : (n + MOST_EVALUATIONS - 1) / MOST_EVALUATIONS;
}

gl_status remark_every(figure_page *p, size_t every, gl_error *err) {
  if (p->thinned) return GL_OK;
  p->thinned = 1;
  return page_remark(p, err, "Of the evaluations every %zuth is shown", every);
}

gl_status remark_not_finite(figure_page *p, const results *r, gl_error *err) {
  size_t n = 0;
  for (size_t i = 0; i < r->n_runs; i++) n += results_run_is_not_finite(&r->runs[i]);
  return n == 0 ? GL_OK
                : page_remark(p, err,
                              "Runs not finite at their end, without a last score and absent "
                              "after it: %zu of %zu",
                              n, r->n_runs);
}

bool group_evaluated(const results *r, size_t group) {
  for (size_t a = 0; a < r->n_algorithms; a++) {
    const results_run *longest = longest_evaluated(r, results_cell_at(r, group, a));
    if (longest && longest->n_evals > 0) return true;
  }
  return false;
}

gl_status extreme_groups(const results *r, size_t groups[2], size_t *n, gl_error *err) {
  x_grid grid;
  gl_status status = grid_init(&grid, r, X_DELAY, err);
  if (status != GL_OK) return status;
  groups[0] = 0, groups[1] = r->n_groups - 1;
  while (groups[0] < groups[1] && !group_evaluated(r, groups[0])) groups[0]++;
  while (groups[0] < groups[1] && !group_evaluated(r, groups[1])) groups[1]--;
  if (grid.n_x > 1) {
    groups[0] = grid_group(&grid, r, 0, 0);
    groups[1] = grid_group(&grid, r, 0, grid.n_x - 1);
    for (size_t i = 0; i < 2; i++) /* the grid may lack some of these groups */
      if (groups[i] == r->n_groups) groups[i] = i ? r->n_groups - 1 : 0;
  }
  *n = groups[0] == groups[1] ? 1 : 2;
  grid_fini(&grid);
  return GL_OK;
}

/* --- quantities --- */

/* For a logarithm (log_NAME in the store): the metric NAME. */
static metric of_logarithm(metric m) {
  const char *name = m < METRIC_COUNT ? metric_about(m)->name : "";
  return strncmp(name, "log_", 4) == 0 ? metric_find(name + 4) : METRIC_COUNT;
}

bool is_logarithm(metric m) {
  return of_logarithm(m) != METRIC_COUNT;
}

void axis_of(metric m, char text[METRIC_AXIS_SIZE]) {
  if (m == METRIC_COUNT)
    snprintf(text, METRIC_AXIS_SIZE, "evaluation score");
  else
    metric_axis(is_logarithm(m) ? of_logarithm(m) : m, text);
}

double drawn_value(metric m, double stored) {
  return is_logarithm(m) ? exp(stored) : stored;
}

interval drawn_interval(metric m, interval stored) {
  return (interval){drawn_value(m, stored.value), drawn_value(m, stored.low),
                    drawn_value(m, stored.high)};
}

/* --- a swept quantity as x --- */

/* Dotted paths under which a study may sweep a quantity, the usual one first. Paths are compared as
 * a whole. If a study sweeps two paths of one quantity, one is x and the other an ordinary setting.
 */
enum { MOST_PATHS = 3 };
static const char *const paths[][MOST_PATHS] = {
    [X_DELAY] = {"cluster.max_delay", "cluster.delay", "cluster.data_delay"},
    [X_LOSS] = {"cluster.down.loss", "cluster.up.loss", NULL},
    [X_WINDOW] = {"cluster.window", NULL, NULL},
    [X_SAMPLERS] = {"cluster.samplers", NULL, NULL}};

/* Writes the distinct numbers of the groups on an axis to x, ascending. Returns how many. */
static size_t distinct_numbers(const results *r, size_t which, double *x) {
  size_t n = 0, distinct = 0;
  for (size_t g = 0; g < r->n_groups; g++)
    if (isfinite(r->groups[g].value[which].number)) x[n++] = r->groups[g].value[which].number;
  qsort(x, n, sizeof *x, order_real);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || x[i] > x[distinct - 1]) x[distinct++] = x[i];
  return distinct;
}

/* Finds the first axis of that kind with several numbers and writes them to x. Returns r->axes.n if
 * there is none. */
static size_t choose_axis(const results *r, x_kind kind, double *x, size_t *n_x) {
  for (size_t i = 0; i < MOST_PATHS && paths[kind][i]; i++) {
    size_t which = results_axis(r, paths[kind][i]);
    if (which == r->axes.n) continue;
    *n_x = distinct_numbers(r, which, x);
    if (*n_x > 1) return which;
  }
  *n_x = 0;
  return r->axes.n;
}

void grid_fini(x_grid *grid) {
  arena_fini(&grid->memory);
}

/* such as "max delay [s]" */
static const char *axis_name(arena *m, const results *r, size_t which) {
  const char *label = which < r->axes.n ? r->axes.axis[which].label : "";
  const char *unit = which < r->axes.n ? r->axes.axis[which].unit : "";
  char *name = ARENA_ARRAY(m, char, strlen(label) + strlen(unit) + sizeof " []");
  if (name) sprintf(name, *unit ? "%s [%s]" : "%s%s", label, unit);
  return name;
}

/* Sets the index of each group on the axis. */
static void place_on_axis(x_grid *grid, const results *r, size_t which) {
  for (size_t g = 0; g < r->n_groups; g++)
    while (grid->place[g] < grid->n_x &&
           grid->x[grid->place[g]] != r->groups[g].value[which].number)
      grid->place[g]++;
}

/* Groups that differ in this axis only form a slice. A slice without a group on the axis is not
 * counted; its groups get slice n_slices. */
static void slice_groups(x_grid *grid, const results *r, size_t which) {
  const char **titles = results_titles(&grid->memory, r, which);
  for (size_t g = 0; titles && g < r->n_groups; g++)
    if (grid->place[g] < grid->n_x && titles[g])
      grid->slice[g] = text_list_add(grid->headings, &grid->n_slices, titles[g]);
  for (size_t g = 0; g < r->n_groups; g++)
    if (grid->place[g] == grid->n_x) grid->slice[g] = grid->n_slices;
}

gl_status grid_init(x_grid *grid, const results *r, x_kind kind, gl_error *err) {
  const size_t n = r->n_groups;
  *grid = (x_grid){0};
  arena *m = &grid->memory;
  grid->x = ARENA_ARRAY(m, double, n);
  grid->place = ARENA_ARRAY(m, size_t, n);
  grid->slice = ARENA_ARRAY(m, size_t, n);
  grid->headings = ARENA_ARRAY(m, const char *, n);
  const size_t which = m->failed ? r->axes.n : choose_axis(r, kind, grid->x, &grid->n_x);
  grid->name = axis_name(m, r, which);
  if (!m->failed && which < r->axes.n) {
    place_on_axis(grid, r, which);
    slice_groups(grid, r, which);
  }
  gl_status status = arena_check(m, "a figure", err);
  if (status != GL_OK) grid_fini(grid);
  return status;
}

size_t grid_group(const x_grid *grid, const results *r, size_t slice, size_t place) {
  for (size_t g = 0; g < r->n_groups; g++)
    if (grid->slice[g] == slice && grid->place[g] == place) return g;
  return r->n_groups;
}

gl_status grid_leave_out(figure_page *p, const x_grid *grid, const results *r, const size_t *slices,
                         size_t n, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t g = 0; g < r->n_groups && status == GL_OK; g++) {
    size_t i = 0;
    while (slices && i < n && slices[i] != grid->slice[g]) i++;
    if ((slices && i == n) || grid->place[g] == grid->n_x)
      status = page_leave_out(p, err, "%s", r->groups[g].title);
  }
  return status;
}

void grid_set_x(figure_page *p, const x_grid *grid) {
  assert(grid->n_x > 0);
  snprintf(p->x_axis, sizeof p->x_axis, "%s", grid->name);
  /* Logarithmic if the numbers span decades and none is zero. */
  p->x_logarithmic = grid->x[0] > 0 && grid->x[grid->n_x - 1] > 30 * grid->x[0];
  p->all_marks = 1;
  for (size_t i = 0; i < grid->n_x; i++) page_x(p, grid->x[i]);
}

void grid_write(figure_page *p, size_t panel, const char *line, const x_grid *grid, size_t place,
                interval v) {
  page_line(p, panel, line);
  page_number(p, grid->x[place]);
  page_interval(p, panel, v.value, v.low, v.high);
  fputc('\n', p->data.stream);
}
