/* The figure `announcements`: ROC curves of the metrics that announce falls best. */
#include "analysis/announce.h"
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>

enum { MOST_LINES = 6 };

static void write_line(figure_page *p, const announcement *a) {
  for (size_t i = 0; i < a->n_roc; i++) {
    page_line(p, 0, metric_about(a->m)->name);
    page_number(p, a->roc_alarms[i]);
    page_interval(p, 0, a->roc_announced[i], NAN, NAN);
    fputc('\n', p->data.stream);
    page_x(p, a->roc_alarms[i]);
  }
  page_block_end(p);
}

static gl_status write_page(figure_page *p, const announcements *a, gl_error *err) {
  const char *names[MOST_LINES];
  const size_t n = a->n < MOST_LINES ? a->n : MOST_LINES; /* 0: all fell before they had values */
  gl_status status = page_open(p, 1, "panel\tmetric\tfalse_alarms\tannounced\tlow\thigh", err);
  if (status != GL_OK) return status;
  snprintf(p->x_axis, sizeof p->x_axis, "share of surviving runs with a false alarm");
  snprintf(p->panels[0].axis, sizeof p->panels[0].axis, "share of falls announced");
  if (n > 0) p->panels[0].low = 0, p->panels[0].high = 1, p->panels[0].kept = 1;
  p->tight = 1;
  for (size_t i = 0; i < n; i++) {
    names[i] = metric_about(a->of[i].m)->name;
    write_line(p, &a->of[i]);
  }
  status = page_set_lines(p, names, n, err);
  for (size_t i = n; i < a->n && status == GL_OK; i++)
    status = page_leave_out(p, err, "%s", metric_about(a->of[i].m)->name);
  if (status == GL_OK)
    status = page_remark(p, err,
                         "ROC curves of %zu runs that fell and %zu that survived, of all settings "
                         "together, by means over %zu updates before the fall; the metrics of "
                         "largest area (gepolab announcements)",
                         a->fallen, a->survived, a->rule.window);
  return status;
}

gl_status figure_announcements(const void *data, figure_page *p, gl_error *err) {
  const results *r = ((const figure_data *)data)->s->from;
  const announce_rule rule = announce_rule_default();
  announcements a;
  gl_status status = announcements_init(&a, &r, 1, NULL, &rule, err);
  if (status == GL_OK) status = write_page(p, &a, err);
  announcements_fini(&a);
  return status;
}
