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
  CU_ASSERT(text_cm("\xff") > 0 && text_cm("漢") >= units(2048));
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
      TEST(lines_end_behind_items_then_words_then_characters),
      TEST(a_heading_that_is_too_long_ends_in_an_ellipsis));
