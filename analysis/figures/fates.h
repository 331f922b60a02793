/* Figures of what became of runs: of a study, where they are two lines of its table, or of stored
 * outcomes alone. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_FATES_H
#define GEPOLAB_ANALYSIS_FIGURES_FATES_H

#include "analysis/outcome.h"
#include "analysis/plot/page.h"

/* Draws `survival` and `frontier` of stored outcomes (errors: figures_draw_table,
 * analysis/plot/draw.h, and figures_check_highlight for a name that is no algorithm's). */
gl_status figures_of_fates(const stability *s, const figure_request *q, gl_error *err);

#endif
