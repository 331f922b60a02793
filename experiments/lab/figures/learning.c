/* The figure `learning`: return, cosine and variance against the responses drawn. */
#include "experiments/lab/figures/list.h"

#include <math.h>
#include <stdio.h>

static double quantity_of(const lab_point *m, size_t panel) {
  return panel == 0 ? m->value : panel == 1 ? m->cosine : m->variance;
}

/* Of the return the interval of one standard error on either side. */
static void write_point(figure_page *p, size_t panel, const char *name, const lab_point *m) {
  const double y = quantity_of(m, panel), error = panel == 0 ? m->value_error : NAN;
  page_point(p, panel, name, m->samples, y, y - error, y + error);
}

gl_status lab_figure_learning(const void *data, figure_page *p, gl_error *err) {
  static const char *const axes[] = {"exact return", "cosine of E[g] and ∇J", "variance tr Cov"};
  const lab_curves *c = ((const lab_figure_data *)data)->curves;
  gl_status status =
      page_open(p, 3, "panel\talgorithm\tresponses\tmean\tlow (one standard error)\thigh", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, 3);
  snprintf(p->x_axis, sizeof p->x_axis, "responses drawn");
  for (size_t panel = 0; panel < 3; ++panel) {
    snprintf(p->panels[panel].axis, sizeof p->panels[panel].axis, "%s", axes[panel]);
    p->panels[panel].logarithmic = panel == 2;
    for (size_t a = 0; a < c->recipe->n_algorithms; ++a, page_block_end(p))
      for (size_t i = 0; i < c->n_points; ++i)
        write_point(p, panel, c->recipe->algorithms[a].name, &c->points[a * c->n_points + i]);
  }
  return lab_page_algorithms(p, c->recipe, err);
}
