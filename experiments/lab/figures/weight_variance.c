/* The figure `weight_variance`: variance of p/q and of p/E_q q, and where the latter is larger. */
#include "experiments/lab/figures/list.h"

#include "toy/lab/theory.h"

#include <stdio.h>

static void weight_line(FILE *to, double a, double b, const lab_weights_stats *s) {
  fprintf(to, "%.6g\t%.6g\t%.9g\t%.9g\t%.9g\t%.9g\n", a, b, s->kl, s->variance_pq,
          s->variance[LAB_EXPECTED], s->variance[LAB_COMPUTED]);
}

static void write_weights(FILE *to) {
  enum { GRID = 80, LINE = 200 };
  lab_weights_stats s;
  for (int i = 0; i < GRID; ++i) {
    for (int j = 0; j < GRID; ++j) {
      const double a = (i + 0.5) / GRID, b = (j + 0.5) / GRID;
      lab_theory_bernoulli(a, b, &s);
      weight_line(to, a, b, &s);
    }
    fputc('\n', to);
  }
  fputs("\n# the same for unit normals: distance, 0\n", to);
  for (int i = 0; i <= LINE; ++i) {
    lab_theory_gaussian(1.6 * i / LINE, &s);
    weight_line(to, 1.6 * i / LINE, 0, &s);
  }
}

gl_status lab_figure_weight_variance(const void *data, figure_page *p, gl_error *err) {
  double d2, kl[LAB_CONSTANTS];
  (void)data;
  gl_status status = page_open(
      p, 0, "p\tq\tkl\tvariance_pq\tvariance_expected\tvariance_computed (Bernoulli)", err);
  for (int k = 0; k < LAB_CONSTANTS && status == GL_OK; ++k)
    status = lab_theory_gaussian_crossing((lab_constant)k, &d2, &kl[k], err);
  if (status != GL_OK) return status;
  write_weights(p->data.stream);
  page_set(p, "crossing_expected", kl[LAB_EXPECTED]);
  page_set(p, "crossing_computed", kl[LAB_COMPUTED]);
  return GL_OK;
}
