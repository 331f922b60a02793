/* Warnings from a run's own beginning. */
#include "analysis/drift.h"

#include "analysis/statistics.h"

#include <assert.h>
#include <math.h>

enum { MOST_BEGIN = 64 };

drift_rule drift_rule_default(void) {
  return (drift_rule){.begin = 20, .window = 8, .factor = 2};
}

double drift_reference(const double *value, size_t n, const drift_rule *rule) {
  double first[MOST_BEGIN];
  size_t kept = 0;
  assert(rule->begin >= 1 && rule->begin <= MOST_BEGIN && rule->window <= rule->begin);
  for (size_t i = 0; i < n && i < rule->begin; ++i)
    if (!isnan(value[i])) first[kept++] = value[i];
  if (kept < rule->begin) return NAN;
  const size_t sorted = sample_sort(first, kept);
  const double median = sample_quantile(first, sorted, 0.5);
  return median > 0 ? median : NAN;
}

static double mean_until(const double *value, size_t end, size_t window) {
  double sum = 0;
  for (size_t i = end + 1 - window; i <= end; ++i) sum += value[i];
  return sum / (double)window;
}

size_t drift_alarm(const double *value, size_t n, bool falls, const drift_rule *rule) {
  const double reference = drift_reference(value, n, rule);
  for (size_t i = rule->begin; i < n; ++i) {
    const double mean = mean_until(value, i, rule->window);
    if (falls ? mean < reference / rule->factor : mean > reference * rule->factor) return i;
  }
  return n;
}
