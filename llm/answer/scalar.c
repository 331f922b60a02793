/* Two answers that are compared as a whole: as text, as numbers, as formulas. In every function the
 * reference is a, the response b. */
#include "llm/answer/internal.h"

#include <string.h>

/* --- text --- */

/* The next character that counts, braces around it taken away; '\0' at the end. White space counts
 * only between digits: `last` is the character before. */
static char next_character(answer_span *s, char last) {
  answer_span rest = answer_trim(*s);
  if (rest.n < s->n && answer_is_digit(last) && rest.n > 0 && answer_is_digit(*rest.at) &&
      rest.at != s->at) {
    *s = rest;
    return ' ';
  }
  *s = rest;
  if (s->n == 0) return '\0';
  size_t n = 1, at = 0;
  if (s->n >= 3 && s->at[0] == '{' && s->at[2] == '}' && !answer_is_any(s->at[1], "{}\\"))
    at = 1, n = 3;
  char c = s->at[at];
  s->at += n;
  s->n -= n;
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int answer_same_text(answer_span a, answer_span b) {
  if (a.n > 0 && *a.at == '+') ++a.at, --a.n;
  if (b.n > 0 && *b.at == '+') ++b.at, --b.n;
  for (char x = '\0';;) {
    char last = x, y = next_character(&b, last);
    x = next_character(&a, last);
    if (x != y) return 0;
    if (answer_trim(a).n == 0 || answer_trim(b).n == 0) return answer_trim(a).n == answer_trim(b).n;
  }
}

/* --- values --- */

/* A bare decimal number's digits without zeros that say nothing. Commas are passed over: that they
 * stand between thousands has been seen when the number was evaluated. */
typedef struct literal {
  answer_span s;
  int negative, in_places, failed;
} literal;

static literal literal_of(answer_span s) {
  literal l = {.s = s, .negative = s.n > 0 && *s.at == '-'};
  if (l.s.n > 0 && (*l.s.at == '-' || *l.s.at == '+')) ++l.s.at, --l.s.n;
  while (l.s.n > 0 && answer_is_any(*l.s.at, "0,")) ++l.s.at, --l.s.n;
  if (memchr(l.s.at, '.', l.s.n) != NULL)
    while (l.s.n > 0 && l.s.at[l.s.n - 1] == '0') --l.s.n;
  if (l.s.n > 0 && l.s.at[l.s.n - 1] == '.') --l.s.n;
  return l;
}

/* The next digit or point; '\0' at the end. What is neither makes it fail. */
static char next_digit(literal *l) {
  while (l->s.n > 0 && *l->s.at == ',') ++l->s.at, --l->s.n;
  if (l->s.n == 0) return '\0';
  char c = *l->s.at;
  ++l->s.at, --l->s.n;
  l->failed |= !answer_is_digit(c) && (c != '.' || l->in_places);
  l->in_places |= c == '.';
  return c;
}

/* 1 or 0 for two bare numbers of any length, -1 if one of them is something else. */
static int same_literal(answer_span a, answer_span b) {
  literal l = literal_of(a), m = literal_of(b);
  int same_digits = 1;
  for (char x = '1', y = '1'; x != '\0' || y != '\0';) {
    x = next_digit(&l);
    y = next_digit(&m);
    same_digits &= x == y;
  }
  if (l.failed || m.failed) return -1;
  return same_digits && l.negative == m.negative;
}

/* Whether x, written with six places or more of which five digits or more count, is y rounded. */
static int rounds_to(const answer_value *x, const answer_value *y) {
  enum { LEAST_PLACES = 6, MOST_PLACES = 100, LEAST_DIGITS = 5 };
  if (x->places < LEAST_PLACES || x->places > MOST_PLACES || x->digits < LEAST_DIGITS) return 0;
  /* half a unit of the last place, and a millionth of it for a value that lies just at its end */
  ball unit = ball_power(ball_of_int(10), x->places);
  ball half = ball_divide(ball_of_rational((rational){500001, 1000000}), unit);
  return ball_is_within(ball_subtract(answer_ball(x), answer_ball(y)), half);
}

/* Two bare numbers are compared digit by digit, or exactly; only a bare number and a fraction or an
 * expression may be equal by rounding. */
static int same_number(answer_span a, const answer_value *x, answer_span b, const answer_value *y) {
  if (x->exact && y->exact && rational_equal(x->q, y->q)) return 1;
  if (x->places >= 0 && y->places >= 0) {
    if (x->exact && y->exact) return 0;
    int same_digits = same_literal(a, b); /* there may be more of them than a ball holds */
    return same_digits >= 0 ? same_digits : ball_equal(answer_ball(x), answer_ball(y));
  }
  if (rounds_to(x, y) || rounds_to(y, x)) return 1;
  if (x->exact && y->exact) return 0;
  return ball_equal(answer_ball(x), answer_ball(y));
}

static int only_letters(answer_span s) {
  for (size_t i = 0; i < s.n; ++i)
    if (!answer_is_letter(s.at[i]) && !answer_is_space(s.at[i])) return 0;
  return 1;
}

/* Equal wherever both have a value, which is at two points at least. Where variables are negative,
 * only one may have a value, such as \sqrt{ab} of \sqrt{a}\sqrt{b}. Letters alone may be a word.
 *
 * A value of 0 says nothing: a factor of 0 hides all others, and letters are not always factors
 * (3 R 0, a division's quotient and remainder). */
static int same_formula(answer_span a, answer_span b, answer_budget *budget) {
  int agreed = 0;
  if (only_letters(a) && only_letters(b)) return 0;
  for (int point = 0; point < ANSWER_POINTS; ++point) {
    answer_value x, y;
    answer_known known_a = answer_evaluate(&x, a, point, budget),
                 known_b = answer_evaluate(&y, b, point, budget);
    if (known_a == ANSWER_NO_EXPRESSION || known_b == ANSWER_NO_EXPRESSION) return 0;
    if (known_a == ANSWER_UNSURE || known_b == ANSWER_UNSURE) continue;
    int negative = point == ANSWER_NEGATIVE || point == ANSWER_FAR_NEGATIVE;
    if (known_a != known_b && !negative) return 0;
    if (known_a != ANSWER_KNOWN || known_b != ANSWER_KNOWN) continue;
    ball v = answer_ball(&x), w = answer_ball(&y);
    if (ball_may_be_zero(v) && ball_may_be_zero(w)) continue;
    if (!ball_equal(v, w)) return 0;
    ++agreed;
  }
  return agreed >= 2;
}

int answer_take_percent(answer_span *s) {
  if (s->n < 2 || s->at[s->n - 1] != '%') return 0;
  --s->n;
  *s = answer_trim(*s);
  return 1;
}

int answer_same_value(answer_span a, answer_span b, answer_budget *budget) {
  answer_value x, y;
  int percent_a = answer_take_percent(&a), percent_b = answer_take_percent(&b);
  answer_known known_a = answer_evaluate(&x, a, 0, budget),
               known_b = answer_evaluate(&y, b, 0, budget);
  if (known_a == ANSWER_NO_EXPRESSION || known_b == ANSWER_NO_EXPRESSION) return 0;
  if (x.has_variables || y.has_variables)
    return !percent_a && !percent_b && same_formula(a, b, budget);
  if (known_a == ANSWER_NO_VALUE || known_b == ANSWER_NO_VALUE) return 0;
  if (same_number(a, &x, b, &y)) return 1;
  if (percent_a == percent_b) return 0;
  answer_value *share = percent_a ? &x : &y;
  *share = answer_apply('/', *share, answer_of_int(100));
  if (x.exact && y.exact) return rational_equal(x.q, y.q);
  return ball_equal(answer_ball(&x), answer_ball(&y));
}
