/* The section `problems`: runs that diverged or failed, with their reasons, and runs that are
 * missing. */
#include "experiments/report/study_internal.h"

#include <stdlib.h>
#include <string.h>

int has_problems(const report_study *t) {
  return t->diverged + t->failed + t->missing > 0;
}

static int is_like(const results_run *a, const results_run *b) {
  return a->status == b->status && a->algorithm == b->algorithm && a->group == b->group &&
         strcmp(a->reason, b->reason) == 0;
}

static void write_run_row(html *h, const report_study *t, const results_run *run,
                          const char *seeds) {
  html_row_begin(h);
  html_row_head(h, t->r->algorithms[run->algorithm]);
  html_cell(h, study_setting(t, run->group));
  html_cell(h, seeds);
  html_cell(h, run_status_name(run->status));
  html_markup(h, "<td class=\"words\">"), html_text(h, run->reason), html_markup(h, "</td>");
  html_row_end(h);
}

/* Runs of one cell that ended in the same way share a line. */
static gl_status write_ended(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"algorithm", "setting", "seeds", "ended", "because"};
  uint64_t *seeds = calloc(t->r->n_runs + 1, sizeof *seeds);
  gl_status status = seeds != NULL ? GL_OK : gl_fail_memory(err, "the seeds of a study");
  html_table_begin(h, "Runs that diverged or failed", heads, 5);
  for (size_t i = 0; i < t->r->n_runs && status == GL_OK; ++i) {
    const results_run *run = &t->r->runs[i];
    size_t n = 0, earlier = 0;
    if (run->status == RUN_DONE) continue;
    for (size_t k = 0; k < t->r->n_runs; ++k)
      if (is_like(run, &t->r->runs[k])) earlier += k < i, seeds[n++] = t->r->runs[k].seed;
    if (earlier > 0) continue;
    char *text = study_seeds_text(seeds, n);
    if (text == NULL)
      status = gl_fail_memory(err, "the seeds of a study");
    else
      write_run_row(h, t, run, text);
    free(text);
  }
  html_table_end(h);
  free(seeds);
  return status;
}

static gl_status write_gaps(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"algorithm", "setting", "#missing", "seeds"};
  if (!t->is_planned)
    html_markup(h, "<p>The file does not say which runs it is to hold: missing is what the grid of "
                   "its algorithms, settings and seeds has and the file has not.</p>\n");
  html_table_begin(h, "Runs that are missing", heads, 4);
  for (size_t i = 0; i < t->n_gaps; ++i) {
    const report_gap *gap = &t->gaps[i];
    char *text = study_seeds_text(gap->seeds, gap->n);
    if (text == NULL) return gl_fail_memory(err, "the seeds of a study");
    html_row_begin(h);
    html_row_head(h, gap->algorithm);
    html_cell(h, gap->setting);
    html_cell_count(h, gap->n);
    html_cell(h, text);
    html_row_end(h);
    free(text);
  }
  html_table_end(h);
  return GL_OK;
}

gl_status section_problems(html *h, const report_study *t, gl_error *err) {
  gl_status status = GL_OK;
  if (t->diverged + t->failed > 0) status = write_ended(h, t, err);
  if (status == GL_OK && t->missing > 0) status = write_gaps(h, t, err);
  return status;
}
