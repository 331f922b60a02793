/* Points of a trade-off, kind by kind. */
#include "analysis/figures/pareto.h"

#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"

#include <math.h>
#include <stdio.h>

static const char *const names[PARETO_KINDS] = {
    [PARETO_CANDIDATE] = "candidate",
    [PARETO_FRONT] = "Pareto front",
    [PARETO_CHOSEN] = "recommended",
};

static const struct {
  look look;
  figure_sample sample;
} shown_as[PARETO_KINDS] = {
    [PARETO_CANDIDATE] = {{LOOK_BLACK, 0, LOOK_PLUS}, SAMPLE_MARK},
    [PARETO_FRONT] = {{LOOK_BLUE, 0, 7}, SAMPLE_LINE_MARK},
    [PARETO_CHOSEN] = {{LOOK_RED, 0, 5}, SAMPLE_MARK},
};

static void write_point(figure_page *p, const pareto_point *at) {
  page_line(p, 0, names[at->kind]);
  page_number(p, at->x), page_number(p, at->x_low), page_number(p, at->x_high);
  page_interval(p, 0, at->y, at->y_low, at->y_high);
  fputc('\n', p->data.stream);
  page_x(p, at->x);
  if (isfinite(at->x_low)) page_x(p, at->x_low);
  if (isfinite(at->x_high)) page_x(p, at->x_high);
}

static gl_status write_pareto(const void *data, figure_page *p, gl_error *err) {
  const pareto *d = data;
  gl_status status = page_open(p, 1, "panel\tkind\tx\tx_low\tx_high\ty\ty_low\ty_high", err);
  if (status != GL_OK) return status;
  snprintf(p->x_axis, sizeof p->x_axis, "%s", d->x_axis);
  snprintf(p->panels[0].axis, sizeof p->panels[0].axis, "%s", d->y_axis);
  p->panels[0].low = 0;
  p->panels[0].kept = 1;
  page_x(p, 0);
  for (int kind = 0; kind < PARETO_KINDS; kind++) {
    for (size_t i = 0; i < d->n; i++)
      if ((int)d->points[i].kind == kind) write_point(p, &d->points[i]);
    page_block_end(p);
  }
  if (isfinite(d->limit)) page_set(p, "limit", d->limit);
  status = page_set_lines(p, names, PARETO_KINDS, err);
  if (status == GL_OK)
    status = page_remark(p, err, "Means over replicates with 95 %% intervals%s",
                         isfinite(d->limit) ? "; dashed: the limit" : "");
  for (int kind = 0; kind < PARETO_KINDS && status == GL_OK; kind++) {
    p->lines[kind].look = shown_as[kind].look;
    p->lines[kind].sample = shown_as[kind].sample;
  }
  return status;
}

static const char *lacks_points(const void *data, unsigned needs) {
  (void)needs;
  return ((const pareto *)data)->n > 0 ? NULL : "there is no candidate";
}

gl_status figure_of_pareto(const pareto *d, const figure_request *q, gl_error *err) {
  const figure line = {"pareto", "what can be had of one quantity at how much of another", "pareto",
                       1, write_pareto};
  const figure_table table = {&line, 1, lacks_points, "there is no candidate to draw"};
  return figures_draw_table(&table, d, q, err);
}
