/* Text of unknown origin as it is shown. */
#include "core/base/display_text.h"

#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("core: shown text");

TEST(what_a_terminal_obeys_is_shown_as_an_escape) {
  static const char *const pairs[][2] = {
      {"gepo(clip=none)", "gepo(clip=none)"},
      {"Müller’s 実験 — λ→0 🙂 e\u0301", "Müller’s 実験 — λ→0 🙂 e\u0301"},
      {"a\\n \"b\" 'c' %d", "a\\n \"b\" 'c' %d"},
      {"\033[31mred\033[0m", "\\x1b[31mred\\x1b[0m"},
      {"\033]0;title\007", "\\x1b]0;title\\x07"},
      {"two\nlines\r\tand \177", "two\\nlines\\r\\tand \\x7f"},
      {"C1 \xc2\x9b"
       "31m\xc2\x85",
       "C1 \\u009b31m\\u0085"},
      {"\u202egnp.exe\u2066\u2069\u200f", "\\u202egnp.exe\\u2066\\u2069\\u200f"},
      {"zero\u200bwidth\ufeff\u2028\u2029", "zero\\u200bwidth\\ufeff\\u2028\\u2029"},
      {"tag \U000e0041", "tag \\U000e0041"},
      {"\x9b[31m \xff \xe2\x82 \xc0\x80 \xed\xa0\x80", /* no UTF-8: a raw C1, a cut character, ...
                                                        */
       "\\x9b[31m \\xff \\xe2\\x82 \\xc0\\x80 \\xed\\xa0\\x80"},
      {"", ""}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i)
    CU_ASSERT_STRING_EQUAL(shown(pairs[i][0]).text, pairs[i][1]);
  CU_ASSERT_STRING_EQUAL(shown(NULL).text, "");
}

static int is_calm(const char *text) {
  for (; *text != '\0'; ++text)
    if ((unsigned char)*text < ' ' || *text == '\177') return 0;
  return 1;
}

TEST(every_byte_and_every_pair_of_bytes_is_shown_calmly) {
  size_t wild = 0, differ = 0;
  for (unsigned i = 0; i < 0x10000; ++i) {
    char text[3] = {(char)(i >> 8), (char)(i & 0xff), '\0'};
    shown_text once = shown(text), twice = shown(once.text);
    wild += !is_calm(once.text);
    differ += strcmp(once.text, twice.text) != 0; /* what is shown is shown as itself */
  }
  CU_ASSERT(wild == 0 && differ == 0);
}

static char *written(const char *text, size_t size, int lines) {
  char *out = NULL;
  size_t n = 0;
  FILE *to = open_memstream(&out, &n);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  if (lines)
    shown_write_lines(text, to);
  else
    shown_write(text, size, to);
  fclose(to);
  return out;
}

TEST(long_texts_and_texts_with_zeros_are_written_whole) {
  static char text[3000];
  memset(text, 'a', sizeof text);
  text[0] = '\0';
  text[2999] = '\033';
  char *out = written(text, sizeof text, 0);
  CU_ASSERT_EQUAL(strlen(out), 2998 + 2 * strlen("\\x00"));
  CU_ASSERT_EQUAL(strncmp(out, "\\x00aaa", 7), 0);
  CU_ASSERT_STRING_EQUAL(out + strlen(out) - 5, "a\\x1b");
  free(out);
  out = written("one\ntwo\033\n\n\tthree\r", 0, 1);
  CU_ASSERT_STRING_EQUAL(out, "one\ntwo\\x1b\n\n\tthree\\r");
  free(out);
}

TEST(a_text_is_cut_between_characters_and_says_so) {
  static char text[2000];
  shown_text s;
  memset(text, 'a', sizeof text - 1);
  CU_ASSERT_EQUAL(strlen(shown(text).text), SHOWN_SIZE - 1);
  CU_ASSERT_STRING_EQUAL(shown(text).text + SHOWN_SIZE - 5, "a…");
  for (size_t i = 0; i + 3 < sizeof text; i += 3) memcpy(text + i, "実", 3);
  CU_ASSERT_STRING_EQUAL(strrchr(shown(text).text, '\xe5'), "実…");
  CU_ASSERT_EQUAL(shown_cut("abcdef", 6, &s), 6);
  CU_ASSERT_STRING_EQUAL(s.text, "abcdef");
  CU_ASSERT_EQUAL(shown_cut("abcdef", 4, &s), 4);
  CU_ASSERT_STRING_EQUAL(s.text, "abc…");
  CU_ASSERT_EQUAL(shown_cut("実験室", 4, &s), 3); /* each is two columns wide */
  CU_ASSERT_STRING_EQUAL(s.text, "実…");
  CU_ASSERT_EQUAL(shown_cut("a\nb", 3, &s), 2); /* an escape is not cut in two */
  CU_ASSERT_STRING_EQUAL(s.text, "a…");
  CU_ASSERT_EQUAL(shown_cut("abc", 0, &s), 0);
  CU_ASSERT_STRING_EQUAL(s.text, "");
}

TEST(widths_are_columns_of_what_is_shown) {
  CU_ASSERT_EQUAL(shown_width("gepo"), 4);
  CU_ASSERT_EQUAL(shown_width("λ→0"), 3);
  CU_ASSERT_EQUAL(shown_width("実験"), 4);
  CU_ASSERT_EQUAL(shown_width("e\u0301"), 1);
  CU_ASSERT_EQUAL(shown_width("\033\n\xff\u202e"), 4 + 2 + 4 + 6);
}

static char *field(const char *text) {
  char *out = NULL;
  size_t n = 0;
  FILE *to = open_memstream(&out, &n);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  shown_write_field(text, to);
  shown_write_padded(text, 6, to);
  fclose(to);
  return out;
}

TEST(one_alone_has_no_plural) {
  CU_ASSERT_STRING_EQUAL(plural_ending(0), "s");
  CU_ASSERT_STRING_EQUAL(plural_ending(1), "");
  CU_ASSERT_STRING_EQUAL(plural_ending(2), "s");
}

TEST(fields_are_quoted_where_a_reader_needs_it) {
  static const char *const pairs[][2] = {{"gepo", "gepogepo  "},
                                         {"a\tb", "a\\tba\\tb  "},
                                         {"a\"b", "\"a\"\"b\"a\"b   "},
                                         {"#実", "\"#実\"#実   "},
                                         {"longer than", "longer thanlonger than"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    char *out = field(pairs[i][0]);
    CU_ASSERT_STRING_EQUAL(out, pairs[i][1]);
    free(out);
  }
}

TEST(paragraphs_are_joined_and_wrapped_and_indented_lines_stay) {
  static const char ten[] = "123456789 123456789 123456789 123456789 123456789 123456789 123456789";
  char text[200], wanted[200], *out = NULL;
  size_t n = 0;
  FILE *to = open_memstream(&out, &n);
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  snprintf(text, sizeof text, "a\nb\n  c   d\n%s\n123456789 é\n\ne", ten);
  snprintf(wanted, sizeof wanted, "a b\n  c   d\n%s 123456789\né\n\ne", ten);
  shown_paragraphs(text, to);
  fclose(to);
  CU_ASSERT_STRING_EQUAL(out, wanted);
  free(out);
}
