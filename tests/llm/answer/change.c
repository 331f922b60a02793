/* No answer with another number in it is a right one: over a list of answers, each number of each
 * is changed in many ways. What "another" means is decided without the checker: by the digits of
 * the number where each other number gives another answer, else by computing the value. */
#include "llm/answer/answer.h"
#include "tests/support/answer_form.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdint.h>

SUITE("llm: answers with a number changed");

static int equal(const char *reference, const char *response) {
  return answer_equal(reference, strlen(reference), response, strlen(response));
}

/* --- changes --- */

/* A fixed sequence of numbers below n. */
static size_t draw(uint64_t *state, size_t n) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (size_t)(*state >> 33) % n;
}

enum { NUMBER = 64 };

static char digit(uint64_t *state) {
  return (char)('0' + draw(state, 10));
}

/* Another number made of one of n characters: a digit replaced, added or left out, a point put in,
 * some digits more at its end, or something else altogether. */
static void change_number(char out[NUMBER], const char *number, size_t n, uint64_t *state) {
  static const char *const others[] = {"0", "1",          "2",         "3",  "10", "100",
                                       "5", "7000000000", "0.0000001", "30", "60", "1000000007"};
  size_t at = draw(state, n + 1), last = at < n ? at : n - 1, way = draw(state, 6);
  memcpy(out, number, n);
  out[n] = '\0';
  if (way == 0 && out[last] != '.')
    out[last] = digit(state);
  else if (way == 1) {
    memmove(out + at + 1, out + at, n - at + 1);
    out[at] = digit(state);
  } else if (way == 2 && n > 1 && out[last] != '.')
    memmove(out + last, out + last + 1, n - last);
  else if (way == 3 && at > 0 && at < n && memchr(number, '.', n) == NULL) {
    memmove(out + at + 1, out + at, n - at + 1);
    out[at] = '.';
  } else if (way == 4) {
    if (memchr(number, '.', n) == NULL) out[n++] = '.';
    for (size_t more = 1 + draw(state, 25); more > 0; --more) out[n++] = digit(state);
    out[n] = '\0';
  } else
    strcpy(out, others[draw(state, sizeof others / sizeof *others)]);
}

TEST(no_answer_with_another_number_is_accepted) {
  enum { CHANGES = 24 };
  static answer_forms forms;
  uint64_t state = 10;
  size_t changes = 0, wrong = 0, refused = 0;
  CU_ASSERT_FATAL(answer_forms_read(&forms, "tests/golden/answer_forms.txt"));
  for (size_t i = 0; i < forms.n; ++i) {
    const answer_form *f = &forms.form[i];
    if (!equal(f->text, f->text)) ++refused;
    for (size_t k = 0; k < f->n * CHANGES; ++k) {
      char number[NUMBER];
      size_t place = k / CHANGES;
      change_number(number, f->text + f->place[place].at, f->place[place].n, &state);
      char *changed = answer_form_changed(f, place, number);
      if (changed == NULL) continue;
      ++changes;
      if (equal(f->text, changed) || equal(changed, f->text)) {
        fprintf(stderr, "'%s' accepts '%s', or is accepted by it\n", f->text, changed);
        ++wrong;
      }
      free(changed);
    }
  }
  CU_ASSERT_EQUAL(wrong, 0);
  CU_ASSERT_EQUAL(refused, 0);
  CU_ASSERT(forms.n >= 300 && changes > 10000);
}

/* --- numbers that are not all different --- */

static double sine_of_degrees(double x) {
  return sin(x * acos(-1) / 180);
}
static double cosine_of_degrees(double x) {
  return cos(x * acos(-1) / 180);
}
static double tangent_of_degrees(double x) {
  return tan(x * acos(-1) / 180);
}
static double five_choose(double k) {
  static const double all[] = {1, 5, 10, 10, 5, 1};
  return k <= 5 ? all[(int)k] : 0;
}
static double power_of_minus_one(double n) {
  return fmod(n, 2) == 0 ? 1 : -1;
}
static double distance_to_twenty(double x) {
  return fabs(x - 20);
}
static double product_with_zero(double x) {
  return 0 * x;
}
static double zero_to_the(double n) {
  return n == 0 ? 1 : 0;
}
static double square_from_ten(double x) {
  return (x - 10) * (x - 10);
}
static double repeating(double digits) {
  return digits < 10 ? digits / 9 : digits < 100 ? digits / 99 : digits / 999;
}
static double factorial(double n) {
  return tgamma(n + 1);
}

/* text with x in the place of its #. */
static void write_number(char out[64], const char *text, int x) {
  const char *at = strchr(text, '#');
  snprintf(out, 64, "%.*s%d%s", (int)(at - text), text, x, at + 1);
}

/* Every pair of whole numbers up to `most` in the place of #: equal where the values are. */
TEST(answers_are_equal_exactly_where_their_values_are) {
  static const struct {
    const char *text;
    double (*value)(double);
    int least, most;
  } forms[] = {
      {"\\sin #^\\circ", sine_of_degrees, 0, 80},
      {"2\\cos{#^\\circ}", cosine_of_degrees, 0, 80},
      {"\\tan #^\\circ", tangent_of_degrees, 0, 60},
      {"\\binom{5}{#}", five_choose, 0, 8},
      {"(-1)^{#}", power_of_minus_one, 0, 12},
      {"|#-20|", distance_to_twenty, 0, 45},
      {"5\\cdot 0\\cdot #", product_with_zero, 0, 6},
      {"0^{#}", zero_to_the, 0, 5},
      {"(#-10)^2", square_from_ten, 0, 20},
      {"0.\\overline{#}", repeating, 1, 99},
      {"#!", factorial, 0, 12},
  };
  size_t wrong = 0;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i)
    for (int x = forms[i].least; x <= forms[i].most; ++x)
      for (int y = forms[i].least; y <= forms[i].most; ++y) {
        char a[64], b[64];
        write_number(a, forms[i].text, x);
        write_number(b, forms[i].text, y);
        double v = forms[i].value(x), w = forms[i].value(y);
        int same = fabs(v - w) <= 1e-12 * fmax(1, fabs(v));
        if (equal(a, b) == same) continue;
        fprintf(stderr, "'%s' and '%s': %d\n", a, b, !same);
        ++wrong;
      }
  CU_ASSERT_EQUAL(wrong, 0);
}

/* A minus before a bare number, a fraction, a root, or the number of an equation. */
TEST(a_sign_counts) {
  static const char *const forms[] = {"5",   "\\frac{1}{2}", "0.75",  "\\sqrt{2}",         "2\\pi",
                                      "x=3", "3x+1",         "x^3",   "\\frac{x}{x+1}",    "(1,2)",
                                      "1,2", "[3,4]",        "e^{2}", "x=1 \\text{ or } 4"};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i)
    for (const char *at = forms[i]; *at != '\0'; ++at) {
      int n = (int)answer_form_number(at);
      char changed[64];
      if (n == 0) continue;
      snprintf(changed, sizeof changed, "%.*s(-%.*s)%s", (int)(at - forms[i]), forms[i], n, at,
               at + n);
      at += n - 1;
      CU_ASSERT(!equal(forms[i], changed) && !equal(changed, forms[i]));
    }
}
