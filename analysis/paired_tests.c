/* McNemar's test, Wilcoxon's signed-rank test and Holm's adjustment. */
#include "analysis/paired_tests.h"

#include "core/base/arena.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MOST_RANKED = 1000 };

double mcnemar_exact(size_t only_of, size_t only_against) {
  const size_t n = only_of + only_against, few = only_of < only_against ? only_of : only_against;
  if (n == 0) return 1;
  return fmin(1, 2 * gsl_cdf_binomial_P((unsigned)few, 0.5, (unsigned)n));
}

/* Wilson's interval of a fraction k of n. */
static interval wilson(size_t k, size_t n) {
  const double z = 1.959963984540054, runs = (double)n, share = (double)k / runs;
  const double middle = share + z * z / (2 * runs);
  const double half = z * sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs));
  const double scale = 1 + z * z / runs;
  return (interval){share, (middle - half) / scale, (middle + half) / scale};
}

interval paired_fractions(size_t both, size_t only_of, size_t only_against, size_t neither) {
  const size_t pairs = both + only_of + only_against + neither;
  if (pairs == 0) return (interval){NAN, NAN, NAN};
  const interval of = wilson(both + only_of, pairs), against = wilson(both + only_against, pairs);
  const double e = (double)both, f = (double)only_of, g = (double)only_against, h = (double)neither,
               n = (double)pairs;
  const double product = (e + f) * (g + h) * (e + g) * (f + h);
  double phi = 0;
  if (product > 0) {
    const double cross = e * h - f * g;
    phi = (cross > 0 ? fmax(cross - n / 2, 0) : cross) / sqrt(product);
  }
  const double down_of = of.value - of.low, up_of = of.high - of.value;
  const double down_against = against.value - against.low,
               up_against = against.high - against.value;
  const double below = down_of * down_of - 2 * phi * down_of * up_against + up_against * up_against;
  const double above = up_of * up_of - 2 * phi * up_of * down_against + down_against * down_against;
  const double difference = (f - g) / n;
  return (interval){difference, difference - sqrt(fmax(below, 0)),
                    difference + sqrt(fmax(above, 0))};
}

typedef struct ranked {
  double size;
  int is_positive;
} ranked;

static int by_size(const void *a, const void *b) {
  const double x = ((const ranked *)a)->size, y = ((const ranked *)b)->size;
  return (x > y) - (x < y);
}

/* Computes twice the ranks of the sorted sizes, which are integers even for ties with their mean
 * rank. Returns twice the sum of the ranks of positive differences. */
static size_t double_ranks(const ranked *r, size_t n, size_t *rank) {
  size_t sum = 0;
  for (size_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && r[end].size == r[i].size;) end++;
    for (size_t k = i; k < end; k++) {
      rank[k] = i + 1 + end;
      if (r[k].is_positive) sum += rank[k];
    }
  }
  return sum;
}

/* Fraction of the 2^n sign combinations whose sum of positive ranks is at most `sum`. weight: [sum
 * + 1], zeroed. */
static double fraction_at_most(const size_t *rank, size_t n, size_t sum, double *weight) {
  double fraction = 0;
  weight[0] = 1;
  for (size_t i = 0; i < n; i++)
    for (size_t s = sum + 1; s-- > 0;)
      weight[s] = 0.5 * (weight[s] + (s >= rank[i] ? weight[s - rank[i]] : 0));
  for (size_t s = 0; s <= sum; s++) fraction += weight[s];
  return fraction;
}

gl_status signed_rank_exact(const double *difference, size_t n, double *p, gl_error *err) {
  arena work = {0};
  ranked *r = ARENA_ARRAY(&work, ranked, n);
  size_t *rank = ARENA_ARRAY(&work, size_t, n), kept = 0;
  *p = 1;
  for (size_t i = 0; i < n && !work.failed; i++)
    if (!isnan(difference[i]) && difference[i] != 0)
      r[kept++] = (ranked){fabs(difference[i]), difference[i] > 0};
  gl_status status = arena_check(&work, "the ranks", err);
  if (status == GL_OK && kept > MOST_RANKED)
    status =
        gl_fail(err, GL_EINPUT, "%zu pairs are more than the %d whose signed ranks are counted",
                kept, (int)MOST_RANKED);
  if (status == GL_OK && kept > 0) {
    qsort(r, kept, sizeof *r, by_size);
    const size_t positive = double_ranks(r, kept, rank), all = kept * (kept + 1);
    const size_t sum = positive < all - positive ? positive : all - positive;
    double *weight = ARENA_ARRAY(&work, double, sum + 1);
    status = arena_check(&work, "the ranks", err);
    if (status == GL_OK) *p = fmin(1, 2 * fraction_at_most(rank, kept, sum, weight));
  }
  arena_fini(&work);
  return status;
}

gl_status holm_adjust(const double *p, size_t n, double *adjusted, gl_error *err) {
  arena work = {0};
  bool *taken = ARENA_ARRAY(&work, bool, n);
  gl_status status = arena_check(&work, "the contrasts", err);
  double before = 0;
  for (size_t step = 0; step < n && status == GL_OK; step++) {
    size_t least = n;
    for (size_t i = 0; i < n; i++)
      if (!taken[i] && (least == n || p[i] < p[least])) least = i;
    taken[least] = true;
    before = adjusted[least] = fmax(before, fmin(1, (double)(n - step) * p[least]));
  }
  arena_fini(&work);
  return status;
}
