/* The figure `map`: MSE over that of the first algorithm, over KL and group size. */
#include "experiments/lab/figures/list.h"

#include <math.h>
#include <stdio.h>

/* A block per later algorithm, in it a line of values of KL per group size. */
static void write_ratios(const lab_table *t, FILE *to) {
  const lab_recipe *r = t->recipe;
  for (size_t a = 1; a < r->n_algorithms; ++a, fputs("\n\n", to))
    for (size_t s = 0; s < r->n_sizes; ++s, fputc('\n', to))
      for (size_t k = 0; k < r->n_pairs; ++k) {
        const lab_result *m = t->results + (k * r->n_sizes + s) * r->n_algorithms;
        fprintf(to, "%zu\t%zu\t%.9g\t%.9g\t%.9g\n", s + 1, r->group_size[s], m->kl,
                log10(m[a].numbers.mse / m->numbers.mse),
                log10(m[a].numbers.scaled_mse / m->numbers.scaled_mse));
      }
}

gl_status lab_figure_map(const void *data, figure_page *p, gl_error *err) {
  const lab_table *t = ((const lab_figure_data *)data)->table;
  gl_status status =
      page_open(p, 0, "size\tgroup_size\tkl_exact\tlog10 mse ratio\tlog10 scaled mse ratio", err);
  if (status == GL_OK) status = lab_page_variables(p, t, err);
  if (status == GL_OK) write_ratios(t, p->data.stream);
  return status;
}
