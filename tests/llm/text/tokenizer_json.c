/* What the reader of a tokenizer.json refuses, and texts that could bring the encoder down. */
#include "core/base/utf8.h"
#include "tests/support/llm_tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- fields --- */

SUITE("llm: tokenizer files");

typedef struct wrong_field {
  const char *pointer, *value; /* what is put where */
  const char *message;         /* what the error says after "t.json: " */
} wrong_field;

#define RULE "/pre_tokenizer/pretokenizers/0"
#define REGEX RULE "/pattern/Regex"
#define LEVEL "/pre_tokenizer/pretokenizers/1"

static const wrong_field wrong_fields[] = {
    {"/surprise", "1", "/surprise: this field is not known"},
    {"/truncation", "{\"max_length\":5}", "/truncation: is not null"},
    {"/padding", "{}", "/padding: is not null"},
    {"/normalizer", "{\"type\":\"NFKC\"}", "/normalizer: type \"NFKC\" is not supported"},
    {"/normalizer", "[]", "/normalizer: is no object"},
    {"/normalizer",
     "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"NFD\"}]}",
     "/normalizer/normalizers/1: type \"NFD\""},
    {"/normalizer", "{\"type\":\"NFC\",\"left\":true}", "/normalizer/left: this field"},
    {"/pre_tokenizer", "null", "/pre_tokenizer: type \"\" is not supported"},
    {"/pre_tokenizer", "{\"type\":\"Whitespace\"}", "/pre_tokenizer: type \"Whitespace\""},
    {"/pre_tokenizer/pretokenizers", "[]", "/pre_tokenizer/pretokenizers: is no list"},
    {"/pre_tokenizer/pretokenizers", "[1,2,3]", "/pre_tokenizer/pretokenizers: is no list"},
    {RULE, "{\"type\":\"Digits\"}", RULE ": type \"Digits\""},
    {RULE, "7", RULE ": is no object"},
    {RULE "/behavior", "\"Removed\"", RULE "/behavior: is not \"Isolated\""},
    {RULE "/invert", "true", RULE "/invert: is not false"},
    {RULE "/pattern", "{\"String\":\" \"}", RULE "/pattern/String: this field"},
    {REGEX, "3", REGEX ": is no string"},
    {REGEX, "\"(a\"", REGEX ": the splitting rule is no pattern"},
    {REGEX, "\"a.b\"", REGEX ": a dot or an anchor at byte 1"},
    {REGEX, "\"^a\"", REGEX ": a dot or an anchor at byte 0"},
    {REGEX, "\"ab\\\\w\"", REGEX ": this escape sequence at byte 2"},
    {REGEX, "\"\\\\\"", REGEX ": this escape sequence"},
    {REGEX, "\"\\\\p{Han}\"", REGEX ": a property that is no general category"},
    {REGEX, "\"\\\\pL\"", REGEX ": a property without braces"},
    {REGEX, "\"[a[b]]\"", REGEX ": a class within a class at byte 2"},
    {REGEX, "\"[a&&b]\"", REGEX ": an intersection of classes"},
    {REGEX, "\"[]a]\"", REGEX ": a class that is empty"},
    {REGEX, "\"a{2}+\"", REGEX ": a suffix after a count"},
    {REGEX, "\"a{,2}\"", REGEX ": a brace that is no"},
    {REGEX, "\"(?<n>a)\"", REGEX ": this kind of group"},
    {REGEX, "\"(*UTF)a\"", REGEX ": a verb"},
    {REGEX, "\"(?i:'s|\xc3\xa9)\"", REGEX ": anything but letters"},
    {REGEX, "\"(?i:ss)\"", REGEX ": a pair of letters"},
    {REGEX, "\"(?i:a\"", REGEX ": anything but letters"},
    {LEVEL "/add_prefix_space", "true", LEVEL "/add_prefix_space: is not false"},
    {LEVEL "/use_regex", "true", LEVEL "/use_regex: is not false after a Split"},
    {LEVEL "/use_regex", "2", LEVEL "/use_regex: is neither"},
    {LEVEL "/type", "\"Metaspace\"", LEVEL ": type \"Metaspace\""},
    {"/post_processor", "{\"type\":\"BertProcessing\"}",
     "/post_processor: type \"BertProcessing\""},
    {"/post_processor", "{\"type\":\"Sequence\",\"processors\":[{\"type\":\"X\"}]}",
     "/post_processor/processors/0: type \"X\""},
    {"/decoder", "{\"type\":\"WordPiece\"}", "/decoder: type \"WordPiece\""},
    {"/decoder", "null", "/decoder: type \"\""},
    {"/model", "null", "/model: is no object"},
    {"/model/type", "\"Unigram\"", "/model/type: is not \"BPE\""},
    {"/model/dropout", "0.1", "/model/dropout: is set"},
    {"/model/unk_token", "\"<unk>\"", "/model/unk_token: is set"},
    {"/model/byte_fallback", "true", "/model/byte_fallback: is set"},
    {"/model/fuse_unk", "true", "/model/fuse_unk: is set"},
    {"/model/end_of_word_suffix", "\"</w>\"", "/model/end_of_word_suffix: is set"},
    {"/model/continuing_subword_prefix", "\"##\"", "/model/continuing_subword_prefix: is set"},
    {"/model/ignore_merges", "1", "/model/ignore_merges: is neither"},
    {"/model/vocab", "{}", "/model/vocab: is no object of tokens"},
    {"/model/vocab", "{\"a\":0}", "/model/vocab: byte 0 has no token"},
    {"/model/vocab/in", "-1", "/model/vocab/in: is no integer from 0"},
    {"/model/vocab/in", "1.5", "/model/vocab/in: is no integer"},
    {"/model/vocab/in", "1e300", "/model/vocab/in: is no integer"},
    {"/model/vocab/in", "4194304", "/model/vocab/in: is no integer"},
    {"/model/vocab/in", "\"7\"", "/model/vocab/in: is no integer"},
    {"/model/vocab/new", "0", "/model/vocab/new: another token has number 0"},
    {"/model/merges", "{}", "/model/merges: is no list"},
    {"/model/merges/3", "\"a\"", "/model/merges/3: is neither"},
    {"/model/merges/3", "\"a b c\"", "/model/merges/3: is neither"},
    {"/model/merges/3", "[\"a\"]", "/model/merges/3: is neither"},
    {"/model/merges/3", "[\"a\",\"b\",\"c\"]", "/model/merges/3: is neither"},
    {"/model/merges/3", "[\"a\",4]", "/model/merges/3: is neither"},
    {"/model/merges/3", "[\"nobody\",\"a\"]", "/model/merges/3: its left half \"nobody\""},
    {"/model/merges/3", "\"a knows\"", "/model/merges/3: its right half \"knows\""},
    {"/model/merges/3", "\"Q Q\"", "/model/merges/3: what it makes, \"QQ\", is"},
    {"/added_tokens", "{}", "/added_tokens: is no list"},
    {"/added_tokens/1", "[]", "/added_tokens/1: is no object"},
    {"/added_tokens/1/id", "-5", "/added_tokens/1/id: is no integer"},
    {"/added_tokens/1/id", "99999999999", "/added_tokens/1/id: is no integer"},
    {"/added_tokens/1/id", "3", "/added_tokens/1/id: another token has number 3"},
    {"/added_tokens/1/id", "1200", "/added_tokens/1/id: another token has number 1200"},
    {"/added_tokens/1/content", "\"!\"", "/added_tokens/1/id: \"!\" is 1201 here"},
    {"/added_tokens/1/content", "\"<|endoftext|>\"",
     "/added_tokens/1/id: \"<|endoftext|>\" is 1201"},
    {"/added_tokens/7/content", "\"<\xc3\xa6\xcc\x81>long\"", "/added_tokens: token 120"},
    {"/added_tokens/1/content", "\"\"", "/added_tokens/1/content: is no text"},
    {"/added_tokens/1/content", "5", "/added_tokens/1/content: is no text"},
    {"/added_tokens/1/lstrip", "true", "/added_tokens/1/lstrip: is true"},
    {"/added_tokens/1/rstrip", "true", "/added_tokens/1/rstrip: is true"},
    {"/added_tokens/1/single_word", "true", "/added_tokens/1/single_word: is true"},
    {"/added_tokens/1/special", "\"yes\"", "/added_tokens/1/special: is neither"},
    {"/added_tokens/1/normalized", "null", "/added_tokens/1/normalized: is neither"},
};

static void check_message(gl_status status, const gl_error *err, const char *name,
                          const char *message) {
  const size_t n = strlen(name);
  const int right = status == GL_EINPUT && strncmp(err->text, name, n) == 0 &&
                    strncmp(err->text + n, ": ", 2) == 0 &&
                    strstr(err->text, message) == err->text + n + 2;
  if (!right) fprintf(stderr, "expected \"%s\", not \"%s\"\n", message, err->text);
  CU_ASSERT(right);
}

TEST(what_is_not_supported_is_named_with_its_place) {
  cJSON *golden = json_load("tests/golden/tokenizer.json");
  for (size_t i = 0; i < sizeof wrong_fields / sizeof *wrong_fields; ++i) {
    const wrong_field *w = &wrong_fields[i];
    cJSON *document = cJSON_Duplicate(golden, 1), *value = cJSON_Parse(w->value);
    gl_error err = {0};
    tokenizer *t;
    CU_ASSERT_FATAL(document != NULL && value != NULL);
    json_set(document, w->pointer, value);
    gl_status status = parse_document(&t, document, &err);
    CU_ASSERT(t == NULL);
    check_message(status, &err, "t.json", w->message);
    tokenizer_free(t);
    cJSON_Delete(document);
  }
  cJSON_Delete(golden);
}

/* What other exports of the same tokenizers have. */
TEST(harmless_variants_are_taken) {
  static const char *const harmless[][2] = {
      {"/post_processor", "null"},
      {"/post_processor", "{\"type\":\"TemplateProcessing\",\"single\":[],\"pair\":[]}"},
      {"/post_processor", "{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"}]}"},
      {"/model/dropout", "0.0"},
      {"/model/continuing_subword_prefix", "\"\""},
      {"/model/end_of_word_suffix", "\"\""},
      {"/pre_tokenizer", "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\","
                         "\"add_prefix_space\":false}]}"},
      {"/added_tokens", "[]"},
      {"/added_tokens", "null"}};
  cJSON *golden = json_load("tests/golden/tokenizer.json");
  for (size_t i = 0; i < sizeof harmless / sizeof *harmless; ++i) {
    cJSON *document = cJSON_Duplicate(golden, 1);
    gl_error err = {0};
    tokenizer *t;
    json_set(document, harmless[i][0], cJSON_Parse(harmless[i][1]));
    gl_status status = parse_document(&t, document, &err);
    if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT(status == GL_OK && t != NULL);
    tokenizer_free(t);
    cJSON_Delete(document);
  }
  cJSON_Delete(golden);
}

/* --- files --- */

static void check_text(const char *text, size_t size, const char *message) {
  gl_error err = {0};
  tokenizer *t;
  check_message(tokenizer_parse(&t, text, size, "t.json", &err), &err, "t.json", message);
  CU_ASSERT(t == NULL);
}

#define TEXT(text, message) check_text(text, sizeof(text) - 1, message)

TEST(fields_that_are_not_known_are_refused) {
  TEXT("[]", "/: is no object");
  TEXT("{\"a\\\\u0000\":1}", "/a\\u0000: this field is not known");
  TEXT("{\"model\":1,\"model\":2}", "/model: is there twice");
  TEXT("{\"a\\nb\":1}", "/a?b: this field is not known");
  TEXT("{\"0123456789012345678901234567890123456789012345678901234567890123456789\":1}",
       "/01234567890123456789012345678901234567890123456789012345...: this field");
}

TEST(text_that_is_no_json_is_refused_with_its_place) {
  static const struct {
    const char *text;
    size_t size;
    const char *place;
  } wrong[] = {
#define WRONG(text, place) {text, sizeof(text) - 1, place}
      WRONG("", "t.json:1:1: expected a value"),
      WRONG("{\n\n\"model\": }", "t.json:3:10: expected a value"),
      WRONG("{}\n{}", "t.json:2:1: there is more after the end"),
      WRONG("{\"a\"\n:\"\xff\"}", "t.json:2:3: a string that is not UTF-8"),
      WRONG("{\"a\":\n\"b\0c\"}", "t.json:2:3: a control character"),
      WRONG("{\"a\":\n\"b\\u0000c\"}", "t.json:2:9: an escape that is no character"),
      WRONG("{\"a\nb\":1}", "t.json:1:4: a control character"),
      WRONG("{\"\xc3\xa9\":1,}", "t.json:1:8: expected a string"),
#undef WRONG
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    gl_error err = {0};
    tokenizer *t;
    CU_ASSERT(tokenizer_parse(&t, wrong[i].text, wrong[i].size, "t.json", &err) == GL_EINPUT);
    int good = t == NULL && strstr(err.text, wrong[i].place) == err.text;
    if (!good) fprintf(stderr, "expected \"%s\", not \"%s\"\n", wrong[i].place, err.text);
    CU_ASSERT(good);
  }
}

static void refused_as(const char *text, size_t size, const char *message) {
  gl_error err = {0};
  tokenizer *t;
  CU_ASSERT(tokenizer_parse(&t, text, size, "t.json", &err) == GL_EINPUT && t == NULL);
  if (strstr(err.text, message) == NULL) fprintf(stderr, "%s, not %s\n", message, err.text);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
}

TEST(deep_or_endless_json_is_refused) {
  enum { SIZE = 18 << 20 };
  char *text = malloc(SIZE + 1);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  memset(text, '[', SIZE);
  refused_as(text, SIZE, "nested deeper than 64 levels");
  for (size_t i = 1; i < SIZE; i += 2) text[i] = '0', text[i + 1] = ',';
  refused_as(text, SIZE, "more than 8388608 values");
  free(text);
}

TEST(a_token_that_is_too_long_is_refused) {
  cJSON *document = json_load("tests/golden/tokenizer.json");
  char content[4098];
  gl_error err = {0};
  tokenizer *t;
  memset(content, 'x', sizeof content - 1);
  content[sizeof content - 1] = '\0';
  json_set(document, "/added_tokens/2/content", cJSON_CreateString(content));
  check_message(parse_document(&t, document, &err), &err, "t.json", "token 1202, \"xxx");
  cJSON_Delete(document);
}

TEST(a_file_that_cannot_be_read_is_named) {
  tokenizer *t;
  const char *const paths[] = {"/nonexistent/tokenizer.json", "/"};
  for (size_t i = 0; i < 2; ++i) {
    gl_error err = {0};
    CU_ASSERT(tokenizer_load(&t, paths[i], &err) == GL_EIO && t == NULL);
    CU_ASSERT(strncmp(err.text, paths[i], strlen(paths[i])) == 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot be read"));
  }
}

/* Larger than the limit: a file with a hole, which costs no disk. */
TEST(a_file_that_is_too_large_is_refused) {
  char path[] = "/tmp/gepolab-tokenizer-XXXXXX";
  int descriptor = mkstemp(path);
  gl_error err = {0};
  tokenizer *t;
  CU_ASSERT_FATAL(descriptor >= 0 && ftruncate(descriptor, ((off_t)256 << 20) + 1) == 0);
  close(descriptor);
  check_message(tokenizer_load(&t, path, &err), &err, path, "has more than 256 MiB");
  unlink(path);
}

/* --- texts --- */

static size_t count_tokens(const tokenizer *t, const char *text, size_t size,
                           const char *expected) {
  gl_error err = {0};
  int32_t *token;
  size_t n, again;
  char *back;
  gl_status status = tokenizer_encode(t, text, size, &token, &n, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_FATAL(status == GL_OK);
  CU_ASSERT_FATAL(tokenizer_decode(t, token, n, 0, &back, &again, &err) == GL_OK);
  CU_ASSERT(again == strlen(expected) && memcmp(back, expected, again) == 0);
  free(back);
  free(token);
  return n;
}

/* Each of these is one piece, or a run that the rule's alternatives try one after another. */
TEST(long_pieces_are_encoded) {
  static const char *const unit[] = {"ab",
                                     " ",
                                     "\n",
                                     " \n",
                                     "!",
                                     "9",
                                     "\xc3\xa9",
                                     " a",
                                     "<",
                                     "<|im_",
                                     "\xe2\x80\x83",
                                     "!\r\n",
                                     "\xcc\x81\xcc\xa3"};
  enum { SIZE = 1 << 18 };
  tokenizer *t = golden_tokenizer();
  char *text = malloc(SIZE + 16);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  for (size_t i = 0; i < sizeof unit / sizeof *unit; ++i) {
    size_t size = 0, length = strlen(unit[i]);
    for (; size + length <= SIZE; size += length) memcpy(text + size, unit[i], length);
    text[size] = '\0';
    if (unit[i][0] == '\xcc') { /* acute accents move behind the dots below */
      char *sorted = malloc(size + 1);
      CU_ASSERT_PTR_NOT_NULL_FATAL(sorted);
      for (size_t k = 0; k < size; k += 2)
        memcpy(sorted + k, k < size / 2 ? "\xcc\xa3" : "\xcc\x81", 2);
      sorted[size] = '\0';
      CU_ASSERT(count_tokens(t, text, size, sorted) > 0);
      free(sorted);
    } else
      CU_ASSERT(count_tokens(t, text, size, text) > 0);
  }
  free(text);
  tokenizer_free(t);
}

TEST(ill_formed_text_is_encoded_with_replacements) {
  tokenizer *t = golden_tokenizer();
  const char text[] = "a\xff<|im_end|>\xe4\xbd!\0e\xcc\x81";
  gl_error err = {0};
  int32_t *token;
  size_t n, size;
  char *back;
  CU_ASSERT_FATAL(tokenizer_encode(t, text, sizeof text - 1, &token, &n, &err) == GL_OK);
  CU_ASSERT_FATAL(tokenizer_decode(t, token, n, 1, &back, &size, &err) == GL_OK);
  const char expected[] = "a\xef\xbf\xbd\xef\xbf\xbd!\0\xc3\xa9";
  CU_ASSERT(size == sizeof expected - 1 && memcmp(back, expected, size) == 0);
  free(back);
  free(token);
  CU_ASSERT(tokenizer_encode(t, NULL, 0, &token, &n, &err) == GL_OK && n == 0);
  free(token);
  tokenizer_free(t);
}

/* A rule with nested repetition takes exponential time in a backtracking engine; it is stopped. */
TEST(a_rule_that_never_ends_is_stopped) {
  cJSON *document = json_load("tests/golden/tokenizer.json");
  gl_error err = {0};
  tokenizer *t;
  int32_t *token;
  size_t n;
  json_set(document, REGEX, cJSON_CreateString("(?:\\p{L}|[a-z])+\\P{L}"));
  CU_ASSERT_FATAL(parse_document(&t, document, &err) == GL_OK);
  const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  CU_ASSERT(tokenizer_encode(t, text, sizeof text - 1, &token, &n, &err) == GL_EINPUT);
  CU_ASSERT_PTR_NULL(token);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot split a text of 60 bytes: match limit"));
  tokenizer_free(t);
  cJSON_Delete(document);
}

/* --- added tokens --- */

static int32_t only_token(const tokenizer *t, const char *text) {
  gl_error err = {0};
  int32_t *token, one;
  size_t n;
  CU_ASSERT_FATAL(tokenizer_encode(t, text, strlen(text), &token, &n, &err) == GL_OK);
  one = n == 1 ? token[0] : -1;
  free(token);
  return one;
}

TEST(added_tokens_are_found_by_content_and_in_normal_form) {
  cJSON *document = json_load("tests/golden/tokenizer.json");
  gl_error err = {0};
  tokenizer *t;
  json_set(document, "/added_tokens/7/content", cJSON_CreateString("<z\xcc\xa3>"));
  CU_ASSERT_FATAL(parse_document(&t, document, &err) == GL_OK);
  CU_ASSERT_STRING_EQUAL(tokenizer_kind(t), "bpe");
  CU_ASSERT(tokenizer_size(t) == 1209);
  CU_ASSERT(tokenizer_special(t, "<|im_end|>") == 1202);
  CU_ASSERT(tokenizer_special(t, "<think>") == 1205);
  CU_ASSERT(tokenizer_special(t, "the") == -1);
  CU_ASSERT(only_token(t, "<|im_end|>") == 1202);
  CU_ASSERT(only_token(t, "<z\xcc\xa3>") == 1207 && only_token(t, "<\xe1\xba\x93>") == 1207);
  const int32_t both[] = {1202, 1205};
  char *text;
  CU_ASSERT_FATAL(tokenizer_decode(t, both, 2, 1, &text, NULL, &err) == GL_OK);
  CU_ASSERT_STRING_EQUAL(text, "<think>"); /* added, but not special */
  free(text);
  tokenizer_free(t);
  cJSON_Delete(document);
}
