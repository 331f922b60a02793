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
 * false. Cells of CSV and TSV are quoted as RFC 4180 says. Trouble with the stream stays in the
 * stream. */
#ifndef GEPOLAB_CORE_BASE_RECORDS_H
#define GEPOLAB_CORE_BASE_RECORDS_H

#include "core/base/error.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

typedef enum records_type {
  RECORDS_TEXT,
  RECORDS_WHOLE, /* 64 bits, signed */
  RECORDS_NUMBER,
  RECORDS_FLAG
} records_type;

typedef struct records_column {
  const char *name; /* no two columns of a table have the same; NULL ends a list of columns */
  records_type type;
  const char *unit;  /* "s"; "" for pure numbers and words */
  const char *about; /* what it holds, in words */
} records_column;

typedef struct records_writer {
  FILE *to;
  records_format format;
  const records_column *columns; /* [n], borrowed */
  size_t n, at;                  /* at: the column that the next value belongs to */
  cJSON *record;                 /* of JSON lines, in the making */
  int short_of_memory;
} records_writer;

/* Writes the header, which JSON lines do not have. */
void records_begin(records_writer *w, FILE *to, records_format format,
                   const records_column *columns, size_t n);
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
