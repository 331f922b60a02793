/* Records as text: a table as CSV, TSV or JSON lines, one value in every column.
 *
 *   records_writer w;
 *   records_begin(&w, to, RECORDS_CSV, columns, n);
 *   for each record {
 *     records_text(&w, name), records_whole(&w, step), records_number(&w, score);
 *     status = records_end(&w, err);
 *   }
 *
 * Numbers are written in the shortest form that reads back to the same double, infinities as "inf"
 * and "-inf" in CSV and TSV. What is missing (a text that is NULL or empty, NaN) is an empty cell,
 * or null; in JSON lines infinities are null too, for JSON has none. Truth values are true and
 * false. Every column has a name that no other of its table has; a list of columns may end with one
 * whose name is NULL. Cells of CSV and TSV are quoted as RFC 4180 says. Trouble with the stream
 * stays in the stream. */
#ifndef GEPOLAB_CORE_BASE_RECORDS_H
#define GEPOLAB_CORE_BASE_RECORDS_H

#include "core/base/error.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* --- columns of tables and of records, which are of the first four types --- */

typedef enum table_type {
  TABLE_TEXT,
  TABLE_WHOLE, /* 64 bits, signed */
  TABLE_REAL,
  TABLE_FLAG,
  TABLE_INTERVAL, /* an estimate with its lower and upper end */
  TABLE_NUMBERS,  /* a list of reals */
  TABLE_JSON,     /* a tree */
  TABLE_TABLE     /* rows, an object or a list */
} table_type;

typedef struct table_column {
  const char *name;   /* for programs; a/b: b within the object a; NULL: for people only */
  table_type type;    /* of its cells, unless they are missing */
  const char *unit;   /* "s"; "" or NULL for pure numbers and words */
  const char *about;  /* the meaning, in words, or NULL */
  const char *head;   /* for people; NULL: for programs only */
  const char *format; /* of reals and intervals for people: printf's of one double, NULL: "%.4g".
                         "A|B": A below 100, B from there on */
  const char *value;  /* the estimate's key in JSON; NULL: "value" */
  int place;          /* people see columns of a lower place first, and programs all as they come */
  int width;          /* of plain text, at least; negative: on the left, as printf has it */
} table_column;

/* Columns for programs alone, and for people alone. */
#define TABLE_KEY(NAME, TYPE)                                                                      \
  { .name = NAME, .type = TYPE }
#define TABLE_HEAD(HEAD)                                                                           \
  { .type = TABLE_TEXT, .head = HEAD }
/* What a file of records says of a column. */
#define TABLE_FIELD(NAME, TYPE, UNIT, ABOUT)                                                       \
  { .name = NAME, .type = TYPE, .unit = UNIT, .about = ABOUT }
/* --- records --- */

typedef enum records_format {
  RECORDS_CSV,
  RECORDS_TSV,
  RECORDS_JSONL,
  RECORDS_FORMAT_COUNT
} records_format;
/* "csv", "tsv" or "jsonl": also how the names of such files end. */
const char *records_format_name(records_format format);
/* 1 and *format if it is the name of one. */
int records_format_named(const char *name, records_format *format);

typedef struct records_writer {
  FILE *to;
  records_format format;
  const table_column *columns; /* [n], borrowed */
  size_t n, at;                /* at: the column that the next value belongs to */
  cJSON *record;               /* of JSON lines, in the making */
  int short_of_memory;
} records_writer;

/* Writes the header, which JSON lines do not have. */
void records_begin(records_writer *w, FILE *to, records_format format, const table_column *columns,
                   size_t n);
/* The next value of the record; its column has this type. */
void records_text(records_writer *w, const char *text);
void records_whole(records_writer *w, int64_t value);
void records_number(records_writer *w, double value);
void records_flag(records_writer *w, int value);
/* The next value is missing, whatever the column's type. */
void records_missing(records_writer *w);
/* Ends a record, which has a value for every column. Fails only if memory is short. */
gl_status records_end(records_writer *w, gl_error *err);

#endif
