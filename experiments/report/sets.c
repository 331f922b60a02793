/* The section `sets`: best and last by evaluation set. */
#include "analysis/sets.h"
#include "analysis/analyze.h"
#include "experiments/report/study_internal.h"

#include <stdlib.h>

int has_sets(const report_study *t) {
  return t->r != NULL && t->r->n_runs > 0 && t->r->runs[0].n_set_evals > 0;
}

static gl_status write_row(html *h, const report_study *t, const results_cell *cell, size_t set,
                           const char *name, gl_error *err) {
  interval ends[3];
  size_t runs;
  const gl_status status = analyze_set_cell(ends, &runs, t->r, cell, set, err);
  if (status != GL_OK) return status;
  html_row_begin(h);
  html_row_head(h, t->r->algorithms[cell->algorithm]);
  html_cell(h, name);
  html_cell_count(h, runs);
  for (size_t k = 0; k < 3; ++k) html_cell_interval(h, ends[k].value, ends[k].low, ends[k].high, 0);
  html_row_end(h);
  return GL_OK;
}

static gl_status write_setting(html *h, const report_study *t, size_t group,
                               const char *const *names, size_t n, gl_error *err) {
  gl_status status = GL_OK;
  html_markup(h, "</tbody>\n<tbody>\n<tr><th scope=\"rowgroup\" colspan=\"6\" class=\"group\">");
  html_text(h, study_setting(t, group));
  html_markup(h, "</th></tr>\n");
  for (size_t set = 0; set < n; ++set)
    for (size_t a = 0; a < t->r->n_algorithms && status == GL_OK; ++a) {
      const results_cell *cell = results_cell_at(t->r, group, a);
      if (cell->n > 0) status = write_row(h, t, cell, set, names[set], err);
    }
  return status;
}

gl_status section_sets(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"algorithm", "set",   "#runs",
                                      "#best",     "#last", "#best − last"};
  const char **names = NULL;
  size_t n = 0;
  gl_status status = sets_names(&names, &n, t->r, err);
  html_markup(h, "<p>The first set's score is the run's. A best is the largest of a set's own "
                 "scores.</p>\n");
  html_table_begin(h, "Evaluation scores by set", heads, 6);
  for (size_t g = 0; g < t->r->n_groups && status == GL_OK; ++g)
    status = write_setting(h, t, g, names, n, err);
  html_table_end(h);
  free(names);
  return status;
}
