/* The figure `speedups`: what systems were published to gain over training in turns, and what the
 * clock says, a line for each case. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_SPEEDUPS_H
#define GEPOLAB_ANALYSIS_FIGURES_SPEEDUPS_H

#include "analysis/plot/figure.h"

/* Borrowed. */
typedef struct speedups {
  const char *const *names;            /* [n] no two alike */
  const double *published, *simulated; /* [n] times as fast as in turns */
  size_t n;
} speedups;

/* Draws it (errors: figures_draw_table, analysis/plot/draw.h). GL_EINPUT where there is no case. */
gl_status figure_of_speedups(const speedups *s, const figure_request *q, gl_error *err);

#endif
