/* The section `provenance`: which program made the runs, on which machines. */
#include "experiments/report/query.h"
#include "experiments/report/study_internal.h"

static gl_status write_maker(void *context, sqlite3_stmt *record, gl_error *err) {
  html *h = context;
  (void)err;
  html_row_begin(h);
  html_row_head(h, query_text(record, 0));
  html_cell(h, query_text(record, 1));
  html_cell_number(h, query_number(record, 2));
  html_cell_number(h, query_number(record, 3));
  html_cell_number(h, query_number(record, 4));
  html_row_end(h);
  return GL_OK;
}

gl_status section_provenance(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"gepolab", "machine", "#runs", "#hours",
                                      "#meaning of recipes"};
  html_table_begin(h, "What made the runs", heads, 5);
  static const char *const tables[] = {"runs", NULL};
  gl_status status = query_each(
      t->from, tables,
      "SELECT code_version, machine, count(*), sum(wall_s) / 3600, meaning FROM runs WHERE study ="
      " ?1 GROUP BY code_version, machine, meaning ORDER BY code_version, machine, meaning",
      t->name, write_maker, h, err);
  html_table_end(h);
  html_markup(h, "<p>Hours are those of the processes that made the runs, one after another."
                 "</p>\n");
  return status;
}
