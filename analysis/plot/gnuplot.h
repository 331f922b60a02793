/* Running gnuplot. */
#ifndef GEPOLAB_ANALYSIS_PLOT_GNUPLOT_H
#define GEPOLAB_ANALYSIS_PLOT_GNUPLOT_H

#include "core/base/error.h"

/* Has the program (a name or a path) run FOLDER/NAME.gp from within the folder, which writes
 * NAME.pdf, NAME.png and NAME.svg under other names; they are put in place when they are whole.
 * GL_EIO if it cannot be started, or fails, with the beginning of its complaint. */
gl_status gnuplot_draw(const char *folder, const char *program, const char *name, gl_error *err);

#endif
