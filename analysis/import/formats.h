/* The supported file formats, in the order in which they are tried. To add a format, write NAME.c
 * with the struct format_NAME and add a line to IMPORT_FORMATS; panel.c is an example. Private to
 * this folder. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_FORMATS_H
#define GEPOLAB_ANALYSIS_IMPORT_FORMATS_H

#include "analysis/import/read.h"

/* F(name). The logs of trainers are recognised by their keys, in any order: a file that two of them
 * would read is refused, and --log-format NAME decides. Then come the general formats, of which the
 * first that fits is used. json_lines, tabs and commas are in sheet.c. */
#define IMPORT_FORMATS(F)                                                                          \
  F(verl)                                                                                          \
  F(trainer_state)                                                                                 \
  F(prime_rl)                                                                                      \
  F(areal_sessions)                                                                                \
  F(miles)                                                                                         \
  F(miles_events)                                                                                  \
  F(step_lists)                                                                                    \
  F(json_lines)                                                                                    \
  F(tabs)                                                                                          \
  F(panel)                                                                                         \
  F(commas)

typedef struct import_file {
  const char *name; /* file name for error messages */
  const char *text;
  size_t size;
  size_t start;          /* offset of the first byte that is neither blank nor in a comment line */
  bool takes_one_column; /* the caller takes a table of a single column */
  bool has_fixed_name;   /* the name is the one that the format's writer gives every file */
} import_file;

typedef struct import_format {
  const char *about; /* what writes such files, for people */
  /* Name that the writer gives every file ("metrics.jsonl"), so that the folder names the run;
   * NULL: none. */
  const char *fixed_name;
  bool is_general; /* no trainer's own log */
  /* *is: the file has this format. A file that is almost of this format is rejected with a hint. */
  gl_status (*recognise)(bool *is, const import_file *f, gl_error *err);
  /* Reads the records as rows; NULL: the format has no rows. */
  gl_status (*rows)(sheet *out, const import_file *f, gl_error *err);
  /* Reads the series; NULL: shape_series() makes them from the rows, or the format has no series (a
   * trainer's token-level log). */
  gl_status (*series)(series_table **out, const import_file *f, gl_error *err);
} import_format;

#define IMPORT_FORMAT_DECLARED(name) extern const import_format format_##name;
IMPORT_FORMATS(IMPORT_FORMAT_DECLARED)

/* Returns true if the character is in the first line outside of quotes. */
bool import_separates(const import_file *f, char wanted);
/* Rejects the file: `what` describes the file, `remedy` the fix. */
gl_status import_refuse(const import_file *f, const char *what, const char *remedy, gl_error *err);

#endif
