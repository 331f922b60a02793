/* Widths and breaks of text. The widths are what fontTools 4.68 says of DejaVu Sans 2.37. */
#include "analysis/plot/text.h"
#include "analysis/plot/ticks.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("analysis: text of figures");

static double units(double n) {
  return n / 2048 * FIGURE_POINTS * 2.54 / 72;
}

TEST(widths_are_those_of_the_font) {
  ASSERT_CLOSE(text_cm(""), 0, 0);
  ASSERT_CLOSE(text_cm("Wi~"), units(2025 + 569 + 1716), 1e-12);
  ASSERT_CLOSE(text_cm("10⁻³"), units(1303 + 1303 + 1081 + 821), 1e-12);
  ASSERT_CLOSE(text_cm("KL(p‖q)"), units(1343 + 1141 + 799 + 1300 + 1024 + 1300 + 799), 1e-12);
  CU_ASSERT(text_cm("\xff") > 0);
  ASSERT_CLOSE(text_cm("漢"), text_cm("U+6F22"), 1e-12);
}

/* Of the signs that figures use themselves all, of another script none. */
TEST(the_font_has_what_figures_write) {
  static const uint32_t has[] = {'a',    '~',    0xb2,   0xe9,   0x3b1,  0x3a1,  0x2013, 0x2016,
                                 0x2026, 0x2074, 0x207b, 0x2080, 0x2207, 0x2212, 0x2265, 0x429},
                        lacks[] = {'\n', 0x4e00, 0x6f22, 0xac00, 0x3042, 0x1f680, 0xe000};
  for (size_t i = 0; i < sizeof has / sizeof *has; i++) CU_ASSERT(text_in_font(has[i]));
  for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) CU_ASSERT(!text_in_font(lacks[i]));
}

TEST(lines_end_behind_items_then_words_then_characters) {
  CU_ASSERT_EQUAL(text_line("short", 100), 5);
  CU_ASSERT_EQUAL(text_line("aa, bb cc", text_cm("aa, bb cc") - 0.01), 4);
  CU_ASSERT_EQUAL(text_line("aa bb cc", text_cm("aa bb cc") - 0.01), 6);
  CU_ASSERT_EQUAL(text_line("aaaa", text_cm("aaa") - 0.01), 2);
  CU_ASSERT_EQUAL(text_line("eval/math_500/mean", text_cm("eval/math_500/me")), 14);
  CU_ASSERT_EQUAL(text_line("a eval/mean", text_cm("a eval/m")), 2);
  CU_ASSERT_EQUAL(text_line("漢字", 0.001), strlen("漢"));
}

TEST(a_heading_that_is_too_long_ends_in_an_ellipsis) {
  size_t starts[2], lengths[2];
  int cut;
  CU_ASSERT_EQUAL(text_break("max delay 600 s, loss 0.1", text_cm("max delay 600 s, "), 2, starts,
                             lengths, &cut),
                  2);
  CU_ASSERT(!cut && lengths[0] == strlen("max delay 600 s,") && starts[1] == lengths[0] + 1);
  CU_ASSERT_EQUAL(text_break("aaaa bbbb cccc", text_cm("aaaa "), 2, starts, lengths, &cut), 2);
  CU_ASSERT(cut && starts[1] == 5 && lengths[1] < 4);
}

/* --- Marks of axes against lists written by hand --- */

SUITE("analysis: marks of axes");

/* "text@" of the named marks, one after the other. */
static const char *named(const tick *t, size_t n) {
  static char all[512];
  all[0] = 0;
  for (size_t i = 0; i < n; i++)
    if (t[i].text[0]) strcat(strcat(all, t[i].text), " ");
  return all;
}

TEST(linear_marks_are_round_and_inside) {
  tick t[MOST_TICKS];
  CU_ASSERT_STRING_EQUAL(named(t, ticks_linear(-0.06, 1.06, 5, t)), "0.0 0.5 1.0 ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_linear(-15, 265, 4, t)), "0 100 200 ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_linear(-2.5, 2.5, 6, t)), "−2 −1 0 1 2 ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_linear(0, 3e7, 4, t)), "0 1·10⁷ 2·10⁷ 3·10⁷ ");
  CU_ASSERT_EQUAL(ticks_linear(1, 1, 4, t), 0);
}

/* One number alone does not say what the distance to the next one is. */
TEST(every_axis_has_two_numbers_at_least) {
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

TEST(logarithmic_marks_are_powers_of_ten) {
  tick t[MOST_TICKS];
  CU_ASSERT_STRING_EQUAL(named(t, ticks_logarithmic(5e-4, 20, 8, t)), "10⁻³ 10⁻² 10⁻¹ 1 10 ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_logarithmic(1e-6, 1e6, 5, t)), "10⁻⁶ 10⁻³ 1 10³ 10⁶ ");
  CU_ASSERT_STRING_EQUAL(named(t, ticks_logarithmic(0.15, 0.9, 3, t)), "0.2 0.5 ");
  CU_ASSERT_EQUAL(ticks_logarithmic(0, 1, 3, t), 0);
  const size_t n = ticks_logarithmic(1, 100, 4, t);
  CU_ASSERT_EQUAL(n, 19); /* three powers and the multiples between them */
  for (size_t i = 1; i < n; i++) CU_ASSERT(t[i].at > t[i - 1].at);
}

TEST(numbers_are_shown_as_print_has_them) {
  char text[24];
  tick_text(-0.25, 2, text);
  CU_ASSERT_STRING_EQUAL(text, "−0.25");
  tick_text(-1e-9 * 0, 1, text);
  CU_ASSERT_STRING_EQUAL(text, "0.0");
  tick_text(2e-6, 0, text);
  CU_ASSERT_STRING_EQUAL(text, "2·10⁻⁶");
}
