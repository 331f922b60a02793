/* Published and simulated speed-ups as pairs of points. */
#include "analysis/figures/speedups.h"

#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"

#include <math.h>
#include <stdio.h>

static gl_status write_speedups(const void *data, figure_page *p, gl_error *err) {
  const speedups *s = data;
  gl_status status =
      page_open(p, 1, "panel\tcase\tplace\tpublished\tlow\thigh\tsimulated\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->named_rows = 1;
  page_set(p, "pairs", 1);
  figure_panel *to = &p->panels[0];
  snprintf(to->axis, sizeof to->axis, "times as fast as training in turns");
  to->kept = 1;
  for (size_t i = 0; i < s->n; i++) {
    page_line(p, 0, s->names[i]);
    fprintf(p->data.stream, "\t%zu", i + 1);
    page_interval(p, 0, s->published[i], NAN, NAN);
    page_interval(p, 0, s->simulated[i], NAN, NAN);
    fputc('\n', p->data.stream);
    page_block_end(p);
  }
  status = page_set_lines(p, s->names, s->n, err);
  return status == GL_OK ? page_remark(p, err, "Filled: published; ring: simulated") : status;
}

static const char *lacks_cases(const void *data, unsigned needs) {
  (void)needs;
  return ((const speedups *)data)->n > 0 ? NULL : "there is no asynchronous case";
}

gl_status figure_of_speedups(const speedups *s, const figure_request *q, gl_error *err) {
  const figure line = {"speedups", "published and simulated speed-ups over training in turns",
                       "rows", 1, write_speedups};
  const figure_table table = {&line, 1, lacks_cases,
                              "no recipe has an asynchronous case: there is nothing to compare"};
  return figures_draw_table(&table, s, q, err);
}
