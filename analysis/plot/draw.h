/* Drawing the figures of a table that there are data for. */
#ifndef GEPOLAB_ANALYSIS_PLOT_DRAW_H
#define GEPOLAB_ANALYSIS_PLOT_DRAW_H

#include "analysis/plot/figure.h"

/* Writes data and scripts of every figure that data has what it needs for, then draws them.
 * GL_EINPUT if q->only is no figure's name (the nearest is named) or lacks its data (and why), or
 * no figure has its data; GL_EIO if the folder or a file cannot be written, or gnuplot is missing
 * or fails: data and scripts are then complete. */
gl_status figures_draw_table(const figure_table *t, const void *data, const figure_request *q,
                             gl_error *err);

#endif
