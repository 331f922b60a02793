/* How the answer checker says it reads an answer. */
#include "llm/answer/answer.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("llm: answers as they are read");

/* The nodes in one line: "list(equation(formula,number 3),text)". Numbers with their values. */
static void summary(char *out, size_t size, const answer_reading *r) {
  size_t used = 0, depth = 0;
  for (size_t i = 0; i < r->nodes; ++i) {
    const answer_node *node = &r->node[i];
    CU_ASSERT_FATAL(node->begin + node->n <= r->n && used < size);
    for (; depth > node->depth; --depth) used += (size_t)snprintf(out + used, size - used, ")");
    const char *before = i == 0 ? "" : node->depth > depth ? "(" : ",";
    used += (size_t)snprintf(out + used, size - used, "%s%s", before, answer_kind_name(node->kind));
    depth = node->depth;
    if (node->name_n > 0)
      used += (size_t)snprintf(out + used, size - used, " %.*s:", (int)node->name_n,
                               r->text + node->name_begin);
    if (node->has_value) used += (size_t)snprintf(out + used, size - used, " %s", node->written);
  }
  for (; depth > 0; --depth) used += (size_t)snprintf(out + used, size - used, ")");
}

TEST(answers_are_read_as_what_they_are) {
  static const struct {
    const char *text, *reads;
  } cases[] = {
      {"5", "number 5"},
      {"0.5", "number 1/2"},
      {"\\frac{1}{2}\\text{ cm}", "number 1/2"},
      {"1,234", "number 1234"},
      {"50\\%", "number 1/2"},
      {"\\sqrt{2}", "number 1.4142135623731"},
      {"\\sin 30^\\circ", "number 0.5"},
      {"10^{9^9}", "number"},
      {"10^{-400}", "number"},
      {"3^{10000}+1", "number"},
      {"\\frac{1}{0}", "number"},
      {"x^2+1", "formula"},
      {"\\sin x\\cos x", "formula"},
      {"x=5", "equation(formula,number 5)"},
      {"x=2+3=5", "equation(formula,number 5,number 5)"},
      {"x>3", "relation(number 3,formula)"},
      {"J: 4 hr", "labelled value(formula,number 4)"},
      {"J: 4 hr, S: 14 hr",
       "list(labelled value(formula,number 4),labelled value(formula,number 14))"},
      {"x=3, 5", "list(equation(formula,number 3),number x: 5)"},
      {"(x,y)=(1,2)", "tuple(number x: 1,number y: 2)"},
      {"x, y = 1, 2", "list(number x: 1,number y: 2)"},
      {"\\pm 2", "list(number 2,number -2)"},
      {"1 \\text{ or } 2", "list(number 1,number 2)"},
      {"(11,7)or(7,11)", "list(tuple(number 11,number 7),tuple(number 7,number 11))"},
      {"\\langle 1,2\\rangle", "vector(number 1,number 2)"},
      {"\\{1,2\\}", "set(number 1,number 2)"},
      {"[1,\\infty)", "interval(number 1,text)"},
      {"[0,1]\\cup[2,3]", "union(interval(number 0,number 1),interval(number 2,number 3))"},
      {"\\begin{pmatrix}1&2\\\\3&x\\\\\\end{pmatrix}",
       "matrix(list(number 1,number 2),list(number 3,formula))"},
      {"\\left((5)\\right)", "number 5"},
      {"((x=5))", "equation(formula,number 5)"},
      {"(B) 12", "choice"},
      {"\\text{Monday}", "text"},
      {"3\\pmod{5}", "text"},
      {"\\{\\}", "text"},
      {"", "text"},
      {"(((((((((((((((((((((((((((1", "text"},
  };
  static answer_reading r;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char got[512] = "";
    answer_read(&r, cases[i].text, strlen(cases[i].text));
    summary(got, sizeof got, &r);
    if (strcmp(got, cases[i].reads) != 0)
      fprintf(stderr, "'%s' reads %s, not %s\n", cases[i].text, got, cases[i].reads);
    CU_ASSERT_STRING_EQUAL(got, cases[i].reads);
    CU_ASSERT(!r.is_cut_off);
  }
}

TEST(the_text_is_the_cleaned_one_and_values_are_numbers) {
  static answer_reading r;
  const char *text = "$\\dfrac{3}{4}\\text{ cm}$";
  answer_read(&r, text, strlen(text));
  CU_ASSERT_STRING_EQUAL(r.text, "\\frac {3}{4}");
  CU_ASSERT(r.nodes == 1 && r.node[0].value == 0.75 && r.node[0].n == r.n);
}

TEST(what_is_too_long_is_cut_off_or_a_text) {
  static answer_reading r;
  char text[ANSWER_MAX + 8] = "";
  for (int i = 0; i < 31; ++i) strcat(text, "(1,2,3,4),");
  strcat(text, "5");
  answer_read(&r, text, strlen(text));
  CU_ASSERT(r.is_cut_off && r.nodes == ANSWER_NODES);
  memset(text, '1', ANSWER_MAX + 1);
  answer_read(&r, text, ANSWER_MAX + 1);
  CU_ASSERT(r.nodes == 1 && r.node[0].kind == ANSWER_TEXT && r.n == 0);
}
