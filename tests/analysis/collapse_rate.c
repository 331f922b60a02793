/* The learning rate at which half collapse, with its interval over starts: by symmetry, against the
 * jackknife written out, and at the edges of the rates run. */
#include "analysis/collapse_rate.h"
#include "tests/support/suite.h"

#include <math.h>

SUITE("analysis: rates over starts");

enum { X = 6, STARTS = 5 };

/* Start s collapses from x = from[s] on; x runs over 0 .. X - 1. Start `without` is left out. */
static size_t fill(dose_run *run, const size_t *from, size_t seeds, size_t without) {
  size_t n = 0;
  for (size_t s = 0; s < seeds; s++)
    for (size_t x = 0; x < X && s != without; x++)
      run[n++] = (dose_run){.x = (double)x, .seed = 100 + s, .collapsed = x >= from[s]};
  return n;
}

static interval half_of(const size_t *from, size_t seeds, size_t without) {
  dose_run run[X * STARTS];
  interval v;
  const size_t n = fill(run, from, seeds, without);
  ASSERT_OK(dose_at_fraction(run, n, 0.5, &v, &err));
  return v;
}

/* All starts change between 2 and 3: the middle by symmetry, and no interval narrower than the two
 * rates, although leaving a start out changes nothing. */
TEST(equal_starts_give_the_two_rates_around) {
  static const size_t from[] = {3, 3, 3, 3};
  const interval v = half_of(from, 4, STARTS);
  CU_ASSERT(fabs(v.value - 2.5) < 1e-6);
  CU_ASSERT_EQUAL(v.low, 2);
  CU_ASSERT_EQUAL(v.high, 3);
}

/* Two rates, no collapse at one and all at the other: the penalised line passes a tenth below the
 * lower rate, which no run supports. */
TEST(a_value_stays_between_the_rates_around_it) {
  dose_run run[4];
  interval v;
  for (size_t i = 0; i < 4; i++) run[i] = (dose_run){(double)(i % 2), i / 2, i % 2 == 1};
  ASSERT_OK(dose_at_fraction(run, 4, 0.1, &v, &err));
  CU_ASSERT_EQUAL(v.value, 0);
  CU_ASSERT_EQUAL(v.high, 1);
}

TEST(different_starts_give_the_jackknife) {
  static const size_t from[STARTS] = {2, 3, 3, 4, 3};
  const interval v = half_of(from, STARTS, STARTS);
  double sum = 0, squares = 0;
  for (size_t s = 0; s < STARTS; s++) {
    const double x = half_of(from, STARTS, s).value;
    sum += x / STARTS;
    squares += x * x / STARTS;
  }
  /* variance (n - 1) times the mean squared deviation; Student's 0.975 quantile of 4 degrees */
  const double half = 2.7764451051977987 * sqrt((STARTS - 1) * (squares - sum * sum));
  CU_ASSERT(half > 0.3);
  CU_ASSERT(fabs(v.low - fmin(v.value - half, 2)) < 1e-6);
  CU_ASSERT(fabs(v.high - fmax(v.value + half, 3)) < 1e-6);
  CU_ASSERT(v.low < v.value && v.value < v.high);
}

TEST(nothing_is_said_outside_the_rates_run) {
  static const size_t low[] = {0, 0, 0, 1}, high[] = {5, 6, 6, 6}, all[] = {0, 0, 0, 0};
  const interval below = half_of(low, 4, STARTS), above = half_of(high, 4, STARTS),
                 unknown = half_of(all, 4, STARTS);
  CU_ASSERT(isnan(below.value) && isinf(below.low) && below.high >= 0);
  CU_ASSERT(isnan(above.value) && above.low <= 5 && isinf(above.high));
  CU_ASSERT(isnan(unknown.value) && isinf(unknown.low) && isinf(unknown.high));
}

TEST(one_start_has_no_interval) {
  static const size_t from[] = {3};
  const interval v = half_of(from, 1, STARTS);
  CU_ASSERT(fabs(v.value - 2.5) < 1e-6);
  CU_ASSERT(isinf(v.low) && isinf(v.high));
}
