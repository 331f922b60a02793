/* Writes a table as CSV, TSV or JSON lines, with one value per column.
 *
 *   records_writer w;
 *   records_begin(&w, to, RECORDS_CSV, columns, n);
 *   for each record {
 *     records_text(&w, name), records_integer(&w, step), records_number(&w, score);
 *     status = records_end(&w, err);
 *   }
 *
 * Numbers have the shortest form that reads back to the same double; infinities are "inf" and
 * "-inf" in CSV and TSV. A missing value (a text that is NULL or empty, NaN) is an empty cell, or
 * null; in JSON lines infinities are null too, because JSON has none. Truth values are true and
 * false. Column names of a table are unique; a list of columns may end with one whose name is
 * NULL. Cells of CSV and TSV are quoted according to RFC 4180. Stream errors remain in the stream.
 */
#ifndef GEPOLAB_CORE_BASE_RECORDS_H
#define GEPOLAB_CORE_BASE_RECORDS_H

#include "core/base/error.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* --- columns of tables and records; records only have the first four types --- */

typedef enum table_type {
  TABLE_TEXT,
  TABLE_INTEGER, /* 64 bits, signed */
  TABLE_REAL,
  TABLE_FLAG,
  TABLE_INTERVAL, /* an estimate with its lower and upper bound */
  TABLE_NUMBERS,  /* a list of reals */
  TABLE_JSON,     /* a JSON tree */
  TABLE_TABLE     /* rows, an object or a list */
} table_type;

typedef struct table_column {
  const char
      *name; /* name in formats for programs; a/b: b within the object a; NULL: only for people */
  table_type type;    /* type of its cells, unless they are missing */
  const char *unit;   /* such as "s"; "" or NULL for pure numbers and words */
  const char *about;  /* description, or NULL */
  const char *head;   /* heading in formats for people; NULL: only for programs */
  const char *format; /* printf format for reals and intervals shown to people, with one double;
                         NULL: "%.4g". "A|B": A below 100, B otherwise */
  const char *value;  /* TABLE_INTERVAL: JSON key of the point estimate; NULL: "value" */
  int order;          /* formats for people sort columns by this, those for programs do not */
  int width;          /* minimum width in plain text; negative: left-aligned, as in printf */
} table_column;

/* TABLE_KEY: a column that only programs see. TABLE_HEAD: one that only people see. */
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
/* "csv", "tsv" or "jsonl": also the file name extensions. */
const char *records_format_name(records_format format);
/* Returns 1 and sets *format if `name` is the name of a format. */
int records_format_named(const char *name, records_format *format);

typedef struct records_writer {
  FILE *to;
  records_format format;
  const table_column *columns; /* [n], borrowed */
  size_t n, at;                /* at: the column of the next value */
  cJSON *record;               /* JSON lines: the current record */
  int short_of_memory;
} records_writer;

/* Starts writing with the header, which JSON lines lack. */
void records_begin(records_writer *w, FILE *to, records_format format, const table_column *columns,
                   size_t n);
/* Write the next value of the record; its column must have this type. */
void records_text(records_writer *w, const char *text);
void records_integer(records_writer *w, int64_t value);
void records_number(records_writer *w, double value);
void records_flag(records_writer *w, int value);
/* The next value is missing, whatever the column's type. */
void records_missing(records_writer *w);
/* Ends a record, which must have a value for every column. Only fails if out of memory. */
gl_status records_end(records_writer *w, gl_error *err);

/* --- reading --- */
/* Reads CSV and TSV files (RFC 4180): cell by cell, or one column of numbers at once.
 *
 *   csv_reader r;
 *   status = csv_begin(&r, text, size, "delays.csv", err);
 *   while (status == GL_OK && csv_line(&r))
 *     for (int more = 1; more && status == GL_OK;) {
 *       status = csv_cell(&r, &more);      // r.cell: its text
 *     }
 *   csv_end(&r);
 *
 * Cells may be quoted; within quotes, a doubled quote is a quote and a line break is part of the
 * cell. A byte-order mark, CRLF line ends and empty lines are accepted. Anything else that is not
 * CSV is refused (GL_EINPUT) as "file:line:column: what is wrong; what to do". */

enum {
  CSV_LINE_LIMIT = 10 * 1024 * 1024,  /* bytes; longer lines of cells are refused */
  CSV_FILE_LIMIT = 1024 * 1024 * 1024 /* bytes; larger files are refused */
};

typedef struct csv_reader {
  const char *name;    /* name of the file, in messages; borrowed */
  char separator;      /* separator of cells */
  size_t line, column; /* position of the last cell read, both from 1 */
  size_t inside;       /* line breaks within the cells of the current line */
  char *cell; /* text of the cell without quotes, NUL-terminated; valid until the next cell */
  size_t cell_length;
  size_t n_lines;                         /* lines of the whole text, including empty ones */
  const char *at, *line_start, *line_end; /* current line; at: read position */
  const char *next, *end;                 /* start of the next line, end of the text */
  gl_error *err;
} csv_reader;

/* text[size] and name are borrowed until csv_end(). On failure there is nothing to release. */
gl_status csv_begin(csv_reader *r, const char *text, size_t size, const char *name, gl_error *err);
/* The same with a separator other than a comma: a tab in TSV files. */
gl_status csv_begin_separated(csv_reader *r, const char *text, size_t size, char separator,
                              const char *name, gl_error *err);
void csv_end(csv_reader *r);
/* Advances to the next non-empty line; returns 0 at the end of the text. */
int csv_line(csv_reader *r);
/* Upper bound on the number of cells in the current line: separators between quotes count too. */
size_t csv_most_cells(const csv_reader *r);
/* Reads the next cell of the current line; *more is set if another one follows. */
gl_status csv_cell(csv_reader *r, int *more);
/* Returns GL_EINPUT at the last cell read, with the reason and the fix. */
gl_status csv_fail(const csv_reader *r, const char *why, const char *remedy);
/* Returns 1 and sets *value if the cell is a decimal number, NaN or an infinity, optionally
 * surrounded by blanks. */
int csv_number(const char *cell, double *value);
/* Whether the cell is a decimal number beyond the largest double, such as 1e400, which csv_number()
 * refuses. */
int csv_overflows(const char *cell);

/* Reads the whole file into memory, decompressed, without a NUL at the end ("-": standard input);
 * the caller frees *text. Errors: GL_ENOMEM, GL_EIO (cannot be read), GL_EINPUT (larger than
 * CSV_FILE_LIMIT, damaged compressed data). */
gl_status csv_load(char **text, size_t *size, const char *path, gl_error *err);

/* Reads the finite numbers of one column, at least one; the caller frees *out. The first line is a
 * heading if one of its cells is not a number. column: heading of the wanted column; NULL is
 * allowed if there is only one column. Empty cells are skipped, and lines may end before the
 * column. Errors: GL_ENOMEM, GL_EIO (cannot be read), GL_EINPUT as above; the message about a
 * missing or ambiguous name lists the existing names. */
gl_status csv_column(double **out, size_t *n, const char *path, const char *column, gl_error *err);

#endif
