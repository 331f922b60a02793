/* The figure `window`: staleness, KL and score against updates, a column per window (the paper's
 * Fig. 6). A study, or another program's logs, of one setting has one column.
 */
#include "analysis/figures/list.h"

#include <stdlib.h>

enum { MOST_COLUMNS = 4 };

/* The groups of one setting of all other axes, smallest window first: of the setting with the most
 * windows, the last of them in the grid's order (the largest delay, where delays ascend). Returns
 * how many. */
static size_t window_groups(const x_grid *windows, const results *r, size_t *groups) {
  size_t most = 0;
  for (size_t slice = 0; slice < windows->n_slices; slice++) {
    size_t n = 0;
    for (size_t place = 0; place < windows->n_x; place++)
      n += grid_group(windows, r, slice, place) < r->n_groups;
    if (n < most) continue;
    most = n;
    for (size_t place = 0, i = 0; place < windows->n_x; place++) {
      const size_t g = grid_group(windows, r, slice, place);
      if (g < r->n_groups) groups[i++] = g;
    }
  }
  return most;
}

gl_status figure_window(const void *data, figure_page *p, gl_error *err) {
  const summary *s = ((const figure_data *)data)->s;
  const results *r = s->from;
  const curve curves[] = {{METRIC_STALENESS, 0}, {s->kl, 0}, {METRIC_COUNT, 0}};
  x_grid windows;
  gl_status status = grid_init(&windows, r, X_WINDOW, err);
  if (status != GL_OK) return status;
  size_t columns[MOST_COLUMNS], n = 0, *groups = calloc(r->n_groups + 1, sizeof *groups);
  if (groups) {
    const size_t all = windows.n_x > 1 ? window_groups(&windows, r, groups) : 1;
    n = page_pick(all, page_columns(p, MOST_COLUMNS), columns);
    for (size_t i = 0; i < n; i++) columns[i] = groups[columns[i]];
    status = write_curves(p, r, curves, sizeof curves / sizeof *curves, columns, n, n, err);
  } else {
    status = gl_fail_memory(err, "a figure");
  }
  free(groups);
  grid_fini(&windows);
  return status;
}
