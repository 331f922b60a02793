/* The figure `divergence`: KL, estimation error and weight variance against delay. */
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>

enum { MOST_SLICES = 4 };

/* The first is the divergence that the study knows. */
static const cell_metric quantities[] = {CELL_KL, CELL_ESTIMATION_ERROR, CELL_LOG_IW_VARIANCE_PQ,
                                         CELL_LOG_IW_VARIANCE_GEPO};
enum { MOST_QUANTITIES = sizeof quantities / sizeof *quantities };

static size_t kept_quantities(const summary *s, cell_metric *kept) {
  size_t n = 0;
  for (size_t i = 0; i < MOST_QUANTITIES; i++)
    for (size_t c = 0; c < s->n_cells; c++)
      if (isfinite(s->cells[c].metric[quantities[i]].value)) {
        kept[n++] = quantities[i];
        break;
      }
  return n;
}

/* A logarithmic axis for values that are all positive and span more than two decades. */
static int spans_decades(const summary *s, cell_metric m) {
  double least = INFINITY, largest = 0;
  for (size_t c = 0; c < s->n_cells; c++) {
    double v = s->cells[c].metric[m].value;
    if (!isfinite(v)) continue;
    least = fmin(least, v);
    largest = fmax(largest, v);
  }
  return least > 0 && largest > 100 * least;
}

static void write_line(figure_page *p, size_t panel, const summary *s, const x_grid *grid,
                       size_t slice, size_t algorithm, cell_metric m) {
  for (size_t i = 0; i < grid->n_x; i++) {
    size_t group = grid_group(grid, s->from, slice, i);
    const cell_summary *c = group < s->from->n_groups ? cell_of(s, group, algorithm) : NULL;
    if (!c) continue;
    grid_write(p, panel, s->from->algorithms[algorithm], grid, i,
               drawn_interval(summary_metric(s, m), c->metric[m]));
  }
  page_block_end(p);
}

/* A column of panels per slice, a panel per quantity that the study has. */
static gl_status write_page(figure_page *p, const summary *s, const x_grid *grid, gl_error *err) {
  cell_metric kept[MOST_QUANTITIES];
  size_t n = kept_quantities(s, kept), slices[MOST_SLICES];
  size_t n_slices = page_pick(grid->n_slices, MOST_SLICES, slices);
  gl_status status = page_open(p, n * n_slices, "panel\talgorithm\tdelay\tiqm\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = n == 1 ? 1 : n == 3 ? page_columns(p, 3) : page_columns(p, 2);
  grid_set_x(p, grid);
  for (size_t panel = 0; panel < p->n_panels; panel++) {
    size_t slice = slices[panel / n];
    const cell_metric of = kept[panel % n];
    figure_panel *to = &p->panels[panel];
    axis_of(summary_metric(s, of), to->axis);
    snprintf(to->title, sizeof to->title, "%s", grid->headings[slice]);
    to->logarithmic = is_logarithm(summary_metric(s, of)) || spans_decades(s, of);
    for (size_t a = 0; a < s->from->n_algorithms; a++) write_line(p, panel, s, grid, slice, a, of);
  }
  status = page_set_lines(p, (const char *const *)s->from->algorithms, s->from->n_algorithms, err);
  return status == GL_OK ? grid_leave_out(p, grid, s->from, slices, n_slices, err) : status;
}

gl_status figure_divergence(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  x_grid grid;
  gl_status status = grid_init(&grid, s->from, X_DELAY, err);
  if (status != GL_OK) return status;
  status = write_page(p, s, &grid, err);
  grid_fini(&grid);
  return status;
}
