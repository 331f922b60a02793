/* Reads W&B exports: which column is which metric of which run, and its numbers. */
#include "analysis/wandb.h"

#include "core/base/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where reading stands. */
typedef struct reader {
  csv_reader csv;
  wandb_table *table;
  size_t *series_of; /* [n_columns] index into table->series, or NOT_A_METRIC */
  size_t n_columns;
} reader;

static const size_t NOT_A_METRIC = (size_t)-1;

/* --- header -------------------------------------------------------------------------------------
 */

static int ends_with(const char *text, const char *tail) {
  size_t n = strlen(text), m = strlen(tail);
  return n >= m && strcmp(text + n - m, tail) == 0;
}

static const char *last_separator(const char *head) {
  const char *found = NULL;
  for (const char *p = strstr(head, " - "); p; p = strstr(p + 1, " - ")) found = p;
  return found;
}

static int is_bookkeeping(const char *metric) {
  return ends_with(metric, "__MIN") || ends_with(metric, "__MAX") || strcmp(metric, "_step") == 0 ||
         strcmp(metric, "_runtime") == 0 || strcmp(metric, "_timestamp") == 0;
}

/* Adds the series of the column headed r->csv.cell, split at `separator`. */
static gl_status add_series(reader *r, const char *separator) {
  wandb_table *t = r->table;
  const char *run = r->csv.cell, *close = r->csv.cell[0] == '[' ? strchr(r->csv.cell, ']') : NULL;
  wandb_series s = {0};
  if (close && close < separator) {
    s.tag = strndup(r->csv.cell + 1, (size_t)(close - r->csv.cell) - 1);
    run = close + 1;
  } else {
    s.tag = strdup("");
  }
  s.run = strndup(run, (size_t)(separator - run));
  s.metric = strdup(separator + 3);
  t->series[t->n_series++] = s;
  return s.tag && s.run && s.metric ? GL_OK : gl_fail_memory(r->csv.err, "W&B series");
}

static gl_status header_cell(reader *r, size_t column) {
  r->series_of[column] = NOT_A_METRIC;
  if (column == 0) {
    r->table->axis = strdup(r->csv.cell);
    return r->table->axis ? GL_OK : gl_fail_memory(r->csv.err, "W&B header");
  }
  const char *separator = last_separator(r->csv.cell);
  if (!separator || separator == r->csv.cell || separator[3] == 0)
    return csv_fail(&r->csv, "this column is not headed 'RUN - metric'",
                    "export the CSV from a W&B line panel");
  if (is_bookkeeping(separator + 3)) return GL_OK;
  r->series_of[column] = r->table->n_series;
  return add_series(r, separator);
}

static gl_status read_header(reader *r) {
  const char *remedy = "export the CSV from a W&B line panel";
  if (!csv_line(&r->csv)) {
    r->csv.line = r->csv.column = 1;
    return csv_fail(&r->csv, "the file is empty", remedy);
  }
  const size_t most = csv_most_cells(&r->csv);
  r->series_of = calloc(most, sizeof *r->series_of);
  r->table->series = calloc(most, sizeof *r->table->series);
  if (!r->series_of || !r->table->series) return gl_fail_memory(r->csv.err, "W&B header");
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

/* --- lines --------------------------------------------------------------------------------------
 */

static gl_status number_cell(reader *r, size_t column, double *step) {
  double value = NAN;
  if (r->csv.cell_length > 0 && !csv_number(r->csv.cell, &value))
    return csv_fail(&r->csv, "this cell is not a number",
                    "write a decimal number or leave it empty");
  if (column == 0) {
    if (!isfinite(value))
      return csv_fail(&r->csv, "the line has no position on the x axis", "fill in its first cell");
    *step = value;
  } else if (r->series_of[column] != NOT_A_METRIC && !isnan(value)) {
    wandb_series *s = &r->table->series[r->series_of[column]];
    s->step[s->n] = *step;
    s->value[s->n++] = value;
  }
  return GL_OK;
}

static gl_status read_numbers(reader *r) {
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

/* --- the whole ----------------------------------------------------------------------------------
 */

static gl_status allocate_values(reader *r) {
  for (size_t i = 0; i < r->table->n_series; i++) {
    wandb_series *s = &r->table->series[i];
    s->step = calloc(r->csv.n_lines, sizeof *s->step);
    s->value = calloc(r->csv.n_lines, sizeof *s->value);
    if (!s->step || !s->value) return gl_fail_memory(r->csv.err, "W&B values");
  }
  return GL_OK;
}

gl_status wandb_parse(wandb_table **out, const char *text, size_t size, const char *name,
                      gl_error *err) {
  *out = NULL;
  reader r = {.n_columns = 0};
  gl_status status = csv_begin(&r.csv, text, size, name, err);
  if (status != GL_OK) return status;
  r.table = calloc(1, sizeof *r.table);
  status = r.table ? read_header(&r) : gl_fail_memory(err, "W&B table");
  if (status == GL_OK) status = allocate_values(&r);
  while (status == GL_OK && csv_line(&r.csv)) status = read_numbers(&r);
  csv_end(&r.csv);
  free(r.series_of);
  if (status == GL_OK)
    *out = r.table;
  else
    wandb_free(r.table);
  return status;
}

gl_status wandb_read(wandb_table **out, const char *path, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  *out = NULL;
  gl_status status = csv_load(&text, &size, path, err);
  if (status == GL_OK) status = wandb_parse(out, text, size, path, err);
  free(text);
  return status;
}

void wandb_free(wandb_table *table) {
  if (!table) return;
  for (size_t i = 0; i < table->n_series; i++) {
    wandb_series *s = &table->series[i];
    free(s->tag), free(s->run), free(s->metric), free(s->step), free(s->value);
  }
  free(table->series), free(table->axis), free(table);
}

/* --- choosing a series --------------------------------------------------------------------------
 */

/* Whether the metric has that component between slashes or at its ends. */
static int has_component(const char *metric, const char *component) {
  const size_t n = strlen(component);
  for (const char *p = metric; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
    if (strncmp(p, component, n) == 0 && (p[n] == 0 || p[n] == '/')) return 1;
  return 0;
}

/* "[tag]RUN", without brackets where there is no tag; with the metric where `whole`. */
static void series_name(const wandb_series *s, int whole, char *text, size_t size) {
  snprintf(text, size, "%s%s%s%s%s%s", *s->tag ? "[" : "", s->tag, *s->tag ? "]" : "", s->run,
           whole ? " - " : "", whole ? s->metric : "");
}

static int is_named(const wandb_series *s, const char *name) {
  char tagged[512], whole[512];
  series_name(s, 0, tagged, sizeof tagged);
  series_name(s, 1, whole, sizeof whole);
  return !name || strcmp(name, s->run) == 0 || strcmp(name, tagged) == 0 ||
         strcmp(name, whole) == 0;
}

/* The names of the series with that component, cut where the room ends. */
static void list_series(const wandb_table *t, const char *component, char *list, size_t size) {
  size_t n = 0;
  *list = 0;
  for (size_t i = 0; i < t->n_series && n < size; i++) {
    char name[512];
    if (!has_component(t->series[i].metric, component)) continue;
    series_name(&t->series[i], 1, name, sizeof name);
    n += (size_t)snprintf(list + n, size - n, "%s'%s'", n ? ", " : "", name);
  }
  if (n >= size && size > 3) strcpy(list + size - 4, "...");
}

gl_status wandb_choose(const wandb_series **out, const wandb_table *table,
                       const char *const *components, size_t n, const char *run, const char *file,
                       gl_error *err) {
  size_t matches = 0, metrics = 0;
  const char *component = NULL;
  *out = NULL;
  for (size_t k = 0; k < n && metrics == 0; k++) {
    component = components[k];
    for (size_t i = 0; i < table->n_series; i++) {
      if (!has_component(table->series[i].metric, component)) continue;
      metrics++;
      if (!is_named(&table->series[i], run)) continue;
      *out = &table->series[i];
      matches++;
    }
  }
  if (matches == 1) return GL_OK;
  *out = NULL;
  if (metrics == 0) {
    char list[256];
    size_t at = 0;
    for (size_t k = 0; k < n && at < sizeof list; k++)
      at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", k ? " or " : "", components[k]);
    return gl_fail(err, GL_EINPUT, "%s: no run has a metric %s; export that panel", file, list);
  }
  char list[400];
  list_series(table, component, list, sizeof list);
  if (matches == 0)
    return gl_fail(err, GL_EINPUT, "%s: no run '%s' has %s; there are: %s", file, run, component,
                   list);
  return gl_fail(err, GL_EINPUT,
                 "%s: %zu series of %s%s%s%s, and which one is meant is not said; "
                 "name its run, one of: %s",
                 file, matches, component, run ? " match '" : " are in the file", run ? run : "",
                 run ? "'" : "", list);
}
