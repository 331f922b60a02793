/* Tables of texts that may be anything. */
#include "core/base/table.h"

#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <stdlib.h>
#include <string.h>

SUITE("core: tables");

/* A table of texts with these heads. */
static table *of_heads(const char *const *heads, size_t n) {
  table *t = table_new(NULL, 0);
  for (size_t i = 0; i < n; i++)
    table_add_column(t, (table_column){.type = TABLE_TEXT}, "%s", heads[i]);
  CU_ASSERT_PTR_NOT_NULL_FATAL(t);
  return t;
}

/* One column without a caption: its second row as the format prints it. */
static int is_printed(const char *cell, table_format format, const char *wanted) {
  const char *heads[] = {"h"};
  char row[256];
  table *t = of_heads(heads, 1);
  table_row(t);
  table_text(t, cell);
  char *text = written_table(t, format);
  snprintf(row, sizeof row,
           format == TABLE_AS_MARKDOWN ? "\n| %s |\n"
           : format == TABLE_AS_LATEX  ? "\n%s \\\\\n"
                                       : "\n%s\n",
           wanted);
  int found = strstr(text, row) != NULL;
  if (!found) fprintf(stderr, "no row %s in:\n%s\n", row, text);
  free(text);
  table_free(t);
  return found;
}

TEST(latex_escapes_its_special_characters) {
  const char *heads[] = {"a_b", "c%"};
  table *t = of_heads(heads, 2);
  table_row(t);
  table_text(t, "x\\y~");
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_EQUAL(table_write(t, TABLE_AS_LATEX, to, NULL), GL_OK);
  fclose(to);
  CU_ASSERT_STRING_EQUAL(
      text, "\\begin{tabular}{lr}\n\\toprule\na\\_b & c\\% \\\\\n\\midrule\n"
            "x\\textbackslash{}y\\textasciitilde{} & – \\\\\n\\bottomrule\n\\end{tabular}\n");
  free(text);
  table_free(t);
}

TEST(every_mark_of_latex_is_text) {
  CU_ASSERT(is_printed("&%$#_{}", TABLE_AS_LATEX, "\\&\\%\\$\\#\\_\\{\\}"));
  CU_ASSERT(is_printed("a^b~c\\d", TABLE_AS_LATEX,
                       "a\\textasciicircum{}b\\textasciitilde{}c\\textbackslash{}d"));
  CU_ASSERT(is_printed("<|>", TABLE_AS_LATEX, "\\textless{}\\textbar{}\\textgreater{}"));
  CU_ASSERT(is_printed("\\input{/etc/passwd}", TABLE_AS_LATEX,
                       "\\textbackslash{}input\\{/etc/passwd\\}"));
  /* else the end of the row before would take them for its arguments */
  CU_ASSERT(is_printed("[1cm]", TABLE_AS_LATEX, "{}[1cm]"));
  CU_ASSERT(is_printed("*x", TABLE_AS_LATEX, "{}*x"));
}

TEST(every_mark_of_markdown_and_html_is_text) {
  CU_ASSERT(is_printed("a|b", TABLE_AS_MARKDOWN, "a\\|b"));
  CU_ASSERT(is_printed("<script>&amp;", TABLE_AS_MARKDOWN, "&lt;script&gt;&amp;amp;"));
  CU_ASSERT(is_printed("`x` *y* ~z~ \\|", TABLE_AS_MARKDOWN, "\\`x\\` \\*y\\* \\~z\\~ \\\\\\|"));
  CU_ASSERT(is_printed("[x](javascript:y)", TABLE_AS_MARKDOWN, "[x\\](javascript:y)"));
  CU_ASSERT(is_printed("_x_ log_prob", TABLE_AS_MARKDOWN, "\\_x\\_ log_prob"));
  CU_ASSERT(is_printed("-0.5 [-1, 0]", TABLE_AS_MARKDOWN, "-0.5 [-1, 0]"));
}

TEST(what_a_terminal_would_obey_is_shown_in_every_format) {
  static const char wild[] = "\033[31m\n\xff\u202e";
  CU_ASSERT(is_printed(wild, TABLE_AS_TEXT, "\\x1b[31m\\n\\xff\\u202e"));
  CU_ASSERT(is_printed(wild, TABLE_AS_MARKDOWN, "\\\\x1b[31m\\\\n\\\\xff\\\\u202e"));
  CU_ASSERT(is_printed(wild, TABLE_AS_LATEX,
                       "\\textbackslash{}x1b[31m\\textbackslash{}n\\textbackslash{}xff"
                       "\\textbackslash{}u202e"));
}

TEST(captions_and_heads_are_text_too) {
  const char *heads[] = {"a|b\n", "c"};
  table *t = of_heads(heads, 2);
  table_title(t, "%s", "# x\033 & <b>");
  table_row(t), table_text(t, "1"), table_text(t, "2");
  char *text = written_table(t, TABLE_AS_MARKDOWN);
  CU_ASSERT_STRING_EQUAL(text, "\\# x\\\\x1b &amp; &lt;b&gt;\n\n| a\\|b\\\\n | c |\n|:---|---:|\n"
                               "| 1       | 2 |\n");
  free(text);
  text = written_table(t, TABLE_AS_LATEX);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text, "\\caption{\\# x\\textbackslash{}x1b \\& \\textless{}b\\textgreater{}}\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "a\\textbar{}b\\textbackslash{}n & c \\\\\n"));
  free(text);
  table_free(t);
}

/* Wide characters take two columns, combining ones none, escapes what they are long. */
TEST(a_number_that_rounds_to_zero_has_no_sign) {
  static const table_column column = {.type = TABLE_REAL, .head = "h", .format = "%.3f"};
  table *t = table_new(&column, 1);
  table_row(t);
  table_real(t, -0.0001);
  table_row(t);
  table_real(t, -0.001);
  char *text = written_table(t, TABLE_AS_TEXT);
  CU_ASSERT(strstr(text, "0.000") != NULL && strstr(text, "-0.000") == NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "-0.001"));
  free(text);
  table_free(t);
}

TEST(columns_stay_aligned_whatever_stands_in_them) {
  const char *heads[] = {"name", "x"};
  table *t = of_heads(heads, 2);
  table_row(t), table_text(t, "実験"), table_text(t, "1");
  table_row(t), table_text(t, "e\u0301"), table_text(t, "22");
  table_row(t), table_text(t, "\a"), table_text(t, "–");
  char *text = written_table(t, TABLE_AS_TEXT);
  CU_ASSERT_STRING_EQUAL(text, "name   x\n────────\n実験   1\ne\u0301     22\n\\x07   –\n");
  free(text);
  table_free(t);
}

TEST(a_stream_that_fails_is_told) {
  const char *heads[] = {"h"};
  gl_error err = {0};
  table *t = of_heads(heads, 1);
  FILE *full = fopen("/dev/full", "w");
  if (full == NULL) {
    table_free(t);
    SKIP("no /dev/full");
  }
  setvbuf(full, NULL, _IONBF, 0);
  CU_ASSERT_EQUAL(table_write(t, TABLE_AS_TEXT, full, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is the disk full?"));
  fclose(full);
  table_free(t);
}

/* Every type of cell, in a document with a list, an object and a people's table. */
static table *of_everything(void) {
  static const table_column columns[] = {
      {"name", TABLE_TEXT, .head = "name", .order = 1},
      {"n", TABLE_INTEGER, .head = "n"},
      {"x", TABLE_REAL, .head = "x", .format = "%.2f"},
      {"is", TABLE_FLAG, .head = "is"},
      {"score", TABLE_INTERVAL, .head = "score", .format = TABLE_SCORE, .value = "iqm"},
      TABLE_KEY("list", TABLE_NUMBERS),
      TABLE_KEY("in/side", TABLE_REAL),
      TABLE_HEAD("words")};
  table *all = table_document();
  table_text(table_field(all, "study"), "a,b");
  table *t = table_rows(table_field(all, "rows"), columns, sizeof columns / sizeof *columns);
  table_row(t);
  table_text(t, "one");
  table_integer(t, INT64_MAX);
  table_real(t, NAN);
  table_flag(t, true);
  table_interval(t, 0.1, 0.0625, 0.2);
  table_numbers(t, (double[]){1, INFINITY}, 2);
  table_real(t, 2);
  table_text(t, "w");
  table_row(t);
  table_missing(t);
  table_integer(t, -1);
  table_shown(t, "minus one");
  table_row(t);
  table_text(t, "unseen");
  table_hide_row(t);
  table_line(all, "%s", "a line");
  table *list = table_list(table_field(all, "list"));
  table_text(table_field(list, ""), "x");
  table_real(table_field(list, ""), 0.5);
  return all;
}

TEST(people_see_heads_in_their_places) {
  table *t = of_everything();
  char *text = written_table(t, TABLE_AS_TEXT);
  CU_ASSERT_STRING_EQUAL(text, "n                    x   is                 score  words  name\n"
                               "──────────────────────────────────────────────────────────────\n"
                               "9223372036854775807  –  yes  0.100 [0.062, 0.200]      w   one\n"
                               "minus one            –    –                     –      –     –\n"
                               "a line\n");
  free(text);
  table_free(t);
}

TEST(programs_see_names_and_what_is_missing_has_none) {
  table *t = of_everything();
  char *json = written_table(t, TABLE_AS_JSON), *csv = written_table(t, TABLE_AS_CSV);
  CU_ASSERT_STRING_EQUAL(json, "{\n\t\"study\":\t\"a,b\",\n\t\"rows\":\t[{\n"
                               "\t\t\t\"name\":\t\"one\",\n"
                               "\t\t\t\"n\":\t9223372036854775807,\n"
                               "\t\t\t\"x\":\tnull,\n\t\t\t\"is\":\ttrue,\n"
                               "\t\t\t\"score\":\t{\n\t\t\t\t\"iqm\":\t0.1,\n"
                               "\t\t\t\t\"low\":\t0.0625,\n\t\t\t\t\"high\":\t0.2\n\t\t\t},\n"
                               "\t\t\t\"list\":\t[1, null],\n"
                               "\t\t\t\"in\":\t{\n\t\t\t\t\"side\":\t2\n\t\t\t}\n"
                               "\t\t}, {\n\t\t\t\"n\":\t-1\n\t\t}, {\n"
                               "\t\t\t\"name\":\t\"unseen\"\n\t\t}],\n"
                               "\t\"list\":\t[\"x\", 0.5]\n}\n");
  CU_ASSERT_STRING_EQUAL(csv, "name,n,x,is,score,score_low,score_high,in.side\n"
                              "one,9223372036854775807,,true,0.1,0.0625,0.2,2\n"
                              ",-1,,,,,,\nunseen,,,,,,,\n");
  free(json), free(csv);
  table_free(t);
}

TEST(html_sets_estimates_off_and_escapes) {
  static const table_column columns[] = {{"a", TABLE_TEXT, .head = "a<b"},
                                         {"x", TABLE_INTERVAL, .head = "x"}};
  table *t = table_new(columns, 2);
  table_title(t, "\"T\" & more");
  table_row(t);
  table_text(t, "<i>");
  table_interval(t, 1, 0.5, 2);
  table_bold(t);
  char *text = written_table(t, TABLE_AS_HTML);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<caption>&quot;T&quot; &amp; more</caption>"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<th scope=\"col\">a&lt;b</th>"
                                      "<th scope=\"col\" class=\"n\">x</th>"));
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text, "<tr><th scope=\"row\">&lt;i&gt;</th><td class=\"n\"><strong>1</strong> "
                   "<span class=\"ends\">[0.5, 2]</span></td></tr>"));
  free(text);
  table_free(t);
}

TEST(plain_tables_pad_to_widths_and_end_early) {
  static const table_column columns[] = {{"a", TABLE_TEXT, .head = "a", .width = -4},
                                         {"n", TABLE_INTEGER, .head = "n", .width = 3}};
  table *t = table_new(columns, 2);
  table_plain(t, 2);
  table_row(t), table_text(t, "x"), table_integer(t, 12);
  table_row(t), table_text(t, "y"), table_rest(t, "none of them");
  char *text = written_table(t, TABLE_AS_TEXT);
  CU_ASSERT_STRING_EQUAL(text, "  a      n\n  x     12\n  y    none of them\n");
  free(text);
  table_free(t);
}

/* Columns beyond 80 follow in blocks that begin with the first column; every cell is in one. */
TEST(a_table_wider_than_a_terminal_is_written_in_blocks) {
  static const char head[] = "abcdefghijklmnopqrstuvwxyz";
  table *t = table_new((const table_column[]){{.type = TABLE_TEXT, .head = "run"}}, 1);
  for (size_t i = 0; i < 9; ++i)
    table_add_column(t, (table_column){.type = TABLE_TEXT}, "%.*s%zu", (int)(10 + i), head, i);
  table_row(t);
  table_text(t, "mine");
  for (size_t i = 0; i < 9; ++i) table_textf(t, "value%zu", i);
  char *text = written_table(t, TABLE_AS_TEXT);
  size_t columns = 0, blocks = 0;
  for (const char *c = text; *c != '\0'; ++c) {
    columns = *c == '\n' ? 0 : columns + (((unsigned char)*c & 0xC0) != 0x80);
    CU_ASSERT(columns <= 80);
    blocks += strncmp(c, "run", 3) == 0;
  }
  CU_ASSERT_EQUAL(blocks, 3);
  for (size_t i = 0; i < 9; ++i) {
    char value[16];
    snprintf(value, sizeof value, "value%zu", i);
    const char *first = strstr(text, value);
    CU_ASSERT(first != NULL && strstr(first + 1, value) == NULL);
  }
  free(text);
  table_free(t);
}

TEST(numbers_without_a_value_are_dashes_and_titles_fit_a_terminal) {
  static const table_column columns[] = {{"x", TABLE_REAL, .head = "x"}};
  table *document = table_document(), *t = table_rows(table_field(document, "rows"), columns, 1);
  const double value[] = {NAN, -NAN, INFINITY, -INFINITY};
  for (size_t i = 0; i < 4; ++i) table_row(t), table_real(t, value[i]);
  char words[200];
  memset(words, 'a', sizeof words);
  for (size_t i = 9; i < sizeof words; i += 10) words[i] = ' ';
  words[sizeof words - 1] = '\0';
  table_title(t, "%s", words);
  char *text = written_table(t, TABLE_AS_TEXT);
  CU_ASSERT(strcspn(text, "\n") <= 80);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n–\n–\n–\n–\n"));
  CU_ASSERT_PTR_NULL(strstr(text, "inf"));
  free(text);
  table_free(document);
}

TEST(memory_that_was_missing_is_told_at_the_end) {
  gl_error err = {0};
  table *within = table_rows(table_field(NULL, "x"), NULL, 0);
  table_row(within), table_text(within, "x"), table_real(within, 1), table_line(within, "%d", 1);
  CU_ASSERT_PTR_NULL(within);
  CU_ASSERT_PTR_NULL(table_to_json(NULL));
  CU_ASSERT_EQUAL(table_write(NULL, TABLE_AS_TEXT, stdout, &err), GL_ENOMEM);
}
