/* The figure `truncation`: the direction of the expected step and what it does to the mass of kept
 * tokens, against top-p. */
#include "experiments/lab/figures/list.h"

#include <math.h>
#include <stdio.h>

enum { QUANTITIES = 3 };

static double quantity_of(const lab_truncated *row, size_t quantity) {
  return quantity == 0 ? row->cosine : quantity == 1 ? row->drift_good : row->drift_bad;
}

static void write_line(figure_page *p, size_t panel, const lab_truncation *t, size_t weights,
                       size_t quantity, size_t a) {
  const lab_dists *dists = &t->recipe.dists;
  for (size_t k = 0; k < dists->n_top_p; ++k) {
    const lab_truncated *row = &t->rows[(weights * t->n_dists + k) * t->recipe.n_algorithms + a];
    page_point(p, panel, row->algorithm, row->top_p,
               row->applicable ? quantity_of(row, quantity) : NAN, NAN, NAN);
  }
  page_block_end(p);
}

gl_status lab_figure_truncation(const void *data, figure_page *p, gl_error *err) {
  static const char *const axes[QUANTITIES] = {"cosine of E[g] and ∇J", "drift, good contexts",
                                               "drift, bad contexts"};
  const lab_truncation *t = ((const lab_figure_data *)data)->truncation;
  const size_t columns = t->recipe.dists.n_weights;
  gl_status status = page_open(p, QUANTITIES * columns, "panel\talgorithm\ttop_p\ty\t\t", err);
  if (status != GL_OK) return status;
  p->wide = p->share = columns;
  snprintf(p->x_axis, sizeof p->x_axis, "top-p");
  for (size_t panel = 0; panel < QUANTITIES * columns; ++panel) {
    const size_t quantity = panel / columns, weights = panel % columns;
    figure_panel *to = &p->panels[panel];
    if (quantity == 0)
      snprintf(to->title, sizeof to->title, "weights: %s", t->recipe.dists.weights[weights]);
    snprintf(to->axis, sizeof to->axis, "%s", axes[quantity]);
    for (size_t a = 0; a < t->recipe.n_algorithms; ++a)
      write_line(p, panel, t, weights, quantity, a);
  }
  return lab_page_algorithms(p, &t->recipe, err);
}
