/* Sections read from tables of the study file: `rates`, `laboratory` and `provenance`. */
#include "core/base/json.h"
#include "experiments/report/study_internal.h"

#include <math.h>
#include <string.h>

static gl_status count_one(void *context, sqlite3_stmt *record, gl_error *err) {
  (void)record, (void)err;
  ++*(size_t *)context;
  return GL_OK;
}

/* Returns 1 if the query has at least one record. */
static int has_answer(const report_study *t, const char *const *tables, const char *sql) {
  size_t n = 0;
  return query_each(t->from, tables, sql, t->name, count_one, &n, NULL) == GL_OK && n > 0;
}

/* Section `provenance`: the versions, commits, machines, dates and commands of the runs. */

static const char *const run_tables[] = {"runs", "provenance", "superseded", NULL};
#define RUNS                                                                                       \
  " FROM runs r LEFT JOIN provenance p ON p.hash = r.provenance WHERE r.study = ?1 AND r.key NOT " \
  "IN"                                                                                             \
  " (SELECT key FROM superseded)"

/* --- programs and machines --- */

/* Writes a commit and whether the files were modified. dirty: 1, 0, or NaN if unknown. */
static void write_commit(html *h, const char *source, double dirty) {
  if (*source == '\0') {
    html_cell(h, "–");
    return;
  }
  html_markup(h, "<td><code>"), html_textf(h, "%.12s", source), html_markup(h, "</code>");
  if (dirty == 1) html_markup(h, " <span class=\"missing\">with changes</span>");
  html_markup(h, "</td>");
}

/* Writes {"GSL":"2.7.1"} as words; anything else verbatim. */
static void write_libraries(html *h, const char *json) {
  cJSON *tree = json_tree_of(json);
  html_markup(h, "<td class=\"words\">");
  for (const cJSON *i = cJSON_IsObject(tree) ? tree->child : NULL; i != NULL; i = i->next)
    html_textf(h, "%s%s %s", i == tree->child ? "" : ", ", i->string,
               cJSON_IsString(i) ? i->valuestring : "");
  if (!cJSON_IsObject(tree)) html_text(h, *json ? json : "–");
  html_markup(h, "</td>");
  cJSON_Delete(tree);
}

static gl_status write_maker(void *context, sqlite3_stmt *record, gl_error *err) {
  html *h = context;
  (void)err;
  html_row_begin(h);
  html_row_head(h, query_text(record, 0));
  write_commit(h, query_text(record, 1), query_number(record, 2));
  html_cell(h, query_text(record, 3));
  html_cell_number(h, query_number(record, 4));
  html_cell_number(h, query_number(record, 5));
  html_cell_number(h, query_number(record, 6) / (1 << 20));
  html_cell(h, *query_text(record, 7) ? query_text(record, 7) : "–");
  write_libraries(h, query_text(record, 8));
  html_row_end(h);
  return GL_OK;
}

static gl_status write_makers(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"gepolab",  "commit",   "machine",
                                      "#runs",    "#hours",   "#most memory / MiB",
                                      "compiler", "libraries"};
  html_table_begin(h, "What made the runs", heads, 8);
  gl_status status = query_each(
      t->from, run_tables,
      "SELECT coalesce(p.version, r.code_version), p.source, p.dirty, coalesce(p.processor || ', '"
      " || p.system, r.machine), count(*), sum(r.wall_s) / 3600, max(r.peak_bytes), p.compiler,"
      " p.libraries" RUNS " GROUP BY 1, 2, 3, 4, 8, 9 ORDER BY 1, 2, 3, 4, 8, 9",
      t->name, write_maker, h, err);
  html_table_end(h);
  html_markup(h, "<p>Hours are those of all processes that made runs, added up.</p>\n");
  return status;
}

/* --- dates and commands --- */

static gl_status write_dates(void *context, sqlite3_stmt *record, gl_error *err) {
  html *h = context;
  (void)err;
  if (*query_text(record, 0) == '\0') return GL_OK;
  html_markup(h, "<p>The first run was finished at ");
  html_text(h, query_text(record, 0)), html_markup(h, ", the last at ");
  html_text(h, query_text(record, 1)), html_markup(h, ".</p>\n");
  return GL_OK;
}

typedef struct commands {
  html *h;
  size_t n;
} commands;

static gl_status write_command(void *context, sqlite3_stmt *record, gl_error *err) {
  commands *c = context;
  (void)err;
  if (c->n++ == 0)
    html_markup(c->h, "<p>The commands, with how many runs each has made:</p>\n"
                      "<pre class=\"wide\" tabindex=\"0\"><code>");
  html_textf(c->h, "%s  # %.0f\n", query_text(record, 0), query_number(record, 1));
  return GL_OK;
}

gl_status section_provenance(html *h, const report_study *t, gl_error *err) {
  commands c = {h, 0};
  gl_status status = write_makers(h, t, err);
  if (status == GL_OK)
    status = query_each(t->from, run_tables, "SELECT min(r.finished), max(r.finished)" RUNS,
                        t->name, write_dates, h, err);
  if (status == GL_OK)
    status = query_each(t->from, run_tables,
                        "SELECT p.command, count(*)" RUNS
                        " AND p.command != '' GROUP BY p.command ORDER BY min(r.finished), 1",
                        t->name, write_command, &c, err);
  if (c.n > 0) html_markup(h, "</code></pre>\n");
  return status;
}

/* Section `rates`: the learning rate chosen for each algorithm. */

static const char *const rate_tables[] = {"tuned", NULL};
static const char rates_question[] =
    "SELECT algorithm, lr, score FROM tuned WHERE study = ?1 ORDER BY algorithm";

int has_rates(const report_study *t) {
  return has_answer(t, rate_tables, rates_question);
}

static gl_status add_chosen_rate(void *context, sqlite3_stmt *record, gl_error *err) {
  (void)err;
  table_row(context);
  table_text(context, query_text(record, 0));
  table_real(context, query_number(record, 1));
  table_real(context, query_number(record, 2));
  return GL_OK;
}

gl_status section_rates(html *h, const report_study *t, gl_error *err) {
  static const table_column columns[] = {TABLE_HEAD("algorithm"),
                                         {.type = TABLE_REAL, .head = "learning rate"},
                                         {.type = TABLE_REAL, .head = "score"}};
  table *to = table_new(columns, 3);
  table_title(to, "Learning rates chosen");
  html_markup(h, "<p>Each algorithm has the rate with the highest score on seeds that are not "
                 "reported, over all settings.</p>\n");
  gl_status status =
      query_each(t->from, rate_tables, rates_question, t->name, add_chosen_rate, to, err);
  html_table(h, to);
  return status;
}

/* Section `laboratory`: measurements of `gepolab lab bias` stored in the study file. */

static const char *const bias_tables[] = {"bias", NULL};

int has_laboratory(const report_study *t) {
  return has_answer(t, bias_tables, "SELECT 1 FROM bias WHERE study = ?1 LIMIT 1");
}

static gl_status add_measurement(void *context, sqlite3_stmt *record, gl_error *err) {
  (void)err;
  table_row(context);
  table_text(context, query_text(record, 0));
  table_text(context, query_text(record, 1));
  table_real(context, query_number(record, 2));
  if (isnan(query_number(record, 2))) table_shown(context, "∞");
  for (int i = 3; i < 11; ++i) table_real(context, query_number(record, i));
  return GL_OK;
}

gl_status section_laboratory(html *h, const report_study *t, gl_error *err) {
#define NUMBER(HEAD)                                                                               \
  { .type = TABLE_REAL, .head = HEAD }
  static const table_column columns[] = {
      TABLE_HEAD("algorithm"), TABLE_HEAD("method"), NUMBER("group size"), NUMBER("KL(p‖q) / nats"),
      NUMBER("staleness"),     NUMBER("bias"),       NUMBER("cosine"),     NUMBER("scaled bias"),
      NUMBER("variance"),      NUMBER("MSE"),        NUMBER("scaled MSE")};
#undef NUMBER
  table *to = table_new(columns, sizeof columns / sizeof *columns);
  table_title(to, "Bias, variance and mean squared error");
  html_markup(h, "<p>Moments of the gradient estimate, measured by <code>gepolab lab bias</code>: "
                 "exactly, or by Monte Carlo where the method says so. Its figures are not on this "
                 "page, for the file does not keep the recipe that they need: "
                 "<code>gepolab lab bias RECIPE --figures FOLDER</code> measures again and draws "
                 "them.</p>\n");
  gl_status status = query_each(
      t->from, bias_tables,
      "SELECT algorithm, method, group_size, kl_exact, staleness, bias, cosine, scaled_bias,"
      " variance, mse, scaled_mse FROM bias WHERE study = ?1 ORDER BY algorithm, group_size IS "
      "NULL,"
      " group_size, ordinal",
      t->name, add_measurement, to, err);
  html_table(h, to);
  return status;
}
