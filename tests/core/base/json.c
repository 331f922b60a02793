/* The strict JSON reader and the tree it builds. */
#include "core/base/json.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("core: json");

static const char *const accepted[] = {
    "null",
    "true",
    "[false,0,-1,2.5,1e-3,\"\"]",
    "{}",
    "[]",
    "[[],[[]],{}]",
    "{\"a\":{\"b\":[1,2,{\"c\":null}]},\"a\":2}",
    "[\"\\\"\\\\/\\b\\f\\n\\r\\t\",\"é€😀\"]",
};

TEST(a_text_becomes_the_tree_it_says) {
  for (size_t i = 0; i < sizeof accepted / sizeof *accepted; ++i) {
    gl_error err = {0};
    cJSON *tree = NULL;
    gl_status status = json_tree_read(&tree, accepted[i], strlen(accepted[i]), 0, "x.json", &err);
    if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(status, GL_OK);
    char *again = cJSON_PrintUnformatted(tree);
    cJSON *expected = cJSON_Parse(accepted[i]);
    char *same = cJSON_PrintUnformatted(expected);
    CU_ASSERT(again != NULL && same != NULL && strcmp(again, same) == 0);
    free(again);
    free(same);
    cJSON_Delete(expected);
    cJSON_Delete(tree);
  }
}

TEST(escapes_and_numbers_are_exact) {
  static const char text[] = " [ \"\\ud83d\\ude00\\u00e9\\/\" , 0.1, 9007199254740993, -0 ] \n";
  cJSON *tree;
  ASSERT_OK(json_tree_read(&tree, text, sizeof text - 1, 5, "x", &err));
  CU_ASSERT_STRING_EQUAL(cJSON_GetArrayItem(tree, 0)->valuestring, "😀é/");
  CU_ASSERT_EQUAL(cJSON_GetArrayItem(tree, 1)->valuedouble, 0.1);
  CU_ASSERT_EQUAL(cJSON_GetArrayItem(tree, 2)->valuedouble, 9007199254740992.0);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(tree), 4);
  cJSON_Delete(tree);
}

static const struct {
  const char *text, *error;
} refused[] = {
    {"", "x.json:1:1: expected a value"},
    {"nul", "x.json:1:1: expected null"},
    {"{\"a\": ", "x.json:1:7: expected a value; the text is cut short"},
    {"{\"a\": 1.", "x.json:1:7: expected a number; the text is cut short"},
    {"[1,]", "x.json:1:4: expected a value"},
    {"[1 2]", "x.json:1:4: expected ',' or ']'"},
    {"{\"a\" 1}", "x.json:1:6: expected ':'"},
    {"{\"a\":1,}", "x.json:1:8: expected a string"},
    {"{a:1}", "x.json:1:2: expected a string"},
    {"[1", "x.json:1:3: expected ',' or ']'; the text is cut short"},
    {"[\n  1,\n  tru]", "x.json:3:3: expected true or false"},
    {"{\"é\": \"ü\",\n \"a\": 01}", "x.json:2:7: expected a number"},
    {"[\"é\", 1.]", "x.json:1:7: expected a number"},
    {"[1e999]", "x.json:1:2: a number too large"},
    {"[NaN]", "x.json:1:2: expected a value"},
    {"[1] // more", "x.json:1:5: there is more after the end"},
    {"[\"\\x41\"]", "x.json:1:5: an escape JSON does not have"},
    {"[\"\\ud800\"]", "x.json:1:9: half of a surrogate pair"},
    {"[\"\t\"]", "x.json:1:3: a control character"},
    {"\"abc", "x.json:1:5: expected the end of a string"},
};

TEST(what_is_not_json_is_refused_with_line_and_column) {
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    gl_error err = {0};
    cJSON *tree = NULL;
    gl_status status =
        json_tree_read(&tree, refused[i].text, strlen(refused[i].text), 0, "x.json", &err);
    int good =
        status == GL_EINPUT && tree == NULL && strstr(err.text, refused[i].error) == err.text;
    if (!good)
      fprintf(stderr, "'%s': expected %s, got %s\n", refused[i].text, refused[i].error, err.text);
    CU_ASSERT(good);
  }
}

TEST(bounds_are_kept) {
  gl_error err = {0};
  cJSON *tree;
  CU_ASSERT_EQUAL(json_tree_read(&tree, "[1,2,3]", 7, 3, "x", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "x:1:6: more than 3 values"));
  char deep[JSON_MAX_DEPTH + 1];
  memset(deep, '[', sizeof deep);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(json_tree_read(&tree, deep, sizeof deep, 0, "x", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "nested deeper than"));
  /* A text need not end in a NUL, and one inside it is no end. */
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(json_tree_read(&tree, "1\0", 2, 0, "x", &err), GL_EINPUT);
  CU_ASSERT_EQUAL(json_tree_read(&tree, "12", 1, 0, "x", &err), GL_OK);
  CU_ASSERT_EQUAL(tree->valueint, 1);
  cJSON_Delete(tree);
}

TEST(a_reader_may_start_at_any_line) {
  gl_error err = {0};
  json_reader r;
  json_begin(&r, "[1, x]", 6, "f.jsonl", &err);
  r.first_line = 41;
  json_enter(&r, '[');
  while (json_element(&r)) (void)json_unsigned(&r);
  CU_ASSERT_EQUAL(json_end(&r), GL_EINPUT);
  CU_ASSERT(strstr(err.text, "f.jsonl:41:5: expected a number") == err.text);
}

TEST(python_s_numbers_are_numbers_where_asked_for) {
  static const char text[] = "[NaN, -Infinity, Infinity, 1]";
  gl_error err = {0};
  json_reader r;
  double value[4] = {0};
  json_begin(&r, text, sizeof text - 1, "x", &err);
  r.python_numbers = 1;
  json_enter(&r, '[');
  for (int i = 0; json_element(&r); ++i) {
    CU_ASSERT(json_peek(&r) == (i == 1 ? '0' : i == 3 ? '1' : '0'));
    value[i] = json_real(&r);
  }
  CU_ASSERT_EQUAL(json_end(&r), GL_OK);
  CU_ASSERT(isnan(value[0]) && value[1] == -INFINITY && value[2] == INFINITY && value[3] == 1);
  json_begin(&r, text, sizeof text - 1, "x", &err);
  json_skip(&r);
  CU_ASSERT_EQUAL(json_end(&r), GL_EINPUT);
}

/* Recipes in canonical form write infinity as 1e999; in other texts it is a number too large. */
TEST(infinity_is_read_back_from_own_texts_alone) {
  static const char text[] = "[1e999,-1e999,1]";
  cJSON *own = json_tree_of(text), *other = NULL;
  gl_error err = {0};
  CU_ASSERT_PTR_NOT_NULL_FATAL(own);
  CU_ASSERT(isinf(cJSON_GetArrayItem(own, 0)->valuedouble));
  CU_ASSERT(cJSON_GetArrayItem(own, 0)->valuedouble > 0);
  CU_ASSERT(isinf(cJSON_GetArrayItem(own, 1)->valuedouble));
  CU_ASSERT(cJSON_GetArrayItem(own, 1)->valuedouble < 0);
  CU_ASSERT_EQUAL(cJSON_GetArrayItem(own, 2)->valuedouble, 1);
  cJSON_Delete(own);
  CU_ASSERT_PTR_NULL(json_tree_of("[1e998]"));
  CU_ASSERT_EQUAL(json_tree_read(&other, text, sizeof text - 1, 0, "other", &err), GL_EINPUT);
}
