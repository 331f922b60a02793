/* What of gnuplot's SVG gets into a page, and what is refused. */
#include "experiments/report/svg.h"

#include "tests/support/markup.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

#define ROOT "<?xml version=\"1.0\"?>\n<svg \n width=\"9\" viewBox=\"0 0 9 8\"\n>\n"

/* The page's part of a drawing, on the heap; NULL where it is refused, with the reason in err. */
static char *inlined(const char *svg, gl_error *err) {
  static const svg_words words = {"f1", "Title <1>", "about \"it\""};
  char *text = NULL;
  size_t size = 0;
  html h = {.to = open_memstream(&text, &size), .level = 2};
  *err = (gl_error){0};
  CU_ASSERT_PTR_NOT_NULL_FATAL(h.to);
  gl_status status = svg_inline(&h, &words, svg, strlen(svg), err);
  fclose(h.to);
  if (status == GL_OK) return text;
  CU_ASSERT_EQUAL(status, GL_EIO);
  CU_ASSERT_EQUAL(size, 0); /* nothing of it is on the page */
  free(text);
  return NULL;
}

static void ids_get_the_figures_name_and_links_follow_them(void) {
  gl_error err;
  char *text = inlined(ROOT "<title>Gnuplot</title>\n<defs><circle id='gpDot' r='0.5'/>"
                            "<filter id='box'><feFlood result='a'/></filter></defs>"
                            "<g id=\"gnuplot_canvas\" class=\"x\"><use xlink:href='#gpDot' x='1'/>"
                            "<path filter='url(#box)' d='M0,0'/></g>\n</svg>\n",
                       &err);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  CU_ASSERT(markup_is_well_formed(text) && markup_ids_hold(text));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<circle id=\"f1-gpDot\" r=\"0.5\"/>"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<use href=\"#f1-gpDot\" x=\"1\"/>"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "filter=\"url(#f1-box)\""));
  CU_ASSERT_PTR_NOT_NULL(strstr(text,
                                "role=\"img\" aria-labelledby=\"f1-title f1-desc\" "
                                "viewBox=\"0 0 9 8\" style=\"max-width:9px;min-width:7px\">"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<title id=\"f1-title\">Title &lt;1&gt;</title>"
                                      "<desc id=\"f1-desc\">about &quot;it&quot;</desc>"));
  CU_ASSERT_PTR_NULL(strstr(text, "gnuplot"));
  CU_ASSERT_PTR_NULL(strstr(text, " width="));
  free(text);
}

static void what_draws_nothing_is_left_out(void) {
  gl_error err;
  char *text = inlined(ROOT "<g><g fill='none'>\n</g><text><tspan></tspan></text></g>"
                            "<g><!-- <script> --><text>a &lt; b & c</text></g></svg>",
                       &err);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  CU_ASSERT(markup_is_well_formed(text));
  CU_ASSERT_EQUAL(markup_count(text, "<g>"), 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<text>a &lt; b &amp; c</text>"));
  CU_ASSERT_PTR_NULL(strstr(text, "script"));
  free(text);
}

static int is_refused(const char *svg, const char *reason) {
  gl_error err;
  char *text = inlined(svg, &err);
  const int refused = text == NULL && strstr(err.text, "the figure f1 cannot") != NULL &&
                      strstr(err.text, reason) != NULL;
  if (!refused) fprintf(stderr, "%s\n%s\n", svg, text != NULL ? text : err.text);
  free(text);
  return refused;
}

static void what_is_run_or_fetched_is_refused(void) {
  CU_ASSERT(is_refused(ROOT "<script>x</script></svg>", "the element 'script'"));
  CU_ASSERT(is_refused(ROOT "<g onclick='x'></g></svg>", "the attribute 'onclick'"));
  CU_ASSERT(is_refused(ROOT "<g style='x'></g></svg>", "the attribute 'style'"));
  CU_ASSERT(is_refused(ROOT "<a href='#x'></a></svg>", "the element 'a'"));
  CU_ASSERT(is_refused(ROOT "<image xlink:href='http://x/y.png'/></svg>", "refers to 'http:"));
  CU_ASSERT(is_refused(ROOT "<use xlink:href='data:image/png;base64,AA'/></svg>", "refers to"));
  CU_ASSERT(is_refused(ROOT "<path fill='url(http://x)'/></svg>", "refers to 'url(http"));
  CU_ASSERT(is_refused(ROOT "<path fill='url(#a) url(b)'/></svg>", "refers to 'url(#a"));
  CU_ASSERT(is_refused(ROOT "<path fill=' url(b)'/></svg>", "has the value ' url(b)'"));
  char *text;
  gl_error err;
  CU_ASSERT_PTR_NOT_NULL(text = inlined(ROOT "<image xlink:href='data:image/png;base64,AA=='/>"
                                             "<path color='rgb(1, 2, 3)' "
                                             "transform='translate(1,2) scale(3)'/></svg>",
                                        &err));
  free(text);
}

static void what_is_not_well_formed_is_refused(void) {
  CU_ASSERT(is_refused("", "<svg"));
  CU_ASSERT(is_refused("<svg width='1'></svg>", "viewBox"));
  CU_ASSERT(is_refused(ROOT "<g></svg>", "closes what is not open, 'svg'"));
  CU_ASSERT(is_refused(ROOT "<g></path></g></svg>", "closes what is not open, 'path'"));
  CU_ASSERT(is_refused(ROOT "<g>", "ends before"));
  CU_ASSERT(is_refused(ROOT "<g fill='a", "unfinished tag"));
  CU_ASSERT(is_refused(ROOT "<g fill></g></svg>", "unfinished tag"));
  CU_ASSERT(is_refused(ROOT "<!-- <g></g></svg>", "unfinished"));
  CU_ASSERT(is_refused(ROOT "<", "the element ''"));
  char deep[1024] = ROOT;
  for (int i = 0; i < 70; ++i) strcat(deep, "<g>");
  CU_ASSERT(is_refused(deep, "too deep"));
}

SUITE(report_svg, "report: figures in a page", TEST(ids_get_the_figures_name_and_links_follow_them),
      TEST(what_draws_nothing_is_left_out), TEST(what_is_run_or_fetched_is_refused),
      TEST(what_is_not_well_formed_is_refused));
