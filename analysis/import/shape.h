/* What the columns of a sheet are, and the series in it.
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
 * Where both are among them the file is refused, unless `columns` says what they are.
 */
#ifndef GEPOLAB_ANALYSIS_IMPORT_SHAPE_H
#define GEPOLAB_ANALYSIS_IMPORT_SHAPE_H

#include "analysis/import/series.h"
#include "analysis/import/sheet.h"

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

#endif
