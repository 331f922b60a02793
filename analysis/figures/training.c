/* The figure `training`: IW variance, gradient norm and reward against step (the paper's Fig. 4).
 */
#include "analysis/figures/list.h"

#include <math.h>

enum { MOST_COLUMNS = 4 };

gl_status figure_training(const void *data, figure_page *p, gl_error *err) {
  static const curve curves[] = {
      {METRIC_LOG_IW_VARIANCE, "log₁₀ iw_variance", M_LOG10E, 0},
      {METRIC_LOG_IW_VARIANCE_GEPO, "log₁₀ iw_variance_gepo", M_LOG10E, 0},
      {METRIC_GRAD_NORM, "grad_norm", 1, 1},
      {METRIC_REWARD_MEAN, "reward_mean", 1, 0}};
  const results *r = ((const figure_data *)data)->s->from;
  size_t columns[MOST_COLUMNS], n = page_pick(r->n_groups, MOST_COLUMNS, columns);
  return write_curves(p, r, curves, sizeof curves / sizeof *curves, columns, n, n, err);
}
