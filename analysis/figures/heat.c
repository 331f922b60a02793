/* The figure `heat`: best and last of every algorithm at every delay, as colours. */
#include "analysis/figures/list.h"

#include "analysis/plot/map.h"
#include "core/base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENDS = 2 };

/* Edges of the cells: delays at places 0, 1, ... and algorithms from above at -1, -2, ... */
typedef struct heat {
  double *x, *y, *value;
} heat;

static int heat_init(heat *h, size_t n_x, size_t n_y) {
  *h = (heat){calloc(n_x + 1, sizeof *h->x), calloc(n_y + 1, sizeof *h->y),
              calloc(n_x * n_y + 1, sizeof *h->value)};
  for (size_t i = 0; h->x && i <= n_x; i++) h->x[i] = (double)i - 0.5;
  for (size_t i = 0; h->y && i <= n_y; i++) h->y[i] = (double)i - (double)n_y - 0.5;
  return h->x && h->y && h->value;
}

static void fill(heat *h, const summary *s, const x_grid *grid, size_t slice, size_t end,
                 double *low, double *high) {
  const size_t n = s->from->n_algorithms;
  for (size_t a = 0; a < n; a++)
    for (size_t i = 0; i < grid->n_x; i++) {
      const size_t group = grid_group(grid, s->from, slice, i);
      const cell_summary *c = group < s->from->n_groups ? cell_of(s, group, a) : NULL;
      const double v = !c ? NAN : end == 0 ? c->best.value : c->last.value;
      h->value[(n - 1 - a) * grid->n_x + i] = v;
      if (isfinite(v)) *low = fmin(*low, v), *high = fmax(*high, v);
    }
}

static gl_status write_maps(figure_page *p, const summary *s, const x_grid *grid, heat *h,
                            gl_error *err) {
  static const char *const names[ENDS] = {"best", "last"};
  const figure_map m = {grid->n_x, s->from->n_algorithms, h->x, h->y, h->value};
  double low = INFINITY, high = -INFINITY;
  gl_status status = GL_OK;
  for (size_t panel = 0; panel < p->n_panels; panel++) {
    figure_panel *to = &p->panels[panel];
    const char *heading = grid->headings[panel / ENDS];
    snprintf(to->title, sizeof to->title, *heading ? "%s, %.200s" : "%s%.0s", names[panel % ENDS],
             heading);
    snprintf(to->axis, sizeof to->axis, "%.150s", grid->name);
    fill(h, s, grid, panel / ENDS, panel % ENDS, &low, &high);
    page_map(p, panel, &m);
    to->low = h->x[0], to->high = h->x[grid->n_x]; /* rows are named: its axis is x */
  }
  for (size_t panel = 0; panel < p->n_panels; panel++) page_contour(p, panel, &m, NAN);
  for (size_t i = 0; i < grid->n_x && status == GL_OK; i++) {
    char text[NUMBER_TEXT_SIZE];
    status = page_mark(p, PAGE_MARK, (double)i, number_text(grid->x[i], text), err);
  }
  page_bar(p, "evaluation score", low <= high ? low : 0, low <= high ? high : 1, 0);
  return status;
}

gl_status figure_heat(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const results *r = s->from;
  x_grid grid;
  heat h = {0};
  gl_status status = grid_init(&grid, r, X_DELAY, err);
  if (status != GL_OK) return status;
  const size_t slices = grid.n_slices < 2 ? grid.n_slices : 2;
  status = page_open(p, ENDS * slices, "panel\tcell\tx from\tto\ty from\tto\tiqm", err);
  p->wide = p->share = ENDS;
  p->named_rows = p->tight = 1;
  if (status == GL_OK && !heat_init(&h, grid.n_x, r->n_algorithms))
    status = gl_fail_memory(err, "a map");
  if (status == GL_OK) status = write_maps(p, s, &grid, &h, err);
  if (status == GL_OK)
    status = page_set_lines(p, (const char *const *)r->algorithms, r->n_algorithms, err);
  size_t shown[2] = {0, 1};
  if (status == GL_OK) status = grid_leave_out(p, &grid, r, shown, slices, err);
  free(h.x), free(h.y), free(h.value);
  grid_fini(&grid);
  return status;
}
