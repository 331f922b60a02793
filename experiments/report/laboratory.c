/* The section `laboratory`: what `gepolab bias` measured and kept in the study's file. */
#include "experiments/report/query.h"
#include "experiments/report/study_internal.h"

#include <math.h>

static const char *const tables[] = {"bias", NULL};

static gl_status count_one(void *context, sqlite3_stmt *record, gl_error *err) {
  (void)record, (void)err;
  ++*(size_t *)context;
  return GL_OK;
}

int has_laboratory(const report_study *t) {
  size_t n = 0;
  return query_each(t->from, tables, "SELECT 1 FROM bias WHERE study = ?1 LIMIT 1", t->name,
                    count_one, &n, NULL) == GL_OK &&
         n > 0;
}

static gl_status write_measurement(void *context, sqlite3_stmt *record, gl_error *err) {
  html *h = context;
  (void)err;
  html_row_begin(h);
  html_row_head(h, query_text(record, 0));
  html_cell(h, query_text(record, 1));
  if (isnan(query_number(record, 2)))
    html_markup(h, "<td class=\"n\">∞</td>");
  else
    html_cell_number(h, query_number(record, 2));
  for (int i = 3; i < 11; ++i) html_cell_number(h, query_number(record, i));
  html_row_end(h);
  return GL_OK;
}

gl_status section_laboratory(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"algorithm",  "method", "#group size", "#KL(p‖q) / nats",
                                      "#staleness", "#bias",  "#cosine",     "#scaled bias",
                                      "#variance",  "#MSE",   "#scaled MSE"};
  html_markup(h, "<p>Moments of the gradient estimate, measured by <code>gepolab bias</code>: "
                 "exactly, or by Monte Carlo where the method says so. Its figures are not on this "
                 "page, for the file does not keep the recipe that they need: "
                 "<code>gepolab bias RECIPE --figures FOLDER</code> measures again and draws "
                 "them.</p>\n");
  html_table_begin(h, "Bias, variance and mean squared error", heads, 11);
  gl_status status = query_each(
      t->from, tables,
      "SELECT algorithm, method, group_size, kl_exact, staleness, bias, cosine, scaled_bias,"
      " variance, mse, scaled_mse FROM bias WHERE study = ?1 ORDER BY algorithm, group_size IS "
      "NULL,"
      " group_size, ordinal",
      t->name, write_measurement, h, err);
  html_table_end(h);
  return status;
}
