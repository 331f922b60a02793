/* The figure `plane`: variance against squared bias, at four group sizes at most. Unbiased
 * estimates stand at the left edge; on the dotted diagonal squared bias equals variance. */
#include "experiments/lab/figures/list.h"

#include <stdio.h>

gl_status lab_figure_plane(const void *data, figure_page *p, gl_error *err) {
  static const lab_panel row = {"variance tr Cov", lab_x_squared_bias, lab_variance, 1, 0};
  p->x_logarithmic = 1;
  gl_status status = lab_write_panels(p, ((const lab_figure_data *)data)->table, &row, 1, 4, err);
  if (status != GL_OK) return status;
  p->share = p->n_panels;
  page_set_text(p, "reference", "x");
  snprintf(p->x_axis, sizeof p->x_axis, "squared bias");
  return GL_OK;
}
