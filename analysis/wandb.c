#include "analysis/wandb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where reading stands. A cell's text lies in `cell`, unquoted and ended by a zero. */
typedef struct reader {
  const char *at, *end, *line_start, *name;
  size_t line, column; /* of the cell read last, from 1 */
  char *cell;          /* room for a whole line */
  size_t cell_length;
  wandb_table *table;
  size_t *series_of; /* [n_columns] index into table->series, or NOT_A_METRIC */
  size_t n_columns;
  size_t capacity; /* values each series can hold */
  gl_error *err;
} reader;

static const size_t NOT_A_METRIC = (size_t)-1;

static gl_status refuse(const reader *r, const char *why, const char *remedy) {
  return gl_fail(r->err, GL_EINPUT, "%s:%zu:%zu: %s; %s", r->name, r->line, r->column, why, remedy);
}

/* --- lines and cells ----------------------------------------------------------------------------
 */

/* Finds the next line that is not empty: [r->at, *line_end). 0 at the end of the file. */
static int next_line(reader *r, const char **line_end) {
  while (r->at < r->end) {
    const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const char *stop = newline ? newline : r->end;
    r->line++;
    r->column = 1;
    r->line_start = r->at;
    *line_end = stop > r->at && stop[-1] == '\r' ? stop - 1 : stop;
    if (*line_end > r->at) return 1;
    r->at = newline ? newline + 1 : r->end;
  }
  return 0;
}

static void skip_line_end(reader *r) {
  if (r->at < r->end && *r->at == '\r') r->at++;
  if (r->at < r->end && *r->at == '\n') r->at++;
}

static gl_status quoted_cell(reader *r, const char *line_end) {
  for (r->at++;; r->at++) {
    if (r->at == line_end)
      return refuse(r, "a quote opens here and does not close on this line",
                    "close it, or double a quote that belongs to the text");
    if (*r->at == '"') {
      if (r->at + 1 == line_end || r->at[1] != '"') break;
      r->at++;
    }
    r->cell[r->cell_length++] = *r->at;
  }
  r->at++;
  if (r->at < line_end && *r->at != ',') {
    r->column = (size_t)(r->at - r->line_start) + 1;
    return refuse(r, "text follows a closing quote", "put a comma between the cells");
  }
  return GL_OK;
}

/* Reads one cell and the comma after it; *more says whether another cell follows. */
static gl_status next_cell(reader *r, const char *line_end, int *more) {
  r->column = (size_t)(r->at - r->line_start) + 1;
  r->cell_length = 0;
  gl_status status = GL_OK;
  if (r->at < line_end && *r->at == '"')
    status = quoted_cell(r, line_end);
  else
    while (r->at < line_end && *r->at != ',') r->cell[r->cell_length++] = *r->at++;
  r->cell[r->cell_length] = 0;
  if (status == GL_OK && memchr(r->cell, 0, r->cell_length))
    status = refuse(r, "the cell holds a zero byte", "export the panel again as CSV text");
  *more = status == GL_OK && r->at < line_end;
  if (*more) r->at++;
  return status;
}

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

/* Adds the series of the column headed r->cell, split at `separator`. */
static gl_status add_series(reader *r, const char *separator) {
  wandb_table *t = r->table;
  const char *run = r->cell, *close = r->cell[0] == '[' ? strchr(r->cell, ']') : NULL;
  wandb_series s = {0};
  if (close && close < separator) {
    s.tag = strndup(r->cell + 1, (size_t)(close - r->cell) - 1);
    run = close + 1;
  } else {
    s.tag = strdup("");
  }
  s.run = strndup(run, (size_t)(separator - run));
  s.metric = strdup(separator + 3);
  t->series[t->n_series++] = s;
  return s.tag && s.run && s.metric ? GL_OK : gl_fail_memory(r->err, "W&B series");
}

static gl_status header_cell(reader *r, size_t column) {
  r->series_of[column] = NOT_A_METRIC;
  if (column == 0) {
    r->table->axis = strdup(r->cell);
    return r->table->axis ? GL_OK : gl_fail_memory(r->err, "W&B header");
  }
  const char *separator = last_separator(r->cell);
  if (!separator || separator == r->cell || separator[3] == 0)
    return refuse(r, "this column is not headed 'RUN - metric'",
                  "export the CSV from a W&B line panel");
  if (is_bookkeeping(separator + 3)) return GL_OK;
  r->series_of[column] = r->table->n_series;
  return add_series(r, separator);
}

static gl_status read_header(reader *r) {
  const char *line_end;
  r->line = 0;
  if (!next_line(r, &line_end)) {
    r->line = r->column = 1;
    return refuse(r, "the file is empty", "export the CSV from a W&B line panel");
  }
  size_t commas = 0;
  for (const char *p = r->at; p < line_end; p++) commas += *p == ',';
  r->series_of = calloc(commas + 1, sizeof *r->series_of);
  r->table->series = calloc(commas + 1, sizeof *r->table->series);
  if (!r->series_of || !r->table->series) return gl_fail_memory(r->err, "W&B header");
  gl_status status = GL_OK;
  for (int more = 1; more && status == GL_OK; r->n_columns++) {
    status = next_cell(r, line_end, &more);
    if (status == GL_OK) status = header_cell(r, r->n_columns);
  }
  if (status != GL_OK) return status;
  skip_line_end(r);
  if (r->table->n_series == 0) {
    r->column = 1;
    return refuse(r, "no column holds a metric",
                  "export a panel whose columns are headed 'RUN - metric'");
  }
  return GL_OK;
}

/* --- rows ---------------------------------------------------------------------------------------
 */

/* A decimal number, NaN or Infinity, alone in the cell. */
static int cell_number(const char *cell, double *value) {
  if (strspn(cell, "+-0123456789.eE") != strlen(cell) && strcmp(cell, "NaN") != 0 &&
      strcmp(cell, "nan") != 0 && strcmp(cell, "Infinity") != 0 && strcmp(cell, "-Infinity") != 0 &&
      strcmp(cell, "inf") != 0 && strcmp(cell, "-inf") != 0)
    return 0;
  char *end;
  *value = strtod(cell, &end);
  return end != cell && *end == 0;
}

static gl_status row_cell(reader *r, size_t column, double *step) {
  double value = NAN;
  if (r->cell_length > 0 && !cell_number(r->cell, &value))
    return refuse(r, "this cell is not a number", "write a decimal number or leave it empty");
  if (column == 0) {
    if (!isfinite(value))
      return refuse(r, "the row has no position on the x axis", "fill in its first cell");
    *step = value;
  } else if (r->series_of[column] != NOT_A_METRIC && !isnan(value)) {
    wandb_series *s = &r->table->series[r->series_of[column]];
    s->step[s->n] = *step;
    s->value[s->n++] = value;
  }
  return GL_OK;
}

static gl_status read_row(reader *r, const char *line_end) {
  double step = NAN;
  size_t column = 0;
  for (int more = 1; more; column++) {
    gl_status status = next_cell(r, line_end, &more);
    if (status == GL_OK && column >= r->n_columns)
      status = refuse(r, "the row has more cells than the header", "remove the extra cells");
    if (status == GL_OK) status = row_cell(r, column, &step);
    if (status != GL_OK) return status;
  }
  if (column < r->n_columns) {
    r->column = (size_t)(line_end - r->line_start) + 1;
    return refuse(r, "the row has fewer cells than the header",
                  "write an empty cell for a missing value");
  }
  skip_line_end(r);
  return GL_OK;
}

/* --- the whole ----------------------------------------------------------------------------------
 */

/* Counts the lines and refuses one that is too long. */
static gl_status measure(reader *r, size_t *lines, size_t *longest) {
  *lines = *longest = 0;
  for (const char *p = r->at; p < r->end;) {
    const char *newline = memchr(p, '\n', (size_t)(r->end - p));
    const char *stop = newline ? newline : r->end;
    size_t length = (size_t)(stop - p);
    r->line = ++*lines;
    r->column = WANDB_LINE_LIMIT;
    if (length > WANDB_LINE_LIMIT)
      return refuse(r, "the line is longer than 10 MiB", "check that this is a W&B CSV export");
    if (length > *longest) *longest = length;
    p = newline ? newline + 1 : r->end;
  }
  return GL_OK;
}

static gl_status allocate_values(reader *r, size_t lines) {
  for (size_t i = 0; i < r->table->n_series; i++) {
    wandb_series *s = &r->table->series[i];
    s->step = calloc(lines, sizeof *s->step);
    s->value = calloc(lines, sizeof *s->value);
    if (!s->step || !s->value) return gl_fail_memory(r->err, "W&B values");
  }
  return GL_OK;
}

static gl_status read_table(reader *r) {
  size_t lines, longest;
  gl_status status = measure(r, &lines, &longest);
  if (status != GL_OK) return status;
  r->cell = malloc(longest + 1);
  if (!r->cell) return gl_fail_memory(r->err, "W&B line");
  status = read_header(r);
  if (status == GL_OK) status = allocate_values(r, lines);
  for (const char *line_end; status == GL_OK && next_line(r, &line_end);)
    status = read_row(r, line_end);
  return status;
}

gl_status wandb_parse(wandb_table **out, const char *text, size_t size, const char *name,
                      gl_error *err) {
  *out = NULL;
  reader r = {.at = text, .end = text + size, .name = name, .err = err};
  if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) r.at += 3;
  r.table = calloc(1, sizeof *r.table);
  if (!r.table) return gl_fail_memory(err, "W&B table");
  gl_status status = read_table(&r);
  free(r.cell), free(r.series_of);
  if (status == GL_OK)
    *out = r.table;
  else
    wandb_free(r.table);
  return status;
}

gl_status wandb_read(wandb_table **out, const char *path, gl_error *err) {
  *out = NULL;
  FILE *f = fopen(path, "rb");
  if (!f) return gl_fail(err, GL_EIO, "%s: cannot be opened; check its name and permissions", path);
  size_t size = 0, room = 1 << 16;
  char *text = malloc(room);
  while (text) {
    size += fread(text + size, 1, room - size, f);
    if (size < room) break;
    char *larger = room > (size_t)-1 / 2 ? NULL : realloc(text, room *= 2);
    if (!larger) free(text);
    text = larger;
  }
  gl_status status = !text       ? gl_fail_memory(err, "W&B file")
                     : ferror(f) ? gl_fail(err, GL_EIO, "%s: reading failed; is it a file?", path)
                                 : wandb_parse(out, text, size, path, err);
  fclose(f);
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

const wandb_series *wandb_find(const wandb_table *table, const char *part) {
  size_t n = strlen(part);
  for (size_t i = 0; i < table->n_series; i++) {
    const char *metric = table->series[i].metric;
    for (const char *p = strstr(metric, part); p; p = strstr(p + 1, part))
      if ((p == metric || p[-1] == '/') && (p[n] == 0 || p[n] == '/')) return &table->series[i];
  }
  return NULL;
}
