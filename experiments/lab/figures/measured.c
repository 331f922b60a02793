/* What figures of measured estimators share: their data and variables. */
#include "experiments/lab/figures/list.h"

#include "core/base/shown.h"

#include <stdio.h>
#include <stdlib.h>

gl_status lab_page_algorithms(figure_page *p, const lab_recipe *r, gl_error *err) {
  const char **names = calloc(r->n_algorithms, sizeof *names);
  size_t longest = 0;
  if (names == NULL) return gl_fail_memory(err, "the names of a figure");
  for (size_t i = 0; i < r->n_algorithms; ++i) {
    names[i] = r->algorithms[i].name;
    if (shown_width(names[i]) > longest) longest = shown_width(names[i]);
  }
  page_set(p, "longest_name", (double)longest);
  page_set(p, "algorithms", (double)r->n_algorithms);
  page_set_texts(p, "algorithm_name", names, r->n_algorithms);
  free(names);
  return GL_OK;
}

/* "8", or "∞" for the population limit. */
static void size_text(size_t size, char text[24]) {
  if (size == 0)
    snprintf(text, 24, "∞");
  else
    snprintf(text, 24, "%zu", size);
}

static gl_status set_sizes(figure_page *p, const lab_recipe *r, gl_error *err) {
  char(*text)[24] = calloc(r->n_sizes, sizeof *text);
  const char **names = calloc(r->n_sizes, sizeof *names);
  gl_status status = text && names ? GL_OK : gl_fail_memory(err, "the names of a figure");
  for (size_t i = 0; i < r->n_sizes && status == GL_OK; ++i) {
    size_text(r->group_size[i], text[i]);
    names[i] = text[i];
  }
  if (status == GL_OK) {
    page_set(p, "sizes", (double)r->n_sizes);
    page_set_texts(p, "size_name", names, r->n_sizes);
  }
  free(names);
  free(text);
  return status;
}

/* Of algorithms without any measurement the legend would promise a curve that is not there. */
static gl_status leave_out_algorithms(figure_page *p, const lab_table *t, gl_error *err) {
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

gl_status lab_page_variables(figure_page *p, const lab_table *t, gl_error *err) {
  gl_status status = lab_page_algorithms(p, t->recipe, err);
  if (status == GL_OK) status = set_sizes(p, t->recipe, err);
  return status == GL_OK ? leave_out_algorithms(p, t, err) : status;
}

gl_status lab_page_open(figure_page *p, const lab_table *t, gl_error *err) {
  gl_status status = page_open(p, 0, NULL, err);
  if (status != GL_OK) return status;
  lab_table_tsv(t, p->data.stream);
  return lab_page_variables(p, t, err);
}

gl_status lab_page_sizes(figure_page *p, const lab_recipe *r, size_t most, gl_error *err) {
  size_t *picked = calloc(r->n_sizes, sizeof *picked);
  double *number = calloc(r->n_sizes, sizeof *number);
  gl_status status = picked && number ? GL_OK : gl_fail_memory(err, "the sizes of a figure");
  if (status == GL_OK) {
    const size_t n = page_pick(r->n_sizes, most, picked);
    for (size_t i = 0; i < n; ++i) number[i] = (double)picked[i] + 1;
    page_set(p, "shown", (double)n);
    page_set_numbers(p, "shown_size", number, n);
    for (size_t i = 0, k = 0; i < r->n_sizes && status == GL_OK; ++i) {
      char text[24];
      size_text(r->group_size[i], text);
      if (k < n && picked[k] == i)
        ++k;
      else
        status = page_leave_out(p, err, "G = %s", text);
    }
  }
  free(picked);
  free(number);
  return status;
}
