/* Marks of axes against lists written by hand. */
#include "analysis/plot/ticks.h"
#include "tests/support/suite.h"

#include <string.h>

/* "text@" of the named marks, one after the other. */
static const char *named(const tick *t, size_t n) {
  static char all[512];
  all[0] = 0;
  for (size_t i = 0; i < n; i++)
    if (t[i].text[0]) strcat(strcat(all, t[i].text), " ");
  return all;
}

static void linear_marks_are_round_and_inside(void) {
  tick t[MOST_TICKS];
  CU_ASSERT_STRING_EQUAL(named(t, ticks_linear(-0.06, 1.06, 5, t)), "0.0 0.5 1.0 ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_linear(-15, 265, 4, t)), "0 100 200 ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_linear(-2.5, 2.5, 6, t)), "−2 −1 0 1 2 ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_linear(0, 3e7, 4, t)), "0 1·10⁷ 2·10⁷ 3·10⁷ ");
  CU_ASSERT_EQUAL(ticks_linear(1, 1, 4, t), 0);
}

/* One number alone does not say what the distance to the next one is. */
static void every_axis_has_two_numbers_at_least(void) {
  tick t[MOST_TICKS];
  CU_ASSERT_STRING_EQUAL(named(t, ticks_linear(0.11, 0.94, 4, t)), "0.2 0.4 0.6 0.8 ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_linear(0.26, 0.34, 1, t)), "0.26 0.28 0.30 0.32 0.34 ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_logarithmic(0.24, 0.36, 3, t)), "0.25 0.30 0.35 ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_logarithmic(0.05, 20, 2, t)), "10⁻¹ 10 ");
  for (double low = 0.01; low < 3; low *= 1.37)
    for (double factor = 1.01; factor < 1e7; factor *= 1.61)
      for (size_t most = 2; most < 6; most++) {
        const size_t n = ticks_logarithmic(low, low * factor, most, t);
        const char *first = strchr(named(t, n), ' ');
        CU_ASSERT(first && strchr(first + 1, ' '));
      }
}

static void logarithmic_marks_are_powers_of_ten(void) {
  tick t[MOST_TICKS];
  CU_ASSERT_STRING_EQUAL(named(t, ticks_logarithmic(5e-4, 20, 8, t)), "10⁻³ 10⁻² 10⁻¹ 1 10 ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_logarithmic(1e-6, 1e6, 5, t)), "10⁻⁶ 10⁻³ 1 10³ 10⁶ ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_logarithmic(0.15, 0.9, 3, t)), "0.2 0.5 ");
  CU_ASSERT_EQUAL(ticks_logarithmic(0, 1, 3, t), 0);
  const size_t n = ticks_logarithmic(1, 100, 4, t);
  CU_ASSERT_EQUAL(n, 19); /* three powers and the multiples between them */
  for (size_t i = 1; i < n; i++) CU_ASSERT(t[i].at > t[i - 1].at);
}

static void numbers_are_shown_as_print_has_them(void) {
  char text[24];
  tick_text(-0.25, 2, text);
  CU_ASSERT_STRING_EQUAL(text, "−0.25");
  tick_text(-1e-9 * 0, 1, text);
  CU_ASSERT_STRING_EQUAL(text, "0.0");
  tick_text(2e-6, 0, text);
  CU_ASSERT_STRING_EQUAL(text, "2·10⁻⁶");
}

SUITE(plot_ticks, "analysis: marks of axes", TEST(linear_marks_are_round_and_inside),
      TEST(every_axis_has_two_numbers_at_least), TEST(logarithmic_marks_are_powers_of_ten),
      TEST(numbers_are_shown_as_print_has_them));
