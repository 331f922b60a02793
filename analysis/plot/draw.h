/* Drawing the figures of a table that there are data for. */
#ifndef GEPOLAB_ANALYSIS_PLOT_DRAW_H
#define GEPOLAB_ANALYSIS_PLOT_DRAW_H

#include "analysis/plot/figure.h"

/* Writes the data file and the script of every figure for which `data` is enough, then draws them.
 * GL_EINPUT if q->only is the name of no figure (the message names the nearest), if that figure
 * lacks data (the message says which), or if no figure has its data. GL_EIO if the folder or a file
 * cannot be written, or if gnuplot is missing or fails; in that case all data and scripts are
 * there. */
gl_status figures_draw_table(const figure_table *t, const void *data, const figure_request *q,
                             gl_error *err);

/* GL_EINPUT, with the nearest, if q->highlight names something that is not among names[n]. */
gl_status figures_check_highlight(const figure_request *q, const char *const *names, size_t n,
                                  gl_error *err);

#endif
