/* The figure `theorem1_constant`: the smallest constant with which Theorem 1 holds. */
#include "experiments/lab/figures/list.h"

#include "toy/lab/theory.h"

#include <math.h>
#include <stdio.h>

gl_status lab_figure_theorem1_constant(const void *data, figure_page *p, gl_error *err) {
  (void)data;
  gl_status status = page_open(p, 0, "outcomes\ttheorem\texpected\tcomputed", err);
  if (status != GL_OK) return status;
  for (double n = 2; n < 2e9; n = fmax(n + 1, floor(n * 1.5)))
    fprintf(p->data.stream, "%.17g\t%.17g\t%.9g\t%.9g\n", n, n * n + 1,
            lab_theory_smallest_constant(n, LAB_EXPECTED, NULL),
            lab_theory_smallest_constant(n, LAB_COMPUTED, NULL));
  return GL_OK;
}
