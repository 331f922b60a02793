/* The section `rates`: the learning rate that was chosen for each algorithm. */
#include "experiments/report/query.h"
#include "experiments/report/study_internal.h"

static gl_status count_one(void *context, sqlite3_stmt *record, gl_error *err) {
  (void)record, (void)err;
  ++*(size_t *)context;
  return GL_OK;
}

static const char *const tables[] = {"tuned", NULL};
static const char question[] =
    "SELECT algorithm, lr, score FROM tuned WHERE study = ?1 ORDER BY algorithm";

int has_rates(const report_study *t) {
  size_t n = 0;
  return query_each(t->from, tables, question, t->name, count_one, &n, NULL) == GL_OK && n > 0;
}

static gl_status write_rate(void *context, sqlite3_stmt *record, gl_error *err) {
  html *h = context;
  (void)err;
  html_row_begin(h);
  html_row_head(h, query_text(record, 0));
  html_cell_number(h, query_number(record, 1));
  html_cell_number(h, query_number(record, 2));
  html_row_end(h);
  return GL_OK;
}

gl_status section_rates(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"algorithm", "#learning rate", "#score"};
  html_markup(h, "<p>Each algorithm has the rate with the highest score on seeds that are not "
                 "reported, over all settings.</p>\n");
  html_table_begin(h, "Learning rates chosen", heads, 3);
  gl_status status = query_each(t->from, tables, question, t->name, write_rate, h, err);
  html_table_end(h);
  return status;
}
