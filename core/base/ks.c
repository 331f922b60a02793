/* The Kolmogorov-Smirnov distance, by merging both samples in ascending order. */
#include "core/base/ks.h"

#include <math.h>

static double ks_value_at(const ks_sample *s, size_t i) {
  return s->value != NULL ? s->value[i] : (double)i;
}

static double count_at(const ks_sample *s, size_t i) {
  return s->count != NULL ? (double)s->count[i] : 1.0;
}

static double ks_total(const ks_sample *s) {
  double sum = 0.0;
  for (size_t i = 0; i < s->n; ++i) sum += count_at(s, i);
  return sum;
}

/* Advances *i past all values of the sample that are at most x, adding their number to *below. */
static void pass(const ks_sample *s, size_t *i, double x, double *below) {
  for (; *i < s->n && ks_value_at(s, *i) <= x; ++*i) *below += count_at(s, *i);
}

double ks_distance(ks_sample f, ks_sample g) {
  const double all_f = ks_total(&f), all_g = ks_total(&g);
  double below_f = 0.0, below_g = 0.0, largest = 0.0;
  if (all_f <= 0.0 || all_g <= 0.0) return NAN;
  for (size_t i = 0, j = 0; i < f.n && j < g.n;) {
    const double x = fmin(ks_value_at(&f, i), ks_value_at(&g, j));
    pass(&f, &i, x, &below_f);
    pass(&g, &j, x, &below_g);
    largest = fmax(largest, fabs(below_f / all_f - below_g / all_g));
  }
  return largest;
}
