/* The answer checker: against math_verify on a table of pairs, where it finds answers, and hostile
 * texts. */
#include "llm/answer/answer.h"
#include "llm/answer/arithmetic.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: answers");

static int equal(const char *reference, const char *response) {
  return answer_equal(reference, strlen(reference), response, strlen(response));
}

/* Cuts the next field off *line at a tab. */
static char *field(char **line) {
  char *begin = *line, *tab = strchr(begin, '\t');
  CU_ASSERT_PTR_NOT_NULL_FATAL(tab);
  *tab = '\0';
  *line = tab + 1;
  return begin;
}

TEST(pairs_are_decided_as_math_verify_does_or_as_the_table_says_why_not) {
  FILE *from = fopen("tests/golden/answer.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  char *line = NULL;
  size_t room = 0, pairs = 0, others = 0, wrong = 0;
  while (getline(&line, &room, from) > 0) {
    if (*line == '#') continue;
    line[strcspn(line, "\n")] = '\0';
    char *rest = line, *says = field(&rest), *ours = field(&rest), *reference = field(&rest);
    int wanted = *ours == '=' ? *says == '1' : *ours == '1', got = equal(reference, rest);
    if (got != wanted) fprintf(stderr, "'%s' and '%s': %d\n", reference, rest, got);
    ++pairs;
    others += *ours != '=';
    wrong += got != wanted;
  }
  CU_ASSERT_EQUAL(wrong, 0);
  CU_ASSERT(pairs > 2000 && others * 40 < pairs);
  free(line);
  fclose(from);
}

/* Decisions that are llm/answer/answer.h's own, where other tools differ among themselves. */
static const struct {
  const char *reference, *response;
  int equal;
} own[] = {
    {"1,234", "1, 234", 1}, /* as a list it is one, too */
    {"1,234", "1,235", 0},
    {"12,34", "1234", 0}, /* no thousands */
    {"(1,234)", "1234", 0},
    {"0.333", "1/3", 0}, /* fewer than six places */
    {"1/3", "0.333333", 1},
    {"1/3", "0.333334", 0},
    {"2/3", "0.666667", 1},
    {"2/3", "0.666666", 0},
    {"0.000001", "0.0000014", 0}, /* rounding needs digits that count, five of them */
    {"\\frac{1}{700000}", "0.0000014", 0},
    {"\\frac{1}{12}", "0.083333", 1},
    {"\\frac{1}{120}", "0.008333", 0},
    {"0.333333", "0.3333333", 0}, /* two decimals are compared as they stand */
    {"1.414214", "1.4142136", 0},
    {"\\sqrt{2}", "1.414214", 1},
    {"\\pi", "3.141593", 1},
    {"\\pi", "3.14", 0},
    {"9007199254740993", "9007199254740992", 0}, /* equal as doubles */
    {"9223372036854775807", "9223372036854775806", 0},
    {"99999999999999999999", "99999999999999999998", 0}, /* beyond 64 bits */
    {"99999999999999999999", "99999999999999999999.0", 1},
    {"-99999999999999999999", "99999999999999999999", 0},
    {"\\text{on}", "no", 0}, /* letters are words, not products */
    {"on", "no", 0},
    {"\\text{Paris}", "paris", 1},
    {"\\text{even}", "\\text{odd}", 0},
    {"x", "X", 1},
    {"5", "5 million", 0},
    {"5", "5\\text{ million}", 0},
    {"60", "60 km/h", 1},
    {"2m", "2", 0}, /* may be a variable */
    {"x=5", "y=5", 0},
    {"5", "2x=5", 1}, /* the response's right side counts */
    {"2x=5", "5", 0}, /* the reference's only behind a name */
    {"x = y = 5", "5", 1},
    {"x = 2 + 3 = 5", "x = 5", 1},
    {"x = 2 + 3 = 5", "y = 5", 0},
    {"|AB| = 5", "5", 1},
    {"x = 5", "a == b", 0},
    {"x = 5", "5 >= 5", 0},
    {"3\\pmod{5}", "3 \\pmod 5", 1},
    {"3\\pmod{5}", "3+od{5}", 0},
    {"(A)", "(B) 12", 0},
    {"A", "Answer", 0},
    {"E", "E. coli", 1},
    {"\\{1,2\\}", "(1,2)", 0},
    {"(1,2)", "[1,2]", 0},
    {"1,2", "[1,2]", 0},
    {"(1,2)", "1,2", 1},
    {"(1,2)", "2,1", 0},
    {"\\{1,1,2\\}", "\\{1,2,2\\}", 0},
    {"1,2", "1,2,2", 0},
    {"\\{1,2\\}", "{1,2}", 1},
    {"((1,2),(3,4))", "(1,2),(3,4)", 1},
    {"[0,1)\\cup(2,3]", "[0,1]\\cup(2,3]", 0},
    {"1 < x < 2", "(1,2)", 0}, /* an inequality is no interval */
    {"x > 3", "3 < x", 1},
    {"x >= 3", "3 \\le x", 1},
    {"x >= 3", "x > 3", 0},
    {"x > 3", "x < 3", 0},
    {"x > 3", "2x > 6", 0},
    {"x \\ne 0", "0 != x", 1},
    {"1 < x < 2", "2 > x > 1", 0},
    {"120", "5!=120", 1}, /* a factorial */
    {"32349", "32, 349", 0},
    {"32349", "32,\\! 349", 1},
    {"\\sqrt{x^2}", "|x|", 1},
    {"\\sqrt{x^2}", "x", 0},
    {"\\sqrt{ab}", "\\sqrt{a}\\sqrt{b}", 1}, /* of positive numbers */
    {"i^2", "-1", 0},
    {"101_2", "5", 0},
    {"0^0", "1", 1},
    {"1e400", "1e401", 0},
    {"1e400", "1e400", 1},
    {"\\frac{1}{0}", "\\frac{2}{0}", 0},
    {"50", "50\\%", 1},
    {"0.5", "50\\%", 1},
    {"5000\\%", "0.5", 0},
    {"2^{10}", "2^10", 1},
    {"2^{1}0", "1024", 0},
    {"x^{23}", "x^23", 1},
    {"1\\frac{1}{2}", "0.5", 0}, /* mixed, not a product */
    {"1\\frac{3}{2}", "1.5", 0}, /* no proper fraction: who knows what is meant */
    {"1\\frac{3}{2}", "2.5", 0},
    {"5\\frac{\\sqrt{3}}{2}", "2.5\\sqrt{3}", 1},
    {"5", "", 0},
    {"", "5", 0},
    {"5", "\\text{}", 0},
    {"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1&2\\end{pmatrix}", 0},
    {"\\frac{x^2-1}{x-1}", "x+1", 1},
    {"a^2-b^2", "(a-b)(a+b)", 1},
    {"a^2-b^2", "(a-b)^2", 0},
    {"y=x^2", "x^2-y=0", 1},
    {"y=x^2", "2y=2x^2", 1},
    {"y=x^2", "y=x^2+1", 0},
    {"x=1", "x^2=1", 0},
    {"\\sin^2\\theta+\\cos^2\\theta", "1", 1},
};

TEST(own_decisions_are_as_the_header_says) {
  for (size_t i = 0; i < sizeof own / sizeof *own; ++i) {
    int got = equal(own[i].reference, own[i].response);
    if (got != own[i].equal)
      fprintf(stderr, "'%s' and '%s': %d\n", own[i].reference, own[i].response, got);
    CU_ASSERT(got == own[i].equal);
  }
}

/* --- finding --- */

static const struct {
  const char *text, *boxed, *number; /* NULL: none; what each pattern finds */
} places[] = {
    {"so \\boxed{5}.", "5", "5"},
    {"\\boxed{1} then \\boxed{2}", "2", "2"},
    {"\\boxed{\\frac{1}{2}} is it", "\\frac{1}{2}", "\\frac{1}{2}"},
    {"\\boxed{1} and \\boxed{2", "1", "1"}, /* the last that is closed */
    {"\\boxed{a\\}b}", "a\\}b", "a\\}b"},
    {"\\boxed{\\{1\\}}}", "\\{1\\}", "\\{1\\}"},
    {"\\fbox{ 7 }", "7", "7"},
    {"\\boxed {8}", "8", "8"},
    {"$\\boxed 9$ ok", "9", "9"},
    {"\\boxed{}", "", ""},
    {"\\boxed", NULL, NULL},
    {"\\boxedfoo 3", NULL, "3"},
    {"\\boxed{\\boxed{4}}", "4", "4"},
    {"it is 12, or 13.", NULL, "13"},
    {"5-3", NULL, "3"},
    {"is -3", NULL, "-3"},
    {"x=-3.50", NULL, "-3.50"},
    {"costs $1,234.5 now", NULL, "1,234.5"},
    {"1,2,3", NULL, "3"},
    {"in 12,3456", NULL, "3456"},
    {"about 3/4 of it", NULL, "3/4"},
    {"50% is half", NULL, "50%"},
    {"50\\% is half", NULL, "50\\%"},
    {"1.5e-3 m", NULL, "1.5e-3"},
    {".5", NULL, ".5"},
    {"none", NULL, NULL},
    {"", NULL, NULL},
};

/* The limits that llm/answer/answer.h names: pairs a mathematician would call equal, each text of
 * which equals itself. What learns one of them changes the header, too. */
TEST(what_the_header_does_not_know_is_not_equal) {
  static const char *const pairs[][2] = {
      {"x>3", "2x>6"},
      {"x>3", "(3,\\infty)"},
      {"-1\\le x\\le 1", "[-1,1]"},
      {"1<x<3", "3>x>1"},
      {"x<3", "x\\le 3"},
      {"1:2", "2:4"},
      {"1:2", "\\frac{1}{2}"},
      {"1:2", "1 to 2"},
      {"2:3:4", "4:6:8"},
      {"3:00 PM", "3:00"},
      {"\\frac{a}{b}=2", "a=2b"},
      {"x^2=1", "x=1, x=-1"},
      {"\\{x | x>3\\}", "\\{x : x > 3\\}"},
      {"\\mathbb{R}", "(-\\infty,\\infty)"},
      {"\\emptyset", "\\{\\}"},
      {"[1,2]\\cap[3,4]", "[3,4]\\cap[1,2]"},
      {"\\{1,1,2\\}", "\\{1,2\\}"},
      {"2n", "2k"},
      {"x^2+C", "x^2"},
      {"1010_2", "10"},
      {"i^2", "-1"},
      {"5 \\bmod 3", "2"},
      {"\\lfloor 2.5\\rfloor", "2"},
      {"C(5,2)", "10"},
      {"\\sum_{k=1}^3 k", "6"},
      {"\\int_0^1 x dx", "1/2"},
      {"1 000", "1000"},
      {"1000,5", "1000.5"},
      {"0.\\dot{3}", "1/3"},
      {"2 x 3", "6"},
      {"\\log 100", "2"},
      {"\\infty", "inf"},
      {"7", "seven"},
      {"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "(1,2)"},
      {"\\langle 1,2\\rangle", "(1,2)"},
      {"\\frac{\\pi}{3}", "60^\\circ"},
      {"5 km", "5000 m"},
      {"\\text{no solution}", "\\emptyset"},
      {"\\text{yes}", "true"},
      {"\\pm 1 \\pm 2", "3,1,-1,-3"},
  };
  size_t wrong = 0;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    const char *a = pairs[i][0], *b = pairs[i][1];
    if (!equal(a, b) && !equal(b, a) && equal(a, a) && equal(b, b)) continue;
    fprintf(stderr, "'%s' and '%s'\n", a, b);
    ++wrong;
  }
  CU_ASSERT_EQUAL(wrong, 0);
  /* Lists of 32 and 33 parts, one turned round. */
  for (int n = 32; n <= 33; ++n) {
    char up[256] = "", down[256] = "";
    for (int i = 0; i < n; ++i) {
      snprintf(up + strlen(up), sizeof up - strlen(up), "%s%d", i > 0 ? ", " : "", i);
      snprintf(down + strlen(down), sizeof down - strlen(down), "%s%d", i > 0 ? ", " : "",
               n - 1 - i);
    }
    CU_ASSERT_EQUAL(equal(up, down), n == 32);
  }
}

static void check_found(const char *text, answer_pattern pattern, const char *wanted) {
  const char *found = NULL;
  size_t n = 0;
  int is = answer_find(text, strlen(text), pattern, &found, &n);
  int ok = wanted == NULL ? !is : is && n == strlen(wanted) && memcmp(found, wanted, n) == 0;
  if (!ok) fprintf(stderr, "'%s': found '%.*s'\n", text, is ? (int)n : 0, is ? found : "");
  CU_ASSERT(ok);
}

TEST(the_last_closed_box_is_the_answer_and_else_the_last_number) {
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    check_found(places[i].text, ANSWER_BOXED, places[i].boxed);
    check_found(places[i].text, ANSWER_LAST_NUMBER, places[i].number);
  }
}

/* --- hostile --- */

/* `piece` repeated up to n bytes, then `end`; the caller frees. */
static char *repeated(const char *piece, size_t n, const char *end) {
  size_t m = strlen(piece), size = n / m * m;
  char *text = malloc(size + strlen(end) + 1);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  for (size_t i = 0; i < size; i += m) memcpy(text + i, piece, m);
  strcpy(text + size, end);
  return text;
}

TEST(hostile_texts_are_no_answers) {
  static const char *const pieces[] = {"(",           "((1+",
                                       "{",           "\\frac{",
                                       "\\sqrt{",     "-",
                                       "1,",          "1/",
                                       "\\left(",     "\\text{",
                                       "9^",          "9!",
                                       "x=",          "|",
                                       "\\boxed{",    "1\\frac{",
                                       "\\pm",        "\\begin{array}",
                                       "\\cup",       "\\sin",
                                       "(1,(",        "\\binom{",
                                       "1\\frac{1}{", "\\{",
                                       "\xff",        "\xe2\x88\x92",
                                       "0.",          "(x=(x,x)="};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; ++i) {
    char *text = repeated(pieces[i], 1000, "1"), *longer = repeated(pieces[i], 100000, "1");
    const char *found;
    size_t n;
    CU_ASSERT(equal(text, text) && equal(longer, longer));
    CU_ASSERT(!equal("17", text) && !equal(text, "17"));
    CU_ASSERT(!equal("17", longer) && !equal(longer, "17"));
    answer_find(longer, strlen(longer), ANSWER_BOXED, &found, &n);
    answer_find(longer, strlen(longer), ANSWER_LAST_NUMBER, &found, &n);
    free(text);
    free(longer);
  }
  CU_ASSERT(!equal("1", "9^9^9^9^9"));
  CU_ASSERT(!equal("1", "(10^{300})(10^{300})"));
  CU_ASSERT(!equal("0", "1/(10^{300}\\cdot 10^{300})")); /* no detour through infinity */
  CU_ASSERT(!equal("1", "1000000!"));
  CU_ASSERT(answer_equal("a\0b", 3, "a\0b", 3) && !answer_equal("a\0b", 3, "a\0c", 3));
}

/* --- fractions --- */

TEST(fractions_are_exact_or_refused) {
  rational q, max = {INT64_MAX, 1}, small = {1, INT64_MAX}, third = {1, 3}, half = {-1, 2};
  CU_ASSERT(rational_make(&q, 6, -4) && q.num == -3 && q.den == 2);
  CU_ASSERT(!rational_make(&q, 1, 0) && !rational_make(&q, INT64_MIN, 1));
  CU_ASSERT(rational_add(&q, third, half) && q.num == -1 && q.den == 6);
  CU_ASSERT(rational_multiply(&q, max, small) && q.num == 1 && q.den == 1);
  CU_ASSERT(rational_divide(&q, half, third) && q.num == -3 && q.den == 2);
  CU_ASSERT(!rational_add(&q, max, (rational){1, 1}));
  CU_ASSERT(!rational_subtract(&q, (rational){-INT64_MAX, 1}, (rational){1, 1}));
  CU_ASSERT(!rational_multiply(&q, max, (rational){2, 1}));
  CU_ASSERT(!rational_divide(&q, third, (rational){0, 1}));
  CU_ASSERT(rational_power(&q, half, -3) && q.num == -8 && q.den == 1);
  CU_ASSERT(rational_power(&q, (rational){2, 1}, 62) && q.num == INT64_C(1) << 62);
  CU_ASSERT(!rational_power(&q, (rational){2, 1}, 63));
  CU_ASSERT(!rational_power(&q, (rational){0, 1}, 0) && !rational_power(&q, (rational){0, 1}, -1));
  CU_ASSERT(rational_power(&q, (rational){-1, 1}, INT64_MAX) && q.num == -1);
}
