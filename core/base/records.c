/* Writes records as CSV, TSV and JSON lines, and reads CSV and TSV: the only reader for such files,
 * from W&B exports to measured delays. */
#include "core/base/records.h"

#include "core/base/array.h"
#include "core/base/compressed.h"
#include "core/base/json.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const names[RECORDS_FORMAT_COUNT] = {
    [RECORDS_CSV] = "csv", [RECORDS_TSV] = "tsv", [RECORDS_JSONL] = "jsonl"};

const char *records_format_name(records_format format) {
  return names[format];
}

int records_format_named(const char *name, records_format *format) {
  for (int f = 0; f < RECORDS_FORMAT_COUNT; ++f)
    if (strcmp(names[f], name) == 0) {
      *format = (records_format)f;
      return 1;
    }
  return 0;
}

/* --- cells of CSV and TSV --- */

static char separator_of(const records_writer *w) {
  return w->format == RECORDS_TSV ? '\t' : ',';
}

static void records_put_quoted(const records_writer *w, const char *text) {
  const char special[] = {separator_of(w), '"', '\n', '\r', '\0'};
  if (strpbrk(text, special) == NULL) {
    fputs(text, w->to);
    return;
  }
  fputc('"', w->to);
  for (; *text != '\0'; ++text) {
    if (*text == '"') fputc('"', w->to);
    fputc(*text, w->to);
  }
  fputc('"', w->to);
}

static void records_put_cell(const records_writer *w, const char *text) {
  if (w->at > 0) fputc(separator_of(w), w->to);
  records_put_quoted(w, text);
}

/* --- values --- */

void records_begin(records_writer *w, FILE *to, records_format format, const table_column *columns,
                   size_t n) {
  assert(n > 0);
  *w = (records_writer){.to = to, .format = format, .columns = columns, .n = n};
  if (format == RECORDS_JSONL) return;
  for (; w->at < n; ++w->at) records_put_cell(w, columns[w->at].name);
  fputc('\n', to);
  w->at = 0;
}

/* The name of the next value's column; the first value of a record creates it. */
static const char *next_name(records_writer *w) {
  assert(w->at < w->n);
  if (w->format == RECORDS_JSONL && w->at == 0) w->record = cJSON_CreateObject();
  return w->columns[w->at].name;
}

/* Counts a written value. item: its JSON, for JSON lines; NULL there: out of memory. */
static void records_count(records_writer *w, const cJSON *item) {
  w->short_of_memory |= w->format == RECORDS_JSONL && item == NULL;
  w->at++;
}

void records_missing(records_writer *w) {
  const char *name = next_name(w);
  const cJSON *item = NULL;
  if (w->format == RECORDS_JSONL)
    item = cJSON_AddNullToObject(w->record, name);
  else
    records_put_cell(w, "");
  records_count(w, item);
}

void records_text(records_writer *w, const char *text) {
  assert(w->at < w->n && w->columns[w->at].type == TABLE_TEXT);
  if (text == NULL || *text == '\0') {
    records_missing(w);
    return;
  }
  const char *name = next_name(w);
  const cJSON *item = NULL;
  if (w->format == RECORDS_JSONL)
    item = json_add_string(w->record, name, text);
  else
    records_put_cell(w, text);
  records_count(w, item);
}

/* Writes text that is already valid JSON. */
static void put_raw(records_writer *w, const char *text) {
  const char *name = next_name(w);
  const cJSON *item = NULL;
  if (w->format == RECORDS_JSONL)
    item = cJSON_AddRawToObject(w->record, name, text);
  else
    records_put_cell(w, text);
  records_count(w, item);
}

void records_integer(records_writer *w, int64_t value) {
  assert(w->at < w->n && w->columns[w->at].type == TABLE_INTEGER);
  char digits[24]; /* all 64 bits, which a JSON number made from a double would lose */
  snprintf(digits, sizeof digits, "%lld", (long long)value);
  put_raw(w, digits);
}

void records_number(records_writer *w, double value) {
  assert(w->at < w->n && w->columns[w->at].type == TABLE_REAL);
  char text[NUMBER_TEXT_SIZE];
  if (isnan(value) || (isinf(value) && w->format == RECORDS_JSONL))
    records_missing(w);
  else
    put_raw(w, number_text(value, text));
}

void records_flag(records_writer *w, int value) {
  assert(w->at < w->n && w->columns[w->at].type == TABLE_FLAG);
  put_raw(w, value ? "true" : "false");
}

gl_status records_end(records_writer *w, gl_error *err) {
  assert(w->at == w->n);
  w->at = 0;
  if (w->format != RECORDS_JSONL) {
    fputc('\n', w->to);
    return GL_OK;
  }
  char *text = w->short_of_memory ? NULL : cJSON_PrintUnformatted(w->record);
  if (text != NULL) {
    json_write(text, w->to);
    fputc('\n', w->to);
  }
  cJSON_Delete(w->record);
  w->record = NULL;
  w->short_of_memory = 0;
  if (text == NULL) return gl_fail_memory(err, "a record");
  cJSON_free(text);
  return GL_OK;
}

gl_status csv_fail(const csv_reader *r, const char *why, const char *remedy) {
  return gl_fail(r->err, GL_EINPUT, "%s:%zu:%zu: %s; %s", r->name, r->line, r->column, why, remedy);
}

/* --- lines and cells --- */

static const char *find_newline(const char *from, const char *end) {
  const char *newline = memchr(from, '\n', (size_t)(end - from));
  return newline != NULL ? newline : end;
}

/* The quote that closes a cell whose text begins at p; NULL if there is none. */
static const char *closing_quote(const char *p, const char *end) {
  for (; (p = memchr(p, '"', (size_t)(end - p))) != NULL; p += 2)
    if (p + 1 == end || p[1] != '"') return p;
  return NULL;
}

/* The end of the line of cells that starts at `from`. A line break between quotes belongs to its
 * cell. An unclosed quote is refused when its cell is read; until then the first line break ends
 * the line. */
static const char *end_of_cells(const csv_reader *r, const char *from) {
  const char *p = from;
  while (p < r->end && *p != '\n') {
    if (*p == '"') {
      const char *close = closing_quote(p + 1, r->end);
      if (close == NULL) return find_newline(p, r->end);
      p = close + 1;
    }
    while (p < r->end && *p != r->separator && *p != '\n') p++;
    if (p < r->end && *p == r->separator) p++;
  }
  return p;
}

static size_t count_newlines(const char *from, const char *to) {
  size_t n = 0;
  for (; from < to && (from = memchr(from, '\n', (size_t)(to - from))) != NULL; ++from) n++;
  return n;
}

/* Counts the lines, finds the longest and refuses lines beyond the limit. */
static gl_status csv_measure(csv_reader *r, size_t *longest) {
  *longest = 0;
  for (const char *p = r->next; p < r->end;) {
    const char *stop = end_of_cells(r, p);
    const size_t length = (size_t)(stop - p);
    r->line = r->n_lines + 1;
    r->n_lines += 1 + count_newlines(p, stop);
    r->column = CSV_LINE_LIMIT;
    if (length > CSV_LINE_LIMIT)
      return csv_fail(r, "the line is longer than 10 MiB", "check that this is a CSV file");
    if (length > *longest) *longest = length;
    p = stop < r->end ? stop + 1 : r->end;
  }
  return GL_OK;
}

gl_status csv_begin(csv_reader *r, const char *text, size_t size, const char *name, gl_error *err) {
  return csv_begin_separated(r, text, size, ',', name, err);
}

gl_status csv_begin_separated(csv_reader *r, const char *text, size_t size, char separator,
                              const char *name, gl_error *err) {
  size_t longest;
  *r = (csv_reader){
      .name = name, .separator = separator, .next = text, .end = text + size, .err = err};
  if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) r->next += 3;
  gl_status status = csv_measure(r, &longest);
  if (status != GL_OK) return status;
  r->line = 0;
  r->column = 1;
  r->at = r->line_start = r->line_end = r->next;
  r->cell = malloc(longest + 1);
  return r->cell != NULL ? GL_OK : gl_fail_memory(err, "a line of CSV");
}

void csv_end(csv_reader *r) {
  free(r->cell);
  *r = (csv_reader){0};
}

int csv_line(csv_reader *r) {
  while (r->next < r->end) {
    const char *stop = end_of_cells(r, r->next);
    r->line += 1 + r->inside;
    r->inside = count_newlines(r->next, stop);
    r->at = r->line_start = r->next;
    r->line_end = stop > r->at && stop[-1] == '\r' ? stop - 1 : stop;
    r->next = stop < r->end ? stop + 1 : r->end;
    r->column = 1;
    if (r->line_end > r->at) return 1;
  }
  return 0;
}

size_t csv_most_cells(const csv_reader *r) {
  size_t n = 1;
  for (const char *p = r->line_start; p < r->line_end; ++p) n += *p == r->separator;
  return n;
}

static gl_status quoted_cell(csv_reader *r) {
  for (r->at++;; r->at++) {
    if (r->at == r->line_end)
      return csv_fail(r, "a quote opens here and does not close",
                      "close it, or double a quote that belongs to the text");
    if (*r->at == '"') {
      if (r->at + 1 == r->line_end || r->at[1] != '"') break;
      r->at++;
    }
    r->cell[r->cell_length++] = *r->at;
  }
  r->at++;
  if (r->at < r->line_end && *r->at != r->separator) {
    r->column = (size_t)(r->at - r->line_start) + 1;
    return csv_fail(r, "text follows a closing quote",
                    "put a comma (or a tab, where tabs separate them) between the cells");
  }
  return GL_OK;
}

gl_status csv_cell(csv_reader *r, int *more) {
  gl_status status = GL_OK;
  r->column = (size_t)(r->at - r->line_start) + 1;
  r->cell_length = 0;
  if (r->at < r->line_end && *r->at == '"')
    status = quoted_cell(r);
  else
    while (r->at < r->line_end && *r->at != r->separator) r->cell[r->cell_length++] = *r->at++;
  r->cell[r->cell_length] = 0;
  if (status == GL_OK && memchr(r->cell, 0, r->cell_length) != NULL)
    status = csv_fail(r, "the cell holds a zero byte", "write the file again as text");
  *more = status == GL_OK && r->at < r->line_end;
  if (*more) r->at++;
  return status;
}

/* Refuses what strtod() accepts in addition to decimal numbers: hexadecimal, "nan(…)", other cases.
 */
int csv_overflows(const char *cell) {
  const char *from = cell + strspn(cell, " \t");
  char *end;
  return strchr("+-.0123456789", *from) != NULL && *from != '\0' &&
         strspn(from, "+-0123456789.eE \t") == strlen(from) && isinf(strtod(from, &end)) &&
         end[strspn(end, " \t")] == '\0';
}

int csv_number(const char *cell, double *value) {
  static const char *const words[] = {"NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"};
  const char *from = cell + strspn(cell, " \t");
  size_t n = strlen(from);
  while (n > 0 && (from[n - 1] == ' ' || from[n - 1] == '\t')) n--;
  int known = n > 0 && strspn(from, "+-0123456789.eE") >= n;
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
    known |= strlen(words[i]) == n && strncmp(from, words[i], n) == 0;
  if (!known) return 0;
  char *end;
  *value = strtod(from, &end);
  return end == from + n && !csv_overflows(cell);
}

/* --- files --- */

gl_status csv_load(char **text, size_t *size, const char *path, gl_error *err) {
  enum { PIECE = 1 << 16 };
  compressed_reader *from = NULL;
  size_t room = 0, n = 1;
  char *to = NULL;
  *text = NULL;
  *size = 0;
  gl_status status = compressed_open(&from, path, err);
  while (status == GL_OK && n > 0) {
    if (!ARRAY_RESERVE(to, room, *size + PIECE)) status = gl_fail_memory(err, "a file");
    if (status == GL_OK) status = compressed_read(from, to + *size, room - *size, &n, err);
    if (status == GL_OK) *size += n;
    if (status == GL_OK && *size > CSV_FILE_LIMIT)
      status = gl_fail(err, GL_EINPUT, "%s%s is larger than 1 GiB; export fewer runs or metrics",
                       path, compressed_format(from) != NULL ? " decompressed" : "");
  }
  compressed_close(from);
  if (status == GL_OK)
    *text = to;
  else
    free(to);
  return status;
}

/* --- one column --- */

/* The first line: its cells, the index of the wanted column, and whether it is a heading. */
typedef struct first_line {
  char names[160]; /* list of its cells; truncated if there are many */
  size_t n, found, n_found;
  int is_heading;
} first_line;

static void csv_list_name(char *list, size_t size, const char *name) {
  const size_t n = strlen(list), room = size - n;
  if (n >= 3 && strcmp(list + n - 3, "...") == 0) return;
  if (strlen(name) + sizeof ", , ..." > room)
    snprintf(list + n, room, "%s...", n > 0 ? ", " : "");
  else
    snprintf(list + n, room, "%s%s", n > 0 ? ", " : "", name);
}

static gl_status read_first_line(csv_reader *r, const char *column, first_line *f) {
  gl_status status = GL_OK;
  int more = 1;
  *f = (first_line){.n = 0};
  for (double x; more && status == GL_OK; ++f->n) {
    if ((status = csv_cell(r, &more)) != GL_OK) break;
    if (r->cell_length > 0 && !csv_number(r->cell, &x)) f->is_heading = 1;
    if (column != NULL && strcmp(r->cell, column) == 0) f->found = f->n, f->n_found++;
    csv_list_name(f->names, sizeof f->names, r->cell);
  }
  return status;
}

static gl_status choose_column(csv_reader *r, const char *column, const first_line *f) {
  r->column = 1;
  if (column == NULL && f->n > 1)
    return f->is_heading ? gl_fail(r->err, GL_EINPUT,
                                   "%s:1: the file has %zu columns, and which one is meant is not "
                                   "said; name one of: %s",
                                   r->name, f->n, f->names)
                         : csv_fail(r, "the file has several columns, and no heading names them",
                                    "write the one that is meant to a file of its own, or add a "
                                    "heading and name the column");
  if (column != NULL && !f->is_heading)
    return gl_fail(r->err, GL_EINPUT, "%s:1: no heading names a column '%s'", r->name, column);
  if (column != NULL && f->n_found != 1)
    return gl_fail(r->err, GL_EINPUT, "%s:1: %s '%s'; the columns are: %s", r->name,
                   f->n_found == 0 ? "no column is headed" : "several columns are headed", column,
                   f->names);
  return GL_OK;
}

/* Appends the number in the current line's column, if any. */
static gl_status csv_take_number(csv_reader *r, size_t column, size_t n_columns, double **out,
                                 size_t *n) {
  gl_status status = GL_OK;
  int more = 1;
  for (size_t i = 0; more && status == GL_OK; ++i) {
    double x, *added;
    if ((status = csv_cell(r, &more)) != GL_OK) break;
    if (i >= n_columns)
      status = csv_fail(r, "the line has more cells than the first one", "remove the extra cells");
    else if (i != column || r->cell_length == 0)
      continue;
    else if (!csv_number(r->cell, &x) || !isfinite(x))
      status = csv_fail(r, "this cell is not a finite number",
                        "write a decimal number or leave it empty");
    else if ((added = ARRAY_ADD(*out, *n)) != NULL)
      *added = x;
    else
      status = gl_fail_memory(r->err, "a column of numbers");
  }
  return status;
}

static gl_status read_column(csv_reader *r, const char *column, double **out, size_t *n) {
  first_line f = {.n = 0};
  const char *first = r->next;
  gl_status status = csv_line(r) ? read_first_line(r, column, &f) : GL_OK;
  if (status == GL_OK && f.n > 0) status = choose_column(r, column, &f);
  if (status == GL_OK && !f.is_heading)
    r->next = first, r->line = r->inside = 0; /* the first line contains numbers: read it again */
  while (status == GL_OK && csv_line(r)) status = csv_take_number(r, f.found, f.n, out, n);
  if (status == GL_OK && *n == 0)
    status = gl_fail(r->err, GL_EINPUT, "%s holds no numbers", r->name);
  return status;
}

/* Refuses everything except regular files: opening a pipe without a writer would block, and a pipe
 * can be read only once. */
static gl_status check_is_file(const char *path, gl_error *err) {
  struct stat about;
  if (stat(path, &about) != 0 || S_ISREG(about.st_mode)) return GL_OK; /* opening says why */
  return gl_fail(err, GL_EINPUT, "%s is no regular file; write its values to one", path);
}

gl_status csv_column(double **out, size_t *n, const char *path, const char *column, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  csv_reader r;
  *out = NULL;
  *n = 0;
  gl_status status = check_is_file(path, err);
  if (status == GL_OK) status = csv_load(&text, &size, path, err);
  if (status == GL_OK) status = csv_begin(&r, text, size, path, err);
  if (status == GL_OK) {
    status = read_column(&r, column, out, n);
    csv_end(&r);
  }
  free(text);
  if (status != GL_OK) {
    free(*out);
    *out = NULL;
    *n = 0;
  }
  return status;
}
