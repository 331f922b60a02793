/* A file of records as rows of named cells, whatever its syntax: CSV, TSV or JSON Lines.
 *
 * Cells keep their text. Objects within a JSON line become columns "outer/inner"; null and missing
 * cells are the same; lists, and what W&B logs as an object with "_type", are counted and left out.
 * Lines that begin with '#' before the headings of CSV and TSV are skipped.
 */
#ifndef GEPOLAB_ANALYSIS_IMPORT_SHEET_H
#define GEPOLAB_ANALYSIS_IMPORT_SHEET_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sheet_cell {
  uint32_t column;
  uint32_t place; /* where it begins in its line, from 1 */
  size_t text;    /* where its text begins in sheet.texts */
} sheet_cell;

typedef struct sheet {
  char *name; /* of the file, in messages */
  char **heading;
  size_t n_columns;
  sheet_cell *cells; /* row by row; empty cells are not among them */
  size_t n_cells;
  size_t *row;  /* [n_rows + 1] the first cell of each row */
  size_t *line; /* [n_rows] of the file, from 1 */
  size_t n_rows;
  int is_json; /* JSON Lines, whose members are named after what they hold */
  char *texts; /* the cells' texts, each ended by a zero */
  size_t n_texts, n_left_out;
  size_t cell_room, row_room, text_room;
} sheet;

/* The forms of text that become sheets, and those that do not. */
typedef enum sheet_syntax { SHEET_COMMAS, SHEET_TABS, SHEET_JSON_LINES } sheet_syntax;

/* Reads size bytes of text; name stands for the file in errors. Release with sheet_fini() in any
 * case. GL_EINPUT, with file:line:column, for what is not of that syntax and for more than
 * IMPORT_MOST_COLUMNS columns. */
gl_status sheet_read(sheet *out, const char *text, size_t size, sheet_syntax syntax,
                     const char *name, gl_error *err);
void sheet_fini(sheet *s);

/* The cell's text; NULL where the row has none in that column. */
const char *sheet_text(const sheet *s, size_t row, size_t column);
/* GL_EINPUT at a cell, or at the beginning of its row where there is none: what is wrong, and what
 * to do. */
gl_status sheet_fail(const sheet *s, size_t row, size_t column, gl_error *err, const char *format,
                     ...) __attribute__((format(printf, 5, 6)));

#endif
