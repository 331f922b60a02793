/* Bars of a timeline: cut to what is shown, put into lanes, written by kind. */
#include "analysis/figures/timeline.h"

#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of a row, which is 1 high. */
static const double BAND = 0.72;

static const figure_kind kinds[TIMELINE_KINDS] = {
    [TIMELINE_GENERATION] = {"generation", {LOOK_BLUE, 0, 0}, SAMPLE_BOX},
    [TIMELINE_INTERRUPTION] = {"takes weights over", {LOOK_BLACK, 0, 0}, SAMPLE_BOX},
    [TIMELINE_WAITING] = {"waiting", {LOOK_GREY, 0, 0}, SAMPLE_BOX},
    [TIMELINE_BATCHES] = {"batch under way", {LOOK_GREEN, 0, 0}, SAMPLE_BOX},
    [TIMELINE_WEIGHTS] = {"weights under way", {LOOK_SKY, 0, 0}, SAMPLE_BOX},
    [TIMELINE_QUEUED] = {"batch in the queue", {LOOK_PINK, 0, 0}, SAMPLE_BOX},
    [TIMELINE_TRAINING] = {"training", {LOOK_RED, 0, 0}, SAMPLE_BOX},
    [TIMELINE_EVALUATION] = {"evaluation", {LOOK_GOLD, 0, 0}, SAMPLE_BOX},
    [TIMELINE_DOWN] = {"down", {LOOK_WINE, 0, 0}, SAMPLE_BOX},
    [TIMELINE_DROPPED] = {"batch dropped", {LOOK_BLACK, 0, LOOK_CROSS}, SAMPLE_MARK},
    [TIMELINE_LOST] = {"lost", {LOOK_BLACK, 0, LOOK_PLUS}, SAMPLE_MARK}};

/* --- what is shown, and where --- */

typedef struct placed {
  const timeline_bar *bar;
  size_t lane;
} placed;

typedef struct chart {
  const timeline *t;
  placed *at;     /* [n] by row, then by time */
  double *free_s; /* [n] scratch: when each lane of a row is free */
  size_t *lanes;  /* [n_rows] */
  size_t *row;    /* [n_rows] its place from above, from 1; 0: it is empty */
  size_t n, n_rows;
  const char **names; /* [n_rows] */
} chart;

static int is_shown(const timeline *t, const timeline_bar *b) {
  if (b->from_s < b->to_s) return b->from_s < t->to_s && b->to_s > t->from_s;
  return b->ends != b->kind && b->to_s >= t->from_s && b->to_s <= t->to_s;
}

static int by_row_and_time(const void *a, const void *b) {
  const timeline_bar *x = ((const placed *)a)->bar, *y = ((const placed *)b)->bar;
  if (x->row != y->row) return (x->row > y->row) - (x->row < y->row);
  if (x->from_s != y->from_s) return (x->from_s > y->from_s) - (x->from_s < y->from_s);
  return (x->to_s > y->to_s) - (x->to_s < y->to_s);
}

/* Every bar takes the first lane of its row that is free when it begins. */
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

static void chart_fini(chart *c) {
  free(c->at), free(c->free_s), free(c->lanes), free(c->row), free(c->names);
}

static gl_status chart_init(chart *c, const timeline *t, gl_error *err) {
  *c = (chart){.t = t,
               .at = calloc(t->n_bars + 1, sizeof *c->at),
               .free_s = calloc(t->n_bars + 1, sizeof *c->free_s),
               .lanes = calloc(t->n_rows + 1, sizeof *c->lanes),
               .row = calloc(t->n_rows + 1, sizeof *c->row),
               .names = calloc(t->n_rows + 1, sizeof *c->names)};
  if (!c->at || !c->free_s || !c->lanes || !c->row || !c->names)
    return gl_fail_memory(err, "a timeline");
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

/* What the axis counts in: hours, minutes or seconds. */
static double unit_of(const timeline *t, const char **name) {
  const double wide = t->to_s - t->from_s;
  *name = wide > 7200 ? "simulated hours" : wide > 300 ? "simulated minutes" : "simulated seconds";
  return wide > 7200 ? 3600 : wide > 300 ? 60 : 1;
}

/* The first lane is the uppermost. */
static double top_of(const chart *c, const placed *at) {
  const double tall = BAND / (double)c->lanes[at->bar->row];
  return 0.5 * BAND - (double)c->row[at->bar->row] - tall * (double)at->lane;
}

static void write_bar(figure_page *p, const chart *c, const placed *at, double unit) {
  const timeline_bar *b = at->bar;
  const double top = top_of(c, at), tall = BAND / (double)c->lanes[b->row];
  page_line(p, 0, c->t->rows[b->row]);
  fprintf(p->data.stream, "\t%s", kinds[b->kind].name);
  page_number(p, fmax(b->from_s, c->t->from_s) / unit);
  page_number(p, fmin(b->to_s, c->t->to_s) / unit);
  /* Lanes are told apart by a little white between them. */
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

/* Whether the bar is drawn as that kind: as a bar, or as the mark at its end. */
static int is_of(const chart *c, const timeline_bar *b, timeline_kind k) {
  if (k < TIMELINE_BARS) return b->kind == k && b->from_s < b->to_s;
  return b->ends == k && b->to_s >= c->t->from_s && b->to_s <= c->t->to_s;
}

/* A block for each kind that there is, which is also what the legend shows. */
static gl_status write_kinds(figure_page *p, const chart *c, double unit, gl_error *err) {
  figure_kind shown[TIMELINE_KINDS];
  size_t n = 0;
  for (timeline_kind k = 0; k < TIMELINE_KINDS; k++) {
    size_t drawn = 0;
    for (size_t i = 0; i < c->n; i++) {
      if (!is_of(c, c->at[i].bar, k)) continue;
      drawn++;
      if (k < TIMELINE_BARS)
        write_bar(p, c, &c->at[i], unit);
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
  gl_status status = chart_init(&c, t, err);
  if (status == GL_OK)
    status = page_open(p, 1, "panel\trow\tkind\tfrom or at\tto\tbottom\ttop", err);
  if (status == GL_OK) {
    figure_panel *to = &p->panels[0];
    snprintf(to->axis, sizeof to->axis, "%s", unit_name);
    to->low = t->from_s / unit, to->high = t->to_s / unit; /* rows are named: its axis is x */
    to->kept = p->named_rows = p->tight = 1;
    page_set(p, "box_fill", 1);
    status = page_set_lines(p, c.names, c.n_rows, err);
  }
  if (status == GL_OK) status = write_kinds(p, &c, unit, err);
  if (status == GL_OK && *t->left_out) status = page_leave_out(p, err, "%.190s", t->left_out);
  chart_fini(&c);
  return status;
}

static const char *lacks_bars(const void *data, unsigned needs) {
  const timeline *t = data;
  (void)needs;
  for (size_t i = 0; i < t->n_bars; i++)
    if (is_shown(t, &t->bars[i])) return NULL;
  return "nothing takes time there";
}

gl_status figure_of_timeline(const timeline *t, const figure_request *q, gl_error *err) {
  const figure line = {"timeline", "what takes time in a cluster", "gantt", 1, write_chart};
  const figure_table table = {&line, 1, lacks_bars,
                              "nothing takes time between those simulated seconds"};
  return figures_draw_table(&table, t, q, err);
}
