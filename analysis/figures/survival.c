/* The figure `survival`: the share of runs that have not fallen against updates (Kaplan-Meier), a
 * panel per setting. */
#include "analysis/figures/list.h"
#include "analysis/stability.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_PANELS = 6 };

typedef struct watched_runs {
  double *time;
  uint8_t *fell;
  survival_step *curve; /* all [n_runs + 1] */
} watched_runs;

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
static gl_status write_line(figure_page *p, size_t panel, const stability *s,
                            const stability_cell *c, watched_runs *w, gl_error *err) {
  size_t steps = 0;
  const size_t n = stability_times(s, c, w->time, w->fell);
  const char *line = s->from->algorithms[c->algorithm];
  gl_status status = survival_curve(w->time, w->fell, n, w->curve, &steps, err);
  interval v = {1, NAN, NAN};
  double end = 0;
  if (status == GL_OK && n > 0) write_point(p, panel, line, 0, v);
  for (size_t i = 0; i < steps && status == GL_OK; i++) {
    write_point(p, panel, line, w->curve[i].time, v);
    v = band_of(&w->curve[i]);
    write_point(p, panel, line, w->curve[i].time, v);
  }
  for (size_t i = 0; i < n; i++) end = fmax(end, w->time[i]);
  if (status == GL_OK && n > 0) write_point(p, panel, line, end, v);
  page_block_end(p);
  return status;
}

static gl_status write_panels(figure_page *p, const stability *s, watched_runs *w,
                              const size_t *shown, size_t n, gl_error *err) {
  const results *r = s->from;
  gl_status status = page_open(p, n, "panel\talgorithm\tupdate\tshare\tlow\thigh", err);
  p->wide = page_columns(p, 3) < n ? page_columns(p, 3) : n;
  p->share = n;
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    figure_panel *to = &p->panels[i];
    snprintf(to->axis, sizeof to->axis, "share of runs that have not fallen");
    snprintf(to->title, sizeof to->title, "%s", s->settings[shown[i]]);
    to->low = 0, to->high = 1, to->kept = 1;
    for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++)
      status = write_line(p, i, s, &s->cells[shown[i] * r->n_algorithms + a], w, err);
  }
  return status == GL_OK
             ? page_set_lines(p, (const char *const *)r->algorithms, r->n_algorithms, err)
             : status;
}

static gl_status write_page(figure_page *p, const stability *s, gl_error *err) {
  const size_t most = s->from->n_runs + 1;
  size_t shown[MOST_PANELS], falls = 0;
  const size_t n = page_pick(s->n_settings, MOST_PANELS, shown);
  watched_runs w = {calloc(most, sizeof *w.time), calloc(most, sizeof *w.fell),
                    calloc(most, sizeof *w.curve)};
  gl_status status = w.time != NULL && w.fell != NULL && w.curve != NULL
                         ? write_panels(p, s, &w, shown, n, err)
                         : gl_fail_memory(err, "a figure");
  free(w.time), free(w.fell), free(w.curve);
  for (size_t k = 0, i = 0; k < s->n_settings && status == GL_OK; k++) {
    if (i < n && shown[i] == k)
      i++;
    else
      status = page_leave_out(p, err, "%s", s->settings[k]);
  }
  for (size_t i = 0; i < s->n_settings * s->from->n_algorithms; i++) falls += s->cells[i].falls;
  if (status == GL_OK && falls == 0) status = page_remark(p, err, "No run fell");
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
  if (status == GL_OK) status = write_page(p, &fates, err);
  stability_fini(&fates);
  return status;
}
