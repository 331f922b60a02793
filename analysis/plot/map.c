/* Cells and contours of maps. */
#include "analysis/plot/map.h"

#include <math.h>
#include <string.h>

void map_edges(const double *x, size_t n, int logarithmic, double *edge) {
  for (size_t i = 1; i < n; i++)
    edge[i] = logarithmic ? sqrt(x[i - 1] * x[i]) : 0.5 * (x[i - 1] + x[i]);
  if (n == 1) {
    edge[0] = logarithmic ? x[0] / 2 : x[0] - 0.5, edge[1] = logarithmic ? x[0] * 2 : x[0] + 0.5;
    return;
  }
  edge[0] = logarithmic ? x[0] * x[0] / edge[1] : 2 * x[0] - edge[1];
  edge[n] = logarithmic ? x[n - 1] * x[n - 1] / edge[n - 1] : 2 * x[n - 1] - edge[n - 1];
}

void page_map(figure_page *p, size_t panel, const figure_map *m) {
  figure_panel *to = &p->panels[panel];
  to->kept = 1;
  to->low = m->y_edge[0], to->high = m->y_edge[m->n_y];
  page_x(p, m->x_edge[0]), page_x(p, m->x_edge[m->n_x]);
  for (size_t y = 0; y < m->n_y; y++)
    for (size_t x = 0; x < m->n_x; x++) {
      const double value = m->value[y * m->n_x + x];
      if (!isfinite(value)) continue;
      page_line(p, panel, "cell");
      page_number(p, m->x_edge[x]), page_number(p, m->x_edge[x + 1]);
      page_number(p, m->y_edge[y]), page_number(p, m->y_edge[y + 1]);
      page_number(p, value);
      fputc('\n', p->data.stream);
    }
  page_block_end(p);
}

/* --- contours --- */

/* Where a contour is drawn: the scales of axes and values. */
typedef struct contour {
  figure_page *p;
  const figure_map *m;
  size_t panel;
  double level;
  int log_x, log_y, log_value;
} contour;

static double centre(const double *edge, size_t i, int logarithmic) {
  return logarithmic ? 0.5 * (log(edge[i]) + log(edge[i + 1])) : 0.5 * (edge[i] + edge[i + 1]);
}

/* How far above the level the cell is, on the scale of the colours. */
static double above(const contour *c, size_t x, size_t y) {
  const double value = c->m->value[y * c->m->n_x + x];
  return c->log_value ? log(value) - log(c->level) : value - c->level;
}

typedef struct point {
  double x, y;
} point;

/* The crossings of the four sides of the square whose lower left corner is that cell's centre. */
static size_t crossings(const contour *c, size_t x, size_t y, point out[4]) {
  const size_t cx[5] = {x, x + 1, x + 1, x, x}, cy[5] = {y, y, y + 1, y + 1, y};
  size_t n = 0;
  for (int side = 0; side < 4; side++) {
    const double a = above(c, cx[side], cy[side]), b = above(c, cx[side + 1], cy[side + 1]);
    if (!isfinite(a) || !isfinite(b)) return 0;
    if ((a < 0) == (b < 0)) continue;
    const double t = a / (a - b);
    const double xa = centre(c->m->x_edge, cx[side], c->log_x),
                 xb = centre(c->m->x_edge, cx[side + 1], c->log_x),
                 ya = centre(c->m->y_edge, cy[side], c->log_y),
                 yb = centre(c->m->y_edge, cy[side + 1], c->log_y);
    out[n++] = (point){xa + t * (xb - xa), ya + t * (yb - ya)};
  }
  return n;
}

static void write_segment(const contour *c, point from, point to) {
  const point ends[2] = {from, to};
  for (int i = 0; i < 2; i++) {
    page_line(c->p, c->panel, "contour");
    page_number(c->p, c->log_x ? exp(ends[i].x) : ends[i].x);
    page_number(c->p, c->log_y ? exp(ends[i].y) : ends[i].y);
    fputc('\n', c->p->data.stream);
  }
  fputc('\n', c->p->data.stream);
}

void page_contour(figure_page *p, size_t panel, const figure_map *m, double level) {
  const contour c = {
      p, m, panel, level, p->x_logarithmic, p->panels[panel].logarithmic, p->bar_logarithmic};
  point at[4];
  page_line(p, panel, "contour");
  fputs("\t\t\n\n", p->data.stream); /* a block is never empty, or it would not be counted */
  for (size_t y = 0; y + 1 < m->n_y && isfinite(level); y++)
    for (size_t x = 0; x + 1 < m->n_x; x++) {
      const size_t n = crossings(&c, x, y, at);
      if (n >= 2) write_segment(&c, at[0], at[1]);
      if (n == 4) write_segment(&c, at[2], at[3]);
    }
  fputc('\n', p->data.stream);
}

/* --- colours --- */

void page_bar(figure_page *p, const char *axis, double low, double high, int logarithmic) {
  snprintf(p->bar_axis, sizeof p->bar_axis, "%s", axis);
  p->bar_low = low, p->bar_high = high > low ? high : low + fmax(1e-6, fabs(low) * 1e-3);
  p->bar_logarithmic = logarithmic;
  page_set(p, "diverging", 0);
}

void page_bar_diverging(figure_page *p, const char *axis, double most, int logarithmic) {
  page_bar(p, axis, logarithmic ? 1 / most : -most, most, logarithmic);
  page_set(p, "diverging", 1);
}
