/* The figure `announcements`: of the metrics that tell falls best, ROC curves over whole runs, and
 * how well they tell runs of the same setting apart so many updates before. */
#include "analysis/announce.h"
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>

enum { MOST_LINES = 6, CURVES = 0, BEFORE = 1, PANELS = 2 };

static void write_point(figure_page *p, size_t panel, const announcement *a, double x, interval v) {
  page_line(p, panel, metric_about(a->m)->name);
  page_number(p, x);
  page_interval(p, panel, v.value, v.low, v.high);
  fputc('\n', p->data.stream);
  page_panel_x(p, panel, x);
}

static void write_curve(figure_page *p, const announcement *a) {
  for (size_t i = 0; i < a->n_roc; i++)
    write_point(p, CURVES, a, a->roc_alarms[i], (interval){a->roc_announced[i], NAN, NAN});
  page_block_end(p);
}

static void write_before(figure_page *p, const announcement *a, const announce_rule *rule) {
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++)
    if (!isnan(a->matched[k].auc.value))
      write_point(p, BEFORE, a, (double)rule->lead[k], a->matched[k].auc);
  page_block_end(p);
}

static void name_panel(figure_panel *to, const char *x, const char *y) {
  snprintf(to->x_axis, sizeof to->x_axis, "%s", x);
  snprintf(to->axis, sizeof to->axis, "%s", y);
}

static gl_status write_page(figure_page *p, const announcements *a, gl_error *err) {
  const char *names[MOST_LINES];
  const size_t n = a->n < MOST_LINES ? a->n : MOST_LINES; /* 0: all fell before they had values */
  gl_status status = page_open(p, PANELS, "panel\tmetric\tx\tshare\tlow\thigh", err);
  if (status != GL_OK) return status;
  name_panel(&p->panels[CURVES], "surviving runs with a false alarm (share)",
             "falls announced (share)");
  name_panel(&p->panels[BEFORE], "updates before the fall",
             "higher than survivors of the same setting (probability)");
  for (size_t k = 0; n > 0 && k < PANELS; k++)
    p->panels[k].low = 0, p->panels[k].high = 1, p->panels[k].kept = 1;
  p->tight = 1;
  for (size_t i = 0; i < n; i++) names[i] = metric_about(a->of[i].m)->name;
  for (size_t i = 0; i < n; i++) write_curve(p, &a->of[i]);
  for (size_t i = 0; i < n; i++) write_before(p, &a->of[i], &a->rule);
  status = page_set_lines(p, names, n, err);
  for (size_t i = n; i < a->n && status == GL_OK; i++)
    status = page_leave_out(p, err, "%s", metric_about(a->of[i].m)->name);
  if (status == GL_OK)
    status = page_remark(p, err,
                         "%zu runs that fell and %zu that survived, %zu starts, means over %zu "
                         "updates. ROC curves are of runs of all settings together; beside them "
                         "runs of one algorithm and setting are compared at the same update: 0.5 "
                         "is chance (gepolab announcements)",
                         a->fallen, a->survived, a->starts, a->rule.window);
  return status;
}

gl_status figure_announcements(const void *data, figure_page *p, gl_error *err) {
  const results *r = ((const figure_data *)data)->s->from;
  const announce_rule rule = announce_rule_default();
  const contrast_arm all = {.n = 0};
  announcements a;
  gl_status status = announcements_init(&a, &r, 1, &all, &rule, err);
  if (status == GL_OK) status = write_page(p, &a, err);
  announcements_fini(&a);
  return status;
}
