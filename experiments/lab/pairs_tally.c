/* Counts what pairs of distributions say of the theorems. */
#include "experiments/lab/pairs_tally.h"

#include <math.h>
#include <stdlib.h>

const char *const pairs_variance_names[PAIRS_VARIANCES] = {"w_pq",  "w_expected",  "w_computed",
                                                           "aw_pq", "aw_expected", "aw_computed"};

void pairs_tally_init(pairs_tally *t) {
  *t = (pairs_tally){0};
  for (int k = 0; k < LAB_CONSTANTS; ++k) t->constant[k] = -INFINITY;
}

void pairs_tally_fini(pairs_tally *t) {
  for (int k = 0; k < PAIRS_VARIANCES; ++k) free(t->variance[k]);
  free(t->kl_of);
  *t = (pairs_tally){0};
}

static gl_status grow(double **list, size_t n, gl_error *err) {
  double *longer = realloc(*list, n * sizeof *longer);
  if (longer == NULL) return gl_fail_memory(err, "pairs of laws");
  *list = longer;
  return GL_OK;
}

/* Room for one more pair. */
static gl_status make_room(pairs_tally *t, gl_error *err) {
  gl_status status = GL_OK;
  if (t->pairs < t->room) return GL_OK;
  const size_t n = t->room > 0 ? 2 * t->room : 64;
  for (int k = 0; k < PAIRS_VARIANCES && status == GL_OK; ++k)
    status = grow(&t->variance[k], n, err);
  if (status == GL_OK) status = grow(&t->kl_of, n, err);
  if (status == GL_OK) t->room = n;
  return status;
}

/* By more than rounding: where q is uniform both weights are the same, and where it is nearly
 * certain both variances are 0. */
int pairs_varies_more(double one, double other) {
  return one > other * (1 + 1e-12) + 1e-15;
}

static void count(pairs_tally *t, const lab_weights_stats *w, double theorem, double aw_pq,
                  const double aw[LAB_CONSTANTS], double aw_pq_q,
                  const double aw_q[LAB_CONSTANTS]) {
  const size_t i = t->pairs++;
  t->kl += w->kl;
  t->kl_of[i] = w->kl;
  t->variance[0][i] = w->variance_pq;
  t->variance[1 + LAB_CONSTANTS][i] = aw_pq;
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    const int green = pairs_varies_more(w->variance[k], w->variance_pq),
              wider = pairs_varies_more(aw[k], aw_pq),
              wider_q = pairs_varies_more(aw_q[k], aw_pq_q);
    t->variance[1 + k][i] = w->variance[k];
    t->variance[2 + LAB_CONSTANTS + k][i] = aw[k];
    t->holds[k] += w->constant[k] <= theorem;
    t->green[k] += green;
    t->wider[k] += wider;
    t->disagree[k] += green != wider;
    t->wider_q[k] += wider_q;
    t->disagree_q[k] += green != wider_q;
    if (green) t->highest_green[k] = fmax(t->highest_green[k], w->kl);
    t->constant[k] = fmax(t->constant[k], w->constant[k]);
  }
}

gl_status pairs_tally_add(pairs_tally *t, const double *p, const double *q, const double *r,
                          size_t n, gl_error *err) {
  lab_weights_stats w;
  double pq, group[LAB_CONSTANTS], pq_q, group_q[LAB_CONSTANTS];
  double *a = calloc(n, sizeof *a);
  gl_status status = a != NULL ? make_room(t, err) : gl_fail_memory(err, "an advantage");
  if (status == GL_OK) {
    lab_theory_discrete(p, q, n, &w);
    lab_theory_advantage(LAB_ADVANTAGE_P, p, q, r, n, a);
    lab_theory_advantage_variance(p, q, a, n, &pq, group);
    lab_theory_advantage(LAB_ADVANTAGE_Q, p, q, r, n, a);
    lab_theory_advantage_variance(p, q, a, n, &pq_q, group_q);
    if (isfinite(w.variance_pq) && isfinite(w.kl))
      count(t, &w, (double)n * (double)n + 1, pq, group, pq_q, group_q);
    else
      ++t->infinite;
  }
  free(a);
  return status;
}
