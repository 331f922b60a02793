/* Reads a file of numbers of another program: one series for each quantity of each run. The format
 * follows from the content (formats.h); a format has a reader of its own, a file of this folder.
 *
 * A gepolab study is recognised (read_is_study) and read by results_load(). Everything else, such
 * as a JSON array, a compressed or a binary file, is refused with what to do instead. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_READ_H
#define GEPOLAB_ANALYSIS_IMPORT_READ_H

#include "core/base/arena.h"
#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest tables and names; beyond them files are refused. */
enum {
  IMPORT_MOST_COLUMNS = 4096,
  IMPORT_MOST_SERIES = 8192, /* also of all files together */
  IMPORT_MOST_NAME = 1000    /* bytes of a heading and of a run's, metric's or benchmark's name */
};

/* --- series: series.c --- */

/* Values of one metric of one run in file order; empty cells are not in it, and of cells that say
 * NaN the step alone. Texts belong to the table. */
typedef struct series {
  const char *tag;      /* "" if none */
  const char *run;      /* its name */
  const char *metric;   /* "" where the file does not say what its numbers are */
  const char *label;    /* of the benchmark, where the file has a column for it; "" if none */
  const char *settings; /* JSON object of the recipe's fields that have columns; "" if none */
  const char *chosen;   /* likewise of fields that were chosen for the cell: the learning rate */
  bool has_seed;
  uint64_t seed;
  double *step, *value; /* [n]; value may be infinite, never NaN */
  size_t n;
  double *nan_step; /* [n_nan] the steps at which the file says NaN */
  size_t n_nan;
} series;

typedef struct series_table {
  const char *axis; /* heading of the column that the series run along */
  series *series;
  size_t n_series;
  size_t n_left_out; /* values that are no numbers, such as the lists of a JSON line */
  arena memory;      /* of the texts, and of the table itself */
} series_table;

/* An empty table; NULL if memory is short. */
series_table *series_table_new(void);
void series_table_free(series_table *table);
/* Adds a series without values that has the texts (NULL: "") and the seed of `like`. GL_ENOMEM. */
gl_status series_add(series_table *table, const series *like, gl_error *err);
/* Appends a value; NaN: that the file says NaN there. GL_ENOMEM. */
gl_status series_append(series *s, double step, double value, gl_error *err);

/* Whether the metric has that component between slashes or at its ends: "step_diff" is one of
 * "train/step_diff". */
bool series_has_component(const char *metric, const char *component);

/* The one series whose metric has one of the n components; a later component is looked for only
 * where no metric has the earlier ones. run: "RUN", "[tag]RUN" or the column's whole heading; NULL
 * where one series is all there is. GL_EINPUT, naming file and what there is, if none or several
 * are meant. */
gl_status series_choose(const series **out, const series_table *table,
                        const char *const *components, size_t n, const char *run, const char *file,
                        gl_error *err);

/* --- the rows of a table: sheet.c --- */

/* A file of records as rows of named cells, whatever its syntax: CSV, TSV or JSON Lines.
 *
 * Cells keep their text. Objects within a JSON line become columns "outer/inner"; null and missing
 * cells are the same; lists, and what W&B logs as an object with "_type", are counted and left out.
 * Lines that begin with '#' before the headings of CSV and TSV are skipped. */
typedef struct sheet_cell {
  uint32_t column;
  uint32_t place; /* where it begins in its line, from 1 */
  size_t text;    /* where its text begins in sheet.texts */
} sheet_cell;

typedef struct sheet {
  const char *name; /* of the file, in messages */
  const char **heading;
  size_t n_columns;
  sheet_cell *cells; /* row by row; empty cells are not among them */
  size_t n_cells;
  size_t *row;  /* [n_rows + 1] the first cell of each row */
  size_t *line; /* [n_rows] of the file, from 1 */
  size_t n_rows;
  bool is_json; /* JSON Lines, whose members are named after what they hold */
  char *texts;  /* the cells' texts, each ended by a zero */
  size_t n_texts, n_left_out;
  size_t cell_room, row_room, text_room;
  arena memory; /* of name and headings */
} sheet;

typedef enum sheet_syntax { SHEET_COMMAS, SHEET_TABS, SHEET_JSON_LINES } sheet_syntax;

/* Reads size bytes of text; name is the name of the file in errors. Release with sheet_fini() in
 * any case. GL_EINPUT, with file:line:column, for text that is not of that syntax and for more than
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

/* --- the series of a table: shape.c --- */

/* The roles of a sheet's columns, and the series in it.
 *
 * A column is known by its heading (the part after the last slash, in any case): the step
 * ("step", "_step", "update", "global_step", …), the run ("run", "algorithm", "method", "name", …),
 * the seed, the benchmark, or, in long tables, "metric" and "value". A field of a recipe
 * ("cluster.max_delay") is a setting of its run. All other columns are
 *
 *   - metrics, where some column names the run (long or tidy tables), or where all of them are
 *     metrics' names: then they are those of one run, named after the file;
 *   - runs of one quantity, where none of them is a metric's name: `step,gepo,grpo`.
 *
 * Where both are among them the file is refused, unless `columns` says what they are. */
typedef enum shape_columns { COLUMNS_BY_NAME, COLUMNS_ARE_RUNS, COLUMNS_ARE_METRICS } shape_columns;

typedef struct shape_request {
  const char *step; /* the heading of the step; NULL: known by its name */
  shape_columns columns;
} shape_request;

/* The series of a sheet. GL_EINPUT, with file:line:column and the remedy, where no column is the
 * step, a cell that should be a number is none, or it is not clear what a column is. Release with
 * series_table_free(). */
gl_status shape_series(series_table **out, const sheet *s, const shape_request *request,
                       gl_error *err);

/* --- files: formats.c --- */

/* The rows of a file as they are, for readers that know its columns. A table of one column is
 * accepted too. Release with sheet_fini() in any case. Errors as below. */
gl_status read_rows(sheet *out, const char *path, gl_error *err);
/* The series of a file; request may be NULL. Release with series_table_free(). GL_EIO if the file
 * cannot be read, GL_EINPUT with file, place and remedy if it has none of the formats. */
gl_status read_series(series_table **out, const char *path, const shape_request *request,
                      gl_error *err);
/* The same from size bytes of text; name is the name of the file in errors. */
gl_status read_series_text(series_table **out, const char *text, size_t size, const char *name,
                           const shape_request *request, gl_error *err);
/* *is: whether the file begins as a study does. GL_EIO if it cannot be read. */
gl_status read_is_study(const char *path, int *is, gl_error *err);

#endif
