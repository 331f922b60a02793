/* Tokenizers without a file, and the UTF-8 that all of them read and write. */
#include "llm/text/tokenizer.h"
#include "core/base/utf8.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: tokenizer");

/* UTF-8 --- */

TEST(every_character_is_written_and_read_back) {
  char text[UTF8_LONGEST];
  size_t wrong = 0;
  for (uint32_t code = 0; code <= 0x10ffff; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;
    uint32_t again;
    size_t n = utf8_write(code, text);
    wrong += utf8_read(text, n, &again) != n || again != code;
    for (size_t cut = 1; cut < n; ++cut) /* a character cut short is one ill-formed part */
      wrong += utf8_read(text, cut, &again) != cut || again != UTF8_INVALID;
  }
  CU_ASSERT(wrong == 0);
}

static void check_repair(const char *bytes, size_t size, const char *expected) {
  char *text;
  size_t n;
  ASSERT_OK(utf8_repair(bytes, size, &text, &n, &err));
  if (n != strlen(expected) || memcmp(text, expected, n) != 0)
    fprintf(stderr, "repaired to %s, not %s\n", text, expected);
  CU_ASSERT(n == strlen(expected) && memcmp(text, expected, n) == 0 && text[n] == '\0');
  free(text);
}

#define REPAIR(bytes, expected) check_repair(bytes, sizeof(bytes) - 1, expected)
#define BAD "\xef\xbf\xbd"

/* The rows of the Unicode Standard's tables 3-8 to 3-11, and ends in the middle. */
TEST(every_maximal_ill_formed_part_is_one_replacement) {
  REPAIR("", "");
  REPAIR("plain", "plain");
  REPAIR("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", BAD BAD BAD BAD BAD BAD BAD BAD "A");
  REPAIR("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", BAD BAD BAD BAD BAD BAD BAD BAD "A");
  REPAIR("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", BAD BAD BAD BAD BAD "A" BAD BAD "B");
  REPAIR("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", BAD BAD BAD BAD "A");
  REPAIR("sixteen letters \xF0\x9F\x98", "sixteen letters " BAD);
  REPAIR("\xE4\xBD\xA0\xE4", "\xE4\xBD\xA0" BAD);
}

/* --- kinds --- */

static void check_decode(const tokenizer *t, const int32_t *token, size_t n, int skip,
                         const char *expected) {
  gl_error err = {0};
  char *text;
  size_t size;
  CU_ASSERT_FATAL(tokenizer_decode(t, token, n, skip, &text, &size, &err) == GL_OK);
  CU_ASSERT(size == strlen(expected) && memcmp(text, expected, size + 1) == 0);
  free(text);
}

static void check_special_tokens(const tokenizer *t) {
  CU_ASSERT(tokenizer_special(t, "<pad>") == TOKEN_PAD);
  CU_ASSERT(tokenizer_special(t, "<s>") == TOKEN_BEGIN);
  CU_ASSERT(tokenizer_special(t, "</s>") == TOKEN_END);
  CU_ASSERT(tokenizer_special(t, "<s") == -1 && tokenizer_special(t, "") == -1);
}

TEST(a_char_tokenizer_numbers_its_alphabet) {
  gl_error err = {0};
  tokenizer *t;
  int32_t *token;
  size_t n;
  CU_ASSERT_FATAL(tokenizer_new_char(&t, "01+=é你😀", &err) == GL_OK);
  CU_ASSERT_STRING_EQUAL(tokenizer_kind(t), "char");
  CU_ASSERT(tokenizer_size(t) == 10);
  check_special_tokens(t);
  const char text[] = "1+0=1你é😀";
  CU_ASSERT_FATAL(tokenizer_encode(t, text, sizeof text - 1, &token, &n, &err) == GL_OK);
  const int32_t expected[] = {4, 5, 3, 6, 4, 8, 7, 9};
  CU_ASSERT_FATAL(n == 8);
  CU_ASSERT(memcmp(token, expected, sizeof expected) == 0);
  check_decode(t, token, n, 0, text);
  free(token);
  const int32_t with_special[] = {TOKEN_BEGIN, 4, TOKEN_END, TOKEN_PAD};
  check_decode(t, with_special, 4, 0, "<s>1</s><pad>");
  check_decode(t, with_special, 4, 1, "1");
  CU_ASSERT(tokenizer_encode(t, "", 0, &token, &n, &err) == GL_OK && n == 0);
  free(token);
  tokenizer_free(t);
}

TEST(a_character_outside_the_alphabet_is_named) {
  gl_error err = {0};
  tokenizer *t;
  int32_t *token;
  size_t n;
  CU_ASSERT_FATAL(tokenizer_new_char(&t, "abc", &err) == GL_OK);
  CU_ASSERT(tokenizer_encode(t, "abüc", 5, &token, &n, &err) == GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'ü' U+00FC at byte 2"));
  gl_error_clear(&err);
  CU_ASSERT(tokenizer_encode(t, "\n", 1, &token, &n, &err) == GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "character U+000A at byte 0"));
  gl_error_clear(&err);
  CU_ASSERT(tokenizer_encode(t, "a\xff", 2, &token, &n, &err) == GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "U+FFFD"));
  tokenizer_free(t);
}

TEST(an_alphabet_has_distinct_characters) {
  static const char *const wrong[][2] = {{"abca", "U+0061 is twice"},
                                         {"", "empty"},
                                         {"ab\xc3", "not UTF-8 at byte 2"},
                                         {"éxé", "U+00E9"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    gl_error err = {0};
    tokenizer *t;
    CU_ASSERT(tokenizer_new_char(&t, wrong[i][0], &err) == GL_EINPUT && t == NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, wrong[i][1]));
  }
}

TEST(a_byte_tokenizer_takes_any_text) {
  tokenizer *t;
  int32_t *token;
  size_t n;
  ASSERT_OK(tokenizer_new_byte(&t, &err));
  CU_ASSERT_STRING_EQUAL(tokenizer_kind(t), "byte");
  CU_ASSERT(tokenizer_size(t) == 259);
  check_special_tokens(t);
  const char text[] = "a<s>\0é\n";
  ASSERT_OK(tokenizer_encode(t, text, sizeof text - 1, &token, &n, &err));
  CU_ASSERT_FATAL(n == sizeof text - 1);
  for (size_t i = 0; i < n; ++i) CU_ASSERT(token[i] == TOKEN_FIRST + (unsigned char)text[i]);
  free(token);
  const int32_t half[] = {TOKEN_FIRST + 'x', TOKEN_FIRST + 0xe4, TOKEN_END, TOKEN_FIRST + 0xbd};
  check_decode(t, half, 4, 0, "x" BAD "</s>" BAD);
  check_decode(t, half, 4, 1, "x" BAD); /* the two bytes meet: one cut character */
  tokenizer_free(t);
}

TEST(a_token_outside_the_vocabulary_is_refused) {
  gl_error err = {0};
  tokenizer *t;
  char *text;
  CU_ASSERT_FATAL(tokenizer_new_byte(&t, &err) == GL_OK);
  const int32_t wrong[] = {-1, 259, INT32_MAX};
  for (size_t i = 0; i < 3; ++i) {
    const int32_t token[] = {5, wrong[i]};
    gl_error_clear(&err);
    CU_ASSERT(tokenizer_decode(t, token, 2, 0, &text, NULL, &err) == GL_EINPUT && text == NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "at position 1"));
  }
  tokenizer_free(t);
  tokenizer_free(NULL);
}

/* They have the numbers behind the alphabet's, no text is encoded with them, and they read as
 * U+FFFD, which no right answer has. */
TEST(unused_tokens_are_a_tail_of_the_vocabulary) {
  tokenizer *t = NULL;
  gl_error err = {0};
  char *text = NULL;
  CU_ASSERT_FATAL(tokenizer_new_char(&t, "ab", &err) == GL_OK);
  CU_ASSERT(tokenizer_add_unused(t, 500, &err) == GL_OK);
  CU_ASSERT_EQUAL(tokenizer_size(t), TOKEN_FIRST + 502);
  const int32_t token[] = {TOKEN_FIRST, TOKEN_FIRST + 2, TOKEN_FIRST + 501, TOKEN_FIRST + 1};
  CU_ASSERT(tokenizer_decode(t, token, 4, 1, &text, NULL, &err) == GL_OK);
  CU_ASSERT_STRING_EQUAL(text, "a\xef\xbf\xbd\xef\xbf\xbd"
                               "b");
  free(text);
  const int32_t beyond = TOKEN_FIRST + 502;
  CU_ASSERT(tokenizer_decode(t, &beyond, 1, 1, &text, NULL, &err) == GL_EINPUT);
  tokenizer_free(t);
}
