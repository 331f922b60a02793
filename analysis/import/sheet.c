/* Reads CSV, TSV and JSON Lines into rows of named cells. */
#include "analysis/import/formats.h"

#include "core/base/array.h"
#include "core/base/json.h"
#include "core/base/records.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sheet_fini(sheet *s) {
  free(s->heading), free(s->cells), free(s->row), free(s->line), free(s->texts);
  arena_fini(&s->memory);
  *s = (sheet){0};
}

/* --- adding rows and columns --- */

static gl_status begin_row(sheet *s, size_t line, gl_error *err) {
  size_t line_room = s->row_room;
  if (!ARRAY_RESERVE(s->line, line_room, s->n_rows + 2) ||
      !ARRAY_RESERVE(s->row, s->row_room, s->n_rows + 2))
    return gl_fail_memory(err, "rows of a table");
  s->line[s->n_rows] = line;
  s->row[s->n_rows++] = s->n_cells;
  s->row[s->n_rows] = s->n_cells;
  return GL_OK;
}

static gl_status add_cell(sheet *s, size_t column, size_t place, const char *text, size_t size,
                          gl_error *err) {
  if (!ARRAY_RESERVE(s->cells, s->cell_room, s->n_cells + 1) ||
      !ARRAY_RESERVE(s->texts, s->text_room, s->n_texts + size + 1))
    return gl_fail_memory(err, "cells of a table");
  s->cells[s->n_cells++] = (sheet_cell){(uint32_t)column, (uint32_t)place, s->n_texts};
  memcpy(s->texts + s->n_texts, text, size);
  s->n_texts += size;
  s->texts[s->n_texts++] = '\0';
  s->row[s->n_rows] = s->n_cells;
  return GL_OK;
}

/* Returns the reason why a column cannot be added; NULL if it was. */
static const char *add_column(sheet *s, const char *heading, size_t size) {
  if (size > IMPORT_MOST_NAME) return "the heading is longer than 1000 bytes";
  if (s->n_columns == IMPORT_MOST_COLUMNS) return "there are more than 4096 columns";
  char *copy = ARENA_ARRAY(&s->memory, char, size + 1);
  const char **added = copy ? ARRAY_ADD(s->heading, s->n_columns) : NULL;
  if (!added) return "there is not enough memory";
  memcpy(copy, heading, size);
  *added = copy;
  return NULL;
}

/* --- cells --- */

static const sheet_cell *find_cell(const sheet *s, size_t row, size_t column) {
  const size_t from = s->row[row], to = s->row[row + 1];
  /* Fast path: in rows without empty cells, cell i is column i. */
  if (column < to - from && s->cells[from + column].column == column)
    return &s->cells[from + column];
  for (size_t i = from; i < to; i++)
    if (s->cells[i].column == column) return &s->cells[i];
  return NULL;
}

const char *sheet_text(const sheet *s, size_t row, size_t column) {
  const sheet_cell *cell = find_cell(s, row, column);
  return cell ? s->texts + cell->text : NULL;
}

gl_status sheet_fail(const sheet *s, size_t row, size_t column, gl_error *err, const char *format,
                     ...) {
  char text[700];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const sheet_cell *cell = row < s->n_rows ? find_cell(s, row, column) : NULL;
  return gl_fail(err, GL_EINPUT, "%s:%zu:%zu: %s", s->name,
                 row < s->n_rows ? s->line[row] : (size_t)1, cell ? (size_t)cell->place : (size_t)1,
                 text);
}

/* --- separated values --- */

/* Skips comment lines before the headings. */
static void skip_comments(csv_reader *r) {
  while (r->next < r->end && *r->next == '#') {
    const char *newline = memchr(r->next, '\n', (size_t)(r->end - r->next));
    r->next = newline ? newline + 1 : r->end;
    r->line++;
  }
}

/* The cell without surrounding spaces, which some programs write after commas. */
static const char *trimmed(const csv_reader *r, size_t *size) {
  const char *from = r->cell, *to = r->cell + r->cell_length;
  while (from < to && *from == ' ') from++;
  while (to > from && to[-1] == ' ') to--;
  *size = (size_t)(to - from);
  return from;
}

static gl_status read_csv_headings(sheet *s, csv_reader *r) {
  gl_status status = GL_OK;
  skip_comments(r);
  if (!csv_line(r)) {
    r->line = r->column = 1;
    return csv_fail(r, "the file is empty", "export it again");
  }
  for (int more = 1; more && status == GL_OK;) {
    if ((status = csv_cell(r, &more)) != GL_OK) break;
    size_t length;
    const char *text = trimmed(r, &length), *why = add_column(s, text, length);
    if (why) status = csv_fail(r, why, "export fewer columns, or give them shorter names");
  }
  return status;
}

/* Leaves out the last row if reading its line failed with `status`, and the line has no end: a
 * writer was at work, or stopped in the middle. Returns the new status. */
static gl_status leave_out_cut_row(sheet *s, gl_status status, bool has_end, gl_error *err) {
  if (status != GL_EINPUT || has_end || s->n_rows < 2) return status;
  s->n_cells = s->row[--s->n_rows];
  s->is_cut = true;
  gl_error_clear(err);
  return GL_OK;
}

static gl_status read_csv_row(sheet *s, csv_reader *r, gl_error *err) {
  gl_status status = begin_row(s, r->line, err);
  size_t column = 0;
  for (int more = 1; more && status == GL_OK; column++) {
    if ((status = csv_cell(r, &more)) != GL_OK) break;
    size_t length;
    const char *text = trimmed(r, &length);
    if (column >= s->n_columns)
      status = csv_fail(r, "the line has more cells than the header", "remove the extra cells");
    else if (length > 0)
      status = add_cell(s, column, r->column, text, length, err);
  }
  if (status != GL_OK || column == s->n_columns) return status;
  r->column = (size_t)(r->line_end - r->line_start) + 1;
  return csv_fail(r, "the line has fewer cells than the header",
                  "write an empty cell for a missing value");
}

static gl_status read_separated(sheet *s, const char *text, size_t size, char separator,
                                gl_error *err) {
  csv_reader r;
  gl_status status = csv_begin_separated(&r, text, size, separator, s->name, err);
  if (status != GL_OK) return status;
  status = read_csv_headings(s, &r);
  while (status == GL_OK && csv_line(&r)) status = read_csv_row(s, &r, err);
  status = leave_out_cut_row(s, status, r.line_end != text + size, err);
  csv_end(&r);
  return status;
}

/* --- JSON Lines --- */

/* A JSON line being parsed. Lines repeat their keys in order, so the search for a key starts after
 * the previous one. */
typedef struct json_line {
  sheet *to;
  json_reader json;
  size_t expected;
  size_t *last; /* [IMPORT_MOST_COLUMNS] last line that had the column; 0: none */
  size_t line;
  char path[IMPORT_MOST_NAME + 2];
  gl_error *err;
} json_line;

static void find_json_column(json_line *l, size_t *column) {
  sheet *s = l->to;
  for (size_t i = 0; i < s->n_columns; i++) {
    *column = (l->expected + i) % s->n_columns;
    if (strcmp(s->heading[*column], l->path) != 0) continue;
    l->expected = *column + 1;
    return;
  }
  *column = s->n_columns;
  const char *why = add_column(s, l->path, strlen(l->path));
  if (why) json_fail(&l->json, "%s; write fewer keys, or shorter ones", why);
  l->expected = s->n_columns;
}

static void add_json_text(json_line *l, size_t place, const char *text, size_t size) {
  size_t column;
  if (l->json.status != GL_OK) return;
  find_json_column(l, &column);
  if (l->json.status != GL_OK) return;
  if (l->last[column] == l->line) {
    json_fail(&l->json, "the key '%.60s' stands twice on this line; write it once", l->path);
    return;
  }
  l->last[column] = l->line;
  gl_status status = add_cell(l->to, column, place, text, size, l->err);
  if (status != GL_OK) l->json.status = status;
}

static void read_json_object(json_line *l);

/* Reads the value of the key in l->path. */
static void read_json_value(json_line *l) {
  json_reader *r = &l->json;
  const char first = json_peek(r);
  const size_t from = r->at;
  if (first == '{') {
    read_json_object(l);
  } else if (first == 'n') {
    json_null(r);
  } else if (first == '[') {
    json_skip(r);
    l->to->n_left_out++;
  } else if (first == '"') {
    json_string(r);
    if (r->status == GL_OK && r->word_size > 0) add_json_text(l, from + 1, r->word, r->word_size);
  } else {
    json_skip(r);
    if (r->status == GL_OK) add_json_text(l, from + 1, r->text + from, r->at - from);
  }
}

/* Appends "/key" to the path; reports an error if it becomes too long. */
static int extend_path(json_line *l, const char *key) {
  const size_t n = strlen(l->path), room = sizeof l->path - n;
  const int length = snprintf(l->path + n, room, "%s%s", n ? "/" : "", key);
  if (length >= 0 && (size_t)length < room) return 1;
  json_fail(&l->json, "a key, with those around it, is longer than 1000 bytes; write it shorter");
  return 0;
}

static void read_json_object(json_line *l) {
  const size_t n = strlen(l->path);
  int is_media = 0;
  json_enter(&l->json, '{');
  while (json_member(&l->json)) {
    is_media |= strcmp(l->json.word, "_type") == 0;
    if (is_media)
      json_skip(&l->json);
    else if (extend_path(l, l->json.word))
      read_json_value(l);
    l->path[n] = '\0';
  }
  if (is_media) l->to->n_left_out++;
}

static gl_status read_json_line(sheet *s, const char *text, size_t size, size_t line, size_t *last,
                                gl_error *err) {
  json_line l = {.to = s, .last = last, .line = line, .err = err};
  json_begin(&l.json, text, size, s->name, err);
  l.json.first_line = line;
  l.json.python_numbers = 1;
  gl_status status = begin_row(s, line, err);
  if (status != GL_OK) return status;
  if (json_peek(&l.json) != '{')
    json_fail(&l.json, "this line is not a JSON object; write one object on each line");
  else
    read_json_object(&l);
  return json_end(&l.json);
}

static gl_status read_json_lines(sheet *s, const char *text, size_t size, gl_error *err) {
  size_t *last = ARENA_ARRAY(&s->memory, size_t, IMPORT_MOST_COLUMNS);
  gl_status status = last ? GL_OK : gl_fail_memory(err, "a table");
  size_t line = 0;
  if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3, size -= 3;
  for (const char *p = text, *end = text + size; p < end && status == GL_OK;) {
    const char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline ? newline : end;
    size_t blank = 0;
    while (p + blank < stop && memchr(" \t\r", p[blank], 3)) blank++;
    line++;
    if (stop - p > CSV_LINE_LIMIT)
      status =
          gl_fail(err, GL_EINPUT, "%s:%zu:1: the line is longer than 10 MiB; write shorter ones",
                  s->name, line);
    else if (p + blank < stop)
      status = read_json_line(s, p, (size_t)(stop - p), line, last, err);
    status = leave_out_cut_row(s, status, newline != NULL, err);
    p = newline ? newline + 1 : end;
  }
  return status;
}

gl_status sheet_read(sheet *out, const char *text, size_t size, sheet_syntax syntax,
                     const char *name, gl_error *err) {
  *out = (sheet){0};
  out->name = arena_text(&out->memory, name);
  if (!out->name) return gl_fail_memory(err, "a table");
  gl_status status = GL_OK;
  switch (syntax) {
  case SHEET_COMMAS:
    status = read_separated(out, text, size, ',', err);
    break;
  case SHEET_TABS:
    status = read_separated(out, text, size, '\t', err);
    break;
  case SHEET_JSON_LINES:
    out->is_json = 1;
    status = read_json_lines(out, text, size, err);
    break;
  }
  if (status == GL_OK && out->n_rows == 0)
    status = gl_fail(err, GL_EINPUT, "%s: there are no records in it; export it again", name);
  return status;
}

/* --- the formats --- */

gl_status import_refuse(const import_file *f, const char *what, const char *remedy, gl_error *err) {
  return gl_fail(err, GL_EINPUT, "%s:1:1: %s; %s", f->name, what, remedy);
}

bool import_separates(const import_file *f, char wanted) {
  bool quoted = false;
  for (size_t i = f->start; i < f->size && (quoted || f->text[i] != '\n'); i++) {
    if (f->text[i] == '"') quoted = !quoted;
    if (!quoted && f->text[i] == wanted) return true;
  }
  return false;
}

static gl_status recognise_json_lines(bool *is, const import_file *f, gl_error *err) {
  (void)err;
  *is = f->text[f->start] == '{';
  return GL_OK;
}

static gl_status json_lines_rows(sheet *out, const import_file *f, gl_error *err) {
  return sheet_read(out, f->text, f->size, SHEET_JSON_LINES, f->name, err);
}

const import_format format_json_lines = {.about = "JSON Lines",
                                         .is_general = true,
                                         .recognise = recognise_json_lines,
                                         .rows = json_lines_rows};

static gl_status recognise_tabs(bool *is, const import_file *f, gl_error *err) {
  (void)err;
  *is = import_separates(f, '\t');
  return GL_OK;
}

static gl_status tabs_rows(sheet *out, const import_file *f, gl_error *err) {
  return sheet_read(out, f->text, f->size, SHEET_TABS, f->name, err);
}

const import_format format_tabs = {
    .about = "TSV", .is_general = true, .recognise = recognise_tabs, .rows = tabs_rows};

/* The format tried last takes every file, so that find_format() always has one, and refuses those
 * that are no table. */
static gl_status recognise_commas(bool *is, const import_file *f, gl_error *err) {
  *is = true;
  if (import_separates(f, ',')) return GL_OK;
  if (import_separates(f, ';'))
    return import_refuse(f, "the columns are separated by semicolons",
                         "write commas (and decimal points) instead", err);
  if (f->takes_one_column) return GL_OK;
  return import_refuse(f, "this is no table of several columns",
                       "give a W&B export, CSV, TSV, JSON Lines or a study", err);
}

static gl_status commas_rows(sheet *out, const import_file *f, gl_error *err) {
  return sheet_read(out, f->text, f->size, SHEET_COMMAS, f->name, err);
}

const import_format format_commas = {
    .about = "CSV", .is_general = true, .recognise = recognise_commas, .rows = commas_rows};
