/* The figure `frontier`: the learning rate at which 10 and 50 % of the runs fall, against delay or
 * staleness, a line per algorithm: how far each method carries. */
#include "analysis/figures/list.h"
#include "analysis/stability.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Open ends of intervals are drawn to this factor beyond the rates of the study. */
static const double BEYOND = 3;

typedef struct frontier {
  const stability *s;
  const x_grid *grid;
  double lowest, highest; /* learning rates of the study */
} frontier;

/* The first group of a setting. */
static size_t group_of(const stability *s, size_t setting) {
  size_t g = 0;
  while (g < s->from->n_groups && s->setting[g] != setting) g++;
  return g;
}

/* Whether a group has the first group's values in all axes but the rate and the delay. */
static int is_of_first(const frontier *f, size_t g) {
  const results *r = f->s->from;
  for (size_t i = 0; i < r->axes.n; i++) {
    if (i == f->s->dose_axis || i == f->grid->which) continue;
    const char *a = r->groups[g].value[i].text, *b = r->groups[0].value[i].text;
    if ((a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0)) return 0;
  }
  return 1;
}

static interval within(const frontier *f, interval v) {
  v.low = fmax(v.low, f->lowest / BEYOND);
  v.high = fmin(v.high, f->highest * BEYOND);
  return v;
}

/* One point, or why there is none. */
static gl_status write_point(figure_page *p, size_t panel, const frontier *f,
                             const stability_cell *c, size_t place, gl_error *err) {
  const char *algorithm = f->s->from->algorithms[c->algorithm];
  const char *setting = f->s->settings[c->setting];
  const interval v = c->falls_at[panel];
  if (c->runs == 0) return GL_OK;
  if (c->fit.why != NULL)
    return page_leave_out(p, err, "%s at %s (%s)", algorithm, setting, c->fit.why);
  if (isnan(v.value))
    return page_leave_out(p, err, "%s at %s (falls do not rise with the rate)", algorithm, setting);
  if (v.value < f->lowest / BEYOND || v.value > f->highest * BEYOND)
    return page_leave_out(p, err, "%s at %s (%.2g, far from the rates of the study)", algorithm,
                          setting, v.value);
  grid_write(p, panel, algorithm, f->grid, place, within(f, v));
  return GL_OK;
}

static gl_status write_line(figure_page *p, size_t panel, const frontier *f, size_t algorithm,
                            gl_error *err) {
  const results *r = f->s->from;
  gl_status status = GL_OK;
  for (size_t place = 0; place < f->grid->n_x && status == GL_OK; place++)
    for (size_t k = 0; k < f->s->n_settings && status == GL_OK; k++) {
      const size_t g = group_of(f->s, k);
      if (f->grid->place[g] == place && is_of_first(f, g))
        status =
            write_point(p, panel, f, &f->s->cells[k * r->n_algorithms + algorithm], place, err);
    }
  page_block_end(p);
  return status;
}

static gl_status leave_out_others(figure_page *p, const frontier *f, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t k = 0; k < f->s->n_settings && status == GL_OK; k++)
    if (!is_of_first(f, group_of(f->s, k)))
      status = page_leave_out(p, err, "%s", f->s->settings[k]);
  return status;
}

static gl_status write_page(figure_page *p, const frontier *f, gl_error *err) {
  const results *r = f->s->from;
  gl_status status =
      page_open(p, STABILITY_SHARES, "panel\talgorithm\tdelay\trate\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, STABILITY_SHARES);
  p->share = p->wide;
  grid_set_x(p, f->grid);
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
  if (status == GL_OK) status = leave_out_others(p, f, err);
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
  stability fates = {0};
  x_grid grid;
  gl_status status = grid_init(&grid, s->from, X_DELAY, err);
  if (status != GL_OK) return status;
  status = stability_init(&fates, s->from, &rule, err);
  if (status == GL_OK) {
    frontier f = {.s = &fates, .grid = &grid};
    find_rates(&f);
    status = write_page(p, &f, err);
  }
  stability_fini(&fates);
  grid_fini(&grid);
  return status;
}
