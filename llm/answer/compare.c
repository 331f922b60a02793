/* Splits answers into parts (brackets, lists, sides of equations and relations) and compares them:
 * as text, as values, as equations, as lists, and by the contents of brackets. Parts are compared
 * like answers, so the comparison is recursive. In every function a is the reference and b the
 * response. */
#include "llm/answer/internal.h"

#include <assert.h>
#include <string.h>

/* --- brackets --- */

/* True if the command at s, with n letters after its backslash, is `name`, which begins with the
 * backslash. */
static bool is_command(answer_span s, size_t n, const char *name) {
  return n + 1 == strlen(name) && answer_starts(s, name);
}

/* The change of nesting depth at s; *length: the number of characters of the bracket. */
static int nesting(answer_span s, size_t *length) {
  *length = 1;
  if (*s.at == '\\') {
    size_t n = answer_command(s);
    *length = n > 0 ? n + 1 : s.n > 1 ? 2 : 1;
    if (answer_starts(s, "\\{") || is_command(s, n, "\\begin") || is_command(s, n, "\\langle"))
      return 1;
    if (answer_starts(s, "\\}") || is_command(s, n, "\\end") || is_command(s, n, "\\rangle"))
      return -1;
    return 0;
  }
  return answer_is_any(*s.at, "([{") ? 1 : answer_is_any(*s.at, ")]}") ? -1 : 0;
}

size_t answer_split(answer_span s, const char *at, answer_span part[ANSWER_PARTS]) {
  size_t n = 0, begin = 0, depth = 0, length;
  assert(*at != '\0');
  for (size_t i = 0; i < s.n; i += length) {
    answer_span rest = {s.at + i, s.n - i};
    int change = nesting(rest, &length);
    if (change < 0 && depth == 0) return 0;
    depth += (size_t)change;
    if (depth > 0 || change < 0) continue;
    bool cuts =
        *at == '\\' ? answer_starts(rest, at) && length == strlen(at) : answer_is_any(*rest.at, at);
    if (!cuts) continue;
    if (n + 1 == ANSWER_PARTS) return 0;
    part[n++] = answer_trim((answer_span){s.at + begin, i - begin});
    begin = i + length;
  }
  part[n++] = answer_trim((answer_span){s.at + begin, s.n - begin});
  return depth == 0 ? n : 0;
}

answer_enclosure answer_enclosed(answer_span s, answer_span *inside) {
  size_t length, closing = 0, depth = 0, first = 0;
  *inside = s;
  for (size_t i = 0; i < s.n; i += length) {
    int change = nesting((answer_span){s.at + i, s.n - i}, &length);
    if (i == 0) first = length;
    if ((i == 0 && change <= 0) || (change < 0 && depth == 0)) return ANSWER_NO_BRACKETS;
    depth += (size_t)change;
    closing = length;
    if (depth == 0 && i + length < s.n) return ANSWER_NO_BRACKETS;
  }
  if (s.n == 0 || depth != 0 || s.n < first + closing) return ANSWER_NO_BRACKETS;
  *inside = answer_trim((answer_span){s.at + first, s.n - first - closing});
  char opens = s.at[first - 1], closes = s.at[s.n - 1];
  if (*s.at == '\\' && opens == '{') return closing == 2 ? ANSWER_BRACES : ANSWER_NO_BRACKETS;
  if (is_command(s, first - 1, "\\langle"))
    return closes == 'e' ? ANSWER_ANGLE : ANSWER_NO_BRACKETS; /* the e of \rangle */
  if (*s.at == '\\') return closes == 'd' ? ANSWER_ARRAY : ANSWER_NO_BRACKETS; /* the d of \end */
  if (opens == '{') return closes == '}' ? ANSWER_BRACES : ANSWER_NO_BRACKETS;
  if (opens == '(')
    return closes == ')' ? ANSWER_ROUND : closes == ']' ? ANSWER_OPEN_LEFT : ANSWER_NO_BRACKETS;
  return closes == ']' ? ANSWER_SQUARE : closes == ')' ? ANSWER_OPEN_RIGHT : ANSWER_NO_BRACKETS;
}

/* --- relations and labels --- */

const char *answer_relation(answer_span s, answer_span side[2]) {
  static const struct {
    const char *sign, *name;
    bool turns;
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

/* A label begins with a letter; if it begins with a digit, it is a ratio or a time. */
bool answer_label(answer_span s, answer_span side[ANSWER_PARTS]) {
  return answer_split(s, ":", side) == 2 && side[0].n > 0 && answer_is_letter(*side[0].at);
}

/* --- thousands --- */

/* True if the comma right after a may separate thousands: one to three digits before it and three
 * after it, without white space. */
static bool joins_thousands(answer_span a, answer_span b) {
  size_t before = 0;
  while (before < a.n && answer_is_digit(a.at[a.n - 1 - before])) ++before;
  return a.at + a.n + 1 == b.at && before >= 1 && before <= 3 && answer_count_digits(b, 0) == 3;
}

/* Joins parts that were split at a comma between thousands; returns the number of parts left. */
static size_t join_thousands(answer_span part[ANSWER_PARTS], size_t n) {
  size_t kept = n > 0;
  for (size_t i = 1; i < n; ++i) {
    answer_span *last = &part[kept - 1];
    if (joins_thousands(*last, part[i]))
      last->n = (size_t)(part[i].at + part[i].n - last->at);
    else
      part[kept++] = part[i];
  }
  return kept;
}

/* --- lists --- */

static const answer_span no_name = {"", 0};

/* True if s can be a left side that only names the right side: x, x_1, f(2), (x, y), \theta. */
static bool answer_is_name(answer_span s) {
  size_t depth = 0;
  bool in_argument = 0; /* inside the parentheses of f(-0.5), but not of (-x) */
  bool has_letter = 0;  /* letters of commands do not count: \frac{22}{7} has no letter */
  if (s.n == 0 || s.n > 40 || answer_is_digit(*s.at)) return false;
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
    if (!answer_is_letter(c) && !answer_is_any(c, " \\(){}_,'|:")) return false;
  }
  return has_letter;
}

/* Makes a list of n values with their names. */
static void zip(answer_list *out, const answer_span *name, const answer_span *value, size_t n) {
  out->n = n;
  for (size_t i = 0; i < n; ++i) {
    out->part[i].name = name[i];
    out->part[i].text = value[i];
    out->part[i].has_sign = 0;
  }
}

/* Reads a list like (x, y) = (1, 2). Returns false if s is not one. */
static bool read_named_tuple(answer_list *out, answer_span s) {
  answer_span side[ANSWER_PARTS], in, name[ANSWER_PARTS], value[ANSWER_PARTS];
  if (answer_split(s, "=", side) != 2) return false;
  if (answer_enclosed(side[0], &in) != ANSWER_ROUND) return false;
  size_t n = answer_split(in, ",", name);
  for (size_t i = 0; i < n; ++i)
    if (!answer_is_name(name[i])) return false;
  if (n < 2 || answer_enclosed(side[1], &in) != ANSWER_ROUND) return false;
  if (answer_split(in, ",", value) != n) return false;
  out->kind = ANSWER_ROUND;
  zip(out, name, value, n);
  return true;
}

/* Reads a list like x, y = 1, 2, in which only the middle one of the n parts has an equals sign. */
static bool read_names_then_values(answer_list *out, const answer_span *part, size_t n) {
  answer_span name[ANSWER_PARTS], value[ANSWER_PARTS], side[ANSWER_PARTS];
  size_t half = n / 2;
  if (n < 3 || n % 2 == 0 || answer_split(part[half], "=", side) != 2) return false;
  for (size_t i = 0; i <= half; ++i) {
    name[i] = i < half ? part[i] : side[0];
    value[i] = i == 0 ? side[1] : part[half + i];
    if (!answer_is_name(name[i]) || (i > 0 && answer_split(value[i], "=", side) != 1)) return false;
    if (i == 0) answer_split(part[half], "=", side);
  }
  zip(out, name, value, half + 1);
  return true;
}

/* Finds the name of each part. In x = 1, 2 a part without a name gets the name of the part before
 * it. */
static void read_names(answer_list *out) {
  answer_span side[ANSWER_PARTS], name = no_name;
  for (size_t i = 0; i < out->n; ++i) {
    size_t n = answer_sides(out->part[i].text, side, NULL);
    out->part[i].has_sign = n > 1;
    if (n > 1) name = answer_is_name(side[0]) ? side[0] : no_name;
    out->part[i].name = name;
  }
}

/* (x, y = 1, 2) is read like x, y = 1, 2; [x, y = 1, 2] is not. */
static bool may_hold_names(answer_enclosure kind) {
  return kind == ANSWER_NO_BRACKETS || kind == ANSWER_BRACES || kind == ANSWER_ROUND;
}

bool answer_list_read(answer_list *out, answer_span s, bool thousands) {
  answer_span in, part[ANSWER_PARTS];
  *out = (answer_list){.kind = answer_enclosed(s, &in), .n = 1, .part = {{s, no_name, 0}}};
  if (out->kind == ANSWER_ARRAY) return true;
  size_t n = answer_split(in, ",;", part);
  if (n == 0) return false;
  if (thousands && out->kind == ANSWER_NO_BRACKETS) n = join_thousands(part, n);
  if (n == 1) {
    out->named = read_named_tuple(out, in);
    return true;
  }
  if (may_hold_names(out->kind) && read_names_then_values(out, part, n)) {
    out->named = 1;
    return true;
  }
  out->n = n;
  for (size_t i = 0; i < n; ++i) out->part[i].text = answer_without_unit(part[i]);
  read_names(out);
  out->named = out->nameless = 1;
  for (size_t i = 0; i < n; ++i) {
    out->named &= out->part[i].name.n > 0;
    out->nameless &= out->part[i].name.n == 0 && !out->part[i].has_sign;
  }
  return true;
}

/* --- sides --- */

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

enum { MAX_DEPTH = 12 };

/* --- text --- */

/* The next significant character, without braces around it; '\0' at the end. White space is
 * significant only between digits; `last` is the character before. */
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

/* True for the same characters, ignoring case, white space that is not between digits, a leading
 * plus, and braces around one character. */
static bool answer_same_text(answer_span a, answer_span b) {
  if (a.n > 0 && *a.at == '+') ++a.at, --a.n;
  if (b.n > 0 && *b.at == '+') ++b.at, --b.n;
  for (char x = '\0';;) {
    char last = x, y = next_character(&b, last);
    x = next_character(&a, last);
    if (x != y) return false;
    if (answer_trim(a).n == 0 || answer_trim(b).n == 0) return answer_trim(a).n == answer_trim(b).n;
  }
}

/* --- values --- */

/* The digits of a plain decimal number without insignificant zeros. Commas are skipped; evaluation
 * has checked that they separate thousands. */
typedef struct literal {
  answer_span s;
  bool negative, in_places, failed;
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

/* The next digit or point; '\0' at the end. Any other character sets the failure flag. */
static char next_digit(literal *l) {
  while (l->s.n > 0 && *l->s.at == ',') ++l->s.at, --l->s.n;
  if (l->s.n == 0) return '\0';
  char c = *l->s.at;
  ++l->s.at, --l->s.n;
  l->failed |= !answer_is_digit(c) && (c != '.' || l->in_places);
  l->in_places |= c == '.';
  return c;
}

/* Compares two plain numbers of any length: 1 or 0; -1 if one of them is not a plain number. */
static int same_literal(answer_span a, answer_span b) {
  literal l = literal_of(a), m = literal_of(b);
  bool same_digits = true;
  for (char x = '1', y = '1'; x != '\0' || y != '\0';) {
    x = next_digit(&l);
    y = next_digit(&m);
    same_digits &= x == y;
  }
  if (l.failed || m.failed) return -1;
  return same_digits && l.negative == m.negative;
}

/* True if x, written with six or more places and five or more significant digits, is y rounded. */
static bool rounds_to(const answer_value *x, const answer_value *y) {
  enum { LEAST_PLACES = 6, MOST_PLACES = 100, LEAST_DIGITS = 5 };
  if (x->places < LEAST_PLACES || x->places > MOST_PLACES || x->digits < LEAST_DIGITS) return false;
  /* half a unit in the last place, plus a millionth of a unit, so that an exact tie is within the
   * bound in spite of the balls' errors */
  ball unit = ball_power(ball_of_int(10), x->places);
  ball half = ball_divide(ball_of_rational((rational){500001, 1000000}), unit);
  return ball_is_within(ball_subtract(answer_ball(x), answer_ball(y)), half);
}

/* Two plain numbers are compared digit by digit, or exactly. Only a plain number and a fraction or
 * an expression may be equal by rounding. */
static bool same_number(answer_span a, const answer_value *x, answer_span b,
                        const answer_value *y) {
  if (x->exact && y->exact && rational_equal(x->q, y->q)) return true;
  if (x->places >= 0 && y->places >= 0) {
    if (x->exact && y->exact) return false;
    int same_digits = same_literal(a, b); /* there may be more digits than a ball holds */
    return same_digits >= 0 ? same_digits : ball_equal(answer_ball(x), answer_ball(y));
  }
  if (rounds_to(x, y) || rounds_to(y, x)) return true;
  if (x->exact && y->exact) return false;
  return ball_equal(answer_ball(x), answer_ball(y));
}

static bool only_letters(answer_span s) {
  for (size_t i = 0; i < s.n; ++i)
    if (!answer_is_letter(s.at[i]) && !answer_is_space(s.at[i])) return false;
  return true;
}

/* Equal if the values agree wherever both have one, at two points or more. At points with negative
 * variables one of them may have no value, such as \sqrt{a}\sqrt{b} compared with \sqrt{ab}. Texts
 * of letters only may be words, so they are not compared as formulas.
 *
 * Points where both values are 0 do not count. In "3 R 0", a division's quotient and remainder,
 * the letter is read as a factor, and the product is 0 whatever the quotient is. */
static bool same_formula(answer_span a, answer_span b, answer_budget *budget) {
  int agreed = 0;
  if (only_letters(a) && only_letters(b)) return false;
  for (int point = 0; point < ANSWER_POINTS; ++point) {
    answer_value x, y;
    answer_known known_a = answer_evaluate(&x, a, point, budget),
                 known_b = answer_evaluate(&y, b, point, budget);
    if (known_a == ANSWER_NO_EXPRESSION || known_b == ANSWER_NO_EXPRESSION) return false;
    if (known_a == ANSWER_UNSURE || known_b == ANSWER_UNSURE) continue;
    bool negative = point == ANSWER_NEGATIVE || point == ANSWER_FAR_NEGATIVE;
    if (known_a != known_b && !negative) return false;
    if (known_a != ANSWER_KNOWN || known_b != ANSWER_KNOWN) continue;
    ball v = answer_ball(&x), w = answer_ball(&y);
    if (ball_may_be_zero(v) && ball_may_be_zero(w)) continue;
    if (!ball_equal(v, w)) return false;
    ++agreed;
  }
  return agreed >= 2;
}

bool answer_take_percent(answer_span *s) {
  if (s->n < 2 || s->at[s->n - 1] != '%') return false;
  --s->n;
  *s = answer_trim(*s);
  return true;
}

/* True if both have the same value: numbers and percentages, or formulas at all points. */
static bool answer_same_value(answer_span a, answer_span b, answer_budget *budget) {
  answer_value x, y;
  bool percent_a = answer_take_percent(&a), percent_b = answer_take_percent(&b);
  answer_known known_a = answer_evaluate(&x, a, 0, budget),
               known_b = answer_evaluate(&y, b, 0, budget);
  if (known_a == ANSWER_NO_EXPRESSION || known_b == ANSWER_NO_EXPRESSION) return false;
  if (x.has_variables || y.has_variables)
    return !percent_a && !percent_b && same_formula(a, b, budget);
  if (known_a == ANSWER_NO_VALUE || known_b == ANSWER_NO_VALUE) return false;
  if (same_number(a, &x, b, &y)) return true;
  if (percent_a == percent_b) return false;
  answer_value *share = percent_a ? &x : &y;
  *share = answer_apply('/', *share, answer_of_int(100));
  if (x.exact && y.exact) return rational_equal(x.q, y.q);
  return ball_equal(answer_ball(&x), answer_ball(&y));
}

/* --- equations --- */

/* True for the name of a function's value: f(2), P(A). */
static bool has_argument(answer_span s) {
  return answer_is_name(s) && memchr(s.at, '(', s.n) != NULL;
}

/* The difference of the two sides at a point. */
static answer_known difference_of_sides(ball *out, const answer_span side[2], int point,
                                        bool *has_variables, answer_budget *budget) {
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

/* True if l = r and m = s are equivalent: l - r and m - s differ by a constant factor. An identity,
 * whose difference is 0 up to an error, is not equivalent to any other equation. */
static bool proportional(const answer_span a[2], const answer_span b[2], answer_budget *budget) {
  ball first = ball_undefined(), second = first;
  int agreed = 0;
  for (int i = 0; i < 2; ++i)
    if (has_argument(a[i]) || has_argument(b[i])) return false;
  for (int point = 0; point < ANSWER_POINTS; ++point) {
    ball x, y;
    bool variables_a, variables_b;
    answer_known known_a = difference_of_sides(&x, a, point, &variables_a, budget),
                 known_b = difference_of_sides(&y, b, point, &variables_b, budget);
    if (known_a == ANSWER_NO_EXPRESSION || known_b == ANSWER_NO_EXPRESSION) return false;
    if (!variables_a || !variables_b) return false;
    if (known_a == ANSWER_UNSURE || known_b == ANSWER_UNSURE) continue;
    bool negative = point == ANSWER_NEGATIVE || point == ANSWER_FAR_NEGATIVE;
    if (known_a != ANSWER_KNOWN || known_b != ANSWER_KNOWN) {
      if (negative) continue;
      return false;
    }
    if (ball_may_be_zero(x) || ball_may_be_zero(y)) return false;
    if (agreed == 0) {
      first = x;
      second = y;
    } else if (!ball_equal(ball_multiply(x, second), ball_multiply(y, first)))
      return false;
    ++agreed;
  }
  return agreed >= 2;
}

/* True if a side of a chain equals the last number, or differs from it by at most one unit of its
 * last place, as after rounding. A side that is not a number matches anything. */
static bool leads_to(answer_span side, answer_span last, answer_budget *budget) {
  answer_value x, y;
  answer_known known = answer_evaluate(&x, side, 0, budget);
  if (known == ANSWER_NO_VALUE && !x.has_variables) return false;
  if (known != ANSWER_KNOWN || x.has_variables) return true;
  if (answer_evaluate(&y, last, 0, budget) != ANSWER_KNOWN || y.has_variables) return true;
  if (answer_same_value(last, side, budget)) return true;
  if (y.places < 1 || y.places > 100) return false;
  ball unit = ball_power(ball_of_int(10), -(int64_t)y.places);
  return ball_is_within(ball_subtract(answer_ball(&x), answer_ball(&y)), unit);
}

/* A chain whose numbers disagree, x = 2 + 4 = 5, is not a correct answer. The number after \approx
 * is rounded, so the side before that sign is not compared with it. */
static bool chain_agrees(answer_span s, answer_budget *budget) {
  answer_span side[ANSWER_PARTS];
  size_t rounded, n = answer_sides(s, side, &rounded);
  for (size_t i = 0; i + 1 < n; ++i)
    if (i >= rounded && !(i == 0 && answer_is_name(side[0])) &&
        !leads_to(side[i], side[n - 1], budget))
      return false;
  return true;
}

static bool has_number_value(answer_span s, answer_budget *budget) {
  answer_value x;
  return answer_evaluate(&x, s, 0, budget) == ANSWER_KNOWN && !x.has_variables;
}

/* True if the middle sides of two chains of one length are equal, or one is a number and the other
 * a formula: A = \pi r^2 = 9\pi is A = \pi\cdot 3^2 = 9\pi, and not A = \pi r^3 = 9\pi. */
static bool same_middles(const answer_span *a, const answer_span *b, size_t n,
                         answer_budget *budget) {
  for (size_t i = 1; i + 1 < n; ++i)
    if (has_number_value(a[i], budget) == has_number_value(b[i], budget) &&
        !answer_same(a[i], b[i], budget))
      return false;
  return true;
}

/* Compares two equations given as their sides, n and m of them, at least two each. */
static bool answer_same_sides(const answer_span *a, size_t n, const answer_span *b, size_t m,
                              answer_budget *budget) {
  assert(n >= 2 && m >= 2);
  if (answer_is_name(a[0]) && answer_same_text(a[0], b[0]))
    return answer_same(a[n - 1], b[m - 1], budget) && (n != m || same_middles(a, b, n, budget));
  if (n != 2 || m != 2) return false;
  if (answer_same(a[0], b[1], budget) && answer_same(a[1], b[0], budget)) return true;
  if (has_argument(a[0]) || has_argument(b[0])) return false; /* f(3) = 0 is not f(4) = 0 */
  return (answer_same(a[0], b[0], budget) && answer_same(a[1], b[1], budget)) ||
         proportional(a, b, budget);
}

/* Compares two single answers of which at least one is an equation. Of a chain a = b = c the first
 * side is the name, the last the value. */
static bool answer_same_equation(answer_span a, answer_span b, answer_budget *budget) {
  answer_span l[ANSWER_PARTS], r[ANSWER_PARTS];
  size_t n = answer_sides(a, l, NULL), m = answer_sides(b, r, NULL);
  if (n == 0 || m == 0 || (n == 1 && m == 1)) return false;
  if (!chain_agrees(a, budget) || !chain_agrees(b, budget)) return false;
  if (n == 1) return answer_same(a, r[m - 1], budget);
  if (m == 1) return answer_is_name(l[0]) && answer_same(l[n - 1], b, budget);
  return answer_same_sides(l, n, r, m, budget);
}

/* --- relations and labels --- */

/* Compares two answers of which at least one is a relation: x > 3 equals 3 < x; it equals neither
 * an interval nor 2x > 6. */
static bool answer_same_relation(answer_span a, answer_span b, answer_budget *budget) {
  answer_span l[2], r[2];
  const char *x = answer_relation(a, l), *y = answer_relation(b, r);
  if (x == NULL || y == NULL || strcmp(x, y) != 0) return false;
  if (answer_same(l[0], r[0], budget) && answer_same(l[1], r[1], budget)) return true;
  return *x == 'n' && answer_same(l[0], r[1], budget) && answer_same(l[1], r[0], budget);
}

/* Compares two single answers of which at least one is a value with a label. */
static bool answer_same_label(answer_span a, answer_span b, answer_budget *budget) {
  answer_span l[ANSWER_PARTS], r[ANSWER_PARTS];
  return answer_label(a, l) && answer_label(b, r) && answer_same_text(l[0], r[0]) &&
         answer_same(l[1], r[1], budget);
}

/* --- lists --- */

/* The sides of part i of a list like "x = 1, y = 2", in which every part has a name: the name
 * before the equals sign, and what follows it. */
static size_t sides_of(const answer_list *l, size_t i, answer_span side[ANSWER_PARTS]) {
  if (l->part[i].has_sign) return answer_sides(l->part[i].text, side, NULL);
  side[0] = l->part[i].name;
  side[1] = l->part[i].text;
  return 2;
}

/* The value of part i, without its name if it has one. */
static answer_span value_of_part(const answer_list *l, size_t i) {
  answer_span side[ANSWER_PARTS];
  if (l->part[i].name.n == 0 || !l->part[i].has_sign) return l->part[i].text;
  size_t n = answer_sides(l->part[i].text, side, NULL);
  return n > 0 ? side[n - 1] : l->part[i].text;
}

/* How a part of one list is compared with a part of another. */
typedef enum comparison {
  AS_WRITTEN,
  NAMED,  /* names and values */
  VALUES, /* values only */
} comparison;

static bool same_part(const answer_list *a, size_t i, const answer_list *b, size_t k,
                      comparison how, answer_budget *budget) {
  if (how == AS_WRITTEN) return answer_same(a->part[i].text, b->part[k].text, budget);
  if (how == VALUES) return answer_same(value_of_part(a, i), value_of_part(b, k), budget);
  answer_span l[ANSWER_PARTS], r[ANSWER_PARTS];
  size_t n = sides_of(a, i, l), m = sides_of(b, k, r);
  if (a->part[i].has_sign && b->part[k].has_sign)
    return answer_same(a->part[i].text, b->part[k].text, budget);
  return n >= 2 && m >= 2 && answer_same_sides(l, n, r, m, budget);
}

static bool same_in_order(const answer_list *a, const answer_list *b, comparison how,
                          answer_budget *budget) {
  for (size_t i = 0; i < a->n; ++i)
    if (!same_part(a, i, b, i, how, budget)) return false;
  return true;
}

static bool same_in_any_order(const answer_list *a, const answer_list *b, comparison how,
                              answer_budget *budget) {
  bool used[ANSWER_PARTS] = {0};
  for (size_t i = 0; i < a->n; ++i) {
    size_t k = 0;
    while (k < b->n && (used[k] || !same_part(a, i, b, k, how, budget))) ++k;
    if (k == b->n) return false;
    used[k] = 1;
  }
  return true;
}

/* True if all parts are values of one name: x = 1, x = 2. */
static bool has_one_name(const answer_list *l) {
  for (size_t i = 1; i < l->n; ++i)
    if (!answer_same_text(l->part[0].name, l->part[i].name)) return false;
  return true;
}

static bool is_ordered(const answer_list *l) {
  return l->kind != ANSWER_NO_BRACKETS && l->kind != ANSWER_BRACES;
}

/* A list without brackets may equal a set or a tuple, but not an interval. */
static bool kinds_agree(answer_enclosure a, answer_enclosure b) {
  if (a == b) return true;
  if (a != ANSWER_NO_BRACKETS && b != ANSWER_NO_BRACKETS) return false;
  answer_enclosure other = a == ANSWER_NO_BRACKETS ? b : a;
  return other == ANSWER_BRACES || other == ANSWER_ROUND;
}

/* Compares two lists of at least two parts each. */
static bool same_list(const answer_list *a, const answer_list *b, answer_budget *budget) {
  assert(a->n >= 2 && b->n >= 2);
  if (a->n != b->n || !kinds_agree(a->kind, b->kind)) return false;
  if (a->named && b->named) return same_in_any_order(a, b, NAMED, budget);
  bool one_named = (a->named && b->nameless) || (a->nameless && b->named);
  comparison how = one_named ? VALUES : AS_WRITTEN;
  /* a = 1, b = 2 is not the set {1, 2}; without names, values are matched by order */
  bool names_count = one_named && a->named && !has_one_name(a);
  if (names_count && b->kind == ANSWER_BRACES) return false;
  return names_count || is_ordered(a) || is_ordered(b) ? same_in_order(a, b, how, budget)
                                                       : same_in_any_order(a, b, how, budget);
}

/* --- brackets --- */

/* Compares two matrices entry by entry. An empty last row, of a final ;, does not count. */
static bool same_matrix(answer_span a, answer_span b, answer_budget *budget) {
  answer_span rows_a[ANSWER_PARTS], rows_b[ANSWER_PARTS], x[ANSWER_PARTS], y[ANSWER_PARTS];
  size_t n = answer_split(a, ";", rows_a), m = answer_split(b, ";", rows_b);
  while (n > 1 && rows_a[n - 1].n == 0) --n;
  while (m > 1 && rows_b[m - 1].n == 0) --m;
  if (n != m || n == 0) return false;
  for (size_t i = 0; i < n; ++i) {
    size_t k = answer_split(rows_a[i], ",", x);
    if (k == 0 || k != answer_split(rows_b[i], ",", y)) return false;
    for (size_t j = 0; j < k; ++j)
      if (!answer_same(x[j], y[j], budget)) return false;
  }
  return true;
}

static bool same_union(answer_span a, answer_span b, answer_budget *budget) {
  answer_span x[ANSWER_PARTS], y[ANSWER_PARTS];
  answer_list l = {.n = answer_split(a, "\\cup", x)}, m = {.n = answer_split(b, "\\cup", y)};
  if (l.n < 2 || l.n != m.n) return false;
  for (size_t i = 0; i < l.n; ++i) {
    l.part[i].text = x[i];
    m.part[i].text = y[i];
  }
  return same_in_any_order(&l, &m, AS_WRITTEN, budget);
}

/* Brackets around a single value have no meaning, but two different kinds are not equal. */
static bool same_inside(answer_span a, answer_span b, answer_budget *budget) {
  answer_span in_a, in_b;
  answer_enclosure kind_a = answer_enclosed(a, &in_a), kind_b = answer_enclosed(b, &in_b);
  if (kind_a == ANSWER_ARRAY && kind_b == ANSWER_ARRAY) return same_matrix(in_a, in_b, budget);
  bool wraps_a = kind_a != ANSWER_NO_BRACKETS && kind_a != ANSWER_ARRAY,
       wraps_b = kind_b != ANSWER_NO_BRACKETS && kind_b != ANSWER_ARRAY;
  if (wraps_a && wraps_b && kind_a != kind_b) return false;
  return (wraps_a || wraps_b) && answer_same(wraps_a ? in_a : a, wraps_b ? in_b : b, budget);
}

/* --- all together --- */

/* Compares two single values, not lists. */
static bool same_single(answer_span a, answer_span b, answer_budget *budget) {
  return answer_same_equation(a, b, budget) || answer_same_relation(a, b, budget) ||
         answer_same_label(a, b, budget) || same_union(a, b, budget) || same_inside(a, b, budget);
}

/* Compares both as lists; thousands_a, thousands_b: read commas on that side as separators of
 * thousands. */
static bool same_decomposed(answer_span a, bool thousands_a, answer_span b, bool thousands_b,
                            answer_budget *budget) {
  answer_list l, m;
  if (!answer_list_read(&l, a, thousands_a) || !answer_list_read(&m, b, thousands_b)) return false;
  if (l.n >= 2 && m.n >= 2) return same_list(&l, &m, budget);
  if (l.n == 1 && m.n == 1) return same_single(a, b, budget);
  return answer_same_equation(a, b, budget); /* such as x \in \{1, 2\} and 1, 2 */
}

static bool has_thousands(answer_span s) {
  answer_list apart, joined;
  return answer_list_read(&apart, s, 0) && answer_list_read(&joined, s, 1) && apart.n != joined.n;
}

bool answer_same(answer_span a, answer_span b, answer_budget *budget) {
  a = answer_trim(a);
  b = answer_trim(b);
  if (a.n == 0 || b.n == 0) return a.n == b.n;
  if (answer_same_text(a, b)) return true;
  if (budget->left < 0 || budget->depth == MAX_DEPTH) return false;
  budget->left -= 1 + (long)(a.n + b.n) / 64;
  ++budget->depth;
  bool same = answer_same_value(a, b, budget);
  bool most_a = !same && has_thousands(a), most_b = !same && has_thousands(b);
  for (int i = 0; i <= most_a && !same; ++i)
    for (int k = 0; k <= most_b && !same; ++k) same = same_decomposed(a, i, b, k, budget);
  --budget->depth;
  return same;
}
