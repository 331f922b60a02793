/* Tables as text: the same bytes however the study was executed. */
#include "core/base/json.h"
#include "core/store/internal.h"

#include <errno.h>
#include <string.h>

/* A table's columns and order; no wall-clock, no machine, no row numbers. */
typedef struct export_table {
  const char *name, *sql;
} export_table;

#define RUN_COLUMNS "r.study, r.ordinal, r.key, r.algorithm, r.axes, r.seed, r.lr"

static const export_table tables[] = {
    {"runs", "SELECT " RUN_COLUMNS ", r.status, r.reason, r.code_version, r.recipe FROM runs r"
             " ORDER BY r.study, r.ordinal, r.key"},
    {"steps", "SELECT " RUN_COLUMNS ", t.* FROM steps t JOIN runs r ON r.id = t.run"
              " ORDER BY r.study, r.ordinal, r.key, t.step"},
    {"evals", "SELECT " RUN_COLUMNS ", t.* FROM evals t JOIN runs r ON r.id = t.run"
              " ORDER BY r.study, r.ordinal, r.key, t.step"},
    {"staleness", "SELECT " RUN_COLUMNS ", t.* FROM staleness t JOIN runs r ON r.id = t.run"
                  " ORDER BY r.study, r.ordinal, r.key, t.staleness"},
    {"clock", "SELECT " RUN_COLUMNS ", t.* FROM clock t JOIN runs r ON r.id = t.run"
              " ORDER BY r.study, r.ordinal, r.key"},
    {"tuned", "SELECT * FROM tuned ORDER BY study, algorithm, axes"},
    {"bias", "SELECT * FROM bias ORDER BY study, ordinal"},
};

static void put_quoted(const char *text, char separator, FILE *to) {
  const char special[] = {separator, '"', '\n', '\r', '\0'};
  if (strpbrk(text, special) == NULL) {
    fputs(text, to);
    return;
  }
  fputc('"', to); /* RFC 4180 */
  for (; *text != '\0'; ++text) {
    if (*text == '"') fputc('"', to);
    fputc(*text, to);
  }
  fputc('"', to);
}

static void put_cell(sqlite3_stmt *stmt, int c, char separator, FILE *to) {
  char number[NUMBER_TEXT_SIZE];
  switch (sqlite3_column_type(stmt, c)) {
  case SQLITE_NULL:
    break;
  case SQLITE_INTEGER:
    fprintf(to, "%lld", (long long)sqlite3_column_int64(stmt, c));
    break;
  case SQLITE_FLOAT:
    fputs(number_text(sqlite3_column_double(stmt, c), number), to);
    break;
  default:
    put_quoted((const char *)sqlite3_column_text(stmt, c), separator, to);
  }
}

/* The run's number in this file depends on the order of execution, so it is never shown. */
static int is_hidden(sqlite3_stmt *stmt, int c) {
  return strcmp(sqlite3_column_name(stmt, c), "run") == 0;
}

static void put_header(sqlite3_stmt *stmt, char separator, FILE *to) {
  for (int c = 0, shown = 0; c < sqlite3_column_count(stmt); ++c) {
    if (is_hidden(stmt, c)) continue;
    if (shown++ > 0) fputc(separator, to);
    put_quoted(sqlite3_column_name(stmt, c), separator, to);
  }
  fputc('\n', to);
}

static void put_separated(sqlite3_stmt *stmt, char separator, FILE *to) {
  for (int c = 0, shown = 0; c < sqlite3_column_count(stmt); ++c) {
    if (is_hidden(stmt, c)) continue;
    if (shown++ > 0) fputc(separator, to);
    put_cell(stmt, c, separator, to);
  }
  fputc('\n', to);
}

static gl_status put_json(sqlite3_stmt *stmt, FILE *to, gl_error *err) {
  cJSON *row = cJSON_CreateObject();
  int ok = row != NULL;
  for (int c = 0; c < sqlite3_column_count(stmt) && ok; ++c) {
    const char *name = sqlite3_column_name(stmt, c);
    if (is_hidden(stmt, c)) continue;
    char digits[24];
    switch (sqlite3_column_type(stmt, c)) {
    case SQLITE_NULL:
      ok = cJSON_AddNullToObject(row, name) != NULL;
      break;
    case SQLITE_INTEGER: /* all 64 bits, which a JSON number made from a double would lose */
      snprintf(digits, sizeof digits, "%lld", (long long)sqlite3_column_int64(stmt, c));
      ok = cJSON_AddRawToObject(row, name, digits) != NULL;
      break;
    case SQLITE_FLOAT:
      ok = json_add_number(row, name, sqlite3_column_double(stmt, c)) != NULL;
      break;
    default:
      ok = json_add_string(row, name, (const char *)sqlite3_column_text(stmt, c)) != NULL;
    }
  }
  char *text = ok ? cJSON_PrintUnformatted(row) : NULL;
  if (text != NULL) fprintf(to, "%s\n", text);
  ok = text != NULL;
  cJSON_free(text);
  cJSON_Delete(row);
  return ok ? GL_OK : gl_fail_memory(err, "a row");
}

gl_status store_export(store *s, const char *table, const char *format, FILE *to, gl_error *err) {
  const export_table *t = NULL;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i)
    if (strcmp(tables[i].name, table) == 0) t = &tables[i];
  if (t == NULL)
    return gl_fail(
        err, GL_EINPUT,
        "there is no table '%s'; tables are runs, steps, evals, staleness, clock, tuned, "
        "bias",
        table);
  int json = strcmp(format, "jsonl") == 0;
  if (!json && strcmp(format, "csv") != 0 && strcmp(format, "tsv") != 0)
    return gl_fail(err, GL_EINPUT, "there is no format '%s'; formats are csv, tsv, jsonl", format);
  char separator = format[0] == 't' ? '\t' : ',';
  sqlite3_stmt *stmt = NULL;
  gl_status status = store_prepare(s, &stmt, t->sql, err);
  if (status != GL_OK) return status;
  if (!json) put_header(stmt, separator, to);
  int code;
  while (status == GL_OK && (code = sqlite3_step(stmt)) != SQLITE_DONE) {
    if (code != SQLITE_ROW)
      status = store_fail(s, code, "reading", err);
    else if (json)
      status = put_json(stmt, to, err);
    else
      put_separated(stmt, separator, to);
  }
  sqlite3_finalize(stmt);
  if (status == GL_OK && (fflush(to) != 0 || ferror(to)))
    status = gl_fail(err, GL_EIO, "writing table %s failed: %s", table, strerror(errno));
  return status;
}
