/* The figure `eval_score`: evaluation score against updates, a panel per setting (the paper's Fig.
 * 1).
 */
#include "analysis/figures/list.h"

enum { MOST_PANELS = 12 };

gl_status figure_eval_score(const void *data, figure_page *p, gl_error *err) {
  static const curve score = {METRIC_COUNT, 0};
  const results *r = ((const figure_data *)data)->s->from;
  size_t columns[MOST_PANELS], n = page_pick(r->n_groups, MOST_PANELS, columns);
  return write_curves(p, r, &score, 1, columns, n, page_columns(p, n == 4 || n > 6 ? 4 : 3), err);
}
