/* The figure `densities`: of distributions of durations and lengths, a panel for each quantity.
 */
#ifndef GEPOLAB_ANALYSIS_FIGURES_DENSITIES_H
#define GEPOLAB_ANALYSIS_FIGURES_DENSITIES_H

#include "analysis/plot/figure.h"

/* A distribution in a panel. */
typedef struct density {
  size_t panel, line;
  const double *x, *y; /* [n] ascending x; NULL where n is 0 */
  size_t n;
} density;

/* Borrowed. */
typedef struct densities {
  const char *const *panels; /* [n_panels] the quantities with their units */
  const int *logarithmic;    /* [n_panels] 1: x is, and y is then per unit of ln x */
  size_t n_panels;
  const char *const *lines; /* [n_lines] distributions in words */
  size_t n_lines;
  const density *of; /* [n] */
  size_t n;
  const char *const *left_out; /* [n_left_out] quantities that never vary, with their values */
  size_t n_left_out;
  const char *const *remarks; /* [n_remarks] what a density cannot show: values that have a share */
  size_t n_remarks;
} densities;

/* Draws it (errors: figures_draw_table, analysis/plot/draw.h). GL_EINPUT where there is no panel.
 */
gl_status figure_of_densities(const densities *d, const figure_request *q, gl_error *err);

#endif
