/* The value of an expression, in LaTeX or plain notation, of numbers or with variables.
 *
 *   sum     = ["+" | "-"] product { ("+" | "-") product }
 *   product = power { ["*" | "/"] power }          without a sign between them: a product, too
 *   power   = atom { "!" | degree sign } ["^" exponent]
 *   atom    = number | "(" sum ")" | "[" sum "]" | "{" sum "}" | "|" sum "|" | \frac.. | \sqrt..
 *           | \binom.. | function argument | \pi | e | letter ["_" index] | f "(" sum ")"
 *
 * A function's argument without brackets is a product without signs, which ends before the next
 * function: \sin 2x\cos x is (sin 2x)(cos x). A degree sign has a meaning only within the argument
 * of a trigonometric function. f(..) and g(..), and any letter before a number in parentheses,
 * P(3), are values of unknown functions.
 *
 * A variable's value at a point is a hash of its name. So two expressions that agree at all points
 * are the same function except by coincidence. The value of an unknown function is a hash of its
 * name and its argument. */
#include "llm/answer/internal.h"

#include "core/base/hash.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { MAX_DEPTH = 40 };
/* Cost of evaluation, subtracted from the budget. */
enum { COST_ATOM = 1, COST_ROOT = 8, COST_FUNCTION = 30, FACTORS_PER_COST = 5 };
static const char degree_sign[] = "\xc2\xb0";

/* State of the recursive-descent parser. point: where variables are evaluated; depth: nesting of
 * calls. */
typedef struct parser {
  answer_span in; /* the text not yet read */
  answer_budget *budget;
  int point, depth;
  bool failed, has_variables;
  bool in_angle; /* inside the argument of a trigonometric function */
} parser;

static answer_value evaluate_sum(parser *p);
static answer_value evaluate_product(parser *p, bool implicit_only);
static answer_value evaluate_power(parser *p);
static answer_value evaluate_raised(parser *p);

/* Marks the text as not an expression. */
static answer_value fail_expression(parser *p) {
  p->failed = 1;
  return answer_of_ball(ball_undefined());
}

static answer_value negated(answer_value value) {
  return answer_apply('*', answer_of_int(-1), value);
}

static void spend_work(parser *p, long cost) {
  p->budget->left -= cost;
}

/* --- reading --- */

static void skip_characters(parser *p, size_t n) {
  p->in.at += n;
  p->in.n -= n;
}

static char peek_character(parser *p) {
  while (p->in.n > 0 && answer_is_space(*p->in.at)) skip_characters(p, 1);
  return p->in.n > 0 ? *p->in.at : '\0';
}

static bool take_character(parser *p, char c) {
  if (peek_character(p) != c || c == '\0') return false;
  skip_characters(p, 1);
  return true;
}

/* A number in digits: exact if it fits, else a ball. */
typedef struct literal {
  rational q;
  ball x; /* read only if not exact */
  bool exact;
  size_t digits;      /* number of all digits */
  size_t significant; /* number of digits from the first nonzero one on */
} literal;

static const literal no_digits = {.exact = 1, .q = {0, 1}};

/* Appends a decimal digit to the literal's value. */
static void put_digit(literal *l, char c) {
  enum {
    MOST_EXACT_DIGITS = 100
  }; /* a ball can hold such numbers, and their differences in a quotient */
  int64_t value;
  bool fits = l->exact && !__builtin_mul_overflow(l->q.num, 10, &value) &&
              !__builtin_add_overflow(value, c - '0', &value);
  if (fits)
    l->q.num = value;
  else {
    ball before = l->exact ? ball_of_int(l->q.num) : l->x;
    l->exact = 0;
    l->x = ball_add(ball_multiply(before, ball_of_int(10)), ball_of_int(c - '0'));
  }
  ++l->digits;
  l->significant += l->significant > 0 || c != '0';
  if (l->significant > MOST_EXACT_DIGITS) l->x = ball_unsure();
}

static answer_value literal_value(const literal *l) {
  return l->exact ? answer_of_rational(l->q) : answer_of_ball(l->x);
}

/* Reads digits. thousands: a comma is allowed before three digits that no digit follows, if at
 * most three digits precede it. */
static void evaluate_digits(parser *p, literal *l, bool thousands) {
  size_t group = 0, groups = 0;
  while (p->in.n > 0) {
    if (answer_is_digit(*p->in.at)) {
      put_digit(l, *p->in.at);
      ++group;
    } else if (thousands && *p->in.at == ',' && answer_count_digits(p->in, 1) == 3 &&
               (groups == 0 ? group >= 1 && group <= 3 : group == 3)) {
      group = 0;
      ++groups;
    } else
      return;
    skip_characters(p, 1);
  }
}

/* Reads what may follow 0.1 in 0.1\overline{6}, and adds the value of the repeating digits. */
static answer_value evaluate_repeating(parser *p, answer_value value, size_t places) {
  literal block = no_digits;
  if (!answer_starts(p->in, "\\overline")) return value;
  skip_characters(p, strlen("\\overline"));
  bool braces = take_character(p, '{');
  evaluate_digits(p, &block, 0);
  if (block.digits == 0 || block.digits > 9 || places > 8 || !block.exact ||
      (braces && !take_character(p, '}')))
    return fail_expression(p);
  rational ten = {10, 1}, scale, nines, share;
  if (!rational_power(&scale, ten, (int64_t)places) ||
      !rational_power(&nines, ten, (int64_t)block.digits) ||
      !rational_make(&share, block.q.num, nines.num - 1) || !rational_divide(&share, share, scale))
    return fail_expression(p);
  return answer_apply('+', value, answer_of_rational(share));
}

/* Reads the exponent of 1e5 or 1.2E-3, if there is one. An e without digits is Euler's number. */
static answer_value evaluate_exponent(parser *p, answer_value value) {
  answer_span s = p->in;
  if (s.n < 2 || (*s.at != 'e' && *s.at != 'E')) return value;
  size_t sign = s.at[1] == '+' || s.at[1] == '-', digits = answer_count_digits(s, 1 + sign);
  if (digits == 0 || digits > 4) return value;
  int64_t n = 0;
  for (size_t i = 0; i < digits; ++i) n = n * 10 + (s.at[1 + sign + i] - '0');
  skip_characters(p, 1 + sign + digits);
  if (sign && s.at[1] == '-') n = -n;
  return answer_apply('*', value, answer_power(answer_of_int(10), answer_of_int(n)));
}

/* Reads {digits} or one digit; if `bare`, all digits without braces. */
static bool evaluate_part(parser *p, literal *l, bool bare) {
  *l = no_digits;
  bool braces = !bare && take_character(p, '{');
  if (!answer_is_digit(peek_character(p))) return false;
  if (bare || braces)
    evaluate_digits(p, l, 0);
  else {
    put_digit(l, *p->in.at);
    skip_characters(p, 1);
  }
  return l->exact && (!braces || take_character(p, '}'));
}

/* A proper fraction after an integer makes a mixed number: 1\frac{1}{2}, 1 1/2. Numerator and
 * denominator must be digits. An improper one is refused, because it may be meant as a factor or
 * as a mixed number. Any other expression after a number is a factor. */
static answer_value evaluate_mixed(parser *p, answer_value whole) {
  parser ahead = *p;
  bool spaced = p->in.n > 0 && answer_is_space(*p->in.at);
  bool bare = spaced && answer_is_digit(peek_character(&ahead));
  literal num, den;
  rational q;
  peek_character(&ahead);
  if (!bare && !answer_starts(ahead.in, "\\frac")) return whole;
  if (!bare) skip_characters(&ahead, strlen("\\frac"));
  bool fraction = evaluate_part(&ahead, &num, bare) && (!bare || take_character(&ahead, '/')) &&
                  evaluate_part(&ahead, &den, bare);
  if (!fraction) return bare ? fail_expression(p) : whole;
  if (num.q.num == 0 || num.q.num >= den.q.num || !rational_make(&q, num.q.num, den.q.num))
    return fail_expression(p);
  *p = ahead;
  return answer_apply('+', whole, answer_of_rational(q));
}

/* Digits with at most one point: 12, 1.5, .5, 5. Also counts its places and digits. */
static answer_value evaluate_decimal(parser *p, bool thousands) {
  literal l = no_digits;
  evaluate_digits(p, &l, thousands);
  size_t whole = l.digits;
  bool has_point = p->in.n > 0 && *p->in.at == '.';
  if (has_point) {
    skip_characters(p, 1);
    evaluate_digits(p, &l, 0);
  }
  size_t places = l.digits - whole;
  answer_value value = literal_value(&l);
  if (places > 0)
    value =
        answer_apply('/', value, answer_power(answer_of_int(10), answer_of_int((int64_t)places)));
  value.places = (int)places;
  value.digits = (int)l.significant;
  if (l.digits == 0 && !(has_point && answer_starts(p->in, "\\overline")))
    return fail_expression(p);
  return has_point ? evaluate_repeating(p, value, places) : value;
}

static answer_value evaluate_number(parser *p) {
  answer_value value = evaluate_decimal(p, p->depth == 0);
  if (p->failed) return value;
  bool is_integer = value.places == 0 && p->in.at[-1] != '.';
  if (is_integer && p->in.n > 0 && *p->in.at == '_')
    return fail_expression(p); /* a number in another base */
  const char *before = p->in.at;
  value = evaluate_exponent(p, value);
  return is_integer && p->in.at == before ? evaluate_mixed(p, value) : value;
}

/* --- atoms --- */

static answer_value evaluate_enclosed(parser *p, char closing) {
  if (p->depth == MAX_DEPTH) return fail_expression(p);
  ++p->depth;
  answer_value value = evaluate_sum(p);
  --p->depth;
  return take_character(p, closing) ? value : fail_expression(p);
}

/* Reads an argument: {..} or, as in TeX, one digit, letter or command. */
static answer_value evaluate_argument(parser *p) {
  char c = peek_character(p);
  if (take_character(p, '{')) return evaluate_enclosed(p, '}');
  if (answer_is_digit(c)) {
    skip_characters(p, 1);
    return answer_of_int(c - '0');
  }
  if (p->depth == MAX_DEPTH) return fail_expression(p);
  ++p->depth;
  answer_value value = evaluate_power(p);
  --p->depth;
  return value;
}

static answer_value evaluate_root(parser *p) {
  answer_value index = answer_of_int(2);
  spend_work(p, COST_ROOT);
  if (take_character(p, '[')) index = evaluate_enclosed(p, ']');
  answer_value of = peek_character(p) == '(' ? evaluate_power(p) : evaluate_argument(p);
  return answer_power(of, answer_apply('/', answer_of_int(1), index));
}

/* --- functions --- */

typedef enum function_kind {
  PLAIN,
  OF_ANGLE, /* degree signs have a meaning in its argument */
  WITH_BASE /* _ and a base may follow the name: \log_2 */
} function_kind;

/* Functions of a ball, composed of those in arithmetic.h, which return undefined values where
 * needed. */
static ball tangent(ball x) {
  return ball_divide(ball_sin(x), ball_cos(x));
}
static ball cotangent(ball x) {
  return ball_divide(ball_cos(x), ball_sin(x));
}
static ball secant(ball x) {
  return ball_divide(ball_of_int(1), ball_cos(x));
}
static ball cosecant(ball x) {
  return ball_divide(ball_of_int(1), ball_sin(x));
}
/* (e^x + sign e^-x) / 2 */
static ball hyperbolic(ball x, int64_t sign) {
  ball grows = ball_exp(x), falls = ball_exp(ball_negate(x));
  return ball_divide(ball_add(grows, ball_multiply(ball_of_int(sign), falls)), ball_of_int(2));
}
static ball hyperbolic_sine(ball x) {
  return hyperbolic(x, -1);
}
static ball hyperbolic_cosine(ball x) {
  return hyperbolic(x, 1);
}
static ball hyperbolic_tangent(ball x) {
  return ball_divide(hyperbolic(x, -1), hyperbolic(x, 1));
}
static ball arc_cosine(ball x) {
  return ball_subtract(ball_divide(ball_pi(), ball_of_int(2)), ball_asin(x));
}
static ball arc_secant(ball x) {
  return arc_cosine(ball_divide(ball_of_int(1), x));
}
static ball arc_cosecant(ball x) {
  return ball_asin(ball_divide(ball_of_int(1), x));
}

typedef struct function {
  const char *name;
  function_kind kind;
  ball (*of)(ball);
  ball (*inverse)(ball); /* the meaning of the name with ^{-1}; NULL: no common meaning */
} function;

static const function functions[] = {{"arcsin", PLAIN, ball_asin, NULL},
                                     {"arccos", PLAIN, arc_cosine, NULL},
                                     {"arctan", PLAIN, ball_atan, NULL},
                                     {"sin", OF_ANGLE, ball_sin, ball_asin},
                                     {"cos", OF_ANGLE, ball_cos, arc_cosine},
                                     {"tan", OF_ANGLE, tangent, ball_atan},
                                     {"cot", OF_ANGLE, cotangent, NULL},
                                     {"sec", OF_ANGLE, secant, arc_secant},
                                     {"csc", OF_ANGLE, cosecant, arc_cosecant},
                                     {"sinh", PLAIN, hyperbolic_sine, NULL},
                                     {"cosh", PLAIN, hyperbolic_cosine, NULL},
                                     {"tanh", PLAIN, hyperbolic_tangent, NULL},
                                     {"ln", PLAIN, ball_log, NULL},
                                     {"log", WITH_BASE, ball_log, NULL},
                                     {"exp", PLAIN, ball_exp, NULL}};

/* The name at the beginning of s, with or without backslash; *length includes the backslash. */
static answer_span name_at(answer_span s, size_t *length) {
  size_t slash = s.n > 0 && *s.at == '\\', n = answer_count_letters(s, slash);
  *length = slash + n;
  return (answer_span){s.at + slash, n};
}

static const function *function_of(answer_span name) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
    if (name.n == strlen(functions[i].name) && answer_starts(name, functions[i].name))
      return &functions[i];
  return NULL;
}

static bool begins_function(answer_span s) {
  size_t length;
  return function_of(name_at(s, &length)) != NULL;
}

/* True if a factor can begin with c, so that no sign is needed. A bar cannot, because it may close
 * an absolute value. */
static bool begins_factor(char c) {
  return answer_is_letter(c) || answer_is_digit(c) || answer_is_any(c, "\\({.");
}

/* Reads a logarithm's base. Without braces it has all digits if an argument follows: \log_10 7.
 * Otherwise it has only the first digit, as TeX reads \log_23. */
static answer_value evaluate_base(parser *p) {
  parser ahead = *p;
  if (!answer_is_digit(peek_character(&ahead))) return evaluate_argument(p);
  answer_value base = evaluate_decimal(&ahead, 0);
  if (!begins_factor(peek_character(&ahead))) return evaluate_argument(p);
  *p = ahead;
  return base;
}

/* Power and base are between name and argument: \sin^2 x, \log_2 8. \sin^{-1} is the inverse
 * function. A logarithm without base is natural. */
static answer_value evaluate_function(parser *p, const function *f) {
  answer_value exponent = answer_of_int(1), base = answer_of_ball(ball_exp(ball_of_int(1)));
  bool has_exponent = 0, has_base = 0, outer = p->in_angle;
  spend_work(p, COST_FUNCTION);
  for (;;) {
    if (!has_exponent && take_character(p, '^')) {
      exponent = evaluate_raised(p);
      has_exponent = 1;
    } else if (f->kind == WITH_BASE && !has_base && take_character(p, '_')) {
      base = evaluate_base(p);
      has_base = 1;
    } else
      break;
  }
  bool inverse = f->kind == OF_ANGLE && has_exponent && exponent.exact &&
                 rational_equal(exponent.q, (rational){-1, 1});
  if (inverse && f->inverse == NULL) return fail_expression(p);
  if (p->depth == MAX_DEPTH) return fail_expression(p);
  ++p->depth;
  p->in_angle = f->kind == OF_ANGLE && !inverse;
  char c = peek_character(p);
  answer_value of = c == '(' || c == '{' ? evaluate_power(p) : evaluate_product(p, 1);
  p->in_angle = outer;
  --p->depth;
  if (p->failed || p->budget->left < 0) return answer_of_ball(ball_unsure());
  ball x = answer_ball(&of);
  if (inverse) return answer_of_ball(f->inverse(x));
  answer_value value = answer_of_ball(f->of(x));
  if (has_base) {
    spend_work(p, COST_FUNCTION);
    value.x = ball_divide(value.x, ball_log(answer_ball(&base)));
  }
  if (!has_exponent) return value;
  spend_work(p, COST_FUNCTION);
  return answer_power(value, exponent);
}

/* --- variables --- */

/* A number between 0 and 1. */
static double hash_uniform(uint64_t hash) {
  hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
  hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
  return (double)((hash ^ hash >> 33) >> 11) * 0x1p-53;
}

/* The value of the variable whose name has that hash. */
static answer_value variable(parser *p, uint64_t hash) {
  hash = hash_64(hash, &p->point, sizeof p->point);
  double u = hash_uniform(hash), x = p->point % 2 == 0 ? 0.2 + 0.7 * u : 1.2 + 1.8 * u;
  if (p->point == ANSWER_NEGATIVE) x = -1.2 - 1.8 * u;
  if (p->point == ANSWER_FAR) x = 40 + 160 * u;
  if (p->point == ANSWER_FAR_NEGATIVE) x = -40 - 160 * u;
  if (p->point >= ANSWER_NEAR_ONE) x = 0.98 + 0.04 * u;
  p->has_variables = 1;
  return answer_of_ball(ball_of_double(x));
}

/* The value of f(argument): a hash of the name, the argument's value and the point. */
static answer_value evaluate_unknown_function(parser *p, uint64_t hash) {
  enum { BITS = 40 };
  p->has_variables = 1;
  skip_characters(p, 1);
  answer_value of = evaluate_enclosed(p, ')');
  if (p->failed || (!of.exact && of.x.state != BALL_KNOWN)) return of;
  hash = hash_64(hash_64(hash, "(", 1), &p->point, sizeof p->point);
  if (of.exact)
    hash = hash_64(hash_64(hash, &of.q.num, sizeof of.q.num), &of.q.den, sizeof of.q.den);
  else {
    int64_t place;
    ball scaled = ball_multiply(of.x, ball_of_int(INT64_C(1) << BITS));
    if (!ball_floor(scaled, &place)) return answer_of_ball(ball_unsure());
    hash = hash_64(hash, &place, sizeof place);
  }
  return answer_of_ball(ball_of_double(0.5 + hash_uniform(hash)));
}

/* True if s begins with a number in parentheses; then the letter before it is a function. */
static bool begins_number_in_parentheses(answer_span s) {
  size_t i = 1, digits = 0;
  if (s.n < 3 || *s.at != '(') return false;
  for (; i < s.n && (answer_is_any(s.at[i], " -.") || answer_is_digit(s.at[i])); ++i)
    if (answer_is_digit(s.at[i])) ++digits;
  return digits > 0 && i < s.n && s.at[i] == ')';
}

/* Reads a letter or a command, with its index, as a variable or a function. */
static answer_value evaluate_variable(parser *p, size_t length) {
  uint64_t hash = hash_64(HASH_64_START, p->in.at, length);
  bool names_function = length == 1 && answer_is_any(*p->in.at, "fg");
  skip_characters(p, length);
  if (take_character(p, '_')) {
    bool braces = take_character(p, '{');
    hash = hash_64(hash, "_", 1);
    for (bool more = 1; more;) { /* without braces: all digits, as in exponents */
      char c = peek_character(p);
      if (!answer_is_letter(c) && !answer_is_digit(c)) return fail_expression(p);
      hash = hash_64(hash, &c, 1);
      skip_characters(p, 1);
      more = braces ? peek_character(p) != '}'
                    : answer_is_digit(c) && p->in.n > 0 && answer_is_digit(*p->in.at);
    }
    if (braces) take_character(p, '}');
  }
  bool opens = peek_character(p) == '(' && (names_function || begins_number_in_parentheses(p->in));
  return opens ? evaluate_unknown_function(p, hash) : variable(p, hash);
}

/* Reads \vec{v} or \hat i: a variable other than v or i. */
static answer_value evaluate_accent(parser *p, size_t length) {
  uint64_t hash = hash_64(HASH_64_START, p->in.at, length);
  skip_characters(p, length);
  bool braces = take_character(p, '{');
  char c = peek_character(p);
  if (!answer_is_letter(c)) return fail_expression(p);
  skip_characters(p, 1);
  if (braces && !take_character(p, '}')) return fail_expression(p);
  return variable(p, hash_64(hash, &c, 1));
}

/* --- names --- */

static answer_value evaluate_fraction(parser *p) {
  answer_value above = evaluate_argument(p), below = evaluate_argument(p);
  return answer_apply('/', above, below);
}

static answer_value evaluate_binomial(parser *p) {
  answer_value above = evaluate_argument(p), below = evaluate_argument(p);
  if (below.exact) spend_work(p, (long)(below.q.num < 0 ? 0 : below.q.num) / FACTORS_PER_COST);
  return answer_binomial(above, below);
}

/* Reads names of functions and constants, with or without backslash. */
static answer_value evaluate_name(parser *p) {
  size_t length;
  answer_span name = name_at(p->in, &length);
  bool is_command = *p->in.at == '\\';
  const function *f = function_of(name);
  if (name.n == 0) return fail_expression(p);
  if (f != NULL) {
    skip_characters(p, length);
    return evaluate_function(p, f);
  }
  if (name.n == 4 && answer_starts(name, "sqrt")) {
    skip_characters(p, length);
    return evaluate_root(p);
  }
  if (name.n == 2 && answer_starts(name, "pi")) {
    skip_characters(p, length);
    return answer_of_ball(ball_pi());
  }
  if (is_command && name.n == 4 && answer_starts(name, "frac")) {
    skip_characters(p, length);
    return evaluate_fraction(p);
  }
  if (is_command && name.n == 5 && answer_starts(name, "binom")) {
    skip_characters(p, length);
    return evaluate_binomial(p);
  }
  if (is_command && answer_is_variable(name)) return evaluate_variable(p, length);
  if (is_command && answer_is_accent(name)) return evaluate_accent(p, length);
  /* The name is an unknown command, a word, or a unit without a number before it. */
  if (is_command || length >= 3 || (length == 2 && answer_is_unit(name))) return fail_expression(p);
  if (*name.at == 'e') {
    skip_characters(p, 1);
    return answer_of_ball(ball_exp(ball_of_int(1)));
  }
  return evaluate_variable(p, 1);
}

static answer_value evaluate_atom(parser *p) {
  char c = peek_character(p);
  spend_work(p, COST_ATOM);
  if (p->budget->left < 0) return fail_expression(p);
  if (answer_is_digit(c) || c == '.') return evaluate_number(p);
  if (take_character(p, '(')) return evaluate_enclosed(p, ')');
  if (take_character(p, '[')) return evaluate_enclosed(p, ']');
  if (take_character(p, '{')) return evaluate_enclosed(p, '}');
  if (take_character(p, '|')) {
    answer_value value = evaluate_enclosed(p, '|');
    if (value.exact && value.q.num < 0) value.q.num = -value.q.num;
    if (!value.exact) value.x = ball_abs(value.x);
    value.places = -1;
    return value;
  }
  return answer_is_letter(c) || c == '\\' ? evaluate_name(p) : fail_expression(p);
}

/* --- operations --- */

static answer_value evaluate_factorial(parser *p, answer_value of) {
  if (of.exact && of.q.num > 0) spend_work(p, (long)of.q.num / FACTORS_PER_COST);
  if (!of.exact) spend_work(p, COST_FUNCTION);
  if (p->budget->left < 0) return fail_expression(p);
  return answer_factorial(of);
}

/* The value of a number with a degree sign: converted to radians within a trigonometric argument.
 */
static answer_value evaluate_degrees(parser *p, answer_value of) {
  skip_characters(p, strlen(degree_sign));
  if (!p->in_angle) return of;
  answer_value pi = answer_of_ball(ball_pi());
  return answer_apply('/', answer_apply('*', of, pi), answer_of_int(180));
}

/* Reads an exponent. Without braces it has all digits: whoever writes 2^10 means 1024, although
 * TeX reads 2^1 0. */
static answer_value evaluate_raised(parser *p) {
  bool minus = take_character(p, '-');
  answer_value exponent =
      answer_is_digit(peek_character(p)) ? evaluate_decimal(p, 0) : evaluate_argument(p);
  return minus ? negated(exponent) : exponent;
}

static answer_value evaluate_power(parser *p) {
  answer_value value = evaluate_atom(p);
  while (!p->failed) {
    char c = peek_character(p);
    if (c == '!') {
      skip_characters(p, 1);
      value = evaluate_factorial(p, value);
    } else if (answer_starts(p->in, degree_sign))
      value = evaluate_degrees(p, value);
    else
      break;
  }
  if (p->failed || !take_character(p, '^')) return value;
  answer_value exponent = evaluate_raised(p);
  if (!exponent.exact || exponent.q.den > 1) spend_work(p, COST_FUNCTION);
  if (p->budget->left < 0) return fail_expression(p);
  return answer_power(value, exponent);
}

/* Reads a product. implicit_only: the argument of a function, which ends before any sign and any
 * other function. */
static answer_value evaluate_product(parser *p, bool implicit_only) {
  answer_value value = evaluate_power(p);
  while (!p->failed) {
    bool after_digit =
        answer_is_digit(p->in.at[-1]); /* "1 2" and "1 .2" are not products, "x 2" is one */
    char c = peek_character(p);
    if (!implicit_only && (c == '*' || c == '/')) {
      skip_characters(p, 1);
      bool minus = take_character(p, '-');
      answer_value right = evaluate_power(p);
      if (minus) right = negated(right);
      value = answer_apply(c, value, right);
    } else if (begins_factor(c) && !((answer_is_digit(c) || c == '.') && after_digit) &&
               !(implicit_only && begins_function(p->in)))
      value = answer_apply('*', value, evaluate_power(p));
    else
      break;
  }
  return value;
}

static answer_value evaluate_sum(parser *p) {
  bool minus = take_character(p, '-');
  if (!minus) take_character(p, '+');
  answer_value value = evaluate_product(p, 0);
  if (minus) {
    answer_value opposite = negated(value);
    opposite.places = value.places;
    opposite.digits = value.digits;
    value = opposite;
  }
  while (!p->failed) {
    char c = peek_character(p);
    if (c != '+' && c != '-') break;
    skip_characters(p, 1);
    value = answer_apply(c, value, evaluate_product(p, 0));
  }
  return value;
}

answer_known answer_evaluate(answer_value *out, answer_span s, int point, answer_budget *budget) {
  assert(point >= 0 && point < ANSWER_POINTS);
  parser p = {.in = s, .budget = budget, .point = point};
  *out = evaluate_sum(&p);
  bool whole = !p.failed && peek_character(&p) == '\0' && p.in.n == 0;
  out->has_variables = p.has_variables;
  if (budget->left < 0) return ANSWER_UNSURE;
  if (!whole) return ANSWER_NO_EXPRESSION;
  if (out->exact || out->x.state == BALL_KNOWN) return ANSWER_KNOWN;
  return out->x.state == BALL_UNSURE ? ANSWER_UNSURE : ANSWER_NO_VALUE;
}
