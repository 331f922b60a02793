/* CSV files exported from Weights & Biases panels.
 *
 * The first column is the panel's x axis; every other column is one quantity of one run, headed
 * "[tag]RUN - metric" (the tag is optional). Columns that end in __MIN or __MAX and W&B's own
 * bookkeeping (_step, _runtime, _timestamp) are not metrics and are left out. Cells may be quoted
 * or not, and empty where a run has no value. A byte-order mark, CRLF ends and empty lines are
 * accepted; everything else that is not such a table is refused with file:line:column.
 */
#ifndef GEPOLAB_ANALYSIS_IMPORT_PANEL_H
#define GEPOLAB_ANALYSIS_IMPORT_PANEL_H

#include "analysis/import/series.h"

/* Reads size bytes of text; name stands for the file in errors. Release with series_table_free().
 * GL_EINPUT as above. */
gl_status panel_parse(series_table **out, const char *text, size_t size, const char *name,
                      gl_error *err);
/* Whether a column's heading has the form of such a panel's, "RUN - metric". */
int panel_heading(const char *heading);

#endif
