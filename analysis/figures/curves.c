/* Curves against updates: the figures `eval_score`, `training`, `window` and `divergence`. */
#include "analysis/figures/data.h"
#include "analysis/figures/list.h"
#include "analysis/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A page of curves and scratch for the values of a point. */
typedef struct curve_page {
  figure_page *p;
  const results *r;
  double *values, *steps; /* [n_runs], [updates of the longest run] */
  size_t *next;           /* [n_runs] index of a run's next update */
  int64_t last_step;
  int64_t points;  /* largest number of points of a curve; 0: every update is a point */
  size_t averaged; /* largest number of updates of a run that a point averages; 1: nothing is
                      averaged */
} curve_page;

/* One curve: its panel, cell and quantity. */
typedef struct curve_line {
  size_t panel;
  const results_cell *cell;
  const curve *of;
} curve_line;

bool has_values(const results *r, const curve *c) {
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    if (c->m == METRIC_COUNT && run->n_evals > 0) return true;
    for (size_t k = 0; c->m < METRIC_COUNT && k < run->n_steps; k++)
      if (isfinite(run->steps[k].metric[c->m])) return true;
  }
  return false;
}

bool has_line(const results *r, const curve *c) {
  if (c->m == METRIC_COUNT) return has_values(r, c);
  for (size_t i = 0; i < r->n_runs; i++) {
    size_t updates = 0;
    for (size_t k = 0; k < r->runs[i].n_steps; k++)
      updates += (size_t)!isnan(r->runs[i].steps[k].metric[c->m]); /* -inf, the logarithm of 0, is a
                                                                      value; only NaN is missing */
    if (updates > 1) return true;
  }
  return false;
}

/* The score at that update. Runs of one recipe have it at the same index. */
static double eval_at(const results_run *run, int64_t step, size_t place) {
  if (place < run->n_evals && run->evals[place].step == step) return run->evals[place].eval_score;
  for (size_t i = 0; i < run->n_evals; i++)
    if (run->evals[i].step == step) return run->evals[i].eval_score;
  return NAN;
}

/* Mean step of the updates with from < step <= to at which runs of the cell have the metric, so
 * that a value of a sparse log appears at the step where it was logged. NaN if there is none. */
static double mean_step(const results *r, const results_cell *c, metric m, int64_t from,
                        int64_t to) {
  double sum = 0, n = 0;
  for (size_t k = 0; k < c->n; k++) {
    const results_run *run = &r->runs[c->first + k];
    for (size_t i = 0; i < run->n_steps && run->status != RUN_FAILED; i++)
      if (run->steps[i].step > from && run->steps[i].step <= to && !isnan(run->steps[i].metric[m]))
        sum += (double)run->steps[i].step, n++;
  }
  return sum / n;
}

/* Writes one point: the IQM over the cell's runs of their score at an evaluation (from == to, index
 * `place` of the longest run) or of their mean over the updates with from < step <= to. */
static gl_status write_curve_point(const curve_page *d, const curve_line *line, int64_t from,
                                   int64_t to, size_t place, gl_error *err) {
  const results *r = d->r;
  const results_cell *c = line->cell;
  const metric m = line->of->m;
  size_t n = 0;
  double x = m == METRIC_COUNT ? (double)to : mean_step(r, c, m, from, to);
  if (!isfinite(x)) x = 0.5 * (double)(from + 1 + to);
  for (size_t k = 0; k < c->n; k++) {
    const results_run *run = &r->runs[c->first + k];
    if (run->status == RUN_FAILED) continue;
    d->values[n++] = m == METRIC_COUNT ? eval_at(run, to, place)
                                       : summary_run_metric(run, m, from, to, d->steps);
  }
  uint64_t entity = UINT64_C(1) << 63 | (uint64_t)(c - r->cells) << 32 | (uint64_t)to;
  interval v;
  gl_status status =
      iqm_bootstrap(d->values, &n, 1, rng_stream_at(1, RNG_BOOTSTRAP, entity), &v, err);
  if (status != GL_OK) return status;
  v = drawn_interval(m, v);
  page_point(d->p, line->panel, r->algorithms[c->algorithm], x, v.value, v.low, v.high);
  return GL_OK;
}

/* Writes the evaluations; if there are many, every k-th and the last. */
static gl_status write_evaluations(const curve_page *d, const curve_line *line, gl_error *err) {
  const results_run *longest = longest_evaluated(d->r, line->cell);
  const size_t n = longest ? longest->n_evals : 0, every = evaluations_apart(n);
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    const int64_t step = longest->evals[i].step;
    if (i % every == 0 || i + 1 == n) status = write_curve_point(d, line, step, step, i, err);
  }
  return status == GL_OK && every > 1 ? remark_every(d->p, every, err) : status;
}

/* Writes every update: the IQM over the cell's runs, without an interval. Updates of a run are in
 * order. */
static void write_every_update(const curve_page *d, const curve_line *line) {
  const results_run *runs = &d->r->runs[line->cell->first];
  const metric m = line->of->m;
  memset(d->next, 0, line->cell->n * sizeof *d->next);
  for (;;) {
    int64_t step = INT64_MAX;
    size_t n = 0;
    for (size_t k = 0; k < line->cell->n; k++)
      if (runs[k].status != RUN_FAILED && d->next[k] < runs[k].n_steps &&
          runs[k].steps[d->next[k]].step < step)
        step = runs[k].steps[d->next[k]].step;
    if (step == INT64_MAX) break;
    for (size_t k = 0; k < line->cell->n; k++)
      if (d->next[k] < runs[k].n_steps && runs[k].steps[d->next[k]].step == step)
        d->values[n++] = runs[k].steps[d->next[k]++].metric[m];
    n = sample_sort(d->values, n);
    if (n > 0)
      page_point(d->p, line->panel, d->r->algorithms[line->cell->algorithm], (double)step,
                 drawn_value(m, sample_iqm(d->values, n)), NAN, NAN);
  }
}

/* Writes a block for each panel and line with every update, after the blocks of means. */
static void write_raw_blocks(const curve_page *d, const curve_line *lines, size_t n) {
  const size_t points = d->p->n_points; /* restored below, because the spacing of symbols counts the
                                           points of the means only */
  for (size_t i = 0; i < n; i++) {
    if (lines[i].of->m < METRIC_COUNT) write_every_update(d, &lines[i]);
    page_block_end(d->p);
  }
  d->p->n_points = points;
}

/* Writes the block of one curve: evaluations, every update, or means over equal intervals of
 * updates. */
static gl_status write_score_curve(const curve_page *d, const curve_line *line, gl_error *err) {
  gl_status status = GL_OK;
  if (line->of->m == METRIC_COUNT) {
    status = write_evaluations(d, line, err);
  } else if (d->points == 0) {
    write_every_update(d, line);
  } else if (line->cell->n > 0) {
    const int64_t last = d->last_step, n = d->points;
    /* Logs of other programs may have a value before the first update. */
    if (isfinite(mean_step(d->r, line->cell, line->of->m, -1, 0)))
      status = write_curve_point(d, line, -1, 0, 0, err);
    for (int64_t i = 0; i < n && status == GL_OK; i++)
      status = write_curve_point(d, line, i * last / n, (i + 1) * last / n, 0, err);
  }
  page_block_end(d->p);
  return status;
}

/* Writes the curves of a group in one panel; headed: the panel is in the top row and has a title.
 */
static gl_status write_curve_panel(const curve_page *d, size_t panel, const curve *c, size_t group,
                                   bool headed, gl_error *err) {
  gl_status status = GL_OK;
  const results *r = d->r;
  figure_panel *to = &d->p->panels[panel];
  if (headed) snprintf(to->title, sizeof to->title, "%s", r->groups[group].title);
  axis_of(c->m, to->axis);
  to->logarithmic = c->logarithmic || is_logarithm(c->m);
  for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++)
    status = write_score_curve(d, &(curve_line){panel, results_cell_at(r, group, a), c}, err);
  return status;
}

/* The panels of a page: one row for each quantity that varies over updates, one column for each
 * group. */
typedef struct curve_grid {
  const curve *curves; /* [n_curves] */
  size_t n_curves;
  const size_t *groups; /* [n] */
  size_t n, wide; /* n: number of groups, and thus of columns; wide: panels per row of the page */
} curve_grid;

/* The largest number of updates of the run that one point averages. Values before the first update
 * are not counted, because they have a point of their own. */
static size_t most_in_a_point(const results_run *run, int64_t last, int64_t points) {
  size_t most = 1, n = 0;
  for (size_t k = 0, point = 0; k < run->n_steps; k++) {
    if (run->steps[k].step <= 0) continue;
    for (; run->steps[k].step > (int64_t)(point + 1) * last / points; point++) n = 0;
    if (++n > most) most = n;
  }
  return most;
}

/* Finds the last update and how many updates of a run a point averages. */
static gl_status curve_page_init(curve_page *d, gl_error *err) {
  const size_t wanted = d->p->q->points ? d->p->q->points : FIGURE_CURVE_POINTS;
  size_t longest = 0;
  for (size_t i = 0; i < d->r->n_runs; i++) {
    const results_run *run = &d->r->runs[i];
    if (run->n_steps > longest) longest = run->n_steps;
    if (run->n_steps && run->steps[run->n_steps - 1].step > d->last_step)
      d->last_step = run->steps[run->n_steps - 1].step;
  }
  d->averaged = 1;
  if (wanted != FIGURE_EVERY_UPDATE) {
    d->points = d->last_step < (int64_t)wanted ? d->last_step : (int64_t)wanted;
    for (size_t i = 0; d->points > 0 && i < d->r->n_runs; i++) {
      const size_t most = most_in_a_point(&d->r->runs[i], d->last_step, d->points);
      if (most > d->averaged) d->averaged = most;
    }
  }
  d->values = ARENA_ARRAY(&d->p->memory, double, d->r->n_runs);
  d->next = ARENA_ARRAY(&d->p->memory, size_t, d->r->n_runs);
  d->steps = ARENA_ARRAY(&d->p->memory, double, longest);
  return arena_check(&d->p->memory, "a figure", err);
}

/* Says on the figure and in its data how many updates a point averages. */
static gl_status remark_averages(const curve_page *d, gl_error *err) {
  static const char says[] = "Each point averages %s%zu updates of a run (median for variances); "
                             "thin lines show every update";
  const char *at_most = d->last_step == (int64_t)d->averaged * d->points ? "" : "up to ";
  fputs("# ", d->p->data.stream);
  fprintf(d->p->data.stream, says, at_most, d->averaged);
  fputs(": the second half of the blocks\n", d->p->data.stream);
  page_set(d->p, "raw", 1);
  return page_remark(d->p, err, says, at_most, d->averaged);
}

/* Writes a page with a row of panels for each quantity that varies over updates and a column for
 * each group. */
static gl_status write_curves(figure_page *p, const results *r, const curve_grid *g,
                              gl_error *err) {
  size_t n = 0, panel = 0, metrics = 0;
  for (size_t i = 0; i < g->n_curves; i++) {
    if (!has_line(r, &g->curves[i])) continue;
    n++;
    metrics += g->curves[i].m < METRIC_COUNT;
  }
  gl_status status = page_open(p, n * g->n, "panel\talgorithm\tupdate\tiqm\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = g->wide;
  p->share = g->n;
  curve_page d = {.p = p, .r = r};
  status = curve_page_init(&d, err);
  const bool raw = metrics > 0 && d.averaged > 1;
  curve_line *lines = ARENA_ARRAY(&p->memory, curve_line, n * g->n * r->n_algorithms);
  size_t n_lines = 0;
  if (status == GL_OK) status = arena_check(&p->memory, "a figure", err);
  if (status == GL_OK && raw) status = remark_averages(&d, err);
  for (size_t i = 0; i < g->n_curves && status == GL_OK; i++) {
    if (!has_line(r, &g->curves[i])) continue;
    for (size_t k = 0; k < g->n && status == GL_OK; k++, panel++) {
      for (size_t a = 0; a < r->n_algorithms; a++)
        lines[n_lines++] = (curve_line){panel, results_cell_at(r, g->groups[k], a), &g->curves[i]};
      status = write_curve_panel(&d, panel, &g->curves[i], g->groups[k], panel < g->n, err);
    }
  }
  if (status == GL_OK && raw) write_raw_blocks(&d, lines, n_lines);
  if (status == GL_OK) status = page_set_lines(p, r->algorithms, r->n_algorithms, err);
  if (status == GL_OK) status = remark_not_finite(p, r, err);
  return status == GL_OK ? leave_out_settings(p, r, g->groups, g->n, err) : status;
}

/* --- eval_score --- */
/* Figure `eval_score`: evaluation score against updates, a panel per setting (the paper's Fig. 1).
 */

enum { MOST_PANELS = 12 };

gl_status figure_eval_score(const void *data, figure_page *p, gl_error *err) {
  static const curve score = {METRIC_COUNT, 0};
  const results *r = ((const figure_data *)data)->s->from;
  size_t columns[MOST_PANELS], n = page_pick(r->n_groups, MOST_PANELS, columns);
  const size_t wide = page_columns(p, n == 4 || n > 6 ? 4 : 3);
  return write_curves(p, r, &(curve_grid){&score, 1, columns, n, wide}, err);
}

/* --- training --- */
/* Figure `training`: variance of importance weights, gradient norm and reward against updates (the
 * paper's Fig. 4). */

enum { MOST_COLUMNS = 4 };

gl_status figure_training(const void *data, figure_page *p, gl_error *err) {
  static const curve curves[] = {{METRIC_LOG_IW_VARIANCE, 1},
                                 {METRIC_LOG_IW_VARIANCE_GEPO, 1},
                                 {METRIC_GRAD_NORM, 1},
                                 {METRIC_REWARD_MEAN, 0}};
  const results *r = ((const figure_data *)data)->s->from;
  size_t columns[MOST_COLUMNS], n = page_pick(r->n_groups, page_columns(p, MOST_COLUMNS), columns);
  const curve_grid grid = {curves, sizeof curves / sizeof *curves, columns, n, n};
  return write_curves(p, r, &grid, err);
}

/* --- window --- */
/* Figure `window`: staleness, KL and score against updates, a column per window (the paper's Fig.
 * 6). A study or another program's log with one setting has one column. */

enum { WINDOW_COLUMNS = 4 };

/* Finds groups that differ in the window only, smallest window first. Among the settings of the
 * other axes, takes the one with the most windows; ties: the last in the grid's order (the largest
 * delay if delays ascend). Returns their number. */
static size_t window_groups(const x_grid *windows, const results *r, size_t *groups) {
  size_t most = 0;
  for (size_t slice = 0; slice < windows->n_slices; slice++) {
    size_t n = 0;
    for (size_t place = 0; place < windows->n_x; place++)
      n += grid_group(windows, r, slice, place) < r->n_groups;
    if (n < most) continue;
    most = n;
    for (size_t place = 0, i = 0; place < windows->n_x; place++) {
      const size_t g = grid_group(windows, r, slice, place);
      if (g < r->n_groups) groups[i++] = g;
    }
  }
  return most;
}

gl_status figure_window(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const results *r = s->from;
  const curve curves[] = {{METRIC_STALENESS, 0}, {s->kl, 0}, {METRIC_COUNT, 0}};
  x_grid windows;
  gl_status status = grid_init(&windows, r, X_WINDOW, err);
  if (status != GL_OK) return status;
  size_t columns[WINDOW_COLUMNS], *groups = ARENA_ARRAY(&windows.memory, size_t, r->n_groups + 1);
  status = arena_check(&windows.memory, "a figure", err);
  if (status == GL_OK) {
    const size_t all = windows.n_x > 1 ? window_groups(&windows, r, groups) : 1;
    const size_t n = page_pick(all, page_columns(p, WINDOW_COLUMNS), columns);
    for (size_t i = 0; i < n; i++) columns[i] = groups[columns[i]];
    const curve_grid grid = {curves, sizeof curves / sizeof *curves, columns, n, n};
    status = write_curves(p, r, &grid, err);
  }
  grid_fini(&windows);
  return status;
}

/* --- divergence --- */
/* Figure `divergence`: KL, estimation error and weight variance against delay. */

enum { MOST_SLICES = 4 };

/* The first entry is replaced by the divergence that the study has. */
static const cell_metric quantities[] = {CELL_KL, CELL_ESTIMATION_ERROR, CELL_LOG_IW_VARIANCE_PQ,
                                         CELL_LOG_IW_VARIANCE_GEPO};
enum { MOST_QUANTITIES = sizeof quantities / sizeof *quantities };

static size_t kept_quantities(const summary *s, cell_metric *kept) {
  size_t n = 0;
  for (size_t i = 0; i < MOST_QUANTITIES; i++)
    for (size_t c = 0; c < s->n_cells; c++)
      if (isfinite(s->cells[c].metric[quantities[i]].value)) {
        kept[n++] = quantities[i];
        break;
      }
  return n;
}

/* Returns true if all values are positive and span more than two decades, so that a logarithmic
 * axis is useful. */
static bool spans_decades(const summary *s, cell_metric m) {
  double least = INFINITY, largest = 0;
  for (size_t c = 0; c < s->n_cells; c++) {
    double v = s->cells[c].metric[m].value;
    if (!isfinite(v)) continue;
    least = fmin(least, v);
    largest = fmax(largest, v);
  }
  return least > 0 && largest > 100 * least;
}

static void write_divergence_line(figure_page *p, size_t panel, const summary *s,
                                  const x_grid *grid, size_t slice, size_t algorithm,
                                  cell_metric m) {
  for (size_t i = 0; i < grid->n_x; i++) {
    size_t group = grid_group(grid, s->from, slice, i);
    const cell_summary *c = group < s->from->n_groups ? cell_of(s, group, algorithm) : NULL;
    if (!c) continue;
    grid_write(p, panel, s->from->algorithms[algorithm], grid, i,
               drawn_interval(summary_metric(s, m), c->metric[m]));
  }
  page_block_end(p);
}

/* Writes a column of panels per slice, a panel per quantity that the study has. */
static gl_status write_divergence_page(figure_page *p, const summary *s, const x_grid *grid,
                                       gl_error *err) {
  cell_metric kept[MOST_QUANTITIES];
  size_t n = kept_quantities(s, kept), slices[MOST_SLICES];
  size_t n_slices = page_pick(grid->n_slices, MOST_SLICES, slices);
  gl_status status = page_open(p, n * n_slices, "panel\talgorithm\tdelay\tiqm\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = n == 1 ? 1 : n == 3 ? page_columns(p, 3) : page_columns(p, 2);
  grid_set_x(p, grid);
  for (size_t panel = 0; panel < p->n_panels; panel++) {
    size_t slice = slices[panel / n];
    const cell_metric of = kept[panel % n];
    figure_panel *to = &p->panels[panel];
    axis_of(summary_metric(s, of), to->axis);
    snprintf(to->title, sizeof to->title, "%s", grid->headings[slice]);
    to->logarithmic = is_logarithm(summary_metric(s, of)) || spans_decades(s, of);
    for (size_t a = 0; a < s->from->n_algorithms; a++)
      write_divergence_line(p, panel, s, grid, slice, a, of);
  }
  status = page_set_lines(p, s->from->algorithms, s->from->n_algorithms, err);
  return status == GL_OK ? grid_leave_out(p, grid, s->from, slices, n_slices, err) : status;
}

gl_status figure_divergence(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  x_grid grid;
  gl_status status = grid_init(&grid, s->from, X_DELAY, err);
  if (status != GL_OK) return status;
  status = write_divergence_page(p, s, &grid, err);
  grid_fini(&grid);
  return status;
}
