/* Figures of scores: `best_last`, `dumbbells`, `gap`, `time_to_score` and throughput. */
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- best_last --- */
/* Figure `best_last`: best and last evaluation and the gap between them, one line per algorithm. */

enum { END_COLUMNS = 4 };

enum { END_COUNT = 3 };
static const char *const end_axis[END_COUNT] = {"best", "last", "best − last"};

/* The 2 n panels of best and last get a common range, because readers compare them. */
static void share_rows(figure_page *p, size_t n) {
  double low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < 2 * n; i++)
    low = fmin(low, p->panels[i].low), high = fmax(high, p->panels[i].high);
  for (size_t i = 0; i < 2 * n; i++) p->panels[i].low = low, p->panels[i].high = high;
}

static void write_ends_panel(figure_page *p, size_t panel, const summary *s, size_t group,
                             size_t which) {
  for (size_t a = 0; a < s->from->n_algorithms; a++) {
    const cell_summary *c = cell_of(s, group, a);
    if (c) {
      const interval of[END_COUNT] = {c->best, c->last, c->best_to_last};
      page_line(p, panel, s->from->algorithms[a]);
      fprintf(p->data.stream, "\t%zu", a + 1);
      page_interval(p, panel, of[which].value, of[which].low, of[which].high);
      fputc('\n', p->data.stream);
    }
    page_block_end(p);
  }
}

gl_status figure_best_last(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const results *r = s->from;
  size_t columns[END_COLUMNS], n = page_pick(r->n_groups, page_columns(p, END_COLUMNS), columns);
  gl_status status = page_open(p, END_COUNT * n, "panel\talgorithm\tplace\tiqm\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = n;
  p->share = n;
  p->named_rows = 1;
  for (size_t panel = 0; panel < p->n_panels; panel++) {
    size_t group = columns[panel % n], which = panel / n;
    figure_panel *to = &p->panels[panel];
    snprintf(to->axis, sizeof to->axis, "%s", end_axis[which]);
    if (which == 0) snprintf(to->title, sizeof to->title, "%s", r->groups[group].title);
    write_ends_panel(p, panel, s, group, which);
  }
  share_rows(p, n);
  status = page_set_lines(p, r->algorithms, r->n_algorithms, err);
  if (status == GL_OK) status = remark_not_finite(p, r, err);
  return status == GL_OK ? leave_out_settings(p, r, columns, n, err) : status;
}

/* --- dumbbells --- */
/* Figure `dumbbells`: segments from best to last score, one line per algorithm. */

enum { DUMBBELL_COLUMNS = 4 };

static void write_dumbbell(figure_page *p, size_t panel, const summary *s, size_t group, size_t a) {
  const cell_summary *c = cell_of(s, group, a);
  if (c) {
    page_line(p, panel, s->from->algorithms[a]);
    fprintf(p->data.stream, "\t%zu", a + 1);
    page_interval(p, panel, c->best.value, c->best.low, c->best.high);
    page_interval(p, panel, c->last.value, c->last.low, c->last.high);
    fputc('\n', p->data.stream);
  }
  page_block_end(p);
}

gl_status figure_dumbbells(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const results *r = s->from;
  size_t columns[DUMBBELL_COLUMNS],
      n = page_pick(r->n_groups, page_columns(p, DUMBBELL_COLUMNS), columns);
  gl_status status =
      page_open(p, n, "panel\talgorithm\tplace\tbest\tlow\thigh\tlast\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = p->share = n;
  p->named_rows = 1;
  page_set(p, "pairs", 1);
  for (size_t panel = 0; panel < n; panel++) {
    figure_panel *to = &p->panels[panel];
    axis_of(METRIC_COUNT, to->axis);
    snprintf(to->title, sizeof to->title, "%s", r->groups[columns[panel]].title);
    for (size_t a = 0; a < r->n_algorithms; a++) write_dumbbell(p, panel, s, columns[panel], a);
  }
  status = page_set_lines(p, r->algorithms, r->n_algorithms, err);
  if (status == GL_OK)
    status = page_remark(p, err, "Filled: best; ring: last; thin lines: " INTERVAL_WORDS);
  if (status == GL_OK) status = remark_not_finite(p, r, err);
  return status == GL_OK ? leave_out_settings(p, r, columns, n, err) : status;
}

/* --- gap --- */
/* Figure `gap` (the paper's Fig. 1): evaluation score at the smallest and the largest delay,
 * against updates and against simulated hours. Marks show best and last, and a line the gap between
 * them. */

enum { ROWS = 2, GAP_COLUMNS = 2 };

/* The points of a curve at its best and its last score. */
typedef struct ends {
  double x_best, best, x_last, last;
} ends;

/* The run's evaluation at that update, which has the same index in all runs of a recipe; NULL if
 * there is none. */
static const eval_record *evaluation_at(const results_run *run, int64_t step, size_t place) {
  if (place < run->n_evals && run->evals[place].step == step) return &run->evals[place];
  for (size_t i = 0; i < run->n_evals; i++)
    if (run->evals[i].step == step) return &run->evals[i];
  return NULL;
}

/* One line of the figure: a cell in a panel. */
typedef struct gap_line {
  const results *r;
  const results_cell *cell;
  size_t panel;
  bool in_hours;
  double *values; /* [n_runs] scratch */
} gap_line;

/* Computes the IQM of a cell's evaluations at one update, and their mean x. */
static gl_status evaluate_cell(const gap_line *l, int64_t step, size_t place, interval *v,
                               double *x, gl_error *err) {
  size_t n = 0;
  double hours = 0;
  for (size_t k = 0; k < l->cell->n; k++) {
    const results_run *run = &l->r->runs[l->cell->first + k];
    const eval_record *at = run->status == RUN_FAILED ? NULL : evaluation_at(run, step, place);
    if (!at) continue;
    l->values[n++] = at->eval_score;
    hours += at->time_s / 3600;
  }
  *x = !l->in_hours ? (double)step : n ? hours / (double)n : NAN;
  const uint64_t entity =
      UINT64_C(3) << 62 | (uint64_t)(l->cell - l->r->cells) << 32 | (uint64_t)step;
  return iqm_bootstrap(l->values, &n, 1, rng_stream_at(1, RNG_BOOTSTRAP, entity), v, err);
}

static gl_status write_gap_line(figure_page *p, const gap_line *l, ends *e, gl_error *err) {
  const results *r = l->r;
  const results_run *longest = longest_evaluated(r, l->cell);
  const size_t every = evaluations_apart(longest ? longest->n_evals : 0);
  gl_status status = every > 1 ? remark_every(p, every, err) : GL_OK;
  *e = (ends){NAN, NAN, NAN, NAN};
  for (size_t i = 0; longest && i < longest->n_evals && status == GL_OK; i++) {
    interval v;
    double x;
    status = evaluate_cell(l, longest->evals[i].step, i, &v, &x, err);
    if (!isfinite(x)) continue; /* the simulated time is unknown */
    if (i % every == 0 || i + 1 == longest->n_evals)
      page_point(p, l->panel, r->algorithms[l->cell->algorithm], x, v.value, v.low, v.high);
    if (!isfinite(v.value)) continue;
    const int better = r->lower_is_better ? v.value < e->best : v.value > e->best;
    if (isnan(e->best) || better) e->x_best = x, e->best = v.value;
    e->x_last = x, e->last = v.value;
  }
  page_block_end(p);
  return status;
}

/* Writes the marks: one data block per curve, in the same order, each with one line. */
static void write_ends(figure_page *p, const results *r, const ends *e) {
  for (size_t i = 0; i < p->n_panels * r->n_algorithms; i++) {
    page_line(p, i / r->n_algorithms, r->algorithms[i % r->n_algorithms]);
    page_number(p, e[i].x_best), page_number(p, e[i].best);
    page_number(p, e[i].x_last), page_number(p, e[i].last);
    fputc('\n', p->data.stream);
    page_block_end(p);
  }
}

static gl_status write_gap_page(figure_page *p, const results *r, const size_t *columns, size_t n,
                                gl_error *err) {
  static const char *const x_axes[ROWS] = {"updates", "simulated hours"};
  double *values = ARENA_ARRAY(&p->memory, double, r->n_runs);
  ends *e = ARENA_GRID(&p->memory, ends, ROWS * n, r->n_algorithms);
  gl_status status = arena_check(&p->memory, "a figure", err);
  for (size_t panel = 0; panel < ROWS * n && status == GL_OK; panel++) {
    figure_panel *to = &p->panels[panel];
    snprintf(to->title, sizeof to->title, "%s", r->groups[columns[panel % n]].title);
    snprintf(to->x_axis, sizeof to->x_axis, "%s", x_axes[panel / n]);
    axis_of(METRIC_COUNT, to->axis);
    for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++) {
      const results_cell *cell = results_cell_at(r, columns[panel % n], a);
      const gap_line line = {r, cell, panel, panel >= n, values};
      status = write_gap_line(p, &line, &e[panel * r->n_algorithms + a], err);
    }
  }
  if (status == GL_OK) write_ends(p, r, e);
  return status;
}

gl_status figure_gap(const void *data, figure_page *p, gl_error *err) {
  const results *r = ((const figure_data *)data)->s->from;
  size_t columns[GAP_COLUMNS], n = 0;
  gl_status status = extreme_groups(r, columns, &n, err);
  if (status == GL_OK) status = page_open(p, ROWS * n, "panel\talgorithm\tx\tiqm\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = p->share = n;
  p->tall = 3.6;
  status = write_gap_page(p, r, columns, n, err);
  if (status == GL_OK) status = page_set_lines(p, r->algorithms, r->n_algorithms, err);
  if (status == GL_OK)
    status =
        page_remark(p, err, "Filled marks: best; rings: last; the bar is the gap between them");
  if (status == GL_OK) status = remark_not_finite(p, r, err);
  return status == GL_OK ? leave_out_settings(p, r, columns, n, err) : status;
}

/* --- time_to_score --- */
/* Figure `time_to_score`: simulated hours and updates until an evaluation reaches a target score,
 * the same for all settings. */

enum { TIME_COLUMNS = 4, UNITS = 2 };
/* The target is at this fraction of the way from the first score to the best of all cells. */
static const double SHARE = 0.75;

/* The better of two scores. NaN is worse than any number. */
static double better(const results *r, double a, double b) {
  return r->lower_is_better ? fmin(a, b) : fmax(a, b);
}

static double target_score(const summary *s) {
  const results *r = s->from;
  double best = NAN, first = NAN;
  for (size_t i = 0; i < s->n_cells; i++) best = better(r, best, s->cells[i].best.value);
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].n_evals > 0) first = -better(r, -first, -r->runs[i].evals[0].eval_score);
  return first + SHARE * (best - first);
}

/* Time at which the run first reaches the score; infinite if it never does. */
static double reached(const results *r, const results_run *run, double target, int in_hours) {
  for (size_t i = 0; i < run->n_evals; i++)
    if (better(r, run->evals[i].eval_score, target) == run->evals[i].eval_score)
      return in_hours ? run->evals[i].time_s / 3600 : (double)run->evals[i].step;
  return INFINITY;
}

/* Inputs and counts of the figure: runs with evaluations, and runs that never reach the score. */
typedef struct times_to_score {
  const results *r;
  double target;
  double *times;      /* [n_runs] scratch */
  size_t never, runs; /* over all cells */
} times_to_score;

static gl_status write_times_panel(figure_page *p, size_t panel, times_to_score *t, size_t group,
                                   bool in_hours, gl_error *err) {
  const results *r = t->r;
  gl_status status = GL_OK;
  for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++, page_block_end(p)) {
    const results_cell *c = results_cell_at(r, group, a);
    interval v;
    size_t never = 0, n = 0;
    for (size_t k = 0; k < c->n; k++) {
      const results_run *run = &r->runs[c->first + k];
      if (run->status == RUN_FAILED || run->n_evals == 0) continue;
      t->times[n] = reached(r, run, t->target, in_hours);
      never += isinf(t->times[n++]) != 0;
    }
    const uint64_t entity = UINT64_C(9) << 60 | (uint64_t)(c - r->cells) << 1 | (uint64_t)in_hours;
    status = iqm_bootstrap(t->times, &n, 1, rng_stream_at(1, RNG_BOOTSTRAP, entity), &v, err);
    if (n == 0) continue;
    if (!isfinite(v.value)) v.low = v.high = NAN;
    page_line(p, panel, r->algorithms[a]);
    page_keep_line(p, r->algorithms[a]);
    fprintf(p->data.stream, "\t%zu", a + 1);
    page_interval(p, panel, v.value, v.low, v.high);
    fprintf(p->data.stream, "\t%zu\t%zu\n", never, n);
    if (in_hours) t->runs += n, t->never += never;
  }
  return status;
}

gl_status figure_time_to_score(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const results *r = s->from;
  times_to_score t = {.r = r, .target = target_score(s)};
  size_t columns[TIME_COLUMNS], n = page_pick(r->n_groups, page_columns(p, TIME_COLUMNS), columns);
  gl_status status =
      page_open(p, UNITS * n, "panel\talgorithm\tplace\tiqm\tlow\thigh\tnever\truns", err);
  t.times = ARENA_ARRAY(&p->memory, double, r->n_runs);
  if (status == GL_OK) status = arena_check(&p->memory, "a figure", err);
  p->wide = p->share = n;
  p->named_rows = 1;
  for (size_t panel = 0; panel < UNITS * n && status == GL_OK; panel++) {
    figure_panel *to = &p->panels[panel];
    snprintf(to->axis, sizeof to->axis, panel < n ? "simulated hours" : "updates");
    if (panel < n) snprintf(to->title, sizeof to->title, "%s", r->groups[columns[panel]].title);
    status = write_times_panel(p, panel, &t, columns[panel % n], panel < n, err);
  }
  if (status == GL_OK) status = page_set_lines(p, r->algorithms, r->n_algorithms, err);
  if (status == GL_OK)
    status =
        page_remark(p, err,
                    "Until the evaluation score is %.3g: %.0f %% of the way from the first to "
                    "the best of the study. %zu of %zu runs never get there; a mean that meets "
                    "one is not shown. Interquartile means; lines: " INTERVAL_WORDS,
                    t.target, 100 * SHARE, t.never, t.runs);
  return status == GL_OK ? leave_out_settings(p, r, columns, n, err) : status;
}

/* Figures `throughput_delay`, `throughput_loss` and `throughput_samplers`: measurements of the
 * clock. */

enum { CLOCK_COUNT = 4 };
static const char *const clock_axis[CLOCK_COUNT] = {"samples per simulated second",
                                                    "learner utilisation", "sampler utilisation",
                                                    "staleness [versions]"};

static double clock_of(const summary *s, size_t group, size_t which) {
  group_clock c;
  summary_group_clock(s, group, &c);
  const double of[CLOCK_COUNT] = {c.samples_per_s, c.learner_utilisation, c.sampler_utilisation,
                                  c.staleness};
  return of[which];
}

static void throughput_write_block(figure_page *p, const summary *s, const x_grid *grid,
                                   size_t panel, size_t slice) {
  for (size_t i = 0; i < grid->n_x; i++) {
    const size_t group = grid_group(grid, s->from, slice, i);
    const interval v = {group < s->from->n_groups ? clock_of(s, group, panel) : NAN, NAN, NAN};
    if (group < s->from->n_groups) grid_write(p, panel, grid->headings[slice], grid, i, v);
  }
  page_block_end(p);
}

static gl_status throughput_write_page(figure_page *p, const summary *s, const x_grid *grid,
                                       gl_error *err) {
  gl_status status = page_open(p, CLOCK_COUNT, "panel\tsetting\tdelay or loss\tmean", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, 4);
  grid_set_x(p, grid);
  for (size_t panel = 0; panel < CLOCK_COUNT; panel++) {
    snprintf(p->panels[panel].axis, sizeof p->panels[panel].axis, "%s", clock_axis[panel]);
    p->panels[panel].low = 0;
    for (size_t slice = 0; slice < grid->n_slices; slice++)
      throughput_write_block(p, s, grid, panel, slice);
  }
  status = page_set_lines(p, grid->headings, grid->n_slices, err);
  return status == GL_OK ? grid_leave_out(p, grid, s->from, NULL, 0, err) : status;
}

static gl_status write_throughput(const summary *s, figure_page *p, x_kind kind, gl_error *err) {
  x_grid grid;
  gl_status status = grid_init(&grid, s->from, kind, err);
  if (status != GL_OK) return status;
  status = throughput_write_page(p, s, &grid, err);
  grid_fini(&grid);
  return status;
}

gl_status figure_throughput_delay(const void *data, figure_page *p, gl_error *err) {
  return write_throughput(((const figure_data *)data)->s, p, X_DELAY, err);
}

gl_status figure_throughput_loss(const void *data, figure_page *p, gl_error *err) {
  return write_throughput(((const figure_data *)data)->s, p, X_LOSS, err);
}

gl_status figure_throughput_samplers(const void *data, figure_page *p, gl_error *err) {
  return write_throughput(((const figure_data *)data)->s, p, X_SAMPLERS, err);
}
