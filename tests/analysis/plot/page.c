/* What a page says that it does not show, and that nothing is left behind by a failure. */
#include "analysis/plot/page.h"
#include "analysis/plot/draw.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("analysis: pages of figures");

static const char folder[] = "build/page_test";

static const char *script(const char *path) {
  return strcmp(path, "plots/none.gp") == 0 ? NULL : "# script\n";
}

static int exists(const char *path) {
  return access(path, F_OK) == 0;
}

TEST(what_begins_like_another_entry_is_told_and_the_same_once) {
  const figure_request q = {.folder = folder, .script = script};
  gl_error err = {0};
  figure_page p;
  CU_ASSERT_EQUAL_FATAL(file_make_folder(folder, &err), GL_OK);
  page_init(&p, &q, "told", "some");
  CU_ASSERT_EQUAL_FATAL(page_open(&p, 1, "x", &err), GL_OK);
  CU_ASSERT_EQUAL(page_leave_out(&p, &err, "setting 10"), GL_OK);
  CU_ASSERT_EQUAL(page_leave_out(&p, &err, "setting 1"), GL_OK);
  CU_ASSERT_EQUAL(page_leave_out(&p, &err, "setting 10"), GL_OK);
  CU_ASSERT_EQUAL(page_leave_out(&p, &err, "a setting 1"), GL_OK);
  CU_ASSERT_EQUAL(page_leave_out(&p, &err, "setting 1"), GL_OK);
  CU_ASSERT_STRING_EQUAL(p.left_out, "setting 10; setting 1; a setting 1");
  CU_ASSERT_EQUAL(p.n_left_out, 3);
  CU_ASSERT_EQUAL(page_close(&p, GL_OK, &err), GL_OK);
}

/* gnuplot takes any number of empty lines for one end of a block: what comes behind an empty block
 * would be drawn as the line before it. */
TEST(a_block_without_a_record_is_still_a_block) {
  const figure_request q = {.folder = folder, .script = script};
  figure_page p;
  ASSERT_OK(file_make_folder(folder, &err));
  page_init(&p, &q, "blocks", "some");
  ASSERT_OK(page_open(&p, 1, "x", &err));
  page_block_end(&p);
  page_line(&p, 0, "b");
  fputs("\t1\n", p.data.stream);
  page_block_end(&p);
  page_block_end(&p);
  ASSERT_OK(page_close(&p, GL_OK, &err));
  char *data = files_text("build/page_test/blocks.tsv");
  CU_ASSERT_PTR_NOT_NULL_FATAL(data);
  CU_ASSERT_STRING_EQUAL(data, "# x\n-\t\t\n\n\n0\tb\t1\n\n\n-\t\t\n\n\n");
  free(data);
}

TEST(a_long_note_is_cut_into_lines_and_says_how_much_did_not_fit) {
  const figure_request q = {.folder = folder, .script = script};
  gl_error err = {0};
  figure_page p;
  CU_ASSERT_EQUAL_FATAL(file_make_folder(folder, &err), GL_OK);
  page_init(&p, &q, "note", "some");
  CU_ASSERT_EQUAL_FATAL(page_open(&p, 1, "x", &err), GL_OK);
  for (int i = 0; i < 400; i++) CU_ASSERT_EQUAL(page_leave_out(&p, &err, "setting %d", i), GL_OK);
  CU_ASSERT_EQUAL(page_close(&p, GL_OK, &err), GL_OK);
  char *gp = files_text("build/page_test/note.gp");
  CU_ASSERT_PTR_NOT_NULL_FATAL(gp);
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "formats = 'pdf png svg'\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "= 'not shown: setting 0; setting 1; "));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "... (400 in all)'"));
  free(gp);
}

TEST(variables_reach_the_script_with_their_marks_taken_literally) {
  const figure_request q = {.folder = folder, .script = script, .formats = "svg"};
  figure_page p;
  page_init(&p, &q, "it's", "some");
  ASSERT_OK(page_open(&p, 1, "x\ty", &err));
  page_set(&p, "n", 2);
  page_set_text(&p, "plain", "gepo(clip=none)");
  page_set_text(&p, "marks", "a_b'c");
  ASSERT_OK(page_close(&p, GL_OK, &err));
  char *gp = files_text("build/page_test/it's.gp"), *tsv = files_text("build/page_test/it's.tsv");
  CU_ASSERT_PTR_NOT_NULL_FATAL(gp);
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "name = './'.'it'.\"'\".'s'\nformats = 'svg'\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(gp, "n = 2\nplain = 'gepo(clip=none)'\n"
                                    "marks = 'a\\_b'.\"'\".'c'\n"));
  CU_ASSERT_PTR_NULL(strstr(gp, "not shown"));
  CU_ASSERT_STRING_EQUAL(tsv, "# x\ty\n");
  free(gp);
  free(tsv);
}

TEST(a_failure_leaves_no_file) {
  const figure_request q = {.folder = folder, .script = script};
  gl_error err = {0};
  figure_page p;
  unlink("build/page_test/broken.tsv");
  page_init(&p, &q, "broken", "some");
  CU_ASSERT_EQUAL(page_close(&p, GL_EINPUT, &err), GL_EINPUT);
  page_init(&p, &q, "broken", "some");
  CU_ASSERT_EQUAL_FATAL(page_open(&p, 1, "x", &err), GL_OK);
  CU_ASSERT_EQUAL(page_close(&p, GL_EINPUT, &err), GL_EINPUT);
  CU_ASSERT(!exists("build/page_test/broken.tsv") && !exists("build/page_test/broken.gp"));
  page_init(&p, &q, "broken", "none");
  CU_ASSERT_EQUAL_FATAL(page_open(&p, 1, "x", &err), GL_OK);
  CU_ASSERT_EQUAL(page_close(&p, GL_OK, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "plots/none.gp is missing"));
  CU_ASSERT(!exists("build/page_test/broken.tsv"));
}

static const char literal_script[] =
    "set datafile separator \"\\t\"\nset encoding utf8\nset terminal svg enhanced\nset output "
    "name.'.svg'\nset yrange [-20:20]\n"
    "do for [i=1:n] { set label 10 + i names[i] at graph 0.1, first -i }\n"
    "set title names[1]; set xlabel names[1]; set label 1 text_of[1] at graph 0.5, 0.5\n"
    "plot for [i=1:n] -i with lines title names[i]\nset output\n"
    "set print name.'.txt'\n"
    "do for [i=1:n] { stats name.'.tsv' index i-1 using 3 nooutput; print STATS_max }\n";

static const char *literal(const char *path) {
  return strcmp(path, "plots/literal.gp") == 0 ? literal_script : "";
}

/* Character data of an SVG file as a reader sees it: without tags, entities resolved. */
static char *svg_text(const char *svg) {
  static const char *const entities[][2] = {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}};
  char *text = calloc(1, strlen(svg) + 1), *to = text;
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  for (int in_tag = 0; *svg != '\0'; ++svg) {
    size_t e = 0;
    while (!in_tag && e < 3 && strncmp(svg, entities[e][0], strlen(entities[e][0])) != 0) ++e;
    if (!in_tag && e < 3) {
      *to++ = entities[e][1][0];
      svg += strlen(entities[e][0]) - 1;
    } else if (*svg == '<') {
      in_tag = 1;
    } else if (in_tag) {
      in_tag = *svg != '>';
    } else {
      *to++ = *svg;
    }
  }
  return text;
}

static size_t occurrences(const char *text, const char *what) {
  size_t n = 0;
  for (; (text = strstr(text, what)) != NULL; text += strlen(what)) ++n;
  return n;
}

/* Formats, quotes, commands, enhanced text, macros, escapes of a terminal: gnuplot itself shows
 * them as they are, in titles, axes, labels and tic marks, and reads the data beside them. */
TEST(gnuplot_shows_any_name_literally_and_runs_nothing) {
  static const char *const names[][2] = {/* the name, and how it is shown */
                                         {"100%d %s %.9f %", NULL},
                                         {"a\"b", NULL},
                                         {"\"", NULL},
                                         {"a'b''c", NULL},
                                         {"`touch build/page_test/ran1`", NULL},
                                         {"$(touch build/page_test/ran2)", NULL},
                                         {"|touch ran3", NULL},
                                         {"<touch ran4", NULL},
                                         {"'; system('touch ran5'); x='", NULL},
                                         {"{/Symbol a}", NULL},
                                         {"a_b^c @x ~y &z {w} \\", NULL},
                                         {"#comment", NULL},
                                         {"a\nb", "a\\nb"},
                                         {"a\\nb", NULL},
                                         {"\033[31m\t\xff", "\\x1b[31m\\t\\xff"},
                                         {"漢字 🚀", "U+6F22U+5B57 U+1F680"},
                                         {"@x $1 name.\".tsv\"", NULL}};
  enum { N = sizeof names / sizeof *names };
  const char *plain[N];
  const figure_request q = {.folder = folder, .script = literal};
  gl_error err = {0};
  figure_page p;
  for (size_t i = 0; i < N; ++i) plain[i] = names[i][0];
  for (size_t first = 0; first < N; ++first) {
    page_init(&p, &q, "'|literal", "literal");
    CU_ASSERT_EQUAL_FATAL(page_open(&p, 1, "panel\tname\tvalue", &err), GL_OK);
    snprintf(p.panels[0].title, sizeof p.panels[0].title, "%s", plain[0]);
    for (size_t i = 0; i < N; ++i) {
      page_line(&p, 0, plain[i]);
      page_number(&p, (double)i + 0.5);
      fputc('\n', p.data.stream);
      page_block_end(&p);
    }
    page_set(&p, "n", N);
    CU_ASSERT_EQUAL(page_set_lines(&p, plain, N, &err), GL_OK);
    fprintf(p.variables, "array names[%d]\n", (int)N);
    for (size_t i = 0; i < N; ++i) {
      char item[24];
      snprintf(item, sizeof item, "names[%zu]", i + 1);
      page_set_text(&p, item, plain[i]);
    }
    CU_ASSERT_EQUAL(page_close(&p, GL_OK, &err), GL_OK);
    CU_ASSERT_EQUAL(gnuplot_draw(folder, "gnuplot", "'|literal", &err), GL_OK);
    if (err.text[0] != '\0') fprintf(stderr, "%s\n", err.text);
    char *svg = files_text("build/page_test/'|literal.svg"),
         *read = files_text("build/page_test/'|literal.txt");
    CU_ASSERT_FATAL(svg != NULL && read != NULL);
    char *text = svg_text(svg), values[512] = "";
    for (size_t i = 0; i < N; ++i) {
      const char *wanted = names[i][1] != NULL ? names[i][1] : names[i][0];
      if (first == 0 && occurrences(text, wanted) < 2) {
        fprintf(stderr, "not shown: %s\n", wanted);
        CU_FAIL("a name is not shown literally in the legend and at its tic");
      }
      snprintf(values + strlen(values), 24, "%.1f\n", (double)i + 0.5);
    }
    /* title, axis, label, tic mark and legend */
    const char *wanted = plain[0] == names[0][0] ? plain[0] : "";
    CU_ASSERT(*wanted == '\0' || occurrences(text, wanted) >= 5);
    CU_ASSERT_STRING_EQUAL(read, values);
    free(text), free(svg), free(read);
    const char *moved = plain[0]; /* each has its turn as title, axis and label */
    memmove(plain, plain + 1, (N - 1) * sizeof *plain);
    plain[N - 1] = moved;
  }
  for (int i = 1; i <= 5; ++i) {
    char ran[64];
    snprintf(ran, sizeof ran, "build/page_test/ran%d", i);
    CU_ASSERT(!exists(ran) && !exists(ran + strlen("build/page_test/")));
  }
}

static void put(const char *path, const char *text, int mode) {
  FILE *f = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  fputs(text, f);
  fclose(f);
  chmod(path, (mode_t)mode);
}

static int holds(const char *path, const char *wanted) {
  char *text = files_text(path);
  int same = text != NULL && strcmp(text, wanted) == 0;
  free(text);
  return same;
}

/* Stand-ins for gnuplot: one that is stopped in the middle, one that met a full disk without a
 * word, one that draws. */
TEST(a_drawing_is_the_old_one_until_the_new_one_is_whole) {
  static const char *const program = "build/page_test/stand-in";
  static const char head[] = "#!/bin/sh\naside=$(printf '%s' \"$3\" | cut -d\"'\" -f2)\n";
  static const char *const tails[] = {"printf '%%PDF half' > x.pdf$aside\nkill -9 $$\n",
                                      "printf '%%PDF half' > x.pdf$aside\n",
                                      ("printf '%%PDF new %%%%EOF\\n' > x.pdf$aside\n"
                                       "printf 'new IEND' > x.png$aside\n")};
  char text[512], absolute[512], here[256];
  CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(here, sizeof here));
  snprintf(absolute, sizeof absolute, "%s/%s", here, program);
  CU_ASSERT_EQUAL_FATAL(file_make_folder(folder, NULL), GL_OK);
  put("build/page_test/x.pdf", "old", 0644);
  put("build/page_test/x.png", "old", 0644);
  for (size_t i = 0; i < 3; ++i) {
    gl_error err = {0};
    snprintf(text, sizeof text, "%s%s", head, tails[i]);
    put(program, text, 0755);
    CU_ASSERT_EQUAL(gnuplot_draw(folder, absolute, "x", &err), i < 2 ? GL_EIO : GL_OK);
    CU_ASSERT(holds("build/page_test/x.pdf", i < 2 ? "old" : "%PDF new %%EOF\n"));
    CU_ASSERT(holds("build/page_test/x.png", i < 2 ? "old" : "new IEND"));
    if (i == 1) CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "x.pdf was not written whole"));
    char left[128];
    snprintf(left, sizeof left, "build/page_test/x.pdf.%ld.tmp", (long)getpid());
    CU_ASSERT(!exists(left));
  }
}

/* --- Cells and contours of maps against a surface whose contour is known --- */

SUITE("analysis: maps");

static const char *empty_script(const char *path) {
  (void)path;
  return "";
}

TEST(edges_lie_halfway) {
  const double x[] = {1, 2, 4}, one[] = {3};
  double edge[4];
  map_edges(x, 3, 0, edge);
  CU_ASSERT(edge[0] == 0.5 && edge[1] == 1.5 && edge[2] == 3 && edge[3] == 5);
  map_edges(x, 3, 1, edge);
  for (int i = 0; i < 4; i++) ASSERT_CLOSE(edge[i], pow(2, i - 0.5), 1e-12);
  map_edges(one, 1, 0, edge);
  CU_ASSERT(edge[0] == 2.5 && edge[1] == 3.5);
}

/* x / y on logarithmic axes: the contour at 1 is the diagonal, which interpolation of logarithms
 * meets exactly. */
TEST(the_contour_of_a_ratio_is_where_it_is_one) {
  enum { N = 5 };
  double at[N], edge[N + 1], value[N * N];
  for (int i = 0; i < N; i++) at[i] = pow(3, i);
  map_edges(at, N, 1, edge);
  for (int y = 0; y < N; y++)
    for (int x = 0; x < N; x++) value[y * N + x] = 1.2 * at[x] / at[y];
  const figure_map m = {N, N, edge, edge, value};
  const figure_request q = {.folder = "build/map_test", .script = empty_script};
  static const char *const line = "cell";
  gl_error err = {0};
  figure_page p;
  CU_ASSERT_EQUAL_FATAL(file_make_folder(q.folder, &err), GL_OK);
  page_init(&p, &q, "map", "map");
  CU_ASSERT_EQUAL_FATAL(page_open(&p, 1, "x", &err), GL_OK);
  p.x_logarithmic = p.panels[0].logarithmic = 1;
  page_bar_diverging(&p, "ratio", 30, 1);
  page_map(&p, 0, &m);
  page_contour(&p, 0, &m, 1);
  CU_ASSERT_EQUAL(page_set_lines(&p, &line, 1, &err), GL_OK);
  CU_ASSERT_EQUAL(page_close(&p, GL_OK, &err), GL_OK);
  FILE *f = fopen("build/map_test/map.tsv", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  char text[256];
  size_t cells = 0, points = 0;
  for (double x, y; fgets(text, sizeof text, f);) {
    cells += strncmp(text, "0\tcell\t", 7) == 0;
    if (sscanf(text, "0\tcontour\t%lf\t%lf", &x, &y) != 2) continue;
    ASSERT_CLOSE(y / x, 1.2, 1e-6);
    points++;
  }
  fclose(f);
  CU_ASSERT_EQUAL(cells, N * N);
  CU_ASSERT(points >= 2 * (N - 1));
}
