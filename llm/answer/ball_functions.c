/* Ball arithmetic: roots and elementary functions, by series with bounds of what they leave out. */
#include "llm/answer/ball.h"

#include <assert.h>
#include <math.h>

static const int64_t longest_loop = 200; /* of any series here; more would be our own mistake */

/* --- constants --- */

/* Truncated after BALL_BITS bits, so the radius is one unit of the last. */
static ball constant(const uint64_t limb[BALL_LIMBS], int64_t exponent) {
  ball out = {.state = BALL_KNOWN, .sign = 1, .exponent = exponent};
  for (int i = 0; i < BALL_LIMBS; ++i) out.limb[i] = limb[i];
  out.radius = (ball_radius){UINT32_C(1) << 31, exponent - BALL_BITS - 31};
  return out;
}

ball ball_pi(void) {
  static const uint64_t quarter[BALL_LIMBS] = {
      UINT64_C(0xef9519b3cd3a431b), UINT64_C(0x514a08798e3404dd), UINT64_C(0x020bbea63b139b22),
      UINT64_C(0x29024e088a67cc74), UINT64_C(0xc4c6628b80dc1cd1), UINT64_C(0xc90fdaa22168c234)};
  return constant(quarter, 2);
}

static ball log_2(void) {
  static const uint64_t limb[BALL_LIMBS] = {
      UINT64_C(0x559552fb4afa1b10), UINT64_C(0xe7b876206debac98), UINT64_C(0x8a0d175b8baafa2b),
      UINT64_C(0x40f343267298b62d), UINT64_C(0xc9e3b39803f2f6af), UINT64_C(0xb17217f7d1cf79ab)};
  return constant(limb, 0);
}

/* --- helpers --- */

static ball midpoint(ball x) {
  x.radius = (ball_radius){0, 0};
  return x;
}

/* The radius of x as a number. */
static ball radius_as_ball(ball x) {
  ball out = ball_of_int(x.radius.mantissa);
  if (out.sign != 0) out.exponent += x.radius.exponent;
  return out;
}

static ball times_2(ball x, int64_t power) {
  assert(x.state == BALL_KNOWN);
  if (x.sign != 0) x.exponent += power;
  if (x.radius.mantissa != 0) x.radius.exponent += power;
  return x;
}

/* Whether |x| is too small to count next to `next` in a series. */
static int is_negligible(ball x, ball next) {
  return x.sign == 0 || x.exponent < next.exponent - BALL_BITS - 8;
}

/* --- roots --- */

/* 1 / sqrt(x) by Newton's iteration on midpoints, then the root and, as its error, what its square
 * misses: |s - sqrt(x)| <= |s^2 - x| / s. */
ball ball_sqrt(ball x) {
  if (x.state != BALL_KNOWN) return x;
  if (ball_is_negative(x)) return ball_undefined();
  if (ball_may_be_zero(x)) { /* at most the root of midpoint + radius */
    ball out = {.state = BALL_KNOWN};
    x.sign = x.sign != 0;
    ball most = ball_add(midpoint(x), radius_as_ball(x));
    return most.sign == 0 ? out : ball_widened(out, ball_sqrt(midpoint(most)));
  }
  int64_t half = x.exponent / 2;
  ball a = times_2(midpoint(x), -2 * half), y = ball_of_double(1 / sqrt(ball_to_double(a))),
       three = ball_of_int(3);
  for (int i = 0; i < 3; ++i) {
    ball miss = ball_subtract(three, ball_multiply(a, ball_multiply(y, y)));
    y = midpoint(times_2(ball_multiply(y, miss), -1));
  }
  ball s = midpoint(ball_multiply(a, y));
  ball miss = ball_subtract(ball_multiply(s, s), a);
  s = ball_widened(s, ball_divide(miss, s));
  if (x.radius.mantissa != 0) { /* |sqrt(a + r) - sqrt(a)| <= r / sqrt(a) */
    ball r = times_2(radius_as_ball(x), -2 * half);
    s = ball_widened(s, ball_divide(r, s));
  }
  return s.state == BALL_KNOWN ? times_2(s, half) : s;
}

/* --- exponential and logarithm --- */

/* e^r for |r| < 1/2, without r's radius: (sum r^i / 256^i / i!)^256. */
static ball exp_small(ball r) {
  enum { HALVINGS = 8 };
  ball t = times_2(r, -HALVINGS), term = ball_of_int(1), sum = term;
  for (int64_t i = 1; !is_negligible(term, sum); ++i) {
    assert(i < longest_loop);
    term = ball_divide(ball_multiply(term, t), ball_of_int(i));
    sum = ball_add(sum, term);
  }
  sum = ball_widened(sum, term); /* the rest is less than the last term */
  for (int i = 0; i < HALVINGS; ++i) sum = ball_multiply(sum, sum);
  return sum;
}

ball ball_exp(ball x) {
  int64_t k;
  if (x.state != BALL_KNOWN) return x;
  if (x.sign == 0 && x.radius.mantissa == 0) return ball_of_int(1);
  if (x.exponent > 40 || (!ball_may_be_zero(x) && x.exponent < -250)) return ball_unsure();
  if (x.radius.mantissa != 0 && x.radius.exponent > -34) return ball_unsure();
  ball half = ball_of_rational((rational){1, 2});
  if (!ball_floor(ball_add(ball_divide(midpoint(x), log_2()), half), &k)) return ball_unsure();
  ball r = ball_subtract(midpoint(x), ball_multiply(ball_of_int(k), log_2()));
  ball out = exp_small(r);
  /* e^(x + d) - e^x is at most 2 d e^x for d up to 1/2 */
  if (out.state == BALL_KNOWN && x.radius.mantissa != 0)
    out = ball_widened(out, times_2(ball_multiply(radius_as_ball(x), out), 1));
  return out.state == BALL_KNOWN ? times_2(out, k) : out;
}

/* log x = y + log(1 + d) with y a double next to it and d = x e^-y - 1 of about 2^-50. */
ball ball_log(ball x) {
  if (x.state != BALL_KNOWN) return x;
  if (x.sign <= 0 || ball_may_be_zero(x)) return ball_undefined();
  if (x.exponent == 1 && x.radius.mantissa == 0 && ball_to_double(x) == 1 &&
      ball_subtract(x, ball_of_int(1)).sign == 0)
    return ball_of_int(0);
  int64_t exponent = x.exponent;
  ball m = times_2(x, -exponent);
  if (ball_to_double(m) < 0.7) {
    m = times_2(m, 1);
    --exponent;
  }
  ball y = ball_of_double(log(ball_to_double(m)));
  ball d = ball_subtract(ball_multiply(m, ball_exp(ball_negate(y))), ball_of_int(1));
  ball power = d, sum = d;
  for (int64_t i = 2; i <= 10; ++i) { /* the rest is less than 2 |d|^11 */
    power = ball_negate(ball_multiply(power, d));
    sum = ball_add(sum, ball_divide(power, ball_of_int(i)));
  }
  sum = ball_widened(sum, times_2(ball_multiply(power, d), 1));
  if (sum.state != BALL_KNOWN || (d.sign != 0 && d.exponent > -40)) return ball_unsure();
  return ball_add(ball_add(y, sum), ball_multiply(ball_of_int(exponent), log_2()));
}

/* --- trigonometric functions --- */

/* sin r (odd: 1) or cos r (odd: 0) for |r| < 0.8, by Taylor's series. */
static ball sine_series(ball r, int odd) {
  ball square = ball_negate(ball_multiply(r, r)), term = odd ? r : ball_of_int(1), sum = term;
  for (int64_t i = 1 + odd; !is_negligible(term, sum); i += 2) {
    assert(i < longest_loop);
    term = ball_divide(ball_multiply(term, square), ball_of_int(i * (i + 1)));
    sum = ball_add(sum, term);
  }
  return ball_widened(sum, term);
}

/* sin(x + quarter * pi / 2) */
static ball sine(ball x, int64_t quarter) {
  int64_t k;
  if (x.state != BALL_KNOWN) return x;
  if (x.exponent > 60 || (x.radius.mantissa != 0 && x.radius.exponent > -34)) return ball_unsure();
  ball right = times_2(ball_pi(), -1), half = ball_of_rational((rational){1, 2});
  if (!ball_floor(ball_add(ball_divide(midpoint(x), right), half), &k)) return ball_unsure();
  ball r = ball_subtract(midpoint(x), ball_multiply(ball_of_int(k), right));
  int64_t turn = ((k + quarter) % 4 + 4) % 4;
  int odd = turn % 2 == 0;
  if (!odd && !ball_may_be_zero(r) && r.exponent < -125) return ball_unsure(); /* 1 - r^2 / 2 */
  ball out = ball_widened(sine_series(r, odd), radius_as_ball(x));
  return turn >= 2 ? ball_negate(out) : out;
}

ball ball_sin(ball x) {
  return sine(x, 0);
}

ball ball_cos(ball x) {
  return sine(x, 1);
}

/* atan x = 2 atan(x / (1 + sqrt(1 + x^2))), four times, then the series. */
ball ball_atan(ball x) {
  enum { HALVINGS = 4 };
  ball one = ball_of_int(1);
  if (x.state != BALL_KNOWN || x.sign == 0) return x;
  if (x.exponent > 100) return ball_unsure(); /* too close to pi / 2 */
  for (int i = 0; i < HALVINGS; ++i)
    x = ball_divide(x, ball_add(one, ball_sqrt(ball_add(one, ball_multiply(x, x)))));
  if (x.state != BALL_KNOWN || x.sign == 0) return x;
  ball square = ball_negate(ball_multiply(x, x)), power = x, sum = x;
  for (int64_t i = 3; !is_negligible(power, sum); i += 2) {
    assert(i < longest_loop);
    power = ball_multiply(power, square);
    sum = ball_add(sum, ball_divide(power, ball_of_int(i)));
  }
  sum = ball_widened(sum, power);
  return sum.state == BALL_KNOWN ? times_2(sum, HALVINGS) : sum;
}

/* asin x = 2 atan(x / (1 + sqrt(1 - x^2))) */
ball ball_asin(ball x) {
  ball one = ball_of_int(1);
  ball root = ball_sqrt(ball_subtract(one, ball_multiply(x, x)));
  ball out = ball_atan(ball_divide(x, ball_add(one, root)));
  return out.state == BALL_KNOWN ? times_2(out, 1) : out;
}
