/* The cosine of consecutive gradients against angles that are known. */
#include "core/rl/update.h"
#include "tests/support/suite.h"

#include <string.h>

enum { SIZE = 7 };

static void put(gradient_trail *t, const double *g) {
  memcpy(t->now, g, SIZE * sizeof *g);
  gradient_trail_next(t);
}

/* The cosine of b after a. */
static double between(const double *a, const double *b) {
  gradient_trail t;
  ASSERT_OK(gradient_trail_init(&t, SIZE, &err));
  put(&t, a);
  gradient_trail_begin(&t);
  put(&t, b);
  const double c = gradient_trail_mean(&t);
  gradient_trail_fini(&t);
  return c;
}

static void angles_are_those_of_the_vectors(void) {
  const double a[SIZE] = {3, 0, 0, 4, 0, 0, 0}, across[SIZE] = {-4, 0, 0, 3, 0, 0, 0},
               back[SIZE] = {-6, 0, 0, -8, 0, 0, 0}, half[SIZE] = {7, 0, 0, 1, 0, 0, 0};
  ASSERT_CLOSE(between(a, a), 1, 1e-15);
  ASSERT_CLOSE(between(a, across), 0, 1e-15);
  ASSERT_CLOSE(between(a, back), -1, 1e-15);
  ASSERT_CLOSE(between(a, half), sqrt(0.5), 1e-15); /* 25 / (5 sqrt 50) */
  const double last[SIZE] = {0, 0, 0, 0, 0, 0, 2};  /* the number behind the last four */
  ASSERT_CLOSE(between(last, last), 1, 1e-15);
}

static void sizes_do_not_matter(void) {
  static const double sizes[] = {1e-320, 1e-300, 1e-170, 1e160, 1e300};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    for (size_t j = 0; j < sizeof sizes / sizeof *sizes; ++j) {
      const double a[SIZE] = {sizes[i], sizes[i]}, b[SIZE] = {sizes[j], 0};
      ASSERT_CLOSE(between(a, b), sqrt(0.5), 1e-12);
    }
}

static void what_is_zero_or_not_finite_has_no_cosine(void) {
  const double a[SIZE] = {1, 2}, zero[SIZE] = {0}, nan[SIZE] = {1, NAN}, inf[SIZE] = {INFINITY, 1};
  CU_ASSERT(isnan(between(a, zero)) && isnan(between(zero, a)));
  CU_ASSERT(isnan(between(a, nan)) && isnan(between(nan, a)));
  CU_ASSERT(isnan(between(a, inf)) && isnan(between(inf, a)));
}

static void a_step_has_the_mean_over_its_updates_and_the_first_of_all_has_none(void) {
  const double x[SIZE] = {1}, y[SIZE] = {0, 1}, both[SIZE] = {1, 1};
  gradient_trail t;
  ASSERT_OK(gradient_trail_init(&t, SIZE, &err));
  gradient_trail_begin(&t);
  put(&t, x);
  CU_ASSERT(isnan(gradient_trail_mean(&t)));
  gradient_trail_begin(&t);
  put(&t, y);    /* 0 to the step before */
  put(&t, both); /* 45 degrees */
  ASSERT_CLOSE(gradient_trail_mean(&t), sqrt(0.5) / 2, 1e-15);
  gradient_trail_fini(&t);
}

SUITE(core_gradient_trail, "core: consecutive gradients", TEST(angles_are_those_of_the_vectors),
      TEST(sizes_do_not_matter), TEST(what_is_zero_or_not_finite_has_no_cosine),
      TEST(a_step_has_the_mean_over_its_updates_and_the_first_of_all_has_none));
