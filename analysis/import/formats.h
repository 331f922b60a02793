/* The supported file formats, in the order in which they are tried. To add a format, write NAME.c
 * with the struct format_NAME and add a line to IMPORT_FORMATS; panel.c is an example. Private to
 * this folder. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_FORMATS_H
#define GEPOLAB_ANALYSIS_IMPORT_FORMATS_H

#include "analysis/import/read.h"

/* F(name). json_lines, tabs and commas are in sheet.c. */
#define IMPORT_FORMATS(F) F(json_lines) F(tabs) F(panel) F(commas)

typedef struct import_file {
  const char *name; /* file name for error messages */
  const char *text;
  size_t size;
  size_t start;    /* offset of the first byte that is neither blank nor in a comment line */
  bool one_column; /* 1: a table may have a single column */
} import_file;

typedef struct import_format {
  /* *is: the file has this format. Called only if no earlier format of the list matched. A file
   * that is almost of this format is rejected with a hint. */
  gl_status (*recognise)(bool *is, const import_file *f, gl_error *err);
  /* Reads the records as rows; NULL: the format has no rows. */
  gl_status (*rows)(sheet *out, const import_file *f, gl_error *err);
  /* Reads the series; NULL: use shape_series() on the rows. */
  gl_status (*series)(series_table **out, const import_file *f, gl_error *err);
} import_format;

#define IMPORT_FORMAT_DECLARED(name) extern const import_format format_##name;
IMPORT_FORMATS(IMPORT_FORMAT_DECLARED)

/* Returns true if the character is in the first line outside of quotes. */
bool import_separates(const import_file *f, char wanted);
/* Rejects the file: `what` describes the file, `remedy` the fix. */
gl_status import_refuse(const import_file *f, const char *what, const char *remedy, gl_error *err);

#endif
