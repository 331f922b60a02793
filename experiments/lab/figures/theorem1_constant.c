/* The figure `theorem1_constant`: the smallest constant with which Theorem 1 holds. */
#include "experiments/lab/figures/list.h"

#include "toy/lab/theory.h"

#include <math.h>
#include <stdio.h>

static double constant_of(size_t line, double n) {
  if (line == 0) return n * n + 1;
  if (line == 3) return 0.325 * pow(n, 1.5);
  return lab_theory_smallest_constant(n, line == 1 ? LAB_EXPECTED : LAB_COMPUTED, NULL);
}

gl_status lab_figure_theorem1_constant(const void *data, figure_page *p, gl_error *err) {
  static const char *const lines[] = {"Theorem 1: n² + 1", "smallest valid, D = E_q q",
                                      "smallest valid, D as computed", "0.325 n^(3/2)"};
  (void)data;
  gl_status status = page_open(p, 1, "panel\tline\toutcomes\tconstant\t\t", err);
  if (status != GL_OK) return status;
  p->x_logarithmic = 1, p->tall = 6, p->decades = 20;
  snprintf(p->x_axis, sizeof p->x_axis, "outcomes n (Vᵀ for responses of T tokens)");
  p->panels[0].logarithmic = 1;
  snprintf(p->panels[0].axis, sizeof p->panels[0].axis, "c in Var[p/q] − Var[p/D] ≥ exp(KL) − c");
  for (size_t line = 0; line < 4; ++line, page_block_end(p))
    for (double n = 2; n < 2e9; n = fmax(n + 1, floor(n * 1.5))) {
      page_point(p, 0, lines[line], n, constant_of(line, n), NAN, NAN);
    }
  return page_set_lines(p, lines, 4, err);
}
