/* Detects a file's format and selects its reader. */
#include "analysis/import/read.h"

#include "analysis/import/formats.h"
#include "core/base/records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_ADDRESS(name) &format_##name,
static const import_format *const formats[] = {IMPORT_FORMATS(FORMAT_ADDRESS)};

/* Other common kinds of files, recognised by their first bytes to give a helpful error. */
static const struct {
  const char *bytes;
  size_t n;
  const char *what, *remedy;
} others[] = {
    {"\xfd"
     "7zXZ",
     5, "this is compressed with xz", "unpack it with unxz, or use gzip or zstd"},
    {"BZh", 3, "this is compressed with bzip2", "unpack it with bunzip2, or use gzip or zstd"},
    {"PK\x03\x04", 4, "this is a zip file or a spreadsheet", "unpack it, or save it as CSV"},
    {"PAR1", 4, "this is a Parquet file", "write it as CSV, as with pandas' to_csv()"},
    {"\x89HDF", 4, "this is an HDF5 file", "write its tables as CSV"},
    {"\xff\xfe", 2, "this is UTF-16", "save it as UTF-8"},
    {"\xfe\xff", 2, "this is UTF-16", "save it as UTF-8"},
    {"[", 1, "this is a JSON array", "write one object on each line, as with jq -c '.[]'"},
    {"<", 1, "this is HTML or XML", "export the data as CSV"},
};

static gl_status refuse_others(const import_file *f, gl_error *err) {
  const char *text = f->text + f->start;
  const size_t size = f->size - f->start;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (size >= others[i].n && memcmp(text, others[i].bytes, others[i].n) == 0)
      return import_refuse(f, others[i].what, others[i].remedy, err);
  const char *end = memchr(text, '\r', size);
  if (end && end + 1 < text + size && !memchr(text, '\n', size))
    return import_refuse(f, "the lines end with carriage returns alone",
                         "save it with line feeds, as with tr '\\r' '\\n'", err);
  return GL_OK;
}

static size_t content_start(const char *text, size_t size) {
  size_t at = size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
  while (at < size && (text[at] == '#' || (text[at] && strchr(" \t\r\n", text[at])))) {
    const char *newline = text[at] == '#' ? memchr(text + at, '\n', size - at) : text + at;
    at = newline ? (size_t)(newline - text) + 1 : size;
  }
  return at;
}

/* The last format reports the error for files that no other format recognises. */
static gl_status find_format(const import_format **out, const import_file *f, gl_error *err) {
  if (f->start == f->size)
    return import_refuse(f, "the file is empty",
                         "export it again; of a sweep that was stopped before its first cell: run "
                         "the sweep again",
                         err);
  gl_status status = refuse_others(f, err);
  bool is = false;
  for (size_t i = 0; i < sizeof formats / sizeof *formats && status == GL_OK && !is; i++) {
    *out = formats[i];
    status = formats[i]->recognise(&is, f, err);
  }
  return status;
}

gl_status read_series_text(series_table **out, const char *text, size_t size, const char *name,
                           const shape_request *request, gl_error *err) {
  static const shape_request plain = {0};
  const import_file file = {name, text, size, content_start(text, size), false};
  const import_format *format = NULL;
  sheet rows = {.name = NULL};
  *out = NULL;
  gl_status status = find_format(&format, &file, err);
  if (status != GL_OK) return status;
  if (format->series) return format->series(out, &file, err);
  status = format->rows(&rows, &file, err);
  if (status == GL_OK) status = shape_series(out, &rows, request ? request : &plain, err);
  sheet_fini(&rows);
  return status;
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

gl_status read_rows(sheet *out, const char *path, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  *out = (sheet){.name = NULL};
  gl_status status = csv_load(&text, &size, path, err);
  if (status == GL_OK) {
    const import_file file = {path, text, size, content_start(text, size), true};
    const import_format *format = NULL;
    status = find_format(&format, &file, err);
    if (status == GL_OK && !format->rows)
      status = import_refuse(&file, "this is a log and no table",
                             "give a table: CSV, TSV or JSON Lines", err);
    if (status == GL_OK) status = format->rows(out, &file, err);
  }
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
