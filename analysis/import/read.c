/* Which reader a file needs. */
#include "analysis/import/read.h"

#include "analysis/import/panel.h"
#include "core/base/csv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum file_kind { KIND_PANEL, KIND_COMMAS, KIND_TABS, KIND_JSON_LINES } file_kind;

/* --- what it is --- */

static gl_status refuse(const char *name, const char *what, const char *remedy, gl_error *err) {
  return gl_fail(err, GL_EINPUT, "%s:1:1: %s; %s", name, what, remedy);
}

/* Kinds of files that people have beside these, by their first bytes. */
static const struct {
  const char *bytes;
  size_t n;
  const char *what, *remedy;
} others[] = {
    {"\x1f\x8b", 2, "this is a compressed file", "unpack it with gunzip"},
    {"PK\x03\x04", 4, "this is a zip file or a spreadsheet", "unpack it, or save it as CSV"},
    {"PAR1", 4, "this is a Parquet file", "write it as CSV, as with pandas' to_csv()"},
    {"\x89HDF", 4, "this is an HDF5 file", "write its tables as CSV"},
    {"\xff\xfe", 2, "this is UTF-16", "save it as UTF-8"},
    {"\xfe\xff", 2, "this is UTF-16", "save it as UTF-8"},
    {"[", 1, "this is a JSON array", "write one object on each line, as with jq -c '.[]'"},
    {"<", 1, "this is HTML or XML", "export the data as CSV"},
};

static gl_status refuse_others(const char *text, size_t size, const char *name, gl_error *err) {
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (size >= others[i].n && memcmp(text, others[i].bytes, others[i].n) == 0)
      return refuse(name, others[i].what, others[i].remedy, err);
  const char *end = memchr(text, '\r', size);
  if (end && end + 1 < text + size && !memchr(text, '\n', size))
    return refuse(name, "the lines end with carriage returns alone",
                  "save it with line feeds, as with tr '\\r' '\\n'", err);
  return GL_OK;
}

/* Whether the character stands in the first line outside of quotes. */
static int separates(const char *text, size_t size, char wanted) {
  int quoted = 0;
  for (size_t i = 0; i < size && (quoted || text[i] != '\n'); i++) {
    if (text[i] == '"') quoted = !quoted;
    if (!quoted && text[i] == wanted) return 1;
  }
  return 0;
}

/* Whether some column of the first line is headed as those of W&B's panels are. */
static gl_status has_panel_headings(const char *text, size_t size, const char *name, int *has,
                                    gl_error *err) {
  csv_reader r;
  *has = 0;
  gl_status status = csv_begin(&r, text, size, name, err);
  if (status != GL_OK) return status;
  if (csv_line(&r))
    for (int more = 1, column = 0; more && status == GL_OK; column++) {
      status = csv_cell(&r, &more);
      if (status == GL_OK && column > 0) *has |= panel_heading(r.cell);
    }
  csv_end(&r);
  return status;
}

/* one_column: whether a table may have no more. */
static gl_status recognise(file_kind *kind, const char *text, size_t size, const char *name,
                           int one_column, gl_error *err) {
  size_t at = size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
  int panel = 0;
  while (at < size && (text[at] == '#' || (text[at] && strchr(" \t\r\n", text[at])))) {
    const char *newline = text[at] == '#' ? memchr(text + at, '\n', size - at) : text + at;
    at = newline ? (size_t)(newline - text) + 1 : size;
  }
  if (at == size) return refuse(name, "the file is empty", "export it again", err);
  gl_status status = refuse_others(text + at, size - at, name, err);
  if (status != GL_OK) return status;
  if (text[at] == '{') {
    *kind = KIND_JSON_LINES;
    return GL_OK;
  }
  if (separates(text + at, size - at, '\t')) {
    *kind = KIND_TABS;
    return GL_OK;
  }
  if (!separates(text + at, size - at, ',')) {
    if (separates(text + at, size - at, ';'))
      return refuse(name, "the columns are separated by semicolons",
                    "write commas (and decimal points) instead", err);
    if (!one_column)
      return refuse(name, "this is no table of several columns",
                    "give a W&B export, CSV, TSV, JSON Lines or a study", err);
  }
  status = has_panel_headings(text, size, name, &panel, err);
  *kind = panel ? KIND_PANEL : KIND_COMMAS;
  return status;
}

/* --- reading it --- */

static gl_status read_sheet(series_table **out, const char *text, size_t size, sheet_syntax syntax,
                            const char *name, const shape_request *request, gl_error *err) {
  static const shape_request plain = {0};
  sheet s;
  gl_status status = sheet_read(&s, text, size, syntax, name, err);
  if (status == GL_OK) status = shape_series(out, &s, request ? request : &plain, err);
  sheet_fini(&s);
  return status;
}

gl_status read_series_text(series_table **out, const char *text, size_t size, const char *name,
                           const shape_request *request, gl_error *err) {
  file_kind kind = KIND_COMMAS;
  *out = NULL;
  gl_status status = recognise(&kind, text, size, name, 0, err);
  if (status != GL_OK) return status;
  switch (kind) {
  case KIND_PANEL:
    return panel_parse(out, text, size, name, err);
  case KIND_COMMAS:
    return read_sheet(out, text, size, SHEET_COMMAS, name, request, err);
  case KIND_TABS:
    return read_sheet(out, text, size, SHEET_TABS, name, request, err);
  case KIND_JSON_LINES:
    return read_sheet(out, text, size, SHEET_JSON_LINES, name, request, err);
  }
  return gl_fail(err, GL_EINTERNAL, "%s: a kind of file without a reader", name);
}

gl_status read_series(series_table **out, const char *path, const shape_request *request,
                      gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  *out = NULL;
  gl_status status = csv_load(&text, &size, path, err);
  if (status == GL_OK) status = read_series_text(out, text, size, path, request, err);
  free(text);
  return status;
}

static sheet_syntax syntax_of(file_kind kind) {
  switch (kind) {
  case KIND_PANEL:
  case KIND_COMMAS:
    return SHEET_COMMAS;
  case KIND_TABS:
    return SHEET_TABS;
  case KIND_JSON_LINES:
    return SHEET_JSON_LINES;
  }
  return SHEET_COMMAS;
}

gl_status read_rows(sheet *out, const char *path, gl_error *err) {
  file_kind kind = KIND_COMMAS;
  char *text = NULL;
  size_t size = 0;
  *out = (sheet){.name = NULL};
  gl_status status = csv_load(&text, &size, path, err);
  if (status == GL_OK) status = recognise(&kind, text, size, path, 1, err);
  if (status == GL_OK) status = sheet_read(out, text, size, syntax_of(kind), path, err);
  free(text);
  return status;
}

gl_status read_is_study(const char *path, int *is, gl_error *err) {
  char head[16] = {0};
  *is = 0;
  FILE *f = fopen(path, "rb");
  if (!f)
    return gl_fail(err, GL_EIO, "%s: cannot be opened (%s); check its name and permissions", path,
                   strerror(errno));
  const size_t n = fread(head, 1, sizeof head, f);
  fclose(f);
  *is = n == sizeof head && memcmp(head, "SQLite format 3", sizeof head) == 0;
  return GL_OK;
}
