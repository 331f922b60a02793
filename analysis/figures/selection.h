/* The figure `selection`: which of the groups that were drawn are trained, by their longest
 * response, and how far the gradient of what arrives is from that of what was drawn, a line for
 * each policy for stale data. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_SELECTION_H
#define GEPOLAB_ANALYSIS_FIGURES_SELECTION_H

#include "analysis/plot/figure.h"

/* Borrowed. */
typedef struct selection_policy {
  const char *name;
  const double *trained; /* [max_length + 1] share of groups by their longest response, from 0 to 1;
                            NaN: none was drawn */
  double cosine, norm_ratio; /* of the gradient of what arrives to that of what was drawn; NaN where
                                one is 0 */
} selection_policy;

/* Borrowed. */
typedef struct selection_policies {
  const selection_policy *of;  /* [n] no two names alike, none of them "all drawn" */
  size_t n, max_length;        /* in tokens */
  const char *const *left_out; /* [n_left_out] what is not shown, and why */
  size_t n_left_out;
} selection_policies;

/* Draws it (errors: figures_draw_table, analysis/plot/draw.h). GL_EINPUT where there is no policy.
 */
gl_status figure_of_selection(const selection_policies *d, const figure_request *q, gl_error *err);

#endif
