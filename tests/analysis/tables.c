/* Tables of texts that may be anything. */
#include "analysis/tables.h"

#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static char *printed(const table *t, table_format format) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  CU_ASSERT_EQUAL(table_write(t, format, to, NULL), GL_OK);
  fclose(to);
  return text;
}

/* One column without a caption: its second row as the format prints it. */
static int is_printed(const char *cell, table_format format, const char *wanted) {
  const char *heads[] = {"h"};
  char row[256];
  table *t = table_new(heads, 1);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  table_cell(t, "%s", cell);
  char *text = printed(t, format);
  snprintf(row, sizeof row,
           format == TABLE_MARKDOWN ? "\n| %s |\n"
           : format == TABLE_LATEX  ? "\n%s \\\\\n"
                                    : "\n%s\n",
           wanted);
  int found = strstr(text, row) != NULL;
  if (!found) fprintf(stderr, "no row %s in:\n%s\n", row, text);
  free(text);
  table_free(t);
  return found;
}

static void latex_escapes_its_special_characters(void) {
  const char *heads[] = {"a_b", "c%"};
  table *t = table_new(heads, 2);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  table_cell(t, "x\\y~");
  table_number(t, NAN);
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_EQUAL(table_write(t, TABLE_LATEX, to, NULL), GL_OK);
  fclose(to);
  CU_ASSERT_STRING_EQUAL(
      text, "\\begin{tabular}{lr}\n\\toprule\na\\_b & c\\% \\\\\n\\midrule\n"
            "x\\textbackslash{}y\\textasciitilde{} & – \\\\\n\\bottomrule\n\\end{tabular}\n");
  free(text);
  table_free(t);
}

static void every_mark_of_latex_is_text(void) {
  CU_ASSERT(is_printed("&%$#_{}", TABLE_LATEX, "\\&\\%\\$\\#\\_\\{\\}"));
  CU_ASSERT(is_printed("a^b~c\\d", TABLE_LATEX,
                       "a\\textasciicircum{}b\\textasciitilde{}c\\textbackslash{}d"));
  CU_ASSERT(is_printed("<|>", TABLE_LATEX, "\\textless{}\\textbar{}\\textgreater{}"));
  CU_ASSERT(
      is_printed("\\input{/etc/passwd}", TABLE_LATEX, "\\textbackslash{}input\\{/etc/passwd\\}"));
  /* else the end of the row before would take them for its arguments */
  CU_ASSERT(is_printed("[1cm]", TABLE_LATEX, "{}[1cm]"));
  CU_ASSERT(is_printed("*x", TABLE_LATEX, "{}*x"));
}

static void every_mark_of_markdown_and_html_is_text(void) {
  CU_ASSERT(is_printed("a|b", TABLE_MARKDOWN, "a\\|b"));
  CU_ASSERT(is_printed("<script>&amp;", TABLE_MARKDOWN, "&lt;script&gt;&amp;amp;"));
  CU_ASSERT(is_printed("`x` *y* ~z~ \\|", TABLE_MARKDOWN, "\\`x\\` \\*y\\* \\~z\\~ \\\\\\|"));
  CU_ASSERT(is_printed("[x](javascript:y)", TABLE_MARKDOWN, "[x\\](javascript:y)"));
  CU_ASSERT(is_printed("_x_ log_prob", TABLE_MARKDOWN, "\\_x\\_ log_prob"));
  CU_ASSERT(is_printed("-0.5 [-1, 0]", TABLE_MARKDOWN, "-0.5 [-1, 0]"));
}

static void what_a_terminal_would_obey_is_shown_in_every_format(void) {
  static const char wild[] = "\033[31m\n\xff\u202e";
  CU_ASSERT(is_printed(wild, TABLE_TEXT, "\\x1b[31m\\n\\xff\\u202e"));
  CU_ASSERT(is_printed(wild, TABLE_MARKDOWN, "\\\\x1b[31m\\\\n\\\\xff\\\\u202e"));
  CU_ASSERT(is_printed(wild, TABLE_LATEX,
                       "\\textbackslash{}x1b[31m\\textbackslash{}n\\textbackslash{}xff"
                       "\\textbackslash{}u202e"));
}

static void captions_and_heads_are_text_too(void) {
  const char *heads[] = {"a|b\n", "c"};
  table *t = table_new(heads, 2);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  table_caption(t, "%s", "# x\033 & <b>");
  table_cell(t, "1"), table_cell(t, "2");
  char *text = printed(t, TABLE_MARKDOWN);
  CU_ASSERT_STRING_EQUAL(text, "\\# x\\\\x1b &amp; &lt;b&gt;\n\n| a\\|b\\\\n | c |\n|:---|---:|\n"
                               "| 1       | 2 |\n");
  free(text);
  text = printed(t, TABLE_LATEX);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text, "\\caption{\\# x\\textbackslash{}x1b \\& \\textless{}b\\textgreater{}}\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "a\\textbar{}b\\textbackslash{}n & c \\\\\n"));
  free(text);
  table_free(t);
}

/* Wide characters take two columns, combining ones none, escapes what they are long. */
static void columns_stay_aligned_whatever_stands_in_them(void) {
  const char *heads[] = {"name", "x"};
  table *t = table_new(heads, 2);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  table_cell(t, "実験"), table_cell(t, "1");
  table_cell(t, "e\u0301"), table_cell(t, "22");
  table_cell(t, "\a"), table_cell(t, "–");
  char *text = printed(t, TABLE_TEXT);
  CU_ASSERT_STRING_EQUAL(text, "name   x\n────────\n実験   1\ne\u0301     22\n\\x07   –\n");
  free(text);
  table_free(t);
}

static void a_stream_that_fails_is_told(void) {
  const char *heads[] = {"h"};
  gl_error err = {0};
  table *t = table_new(heads, 1);
  FILE *full = fopen("/dev/full", "w");
  if (full == NULL) {
    table_free(t);
    SKIP("no /dev/full");
  }
  setvbuf(full, NULL, _IONBF, 0);
  CU_ASSERT_EQUAL(table_write(t, TABLE_TEXT, full, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is the disk full?"));
  fclose(full);
  table_free(t);
}

SUITE(tables, "analysis: tables", TEST(latex_escapes_its_special_characters),
      TEST(every_mark_of_latex_is_text), TEST(every_mark_of_markdown_and_html_is_text),
      TEST(what_a_terminal_would_obey_is_shown_in_every_format),
      TEST(captions_and_heads_are_text_too), TEST(columns_stay_aligned_whatever_stands_in_them),
      TEST(a_stream_that_fails_is_told));
