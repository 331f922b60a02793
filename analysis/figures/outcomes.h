/* Figures of run outcomes: of a study, as two lines of its table of figures, or of stored outcomes
 * without a study. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_OUTCOMES_H
#define GEPOLAB_ANALYSIS_FIGURES_OUTCOMES_H

#include "analysis/outcome.h"
#include "analysis/plot/page.h"

/* Draws `survival` and `frontier` of stored outcomes. Errors: those of figures_draw_table()
 * (analysis/plot/draw.h), and of figures_check_highlight() for a name that is not an algorithm. */
gl_status figures_of_fates(const stability *s, const figure_request *q, gl_error *err);

#endif
