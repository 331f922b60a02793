/* Reads a file of numbers from another program: one series for each quantity of each run. The
 * format is detected from the content (formats.h); each format has its own reader in this folder.
 *
 * gepolab studies are recognised (read_is_study) and read by results_load(). Other files, such as
 * JSON arrays, compressed or binary files, are rejected with a hint. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_READ_H
#define GEPOLAB_ANALYSIS_IMPORT_READ_H

#include "core/base/arena.h"
#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits on tables and names; larger files are rejected. */
enum {
  IMPORT_MOST_COLUMNS = 4096,
  IMPORT_MOST_SERIES = 8192, /* limit per file and for all files together */
  IMPORT_MOST_NAME = 1000    /* bytes of a heading and of the name of a run, metric or benchmark */
};

/* --- series: series.c --- */

/* Values of one metric of one run in file order. Empty cells are skipped; for NaN only the step is
 * stored. Texts are owned by the table. */
typedef struct series {
  const char *tag;      /* "" if none */
  const char *run;      /* name of the run */
  const char *metric;   /* "" if the file does not name the metric */
  const char *label;    /* benchmark, if the file has a column for it; otherwise "" */
  const char *settings; /* JSON object of recipe fields with columns, or "" */
  const char *chosen;   /* JSON object of fields chosen per cell (the learning rate), or "" */
  bool has_seed;
  uint64_t seed;
  double *step, *value; /* [n]; value may be infinite, never NaN */
  size_t *line;         /* [n] of the file, from 1; 0: the format has no line for a value */
  size_t n;
  double *nan_step; /* [n_nan] steps at which the file has NaN */
  size_t n_nan;
} series;

typedef struct series_table {
  const char *axis; /* heading of the x column */
  series *series;
  size_t n_series;
  size_t n_left_out;  /* number of non-numeric values, such as lists in JSON lines */
  size_t n_restarts;  /* how often a trainer's log went back to an earlier step */
  const char **notes; /* [n_notes] messages for the user about the file */
  size_t n_notes;
  arena memory; /* memory of texts and of the table itself */
} series_table;

/* Allocates an empty table; NULL if memory runs out. */
series_table *series_table_new(void);
void series_table_free(series_table *table);
/* Adds an empty series with the texts (NULL: "") and the seed of `like`. Errors: GL_ENOMEM. */
gl_status series_add(series_table *table, const series *like, gl_error *err);
/* Appends a value from a line of the file (0: unknown); NaN stores the step in nan_step. Errors:
 * GL_ENOMEM. */
gl_status series_append(series *s, double step, double value, size_t line, gl_error *err);

/* Adds the note that the last line of a file is cut off. Errors: GL_ENOMEM. */
gl_status series_note_cut(series_table *table, const char *file, gl_error *err);
/* Adds a note, printf-style. Errors: GL_ENOMEM. */
gl_status series_note(series_table *table, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns true if the metric has that component between slashes: "train/step_diff" has "step_diff".
 */
bool series_has_component(const char *metric, const char *component);

/* Finds the one series whose metric has one of the n components. A later component is tried only if
 * no metric has an earlier one. run: "RUN", "[tag]RUN" or the column's whole heading; NULL if there
 * is only one. Errors: GL_EINPUT (none or several match), with the file and the available series.
 */
gl_status series_choose(const series **out, const series_table *table,
                        const char *const *components, size_t n, const char *run, const char *file,
                        gl_error *err);

/* --- the rows of a table: sheet.c --- */

/* A file of records as rows of named cells, independent of syntax: CSV, TSV or JSON Lines.
 *
 * Cells keep their text. Nested objects in a JSON line become columns "outer/inner"; null is the
 * same as a missing cell. Lists, and objects with "_type" that W&B logs, are counted and skipped.
 * Lines that begin with '#' before the headings of CSV and TSV are skipped. */
typedef struct sheet_cell {
  uint32_t column;
  uint32_t place; /* column of its first character in the line, from 1 */
  size_t text;    /* offset of its text in sheet.texts */
} sheet_cell;

typedef struct sheet {
  const char *name; /* file name for messages */
  const char **heading;
  size_t n_columns;
  sheet_cell *cells; /* row by row, without empty cells */
  size_t n_cells;
  size_t *row;  /* [n_rows + 1] index of each row's first cell */
  size_t *line; /* [n_rows] line in the file, from 1 */
  size_t n_rows;
  bool is_json; /* JSON Lines, whose members are named by content */
  bool is_cut;  /* the last line, without its end, was left out */
  char *texts;  /* texts of the cells, each null-terminated */
  size_t n_texts, n_left_out;
  size_t cell_room, row_room, text_room;
  arena memory; /* memory of name and headings */
} sheet;

typedef enum sheet_syntax { SHEET_COMMAS, SHEET_TABS, SHEET_JSON_LINES } sheet_syntax;

/* Parses size bytes of text; name is the file name in messages. Release with sheet_fini(), also
 * after an error. Errors: GL_ENOMEM, GL_EINPUT with file:line:column (invalid syntax, more than
 * IMPORT_MOST_COLUMNS columns). */
gl_status sheet_read(sheet *out, const char *text, size_t size, sheet_syntax syntax,
                     const char *name, gl_error *err);
void sheet_fini(sheet *s);

/* Returns the cell's text; NULL if the row has none in that column. */
const char *sheet_text(const sheet *s, size_t row, size_t column);
/* Returns GL_EINPUT with the position of a cell (or of its row, if the cell is missing). The format
 * gives the problem and the fix. */
gl_status sheet_fail(const sheet *s, size_t row, size_t column, gl_error *err, const char *format,
                     ...) __attribute__((format(printf, 5, 6)));

/* --- the series of a sheet: sheet_columns.c --- */

/* Assigns roles to a sheet's columns and extracts the series.
 *
 * A column is identified by its heading (the part after the last slash, ignoring case): the step
 * ("step", "_step", "update", "global_step", …), the run ("run", "algorithm", "method", "name", …),
 * the seed, the benchmark, or, in long tables, "metric" and "value". A recipe field
 * ("cluster.max_delay") is a setting of its run. All other columns are
 *
 *   - metrics, if some column names the run (long or tidy tables), or if all headings are metric
 *     names: then they belong to one run, named after the file;
 *   - runs of one quantity, if no heading is a metric name: `step,gepo,grpo`.
 *
 * If both kinds occur, the file is rejected unless `columns` says what they are. */
typedef enum shape_columns { COLUMNS_BY_NAME, COLUMNS_ARE_RUNS, COLUMNS_ARE_METRICS } shape_columns;

typedef struct shape_request {
  const char *step; /* heading of the step column; NULL: identified by its name */
  shape_columns columns;
  const char *format; /* name of the file's format (formats.h); NULL: recognised by its content */
} shape_request;

/* Extracts the series of a sheet. Release with series_table_free(). Errors: GL_ENOMEM, GL_EINPUT
 * with file:line:column and a hint (no step column, a cell that should be a number, an ambiguous
 * column). */
gl_status shape_series(series_table **out, const sheet *s, const shape_request *request,
                       gl_error *err);

/* --- files: formats.c --- */

/* Reads a file as rows, for callers that know its columns. A single column is accepted. format: its
 * name, or NULL. Release with sheet_fini(), also after an error. Errors: as for read_series(). */
gl_status read_rows(sheet *out, const char *path, const char *format, gl_error *err);
/* The same from size bytes of text. */
gl_status read_rows_text(sheet *out, const char *text, size_t size, const char *name,
                         const char *format, gl_error *err);
/* Reads the series of a file; request may be NULL. Release with series_table_free(). Errors:
 * GL_ENOMEM, GL_EIO (cannot be read), GL_EINPUT with position and hint (not in a supported format).
 */
gl_status read_series(series_table **out, const char *path, const shape_request *request,
                      gl_error *err);
/* The same from size bytes of text; name is the file name in messages. */
gl_status read_series_text(series_table **out, const char *text, size_t size, const char *name,
                           const shape_request *request, gl_error *err);
/* Name and description of format i, in the order of formats.h; NULL after the last one. */
const char *import_format_about(size_t i, const char **name);

/* Kinds of trainers' logs. */
typedef enum read_kind {
  READ_IS_SERIES, /* metrics by step */
  READ_IS_ROWS,   /* times of requests */
  READ_IS_OTHER   /* no trainer's log: a table, or something else */
} read_kind;
/* Finds the kind of a file. Errors: GL_ENOMEM, GL_EIO, GL_EINPUT (several formats would read it).
 */
gl_status read_which(read_kind *out, const char *path, gl_error *err);

/* *is: 1 if the file begins like a study, or is called .db and empty, as a sweep leaves it that is
 * stopped before its first run. Errors: GL_EIO (cannot be read). */
gl_status read_is_study(const char *path, int *is, gl_error *err);

/* --- folders: folder.c --- */

/* The logs in a folder and in the folders within it, in the order of their paths. If some of them
 * are trainers' logs, the others are left out; if none is, all files called .csv, .tsv or .jsonl
 * are listed (perhaps with .gz or .zst behind it). Of Hugging Face checkpoints side by side, whose
 * logs repeat each other, only the last one is listed. */
typedef struct folder_logs {
  const char **path; /* [n] */
  size_t n;
  char
      left_out[400]; /* names of files that are left out, ", " between them; "" if there are none */
  size_t n_left_out;
  bool are_tables; /* no file is a trainer's log */
  arena memory;
} folder_logs;

/* Whether a file is a log by the ending of its name, packed (.gz, .zst) or not: a table or JSON
 * Lines; or one of these or JSON. */
bool folder_name_is_table(const char *name);
bool folder_name_is_log(const char *name);
/* kind: READ_IS_SERIES or READ_IS_ROWS, the trainers' logs that are wanted. Release with
 * folder_fini(), also after an error. Errors: GL_ENOMEM, GL_EIO, GL_EINPUT (no such log in it). */
gl_status folder_list(folder_logs *out, const char *folder, read_kind kind, gl_error *err);
void folder_fini(folder_logs *f);

/* Called with each table of rows. */
typedef gl_status rows_taker(void *context, const sheet *rows, gl_error *err);
/* Reads the rows of a file; of a folder those of all its logs of requests, of which the files of
 * one folder are read as one text, because an attempt may begin in one and end in the next. */
gl_status read_rows_each(const char *path, const char *format, rows_taker *take, void *context,
                         gl_error *err);

#endif
