/* The figure `survival`: the share of runs that have not fallen against updates (Kaplan-Meier), a
 * panel per setting. */
#include "analysis/figures/fates.h"
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_PANELS = 6 };

/* 95 % by the transformation log(-log), whose ends stay between 0 and 1 (Kalbfleisch and Prentice);
 * none where nothing or everything has fallen. */
static interval band_of(const survival_step *at) {
  interval v = {at->survival, NAN, NAN};
  if (at->survival <= 0 || at->survival >= 1 || at->error <= 0) return v;
  const double width = 1.959963984540054 * at->error / (at->survival * -log(at->survival));
  v.low = pow(at->survival, exp(width));
  v.high = pow(at->survival, exp(-width));
  return v;
}

static void write_point(figure_page *p, size_t panel, const char *line, double time, interval v) {
  page_line(p, panel, line);
  page_number(p, time);
  page_interval(p, panel, v.value, v.low, v.high);
  fputc('\n', p->data.stream);
  page_x(p, time);
}

/* Steps: a point before and one after every time at which runs fall. */
static void write_line(figure_page *p, size_t panel, const stability *s, const stability_cell *c) {
  const char *line = s->algorithms[c->algorithm];
  interval v = {1, NAN, NAN};
  if (c->runs > 0) write_point(p, panel, line, 0, v);
  for (size_t i = 0; i < c->n_steps; i++) {
    write_point(p, panel, line, c->curve[i].time, v);
    v = band_of(&c->curve[i]);
    write_point(p, panel, line, c->curve[i].time, v);
  }
  if (c->runs > 0) write_point(p, panel, line, c->watched, v);
  page_block_end(p);
}

static gl_status write_panels(figure_page *p, const stability *s, const size_t *shown, size_t n,
                              gl_error *err) {
  gl_status status = page_open(p, n, "panel\talgorithm\tupdate\tshare\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, 3) < n ? page_columns(p, 3) : n;
  p->share = n;
  for (size_t i = 0; i < n; i++) {
    figure_panel *to = &p->panels[i];
    snprintf(to->axis, sizeof to->axis, "share of runs that have not fallen");
    snprintf(to->title, sizeof to->title, "%s", s->settings[shown[i]]);
    to->low = 0, to->high = 1, to->kept = 1;
    for (size_t a = 0; a < s->n_algorithms; a++)
      write_line(p, i, s, &s->cells[shown[i] * s->n_algorithms + a]);
  }
  return page_set_lines(p, s->algorithms, s->n_algorithms, err);
}

static int any_fell(const stability *s, size_t setting) {
  const size_t n = s->n_algorithms;
  for (size_t a = 0; a < n; a++)
    if (s->cells[setting * n + a].falls > 0) return 1;
  return 0;
}

/* Of the settings in which a run fell, those that are shown; how many. */
static size_t pick_settings(const stability *s, size_t *with_falls, size_t shown[MOST_PANELS]) {
  size_t n = 0;
  for (size_t k = 0; k < s->n_settings; k++)
    if (any_fell(s, k)) with_falls[n++] = k;
  const size_t most = page_pick(n, MOST_PANELS, shown);
  for (size_t i = 0; i < most; i++) shown[i] = with_falls[shown[i]];
  return most;
}

static gl_status leave_out_others(figure_page *p, const stability *s, const size_t *shown, size_t n,
                                  gl_error *err) {
  gl_status status = GL_OK;
  for (size_t k = 0, i = 0; k < s->n_settings && status == GL_OK; k++) {
    if (i < n && shown[i] == k)
      i++;
    else
      status =
          page_leave_out(p, err, "%s%s", s->settings[k], any_fell(s, k) ? "" : " (no run fell)");
  }
  return status;
}

gl_status survival_page(const stability *s, figure_page *p, gl_error *err) {
  size_t shown[MOST_PANELS];
  size_t *with_falls = calloc(s->n_settings + 1, sizeof *with_falls);
  if (with_falls == NULL) return gl_fail_memory(err, "a figure");
  const size_t n = pick_settings(s, with_falls, shown);
  free(with_falls);
  gl_status status = write_panels(p, s, shown, n, err);
  if (status == GL_OK) status = leave_out_others(p, s, shown, n, err);
  if (status == GL_OK)
    status = page_remark(p, err,
                         "A fall: four evaluations in a row below half of the gain, a run that is "
                         "not finite, or a lost start (gepolab outcomes). Kaplan-Meier, 95 %% "
                         "bands; runs at all learning rates of a setting together");
  return status;
}

gl_status figure_survival(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const outcome_rule rule = outcome_rule_default();
  stability fates;
  gl_status status = stability_init(&fates, s->from, &rule, err);
  if (status == GL_OK) status = survival_page(&fates, p, err);
  stability_fini(&fates);
  return status;
}
