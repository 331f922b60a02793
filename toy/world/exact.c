/* Exact means, entropies and divergences over the tree of responses of one prompt. */
#include "toy/world/exact.h"

#include <math.h>

/* The probability of reaching each node. Parents come before children, so one pass suffices. */
static void reach_nodes(const response_tree *t, const double *p, double *reach) {
  reach[0] = 1;
  size_t inner = t->horizon > 1 ? t->level[t->horizon - 1] : 0;
  for (size_t e = 0; e < inner * t->vocabulary; ++e)
    if (t->next[e] >= 0) reach[t->next[e]] = reach[e / t->vocabulary] * p[e];
}

double toy_exact_mean(const response_tree *t, const double *p, const double *value, double *reach) {
  double sum = 0;
  reach_nodes(t, p, reach);
  for (size_t n = 0; n < t->n_nodes; ++n) {
    double here = 0;
    for (size_t e = n * t->vocabulary; e < (n + 1) * t->vocabulary; ++e)
      if (t->next[e] < 0) here += p[e] * value[~t->next[e]];
    sum += reach[n] * here;
  }
  return sum;
}

double toy_exact_entropy(const response_tree *t, const double *p, const double *logp,
                         double *reach) {
  double entropy = 0, length = 0;
  reach_nodes(t, p, reach);
  for (size_t n = 0; n < t->n_nodes; ++n) {
    double here = 0;
    for (size_t e = n * t->vocabulary; e < (n + 1) * t->vocabulary; ++e)
      if (p[e] != 0) here -= p[e] * logp[e];
    entropy += reach[n] * here;
    length += reach[n];
  }
  return entropy / length;
}

double toy_exact_kl(const response_tree *t, const double *p, const double *logp, const double *logq,
                    double *reach) {
  double kl = 0;
  reach_nodes(t, p, reach);
  for (size_t n = 0; n < t->n_nodes; ++n) {
    if (reach[n] == 0) continue;
    double here = 0;
    for (size_t e = n * t->vocabulary; e < (n + 1) * t->vocabulary; ++e)
      if (p[e] != 0) here += p[e] * (logp[e] - logq[e]);
    kl += reach[n] * here;
  }
  return kl < 0 ? 0 : kl; /* rounding only: KL is never negative */
}

double toy_exact_log_collision(const response_tree *t, const double *logq, double *below) {
  for (size_t n = t->n_nodes; n-- > 0;) {
    double sum = 0;
    for (size_t e = n * t->vocabulary; e < (n + 1) * t->vocabulary; ++e)
      sum += exp(2 * logq[e]) * (t->next[e] < 0 ? 1 : below[t->next[e]]);
    below[n] = sum;
  }
  return log(below[0]);
}
