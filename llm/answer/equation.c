/* Equations, relations and values with labels: what has a sign between two sides. */
#include "llm/answer/internal.h"

#include <assert.h>
#include <string.h>

/* --- sides --- */

int answer_is_name(answer_span s) {
  size_t depth = 0;
  int in_argument = 0; /* f(-0.5), but not (-x) */
  int has_letter = 0;  /* \frac{22}{7} has none, for a command's letters do not count */
  if (s.n == 0 || s.n > 40 || answer_is_digit(*s.at)) return 0;
  for (size_t i = 0, command; i < s.n; i += 1 + command) {
    char c = s.at[i];
    command = answer_command((answer_span){s.at + i, s.n - i});
    has_letter |= command > 0 ? answer_is_variable((answer_span){s.at + i + 1, command})
                              : answer_is_letter(c);
    if (answer_is_any(c, "({")) ++depth;
    if (answer_is_any(c, ")}") && depth > 0) --depth;
    if (c == '(' && depth == 1) in_argument = i > 0 && answer_is_letter(s.at[i - 1]);
    if (answer_is_digit(c) && (depth > 0 || (i > 0 && s.at[i - 1] == '_'))) continue;
    if (answer_is_any(c, "-.") && depth > 0 && in_argument) continue;
    if (!answer_is_letter(c) && !answer_is_any(c, " \\(){}_,'|:")) return 0;
  }
  return has_letter;
}

size_t answer_sides(answer_span s, answer_span side[ANSWER_PARTS], size_t *rounded) {
  answer_span piece[ANSWER_PARTS], part[ANSWER_PARTS];
  answer_list all;
  if (rounded != NULL) *rounded = 0;
  if (!answer_list_read(&all, s, 1)) return 0;
  if (all.n > 1) {
    side[0] = s;
    return 1;
  }
  size_t n = 0, pieces = answer_split(s, "\\approx", piece);
  for (size_t i = 0; i < pieces; ++i) {
    size_t more = answer_split(piece[i], "=", part);
    if (more == 0 || n + more > ANSWER_PARTS) return 0;
    if (i > 0 && rounded != NULL) *rounded = n;
    memcpy(side + n, part, more * sizeof *part);
    n += more;
  }
  return n;
}

/* Whether a name is that of a function's value: f(2), P(A). */
static int has_argument(answer_span s) {
  return answer_is_name(s) && memchr(s.at, '(', s.n) != NULL;
}

/* --- equations --- */

/* The difference of the two sides at a point. */
static answer_known difference(ball *out, const answer_span side[2], int point, int *has_variables,
                               answer_budget *budget) {
  answer_value x, y;
  answer_known known_x = answer_evaluate(&x, side[0], point, budget),
               known_y = answer_evaluate(&y, side[1], point, budget);
  *has_variables = x.has_variables || y.has_variables;
  if (known_x != ANSWER_KNOWN || known_y != ANSWER_KNOWN)
    return known_x < known_y ? known_x : known_y;
  answer_value both = answer_apply('-', x, y);
  *out = answer_ball(&both);
  return out->state == BALL_KNOWN ? ANSWER_KNOWN : ANSWER_UNSURE;
}

/* Whether l = r and m = s say the same: l - r and m - s differ by a constant factor. An identity,
 * whose difference is 0 up to an error, is not an equation with any other. */
static int proportional(const answer_span a[2], const answer_span b[2], answer_budget *budget) {
  ball first = ball_undefined(), second = first;
  int agreed = 0;
  for (int i = 0; i < 2; ++i)
    if (has_argument(a[i]) || has_argument(b[i])) return 0;
  for (int point = 0; point < ANSWER_POINTS; ++point) {
    ball x, y;
    int variables_a, variables_b;
    answer_known known_a = difference(&x, a, point, &variables_a, budget),
                 known_b = difference(&y, b, point, &variables_b, budget);
    if (known_a == ANSWER_NO_EXPRESSION || known_b == ANSWER_NO_EXPRESSION) return 0;
    if (!variables_a || !variables_b) return 0;
    if (known_a == ANSWER_UNSURE || known_b == ANSWER_UNSURE) continue;
    int negative = point == ANSWER_NEGATIVE || point == ANSWER_FAR_NEGATIVE;
    if (known_a != ANSWER_KNOWN || known_b != ANSWER_KNOWN) {
      if (negative) continue;
      return 0;
    }
    if (ball_may_be_zero(x) || ball_may_be_zero(y)) return 0;
    if (agreed == 0) {
      first = x;
      second = y;
    } else if (!ball_equal(ball_multiply(x, second), ball_multiply(y, first)))
      return 0;
    ++agreed;
  }
  return agreed >= 2;
}

/* Whether a side of a chain is the number that stands last, or the last is that number rounded.
 * What is no number can be anything. */
static int leads_to(answer_span side, answer_span last, answer_budget *budget) {
  answer_value x, y;
  answer_known known = answer_evaluate(&x, side, 0, budget);
  if (known == ANSWER_NO_VALUE && !x.has_variables) return 0;
  if (known != ANSWER_KNOWN || x.has_variables) return 1;
  if (answer_evaluate(&y, last, 0, budget) != ANSWER_KNOWN || y.has_variables) return 1;
  if (answer_same_value(last, side, budget)) return 1;
  if (y.places < 1 || y.places > 100) return 0;
  ball unit = ball_power(ball_of_int(10), -(int64_t)y.places);
  return ball_is_within(ball_subtract(answer_ball(&x), answer_ball(&y)), unit);
}

/* A chain whose numbers do not agree, x = 2 + 4 = 5, is no right answer. The number behind \approx
 * is rounded, so what stands before that sign is not compared with it. */
static int chain_agrees(answer_span s, answer_budget *budget) {
  answer_span side[ANSWER_PARTS];
  size_t rounded, n = answer_sides(s, side, &rounded);
  for (size_t i = 0; i + 1 < n; ++i)
    if (i >= rounded && !(i == 0 && answer_is_name(side[0])) &&
        !leads_to(side[i], side[n - 1], budget))
      return 0;
  return 1;
}

static int is_number(answer_span s, answer_budget *budget) {
  answer_value x;
  return answer_evaluate(&x, s, 0, budget) == ANSWER_KNOWN && !x.has_variables;
}

/* What stands in the middle of two chains of one length is the same, but for a number in the place
 * of a formula: A = \pi r^2 = 9\pi is A = \pi\cdot 3^2 = 9\pi, and not A = \pi r^3 = 9\pi. */
static int same_middles(const answer_span *a, const answer_span *b, size_t n,
                        answer_budget *budget) {
  for (size_t i = 1; i + 1 < n; ++i)
    if (is_number(a[i], budget) == is_number(b[i], budget) && !answer_same(a[i], b[i], budget))
      return 0;
  return 1;
}

int answer_same_sides(const answer_span *a, size_t n, const answer_span *b, size_t m,
                      answer_budget *budget) {
  assert(n >= 2 && m >= 2);
  if (answer_is_name(a[0]) && answer_same_text(a[0], b[0]))
    return answer_same(a[n - 1], b[m - 1], budget) && (n != m || same_middles(a, b, n, budget));
  if (n != 2 || m != 2) return 0;
  if (answer_same(a[0], b[1], budget) && answer_same(a[1], b[0], budget)) return 1;
  if (has_argument(a[0]) || has_argument(b[0])) return 0; /* f(3) = 0 is not f(4) = 0 */
  return (answer_same(a[0], b[0], budget) && answer_same(a[1], b[1], budget)) ||
         proportional(a, b, budget);
}

/* Of a chain a = b = c the name is what stands first, the value what stands last. */
int answer_same_equation(answer_span a, answer_span b, answer_budget *budget) {
  answer_span l[ANSWER_PARTS], r[ANSWER_PARTS];
  size_t n = answer_sides(a, l, NULL), m = answer_sides(b, r, NULL);
  if (n == 0 || m == 0 || (n == 1 && m == 1)) return 0;
  if (!chain_agrees(a, budget) || !chain_agrees(b, budget)) return 0;
  if (n == 1) return answer_same(a, r[m - 1], budget);
  if (m == 1) return answer_is_name(l[0]) && answer_same(l[n - 1], b, budget);
  return answer_same_sides(l, n, r, m, budget);
}

/* --- relations --- */

const char *answer_relation(answer_span s, answer_span side[2]) {
  static const struct {
    const char *sign, *name;
    int turns;
  } signs[] = {
      {"<", "<", 0}, {">", "<", 1}, {"\\le", "le", 0}, {"\\ge", "le", 1}, {"\\ne", "ne", 0}};
  answer_span part[ANSWER_PARTS];
  const char *name = NULL;
  if (answer_split(s, ",;", part) != 1) return NULL;
  for (size_t k = 0; k < sizeof signs / sizeof *signs; ++k) {
    size_t n = answer_split(s, signs[k].sign, part);
    if (n < 2) continue;
    if (n > 2 || name != NULL) return NULL;
    name = signs[k].name;
    side[signs[k].turns] = part[0];
    side[!signs[k].turns] = part[1];
  }
  return name;
}

/* x > 3 is 3 < x; it is not an interval, nor 2x > 6. */
int answer_same_relation(answer_span a, answer_span b, answer_budget *budget) {
  answer_span l[2], r[2];
  const char *x = answer_relation(a, l), *y = answer_relation(b, r);
  if (x == NULL || y == NULL || strcmp(x, y) != 0) return 0;
  if (answer_same(l[0], r[0], budget) && answer_same(l[1], r[1], budget)) return 1;
  return *x == 'n' && answer_same(l[0], r[1], budget) && answer_same(l[1], r[0], budget);
}

/* --- labels --- */

/* A label begins with a letter; what begins with a digit is a ratio or a time. */
int answer_label(answer_span s, answer_span side[ANSWER_PARTS]) {
  return answer_split(s, ":", side) == 2 && side[0].n > 0 && answer_is_letter(*side[0].at);
}

int answer_same_label(answer_span a, answer_span b, answer_budget *budget) {
  answer_span l[ANSWER_PARTS], r[ANSWER_PARTS];
  return answer_label(a, l) && answer_label(b, r) && answer_same_text(l[0], r[0]) &&
         answer_same(l[1], r[1], budget);
}
