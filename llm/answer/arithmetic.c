/* Fractions, balls and values, implemented with FLINT and Arb. Computations that could take long
 * are refused before calling the libraries: exponents beyond max_exponent, and function arguments
 * that 384 bits cannot reduce. */
#include "llm/answer/arithmetic.h"

#include "core/base/hash.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#if __has_include(<flint/fmpq.h>)
#include <flint/fmpq.h>
#else
#include <fmpq.h>
#endif

/* --- fractions --- */

typedef void (*fraction_operation)(fmpq_t out, const fmpq_t a, const fmpq_t b);

static bool rational_of_fmpq(rational *out, const fmpq_t q) {
  if (!fmpz_fits_si(fmpq_numref(q)) || !fmpz_fits_si(fmpq_denref(q))) return false;
  rational got = {fmpz_get_si(fmpq_numref(q)), fmpz_get_si(fmpq_denref(q))};
  if (got.num == INT64_MIN) return false;
  *out = got;
  return true;
}

static bool rational_apply(rational *out, fraction_operation operation, rational a, rational b) {
  fmpq_t x, y;
  fmpq_init(x);
  fmpq_init(y);
  fmpq_set_si(x, a.num, (ulong)a.den);
  fmpq_set_si(y, b.num, (ulong)b.den);
  operation(x, x, y);
  bool fits = rational_of_fmpq(out, x);
  fmpq_clear(x);
  fmpq_clear(y);
  return fits;
}

bool rational_make(rational *out, int64_t num, int64_t den) {
  if (den == 0 || num == INT64_MIN || den == INT64_MIN) return false;
  return rational_apply(out, fmpq_div, (rational){num, 1}, (rational){den, 1});
}

bool rational_add(rational *out, rational a, rational b) {
  return rational_apply(out, fmpq_add, a, b);
}

bool rational_subtract(rational *out, rational a, rational b) {
  return rational_apply(out, fmpq_sub, a, b);
}

bool rational_multiply(rational *out, rational a, rational b) {
  return rational_apply(out, fmpq_mul, a, b);
}

bool rational_divide(rational *out, rational a, rational b) {
  return b.num != 0 && rational_apply(out, fmpq_div, a, b);
}

bool rational_power(rational *out, rational a, int64_t n) {
  enum { MOST = 63 }; /* 2^63 does not fit */
  if (a.num == 0 && n <= 0) return false;
  if (a.den == 1 && a.num >= -1 && a.num <= 1)
    n = n == 0 ? 0 : n % 2 == 0 ? 2 : 1; /* 0, 1 and -1 have at most two different powers */
  if (n > MOST || n < -MOST) return false;
  fmpq_t x;
  fmpq_init(x);
  fmpq_set_si(x, a.num, (ulong)a.den);
  fmpq_pow_si(x, x, n);
  bool fits = rational_of_fmpq(out, x);
  fmpq_clear(x);
  return fits;
}

/* --- to Arb and back --- */

static const slong max_exponent = WORD(1) << 44;

/* x as a number of Arb, valid as long as *x exists; must not be cleared. */
static arb_struct view(const ball *x) {
  assert(x->state == BALL_KNOWN);
  arb_struct out = x->number;
  if (ARF_HAS_PTR(arb_midref(&out))) ARF_PTR_D(arb_midref(&out)) = (mp_ptr)x->limb;
  return out;
}

static bool is_in_range(const fmpz_t exponent, slong most) {
  return !COEFF_IS_MPZ(*exponent) && *exponent <= most && *exponent >= -most;
}

/* A result of Arb, rounded to BALL_BITS bits; clears x. */
static ball ball_of_arb(arb_t x) {
  ball out = ball_unsure();
  if (ARF_SIZE(arb_midref(x)) > BALL_LIMBS) arb_set_round(x, x, BALL_BITS);
  if (arb_is_finite(x) && is_in_range(ARF_EXPREF(arb_midref(x)), max_exponent) &&
      is_in_range(MAG_EXPREF(arb_radref(x)), 2 * max_exponent)) {
    out.state = BALL_KNOWN;
    out.number = *x;
    if (ARF_HAS_PTR(arb_midref(x))) {
      mp_size_t limbs = ARF_SIZE(arb_midref(x));
      memcpy(out.limb, ARF_PTR_D(arb_midref(x)), (size_t)limbs * sizeof *out.limb);
      ARF_PTR_D(arb_midref(&out.number)) = NULL;
    }
  }
  arb_clear(x);
  return out;
}

/* Applies Arb's function f to a known x. */
static ball arb_of_one(void (*f)(arb_t, const arb_t, slong), ball x) {
  arb_struct a = view(&x);
  arb_t out;
  arb_init(out);
  f(out, &a, BALL_BITS);
  return ball_of_arb(out);
}

static ball arb_of_two(void (*f)(arb_t, const arb_t, const arb_t, slong), ball x, ball y) {
  if (x.state == BALL_UNDEFINED || y.state == BALL_UNDEFINED) return ball_undefined();
  if (x.state == BALL_UNSURE || y.state == BALL_UNSURE) return ball_unsure();
  arb_struct a = view(&x), b = view(&y);
  arb_t out;
  arb_init(out);
  f(out, &a, &b, BALL_BITS);
  return ball_of_arb(out);
}

static slong exponent_of(const ball *x) {
  return ARF_EXP(arb_midref(&x->number));
}

/* True if the radius of a known x is at least 2^power. */
static bool is_wide(const ball *x, slong power) {
  return mag_cmp_2exp_si(arb_radref(&x->number), power) >= 0;
}

/* --- making balls --- */

ball ball_undefined(void) {
  return (ball){.state = BALL_UNDEFINED};
}

ball ball_unsure(void) {
  return (ball){.state = BALL_UNSURE};
}

ball ball_of_int(int64_t n) {
  arb_t out;
  arb_init(out);
  arb_set_si(out, n);
  return ball_of_arb(out);
}

ball ball_of_double(double x) {
  arb_t out;
  assert(isfinite(x));
  arb_init(out);
  arb_set_d(out, x);
  return ball_of_arb(out);
}

ball ball_of_rational(rational q) {
  return q.den == 1 ? ball_of_int(q.num) : ball_divide(ball_of_int(q.num), ball_of_int(q.den));
}

ball ball_pi(void) {
  arb_t out;
  arb_init(out);
  arb_const_pi(out, BALL_BITS);
  return ball_of_arb(out);
}

double ball_to_double(ball x) {
  arb_struct a = view(&x);
  return arf_get_d(arb_midref(&a), ARF_RND_NEAR);
}

/* --- operations on balls --- */

ball ball_negate(ball x) {
  if (!ARF_IS_SPECIAL(arb_midref(&x.number))) ARF_NEG(arb_midref(&x.number));
  return x;
}

ball ball_abs(ball x) {
  return ARF_SGNBIT(arb_midref(&x.number)) ? ball_negate(x) : x;
}

ball ball_add(ball x, ball y) {
  return arb_of_two(arb_add, x, y);
}

ball ball_subtract(ball x, ball y) {
  return arb_of_two(arb_sub, x, y);
}

ball ball_multiply(ball x, ball y) {
  return arb_of_two(arb_mul, x, y);
}

ball ball_divide(ball x, ball y) {
  bool known = x.state == BALL_KNOWN && y.state == BALL_KNOWN;
  if (known && ball_may_be_zero(y)) return ball_undefined();
  if (known && arb_rel_accuracy_bits(&y.number) < 1) return ball_unsure(); /* y is too close to 0 */
  return arb_of_two(arb_div, x, y);
}

ball ball_power(ball x, int64_t n) {
  if (n == 0) return ball_of_int(1);
  if (n < 0) x = ball_divide(ball_of_int(1), x);
  if (x.state != BALL_KNOWN) return x;
  arb_struct a = view(&x);
  arb_t out;
  arb_init(out);
  arb_pow_ui(out, &a, n < 0 ? -(ulong)n : (ulong)n, BALL_BITS);
  return ball_of_arb(out);
}

/* --- functions of balls --- */

/* True if x is certainly negative. */
static bool ball_is_negative(ball x) {
  if (x.state != BALL_KNOWN) return false;
  arb_struct a = view(&x);
  return arb_is_negative(&a);
}

ball ball_sqrt(ball x) {
  if (x.state != BALL_KNOWN) return x;
  return ball_is_negative(x) ? ball_undefined() : arb_of_one(arb_sqrtpos, x);
}

ball ball_exp(ball x) {
  if (x.state != BALL_KNOWN) return x;
  slong exponent = exponent_of(&x);
  if (exponent > 40 || (!ball_may_be_zero(x) && exponent < -250) || is_wide(&x, -2))
    return ball_unsure();
  return arb_of_one(arb_exp, x);
}

ball ball_log(ball x) {
  if (x.state != BALL_KNOWN) return x;
  arb_struct a = view(&x);
  return arb_is_positive(&a) ? arb_of_one(arb_log, x) : ball_undefined();
}

/* The sine or the cosine. If one is so close to 1 that it cannot be distinguished from 1, such as
 * cos(10^-50), the result is unsure; the other is then small and not zero. */
static ball sine_or_cosine(ball x, bool is_sine) {
  if (x.state != BALL_KNOWN) return x;
  if (exponent_of(&x) > 60 || is_wide(&x, -2)) return ball_unsure();
  ball sine = arb_of_one(arb_sin, x), cosine = arb_of_one(arb_cos, x);
  const ball *other = is_sine ? &cosine : &sine;
  if (!ball_may_be_zero(*other) && exponent_of(other) < -125) return ball_unsure();
  return is_sine ? sine : cosine;
}

ball ball_sin(ball x) {
  return sine_or_cosine(x, true);
}

ball ball_cos(ball x) {
  return sine_or_cosine(x, false);
}

ball ball_atan(ball x) {
  if (x.state != BALL_KNOWN) return x;
  return exponent_of(&x) > 100 ? ball_unsure()
                               : arb_of_one(arb_atan, x); /* the result is too close to pi / 2 */
}

/* asin x = 2 atan(x / (1 + sqrt(1 - x^2))), which is also defined if x may be 1 */
ball ball_asin(ball x) {
  ball one = ball_of_int(1), root = ball_sqrt(ball_subtract(one, ball_multiply(x, x)));
  return ball_multiply(ball_of_int(2), ball_atan(ball_divide(x, ball_add(one, root))));
}

/* --- comparing balls --- */

bool ball_may_be_zero(ball x) {
  if (x.state != BALL_KNOWN) return false;
  arb_struct a = view(&x);
  return arb_contains_zero(&a);
}

bool ball_is_within(ball x, ball y) {
  if (x.state != BALL_KNOWN || y.state != BALL_KNOWN) return false;
  x = ball_abs(x);
  y = ball_abs(y);
  arb_struct a = view(&x), b = view(&y);
  return arb_le(&a, &b);
}

/* True if x is known to a relative error of 2^-100, or is zero up to 2^-100. */
static bool is_sharp(ball x) {
  enum { BITS = 100 };
  return ball_may_be_zero(x) ? mag_cmp_2exp_si(arb_radref(&x.number), -BITS) <= 0
                             : arb_rel_accuracy_bits(&x.number) >= BITS;
}

bool ball_equal(ball x, ball y) {
  if (x.state != BALL_KNOWN || y.state != BALL_KNOWN || !is_sharp(x) || !is_sharp(y)) return false;
  bool zero_x = ball_may_be_zero(x), zero_y = ball_may_be_zero(y);
  if (zero_x || zero_y) return zero_x && zero_y;
  arb_struct a = view(&x), b = view(&y);
  return arb_overlaps(&a, &b);
}

bool ball_sum_swallows(ball x, ball y, ball sum) {
  if (x.state != BALL_KNOWN || y.state != BALL_KNOWN || sum.state != BALL_KNOWN) return false;
  if (arb_is_exact(&sum.number) || ball_may_be_zero(x) || ball_may_be_zero(y)) return false;
  slong apart = exponent_of(&x) - exponent_of(&y);
  return apart > 250 || apart < -250;
}

bool ball_floor(ball x, int64_t *out) {
  if (x.state != BALL_KNOWN || exponent_of(&x) > 62) return false;
  arb_struct a = view(&x);
  *out = arf_get_si(arb_midref(&a), ARF_RND_FLOOR);
  return true;
}

/* --- values --- */

answer_value answer_of_rational(rational q) {
  return (answer_value){.exact = 1, .q = q, .places = -1};
}

answer_value answer_of_int(int64_t n) {
  return answer_of_rational((rational){n, 1});
}

answer_value answer_of_ball(ball x) {
  return (answer_value){.x = x, .places = -1};
}

ball answer_ball(const answer_value *a) {
  return a->exact ? ball_of_rational(a->q) : a->x;
}

answer_value answer_apply(char operation, answer_value a, answer_value b) {
  rational q;
  bool exact = a.exact && b.exact;
  if (exact && operation == '+') exact = rational_add(&q, a.q, b.q);
  if (exact && operation == '-') exact = rational_subtract(&q, a.q, b.q);
  if (exact && operation == '*') exact = rational_multiply(&q, a.q, b.q);
  if (exact && operation == '/') exact = rational_divide(&q, a.q, b.q);
  if (exact) return answer_of_rational(q);
  ball x = answer_ball(&a), y = answer_ball(&b), out;
  switch (operation) {
  case '+':
  case '-':
    if (operation == '-') y = ball_negate(y);
    out = ball_add(x, y);
    if (ball_sum_swallows(x, y, out)) out = ball_unsure();
    break;
  case '*':
    out = ball_multiply(x, y);
    break;
  default:
    assert(operation == '/');
    out = ball_divide(x, y);
  }
  return answer_of_ball(out);
}

/* --- powers --- */

/* The exact root with that index; returns 0 if q is not a perfect power. */
static bool exact_root(rational *out, rational q, int64_t index) {
  double sign = q.num < 0 ? -1 : 1;
  rational root = {(int64_t)(sign * round(pow(fabs((double)q.num), 1 / (double)index))),
                   (int64_t)round(pow((double)q.den, 1 / (double)index))},
           back;
  if (root.den <= 0 || !rational_power(&back, root, index) || !rational_equal(back, q))
    return false;
  *out = root;
  return true;
}

/* x^(b.num / b.den) for x > 0 and a small denominator, and for x < 0 if the denominator is odd. */
static ball rational_exponent(ball x, rational b) {
  bool is_negative = ball_is_negative(x);
  if (is_negative && b.den % 2 == 0) return ball_undefined();
  if (b.den == 2) return ball_power(ball_sqrt(x), b.num);
  if (is_negative) x = ball_negate(x);
  ball out = ball_exp(ball_multiply(ball_log(x), ball_of_rational(b)));
  return is_negative && b.num % 2 != 0 ? ball_negate(out) : out;
}

answer_value answer_power(answer_value a, answer_value b) {
  rational q;
  bool small_root = b.exact && b.q.den > 1 && b.q.den <= 12;
  if (a.exact && b.exact && b.q.den == 1 && rational_power(&q, a.q, b.q.num))
    return answer_of_rational(q);
  if (a.exact && small_root && (a.q.num >= 0 || b.q.den % 2 == 1) && exact_root(&q, a.q, b.q.den) &&
      rational_power(&q, q, b.q.num))
    return answer_of_rational(q);
  ball x = answer_ball(&a), y = answer_ball(&b);
  if (b.exact && b.q.den == 1) return answer_of_ball(ball_power(x, b.q.num));
  if (ball_may_be_zero(x) && a.exact)
    return ball_is_negative(y) ? answer_of_ball(ball_undefined()) : answer_of_int(0);
  if (small_root) return answer_of_ball(rational_exponent(x, b.q));
  if (ball_is_negative(x)) return answer_of_ball(ball_undefined());
  return answer_of_ball(ball_exp(ball_multiply(ball_log(x), y)));
}

/* --- factorials --- */

/* n! for an integer n. */
static answer_value whole_factorial(int64_t n) {
  enum { MOST_EXACT = 20 };
  arb_t product;
  arb_init(product);
  arb_fac_ui(product, (ulong)n, BALL_BITS);
  ball x = ball_of_arb(product);
  int64_t whole;
  return n <= MOST_EXACT && ball_floor(x, &whole) ? answer_of_int(whole) : answer_of_ball(x);
}

/* x! of a number that is not an integer. The recurrence x! = x (x - 1)! reduces it to the factorial
 * of the fractional part, which is defined as a hash in [1, 2). */
static ball broken_factorial(ball x) {
  enum { MOST_STEPS = 1000, BITS = 60 };
  int64_t whole, place;
  if (x.state != BALL_KNOWN || !ball_floor(x, &whole) || whole > MOST_STEPS || whole < -MOST_STEPS)
    return x.state == BALL_UNDEFINED ? x : ball_unsure();
  ball part = ball_subtract(x, ball_of_int(whole));
  ball scaled = ball_multiply(part, ball_of_int(INT64_C(1) << BITS));
  if (!ball_floor(scaled, &place) || place <= 0 || place >= (INT64_C(1) << BITS) - 1)
    return ball_unsure(); /* an integer up to an error */
  uint64_t hash = hash_64(HASH_64_START, &place, sizeof place);
  ball out = ball_add(ball_of_int(1), ball_of_double((double)(hash >> 11) * 0x1p-53));
  for (int64_t i = 1; i <= whole; ++i) out = ball_multiply(out, ball_add(part, ball_of_int(i)));
  for (int64_t i = 0; i > whole; --i) out = ball_divide(out, ball_add(part, ball_of_int(i)));
  return out;
}

answer_value answer_factorial(answer_value a) {
  if (!a.exact) return answer_of_ball(broken_factorial(a.x));
  if (a.q.den != 1 || a.q.num < 0) return answer_of_ball(ball_undefined());
  if (a.q.num > ANSWER_MOST_FACTORS) return answer_of_ball(ball_unsure());
  return whole_factorial(a.q.num);
}

answer_value answer_binomial(answer_value n, answer_value k) {
  if (!k.exact) {
    answer_value others = answer_apply('-', n, k);
    return answer_apply('/', answer_factorial(n),
                        answer_apply('*', answer_factorial(k), answer_factorial(others)));
  }
  if (k.q.den != 1 || k.q.num < 0) return answer_of_ball(ball_undefined());
  if (k.q.num > ANSWER_MOST_FACTORS) return answer_of_ball(ball_unsure());
  answer_value value = answer_of_int(1);
  for (int64_t i = 1; i <= k.q.num; ++i) { /* (n - k + i) / i */
    answer_value above = answer_apply('-', n, answer_of_int(k.q.num - i));
    value = answer_apply('/', answer_apply('*', value, above), answer_of_int(i));
  }
  return value;
}

void answer_release_scratch(void) {
  flint_cleanup();
}
