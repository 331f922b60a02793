/* The figure `learning`: return, cosine and variance against the responses drawn. */
#include "experiments/lab/figures/list.h"

gl_status lab_figure_learning(const void *data, figure_page *p, gl_error *err) {
  const lab_curves *c = ((const lab_figure_data *)data)->curves;
  gl_status status = page_open(p, 0, NULL, err);
  if (status != GL_OK) return status;
  lab_curves_tsv(c, p->data.stream);
  return lab_page_algorithms(p, c->recipe, err);
}
