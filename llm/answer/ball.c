/* Ball arithmetic: the four operations, powers, and comparing. */
#include "llm/answer/ball.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { DOUBLE = 2 * BALL_LIMBS };
/* Exponents beyond this are refused, long before they could overflow. */
static const int64_t max_exponent = INT64_C(1) << 44;
typedef unsigned __int128 wide;

/* --- radii --- */
/* Every operation rounds up, but for the lower bound below().
 */

static ball_radius radius_of(uint64_t mantissa, int64_t exponent) {
  if (mantissa == 0) return (ball_radius){0, 0};
  int shift = 32 - __builtin_clzll(mantissa);
  if (shift <= 0) return (ball_radius){(uint32_t)(mantissa << -shift), exponent + shift};
  mantissa = (mantissa >> shift) + 1;
  if (mantissa >> 32 != 0) return (ball_radius){UINT32_C(1) << 31, exponent + shift + 1};
  return (ball_radius){(uint32_t)mantissa, exponent + shift};
}

static ball_radius radius_add(ball_radius a, ball_radius b) {
  if (a.mantissa == 0 || (b.mantissa != 0 && a.exponent < b.exponent)) {
    ball_radius swap = a;
    a = b;
    b = swap;
  }
  if (b.mantissa == 0) return a;
  int64_t apart = a.exponent - b.exponent;
  uint64_t small = apart > 31 ? 1 : (b.mantissa >> apart) + 1;
  return radius_of(a.mantissa + small, a.exponent);
}

static ball_radius radius_multiply(ball_radius a, ball_radius b) {
  return radius_of((uint64_t)a.mantissa * b.mantissa, a.exponent + b.exponent);
}

static ball_radius radius_divide(ball_radius a, ball_radius b) {
  assert(b.mantissa > 0);
  if (a.mantissa == 0) return a;
  return radius_of(((uint64_t)a.mantissa << 32) / b.mantissa + 1, a.exponent - b.exponent - 32);
}

static int radius_at_most(ball_radius a, ball_radius b) {
  if (a.mantissa == 0 || b.mantissa == 0) return a.mantissa == 0;
  return a.exponent != b.exponent ? a.exponent < b.exponent : a.mantissa <= b.mantissa;
}

/* Bounds of |midpoint|. */
static ball_radius above(const ball *x) {
  if (x->sign == 0) return (ball_radius){0, 0};
  return radius_of((x->limb[BALL_LIMBS - 1] >> 32) + 1, x->exponent - 32);
}

static ball_radius below(const ball *x) {
  if (x->sign == 0) return (ball_radius){0, 0};
  return (ball_radius){(uint32_t)(x->limb[BALL_LIMBS - 1] >> 32), x->exponent - 32};
}

/* --- limbs --- */

/* sign * w * 2^(exponent - 64 n), rounded towards zero; the radius is what that rounds away. */
static ball from_limbs(int sign, const uint64_t *w, size_t n, int64_t exponent) {
  ball out = {.state = BALL_KNOWN};
  size_t top = n;
  while (top > 0 && w[top - 1] == 0) --top;
  if (top == 0) return out;
  int shift = __builtin_clzll(w[top - 1]), lost = 0;
  out.sign = sign;
  out.exponent = exponent - 64 * (int64_t)(n - top) - shift;
  for (size_t i = 0; i < BALL_LIMBS && i < top; ++i) {
    uint64_t low = i + 1 < top ? w[top - 2 - i] : 0;
    out.limb[BALL_LIMBS - 1 - i] = w[top - 1 - i] << shift | (shift > 0 ? low >> (64 - shift) : 0);
  }
  for (size_t i = BALL_LIMBS; i < top; ++i) {
    uint64_t rest = i > BALL_LIMBS ? w[top - 1 - i] : w[top - 1 - i] << shift;
    lost |= rest != 0;
  }
  if (lost) out.radius = radius_of(1, out.exponent - BALL_BITS);
  if (out.exponent > max_exponent || out.exponent < -max_exponent) return ball_unsure();
  return out;
}

/* The state of a result of x and y; only a known one is worth computing. */
static ball_state both(ball x, ball y) {
  if (x.state == BALL_UNDEFINED || y.state == BALL_UNDEFINED) return BALL_UNDEFINED;
  return x.state == BALL_UNSURE || y.state == BALL_UNSURE ? BALL_UNSURE : BALL_KNOWN;
}

static ball without_value(ball_state state) {
  return state == BALL_UNDEFINED ? ball_undefined() : ball_unsure();
}

/* --- making --- */

ball ball_undefined(void) {
  return (ball){.state = BALL_UNDEFINED};
}

ball ball_unsure(void) {
  return (ball){.state = BALL_UNSURE};
}

ball ball_of_int(int64_t n) {
  uint64_t w = n < 0 ? -(uint64_t)n : (uint64_t)n;
  return from_limbs(n < 0 ? -1 : 1, &w, 1, 64);
}

ball ball_of_double(double x) {
  int exponent;
  assert(isfinite(x));
  uint64_t w = (uint64_t)ldexp(frexp(fabs(x), &exponent), 53) << 11;
  return from_limbs(x < 0 ? -1 : 1, &w, 1, exponent);
}

ball ball_of_rational(rational q) {
  return ball_divide(ball_of_int(q.num), ball_of_int(q.den));
}

double ball_to_double(ball x) {
  assert(x.state == BALL_KNOWN);
  if (x.sign == 0) return 0;
  int exponent = x.exponent > 4096 ? 4096 : x.exponent < -4096 ? -4096 : (int)x.exponent;
  double high = ldexp((double)(x.limb[BALL_LIMBS - 1] >> 11), -53);
  return x.sign * ldexp(high + ldexp((double)(x.limb[BALL_LIMBS - 1] & 0x7ff), -64), exponent);
}

/* --- operations --- */

ball ball_negate(ball x) {
  x.sign = -x.sign;
  return x;
}

/* big + small << shift or big - small, in twice the limbs and one for a carry; |big| >= |small|. */
static ball add_aligned(ball big, ball small, int64_t apart) {
  uint64_t a[DOUBLE + 1] = {0}, b[DOUBLE + 1] = {0};
  size_t limbs = (size_t)apart / 64;
  int bits = (int)(apart % 64), subtract = big.sign != small.sign;
  memcpy(a + BALL_LIMBS, big.limb, sizeof big.limb);
  for (size_t i = 0; i < BALL_LIMBS; ++i) {
    size_t to = BALL_LIMBS + i - limbs;
    b[to] |= small.limb[i] >> bits;
    if (bits > 0 && to > 0) b[to - 1] |= small.limb[i] << (64 - bits);
  }
  uint64_t carry = 0;
  for (size_t i = 0; i <= DOUBLE; ++i) {
    wide sum = subtract ? (wide)a[i] - b[i] - carry : (wide)a[i] + b[i] + carry;
    a[i] = (uint64_t)sum;
    carry = (uint64_t)(sum >> 64) & 1;
  }
  return from_limbs(big.sign, a, DOUBLE + 1, big.exponent + 64);
}

/* Whether |x| < |y|, of midpoints that are not zero. */
static int is_smaller(ball x, ball y) {
  if (x.exponent != y.exponent) return x.exponent < y.exponent;
  for (size_t i = BALL_LIMBS; i-- > 0;)
    if (x.limb[i] != y.limb[i]) return x.limb[i] < y.limb[i];
  return 0;
}

ball ball_add(ball x, ball y) {
  ball_state state = both(x, y);
  if (state != BALL_KNOWN) return without_value(state);
  ball_radius radius = radius_add(x.radius, y.radius);
  ball sum;
  if (x.sign == 0 || y.sign == 0)
    sum = x.sign == 0 ? y : x;
  else {
    ball big = is_smaller(x, y) ? y : x, small = is_smaller(x, y) ? x : y;
    int64_t apart = big.exponent - small.exponent;
    if (apart < BALL_BITS)
      sum = add_aligned(big, small, apart);
    else {
      sum = big;
      sum.radius = above(&small);
    }
    radius = radius_add(radius, sum.radius);
  }
  if (sum.state == BALL_KNOWN) sum.radius = radius;
  return sum;
}

ball ball_subtract(ball x, ball y) {
  return ball_add(x, ball_negate(y));
}

ball ball_multiply(ball x, ball y) {
  ball_state state = both(x, y);
  if (state != BALL_KNOWN) return without_value(state);
  uint64_t w[DOUBLE] = {0};
  if (x.sign != 0 && y.sign != 0)
    for (size_t i = 0; i < BALL_LIMBS; ++i) {
      uint64_t carry = 0;
      for (size_t k = 0; k < BALL_LIMBS; ++k) {
        wide t = (wide)x.limb[i] * y.limb[k] + w[i + k] + carry;
        w[i + k] = (uint64_t)t;
        carry = (uint64_t)(t >> 64);
      }
      w[i + BALL_LIMBS] = carry;
    }
  ball out = from_limbs(x.sign * y.sign, w, DOUBLE, x.exponent + y.exponent);
  if (out.state != BALL_KNOWN) return out;
  ball_radius spread = radius_add(radius_multiply(above(&x), y.radius),
                                  radius_multiply(radius_add(above(&y), y.radius), x.radius));
  out.radius = radius_add(out.radius, spread);
  return out;
}

/* Quotient of the midpoints where the divisor has one limb, as whole numbers have. */
static ball divide_by_limb(ball x, ball y) {
  enum { M = BALL_LIMBS + 2 };
  uint64_t q[M] = {0}, rest = 0, divisor = y.limb[BALL_LIMBS - 1];
  for (size_t i = M; i-- > 0;) {
    wide part = (wide)rest << 64 | (i < 2 ? 0 : x.limb[i - 2]);
    q[i] = (uint64_t)(part / divisor);
    rest = (uint64_t)(part % divisor);
  }
  ball out = from_limbs(x.sign * y.sign, q, M, x.exponent - y.exponent + 64);
  if (rest != 0 && out.state == BALL_KNOWN)
    out.radius = radius_add(out.radius, radius_of(1, out.exponent - BALL_BITS));
  return out;
}

/* Quotient of the midpoints by long division in base 2^64; the divisor's highest bit is set. */
static ball divide_limbs(ball x, ball y) {
  enum { N = BALL_LIMBS, M = BALL_LIMBS + 2 };
  size_t low = 0;
  while (y.limb[low] == 0) ++low;
  if (low == N - 1) return divide_by_limb(x, y);
  uint64_t u[N + M] = {0}, q[M] = {0}, rest = 0;
  memcpy(u + M - 1, x.limb, sizeof x.limb);
  for (size_t j = M; j-- > 0;) {
    wide high = (wide)u[j + N] << 64 | (j + N > 0 ? u[j + N - 1] : 0);
    wide guess = u[j + N] >= y.limb[N - 1] ? UINT64_MAX : high / y.limb[N - 1];
    uint64_t digit = (uint64_t)guess;
    wide carry = 0;
    int64_t borrow = 0;
    for (size_t i = 0; i < N; ++i) { /* u -= digit * y */
      carry += (wide)digit * y.limb[i];
      wide t = (wide)u[i + j] - (uint64_t)carry - (uint64_t)borrow;
      u[i + j] = (uint64_t)t;
      borrow = (int64_t)((t >> 64) & 1);
      carry >>= 64;
    }
    wide t = (wide)u[j + N] - (uint64_t)carry - (uint64_t)borrow;
    u[j + N] = (uint64_t)t;
    while ((t >> 64) != 0) { /* the guess is at most two too large */
      --digit;
      uint64_t c = 0;
      for (size_t i = 0; i < N; ++i) {
        wide s = (wide)u[i + j] + y.limb[i] + c;
        u[i + j] = (uint64_t)s;
        c = (uint64_t)(s >> 64);
      }
      t = (wide)u[j + N] + c;
      u[j + N] = (uint64_t)t;
      t = (t >> 64) != 0 ? 0 : (wide)1 << 64;
    }
    q[j] = digit;
  }
  for (size_t i = 0; i < N; ++i) rest |= u[i];
  ball out = from_limbs(x.sign * y.sign, q, M, x.exponent - y.exponent + 64);
  if (rest != 0 && out.state == BALL_KNOWN)
    out.radius = radius_add(out.radius, radius_of(1, out.exponent - BALL_BITS));
  return out;
}

ball ball_divide(ball x, ball y) {
  ball_state state = both(x, y);
  if (state != BALL_KNOWN) return without_value(state);
  if (ball_may_be_zero(y)) return ball_undefined();
  ball out = x.sign == 0 ? (ball){.state = BALL_KNOWN} : divide_limbs(x, y);
  if (out.state != BALL_KNOWN || (x.radius.mantissa == 0 && y.radius.mantissa == 0)) return out;
  /* (|r_x| + |x / y| r_y) / (|y| - r_y), with |y| - r_y at least |y| / 2 where that is known */
  ball_radius least = below(&y);
  ball_radius half = {least.mantissa, least.exponent - 1};
  if (!radius_at_most(y.radius, half)) return ball_unsure();
  ball_radius spread =
      radius_add(x.radius, radius_multiply(radius_add(above(&out), out.radius), y.radius));
  out.radius = radius_add(out.radius, radius_divide(spread, half));
  return out;
}

ball ball_power(ball x, int64_t n) {
  ball out = ball_of_int(1);
  if (n < 0) x = ball_divide(out, x);
  for (uint64_t k = n < 0 ? -(uint64_t)n : (uint64_t)n; k != 0; k >>= 1) {
    if ((k & 1) != 0) out = ball_multiply(out, x);
    if (k > 1) x = ball_multiply(x, x);
    if (x.state != BALL_KNOWN || out.state != BALL_KNOWN) return without_value(both(x, out));
  }
  return out;
}

ball ball_widened(ball x, ball by) {
  ball_state state = both(x, by);
  if (state != BALL_KNOWN) return without_value(state);
  x.radius = radius_add(x.radius, radius_add(above(&by), by.radius));
  return x;
}

/* --- comparing --- */

int ball_may_be_zero(ball x) {
  return x.state == BALL_KNOWN && radius_at_most(below(&x), x.radius);
}

int ball_is_negative(ball x) {
  return x.state == BALL_KNOWN && x.sign < 0 && !ball_may_be_zero(x);
}

int ball_is_within(ball x, ball y) {
  if (both(x, y) != BALL_KNOWN) return 0;
  x.sign = x.sign != 0;
  y.sign = y.sign != 0;
  ball apart = ball_subtract(y, x);
  return apart.state == BALL_KNOWN && !ball_is_negative(apart) &&
         (!ball_may_be_zero(apart) || apart.radius.mantissa == 0);
}

/* Whether x is known to a share of 2^-100, or is zero up to 2^-100. */
static int is_sharp(ball x) {
  if (ball_may_be_zero(x)) return radius_at_most(x.radius, (ball_radius){UINT32_C(1) << 31, -131});
  ball_radius share = below(&x);
  share.exponent -= 100;
  return radius_at_most(x.radius, share);
}

int ball_equal(ball x, ball y) {
  if (both(x, y) != BALL_KNOWN || !is_sharp(x) || !is_sharp(y)) return 0;
  int zero_x = ball_may_be_zero(x), zero_y = ball_may_be_zero(y);
  if (zero_x || zero_y) return zero_x && zero_y;
  return ball_may_be_zero(ball_subtract(x, y));
}

int ball_sum_swallows(ball x, ball y, ball sum) {
  if (both(x, y) != BALL_KNOWN || sum.state != BALL_KNOWN || sum.radius.mantissa == 0) return 0;
  if (ball_may_be_zero(x) || ball_may_be_zero(y)) return 0;
  int64_t apart = x.exponent - y.exponent;
  return apart > 250 || apart < -250;
}

int ball_floor(ball x, int64_t *out) {
  if (x.state != BALL_KNOWN || x.exponent > 62) return 0;
  int64_t whole = 0;
  int fraction = x.sign != 0;
  if (x.sign != 0 && x.exponent > 0) {
    int shift = 64 - (int)x.exponent;
    whole = (int64_t)(x.limb[BALL_LIMBS - 1] >> shift);
    uint64_t rest = x.limb[BALL_LIMBS - 1] << x.exponent;
    for (size_t i = 0; i + 1 < BALL_LIMBS; ++i) rest |= x.limb[i];
    fraction = rest != 0;
  }
  *out = x.sign < 0 ? -whole - fraction : whole;
  return 1;
}
