/* The JSON Lines reader: what it takes, and that everything else is refused at its place. */
#include "llm/task/internal.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: data sets");

static gl_status parse(dataset *d, const char *text, size_t size, gl_error *err) {
  return dataset_parse(d, text, size, "f.jsonl", "prompt", "answer", err);
}

TEST(rows_are_read_in_order_with_their_lines) {
  static const char text[] = "\xef\xbb\xbf{\"prompt\": \"1+1\", \"answer\": 2}\n"
                             "\r\n   \n"
                             "{\"x\":[{\"y\":[]},{},1.5e-3,null,true],\"answer\":\"b\",\"prompt\":"
                             "\"a\\n\\u00e9\\ud83d\\ude00\\\"\"}\r\n"
                             "{\"answer\":-0.5e+10,\"prompt\":\"\xc3\xa9\"}";
  dataset d;
  ASSERT_OK(parse(&d, text, sizeof text - 1, &err));
  CU_ASSERT_EQUAL_FATAL(d.n, 3);
  CU_ASSERT_STRING_EQUAL(d.row[0].prompt, "1+1");
  CU_ASSERT_STRING_EQUAL(d.row[0].answer, "2");
  CU_ASSERT_EQUAL(d.row[0].line, 1);
  CU_ASSERT_STRING_EQUAL(d.row[1].prompt, "a\n\xc3\xa9\xf0\x9f\x98\x80\"");
  CU_ASSERT_STRING_EQUAL(d.row[1].answer, "b");
  CU_ASSERT_EQUAL(d.row[1].line, 4);
  CU_ASSERT_STRING_EQUAL(d.row[2].answer, "-0.5e+10");
  CU_ASSERT_STRING_EQUAL(d.row[2].prompt, "\xc3\xa9");
  dataset_fini(&d);
}

#define GOOD "{\"prompt\":\"p\",\"answer\":\"a\"}"

static const struct {
  const char *text, *place, *says;
} wrong[] = {
    {"", "f.jsonl:1:1: ", "empty"},
    {"\n \n", "f.jsonl:1:1: ", "empty"},
    {"[1]", "f.jsonl:1:1: ", "this is a list"},
    {"  7", "f.jsonl:1:3: ", "this is a number"},
    {"hello", "f.jsonl:1:1: ", "no JSON"},
    {GOOD "\n{}", "f.jsonl:2:1: ", "'prompt' is missing; this object has: nothing"},
    {"{\"promt\":\"p\",\"answer\":\"a\"}", "f.jsonl:1:1: ", "did you mean 'promt'"},
    {"{\"prompt\":\"p\",\"solution\":\"a\"}",
     "f.jsonl:1:1: ", "'answer' is missing; this object has: prompt, solution"},
    {"{\"prompt\":3,\"answer\":\"a\"}", "f.jsonl:1:11: ", "'prompt' is a number; it must be text"},
    {"{\"prompt\":\"p\",\"answer\":[1]}", "f.jsonl:1:24: ", "'answer' is a list"},
    {"{\"prompt\":\"p\",\"answer\":null}", "f.jsonl:1:24: ", "'answer' is null"},
    {"{\"prompt\":{\"a\":1},\"answer\":1}", "f.jsonl:1:11: ", "'prompt' is an object"},
    {"{\"prompt\":\"p\",\"answer\":true}", "f.jsonl:1:24: ", "'answer' is true or false"},
    {"{\"prompt\":\" \\n\",\"answer\":1}", "f.jsonl:1:11: ", "'prompt' is empty"},
    {"{\"prompt\":\"p\",\"answer\":\"\"}", "f.jsonl:1:24: ", "'answer' is empty"},
    {"{\"prompt\":\"p\",\"prompt\":\"q\",\"answer\":1}", "f.jsonl:1:15: ", "given twice"},
    {GOOD " x", "f.jsonl:1:29: ", "more after the end"},
    {GOOD GOOD, "f.jsonl:1:28: ", "more after the end"},
    {"{\"prompt\":\"p\"", "f.jsonl:1:14: ", "expected ',' or '}'; the text is cut short"},
    {"{\"prompt\":\"p\",", "f.jsonl:1:15: ", "expected a string; the text is cut short"},
    {"{\"prompt\":\"p", "f.jsonl:1:13: ", "the end of a string; the text is cut short"},
    {"{\"prompt\"", "f.jsonl:1:10: ", "expected ':'; the text is cut short"},
    {"{\"prompt\":", "f.jsonl:1:11: ", "'prompt' is no JSON"},
    {"{prompt:\"p\"}", "f.jsonl:1:2: ", "expected a string"},
    {"{\"prompt\":'p'}", "f.jsonl:1:11: ", "no JSON"},
    {"{\"a\":tru}", "f.jsonl:1:6: ", "expected true or false"},
    {"{\"a\":01}", "f.jsonl:1:6: ", "expected a number"},
    {"{\"a\":1.}", "f.jsonl:1:6: ", "expected a number"},
    {"{\"a\":-}", "f.jsonl:1:6: ", "expected a number"},
    {"{\"a\":1e}", "f.jsonl:1:6: ", "expected a number"},
    {"{\"prompt\":\"p\",\"answer\":01}", "f.jsonl:1:24: ", "expected a number"},
    {"{\"a\":[1,]}", "f.jsonl:1:9: ", "expected a value"},
    {"{\"a\":[,1]}", "f.jsonl:1:7: ", "expected a value"},
    {"{\"a\":[1 2]}", "f.jsonl:1:9: ", "expected ',' or ']'"},
    {"{\"a\":[1}}", "f.jsonl:1:8: ", "expected ',' or ']'"},
    {"{\"a\":{\"b\"}}", "f.jsonl:1:10: ", "expected ':'"},
    {"{\"a\":[[[", "f.jsonl:1:9: ", "expected a value"},
    {"{\"a\":\"\\x\"}", "f.jsonl:1:9: ", "an escape JSON does not have"},
    {"{\"a\":\"\\u12g4\"}", "f.jsonl:1:11: ", "four hexadecimal"},
    {"{\"a\":\"\\u0000\"}", "f.jsonl:1:13: ", "no character"},
    {"{\"a\":\"\\ud800\"}", "f.jsonl:1:13: ", "surrogate pair"},
    {"{\"a\":\"\\udc00\"}", "f.jsonl:1:13: ", "surrogate pair"},
    {"{\"a\":\"\t\"}", "f.jsonl:1:7: ", "control character"},
    {"{\"a\":\"\xff\"}", "f.jsonl:1:7: ", "not UTF-8"},
    {GOOD "\n{\"prompt\":\"\xc3", "f.jsonl:2:12: ", "not UTF-8"},
    {"{\"a\":\"\xed\xa0\x80\"}", "f.jsonl:1:7: ", "not UTF-8"},
    {"\xff", "f.jsonl:1:1: ", "no JSON"},
    {"{\"\xc3\xa9\xc3\xa9\":x}", "f.jsonl:1:7: ", "expected a value"}, /* columns are characters */
};

static void check_refused(const char *text, size_t size, const char *place, const char *says) {
  dataset d;
  gl_error err = {0};
  gl_status status = parse(&d, text, size, &err);
  int ok = status == GL_EINPUT && strncmp(err.text, place, strlen(place)) == 0 &&
           strstr(err.text, says) != NULL && d.n == 0 && d.row == NULL;
  if (!ok) fprintf(stderr, "%.80s: got %d '%s'\n", text, status, err.text);
  CU_ASSERT(ok);
}

TEST(every_wrong_line_is_refused_at_its_place) {
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
    check_refused(wrong[i].text, strlen(wrong[i].text), wrong[i].place, wrong[i].says);
  check_refused(GOOD "\n{\"a\0b\":1}", sizeof GOOD + 9, "f.jsonl:2:4: ", "control character");
}

/* `begin`, then `fill` up to size bytes. */
static void refuse_filled(const char *begin, char fill, size_t size, const char *place,
                          const char *says) {
  char *text = malloc(size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  memset(text, fill, size);
  memcpy(text, begin, strlen(begin));
  check_refused(text, size, place, says);
  free(text);
}

TEST(what_is_too_long_or_too_deep_is_refused) {
  refuse_filled(GOOD "\n\"", 'x', DATASET_MAX_LINE + 100, "f.jsonl:2:1: ", "longer than 4 MiB");
  refuse_filled("{\"a\":", '[', 100000, "f.jsonl:1:69: ", "deeper than 64");
}

TEST(a_line_of_almost_the_greatest_length_is_read) {
  size_t size = DATASET_MAX_LINE;
  char *text = malloc(size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  memset(text, 'x', size);
  memcpy(text, "{\"answer\":1,\"prompt\":\"", 22);
  memcpy(text + size - 2, "\"}", 2);
  dataset d;
  ASSERT_OK(parse(&d, text, size, &err));
  CU_ASSERT_EQUAL(d.n, 1);
  CU_ASSERT_EQUAL(strlen(d.row[0].prompt), size - 24);
  dataset_fini(&d);
  free(text);
}

TEST(files_that_cannot_be_read_are_refused) {
  dataset d;
  gl_error err = {0};
  CU_ASSERT_EQUAL(dataset_read(&d, "tests/nowhere.jsonl", "prompt", "answer", &err), GL_EINPUT);
  CU_ASSERT(strstr(err.text, "tests/nowhere.jsonl: No such file") != NULL);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(dataset_read(&d, "tests", "prompt", "answer", &err), GL_EIO);
  CU_ASSERT(strstr(err.text, "directory") != NULL);
  CU_ASSERT_PTR_NULL(d.row);
}
