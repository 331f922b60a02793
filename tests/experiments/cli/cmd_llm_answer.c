/* gepolab llm answer: the verdict, how both sides were read, and what it refuses. */
#include "tests/support/cli_llm.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("cli: llm answer");

static int is_true(const cJSON *d, const char *key) {
  CU_ASSERT(cJSON_IsBool(member_at(d, key)));
  return is_true_at(d, key);
}

TEST(the_verdict_is_printed_first) {
  static const struct {
    const char *response, *reference, *verdict;
  } cases[] = {
      {"so \\boxed{\\frac{1}{2}}", "0.5", "equal\n"},
      {"so \\boxed{\\frac{1}{3}}", "0.5", "not equal\n"},
      {"a=3, b=2", "a=1, b=2", "not equal\n"},
      {"x=6 or x=-6", "x=\\pm 6", "equal\n"},
      {"x=7000000000", "x=5000000000", "not equal\n"},
      {"the answer is \\boxed{12}, not 13", "\\boxed{12}", "equal\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    cli_result r = CLI("llm", "answer", cases[i].response, "--reference", cases[i].reference);
    CU_ASSERT_EQUAL(r.code, 0);
    CU_ASSERT(strncmp(r.out, cases[i].verdict, strlen(cases[i].verdict)) == 0);
  }
}

TEST(the_text_says_how_both_were_read) {
  cli_result r = CLI("llm", "answer", "so \\boxed{x=\\frac{1}{2}}", "--reference", "3, \\sqrt{2}");
  CU_ASSERT_STRING_EQUAL(r.out, "not equal\n"
                                "reference: 3, \\sqrt{2} (all of the text)\n"
                                "  list                   3, \\sqrt{2}\n"
                                "    number               3\n"
                                "    number               \\sqrt{2}  = 1.4142135623731\n"
                                "response: x=\\frac{1}{2} (boxed)\n"
                                "  equation               x=\\frac{1}{2}\n"
                                "    formula              x\n"
                                "    number               \\frac{1}{2}  = 1/2\n");
}

TEST(json_has_the_verdict_and_the_readings) {
  cli_result r = CLI("llm", "answer", "so \\boxed{x=3, 5}", "--reference", "\\{5,3.0\\}", "--json");
  cJSON *d = json_of(&r);
  CU_ASSERT(is_true(d, "equal"));
  CU_ASSERT_STRING_EQUAL(text_at(d, "response.answer"), "x=3, 5");
  CU_ASSERT_STRING_EQUAL(text_at(d, "response.found"), "boxed");
  CU_ASSERT_STRING_EQUAL(text_at(d, "reference.found"), "all");
  const cJSON *reading = member_at(d, "response.reading");
  CU_ASSERT_STRING_EQUAL(text_at(reading, "kind"), "list");
  const cJSON *parts = member_at(reading, "parts");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(parts), 2);
  const cJSON *last = cJSON_GetArrayItem(parts, 1);
  CU_ASSERT_STRING_EQUAL(text_at(last, "kind"), "number");
  CU_ASSERT_STRING_EQUAL(text_at(last, "name"), "x");
  CU_ASSERT_STRING_EQUAL(text_at(last, "value_text"), "5");
  CU_ASSERT_EQUAL(number_at(d, "response.reading.parts.1.value"), 5);
  CU_ASSERT_EQUAL(number_at(d, "response.reading.parts.0.parts.1.value"), 3);
  r = CLI("llm", "answer", "4", "--reference", "5", "--json");
  d = json_of(&r);
  CU_ASSERT(!is_true(d, "equal"));
}

/* Where the answer is looked for is a recipe's answer_pattern, or the whole text. */
TEST(the_pattern_decides_what_is_an_answer) {
  static const struct {
    const char *pattern, *response;
    int equal, found;
  } cases[] = {
      {"auto", "12", 1, 1},
      {"auto", "it is 12", 0, 1},
      {"auto", "\\boxed{12} 13", 1, 1},
      {"boxed", "12", 0, 0},
      {"boxed", "\\boxed{12}", 1, 1},
      {"last_number", "it is 12", 1, 1},
      {"last_number", "no", 0, 0},
      {"last_number", "12, 13", 0, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    cli_result r = CLI("llm", "answer", cases[i].response, "--reference", "12", "--pattern",
                       cases[i].pattern, "--json");
    cJSON *d = json_of(&r);
    const cJSON *response = member_at(d, "response");
    CU_ASSERT_EQUAL(is_true(d, "equal"), cases[i].equal);
    CU_ASSERT_EQUAL(!cJSON_IsNull(member_at(response, "answer")), cases[i].found);
  }
  cli_result r = CLI("llm", "answer", "none", "--reference", "12", "--pattern", "boxed");
  CU_ASSERT(r.code == 0 && strstr(r.out, "response: no answer found\n") != NULL);
}

TEST(a_response_may_come_from_standard_input) {
  static const char *const line[] = {"llm", "answer", "-", "--reference", "\\frac12", NULL};
  cli_result r = cli_run("a long way\nto \\boxed{0.5}\n", line);
  CU_ASSERT(r.code == 0 && strncmp(r.out, "equal\n", 6) == 0);
  r = CLI("llm", "answer", "--reference", "-5", "--", "-5.0");
  CU_ASSERT(r.code == 0 && strncmp(r.out, "equal\n", 6) == 0);
}

TEST(help_has_an_example_and_wrong_usage_is_refused) {
  cli_result r = CLI("llm", "answer", "--help");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "examples:\n  gepolab llm answer '"));
  REFUSED(2, "--reference", "llm", "answer", "5");
  REFUSED(2, "--reference", "llm", "answer", "5", "--refrence", "5");
  REFUSED(2, "'boxed'", "llm", "answer", "5", "--reference", "5", "--pattern", "boxd");
  REFUSED(2, "", "llm", "answer", "--reference", "5");
  REFUSED(2, "", "llm", "answer", "5", "6", "--reference", "5");
  REFUSED(2, "'answer'", "llm", "anser", "5");
}
