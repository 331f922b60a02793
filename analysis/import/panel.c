/* CSV files exported from Weights & Biases panels.
 *
 * The first column is the panel's x axis. Every other column is one quantity of one run, with the
 * heading "[tag]RUN - metric" (the tag is optional). Columns that end in __MIN or __MAX and W&B's
 * own bookkeeping (_step, _runtime, _timestamp) are skipped. Cells may be quoted, and are empty
 * where a run has no value. A byte-order mark, CRLF line ends and empty lines are accepted. Any
 * other deviation is an error with file:line:column. */
#include "analysis/import/formats.h"

#include "core/base/display_text.h"
#include "core/base/file.h"
#include "core/base/records.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* State of the panel reader. */
typedef struct panel_reader {
  csv_reader csv;
  series_table *table;
  size_t *series_of; /* [n_columns] index into table->series, or NOT_A_METRIC */
  size_t n_columns;
} panel_reader;

static const size_t NOT_A_METRIC = (size_t)-1;

/* --- header --- */

static const char *last_separator(const char *head) {
  const char *found = NULL;
  for (const char *p = strstr(head, " - "); p; p = strstr(p + 1, " - ")) found = p;
  return found;
}

static bool is_bookkeeping(const char *metric) {
  const size_t n = strlen(metric);
  return name_ends_with(metric, n, "__MIN") || name_ends_with(metric, n, "__MAX") ||
         strcmp(metric, "_step") == 0 || strcmp(metric, "_runtime") == 0 ||
         strcmp(metric, "_timestamp") == 0;
}

/* Adds the series of the column heading in r->csv.cell, split at `separator` (which is
 * overwritten). */
static gl_status add_panel_series(panel_reader *r, char *separator) {
  char *heading = r->csv.cell, *close = heading[0] == '[' ? strchr(heading, ']') : NULL;
  series s = {.run = heading, .metric = separator + 3};
  *separator = '\0';
  if (close && close < separator) {
    *close = '\0';
    s.tag = heading + 1;
    s.run = close + 1;
  }
  return series_add(r->table, &s, r->csv.err);
}

static bool panel_heading(const char *heading) {
  const char *separator = last_separator(heading);
  return separator && separator > heading && separator[3] != 0;
}

static gl_status header_cell(panel_reader *r, size_t column) {
  r->series_of[column] = NOT_A_METRIC;
  if (r->csv.cell_length > IMPORT_MOST_NAME)
    return csv_fail(&r->csv, "the heading is longer than 1000 bytes", "name the run shorter");
  if (column == 0) {
    r->table->axis = arena_text(&r->table->memory, r->csv.cell);
    return arena_check(&r->table->memory, "W&B header", r->csv.err);
  }
  const char *separator = last_separator(r->csv.cell);
  if (!panel_heading(r->csv.cell))
    return csv_fail(&r->csv, "this column is not headed 'RUN - metric'",
                    "export the CSV from a W&B line panel");
  if (is_bookkeeping(separator + 3)) return GL_OK;
  if (r->table->n_series == IMPORT_MOST_SERIES)
    return csv_fail(&r->csv, "there are more than 8192 series", "export fewer runs at once");
  r->series_of[column] = r->table->n_series;
  return add_panel_series(r, r->csv.cell + (separator - r->csv.cell));
}

static gl_status read_panel_header(panel_reader *r) {
  const char *remedy = "export the CSV from a W&B line panel";
  if (!csv_line(&r->csv)) {
    r->csv.line = r->csv.column = 1;
    return csv_fail(&r->csv, "the file is empty", remedy);
  }
  const size_t most = csv_most_cells(&r->csv);
  r->series_of = ARENA_ARRAY(&r->table->memory, size_t, most);
  if (!r->series_of) return gl_fail_memory(r->csv.err, "W&B header");
  gl_status status = GL_OK;
  for (int more = 1; more && status == GL_OK; r->n_columns++) {
    status = csv_cell(&r->csv, &more);
    if (status == GL_OK) status = header_cell(r, r->n_columns);
  }
  if (status == GL_OK && r->table->n_series == 0) {
    r->csv.column = 1;
    status = csv_fail(&r->csv, "no column holds a metric",
                      "export a panel whose columns are headed 'RUN - metric'");
  }
  return status;
}

/* --- lines --- */

static gl_status number_cell(panel_reader *r, size_t column, double *step) {
  double value = NAN;
  if (r->csv.cell_length > 0 && !csv_number(r->csv.cell, &value)) {
    char what[SHOWN_SIZE + 64];
    snprintf(what, sizeof what, "'%.40s' is not a number%s", shown(r->csv.cell).text,
             csv_overflows(r->csv.cell) ? " that a double holds" : "");
    return csv_fail(&r->csv, what,
                    column == 0 ? "choose Step as the panel's x axis and export it again"
                                : "write a decimal number or leave it empty");
  }
  if (column == 0) {
    if (!isfinite(value))
      return csv_fail(&r->csv, "the line has no position on the x axis", "fill in its first cell");
    *step = value;
  } else if (r->series_of[column] != NOT_A_METRIC && r->csv.cell_length > 0) {
    return series_append(&r->table->series[r->series_of[column]], *step, value, r->csv.line,
                         r->csv.err);
  }
  return GL_OK;
}

static gl_status read_numbers(panel_reader *r) {
  double step = NAN;
  size_t column = 0;
  for (int more = 1; more; column++) {
    gl_status status = csv_cell(&r->csv, &more);
    if (status == GL_OK && column >= r->n_columns)
      status =
          csv_fail(&r->csv, "the line has more cells than the header", "remove the extra cells");
    if (status == GL_OK) status = number_cell(r, column, &step);
    if (status != GL_OK) return status;
  }
  if (column < r->n_columns) {
    r->csv.column = (size_t)(r->csv.line_end - r->csv.line_start) + 1;
    return csv_fail(&r->csv, "the line has fewer cells than the header",
                    "write an empty cell for a missing value");
  }
  return GL_OK;
}

/* --- the format --- */

/* Returns *is = true if a column other than the first has a heading in the form of panels. */
static gl_status recognise_panel(bool *is, const import_file *f, gl_error *err) {
  csv_reader r;
  *is = false;
  if (!import_separates(f, ',')) return GL_OK;
  gl_status status = csv_begin(&r, f->text, f->size, f->name, err);
  if (status != GL_OK) return status;
  if (csv_line(&r))
    for (int more = 1, column = 0; more && status == GL_OK; column++) {
      status = csv_cell(&r, &more);
      if (status == GL_OK && column > 0) *is |= panel_heading(r.cell);
    }
  csv_end(&r);
  return status;
}

static gl_status read_panel(series_table **out, const import_file *f, gl_error *err) {
  *out = NULL;
  panel_reader r = {.n_columns = 0};
  gl_status status = csv_begin(&r.csv, f->text, f->size, f->name, err);
  if (status != GL_OK) return status;
  r.table = series_table_new();
  status = r.table ? read_panel_header(&r) : gl_fail_memory(err, "W&B table");
  size_t rows = 0;
  for (; status == GL_OK && csv_line(&r.csv); rows++) status = read_numbers(&r);
  if (status == GL_OK && rows == 0)
    status = gl_fail(err, GL_EINPUT, "%s: there are no records in it; export it again", f->name);
  csv_end(&r.csv);
  if (status == GL_OK)
    *out = r.table;
  else
    series_table_free(r.table);
  return status;
}

static gl_status rows_of_panel(sheet *out, const import_file *f, gl_error *err) {
  return sheet_read(out, f->text, f->size, SHEET_COMMAS, f->name, err);
}

const import_format format_panel = {.about = "CSV of a W&B panel",
                                    .is_general = true,
                                    .recognise = recognise_panel,
                                    .rows = rows_of_panel,
                                    .series = read_panel};
