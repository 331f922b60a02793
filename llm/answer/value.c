/* The value of an expression: LaTeX or plain, of numbers or with variables.
 *
 *   sum     = ["+" | "-"] product { ("+" | "-") product }
 *   product = power { ["*" | "/"] power }          without a sign between them: a product, too
 *   power   = atom { "!" } ["^" exponent]
 *   atom    = number | "(" sum ")" | "{" sum "}" | "|" sum "|" | \frac.. | \sqrt.. | \binom..
 *           | function argument | \pi | e | letter ["_" index]
 *
 * A variable's value at a point is a hash of its name, so two expressions that agree at all points
 * are the same function but for an accident.
 */
#include "llm/answer/internal.h"

#include "core/base/hash.h"

#include <math.h>
#include <string.h>

enum { MAX_DEPTH = 40 };

typedef struct parser {
  answer_span in; /* what is left */
  int point, depth, failed, has_variables;
} parser;

static answer_value read_sum(parser *p);
static answer_value read_product(parser *p, int implicit_only);
static answer_value read_power(parser *p);

static answer_value fail(parser *p) {
  p->failed = 1;
  return answer_of_double(NAN);
}

/* --- reading -------------------------------------------------------------------------------------
 */

static void skip(parser *p, size_t n) {
  p->in.at += n;
  p->in.n -= n;
}

static char peek(parser *p) {
  while (p->in.n > 0 && answer_is_space(*p->in.at)) skip(p, 1);
  return p->in.n > 0 ? *p->in.at : '\0';
}

static int take(parser *p, char c) {
  if (peek(p) != c || c == '\0') return 0;
  skip(p, 1);
  return 1;
}

static size_t count_digits(answer_span s, size_t from) {
  size_t n = 0;
  while (from + n < s.n && answer_is_digit(s.at[from + n])) ++n;
  return n;
}

/* Digits into an exact value where it fits, and a double. thousands: a comma may stand before three
 * digits that no digit follows, if at most three stand before it. */
typedef struct literal {
  rational q;
  double x;
  int exact;
  size_t digits;
} literal;

static void put_digit(literal *l, char c) {
  int64_t value;
  l->x = l->x * 10 + (c - '0');
  ++l->digits;
  if (l->exact && !__builtin_mul_overflow(l->q.num, 10, &value) &&
      !__builtin_add_overflow(value, c - '0', &value))
    l->q.num = value;
  else
    l->exact = 0;
}

static void read_digits(parser *p, literal *l, int thousands) {
  size_t group = 0, groups = 0;
  while (p->in.n > 0) {
    if (answer_is_digit(*p->in.at)) {
      put_digit(l, *p->in.at);
      ++group;
    } else if (thousands && *p->in.at == ',' && count_digits(p->in, 1) == 3 &&
               (groups == 0 ? group >= 1 && group <= 3 : group == 3)) {
      group = 0;
      ++groups;
    } else
      return;
    skip(p, 1);
  }
}

/* 0.1\overline{6}: what the digits under the line add. */
static answer_value read_repeating(parser *p, answer_value value, size_t places) {
  literal block = {.exact = 1, .q = {0, 1}};
  if (!answer_starts(p->in, "\\overline")) return value;
  skip(p, strlen("\\overline"));
  int braces = take(p, '{');
  read_digits(p, &block, 0);
  if (block.digits == 0 || block.digits > 9 || places > 8 || !block.exact ||
      (braces && !take(p, '}')))
    return fail(p);
  rational ten = {10, 1}, scale, nines, share;
  if (!rational_power(&scale, ten, (int64_t)places) ||
      !rational_power(&nines, ten, (int64_t)block.digits) ||
      !rational_make(&share, block.q.num, nines.num - 1) || !rational_divide(&share, share, scale))
    return fail(p);
  return answer_apply('+', value, answer_of_rational(share));
}

/* 1e5 and 1.2E-3; a plain e is Euler's number. */
static answer_value read_exponent(parser *p, answer_value value) {
  answer_span s = p->in;
  if (s.n < 2 || (*s.at != 'e' && *s.at != 'E')) return value;
  size_t sign = s.at[1] == '+' || s.at[1] == '-', digits = count_digits(s, 1 + sign);
  if (digits == 0 || digits > 4) return value;
  int64_t n = 0;
  for (size_t i = 0; i < digits; ++i) n = n * 10 + (s.at[1 + sign + i] - '0');
  skip(p, 1 + sign + digits);
  if (sign && s.at[1] == '-') n = -n;
  return answer_apply(
      '*', value,
      answer_power(answer_of_rational((rational){10, 1}), answer_of_rational((rational){n, 1})));
}

/* {digits} or one digit; digits if bare. */
static int read_part(parser *p, literal *l, int bare) {
  *l = (literal){.exact = 1, .q = {0, 1}};
  int braces = !bare && take(p, '{');
  if (!answer_is_digit(peek(p))) return 0;
  if (bare || braces)
    read_digits(p, l, 0);
  else {
    put_digit(l, *p->in.at);
    skip(p, 1);
  }
  return l->exact && (!braces || take(p, '}'));
}

/* A proper fraction behind a whole number makes a mixed number: 1\frac{1}{2}, 1 1/2. Its parts are
 * digits; anything else behind a number is a factor. */
static answer_value read_mixed(parser *p, answer_value whole) {
  parser ahead = *p;
  int spaced = p->in.n > 0 && answer_is_space(*p->in.at);
  int bare = spaced && answer_is_digit(peek(&ahead));
  literal num, den;
  rational q;
  peek(&ahead);
  if (!bare && !answer_starts(ahead.in, "\\frac")) return whole;
  if (!bare) skip(&ahead, strlen("\\frac"));
  int proper = read_part(&ahead, &num, bare) && (!bare || take(&ahead, '/')) &&
               read_part(&ahead, &den, bare) && num.q.num > 0 && num.q.num < den.q.num &&
               rational_make(&q, num.q.num, den.q.num);
  if (!proper) return bare ? fail(p) : whole;
  *p = ahead;
  return answer_apply('+', whole, answer_of_rational(q));
}

static answer_value read_number(parser *p) {
  literal l = {.exact = 1, .q = {0, 1}};
  read_digits(p, &l, p->depth == 0);
  answer_value value = {l.exact, l.q, l.x, 0, -1};
  if (p->in.n == 0 || *p->in.at != '.') {
    if (l.digits == 0) return fail(p);
    if (p->in.n > 0 && *p->in.at == '_') return fail(p); /* in another base */
    const char *before = p->in.at;
    value = read_exponent(p, value);
    return p->in.at == before ? read_mixed(p, value) : value;
  }
  skip(p, 1);
  size_t whole = l.digits;
  read_digits(p, &l, 0);
  size_t places = l.digits - whole;
  if (l.digits == 0 && !answer_starts(p->in, "\\overline")) return fail(p);
  rational scale;
  value = answer_of_double(l.x / pow(10, (double)places));
  if (l.exact && rational_power(&scale, (rational){10, 1}, (int64_t)places) &&
      rational_divide(&value.q, l.q, scale))
    value = answer_of_rational(value.q);
  value.places = (int)places;
  return read_exponent(p, read_repeating(p, value, places));
}

/* --- atoms ---------------------------------------------------------------------------------------
 */

/* What has no finite value fails at once, so that 1/(1/0) is no number. */
static answer_value checked(parser *p, answer_value value) {
  return isfinite(value.x) ? value : fail(p);
}

static answer_value read_enclosed(parser *p, char closing) {
  if (p->depth == MAX_DEPTH) return fail(p);
  ++p->depth;
  answer_value value = read_sum(p);
  --p->depth;
  return take(p, closing) ? value : fail(p);
}

/* {..} or, as TeX reads it, one digit, letter or command. */
static answer_value read_argument(parser *p) {
  char c = peek(p);
  if (take(p, '{')) return read_enclosed(p, '}');
  if (answer_is_digit(c)) {
    skip(p, 1);
    return answer_of_rational((rational){c - '0', 1});
  }
  if (p->depth == MAX_DEPTH) return fail(p);
  ++p->depth;
  answer_value value = read_power(p);
  --p->depth;
  return value;
}

static answer_value read_root(parser *p) {
  answer_value index = answer_of_rational((rational){2, 1});
  if (take(p, '[')) index = read_enclosed(p, ']');
  answer_value of = peek(p) == '(' ? read_power(p) : read_argument(p);
  return answer_power(of, answer_apply('/', answer_of_rational((rational){1, 1}), index));
}

static double call(size_t function, double x) {
  switch (function) {
  case 0:
    return asin(x);
  case 1:
    return acos(x);
  case 2:
    return atan(x);
  case 3:
    return sin(x);
  case 4:
    return cos(x);
  case 5:
    return tan(x);
  case 6:
    return 1 / tan(x);
  case 7:
    return 1 / cos(x);
  case 8:
    return 1 / sin(x);
  case 9:
  case 10:
    return log(x);
  default:
    return exp(x);
  }
}

static const char *const functions[] = {"arcsin", "arccos", "arctan", "sin", "cos", "tan",
                                        "cot",    "sec",    "csc",    "ln",  "log", "exp"};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions, FUNCTION_LOG = 10 };

/* Power and base stand between the name and the argument: \sin^2 x, \log_2 8. A logarithm without a
 * base is the natural one. */
static answer_value read_function(parser *p, size_t function) {
  answer_value exponent = answer_of_rational((rational){1, 1}), base = answer_of_double(exp(1));
  int has_exponent = 0;
  for (;;) {
    if (take(p, '^')) {
      exponent = read_argument(p);
      has_exponent = 1;
    } else if (function == FUNCTION_LOG && take(p, '_'))
      base = read_argument(p);
    else
      break;
  }
  if (p->depth == MAX_DEPTH) return fail(p);
  ++p->depth;
  char c = peek(p);
  answer_value of = c == '(' || c == '{' ? read_power(p) : read_product(p, 1);
  --p->depth;
  answer_value value = answer_of_double(call(function, of.x));
  if (function == FUNCTION_LOG) value.x /= log(base.x);
  return checked(p, has_exponent ? answer_power(value, exponent) : value);
}

/* A letter or a command, with its index, as a variable. */
static answer_value read_variable(parser *p, size_t length) {
  uint64_t hash = hash_64(HASH_64_START, p->in.at, length);
  skip(p, length);
  if (take(p, '_')) {
    int braces = take(p, '{');
    hash = hash_64(hash, "_", 1);
    do {
      char c = peek(p);
      if (!answer_is_letter(c) && !answer_is_digit(c)) return fail(p);
      hash = hash_64(hash, &c, 1);
      skip(p, 1);
    } while (braces && peek(p) != '}');
    if (braces) take(p, '}');
  }
  hash = hash_64(hash, &p->point, sizeof p->point);
  hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
  hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
  double u = (double)((hash ^ hash >> 33) >> 11) * 0x1p-53;
  p->has_variables = 1;
  if (p->point == ANSWER_NEGATIVE_POINT) return answer_of_double(-1.2 - 1.8 * u);
  return answer_of_double(p->point % 2 == 0 ? 0.2 + 0.7 * u : 1.2 + 1.8 * u);
}

/* Names of functions and constants, with a backslash or without. */
static answer_value read_name(parser *p) {
  size_t slash = *p->in.at == '\\', length = 0;
  while (slash + length < p->in.n && answer_is_letter(p->in.at[slash + length])) ++length;
  if (length == 0) return fail(p);
  answer_span name = {p->in.at + slash, length};
  for (size_t i = 0; i < N_FUNCTIONS; ++i) {
    size_t n = strlen(functions[i]);
    if (length != n || !answer_starts(name, functions[i])) continue;
    skip(p, slash + n);
    return read_function(p, i);
  }
  if (answer_starts(name, "sqrt") && length == 4) {
    skip(p, slash + 4);
    return read_root(p);
  }
  if (answer_starts(name, "pi") && length == 2) {
    skip(p, slash + 2);
    return answer_of_double(acos(-1));
  }
  if (slash && (answer_is(name, "frac") || answer_is(name, "binom"))) {
    int is_fraction = *name.at == 'f';
    skip(p, is_fraction ? 5 : 6);
    answer_value above = read_argument(p), below = read_argument(p);
    return checked(p,
                   is_fraction ? answer_apply('/', above, below) : answer_binomial(above, below));
  }
  if (slash) {
    static const char *const no_values[] = {"infty", "emptyset", "le",       "ge",    "ne",  "cup",
                                            "cap",   "pm",       "mp",       "begin", "end", "circ",
                                            "angle", "triangle", "overline", "to",    "dots"};
    for (size_t i = 0; i < sizeof no_values / sizeof *no_values; ++i)
      if (answer_is(name, no_values[i])) return fail(p);
    return read_variable(p, length + 1);
  }
  if (length >= 3) return fail(p); /* a word */
  if (*name.at == 'e') {
    skip(p, 1);
    return answer_of_double(exp(1));
  }
  return read_variable(p, 1);
}

static answer_value read_atom(parser *p) {
  char c = peek(p);
  if (answer_is_digit(c) || c == '.') return read_number(p);
  if (take(p, '(')) return read_enclosed(p, ')');
  if (take(p, '[')) return read_enclosed(p, ']');
  if (take(p, '{')) return read_enclosed(p, '}');
  if (take(p, '|')) {
    answer_value value = read_enclosed(p, '|');
    if (value.exact && value.q.num < 0) value.q.num = -value.q.num;
    value.x = fabs(value.x);
    return value;
  }
  return answer_is_letter(c) || c == '\\' ? read_name(p) : fail(p);
}

/* --- operations ----------------------------------------------------------------------------------
 */

/* The digits of an exponent without braces: 2^10 is 1024 to those who write it, although TeX sees
 * 2^1 0. */
static answer_value read_whole(parser *p) {
  literal l = {.exact = 1, .q = {0, 1}};
  read_digits(p, &l, 0);
  return (answer_value){l.exact, l.q, l.x, 0, -1};
}

static answer_value read_power(parser *p) {
  answer_value value = read_atom(p);
  while (!p->failed && take(p, '!')) value = checked(p, answer_factorial(value));
  if (p->failed || !take(p, '^')) return value;
  int minus = take(p, '-');
  answer_value exponent = answer_is_digit(peek(p)) ? read_whole(p) : read_argument(p);
  if (minus) exponent = answer_apply('*', answer_of_rational((rational){-1, 1}), exponent);
  return checked(p, answer_power(value, exponent));
}

/* Whether a factor can begin with c, so that no sign is needed. A bar may close what one opened. */
static int begins_factor(char c) {
  return answer_is_letter(c) || answer_is_digit(c) || answer_is_any(c, "\\({.");
}

/* implicit_only: the argument of a function, which ends before any sign. */
static answer_value read_product(parser *p, int implicit_only) {
  answer_value value = read_power(p);
  while (!p->failed) {
    int after_digit = answer_is_digit(p->in.at[-1]); /* 1 2 is no product, x 2 is one */
    char c = peek(p);
    if (!implicit_only && (c == '*' || c == '/')) {
      skip(p, 1);
      int minus = take(p, '-');
      answer_value right = read_power(p);
      if (minus) right = answer_apply('*', answer_of_rational((rational){-1, 1}), right);
      value = checked(p, answer_apply(c, value, right));
    } else if (begins_factor(c) && !(answer_is_digit(c) && after_digit))
      value = answer_apply('*', value, read_power(p));
    else
      break;
  }
  return value;
}

static answer_value read_sum(parser *p) {
  int minus = take(p, '-');
  if (!minus) take(p, '+');
  answer_value value = read_product(p, 0);
  int places = value.places;
  if (minus) {
    value = answer_apply('*', answer_of_rational((rational){-1, 1}), value);
    value.places = places;
  }
  while (!p->failed) {
    char c = peek(p);
    if (c != '+' && c != '-') break;
    skip(p, 1);
    value = answer_apply(c, value, read_product(p, 0));
  }
  return value;
}

int answer_evaluate(answer_value *out, answer_span s, int point) {
  parser p = {s, point, 0, 0, 0};
  *out = read_sum(&p);
  out->has_variables = p.has_variables;
  return !p.failed && peek(&p) == '\0' && p.in.n == 0 && isfinite(out->x);
}
