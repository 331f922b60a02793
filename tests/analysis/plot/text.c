/* Widths and breaks of text. The widths are what fontTools 4.68 says of DejaVu Sans 2.37. */
#include "analysis/plot/text.h"
#include "tests/support/suite.h"

#include <string.h>

static double units(double n) {
  return n / 2048 * FIGURE_POINTS * 2.54 / 72;
}

static void widths_are_those_of_the_font(void) {
  ASSERT_CLOSE(text_cm(""), 0, 0);
  ASSERT_CLOSE(text_cm("Wi~"), units(2025 + 569 + 1716), 1e-12);
  ASSERT_CLOSE(text_cm("10⁻³"), units(1303 + 1303 + 1081 + 821), 1e-12);
  ASSERT_CLOSE(text_cm("KL(p‖q)"), units(1343 + 1141 + 799 + 1300 + 1024 + 1300 + 799), 1e-12);
  CU_ASSERT(text_cm("\xff") > 0);
  ASSERT_CLOSE(text_cm("漢"), text_cm("U+6F22"), 1e-12);
}

/* Of the signs that figures use themselves all, of another script none. */
static void the_font_has_what_figures_write(void) {
  static const uint32_t has[] = {'a',    '~',    0xb2,   0xe9,   0x3b1,  0x3a1,  0x2013, 0x2016,
                                 0x2026, 0x2074, 0x207b, 0x2080, 0x2207, 0x2212, 0x2265, 0x429},
                        lacks[] = {'\n', 0x4e00, 0x6f22, 0xac00, 0x3042, 0x1f680, 0xe000};
  for (size_t i = 0; i < sizeof has / sizeof *has; i++) CU_ASSERT(text_in_font(has[i]));
  for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) CU_ASSERT(!text_in_font(lacks[i]));
}

static void lines_end_behind_items_then_words_then_characters(void) {
  CU_ASSERT_EQUAL(text_line("short", 100), 5);
  CU_ASSERT_EQUAL(text_line("aa, bb cc", text_cm("aa, bb cc") - 0.01), 4);
  CU_ASSERT_EQUAL(text_line("aa bb cc", text_cm("aa bb cc") - 0.01), 6);
  CU_ASSERT_EQUAL(text_line("aaaa", text_cm("aaa") - 0.01), 2);
  CU_ASSERT_EQUAL(text_line("eval/math_500/mean", text_cm("eval/math_500/me")), 14);
  CU_ASSERT_EQUAL(text_line("a eval/mean", text_cm("a eval/m")), 2);
  CU_ASSERT_EQUAL(text_line("漢字", 0.001), strlen("漢"));
}

static void a_heading_that_is_too_long_ends_in_an_ellipsis(void) {
  size_t starts[2], lengths[2];
  int cut;
  CU_ASSERT_EQUAL(text_break("max delay 600 s, loss 0.1", text_cm("max delay 600 s, "), 2, starts,
                             lengths, &cut),
                  2);
  CU_ASSERT(!cut && lengths[0] == strlen("max delay 600 s,") && starts[1] == lengths[0] + 1);
  CU_ASSERT_EQUAL(text_break("aaaa bbbb cccc", text_cm("aaaa "), 2, starts, lengths, &cut), 2);
  CU_ASSERT(cut && starts[1] == 5 && lengths[1] < 4);
}

SUITE(plot_text, "analysis: text of figures", TEST(widths_are_those_of_the_font),
      TEST(the_font_has_what_figures_write),
      TEST(lines_end_behind_items_then_words_then_characters),
      TEST(a_heading_that_is_too_long_ends_in_an_ellipsis));
