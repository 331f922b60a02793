/* The figure `staleness`: cosine, variance and MSE against staleness at the first group size. */
#include "experiments/lab/figures/list.h"

#include <stdio.h>

gl_status lab_figure_staleness(const void *data, figure_page *p, gl_error *err) {
  static const lab_panel rows[] = {{"cosine of E[g] and ∇J", lab_x_staleness, lab_cosine, 0, 0},
                                   {"variance tr Cov", lab_x_staleness, lab_variance, 1, 0},
                                   {"scaled MSE", lab_x_staleness, lab_scaled_mse, 0, 0}};
  gl_status status = lab_write_panels(p, ((const lab_figure_data *)data)->table, rows,
                                      sizeof rows / sizeof *rows, 1, err);
  p->wide = page_columns(p, 3), p->share = 0;
  snprintf(p->x_axis, sizeof p->x_axis, "staleness [updates]");
  return status;
}
