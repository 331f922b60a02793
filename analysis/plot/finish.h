/* Finishing a page. */
#ifndef GEPOLAB_ANALYSIS_PLOT_FINISH_H
#define GEPOLAB_ANALYSIS_PLOT_FINISH_H

#include "analysis/plot/page.h"

/* Writes the script and puts both files in place; releases the page. After a failure (status, which
 * is then handed through, also one before page_open) nothing is left behind. */
gl_status page_close(figure_page *p, gl_status status, gl_error *err);

#endif
