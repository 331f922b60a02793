/* Reads a file of numbers, of whatever kind it is by its content:
 *
 *   - a W&B panel export, where the columns are headed "RUN - metric" (panel.h);
 *   - CSV, or TSV where the first line has tabs (sheet.h, shape.h);
 *   - JSON Lines, where the first character is '{'.
 *
 * A gepolab study is recognised (read_is_study) and read by results_load(). Whatever else it is, a
 * JSON array, a compressed or a binary file, is refused with what to do instead. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_READ_H
#define GEPOLAB_ANALYSIS_IMPORT_READ_H

#include "analysis/import/series.h"
#include "analysis/import/shape.h"

/* The rows of a CSV, TSV or JSON Lines file as they stand, for readers that know their columns. A
 * table of one column is taken too. Release with sheet_fini() in any case. Errors as below. */
gl_status read_rows(sheet *out, const char *path, gl_error *err);
/* The series of a file; request may be NULL. Release with series_table_free(). GL_EIO if the file
 * cannot be read, GL_EINPUT with file, place and remedy if it is none of these. */
gl_status read_series(series_table **out, const char *path, const shape_request *request,
                      gl_error *err);
/* The same from size bytes of text; name stands for the file in errors. */
gl_status read_series_text(series_table **out, const char *text, size_t size, const char *name,
                           const shape_request *request, gl_error *err);
/* *is tells whether the file begins as a study does. GL_EIO if it cannot be read. */
gl_status read_is_study(const char *path, int *is, gl_error *err);

#endif
