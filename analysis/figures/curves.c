/* Quantities against updates, for the figures `eval_score`, `training`, `window` and the
 * divergence. */
#include "analysis/figures/data.h"
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A run's updates are gathered into this many points at most: a figure's width shows no more, and
 * an interval of a mean over some updates says more than one of a single noisy update. */
enum { MOST_POINTS = 40 };

typedef struct scratch {
  double *values, *steps; /* [n_runs], [updates of the longest run] */
  int64_t last_step;
  size_t place; /* of the evaluation that is drawn */
} scratch;

int has_curve(const results *r, const curve *c) {
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    if (c->m == METRIC_COUNT && run->n_evals > 0) return 1;
    for (size_t k = 0; c->m < METRIC_COUNT && k < run->n_steps; k++)
      if (isfinite(run->steps[k].metric[c->m])) return 1;
  }
  return 0;
}

int has_course(const results *r, const curve *c) {
  if (c->m == METRIC_COUNT) return has_curve(r, c);
  for (size_t i = 0; i < r->n_runs; i++) {
    size_t updates = 0;
    for (size_t k = 0; k < r->runs[i].n_steps; k++)
      updates += (size_t)!isnan(r->runs[i].steps[k].metric[c->m]); /* a logarithm of 0 is a value */
    if (updates > 1) return 1;
  }
  return 0;
}

/* Looks at `place` first, where runs of one recipe have the same update. */
static double eval_at(const results_run *run, int64_t step, size_t place) {
  if (place < run->n_evals && run->evals[place].step == step) return run->evals[place].eval_score;
  for (size_t i = 0; i < run->n_evals; i++)
    if (run->evals[i].step == step) return run->evals[i].eval_score;
  return NAN;
}

/* The mean of the updates from < step <= to at which runs of the cell have the metric, so that a
 * value of a sparse log stands where it was logged; NaN: at none. */
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

/* One point: the IQM over the cell's runs of their value at an evaluation (from == to), or over the
 * updates from < step <= to. */
static gl_status write_point(figure_page *p, size_t panel, const results *r, const results_cell *c,
                             const curve *q, int64_t from, int64_t to, scratch *s, gl_error *err) {
  size_t n = 0;
  double x = q->m == METRIC_COUNT ? (double)to : mean_step(r, c, q->m, from, to);
  if (!isfinite(x)) x = 0.5 * (double)(from + 1 + to);
  for (size_t k = 0; k < c->n; k++) {
    const results_run *run = &r->runs[c->first + k];
    if (run->status == RUN_FAILED) continue;
    s->values[n++] = q->m == METRIC_COUNT ? eval_at(run, to, s->place)
                                          : summary_run_metric(run, q->m, from, to, s->steps);
  }
  uint64_t entity = UINT64_C(1) << 63 | (uint64_t)(c - r->cells) << 32 | (uint64_t)to;
  interval v;
  gl_status status =
      iqm_bootstrap(s->values, &n, 1, rng_stream_at(1, RNG_BOOTSTRAP, entity), &v, err);
  if (status != GL_OK) return status;
  v = drawn_interval(q->m, v);
  page_point(p, panel, r->algorithms[c->algorithm], x, v.value, v.low, v.high);
  return GL_OK;
}

/* Of more evaluations than a figure's width shows, every so many-th and the last. */
static gl_status write_evaluations(figure_page *p, size_t panel, const results *r,
                                   const results_cell *c, const curve *q,
                                   const results_run *longest, scratch *s, gl_error *err) {
  const size_t n = longest ? longest->n_evals : 0, every = evaluations_apart(n);
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    if (i % every != 0 && i + 1 < n) continue;
    s->place = i;
    status = write_point(p, panel, r, c, q, longest->evals[i].step, longest->evals[i].step, s, err);
  }
  if (status == GL_OK && every > 1) status = remark_every(p, every, err);
  return status;
}

static gl_status write_curve(figure_page *p, size_t panel, const results *r, const results_cell *c,
                             const curve *q, scratch *s, gl_error *err) {
  gl_status status = GL_OK;
  const results_run *longest = NULL;
  for (size_t k = 0; k < c->n; k++)
    if (!longest || r->runs[c->first + k].n_evals > longest->n_evals)
      longest = &r->runs[c->first + k];
  if (q->m == METRIC_COUNT) {
    status = write_evaluations(p, panel, r, c, q, longest, s, err);
  } else if (longest) {
    const int64_t n = s->last_step < MOST_POINTS ? s->last_step : MOST_POINTS;
    if (isfinite(mean_step(r, c, q->m, -1, 0))) /* other programs log before their first update */
      status = write_point(p, panel, r, c, q, -1, 0, s, err);
    for (int64_t i = 0; i < n && status == GL_OK; i++)
      status =
          write_point(p, panel, r, c, q, i * s->last_step / n, (i + 1) * s->last_step / n, s, err);
  }
  page_block_end(p);
  return status;
}

static gl_status scratch_init(scratch *s, const results *r, gl_error *err) {
  size_t longest = 1;
  s->last_step = 0;
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    if (run->n_steps > longest) longest = run->n_steps;
    if (run->n_steps && run->steps[run->n_steps - 1].step > s->last_step)
      s->last_step = run->steps[run->n_steps - 1].step;
  }
  s->values = calloc(r->n_runs + 1, sizeof *s->values);
  s->steps = calloc(longest, sizeof *s->steps);
  return s->values && s->steps ? GL_OK : gl_fail_memory(err, "a figure");
}

/* The panel of curve i in column k; only the uppermost of a column is headed. */
static gl_status write_panel(figure_page *p, size_t panel, const results *r, const curve *c,
                             size_t group, int headed, scratch *s, gl_error *err) {
  gl_status status = GL_OK;
  figure_panel *to = &p->panels[panel];
  if (headed) snprintf(to->title, sizeof to->title, "%s", r->groups[group].title);
  axis_of(c->m, to->axis);
  to->logarithmic = c->logarithmic || is_logarithm(c->m);
  for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++)
    status = write_curve(p, panel, r, results_cell_at(r, group, a), c, s, err);
  return status;
}

/* Writes the page: one row of panels per curve of which the study has a course, one column per
 * group in columns; `wide` panels in a row of the page. */
static gl_status write_curves(figure_page *p, const results *r, const curve *curves,
                              size_t n_curves, const size_t *columns, size_t n_columns, size_t wide,
                              gl_error *err) {
  size_t n = 0, panel = 0;
  for (size_t i = 0; i < n_curves; i++) n += (size_t)has_course(r, &curves[i]);
  gl_status status = page_open(p, n * n_columns, "panel\talgorithm\tupdate\tiqm\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = wide;
  p->share = n_columns;
  scratch s = {0};
  status = scratch_init(&s, r, err);
  for (size_t i = 0; i < n_curves && status == GL_OK; i++) {
    if (!has_course(r, &curves[i])) continue;
    for (size_t k = 0; k < n_columns && status == GL_OK; k++, panel++)
      status = write_panel(p, panel, r, &curves[i], columns[k], panel < n_columns, &s, err);
  }
  free(s.values), free(s.steps);
  if (status == GL_OK)
    status = page_set_lines(p, (const char *const *)r->algorithms, r->n_algorithms, err);
  return status == GL_OK ? leave_out_settings(p, r, columns, n_columns, err) : status;
}

/* The figure `eval_score`: evaluation score against updates, a panel per setting (the paper's Fig.
 * 1).
 */

enum { MOST_PANELS = 12 };

gl_status figure_eval_score(const void *data, figure_page *p, gl_error *err) {
  static const curve score = {METRIC_COUNT, 0};
  const results *r = ((const figure_data *)data)->s->from;
  size_t columns[MOST_PANELS], n = page_pick(r->n_groups, MOST_PANELS, columns);
  return write_curves(p, r, &score, 1, columns, n, page_columns(p, n == 4 || n > 6 ? 4 : 3), err);
}

/* The figure `training`: IW variance, gradient norm and reward against updates (the paper's Fig.
 * 4).
 */

enum { MOST_COLUMNS = 4 };

gl_status figure_training(const void *data, figure_page *p, gl_error *err) {
  static const curve curves[] = {{METRIC_LOG_IW_VARIANCE, 1},
                                 {METRIC_LOG_IW_VARIANCE_GEPO, 1},
                                 {METRIC_GRAD_NORM, 1},
                                 {METRIC_REWARD_MEAN, 0}};
  const results *r = ((const figure_data *)data)->s->from;
  size_t columns[MOST_COLUMNS], n = page_pick(r->n_groups, page_columns(p, MOST_COLUMNS), columns);
  return write_curves(p, r, curves, sizeof curves / sizeof *curves, columns, n, n, err);
}

/* The figure `window`: staleness, KL and score against updates, a column per window (the paper's
 * Fig. 6). A study, or another program's logs, of one setting has one column.
 */

enum { WINDOW_COLUMNS = 4 };

/* The groups of one setting of all other axes, smallest window first: of the setting with the most
 * windows, the last of them in the grid's order (the largest delay, where delays ascend). Returns
 * how many. */
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
  size_t columns[WINDOW_COLUMNS], n = 0, *groups = calloc(r->n_groups + 1, sizeof *groups);
  if (groups) {
    const size_t all = windows.n_x > 1 ? window_groups(&windows, r, groups) : 1;
    n = page_pick(all, page_columns(p, WINDOW_COLUMNS), columns);
    for (size_t i = 0; i < n; i++) columns[i] = groups[columns[i]];
    status = write_curves(p, r, curves, sizeof curves / sizeof *curves, columns, n, n, err);
  } else {
    status = gl_fail_memory(err, "a figure");
  }
  free(groups);
  grid_fini(&windows);
  return status;
}

/* The figure `divergence`: KL, estimation error and weight variance against delay. */

enum { MOST_SLICES = 4 };

/* The first is the divergence that the study knows. */
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

/* A logarithmic axis for values that are all positive and span more than two decades. */
static int spans_decades(const summary *s, cell_metric m) {
  double least = INFINITY, largest = 0;
  for (size_t c = 0; c < s->n_cells; c++) {
    double v = s->cells[c].metric[m].value;
    if (!isfinite(v)) continue;
    least = fmin(least, v);
    largest = fmax(largest, v);
  }
  return least > 0 && largest > 100 * least;
}

static void write_line(figure_page *p, size_t panel, const summary *s, const x_grid *grid,
                       size_t slice, size_t algorithm, cell_metric m) {
  for (size_t i = 0; i < grid->n_x; i++) {
    size_t group = grid_group(grid, s->from, slice, i);
    const cell_summary *c = group < s->from->n_groups ? cell_of(s, group, algorithm) : NULL;
    if (!c) continue;
    grid_write(p, panel, s->from->algorithms[algorithm], grid, i,
               drawn_interval(summary_metric(s, m), c->metric[m]));
  }
  page_block_end(p);
}

/* A column of panels per slice, a panel per quantity that the study has. */
static gl_status write_page(figure_page *p, const summary *s, const x_grid *grid, gl_error *err) {
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
    for (size_t a = 0; a < s->from->n_algorithms; a++) write_line(p, panel, s, grid, slice, a, of);
  }
  status = page_set_lines(p, (const char *const *)s->from->algorithms, s->from->n_algorithms, err);
  return status == GL_OK ? grid_leave_out(p, grid, s->from, slices, n_slices, err) : status;
}

gl_status figure_divergence(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  x_grid grid;
  gl_status status = grid_init(&grid, s->from, X_DELAY, err);
  if (status != GL_OK) return status;
  status = write_page(p, s, &grid, err);
  grid_fini(&grid);
  return status;
}
