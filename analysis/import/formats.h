/* The formats of files that are read, in the order in which they are tried. A new format is a line
 * of IMPORT_FORMATS and a file NAME.c with the struct format_NAME; panel.c is an example. Only for
 * the files of this folder. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_FORMATS_H
#define GEPOLAB_ANALYSIS_IMPORT_FORMATS_H

#include "analysis/import/read.h"

/* F(name): json_lines, tabs and commas are in sheet.c. */
#define IMPORT_FORMATS(F) F(json_lines) F(tabs) F(panel) F(commas)

typedef struct import_file {
  const char *name; /* in errors */
  const char *text;
  size_t size;
  size_t start;    /* the first byte that is neither blank nor of a comment line */
  bool one_column; /* whether a table may have one column alone */
} import_file;

typedef struct import_format {
  /* *is: whether the file has this format; no earlier one of the list has it. A file that is almost
   * of this format is refused with the remedy. */
  gl_status (*recognise)(bool *is, const import_file *f, gl_error *err);
  /* The records as they are; NULL: the format has no rows. */
  gl_status (*rows)(sheet *out, const import_file *f, gl_error *err);
  /* The series; NULL: those that shape_series() finds in the rows. */
  gl_status (*series)(series_table **out, const import_file *f, gl_error *err);
} import_format;

#define IMPORT_FORMAT_DECLARED(name) extern const import_format format_##name;
IMPORT_FORMATS(IMPORT_FORMAT_DECLARED)

/* Whether the character is in the first line outside of quotes. */
bool import_separates(const import_file *f, char wanted);
/* Refuses the file as a whole: what it is, and the remedy. */
gl_status import_refuse(const import_file *f, const char *what, const char *remedy, gl_error *err);

#endif
