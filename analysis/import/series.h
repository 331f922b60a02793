/* What a file of numbers says: one series for each quantity of each run.
 *
 * Every reader of this room makes a series_table: of W&B panels (panel.h), and of CSV, TSV and JSON
 * Lines (sheet.h, shape.h). read.h chooses the reader by a file's content.
 */
#ifndef GEPOLAB_ANALYSIS_IMPORT_SERIES_H
#define GEPOLAB_ANALYSIS_IMPORT_SERIES_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* The largest tables and names; beyond them files are refused. */
enum {
  IMPORT_MOST_COLUMNS = 4096,
  IMPORT_MOST_SERIES = 8192, /* also of all files together */
  IMPORT_MOST_NAME = 1000    /* bytes of a heading and of a run's, metric's or benchmark's name */
};

/* Values of one metric of one run in file order; cells without a number are not in it. */
typedef struct series {
  char *tag;      /* "" if none */
  char *run;      /* its name */
  char *metric;   /* "" where the file does not say what its numbers are */
  char *label;    /* of the benchmark, where the file has a column for it; "" if none */
  char *settings; /* JSON object of the recipe's fields that have columns; "" if none */
  char *chosen;   /* likewise of fields that were chosen for the cell: the learning rate */
  int has_seed;
  uint64_t seed;
  double *step, *value; /* [n]; value may be infinite, never NaN */
  size_t n;
} series;

typedef struct series_table {
  char *axis; /* heading of the column that the series run along */
  series *series;
  size_t n_series;
  size_t n_left_out; /* values that are no numbers, such as the lists of a JSON line */
} series_table;

void series_table_free(series_table *table);
/* Releases what a series holds. */
void series_fini(series *s);
/* Appends a value; 0 if memory is short. Only for series made by appending. */
int series_append(series *s, double step, double value);

/* Whether the metric has that component between slashes or at its ends: "step_diff" is one of
 * "train/step_diff". */
int series_has_component(const char *metric, const char *component);

/* The one series whose metric has one of the n components; a later component is looked for only
 * where no metric has the earlier ones. run: "RUN", "[tag]RUN" or the column's whole heading; NULL
 * where one series is all there is. GL_EINPUT, naming file and what there is, if none or several
 * are meant. */
gl_status series_choose(const series **out, const series_table *table,
                        const char *const *components, size_t n, const char *run, const char *file,
                        gl_error *err);

#endif
