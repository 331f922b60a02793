/* Tables as CSV, TSV and JSON lines. */
#include "core/base/records.h"

#include "core/base/json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

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

/* The name of the column whose value comes now; the record exists from its first value on. */
static const char *next_name(records_writer *w) {
  assert(w->at < w->n);
  if (w->format == RECORDS_JSONL && w->at == 0) w->record = cJSON_CreateObject();
  return w->columns[w->at].name;
}

/* Counts the value; item is what JSON lines have of it. */
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

/* Text that is JSON as it stands. */
static void put_raw(records_writer *w, const char *text) {
  const char *name = next_name(w);
  const cJSON *item = NULL;
  if (w->format == RECORDS_JSONL)
    item = cJSON_AddRawToObject(w->record, name, text);
  else
    records_put_cell(w, text);
  records_count(w, item);
}

void records_whole(records_writer *w, int64_t value) {
  assert(w->at < w->n && w->columns[w->at].type == TABLE_WHOLE);
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
  if (text != NULL) fprintf(w->to, "%s\n", text);
  cJSON_Delete(w->record);
  w->record = NULL;
  w->short_of_memory = 0;
  if (text == NULL) return gl_fail_memory(err, "a record");
  cJSON_free(text);
  return GL_OK;
}
