/* The figure `curves`: bias, scaled bias, variance and MSE against KL, at four group sizes at most.
 */
#include "experiments/lab/figures/list.h"

gl_status lab_figure_curves(const void *data, figure_page *p, gl_error *err) {
  const lab_table *t = ((const lab_figure_data *)data)->table;
  gl_status status = lab_page_open(p, t, err);
  return status == GL_OK ? lab_page_sizes(p, t->recipe, 4, err) : status;
}
