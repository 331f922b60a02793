/* The figures `throughput_delay`, `throughput_loss` and `throughput_samplers`: what the clock
 * measures. */
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>

enum { CLOCK_COUNT = 4 };
static const char *const clock_axis[CLOCK_COUNT] = {"samples per simulated second",
                                                    "learner utilisation", "sampler utilisation",
                                                    "staleness [versions]"};

static double clock_of(const summary *s, size_t group, size_t which) {
  group_clock c;
  summary_group_clock(s, group, &c);
  const double of[CLOCK_COUNT] = {c.samples_per_s, c.learner_utilisation, c.sampler_utilisation,
                                  c.staleness};
  return of[which];
}

static gl_status write_page(figure_page *p, const summary *s, const x_grid *grid, gl_error *err) {
  gl_status status = page_open(p, CLOCK_COUNT, "panel\tsetting\tdelay or loss\tmean", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, 4);
  grid_set_x(p, grid);
  for (size_t panel = 0; panel < CLOCK_COUNT; panel++) {
    snprintf(p->panels[panel].axis, sizeof p->panels[panel].axis, "%s", clock_axis[panel]);
    p->panels[panel].low = 0;
    for (size_t slice = 0; slice < grid->n_slices; slice++) {
      for (size_t i = 0; i < grid->n_x; i++) {
        size_t group = grid_group(grid, s->from, slice, i);
        if (group == s->from->n_groups) continue;
        interval v = {clock_of(s, group, panel), NAN, NAN};
        grid_write(p, panel, grid->headings[slice], grid, i, v);
      }
      page_block_end(p);
    }
  }
  status = page_set_lines(p, (const char *const *)grid->headings, grid->n_slices, err);
  return status == GL_OK ? grid_leave_out(p, grid, s->from, NULL, 0, err) : status;
}

static gl_status write_throughput(const summary *s, figure_page *p, x_kind kind, gl_error *err) {
  x_grid grid;
  gl_status status = grid_init(&grid, s->from, kind, err);
  if (status != GL_OK) return status;
  status = write_page(p, s, &grid, err);
  grid_fini(&grid);
  return status;
}

gl_status figure_throughput_delay(const void *data, figure_page *p, gl_error *err) {
  return write_throughput(((const figure_data *)data)->s, p, X_DELAY, err);
}

gl_status figure_throughput_loss(const void *data, figure_page *p, gl_error *err) {
  return write_throughput(((const figure_data *)data)->s, p, X_LOSS, err);
}

gl_status figure_throughput_samplers(const void *data, figure_page *p, gl_error *err) {
  return write_throughput(((const figure_data *)data)->s, p, X_SAMPLERS, err);
}
