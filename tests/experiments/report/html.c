/* Text of unknown origin is shown on a page and never obeyed. */
#include "experiments/report/html.h"

#include "tests/support/markup.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("report: markup");

/* The page that one call writes. */
static char *text;
static size_t size;

static html opened(void) {
  html h = {.to = open_memstream(&text, &size), .level = 2};
  CU_ASSERT_PTR_NOT_NULL_FATAL(h.to);
  return h;
}

static int gives(html *h, const char *words) {
  fclose(h->to);
  const int same = strcmp(text, words) == 0;
  if (!same) fprintf(stderr, "%s\n", text);
  free(text);
  return same;
}

TEST(markup_in_a_text_becomes_entities) {
  html h = opened();
  html_text(&h, "<script>alert(\"x\")</script> & 'y'");
  CU_ASSERT(gives(&h, "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;y&#39;"));
  h = opened();
  html_textf(&h, "%s=%d", "a<b", 3);
  CU_ASSERT(gives(&h, "a&lt;b=3"));
  h = opened();
  html_text(&h, NULL);
  CU_ASSERT(gives(&h, ""));
}

TEST(what_a_page_would_obey_is_shown) {
  html h = opened();
  html_text(&h, "a\x1b[31m\x07 \xe2\x80\xae \xff\xc3 \xef\xbf\xbf end\n2");
  CU_ASSERT(gives(&h, "a\\x1b[31m\\x07 \\u202e \\xff\\xc3 \\uffff end\n2"));
  h = opened();
  html_text(&h, "größer ≥ 語");
  CU_ASSERT(gives(&h, "größer ≥ 語"));
}

TEST(a_table_escapes_its_words_and_says_what_heads_what) {
  static const char *const heads[] = {"a<b", "#n&m"};
  html h = opened();
  html_table_begin(&h, "\"cap\"", heads, 2);
  html_row_begin(&h), html_row_head(&h, "<r>"), html_cell_count(&h, 7), html_row_end(&h);
  html_row_begin(&h), html_row_head(&h, "s");
  html_cell_interval(&h, 0.5, 0.25, 0.75, 1), html_row_end(&h);
  html_row_begin(&h), html_row_head(&h, "t"), html_cell_number(&h, NAN), html_row_end(&h);
  html_table_end(&h);
  fflush(h.to);
  CU_ASSERT(markup_is_well_formed(text));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "aria-label=\"&quot;cap&quot;\""));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<th scope=\"col\">a&lt;b</th>"
                                      "<th scope=\"col\" class=\"n\">n&amp;m</th>"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<th scope=\"row\">&lt;r&gt;</th><td class=\"n\">7</td>"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<strong>0.500</strong> <span class=\"ends\">"
                                      "[0.250, 0.750]</span>"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<td class=\"n\">–</td>"));
  fclose(h.to);
  free(text);
}

/* The tests of pages stand on it: it has to find what is wrong. */
TEST(the_reader_of_tests_finds_what_is_not_well_formed) {
  CU_ASSERT(markup_is_well_formed("<!DOCTYPE html>\n<a b=\"c\"><d/>&amp;</a>\n"));
  CU_ASSERT_FALSE(markup_is_well_formed("<a><b></a></b>"));
  CU_ASSERT_FALSE(markup_is_well_formed("<a>"));
  CU_ASSERT_FALSE(markup_is_well_formed("<a b=c></a>"));
  CU_ASSERT_FALSE(markup_is_well_formed("<a b=\"1\" b=\"2\"></a>"));
  CU_ASSERT_FALSE(markup_is_well_formed("<a>x & y</a>"));
  CU_ASSERT_FALSE(markup_is_well_formed("<a></a><b></b>"));
  CU_ASSERT(markup_ids_hold("<a id=\"x\" href=\"#x\" fill=\"url(#x)\"></a>"));
  CU_ASSERT_FALSE(markup_ids_hold("<a id=\"x\"></a><b id=\"x\"></b>"));
  CU_ASSERT_FALSE(markup_ids_hold("<a href=\"#y\"></a>"));
}
