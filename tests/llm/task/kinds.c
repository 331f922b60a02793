/* Each kind of task against a checker of its own, written another way; distributions of the draws;
 * graded rewards; expressions. */
#include "llm/task/internal.h"
#include "tests/support/llm_task.h"

#include <gsl/gsl_cdf.h>

SUITE("llm: task kinds");

enum { N = 500 };

/* --- answers, worked out again --- */

/* The sum of the prompt's operands, digit by digit from the back, as the section writes it. */
static void check_sum(const char *prompt, const char *answer, int reverse, int pad) {
  long sum = 0;
  char plain[32], turned[32];
  for (const char *at = prompt; *at != '=';) {
    char *end;
    sum += strtol(at, &end, 10);
    at = *end == '+' ? end + 1 : end;
  }
  snprintf(plain, sizeof plain, pad ? "%05ld" : "%ld", sum);
  size_t n = strlen(plain);
  for (size_t i = 0; i <= n; ++i) turned[i] = i == n ? '\0' : plain[n - 1 - i];
  if (strcmp(answer, reverse ? turned : plain) != 0) fprintf(stderr, "%s %s\n", prompt, answer);
  CU_ASSERT_STRING_EQUAL(answer, reverse ? turned : plain);
}

TEST(sums_are_right_plain_reversed_and_padded) {
  static const char *const sections[] = {
      "task: {kind: addition, digits: 4, terms: 3}",
      "task: {kind: addition, digits: 4, terms: 3, reverse: true}",
      "task: {kind: addition, digits: 4, terms: 3, pad: true}",
      "task: {kind: addition, digits: 4, terms: 3, pad: true, reverse: true}"};
  for (size_t k = 0; k < 4; ++k) {
    task_fixture f = task_open(sections[k], 3);
    for (uint64_t i = 0; i < N; ++i) {
      problem p = task_get(f.t, TASK_TRAIN, i);
      check_sum(p.prompt, p.answer, k % 2 == 1, k >= 2);
    }
  }
}

/* 64-digit operands: the sum less one operand is the other, by hand from the back. */
TEST(sums_longer_than_any_integer_are_right) {
  task_fixture f = task_open("task: {kind: addition, digits: 64, min_digits: 64}", 3);
  for (uint64_t i = 0; i < 100; ++i) {
    problem p = task_get(f.t, TASK_TRAIN, i);
    const char *b = strchr(p.prompt, '+') + 1;
    size_t n = strlen(p.answer);
    CU_ASSERT_FATAL(b - p.prompt == 65 && strlen(b) == 65 && (n == 64 || n == 65));
    int carry = 0;
    for (size_t k = 0; k < n; ++k) {
      int digit = (k < 64 ? p.prompt[63 - k] - '0' + b[63 - k] - '0' : 0) + carry;
      CU_ASSERT(p.answer[n - 1 - k] == '0' + digit % 10);
      carry = digit / 10;
    }
    CU_ASSERT(carry == 0 && p.answer[0] != '0');
  }
}

/* Evaluated by dropping the modulus until the end: eight factors below 100 fit a double exactly. */
TEST(remainders_are_right) {
  task_fixture f = task_open("task: {kind: modular, modulus: 17, terms: 5}", 3);
  for (uint64_t i = 0; i < N; ++i) {
    problem p = task_get(f.t, TASK_TRAIN, i);
    double sum = 0, product = 0;
    char operation = '+';
    const char *at = p.prompt + 1;
    CU_ASSERT_FATAL(*p.prompt == '(');
    for (int sign = 1; operation != ')';) {
      char *end;
      double x = strtod(at, &end);
      CU_ASSERT(x >= 0 && x < 17);
      if (operation == '*')
        product *= x;
      else {
        sum += product;
        sign = operation == '-' ? -1 : 1;
        product = sign * x;
      }
      operation = *end;
      at = end + 1;
    }
    sum += product;
    CU_ASSERT_STRING_EQUAL(at, "%17=");
    CU_ASSERT_EQUAL(atoi(p.answer), (int)(sum - 17 * floor(sum / 17)));
  }
}

/* Counts of the values are the same, and none is greater than the next. */
static void check_sorted(const char *prompt, const char *answer) {
  int count[40] = {0}, last = 0;
  for (const char *at = prompt; *at != '='; at += *at == ',') ++count[strtol(at, (char **)&at, 10)];
  for (const char *at = answer; *at != '\0'; at += *at == ',') {
    long value = strtol(at, (char **)&at, 10);
    CU_ASSERT(value >= last);
    last = (int)value;
    --count[value];
  }
  for (size_t v = 0; v < 40; ++v) CU_ASSERT(count[v] == 0);
}

TEST(rows_are_sorted) {
  task_fixture f = task_open("task: {kind: sorting, values: 40, length: 9, min_length: 2}", 3),
               g = task_open("task: {kind: sorting, values: 10, length: 30}", 3);
  for (uint64_t i = 0; i < N; ++i) {
    problem p = task_get(f.t, TASK_TRAIN, i), q = task_get(g.t, TASK_TRAIN, i);
    check_sorted(p.prompt, p.answer);
    CU_ASSERT(strlen(q.prompt) == 31 && strlen(q.answer) == 30);
    for (char c = '0'; c <= '9'; ++c) {
      int difference = 0;
      for (size_t k = 0; k < 30; ++k) difference += (q.prompt[k] == c) - (q.answer[k] == c);
      CU_ASSERT_EQUAL(difference, 0);
    }
    for (size_t k = 1; k < 30; ++k) CU_ASSERT(q.answer[k - 1] <= q.answer[k]);
  }
}

TEST(parities_are_right) {
  task_fixture f = task_open("task: {kind: parity, length: 12, min_length: 5}", 3),
               g = task_open("task: {kind: parity, length: 12, min_length: 5, chain: true}", 3);
  for (uint64_t i = 0; i < N; ++i) {
    problem p = task_get(f.t, TASK_TRAIN, i), q = task_get(g.t, TASK_TRAIN, i);
    size_t ones = 0, n = strlen(q.prompt) - 1;
    for (const char *at = p.prompt; *at != '='; ++at) ones += *at == '1';
    CU_ASSERT(p.answer[0] == (ones % 2 == 1 ? '1' : '0') && p.answer[1] == '\0');
    CU_ASSERT(strlen(q.answer) == n && n >= 5 && n <= 12);
    for (size_t k = 0; k < n; ++k) {
      ones = 0;
      for (size_t j = 0; j <= k; ++j) ones += q.prompt[j] == '1';
      CU_ASSERT(q.answer[k] == (ones % 2 == 1 ? '1' : '0'));
    }
  }
}

/* --- brackets --- */

/* Whether a text balances, by taking neighbouring pairs away until nothing changes. */
static int balances(const char *prompt, const char *response) {
  char text[256];
  snprintf(text, sizeof text, "%s%s", prompt, response);
  static const char *const pairs[] = {"()", "[]", "{}", "<>"};
  for (int again = 1; again;) {
    again = 0;
    for (size_t k = 0; k < 4; ++k)
      for (char *at; (at = strstr(text, pairs[k])) != NULL; again = 1)
        memmove(at, at + 2, strlen(at + 2) + 1);
  }
  return *text == '\0';
}

/* All responses of up to four characters of two kinds are scored as the other checker does. */
TEST(every_completion_that_balances_within_the_bound_is_right) {
  static const char letters[] = "()[]";
  task_fixture f = task_open("task: {kind: brackets, length: 6, depth: 3, longest: 4}", 3);
  size_t several = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    problem p = task_get(f.t, TASK_TRAIN, i);
    size_t right = 0;
    for (unsigned code = 1; code < 1u << 10; ++code) { /* a leading 1, then two bits a letter */
      char response[6];
      size_t n = 0;
      int top = 9;
      while (code >> top == 0) --top;
      if (top % 2 != 0) continue;
      for (int bit = top - 2; bit >= 0; bit -= 2) response[n++] = letters[code >> bit & 3];
      response[n] = '\0';
      int good = balances(p.prompt, response);
      CU_ASSERT((task_score(f.t, &p, response, 1) == 1) == good);
      right += (size_t)good;
    }
    several += right > 1;
    CU_ASSERT(right >= 1);
    char longer[16];
    snprintf(longer, sizeof longer, "%s()()", p.answer);
    CU_ASSERT(task_score(f.t, &p, longer, 1) == (strlen(longer) <= 4));
  }
  CU_ASSERT(several > 30);
}

TEST(brackets_open_no_deeper_than_told) {
  task_fixture f = task_open("task: {kind: brackets, length: 40, depth: 5, kinds: 4}", 3);
  size_t deepest = 0;
  for (uint64_t i = 0; i < N; ++i) {
    problem p = task_get(f.t, TASK_HELD_OUT, i);
    size_t depth = 0;
    for (const char *at = p.prompt; *at != '\0'; ++at) {
      depth = strchr("([{<", *at) != NULL ? depth + 1 : depth - 1;
      if (depth > deepest) deepest = depth;
    }
    CU_ASSERT(depth == strlen(p.answer) && depth > 0);
    CU_ASSERT(balances(p.prompt, p.answer));
  }
  CU_ASSERT_EQUAL(deepest, 5);
}

/* --- countdown --- */

static double countdown_score(const char *section, const char *prompt, const char *response) {
  task_fixture f = task_open(section, 1);
  problem p = {(char *)(uintptr_t)prompt, (char *)(uintptr_t) ""};
  double score = task_score(f.t, &p, response, 1);
  return score;
}

TEST(any_legal_expression_of_the_target_is_right) {
  static const struct {
    const char *prompt, *response;
    double any, all;
  } table[] = {
      {"3,5,2=11:", "3*2+5", 1, 1},
      {"3,5,2=11:", " 5 + 2*3 ", 1, 1},
      {"3,5,2=11:", "((5)+((2*3)))", 1, 1},
      {"3,5,2=11:", "5+3+3", 0, 0},    /* 3 twice */
      {"3,5,2=11:", "5+6", 0, 0},      /* no 6 */
      {"3,5,2=11:", "11", 0, 0},       /* not given */
      {"3,5,2=11:", "3*2+5=11", 0, 0}, /* no expression */
      {"3,5,2=11:", "3*2+", 0, 0},
      {"3,5,2=11:", "+3*2+5", 0, 0}, /* signs are operations */
      {"3,5,2=11:", "", 0, 0},
      {"3,5,2=8:", "3+5", 1, 0}, /* not all numbers */
      {"3,5,2=8:", "3+5*2/2", 0, 0},
      {"3,3,2=6:", "3+3", 1, 0},
      {"3,3,2=8:", "3+3+2", 1, 1}, /* a number given twice may be used twice */
      {"8,3,3=3:", "8/3*3-3", 0, 0},
      {"1,3,4=1:", "(1/3+1/4)", 0, 0},
      {"1,3,3=1:", "1/3*3", 1, 1}, /* fractions on the way are exact */
      {"1,5,8=2:", "8/(5-1)", 1, 1},
      {"1,5,8=2:", "8/(1-5)", 0, 0},
      {"7,2,5=0:", "7-2-5", 1, 1},
      {"7,2,7=1:", "2/(7-7)", 0, 0}, /* by zero */
      {"7,2=14:", "7*2", 1, 1},
      {"7,2=14:", "07*2", 1, 1},
      {"7,2=14:", "7*2)", 0, 0},
      {"7,2=14", "7*2", 0, 0}, /* no prompt of this task */
      {"nonsense", "7*2", 0, 0},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    double any = countdown_score("task: {kind: countdown}", table[i].prompt, table[i].response);
    double all =
        countdown_score("task: {kind: countdown, use: all}", table[i].prompt, table[i].response);
    if (any != table[i].any || all != table[i].all)
      fprintf(stderr, "%s %s: %g %g\n", table[i].prompt, table[i].response, any, all);
    CU_ASSERT(any == table[i].any && all == table[i].all);
  }
}

/* The answer against a calculator in doubles (shunting-yard), its numbers against the prompt's. */
static double calculate(const char *text) {
  double value[16];
  char stack[32];
  size_t n = 0, m = 0;
  for (const char *at = text;; ++at) {
    int rank = *at == '*' || *at == '/' ? 2 : *at == '+' || *at == '-' ? 1 : 0;
    if (*at >= '0' && *at <= '9') {
      char *end;
      value[n++] = strtod(at, &end);
      at = end - 1;
      continue;
    }
    if (*at == '(') {
      stack[m++] = '(';
      continue;
    }
    while (m > 0 && stack[m - 1] != '(' &&
           (stack[m - 1] == '*' || stack[m - 1] == '/' ? 2 : 1) >= rank) {
      char operation = stack[--m];
      double b = value[--n], a = value[--n];
      value[n++] = operation == '+'   ? a + b
                   : operation == '-' ? a - b
                   : operation == '*' ? a * b
                                      : a / b;
    }
    if (*at == '\0') return value[0];
    if (*at == ')')
      --m;
    else
      stack[m++] = *at;
  }
}

TEST(countdown_answers_evaluate_to_the_target) {
  task_fixture f =
      task_open("task: {kind: countdown, numbers: 6, largest: 50, largest_target: 999, "
                "use: all, held_out: 0.3}",
                8);
  size_t parentheses = 0, divisions = 0, pairs = 0, superfluous = 0;
  for (uint64_t i = 0; i < N; ++i) {
    problem p = task_get(f.t, TASK_HELD_OUT, i);
    double target = atof(strchr(p.prompt, '=') + 1);
    CU_ASSERT(target >= 1 && target <= 999);
    ASSERT_CLOSE(calculate(p.answer), target, 1e-12);
    parentheses += strchr(p.answer, '(') != NULL;
    divisions += strchr(p.answer, '/') != NULL;
    /* Without a pair of parentheses the value is another one, but for accidents like 1*(a-b). */
    for (char *open = strchr(p.answer, '('); open != NULL; open = strchr(open + 1, '(')) {
      char *close = open;
      for (int depth = 0; (depth += (*close == '(') - (*close == ')')) > 0;) ++close;
      *open = *close = ' ';
      ++pairs;
      superfluous += task_score(f.t, &p, p.answer, 1) == 1;
      *open = '(', *close = ')';
    }
  }
  CU_ASSERT(parentheses > N / 4 && divisions > N / 10);
  CU_ASSERT(superfluous * 20 < pairs);
}

TEST(expressions_are_exact_and_bounded) {
  static const struct {
    const char *text;
    expression_status status;
    int64_t num, den;
  } table[] = {
      {"1/3+1/6", EXPRESSION_OK, 1, 2},
      {" 2 * ( 3 - 5 ) ", EXPRESSION_OK, -4, 1},
      {"8/4/2", EXPRESSION_OK, 1, 1},
      {"8-4-2", EXPRESSION_OK, 2, 1},
      {"9223372036854775807", EXPRESSION_OK, INT64_MAX, 1},
      {"9223372036854775808", EXPRESSION_OVERFLOW, 0, 0},
      {"9223372036854775807+1", EXPRESSION_OVERFLOW, 0, 0},
      {"9223372036854775807*9223372036854775807", EXPRESSION_OVERFLOW, 0, 0},
      {"0-9223372036854775807-1", EXPRESSION_OVERFLOW, 0, 0},
      {"9223372036854775807*2/2", EXPRESSION_OVERFLOW, 0, 0},
      {"9223372036854775807/3*3", EXPRESSION_OK, INT64_MAX, 1},
      {"1/0", EXPRESSION_DIVISION, 0, 0},
      {"1/(2-2)", EXPRESSION_DIVISION, 0, 0},
      {"0/5", EXPRESSION_OK, 0, 1},
      {"", EXPRESSION_SYNTAX, 0, 0},
      {"()", EXPRESSION_SYNTAX, 0, 0},
      {"1 2", EXPRESSION_SYNTAX, 0, 0},
      {"1+", EXPRESSION_SYNTAX, 0, 0},
      {"-1", EXPRESSION_SYNTAX, 0, 0},
      {"(1", EXPRESSION_SYNTAX, 0, 0},
      {"1)", EXPRESSION_SYNTAX, 0, 0},
      {"1.5", EXPRESSION_SYNTAX, 0, 0},
      {"2(3)", EXPRESSION_SYNTAX, 0, 0},
      {"2**3", EXPRESSION_SYNTAX, 0, 0},
      {"x", EXPRESSION_SYNTAX, 0, 0},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    expression e;
    expression_status status = expression_read(&e, table[i].text, strlen(table[i].text));
    int ok =
        status == table[i].status &&
        (status != EXPRESSION_OK || (e.value.num == table[i].num && e.value.den == table[i].den));
    if (!ok) fprintf(stderr, "%s: %d\n", table[i].text, status);
    CU_ASSERT(ok);
  }
}

TEST(hostile_expressions_are_refused_quickly) {
  enum { SIZE = 1 << 20 };
  char *text = malloc(SIZE);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  expression e;
  memset(text, '(', SIZE);
  CU_ASSERT_EQUAL(expression_read(&e, text, SIZE), EXPRESSION_DEEP);
  for (size_t i = 0; i < SIZE; ++i) text[i] = "1+"[i % 2];
  CU_ASSERT_EQUAL(expression_read(&e, text, SIZE - 1), EXPRESSION_MANY);
  memset(text, ' ', SIZE);
  CU_ASSERT_EQUAL(expression_read(&e, text, SIZE), EXPRESSION_SYNTAX);
  memset(text, '0', SIZE);
  CU_ASSERT_EQUAL(expression_read(&e, text, SIZE), EXPRESSION_OK);
  memset(text, '9', SIZE);
  CU_ASSERT_EQUAL(expression_read(&e, text, SIZE), EXPRESSION_OVERFLOW);
  CU_ASSERT_EQUAL(expression_read(&e, "1\0+1", 4), EXPRESSION_SYNTAX);
  free(text);
}

/* --- graded rewards --- */

TEST(graded_rewards_are_shares) {
  static const struct {
    const char *section, *prompt, *answer, *response;
    double score;
  } table[] = {
      {"task: {kind: addition, reward: graded}", "1+2=", "123", "123", 1},
      {"task: {kind: addition, reward: graded}", "1+2=", "123", "124", 2 / 3.0},
      {"task: {kind: addition, reward: graded}", "1+2=", "123", "12", 2 / 3.0},
      {"task: {kind: addition, reward: graded}", "1+2=", "123", "1234", 3 / 4.0},
      {"task: {kind: addition, reward: graded}", "1+2=", "123", "", 0},
      {"task: {kind: addition}", "1+2=", "123", "124", 0},
      {"task: {kind: sorting, reward: graded}", "321=", "123", "321", 1 / 3.0},
      {"task: {kind: parity, chain: true, reward: graded}", "111=", "101", "100", 2 / 3.0},
      {"task: {kind: countdown, reward: graded}", "2,3=5:", "2+3", "2*3", 0.1},
      {"task: {kind: countdown, reward: graded}", "2,3=5:", "2+3", "3+2", 1},
      {"task: {kind: countdown, reward: graded}", "2,3=5:", "2+3", "4+1", 0},
      {"task: {kind: brackets, reward: graded}", "(([", "]))", "]))", 1},
      {"task: {kind: brackets, reward: graded}", "(([", "]))", "])", 2 / 3.0},
      {"task: {kind: brackets, reward: graded}", "(([", "]))", "])]", 2 / 4.0},
      {"task: {kind: brackets, reward: graded}", "(([", "]))", ")", 0},
      {"task: {kind: brackets, reward: graded}", "(([", "]))", "]))x", 3 / 4.0},
      {"task: {kind: brackets, reward: graded}", "(([", "]))", "]((", 1 / 5.0},
      {"task: {kind: brackets}", "(([", "]))", "])", 0},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    task_fixture f = task_open(table[i].section, 1);
    problem p = {(char *)(uintptr_t)table[i].prompt, (char *)(uintptr_t)table[i].answer};
    ASSERT_CLOSE(task_score(f.t, &p, table[i].response, 1), table[i].score, 1e-15);
  }
}

/* --- distributions --- */

/* Pearson's statistic of counts that should be equal; a right distribution fails with probability
 * 1e-5 per call, and the seeds are fixed. */
static void check_uniform(const size_t *count, size_t n, size_t total) {
  double expected = (double)total / (double)n, statistic = 0;
  for (size_t i = 0; i < n; ++i)
    statistic += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
  double p = gsl_cdf_chisq_Q(statistic, (double)n - 1);
  if (p < 1e-5) fprintf(stderr, "chi-square %g with %zu cells: p = %g\n", statistic, n, p);
  CU_ASSERT(p >= 1e-5);
}

/* With held_out: 0 nothing is rejected, so the distribution is that of the draws. */
TEST(operands_are_uniform) {
  enum { DRAWS = 40000 };
  static size_t pairs[100 * 100 / 25], two_digits[90], remainders[49], bits[64], lengths[4];
  memset(pairs, 0, sizeof pairs);
  task_fixture a = task_open("task: {kind: addition, held_out: 0}", 21),
               b = task_open("task: {kind: addition, min_digits: 2, held_out: 0}", 22),
               c = task_open("task: {kind: modular, modulus: 7, held_out: 0}", 23),
               d = task_open("task: {kind: parity, length: 6, held_out: 0}", 24),
               e = task_open("task: {kind: sorting, length: 5, min_length: 2, held_out: 0}", 25);
  for (uint64_t i = 0; i < DRAWS; ++i) {
    unsigned x, y;
    char operation;
    problem p = task_get(a.t, TASK_TRAIN, i);
    CU_ASSERT_FATAL(sscanf(p.prompt, "%u+%u=", &x, &y) == 2 && x < 100 && y < 100);
    ++pairs[x / 5 * 20 + y / 5];
    p = task_get(b.t, TASK_TRAIN, i);
    CU_ASSERT_FATAL(sscanf(p.prompt, "%u+%u=", &x, &y) == 2 && x >= 10 && y >= 10);
    ++two_digits[x - 10];
    p = task_get(c.t, TASK_TRAIN, i);
    CU_ASSERT_FATAL(sscanf(p.prompt, "(%u%c%u)", &x, &operation, &y) == 3 && x < 7 && y < 7);
    ++remainders[x * 7 + y];
    p = task_get(d.t, TASK_TRAIN, i);
    ++bits[strtoul(p.prompt, NULL, 2)];
    p = task_get(e.t, TASK_TRAIN, i);
    ++lengths[strlen(p.answer) - 2];
  }
  check_uniform(pairs, 400, DRAWS);
  check_uniform(two_digits, 90, DRAWS);
  check_uniform(remainders, 49, DRAWS);
  check_uniform(bits, 64, DRAWS);
  check_uniform(lengths, 4, DRAWS);
}

/* The rejection leaves what is not rejected uniform: every training prompt of 64 is as likely. */
TEST(the_training_split_is_uniform_over_its_problems) {
  enum { DRAWS = 40000 };
  size_t count[64] = {0}, packed[64], n = 0, total = 0;
  task_fixture f = task_open("task: {kind: parity, length: 6, held_out: 0.3}", 26);
  for (uint64_t i = 0; i < DRAWS; ++i) {
    problem p = task_get(f.t, TASK_TRAIN, i);
    ++count[strtoul(p.prompt, NULL, 2)];
  }
  for (size_t k = 0; k < 64; ++k)
    if (count[k] > 0) packed[n++] = count[k], total += count[k];
  CU_ASSERT(n > 30 && n < 60 && total == DRAWS);
  check_uniform(packed, n, total);
}
