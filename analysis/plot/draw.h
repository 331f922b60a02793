/* Drawing the figures of a table that there are data for. */
#ifndef GEPOLAB_ANALYSIS_PLOT_DRAW_H
#define GEPOLAB_ANALYSIS_PLOT_DRAW_H

#include "analysis/plot/page.h"
#include "core/base/error.h"

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

/* Finishing a page. */

/* Writes the script and puts both files in place; releases the page. After a failure (status, which
 * is then handed through, also one before page_open) nothing is left behind. */
gl_status page_close(figure_page *p, gl_status status, gl_error *err);

/* Running gnuplot. */

/* Has the program (a name or a path) run FOLDER/NAME.gp from within the folder, which writes
 * NAME.pdf, NAME.png and NAME.svg under other names; they are put in place when they are whole.
 * GL_EIO if it cannot be started, or fails, with the beginning of its complaint. */
gl_status gnuplot_draw(const char *folder, const char *program, const char *name, gl_error *err);

#endif
