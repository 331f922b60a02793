/* Quantiles of many times. */
#include "sim/tally.h"

#include <math.h>

static const size_t classes = (size_t)TALLY_PER_OCTAVE * TALLY_OCTAVES;

static size_t class_of(double seconds) {
  const double place = (log2(fmax(seconds, 1e-300)) - TALLY_LOWEST) * TALLY_PER_OCTAVE;
  return (size_t)fmin(fmax(place, 0), (double)(classes - 1));
}

void tally_add(tally *t, double seconds) {
  t->least = t->n == 0 ? seconds : fmin(t->least, seconds);
  t->most = t->n == 0 ? seconds : fmax(t->most, seconds);
  t->sum += seconds;
  ++t->n;
  ++t->count[class_of(seconds)];
}

double tally_quantile(const tally *t, double p) {
  const uint64_t wanted = (uint64_t)fmax(1, ceil(p * (double)t->n));
  uint64_t below = 0;
  for (size_t i = 0; i < classes && t->n > 0; ++i) {
    below += t->count[i];
    if (below < wanted) continue;
    const double middle = exp2(((double)i + 0.5) / TALLY_PER_OCTAVE + TALLY_LOWEST);
    return fmin(fmax(middle, t->least), t->most);
  }
  return NAN;
}
