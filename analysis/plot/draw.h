/* Draws the figures of a table that have data. */
#ifndef GEPOLAB_ANALYSIS_PLOT_DRAW_H
#define GEPOLAB_ANALYSIS_PLOT_DRAW_H

#include "analysis/plot/page.h"
#include "core/base/error.h"

/* Writes the data file and script of every figure for which `data` suffices, then draws them.
 * Errors: GL_EINPUT (q->only is not a figure, with the nearest name; that figure lacks data; or no
 * figure has data), GL_EIO (the folder or a file cannot be written, or gnuplot is missing or fails;
 * all data and scripts are then written). */
gl_status figures_draw_table(const figure_table *t, const void *data, const figure_request *q,
                             gl_error *err);
/* The same for one figure. missing: why its data do not suffice, NULL if they do. nothing: the
 * message of the error if they do not. */
gl_status figures_draw_one(const figure *f, const char *missing, const char *nothing,
                           const void *data, const figure_request *q, gl_error *err);

/* Errors: GL_EINPUT if q->highlight has a name that is not in names[n], with the nearest and all
 * names. */
gl_status figures_check_highlight(const figure_request *q, const char *const *names, size_t n,
                                  gl_error *err);

/* Runs the program (a name or a path) on FOLDER/NAME.gp inside the folder. It writes NAME.pdf,
 * NAME.png and NAME.svg under temporary names, which are renamed when complete. Errors: GL_EIO (not
 * started or failed, with the beginning of its error output). */
gl_status gnuplot_draw(const char *folder, const char *program, const char *name, gl_error *err);

#endif
