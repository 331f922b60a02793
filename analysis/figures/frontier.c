/* The figure `frontier`: the learning rate at which 10 and 50 % of the runs fall, against
 * staleness, a line per algorithm: how far each method carries. */
#include "analysis/figures/list.h"
#include "analysis/stability.h"

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

/* One point, or why there is none. */
static gl_status write_point(figure_page *p, size_t panel, const frontier *f,
                             const stability_cell *c, size_t place, gl_error *err) {
  const char *algorithm = f->s->from->algorithms[c->algorithm];
  char setting[200];
  name_setting(f, c->setting, "staleness ", setting);
  const interval v = c->falls_at[panel];
  if (c->runs == 0) return GL_OK;
  if (c->fit.why != NULL)
    return page_leave_out(p, err, "%s at %s (%s)", algorithm, setting, c->fit.why);
  if (isnan(v.value))
    return page_leave_out(p, err, "%s at %s (falls do not rise with the rate)", algorithm, setting);
  if (v.value < f->lowest / BEYOND || v.value > f->highest * BEYOND)
    return page_leave_out(p, err, "%s at %s (%.2g, far from the rates of the study)", algorithm,
                          setting, v.value);
  const interval shown = within(f, v);
  page_line(p, panel, algorithm);
  page_number(p, (double)place);
  page_interval(p, panel, shown.value, shown.low, shown.high);
  fputc('\n', p->data.stream);
  return GL_OK;
}

static gl_status write_line(figure_page *p, size_t panel, const frontier *f, size_t algorithm,
                            gl_error *err) {
  const size_t n = f->s->from->n_algorithms;
  gl_status status = GL_OK;
  for (size_t place = 0; place < f->s->n_settings && status == GL_OK; place++)
    status = write_point(p, panel, f, &f->s->cells[f->order[place] * n + algorithm], place, err);
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

static gl_status write_page(figure_page *p, const frontier *f, gl_error *err) {
  const results *r = f->s->from;
  gl_status status =
      page_open(p, STABILITY_SHARES, "panel\talgorithm\tplace\trate\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, STABILITY_SHARES);
  p->share = p->wide;
  status = mark_settings(p, f, err);
  for (size_t i = 0; i < STABILITY_SHARES && status == GL_OK; i++) {
    figure_panel *to = &p->panels[i];
    snprintf(to->axis, sizeof to->axis, "learning rate at which runs fall");
    snprintf(to->title, sizeof to->title, "%.0f %% fall", 100 * stability_share[i]);
    to->logarithmic = 1;
    for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++)
      status = write_line(p, i, f, a, err);
  }
  if (status == GL_OK)
    status = page_set_lines(p, (const char *const *)r->algorithms, r->n_algorithms, err);
  if (status == GL_OK)
    status =
        page_remark(p, err,
                    "Penalised logistic regression in the logarithm of the rate, 95 %% profile "
                    "intervals, drawn to a factor of %g beyond the rates of the study",
                    BEYOND);
  return status;
}

static void find_rates(frontier *f) {
  const results *r = f->s->from;
  f->lowest = INFINITY, f->highest = 0;
  for (size_t g = 0; g < r->n_groups; g++) {
    const double rate = r->groups[g].value[f->s->dose_axis].number;
    if (!(rate > 0)) continue;
    f->lowest = fmin(f->lowest, rate);
    f->highest = fmax(f->highest, rate);
  }
}

gl_status figure_frontier(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const outcome_rule rule = outcome_rule_default();
  stability fates;
  gl_status status = stability_init(&fates, s->from, &rule, err);
  if (status == GL_OK) status = stability_fit(&fates, err);
  if (status == GL_OK) {
    frontier f = {.s = &fates, .order = calloc(fates.n_settings + 1, sizeof *f.order)};
    if (f.order == NULL) status = gl_fail_memory(err, "a figure");
    if (status == GL_OK) {
      sort_settings(&f);
      find_rates(&f);
      status = write_page(p, &f, err);
    }
    free(f.order);
  }
  stability_fini(&fates);
  return status;
}
