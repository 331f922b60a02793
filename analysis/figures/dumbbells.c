/* The figure `dumbbells`: from best to last, one line for each algorithm. */
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>

enum { MOST_COLUMNS = 4 };

static void write_row(figure_page *p, size_t panel, const summary *s, size_t group, size_t a) {
  const cell_summary *c = cell_of(s, group, a);
  if (c) {
    page_line(p, panel, s->from->algorithms[a]);
    fprintf(p->data.stream, "\t%zu", a + 1);
    page_interval(p, panel, c->best.value, c->best.low, c->best.high);
    page_interval(p, panel, c->last.value, c->last.low, c->last.high);
    fputc('\n', p->data.stream);
  }
  page_block_end(p);
}

gl_status figure_dumbbells(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const results *r = s->from;
  size_t columns[MOST_COLUMNS], n = page_pick(r->n_groups, page_columns(p, MOST_COLUMNS), columns);
  gl_status status =
      page_open(p, n, "panel\talgorithm\tplace\tbest\tlow\thigh\tlast\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = p->share = n;
  p->named_rows = 1;
  page_set(p, "pairs", 1);
  for (size_t panel = 0; panel < n; panel++) {
    figure_panel *to = &p->panels[panel];
    axis_of(METRIC_COUNT, to->axis);
    snprintf(to->title, sizeof to->title, "%s", r->groups[columns[panel]].title);
    for (size_t a = 0; a < r->n_algorithms; a++) write_row(p, panel, s, columns[panel], a);
  }
  status = page_set_lines(p, (const char *const *)r->algorithms, r->n_algorithms, err);
  if (status == GL_OK)
    status = page_remark(p, err, "Filled: best; ring: last; thin lines are 95 %% intervals");
  return status == GL_OK ? leave_out_settings(p, r, columns, n, err) : status;
}
