/* Maps: a value for each cell of a grid, as a panel of coloured cells with a contour. */
#ifndef GEPOLAB_ANALYSIS_PLOT_MAP_H
#define GEPOLAB_ANALYSIS_PLOT_MAP_H

#include "analysis/plot/page.h"

/* Borrowed: n_x + 1 and n_y + 1 ascending edges of cells, value[y * n_x + x] (not finite: no cell).
 */
typedef struct figure_map {
  size_t n_x, n_y;
  const double *x_edge, *y_edge, *value;
} figure_map;

/* The edges of cells around ascending numbers x[n], halfway between neighbours (on a logarithmic
 * scale if asked), into edge[n + 1]. */
void map_edges(const double *x, size_t n, int logarithmic, double *edge);

/* A page of maps has one line and one block per panel; p->shape is "map". Writes the panel's block,
 * with an axis of its own over the edges; the panel is kept. Call in the order of the panels. */
void page_map(figure_page *p, size_t panel, const figure_map *m);
/* Behind the blocks of all panels, one of these for each panel in turn: where the values cross
 * `level`, by linear interpolation between the cells' centres (of logarithms where the colours are
 * logarithmic). NaN: an empty contour. */
void page_contour(figure_page *p, size_t panel, const figure_map *m, double level);

/* Colours: from low to high, light to dark in grey too; or from blue over white at the middle to
 * orange, with ends at equal distance from it: 1 on a logarithmic scale, 0 on a linear one. `most`
 * is the upper end; what is beyond an end has its colour. */
void page_bar(figure_page *p, const char *axis, double low, double high, int logarithmic);
void page_bar_diverging(figure_page *p, const char *axis, double most, int logarithmic);

#endif
