/* CSV files exported from Weights & Biases panels.
 *
 * The first column is the panel's x axis; every other column is one quantity of one run, headed
 * "[tag]RUN - metric" (the tag is optional). Columns that end in __MIN or __MAX and W&B's own
 * bookkeeping (_step, _runtime, _timestamp) are not metrics and are left out. Cells may be quoted
 * or not, and empty where a run has no value. A byte-order mark, CRLF ends and empty lines are
 * accepted; everything else that is not such a table is refused with file:line:column.
 */
#ifndef GEPOLAB_ANALYSIS_WANDB_H
#define GEPOLAB_ANALYSIS_WANDB_H

#include "core/base/error.h"

#include <stddef.h>

/* Values of one metric of one run in file order; cells without a number are not in it. */
typedef struct wandb_series {
  char *tag; /* "" if none */
  char *run;
  char *metric;
  double *step, *value; /* [n]; value may be infinite, never NaN */
  size_t n;
} wandb_series;

typedef struct wandb_table {
  char *axis; /* header of the first column */
  wandb_series *series;
  size_t n_series;
} wandb_table;

/* Reads a file; release with wandb_free(). GL_EIO if it cannot be read, GL_EINPUT as above. */
gl_status wandb_read(wandb_table **out, const char *path, gl_error *err);
/* The same from size bytes of text; name stands for the file in errors. */
gl_status wandb_parse(wandb_table **out, const char *text, size_t size, const char *name,
                      gl_error *err);
void wandb_free(wandb_table *table);

/* The one series whose metric has one of the n components between slashes or at its ends
 * ("step_diff" is one of "train/step_diff"); a later component is looked for only where no metric
 * has the earlier ones. run: "RUN", "[tag]RUN" or the column's whole heading; NULL where one series
 * is all there is. GL_EINPUT, naming file and what there is, if none or several are meant. */
gl_status wandb_choose(const wandb_series **out, const wandb_table *table,
                       const char *const *components, size_t n, const char *run, const char *file,
                       gl_error *err);

#endif
