/* The figure `pareto`: what can be had of one quantity at how much of another, as points with
 * intervals both ways: the candidates, the Pareto front among them, and the one that is
 * recommended. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_PARETO_H
#define GEPOLAB_ANALYSIS_FIGURES_PARETO_H

#include "analysis/plot/figure.h"

typedef enum pareto_kind {
  PARETO_CANDIDATE,
  PARETO_FRONT,
  PARETO_CHOSEN,
  PARETO_KINDS
} pareto_kind;

typedef struct pareto_point {
  pareto_kind kind;
  double x, x_low, x_high, y, y_low, y_high; /* ends of intervals; NaN: none are shown */
} pareto_point;

/* Borrowed. Points of the front in the order of the line through them. */
typedef struct pareto {
  const char *x_axis, *y_axis; /* with their units */
  const pareto_point *points;  /* [n] */
  size_t n;
  double limit; /* of x, a vertical line; INFINITY: none */
} pareto;

/* Draws it (errors: figures_draw_table, analysis/plot/draw.h). GL_EINPUT where there is no point.
 */
gl_status figure_of_pareto(const pareto *d, const figure_request *q, gl_error *err);

#endif
