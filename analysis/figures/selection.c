/* Shares trained as curves, and gradients as points. */
#include "analysis/figures/selection.h"

#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHARES, GRADIENTS, PANELS };

static const char all_drawn[] = "all drawn"; /* the line that selection departs from */

static void name_axes(figure_page *p) {
  figure_panel *shares = &p->panels[SHARES], *gradients = &p->panels[GRADIENTS];
  snprintf(shares->x_axis, sizeof shares->x_axis, "longest response [tokens]");
  snprintf(shares->axis, sizeof shares->axis, "groups trained [%%]");
  shares->low = 0;
  shares->kept = 1;
  snprintf(gradients->x_axis, sizeof gradients->x_axis, "norm ratio");
  snprintf(gradients->axis, sizeof gradients->axis, "cosine");
  gradients->kept = 1;
}

static void write_point(figure_page *p, size_t panel, const char *line, double x, double y) {
  if (!isfinite(x) || !isfinite(y)) return;
  page_line(p, panel, line);
  page_number(p, x);
  page_interval(p, panel, y, NAN, NAN);
  fputc('\n', p->data.stream);
  page_panel_x(p, panel, x);
}

static void write_shares(figure_page *p, const selection_policies *d) {
  for (size_t m = 1; m <= d->max_length; m++) write_point(p, SHARES, all_drawn, (double)m, 100);
  page_block_end(p);
  for (size_t i = 0; i < d->n; i++) {
    for (size_t m = 1; m <= d->max_length; m++)
      write_point(p, SHARES, d->of[i].name, (double)m, 100 * d->of[i].trained[m]);
    page_block_end(p);
  }
}

static void write_gradients(figure_page *p, const selection_policies *d) {
  write_point(p, GRADIENTS, all_drawn, 1, 1);
  page_block_end(p);
  for (size_t i = 0; i < d->n; i++) {
    write_point(p, GRADIENTS, d->of[i].name, d->of[i].norm_ratio, d->of[i].cosine);
    page_block_end(p);
  }
}

static gl_status set_lines(figure_page *p, const selection_policies *d, gl_error *err) {
  const char **names = calloc(d->n + 1, sizeof *names);
  if (names == NULL) return gl_fail_memory(err, "a figure");
  names[0] = all_drawn;
  for (size_t i = 0; i < d->n; i++) names[i + 1] = d->of[i].name;
  const gl_status status = page_set_lines(p, names, d->n + 1, err);
  free(names);
  return status;
}

static gl_status write_selection(const void *data, figure_page *p, gl_error *err) {
  const selection_policies *d = data;
  gl_status status = page_open(p, PANELS, "panel\tpolicy\tx\tvalue\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = page_columns(p, PANELS);
  p->all_marks = 1;
  name_axes(p);
  write_shares(p, d);
  write_gradients(p, d);
  status = set_lines(p, d, err);
  for (size_t i = 0; i < d->n_left_out && status == GL_OK; i++)
    status = page_leave_out(p, err, "%.190s", d->left_out[i]);
  if (status == GL_OK)
    status =
        page_remark(p, err,
                    "Cosine and norm ratio: the expected gradient of what arrives to that of all "
                    "drawn, at the initial policy; downweighted groups count with their "
                    "weight");
  return status;
}

static const char *lacks_policies(const void *data, unsigned needs) {
  (void)needs;
  return ((const selection_policies *)data)->n > 0 ? NULL : "there is no policy for stale data";
}

gl_status figure_of_selection(const selection_policies *d, const figure_request *q, gl_error *err) {
  const figure line = {"selection", "what arrives of what was drawn, and its gradient", "curves", 1,
                       write_selection};
  const figure_table table = {&line, 1, lacks_policies,
                              "there is no policy for stale data to draw"};
  return figures_draw_table(&table, d, q, err);
}
