/* The figure `best_last`: best and last evaluation and their gap, one line for each algorithm. */
#include "analysis/figures/list.h"

#include <math.h>
#include <stdio.h>

enum { MOST_COLUMNS = 4 };

enum { END_COUNT = 3 };
static const char *const end_axis[END_COUNT] = {"best", "last", "best − last"};

/* Best and last are read against each other: their 2 n panels get one range. */
static void share_rows(figure_page *p, size_t n) {
  double low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < 2 * n; i++)
    low = fmin(low, p->panels[i].low), high = fmax(high, p->panels[i].high);
  for (size_t i = 0; i < 2 * n; i++) p->panels[i].low = low, p->panels[i].high = high;
}

static void write_panel(figure_page *p, size_t panel, const summary *s, size_t group,
                        size_t which) {
  for (size_t a = 0; a < s->from->n_algorithms; a++) {
    const cell_summary *c = cell_of(s, group, a);
    if (c) {
      const interval of[END_COUNT] = {c->best, c->last, c->best_to_last};
      page_line(p, panel, s->from->algorithms[a]);
      fprintf(p->data.stream, "\t%zu", a + 1);
      page_interval(p, panel, of[which].value, of[which].low, of[which].high);
      fputc('\n', p->data.stream);
    }
    page_block_end(p);
  }
}

gl_status figure_best_last(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const results *r = s->from;
  size_t columns[MOST_COLUMNS], n = page_pick(r->n_groups, page_columns(p, MOST_COLUMNS), columns);
  gl_status status = page_open(p, END_COUNT * n, "panel\talgorithm\tplace\tiqm\tlow\thigh", err);
  if (status != GL_OK) return status;
  p->wide = n;
  p->share = n;
  p->named_rows = 1;
  for (size_t panel = 0; panel < p->n_panels; panel++) {
    size_t group = columns[panel % n], which = panel / n;
    figure_panel *to = &p->panels[panel];
    snprintf(to->axis, sizeof to->axis, "%s", end_axis[which]);
    if (which == 0) snprintf(to->title, sizeof to->title, "%s", r->groups[group].title);
    write_panel(p, panel, s, group, which);
  }
  share_rows(p, n);
  status = page_set_lines(p, (const char *const *)r->algorithms, r->n_algorithms, err);
  return status == GL_OK ? leave_out_settings(p, r, columns, n, err) : status;
}
