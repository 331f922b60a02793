/* The figure `frontier`: the learning rate at which 10 and 50 % of the runs fall, against
 * staleness: how far each method carries. Few methods are lines of two panels, one for each share;
 * of many the intervals would hide one another, so each has a panel with two lines. */
#include "analysis/figures/fates.h"
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Open ends of intervals are drawn to this factor beyond the rates of the study. */
static const double BEYOND = 3;

typedef struct frontier {
  const stability *s;
  size_t *order;          /* [n_settings] the settings by staleness */
  double lowest, highest; /* learning rates of the study */
} frontier;

/* Settings in the order of their staleness; those of which none is known keep theirs, at the end.
 */
static void sort_settings(frontier *f) {
  for (size_t k = 0; k < f->s->n_settings; k++) {
    const double x = f->s->staleness[k];
    size_t at = k;
    for (; at > 0 && (x < f->s->staleness[f->order[at - 1]] ||
                      (!isnan(x) && isnan(f->s->staleness[f->order[at - 1]])));
         at--)
      f->order[at] = f->order[at - 1];
    f->order[at] = k;
  }
}

/* Whether every setting has a staleness of its own, which then stands for it. */
static int staleness_tells_apart(const frontier *f) {
  for (size_t k = 0; k < f->s->n_settings; k++) {
    if (isnan(f->s->staleness[f->order[k]])) return 0;
    if (k > 0 && f->s->staleness[f->order[k]] == f->s->staleness[f->order[k - 1]]) return 0;
  }
  return 1;
}

static interval within(const frontier *f, interval v) {
  v.low = fmax(v.low, f->lowest / BEYOND);
  v.high = fmin(v.high, f->highest * BEYOND);
  return v;
}

/* What stands for a setting: "staleness 64", or its fields. */
static void name_setting(const frontier *f, size_t k, const char *before, char text[200]) {
  if (staleness_tells_apart(f))
    snprintf(text, 200, "%s%.3g", before, f->s->staleness[k]);
  else
    snprintf(text, 200, "%.190s", f->s->settings[k]);
}

/* Where a point stands: which panel, and which line of it. */
typedef struct point_place {
  size_t panel;
  const char *line;
} point_place;

/* What the panels are: shares, with algorithms as lines, or the other way round. */
typedef struct arrangement {
  int by_algorithm;
  size_t n; /* panels */
  char shares[STABILITY_SHARES][16];
} arrangement;

/* More algorithms than these have a panel each. */
enum { TOGETHER = 4 };

static arrangement arrange(const figure_page *p, const stability *s) {
  arrangement a = {.by_algorithm = s->n_algorithms > TOGETHER && p->q->highlight == NULL};
  a.n = a.by_algorithm ? s->n_algorithms : STABILITY_SHARES;
  for (size_t i = 0; i < STABILITY_SHARES; i++)
    snprintf(a.shares[i], sizeof a.shares[i], "%.0f %% fall", 100 * stability_share[i]);
  return a;
}

/* One point, or why there is none. */
static gl_status write_point(figure_page *p, point_place at, const frontier *f,
                             const stability_cell *c, size_t share, size_t place, gl_error *err) {
  const char *algorithm = f->s->algorithms[c->algorithm];
  char setting[200];
  name_setting(f, c->setting, "staleness ", setting);
  const interval v = c->falls_at[share];
  if (c->runs == 0) return GL_OK;
  if (c->fit.why != NULL)
    return page_leave_out(p, err, "%s at %s (%s)", algorithm, setting, c->fit.why);
  if (isnan(v.value))
    return page_leave_out(p, err, "%s at %s (falls do not rise with the rate)", algorithm, setting);
  if (v.value < f->lowest / BEYOND || v.value > f->highest * BEYOND)
    return page_leave_out(p, err, "%s at %s (%.2g, far from the rates of the study)", algorithm,
                          setting, v.value);
  const interval shown = within(f, v);
  page_line(p, at.panel, at.line);
  page_number(p, (double)place);
  page_interval(p, at.panel, shown.value, shown.low, shown.high);
  fputc('\n', p->data.stream);
  return GL_OK;
}

static gl_status write_line(figure_page *p, point_place at, const frontier *f, size_t algorithm,
                            size_t share, gl_error *err) {
  const size_t n = f->s->n_algorithms;
  gl_status status = GL_OK;
  for (size_t place = 0; place < f->s->n_settings && status == GL_OK; place++)
    status =
        write_point(p, at, f, &f->s->cells[f->order[place] * n + algorithm], share, place, err);
  page_block_end(p);
  return status;
}

static gl_status mark_settings(figure_page *p, const frontier *f, gl_error *err) {
  const int by_staleness = staleness_tells_apart(f);
  gl_status status = GL_OK;
  snprintf(p->x_axis, sizeof p->x_axis, by_staleness ? "staleness [updates]" : "setting");
  p->all_marks = 1;
  for (size_t place = 0; place < f->s->n_settings && status == GL_OK; place++) {
    const size_t k = f->order[place];
    char text[200];
    name_setting(f, k, "", text);
    page_x(p, (double)place);
    status = page_mark(p, PAGE_MARK, (double)place, text, err);
  }
  return status;
}

static gl_status write_panel(figure_page *p, size_t panel, const frontier *f, const arrangement *a,
                             gl_error *err) {
  figure_panel *to = &p->panels[panel];
  const size_t lines = a->by_algorithm ? STABILITY_SHARES : f->s->n_algorithms;
  gl_status status = GL_OK;
  snprintf(to->axis, sizeof to->axis, "learning rate at which runs fall");
  snprintf(to->title, sizeof to->title, "%s",
           a->by_algorithm ? f->s->algorithms[panel] : a->shares[panel]);
  to->logarithmic = 1;
  for (size_t i = 0; i < lines && status == GL_OK; i++)
    status = a->by_algorithm
                 ? write_line(p, (point_place){panel, a->shares[i]}, f, panel, i, err)
                 : write_line(p, (point_place){panel, f->s->algorithms[i]}, f, i, panel, err);
  return status;
}

static gl_status name_lines(figure_page *p, const frontier *f, const arrangement *a,
                            gl_error *err) {
  const char *shares[STABILITY_SHARES];
  for (size_t i = 0; i < STABILITY_SHARES; i++) shares[i] = a->shares[i];
  return a->by_algorithm ? page_set_lines(p, shares, STABILITY_SHARES, err)
                         : page_set_lines(p, f->s->algorithms, f->s->n_algorithms, err);
}

static gl_status write_page(figure_page *p, const frontier *f, gl_error *err) {
  const arrangement a = arrange(p, f->s);
  gl_status status = page_open(p, a.n, "panel\tline\tplace\trate\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, a.by_algorithm ? 4 : a.n);
  p->share = a.n;
  status = mark_settings(p, f, err);
  for (size_t panel = 0; panel < a.n && status == GL_OK; panel++)
    status = write_panel(p, panel, f, &a, err);
  if (status == GL_OK) status = name_lines(p, f, &a, err);
  if (status == GL_OK)
    status =
        page_remark(p, err,
                    "Penalised logistic regression in the logarithm of the rate, 95 %% profile "
                    "intervals, drawn to a factor of %g beyond the rates of the study",
                    BEYOND);
  return status;
}

static void find_rates(frontier *f) {
  f->lowest = INFINITY, f->highest = 0;
  for (size_t i = 0; i < f->s->n_settings * f->s->n_algorithms; i++)
    for (size_t k = 0; k < f->s->cells[i].n_doses; k++) {
      const double rate = exp(f->s->cells[i].dose[k].x);
      f->lowest = fmin(f->lowest, rate);
      f->highest = fmax(f->highest, rate);
    }
}

gl_status frontier_page(const stability *s, figure_page *p, gl_error *err) {
  frontier f = {.s = s, .order = calloc(s->n_settings + 1, sizeof *f.order)};
  if (f.order == NULL) return gl_fail_memory(err, "a figure");
  sort_settings(&f);
  find_rates(&f);
  const gl_status status = write_page(p, &f, err);
  free(f.order);
  return status;
}

gl_status figure_frontier(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const outcome_rule rule = outcome_rule_default();
  stability fates;
  gl_status status = stability_init(&fates, s->from, &rule, err);
  if (status == GL_OK) status = stability_fit(&fates, err);
  if (status == GL_OK) status = frontier_page(&fates, p, err);
  stability_fini(&fates);
  return status;
}
