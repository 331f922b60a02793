/* Densities of distributions as curves. */
#include "analysis/figures/densities.h"

#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"

#include <math.h>
#include <stdio.h>

static void write_density(figure_page *p, const densities *d, const density *of) {
  for (size_t i = 0; i < of->n; i++) {
    page_line(p, of->panel, d->lines[of->line]);
    page_number(p, of->x[i]);
    page_interval(p, of->panel, of->y[i], NAN, NAN);
    fputc('\n', p->data.stream);
    page_panel_x(p, of->panel, of->x[i]);
  }
}

static void write_panel(figure_page *p, const densities *d, size_t panel) {
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
  for (size_t panel = 0; panel < d->n_panels; panel++) write_panel(p, d, panel);
  status = page_set_lines(p, d->lines, d->n_lines, err);
  for (size_t i = 0; i < d->n_left_out && status == GL_OK; i++)
    status = page_leave_out(p, err, "%.190s", d->left_out[i]);
  for (size_t i = 0; i < d->n_remarks && status == GL_OK; i++)
    status = page_remark(p, err, "%.900s", d->remarks[i]);
  return status;
}

static const char *lacks_dists(const void *data, unsigned needs) {
  (void)needs;
  return ((const densities *)data)->n_panels > 0 ? NULL : "no law of the cluster varies";
}

gl_status figure_of_densities(const densities *d, const figure_request *q, gl_error *err) {
  const figure line = {"densities", "densities of the cluster's laws", "curves", 1,
                       write_densities};
  const figure_table table = {&line, 1, lacks_dists,
                              "no law of the cluster varies: there is no density to draw"};
  return figures_draw_table(&table, d, q, err);
}
