/* The layout of pages: their width, what they leave out, and which lines are in colour. */
#include "analysis/plot/layout.h"
#include "analysis/plot/draw.h"
#include "analysis/plot/text.h"
#include "analysis/plot/ticks.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("analysis: layout of figures");

static const char folder[] = "build/layout_test";

static const char *script(const char *path) {
  (void)path;
  return "";
}

TEST(widths_have_names_or_are_centimetres) {
  gl_error err = {0};
  double cm = 0;
  CU_ASSERT(figure_width("neurips", &cm, &err) == GL_OK && cm == 5.5 * 2.54);
  CU_ASSERT(figure_width("icml", &cm, &err) == GL_OK && fabs(cm - 3.25 * 2.54) < 1e-9);
  CU_ASSERT(figure_width("12.5", &cm, &err) == GL_OK && cm == 12.5);
  CU_ASSERT_EQUAL(figure_width("neurip", &cm, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "did you mean 'neurips'?"));
  CU_ASSERT_EQUAL(figure_width("300", &cm, NULL), GL_EINPUT);
  CU_ASSERT_EQUAL(figure_width("nan", &cm, NULL), GL_EINPUT);
  CU_ASSERT_EQUAL(figure_width("", &cm, NULL), GL_EINPUT);
}

static char *text_of_made(void) {
  FILE *f = fopen("build/layout_test/made.gp", "r");
  char *text = calloc(1, 1 << 18);
  CU_ASSERT_FATAL(f != NULL && text != NULL);
  text[fread(text, 1, (1 << 18) - 1, f)] = 0;
  fclose(f);
  return text;
}

/* A page of two rows of two panels with lines names[n]: the first row goes from `first` on by `by`,
 * the second is 3. */
static char *made_of(const char *const *names, size_t n, const figure_request *q, double first,
                     double by) {
  gl_error err = {0};
  figure_page p;
  CU_ASSERT_EQUAL_FATAL(file_make_folder(folder, &err), GL_OK);
  page_init(&p, q, "made", "some");
  CU_ASSERT_EQUAL_FATAL(page_open(&p, 4, "x", &err), GL_OK);
  p.wide = p.share = 2;
  for (size_t panel = 0; panel < 4; panel++) {
    snprintf(p.panels[panel].axis, sizeof p.panels[panel].axis, "axis%zu", panel / 2);
    if (panel < 2) snprintf(p.panels[panel].title, sizeof p.panels[panel].title, "T%zu", panel);
    for (size_t i = 0; i < 3; i++) {
      page_x(&p, (double)i);
      page_interval(&p, panel, panel < 2 ? first + by * (double)i : 3, NAN, NAN);
    }
  }
  CU_ASSERT_EQUAL(page_set_lines(&p, names, n, &err), GL_OK);
  CU_ASSERT_EQUAL(page_close(&p, GL_OK, &err), GL_OK);
  return text_of_made();
}

static char *made(const char *const *names, size_t n, const figure_request *q) {
  return made_of(names, n, q, 0, 1);
}

/* Where a text is written, in centimetres from the left; the last one of that text. */
static double text_at(const char *gp, const char *text, int last) {
  char wanted[80];
  double x = NAN;
  snprintf(wanted, sizeof wanted, "= '%s'; text_x[", text);
  for (const char *at = gp; (at = strstr(at, wanted)) != NULL; at++) {
    sscanf(strstr(at, "] = "), "] = %lf", &x);
    if (!last) break;
  }
  return 8.255 * x;
}

/* In a column of a journal: labels of two panels side by side, and the name of the x axis at the
 * right edge. */
TEST(labels_are_apart_and_on_the_page) {
  static const char *const names[] = {"grpo"}, axis[] = "staleness updates";
  const figure_request q = {.folder = folder, .script = script, .width_cm = 8.255};
  ASSERT_OK(file_make_folder(folder, &err));
  for (size_t share = 0; share <= 2; share += 2) {
    figure_page p;
    page_init(&p, &q, "made", "some");
    ASSERT_OK(page_open(&p, 2, "x", &err));
    p.wide = 2, p.share = share;
    snprintf(p.x_axis, sizeof p.x_axis, "%s", axis);
    for (size_t panel = 0; panel < 2; panel++) {
      snprintf(p.panels[panel].axis, sizeof p.panels[panel].axis, "a name of two or three lines");
      for (size_t i = 0; i < 2; i++) {
        page_x(&p, (double)i);
        page_interval(&p, panel, 1e-5 * (double)i, NAN, NAN);
      }
    }
    if (share) ASSERT_OK(page_mark(&p, PAGE_MARK, 0, "recompute", &err));
    if (share) ASSERT_OK(page_mark(&p, PAGE_MARK, 1, "keep", &err));
    ASSERT_OK(page_set_lines(&p, names, 1, &err));
    ASSERT_OK(page_close(&p, GL_OK, &err));
    char *gp = text_of_made();
    CU_ASSERT(text_at(gp, axis, 1) + 0.5 * text_cm(axis) < 8.255);
    if (share)
      CU_ASSERT(text_at(gp, "recompute", 1) - 0.5 * text_cm("recompute") >
                text_at(gp, "keep", 0) + 0.5 * text_cm("keep"));
    free(gp);
  }
}

/* Scripts write ten digits, and gnuplot refuses a range that is a point. */
TEST(values_that_hardly_differ_have_a_range) {
  static const char *const names[] = {"gepo", "gspo"};
  const figure_request q = {.folder = folder, .script = script, .width_cm = 8.255};
  static const double first[] = {1, -4e7, 2e-9};
  for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
    char *gp = made_of(names, 2, &q, first[i], 1e-12 * fabs(first[i]));
    const char *at = strstr(gp, "low[1] = ");
    double low = 0, high = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    CU_ASSERT_EQUAL(sscanf(at, "low[1] = %lf; high[1] = %lf", &low, &high), 2);
    CU_ASSERT(low < first[i] && first[i] < high);
    free(gp);
  }
}

TEST(a_row_in_which_nothing_varies_is_left_out_and_said_so) {
  static const char *const names[] = {"gepo", "gspo"};
  const figure_request q = {.folder = folder, .script = script, .width_cm = 8.255};
  char *gp = made(names, 2, &q);
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "panels = 2\npanels_in_all = 4\npage_width = 8.255\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'not shown: axis1 (3 everywhere)'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'axis0'"));
  CU_ASSERT_PTR_NULL(strstr(gp, "= 'axis1'"));
  free(gp);
}

static size_t greys(const char *gp) {
  size_t n = 0;
  for (const char *at = gp; (at = strstr(at, "] = '#c9c9c9'")) != NULL; at++) n++;
  return n;
}

TEST(more_than_eight_lines_have_eight_colours_or_those_that_are_named) {
  static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "gepo"};
  figure_request q = {.folder = folder, .script = script};
  char *gp = made(names, 8, &q);
  CU_ASSERT_EQUAL(greys(gp), 0);
  free(gp);
  gp = made(names, 10, &q);
  CU_ASSERT_EQUAL(greys(gp), 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'In grey: i, gepo'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'others'"));
  free(gp);
  q.highlight = "gepo,c";
  gp = made(names, 10, &q);
  CU_ASSERT_EQUAL(greys(gp), 8);
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "line_colour[10] = '#37549f'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'In grey: a, b, d, e, f, g, h, i'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "in_order[1] = 1\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "in_order[10] = 10\n"));
  free(gp);
}

/* A page of two rows of the settings S0 to S2, of which S1 has no points, with the lines a, b and
 * c, of which b has none; and c has points only if all_lines. */
static char *made_with_holes(int all_lines, int named_rows) {
  static const char *const names[] = {"a", "b", "c"};
  const figure_request q = {.folder = folder, .script = script};
  figure_page p;
  ASSERT_OK(file_make_folder(folder, &err));
  page_init(&p, &q, "holes", "some");
  ASSERT_OK(page_open(&p, 6, "x", &err));
  p.wide = p.share = 3;
  p.named_rows = named_rows;
  for (size_t panel = 0; panel < 6; panel++) {
    snprintf(p.panels[panel].axis, sizeof p.panels[panel].axis, "axis%zu", panel / 3);
    if (panel < 3) snprintf(p.panels[panel].title, sizeof p.panels[panel].title, "S%zu", panel);
    for (size_t line = 0; line < 3; line++, page_block_end(&p))
      for (int i = 0; i < 3; i++) {
        const int has = panel % 3 != 1 && (line == 0 || (line == 2 && all_lines));
        page_line(&p, panel, names[line]);
        page_interval(&p, panel, has ? (double)i : (double)NAN, NAN, NAN);
        fputc('\n', p.data.stream);
      }
  }
  ASSERT_OK(page_set_lines(&p, names, 3, &err));
  ASSERT_OK(page_close(&p, GL_OK, &err));
  FILE *f = fopen("build/layout_test/holes.gp", "r");
  char *text = calloc(1, 1 << 18);
  CU_ASSERT_FATAL(f != NULL && text != NULL);
  text[fread(text, 1, (1 << 18) - 1, f)] = 0;
  fclose(f);
  return text;
}

TEST(settings_and_lines_without_values_are_left_out_and_said_so) {
  char *gp = made_with_holes(1, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "panels = 4\npanels_in_all = 6\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'not shown: S1 (no values); b (no values)'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "panel_of[2] = 2;"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "panel_of[4] = 5;"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'S2'"));
  CU_ASSERT_PTR_NULL(strstr(gp, "= 'S1'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'c'"));
  CU_ASSERT_PTR_NULL(strstr(gp, "= 'b'"));
  free(gp);
  gp = made_with_holes(0, 0); /* the legend says which of the three it is */
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "S1 (no values); b (no values); c (no values)'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "samples = 1\n"));
  free(gp);
  gp = made_with_holes(1, 1); /* rows of the others move up */
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "lines = 3\nrows = 2\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "row_of[1] = 1\nrow_of[2] = 0\nrow_of[3] = 2\n"));
  free(gp);
}

/* The texts "a" and "0000000000" at the ends of an axis: the panel ends where the second, which is
 * centred below the last point, still lies on the page. */
TEST(the_last_text_of_an_axis_stays_on_the_page) {
  const figure_request q = {.folder = folder, .script = script, .width_cm = 8.255};
  static const char wide[] = "0000000000";
  figure_page p;
  ASSERT_OK(file_make_folder(folder, &err));
  page_init(&p, &q, "marks", "some");
  ASSERT_OK(page_open(&p, 1, "x", &err));
  for (int i = 0; i < 2; i++) page_x(&p, i), page_interval(&p, 0, i, NAN, NAN);
  ASSERT_OK(page_mark(&p, PAGE_MARK, 0, "a", &err));
  ASSERT_OK(page_mark(&p, PAGE_MARK, 1, wide, &err));
  ASSERT_OK(page_close(&p, GL_OK, &err));
  FILE *f = fopen("build/layout_test/marks.gp", "r");
  static char text[1 << 16];
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  const char *at = strstr(text, "= '0000000000'; text_x[");
  CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  const double x = strtod(strchr(strchr(at, ']'), '=') + 1, NULL);
  CU_ASSERT(x * 8.255 + 0.5 * text_cm(wide) <= 8.255 + 0.02);
  CU_ASSERT_PTR_NOT_NULL(strstr(at, "text_turned["));
}

/* The script of a page of `panels` panels side by side whose places are these texts. */
static const char *marked(size_t panels, const char *const *texts, size_t n) {
  const figure_request q = {.folder = folder, .script = script};
  figure_page p;
  ASSERT_OK(file_make_folder(folder, &err));
  page_init(&p, &q, "places", "some");
  ASSERT_OK(page_open(&p, panels, "x", &err));
  p.wide = p.share = panels;
  for (size_t i = 0; i < n; i++) {
    page_x(&p, (double)i);
    for (size_t k = 0; k < panels; k++) page_interval(&p, k, (double)i, NAN, NAN);
    ASSERT_OK(page_mark(&p, PAGE_MARK, (double)i, texts[i], &err));
  }
  ASSERT_OK(page_close(&p, GL_OK, &err));
  static char text[1 << 16];
  FILE *f = fopen("build/layout_test/places.gp", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  return text;
}

/* The texts would fit below panels that leave them no room at the page's edge: at any length they
 * are either turned or on the page. */
TEST(texts_that_do_not_fit_beside_those_of_the_next_panel_are_turned) {
  static const char letters[] = "oooooooooooooooooooo";
  int turned = 0, level = 0;
  for (int length = 3; length < 20; length++) {
    const char *const four[] = {letters + 20 - length, letters + 20 - length, letters + 20 - length,
                                letters + 20 - length};
    const char *at = marked(2, four, 4);
    char wanted[40];
    snprintf(wanted, sizeof wanted, "= '%s'; text_x[", four[0]);
    while ((at = strstr(at, wanted)) != NULL) {
      const double x = 13.97 * strtod(strchr(strchr(at, ']'), '=') + 1, NULL);
      at = strstr(at, "text_turned[");
      CU_ASSERT_PTR_NOT_NULL_FATAL(at);
      const int is_turned = strtol(strchr(at, '=') + 1, NULL, 10) == 1;
      turned += is_turned, level += !is_turned;
      CU_ASSERT(is_turned || x + 0.5 * text_cm(four[0]) <= 13.97 + 0.02);
    }
  }
  CU_ASSERT(turned > 0 && level > 0);
}

TEST(a_long_text_that_is_turned_has_several_lines) {
  static const char *const long_ones[] = {"weight delay 63 s, variance of weight noise 1",
                                          "weight delay 63 s, variance of weight noise 10"};
  const char *gp = marked(3, long_ones, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'noise 1'"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'noise 10'"));
}
