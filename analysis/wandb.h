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

/* Lines longer than this are refused: W&B rows stay far below it. */
enum { WANDB_LINE_LIMIT = 10 * 1024 * 1024 };

/* Reads a file; release with wandb_free(). GL_EIO if it cannot be read, GL_EINPUT as above. */
gl_status wandb_read(wandb_table **out, const char *path, gl_error *err);
/* The same from size bytes of text; name stands for the file in errors. */
gl_status wandb_parse(wandb_table **out, const char *text, size_t size, const char *name,
                      gl_error *err);
void wandb_free(wandb_table *table);

/* The first series whose metric has a component `part` between slashes or at its ends
 * ("step_diff" finds "train/step_diff"), or NULL. */
const wandb_series *wandb_find(const wandb_table *table, const char *part);

#endif
