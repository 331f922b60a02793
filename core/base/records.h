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
 * and "-inf" in CSV and TSV. A missing value (a text that is NULL or empty, NaN) is an empty cell,
 * or null; in JSON lines infinities are null too, because JSON has none. Truth values are true and
 * false. Every column has a name that no other of its table has; a list of columns may end with one
 * whose name is NULL. Cells of CSV and TSV are quoted as RFC 4180 says. Errors of the stream
 * remain in the stream. */
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
  int place;          /* people see columns of a lower place first; programs see them in order */
  int width;          /* of plain text, at least; negative: on the left, as printf has it */
} table_column;

/* A column for programs only, and one for people only. */
#define TABLE_KEY(NAME, TYPE)                                                                      \
  { .name = NAME, .type = TYPE }
#define TABLE_HEAD(HEAD)                                                                           \
  { .type = TABLE_TEXT, .head = HEAD }
/* A column of a file of records. */
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
  size_t n, at;                /* at: the column of the next value */
  cJSON *record;               /* of JSON lines: the current record */
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

/* --- reading --- */
/* Reading CSV and TSV files (RFC 4180): cell by cell, or one column of numbers at once.
 *
 *   csv_reader r;
 *   status = csv_begin(&r, text, size, "delays.csv", err);
 *   while (status == GL_OK && csv_line(&r))
 *     for (int more = 1; more && status == GL_OK;) {
 *       status = csv_cell(&r, &more);      // r.cell: its text
 *     }
 *   csv_end(&r);
 *
 * Cells may be quoted or not; a doubled quote inside quotes is a quote, a line break there
 * is part of the cell. A byte-order mark, CRLF line ends and empty lines are accepted. Everything
 * else that is not CSV is refused (GL_EINPUT) as "file:line:column: what is wrong; what to do". */

enum {
  CSV_LINE_LIMIT = 10 * 1024 * 1024,  /* bytes; longer lines of cells are refused */
  CSV_FILE_LIMIT = 1024 * 1024 * 1024 /* bytes; larger files are refused */
};

typedef struct csv_reader {
  const char *name;    /* of the file, in messages; borrowed */
  char separator;      /* of cells */
  size_t line, column; /* where the cell read last begins, both from 1 */
  size_t inside;       /* line breaks within the cells of the current line */
  char *cell;          /* its text without quotes, ended by a zero; valid until the next cell */
  size_t cell_length;
  size_t n_lines;                         /* of the whole text, empty ones included */
  const char *at, *line_start, *line_end; /* of the current line; at: what is read next */
  const char *next, *end;                 /* of the next line, and of the text */
  gl_error *err;
} csv_reader;

/* text[size] and name are borrowed until csv_end(). On failure there is nothing to release. */
gl_status csv_begin(csv_reader *r, const char *text, size_t size, const char *name, gl_error *err);
/* The same with another separator than a comma: a tab in TSV files. */
gl_status csv_begin_separated(csv_reader *r, const char *text, size_t size, char separator,
                              const char *name, gl_error *err);
void csv_end(csv_reader *r);
/* Goes to the next line that is not empty; 0 at the end of the text. */
int csv_line(csv_reader *r);
/* No fewer than the cells of the current line: separators between quotes count too. */
size_t csv_most_cells(const csv_reader *r);
/* Reads the next cell of the current line; *more says whether another one follows it. */
gl_status csv_cell(csv_reader *r, int *more);
/* GL_EINPUT at the cell read last: why it is refused, and what the user can do. */
gl_status csv_fail(const csv_reader *r, const char *why, const char *remedy);
/* 1 and the value if the cell is a decimal number, NaN or an infinity, with blanks around it or
 * not. */
int csv_number(const char *cell, double *value);
/* Whether the cell is refused for being a decimal number beyond the largest double, as 1e400 is. */
int csv_overflows(const char *cell);

/* The whole file on the heap, not ended by a zero. GL_EIO, naming it, if it cannot be read,
 * GL_EINPUT if it is larger than CSV_FILE_LIMIT. */
gl_status csv_load(char **text, size_t *size, const char *path, gl_error *err);

/* The finite numbers of one column, on the heap and never none. The file's first line is a heading
 * if one of its cells is no number. column: the heading of the wanted column; NULL is
 * allowed if there is only one column. Empty cells
 * are skipped, and lines may end before the column. GL_EIO if the file cannot be read, GL_EINPUT as
 * above and of a pipe or a device; the message about a missing or ambiguous name lists the names
 * there are. */
gl_status csv_column(double **out, size_t *n, const char *path, const char *column, gl_error *err);

#endif
