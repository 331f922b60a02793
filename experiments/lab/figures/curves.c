/* The figure `curves`: bias, scaled bias, variance and MSE against KL, at four group sizes at most.
 */
#include "experiments/lab/figures/list.h"

#include <stdio.h>

gl_status lab_figure_curves(const void *data, figure_page *p, gl_error *err) {
  static const lab_panel rows[] = {{"bias ‖E[g] − ∇J‖", lab_x_kl, lab_bias, 0, 1},
                                   {"scaled bias", lab_x_kl, lab_scaled_bias, 0, 0},
                                   {"variance tr Cov", lab_x_kl, lab_variance, 1, 0},
                                   {"mean squared error", lab_x_kl, lab_mse, 1, 0}};
  p->x_logarithmic = 1;
  gl_status status = lab_write_panels(p, ((const lab_figure_data *)data)->table, rows,
                                      sizeof rows / sizeof *rows, 4, err);
  snprintf(p->x_axis, sizeof p->x_axis, "KL(p‖q) [nats]");
  return status;
}
