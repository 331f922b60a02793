/* What figures of measured estimators share: which algorithms and group sizes they show, and their
 * panels. */
#include "experiments/lab/figures/list.h"

#include "core/base/shown.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

gl_status lab_page_algorithms(figure_page *p, const lab_recipe *r, gl_error *err) {
  const char **names = calloc(r->n_algorithms + 1, sizeof *names);
  if (names == NULL) return gl_fail_memory(err, "the names of a figure");
  for (size_t i = 0; i < r->n_algorithms; ++i) names[i] = r->algorithms[i].name;
  gl_status status = page_set_lines(p, names, r->n_algorithms, err);
  free(names);
  return status;
}

void lab_size_text(size_t size, char text[24]) {
  if (size == 0)
    snprintf(text, 24, "∞");
  else
    snprintf(text, 24, "%zu", size);
}

gl_status lab_leave_out_algorithms(figure_page *p, const lab_table *t, gl_error *err) {
  const lab_recipe *r = t->recipe;
  gl_status status = GL_OK;
  for (size_t a = 0; a < r->n_algorithms && status == GL_OK; ++a) {
    const char *why = "";
    size_t n = 0;
    for (size_t i = a; i < t->n; i += r->n_algorithms) {
      n += t->results[i].applicable != 0;
      if (!t->results[i].applicable) why = t->results[i].why;
    }
    if (n == 0) status = page_leave_out(p, err, "%s (%s)", r->algorithms[a].name, why);
  }
  return status;
}

size_t lab_pick_sizes(const figure_page *p, const lab_recipe *r, size_t most, size_t *picked) {
  return page_pick(r->n_sizes, page_columns(p, most), picked);
}

gl_status lab_leave_out_sizes(figure_page *p, const lab_recipe *r, const size_t *picked, size_t n,
                              gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0, k = 0; i < r->n_sizes && status == GL_OK; ++i) {
    char text[24];
    lab_size_text(r->group_size[i], text);
    if (k < n && picked[k] == i)
      ++k;
    else
      status = page_leave_out(p, err, "G = %s", text);
  }
  return status;
}

static void write_line(figure_page *p, size_t panel, const lab_table *t, const lab_panel *of,
                       size_t size, size_t a) {
  const lab_recipe *r = t->recipe;
  for (size_t k = 0; k < r->n_pairs; ++k) {
    const lab_result *m = &t->results[(k * r->n_sizes + size) * r->n_algorithms + a];
    const double x = of->x(r, k, m), y = m->applicable ? of->y(&m->numbers) : NAN;
    page_point(p, panel, r->algorithms[a].name, x, y, NAN, NAN);
  }
  page_block_end(p);
}

gl_status lab_write_panels(figure_page *p, const lab_table *t, const lab_panel *of, size_t n,
                           size_t most_sizes, gl_error *err) {
  const lab_recipe *r = t->recipe;
  size_t *picked = calloc(r->n_sizes + 1, sizeof *picked);
  if (picked == NULL) return gl_fail_memory(err, "the sizes of a figure");
  const size_t sizes = lab_pick_sizes(p, r, most_sizes, picked);
  gl_status status = page_open(p, n * sizes, "panel\talgorithm\tx\ty\t\t", err);
  p->decades = 14;
  p->wide = p->share = sizes;
  for (size_t panel = 0; panel < n * sizes && status == GL_OK; ++panel) {
    const lab_panel *what = &of[panel / sizes];
    figure_panel *to = &p->panels[panel];
    char size[24];
    lab_size_text(r->group_size[picked[panel % sizes]], size);
    if (panel < sizes && r->n_sizes > 1) snprintf(to->title, sizeof to->title, "G = %s", size);
    snprintf(to->axis, sizeof to->axis, "%s", what->axis);
    to->logarithmic = what->logarithmic;
    for (size_t a = 0; a < r->n_algorithms; ++a)
      write_line(p, panel, t, what, picked[panel % sizes], a);
    /* One that explodes would hide all others; it leaves the panel at the top. */
    if (what->most > 0 && to->high > what->most) to->high = what->most;
  }
  if (status == GL_OK) status = lab_page_algorithms(p, r, err);
  if (status == GL_OK) status = lab_leave_out_algorithms(p, t, err);
  if (status == GL_OK) status = lab_leave_out_sizes(p, r, picked, sizes, err);
  free(picked);
  return status;
}

double lab_x_kl(const lab_recipe *r, size_t pair, const lab_result *m) {
  (void)r, (void)pair;
  return m->kl;
}
double lab_x_staleness(const lab_recipe *r, size_t pair, const lab_result *m) {
  (void)m;
  return r->pairs[pair].staleness;
}
double lab_x_squared_bias(const lab_recipe *r, size_t pair, const lab_result *m) {
  (void)r, (void)pair;
  /* What is unbiased, but for rounding, stands at the left edge. */
  return m->applicable ? fmax(m->numbers.bias * m->numbers.bias, 1e-5) : NAN;
}
double lab_bias(const lab_numbers *n) {
  return n->bias;
}
double lab_scaled_bias(const lab_numbers *n) {
  return n->scaled_bias;
}
double lab_cosine(const lab_numbers *n) {
  return n->cosine;
}
double lab_variance(const lab_numbers *n) {
  return n->variance;
}
double lab_mse(const lab_numbers *n) {
  return n->mse;
}
double lab_scaled_mse(const lab_numbers *n) {
  return n->scaled_mse;
}
