/* Exponentials and sums in lanes, next to those of the C library and of wider numbers. */

#include "core/base/simd.h"
#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("core: exponentials of many numbers");

enum { N = 257 };

/* How many units in the last place v is from the true e^x. */
static double units_off(double v, double x) {
  const long double truth = expl((long double)x);
  const double nearest = (double)truth;
  return (double)fabsl(((long double)v - truth) /
                       (long double)(nextafter(nearest, INFINITY) - nearest));
}

TEST(exponentials_are_within_a_unit_or_little_more) {
  static const double sizes[] = {1e-300, 1e-9, 0.1, 0.3466, 1, 20, 300, 699, 709, 744};
  const rng_stream stream = rng_stream_at(3, RNG_TEST, 1);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; ++k)
    for (size_t round = 0; round < 40; ++round) {
      double x[N], out[N];
      for (size_t i = 0; i < N; ++i)
        x[i] = sizes[k] * (2 * rng_u01(rng_block(stream, (k * 40 + round) * N + i).v[0]) - 1);
      vector_exp(x, N, out);
      double worst = 0;
      for (size_t i = 0; i < N; ++i) worst = fmax(worst, units_off(out[i], x[i]));
      CU_ASSERT(worst < 1.1);
    }
}

/* Not-a-number is not equal to itself. */
TEST(what_no_polynomial_knows_is_as_the_c_library_has_it) {
  double x[] = {0, -0.0, INFINITY, -INFINITY, NAN, 709.8, -745.2, -740, 1}, out[9];
  for (size_t n = 1; n <= 9; ++n) {
    vector_exp(x, n, out);
    for (size_t i = 0; i < n; ++i)
      CU_ASSERT(i == 4   ? isnan(out[i])
                : i == 8 ? fabs(out[8] / exp(1) - 1) < 4e-16
                         : out[i] == exp(x[i]));
  }
}

TEST(a_numbers_bits_do_not_depend_on_its_company) {
  double x[N], all[N], some[N];
  for (size_t i = 0; i < N; ++i) x[i] = 3 * sin((double)i);
  vector_exp(x, N, all);
  for (size_t n = 1; n < N; n += 5)
    for (size_t first = 0; first + n <= N; first += 37) {
      vector_exp(x + first, n, some);
      CU_ASSERT(memcmp(some, all + first, n * sizeof *some) == 0);
    }
  x[7] = 1e6; /* beyond what lanes compute: its piece takes another way */
  vector_exp(x, N, some);
  CU_ASSERT(isinf(some[7]));
  some[7] = all[7];
  CU_ASSERT(memcmp(some, all, sizeof all) == 0);
  x[7] = 3 * sin(7.0);
  vector_exp(x, N, x);
  CU_ASSERT(memcmp(x, all, sizeof all) == 0);
}

TEST(sums_have_every_number_once) {
  double value[N], sum = 0;
  for (size_t n = 0; n < N; ++n) {
    CU_ASSERT_EQUAL(lane4_sum(value, n), sum);
    value[n] = (double)(n * n % 1013);
    sum += value[n];
  }
}
