/* Detects a file's format and selects its reader. */
#include "analysis/import/read.h"

#include "analysis/import/formats.h"
#include "core/base/records.h"
#include "core/config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_ADDRESS(name) &format_##name,
static const import_format *const formats[] = {IMPORT_FORMATS(FORMAT_ADDRESS)};
#define FORMAT_NAME(name) #name,
static const char *const format_names[] = {IMPORT_FORMATS(FORMAT_NAME)};
enum { N_FORMATS = sizeof formats / sizeof *formats };

const char *import_format_about(size_t i, const char **name) {
  if (i >= N_FORMATS) return NULL;
  *name = format_names[i];
  return formats[i]->about;
}

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

/* Whether text that begins with a bracket may be a JSON array; a line of a log that begins with
 * [2024-01-01] or [INFO] is none. */
static bool may_be_array(const char *text, size_t size) {
  static const char blanks[] = " \t\r\n", digits[] = "-+.0123456789eE";
  size_t at = 1, from;
  while (at < size && text[at] != '\0' && strchr(blanks, text[at]) != NULL) ++at;
  if (at >= size || strchr("{[\"]", text[at]) != NULL) return true;
  for (from = at; at < size && text[at] != '\0' && strchr(digits + (at > from), text[at]) != NULL;)
    ++at;
  while (at > from && at < size && text[at] != '\0' && strchr(blanks, text[at]) != NULL) ++at;
  return at > from && at < size && strchr(",]", text[at]) != NULL;
}

static gl_status refuse_others(const import_file *f, gl_error *err) {
  static const char of_figure[] = "# panel\t";
  if (f->size >= sizeof of_figure - 1 && memcmp(f->text, of_figure, sizeof of_figure - 1) == 0)
    return import_refuse(f, "these are the data of a figure that gepolab drew",
                         "give the study, the recipe or the log that it shows", err);
  const char *text = f->text + f->start;
  const size_t size = f->size - f->start;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (size >= others[i].n && memcmp(text, others[i].bytes, others[i].n) == 0 &&
        (text[0] != '[' || may_be_array(text, size)))
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

/* Whether the last part of the path is the fixed name, perhaps with ".gz" or ".zst" behind it. */
static bool has_name(const char *path, const char *fixed) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const size_t n = fixed ? strlen(fixed) : 0;
  return n > 0 && strncmp(name, fixed, n) == 0 &&
         (name[n] == '\0' || strcmp(name + n, ".gz") == 0 || strcmp(name + n, ".zst") == 0);
}

static gl_status ask_format(bool *is, size_t i, import_file *f, gl_error *err) {
  *is = false;
  f->has_fixed_name = has_name(f->name, formats[i]->fixed_name);
  return formats[i]->recognise(is, f, err);
}

/* The format with that name. */
static gl_status named_format(size_t *out, const char *name, gl_error *err) {
  char hint[CFG_HINT_SIZE];
  for (*out = 0; *out < N_FORMATS; ++*out)
    if (strcmp(format_names[*out], name) == 0) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "--log-format %s: no such format%s; `gepolab list formats` lists them", name,
                 cfg_hint(name, format_names, N_FORMATS, hint));
}

/* *out is the index of the trainer's format that recognises the file; N_FORMATS: none does. */
static gl_status find_log(size_t *out, import_file *f, gl_error *err) {
  gl_status status = GL_OK;
  *out = N_FORMATS;
  for (size_t i = 0; i < N_FORMATS && status == GL_OK; i++) {
    bool is = false;
    if (formats[i]->is_general) continue;
    status = ask_format(&is, i, f, err);
    if (is && *out < N_FORMATS)
      return gl_fail(err, GL_EINPUT,
                     "%s: both %s and %s would read this file; say which it is: --log-format %s "
                     "or --log-format %s",
                     f->name, formats[*out]->about, formats[i]->about, format_names[*out],
                     format_names[i]);
    if (is) *out = i;
  }
  return status;
}

/* Finds the format of a file, or the one named by `wanted`. The last format takes any file that
 * no other recognises, and reports what is wrong with it. */
static gl_status find_format(const import_format **out, import_file *f, const char *wanted,
                             gl_error *err) {
  size_t found = N_FORMATS;
  if (f->start == f->size)
    return import_refuse(f, "the file is empty",
                         "export it again; of a sweep that was stopped before its first cell: run "
                         "the sweep again",
                         err);
  gl_status status = refuse_others(f, err);
  if (status == GL_OK)
    status = wanted ? named_format(&found, wanted, err) : find_log(&found, f, err);
  for (size_t i = 0; i < N_FORMATS && status == GL_OK && found == N_FORMATS; i++) {
    bool is = false;
    if (!formats[i]->is_general) continue;
    status = ask_format(&is, i, f, err);
    if (is) found = i;
  }
  if (status != GL_OK) return status;
  *out = formats[found];
  f->has_fixed_name = has_name(f->name, (*out)->fixed_name);
  return GL_OK;
}

gl_status read_series_text(series_table **out, const char *text, size_t size, const char *name,
                           const shape_request *request, gl_error *err) {
  static const shape_request plain = {0};
  import_file file = {.name = name, .text = text, .size = size, .start = content_start(text, size)};
  const import_format *format = NULL;
  sheet rows = {.name = NULL};
  *out = NULL;
  if (!request) request = &plain;
  gl_status status = find_format(&format, &file, request->format, err);
  if (status != GL_OK) return status;
  if (format->series) return format->series(out, &file, err);
  if (!format->is_general)
    return import_refuse(&file, "this log has times of requests and no series of steps",
                         "give it to gepolab fit", err);
  status = format->rows(&rows, &file, err);
  if (status == GL_OK) status = shape_series(out, &rows, request, err);
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

gl_status read_rows_text(sheet *out, const char *text, size_t size, const char *name,
                         const char *wanted, gl_error *err) {
  import_file file = {.name = name,
                      .text = text,
                      .size = size,
                      .start = content_start(text, size),
                      .takes_one_column = true};
  const import_format *format = NULL;
  *out = (sheet){.name = NULL};
  gl_status status = find_format(&format, &file, wanted, err);
  if (status == GL_OK && !format->rows)
    status = import_refuse(&file, "this log has series of steps and no rows",
                           "give a table (CSV, TSV or JSON Lines) or a log of requests", err);
  return status == GL_OK ? format->rows(out, &file, err) : status;
}

gl_status read_rows(sheet *out, const char *path, const char *format, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  *out = (sheet){.name = NULL};
  gl_status status = csv_load(&text, &size, path, err);
  if (status == GL_OK) status = read_rows_text(out, text, size, path, format, err);
  free(text);
  return status;
}

gl_status read_which(read_kind *out, const char *path, gl_error *err) {
  char *text = NULL;
  size_t size = 0, found = N_FORMATS;
  *out = READ_IS_OTHER;
  gl_status status = csv_load(&text, &size, path, err);
  import_file file = {.name = path, .text = text, .size = size};
  if (status == GL_OK) file.start = content_start(text, size);
  if (status == GL_OK && file.start < size) status = find_log(&found, &file, err);
  if (status == GL_OK && found < N_FORMATS)
    *out = formats[found]->series ? READ_IS_SERIES : READ_IS_ROWS;
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
  const size_t length = strlen(path);
  const bool is_db = length > 3 && strcmp(path + length - 3, ".db") == 0;
  *is =
      (n == sizeof head && memcmp(head, "SQLite format 3", sizeof head) == 0) || (n == 0 && is_db);
  return GL_OK;
}
