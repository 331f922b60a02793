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
#ifndef GEPOLAB_CORE_BASE_CSV_H
#define GEPOLAB_CORE_BASE_CSV_H

#include "core/base/error.h"

#include <stddef.h>

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
/* The same where another character than a comma separates the cells: a tab in TSV files. */
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

/* The whole file on the heap, not ended by a zero. GL_EIO, naming it, if it cannot be read,
 * GL_EINPUT if it is larger than CSV_FILE_LIMIT. */
gl_status csv_load(char **text, size_t *size, const char *path, gl_error *err);

/* The finite numbers of one column, on the heap and never none. The file's first line is a heading
 * if one of its cells is no number. column: the heading of the column that is wanted; NULL is
 * allowed where there is one column only, for which of several is meant is not guessed. Empty cells
 * are skipped, and lines may end before the column. GL_EIO if the file cannot be read, GL_EINPUT as
 * above; a missing or ambiguous name is answered with the names there are. */
gl_status csv_column(double **out, size_t *n, const char *path, const char *column, gl_error *err);

#endif
