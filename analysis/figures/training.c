/* The figure `training`: IW variance, gradient norm and reward against updates (the paper's Fig.
 * 4).
 */
#include "analysis/figures/list.h"

enum { MOST_COLUMNS = 4 };

gl_status figure_training(const void *data, figure_page *p, gl_error *err) {
  static const curve curves[] = {{METRIC_LOG_IW_VARIANCE, 1},
                                 {METRIC_LOG_IW_VARIANCE_GEPO, 1},
                                 {METRIC_GRAD_NORM, 1},
                                 {METRIC_REWARD_MEAN, 0}};
  const results *r = ((const figure_data *)data)->s->from;
  size_t columns[MOST_COLUMNS], n = page_pick(r->n_groups, page_columns(p, MOST_COLUMNS), columns);
  return write_curves(p, r, curves, sizeof curves / sizeof *curves, columns, n, n, err);
}
