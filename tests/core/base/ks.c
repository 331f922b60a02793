/* The Kolmogorov-Smirnov distance; tests/analysis/statistics.c compares it with SciPy's. */
#include "core/base/ks.h"
#include "tests/support/suite.h"

SUITE("core: Kolmogorov-Smirnov distance");

TEST(values_and_histograms_have_one_distance) {
  const double a[] = {0, 1, 1, 2}, b[] = {0, 1, 1, 3};
  const uint64_t count_a[] = {1, 2, 1}, count_b[] = {1, 2, 0, 1};
  const ks_sample forms_a[] = {{.value = a, .n = 4}, {.count = count_a, .n = 3}};
  const ks_sample forms_b[] = {{.value = b, .n = 4}, {.count = count_b, .n = 4}};
  for (size_t i = 0; i < 4; i++) {
    CU_ASSERT_EQUAL(ks_distance(forms_a[i / 2], forms_b[i % 2]), 0.25);
    CU_ASSERT_EQUAL(ks_distance(forms_b[i % 2], forms_a[i / 2]), 0.25);
  }
  CU_ASSERT_EQUAL(ks_distance(forms_a[0], forms_a[1]), 0.0);
}

TEST(infinities_have_a_place_and_empty_samples_no_distance) {
  const double v[] = {-INFINITY, 0, INFINITY, INFINITY};
  const uint64_t zeros[] = {0, 0};
  const ks_sample s = {.value = v, .n = 4};
  CU_ASSERT_EQUAL(ks_distance(s, s), 0.0);
  CU_ASSERT_EQUAL(ks_distance(s, (ks_sample){.value = v, .n = 2}), 0.5);
  CU_ASSERT(isnan(ks_distance(s, (ks_sample){.n = 0})));
  CU_ASSERT(isnan(ks_distance((ks_sample){.count = zeros, .n = 2}, s)));
}
