/* Figures of data supplied by the caller: densities, Pareto fronts, selection, speedups, timelines.
 */
#include "analysis/figures/without_study.h"

#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- densities --- */

static void write_density(figure_page *p, const densities *d, const density *of) {
  for (size_t i = 0; i < of->n; i++) {
    page_point(p, of->panel, d->lines[of->line], of->x[i], of->y[i], NAN, NAN);
  }
}

static void write_direct_panel(figure_page *p, const densities *d, size_t panel) {
  figure_panel *to = &p->panels[panel];
  snprintf(to->x_axis, sizeof to->x_axis, "%s", d->panels[panel]);
  snprintf(to->axis, sizeof to->axis, "%s", d->logarithmic[panel] ? "density of ln x" : "density");
  to->x_logarithmic = d->logarithmic[panel];
  to->kept = 1;
  to->low = 0;
  for (size_t line = 0; line < d->n_lines; line++) {
    for (size_t i = 0; i < d->n; i++)
      if (d->of[i].panel == panel && d->of[i].line == line) write_density(p, d, &d->of[i]);
    page_block_end(p);
  }
}

static gl_status write_densities(const void *data, figure_page *p, gl_error *err) {
  const densities *d = data;
  gl_status status = page_open(p, d->n_panels, "panel\tlaw\tx\tdensity", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, d->n_panels < 3 ? d->n_panels : 2);
  for (size_t panel = 0; panel < d->n_panels; panel++) write_direct_panel(p, d, panel);
  status = page_set_lines(p, d->lines, d->n_lines, err);
  for (size_t i = 0; i < d->n_left_out && status == GL_OK; i++)
    status = page_leave_out(p, err, "%.190s", d->left_out[i]);
  for (size_t i = 0; i < d->n_remarks && status == GL_OK; i++)
    status = page_remark(p, err, "%.900s", d->remarks[i]);
  return status;
}

gl_status figure_of_densities(const densities *d, const figure_request *q, gl_error *err) {
  const figure line = {"densities", "densities of the cluster's distributions", "curves", 1,
                       write_densities};
  return figures_draw_one(&line, d->n_panels > 0 ? NULL : "no distribution of the cluster varies",
                          "no distribution of the cluster varies: there is no density to draw", d,
                          q, err);
}

/* --- trade-offs --- */

static const char *const pareto_names[PARETO_KINDS] = {
    [PARETO_CANDIDATE] = "candidate",
    [PARETO_FRONT] = "Pareto front",
    [PARETO_CHOSEN] = "recommended",
};

static const struct {
  look look;
  figure_sample sample;
} shown_as[PARETO_KINDS] = {
    [PARETO_CANDIDATE] = {{LOOK_BLACK, 0, LOOK_PLUS, 0}, SAMPLE_MARK},
    [PARETO_FRONT] = {{LOOK_BLUE, 0, 7, 0}, SAMPLE_LINE_MARK},
    [PARETO_CHOSEN] = {{LOOK_RED, 0, 5, 0}, SAMPLE_MARK},
};

static void write_direct_point(figure_page *p, const pareto_point *at) {
  page_line(p, 0, pareto_names[at->kind]);
  page_number(p, at->x), page_number(p, at->x_low), page_number(p, at->x_high);
  page_interval(p, 0, at->y, at->y_low, at->y_high);
  fputc('\n', p->data.stream);
  page_x(p, at->x);
  if (isfinite(at->x_low)) page_x(p, at->x_low);
  if (isfinite(at->x_high)) page_x(p, at->x_high);
}

static gl_status write_pareto(const void *data, figure_page *p, gl_error *err) {
  const pareto *d = data;
  gl_status status = page_open(p, 1, "panel\tkind\tx\tx_low\tx_high\ty\ty_low\ty_high", err);
  if (status != GL_OK) return status;
  snprintf(p->x_axis, sizeof p->x_axis, "%s", d->x_axis);
  snprintf(p->panels[0].axis, sizeof p->panels[0].axis, "%s", d->y_axis);
  p->panels[0].low = 0;
  p->panels[0].kept = 1;
  page_x(p, 0);
  for (int kind = 0; kind < PARETO_KINDS; kind++) {
    for (size_t i = 0; i < d->n; i++)
      if ((int)d->points[i].kind == kind) write_direct_point(p, &d->points[i]);
    page_block_end(p);
  }
  if (isfinite(d->limit)) page_set(p, "limit", d->limit);
  status = page_set_lines(p, pareto_names, PARETO_KINDS, err);
  if (status == GL_OK)
    status = page_remark(p, err, "Means over replicates with 95 %% intervals%s",
                         isfinite(d->limit) ? "; dashed: the limit" : "");
  for (int kind = 0; kind < PARETO_KINDS && status == GL_OK; kind++) {
    p->lines[kind].look = shown_as[kind].look;
    p->lines[kind].sample = shown_as[kind].sample;
  }
  return status;
}

gl_status figure_of_pareto(const pareto *d, const figure_request *q, gl_error *err) {
  const figure line = {"pareto", "what can be had of one quantity at how much of another", "pareto",
                       1, write_pareto};
  return figures_draw_one(&line, d->n > 0 ? NULL : "there is no candidate",
                          "there is no candidate to draw", d, q, err);
}

/* --- selection --- */

/* Panels: trained fractions as curves, gradients as points. */

enum { SHARES, GRADIENTS, PANELS };

static const char all_drawn[] =
    "all sampled"; /* the reference line: all groups that were sampled */

static void name_axes(figure_page *p) {
  figure_panel *shares = &p->panels[SHARES], *gradients = &p->panels[GRADIENTS];
  snprintf(shares->x_axis, sizeof shares->x_axis, "longest response [tokens]");
  snprintf(shares->axis, sizeof shares->axis, "groups trained [%%]");
  shares->low = 0;
  shares->kept = 1;
  snprintf(gradients->x_axis, sizeof gradients->x_axis, "norm ratio");
  snprintf(gradients->axis, sizeof gradients->axis, "cosine");
  gradients->kept = 1;
}

static void write_finite_point(figure_page *p, size_t panel, const char *line, double x, double y) {
  if (!isfinite(x) || !isfinite(y)) return;
  page_point(p, panel, line, x, y, NAN, NAN);
}

static void write_direct_fractions(figure_page *p, const selection_policies *d) {
  for (size_t m = 1; m <= d->max_length; m++)
    write_finite_point(p, SHARES, all_drawn, (double)m, 100);
  page_block_end(p);
  for (size_t i = 0; i < d->n; i++) {
    for (size_t m = 1; m <= d->max_length; m++)
      write_finite_point(p, SHARES, d->of[i].name, (double)m, 100 * d->of[i].trained[m]);
    page_block_end(p);
  }
}

static void write_gradients(figure_page *p, const selection_policies *d) {
  write_finite_point(p, GRADIENTS, all_drawn, 1, 1);
  page_block_end(p);
  for (size_t i = 0; i < d->n; i++) {
    write_finite_point(p, GRADIENTS, d->of[i].name, d->of[i].norm_ratio, d->of[i].cosine);
    page_block_end(p);
  }
}

static gl_status set_lines(figure_page *p, const selection_policies *d, gl_error *err) {
  const char **names = ARENA_ARRAY(&p->memory, const char *, d->n + 1);
  if (names == NULL) return gl_fail_memory(err, "a figure");
  names[0] = all_drawn;
  for (size_t i = 0; i < d->n; i++) names[i + 1] = d->of[i].name;
  return page_set_lines(p, names, d->n + 1, err);
}

static gl_status write_selection(const void *data, figure_page *p, gl_error *err) {
  const selection_policies *d = data;
  gl_status status = page_open(p, PANELS, "panel\tpolicy\tx\tvalue\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, PANELS);
  p->all_marks = 1;
  name_axes(p);
  write_direct_fractions(p, d);
  write_gradients(p, d);
  status = set_lines(p, d, err);
  for (size_t i = 0; i < d->n_left_out && status == GL_OK; i++)
    status = page_leave_out(p, err, "%.190s", d->left_out[i]);
  if (status == GL_OK)
    status =
        page_remark(p, err,
                    "Cosine and norm ratio: the expected gradient of what arrives to that of all "
                    "sampled, at the initial policy; downweighted groups count with their "
                    "weight");
  return status;
}

gl_status figure_of_selection(const selection_policies *d, const figure_request *q, gl_error *err) {
  const figure line = {"selection", "what arrives of what was sampled, and its gradient", "curves",
                       1, write_selection};
  return figures_draw_one(&line, d->n > 0 ? NULL : "there is no policy for stale data",
                          "there is no policy for stale data to draw", d, q, err);
}

/* --- speed-ups --- */

static gl_status write_speedups(const void *data, figure_page *p, gl_error *err) {
  const speedups *s = data;
  gl_status status =
      page_open(p, 1, "panel\tcase\tplace\tpublished\tlow\thigh\tsimulated\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->named_rows = 1;
  page_set(p, "pairs", 1);
  figure_panel *to = &p->panels[0];
  snprintf(to->axis, sizeof to->axis, "times as fast as training in turns");
  to->kept = 1;
  for (size_t i = 0; i < s->n; i++) {
    page_line(p, 0, s->names[i]);
    fprintf(p->data.stream, "\t%zu", i + 1);
    page_interval(p, 0, s->published[i], NAN, NAN);
    page_interval(p, 0, s->simulated[i], NAN, NAN);
    fputc('\n', p->data.stream);
    page_block_end(p);
  }
  status = page_set_lines(p, s->names, s->n, err);
  return status == GL_OK ? page_remark(p, err, "Filled: published; ring: simulated") : status;
}

gl_status figure_of_speedups(const speedups *s, const figure_request *q, gl_error *err) {
  const figure line = {"speedups", "published and simulated speed-ups over training in turns",
                       "rows", 1, write_speedups};
  return figures_draw_one(&line, s->n > 0 ? NULL : "there is no asynchronous case",
                          "no recipe has an asynchronous case: there is nothing to compare", s, q,
                          err);
}

/* --- timelines --- */

/* Bars are clipped to the shown interval, assigned to lanes, and written by kind. */

/* Height of the bars relative to a row of height 1. */
static const double BAND = 0.72;

static const figure_kind kinds[TIMELINE_KINDS] = {
    [TIMELINE_GENERATION] = {"generation", {LOOK_BLUE, 0, 0, 0}, SAMPLE_BOX},
    [TIMELINE_INTERRUPTION] = {"takes weights, or GPUs switch", {LOOK_BLACK, 0, 0, 0}, SAMPLE_BOX},
    [TIMELINE_WAITING] = {"waiting", {LOOK_GREY, 0, 0, 0}, SAMPLE_BOX},
    [TIMELINE_BATCHES] = {"batch under way", {LOOK_GREEN, 0, 0, 0}, SAMPLE_BOX},
    [TIMELINE_WEIGHTS] = {"weights under way", {LOOK_SKY, 0, 0, 0}, SAMPLE_BOX},
    [TIMELINE_QUEUED] = {"batch in the queue", {LOOK_PINK, 0, 0, 0}, SAMPLE_BOX},
    [TIMELINE_TRAINING] = {"training", {LOOK_RED, 0, 0, 0}, SAMPLE_BOX},
    [TIMELINE_EVALUATION] = {"evaluation, grading or call", {LOOK_GOLD, 0, 0, 0}, SAMPLE_BOX},
    [TIMELINE_DOWN] = {"down", {LOOK_WINE, 0, 0, 0}, SAMPLE_BOX},
    [TIMELINE_PREFILL] = {"prefill", {LOOK_BLUE, 0, 0, 1}, SAMPLE_BOX},
    [TIMELINE_DROPPED] = {"batch dropped", {LOOK_BLACK, 0, LOOK_CROSS, 0}, SAMPLE_MARK},
    [TIMELINE_LOST] = {"lost", {LOOK_BLACK, 0, LOOK_PLUS, 0}, SAMPLE_MARK}};

/* --- visible bars and their lanes --- */

typedef struct placed {
  const timeline_bar *bar;
  size_t lane;
} placed;

typedef struct chart {
  const timeline *t;
  placed *at;     /* [n] sorted by row, then time */
  double *free_s; /* [n] scratch: time at which each lane of a row becomes free */
  size_t *lanes;  /* [n_rows] number of lanes */
  size_t *row;    /* [n_rows] position from the top, from 1; 0: the row is empty */
  size_t n, n_rows;
  const char **names; /* [n_rows] */
} chart;

static bool is_shown(const timeline *t, const timeline_bar *b) {
  if (b->from_s < b->to_s) return b->from_s < t->to_s && b->to_s > t->from_s;
  return b->ends != b->kind && b->to_s >= t->from_s && b->to_s <= t->to_s;
}

static int by_row_and_time(const void *a, const void *b) {
  const timeline_bar *x = ((const placed *)a)->bar, *y = ((const placed *)b)->bar;
  if (x->row != y->row) return (x->row > y->row) - (x->row < y->row);
  if (x->from_s != y->from_s) return (x->from_s > y->from_s) - (x->from_s < y->from_s);
  return (x->to_s > y->to_s) - (x->to_s < y->to_s);
}

/* Assigns each bar to the first lane of its row that is free at its start. */
static void choose_lanes(chart *c) {
  for (size_t i = 0; i < c->n; i++) {
    const size_t row = c->at[i].bar->row;
    size_t lane = 0;
    while (lane < c->lanes[row] && c->free_s[lane] > c->at[i].bar->from_s) lane++;
    if (lane == c->lanes[row]) c->lanes[row]++;
    c->free_s[lane] = c->at[i].bar->to_s;
    c->at[i].lane = lane;
  }
}

/* Memory comes from the page's arena. */
static gl_status chart_init(chart *c, figure_page *p, const timeline *t, gl_error *err) {
  arena *m = &p->memory;
  *c = (chart){.t = t};
  c->at = ARENA_ARRAY(m, placed, t->n_bars);
  c->free_s = ARENA_ARRAY(m, double, t->n_bars);
  c->lanes = ARENA_ARRAY(m, size_t, t->n_rows);
  c->row = ARENA_ARRAY(m, size_t, t->n_rows);
  c->names = ARENA_ARRAY(m, const char *, t->n_rows);
  gl_status status = arena_check(m, "a timeline", err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i < t->n_bars; i++)
    if (is_shown(t, &t->bars[i])) c->at[c->n++].bar = &t->bars[i];
  qsort(c->at, c->n, sizeof *c->at, by_row_and_time);
  choose_lanes(c);
  for (size_t i = 0; i < t->n_rows; i++) {
    if (c->lanes[i] == 0) continue;
    c->names[c->n_rows++] = t->rows[i];
    c->row[i] = c->n_rows;
  }
  return GL_OK;
}

/* --- writing --- */

/* Chooses the unit of the axis: hours, minutes or seconds. Returns it in seconds. */
static double unit_of(const timeline *t, const char **name) {
  const double wide = t->to_s - t->from_s;
  *name = wide > 7200 ? "simulated hours" : wide > 300 ? "simulated minutes" : "simulated seconds";
  return wide > 7200 ? 3600 : wide > 300 ? 60 : 1;
}

/* Upper edge of a bar; the first lane is at the top. */
static double top_of(const chart *c, const placed *at) {
  const double tall = BAND / (double)c->lanes[at->bar->row];
  return 0.5 * BAND - (double)c->row[at->bar->row] - tall * (double)at->lane;
}

static void write_direct_bar(figure_page *p, const chart *c, const placed *at, double unit) {
  const timeline_bar *b = at->bar;
  const double top = top_of(c, at), tall = BAND / (double)c->lanes[b->row];
  page_line(p, 0, c->t->rows[b->row]);
  fprintf(p->data.stream, "\t%s", kinds[b->kind].name);
  page_number(p, fmax(b->from_s, c->t->from_s) / unit);
  page_number(p, fmin(b->to_s, c->t->to_s) / unit);
  /* Lanes are separated by a narrow gap. */
  page_number(p, top - (c->lanes[b->row] > 1 ? 0.88 : 1) * tall), page_number(p, top);
  fputc('\n', p->data.stream);
}

static void write_mark(figure_page *p, const chart *c, const placed *at, double unit) {
  const timeline_bar *b = at->bar;
  page_line(p, 0, c->t->rows[b->row]);
  fprintf(p->data.stream, "\t%s", kinds[b->ends].name);
  page_number(p, b->to_s / unit);
  page_number(p, top_of(c, at) - 0.5 * BAND / (double)c->lanes[b->row]);
  fputc('\n', p->data.stream);
}

/* Returns true if the bar has an element of that kind: the bar itself or the mark at its end. */
static bool is_of(const chart *c, const timeline_bar *b, timeline_kind k) {
  if (k < TIMELINE_BARS) return b->kind == k && b->from_s < b->to_s;
  return b->ends == k && b->to_s >= c->t->from_s && b->to_s <= c->t->to_s;
}

/* Writes a data block for each kind present; the legend shows the same kinds. */
static gl_status write_kinds(figure_page *p, const chart *c, double unit, gl_error *err) {
  figure_kind shown[TIMELINE_KINDS];
  size_t n = 0;
  for (timeline_kind k = 0; k < TIMELINE_KINDS; k++) {
    size_t drawn = 0;
    for (size_t i = 0; i < c->n; i++) {
      if (!is_of(c, c->at[i].bar, k)) continue;
      drawn++;
      if (k < TIMELINE_BARS)
        write_direct_bar(p, c, &c->at[i], unit);
      else
        write_mark(p, c, &c->at[i], unit);
    }
    if (drawn == 0) continue;
    page_block_end(p);
    shown[n++] = kinds[k];
  }
  return page_set_kinds(p, shown, n, err);
}

static gl_status write_chart(const void *data, figure_page *p, gl_error *err) {
  const timeline *t = data;
  const char *unit_name;
  const double unit = unit_of(t, &unit_name);
  chart c;
  gl_status status = chart_init(&c, p, t, err);
  if (status == GL_OK)
    status = page_open(p, 1, "panel\trow\tkind\tfrom or at\tto\tbottom\ttop", err);
  if (status == GL_OK) {
    figure_panel *to = &p->panels[0];
    snprintf(to->axis, sizeof to->axis, "%s", unit_name);
    to->low = t->from_s / unit, to->high = t->to_s / unit; /* x axis, because rows have names */
    to->kept = p->named_rows = p->tight = 1;
    page_set(p, "box_fill", 1);
    status = page_set_lines(p, c.names, c.n_rows, err);
  }
  if (status == GL_OK) status = write_kinds(p, &c, unit, err);
  if (status == GL_OK && *t->left_out) status = page_leave_out(p, err, "%.190s", t->left_out);
  return status;
}

gl_status figure_of_timeline(const timeline *t, const figure_request *q, gl_error *err) {
  const figure line = {"timeline", "what takes time in a cluster", "gantt", 1, write_chart};
  size_t bar = 0;
  while (bar < t->n_bars && !is_shown(t, &t->bars[bar])) bar++;
  return figures_draw_one(&line, bar < t->n_bars ? NULL : "nothing takes time there",
                          "nothing takes time between those simulated seconds", t, q, err);
}
