/* Operations on values: exact while 64-bit fractions hold them, as balls of 384 bits beyond. */
#include "llm/answer/internal.h"

#include "core/base/hash.h"

#include <assert.h>
#include <math.h>

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
  int exact = a.exact && b.exact;
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

/* The root of that index of a perfect power, exactly; 0 if q is none. */
static int exact_root(rational *out, rational q, int64_t index) {
  double sign = q.num < 0 ? -1 : 1;
  rational root = {(int64_t)(sign * round(pow(fabs((double)q.num), 1 / (double)index))),
                   (int64_t)round(pow((double)q.den, 1 / (double)index))},
           back;
  if (root.den <= 0 || !rational_power(&back, root, index) || !rational_equal(back, q)) return 0;
  *out = root;
  return 1;
}

/* x^(b.num / b.den) for x > 0 and a small denominator, and for x < 0 if that is odd. */
static ball rational_exponent(ball x, rational b) {
  int is_negative = ball_is_negative(x);
  if (is_negative && b.den % 2 == 0) return ball_undefined();
  if (b.den == 2) return ball_power(ball_sqrt(x), b.num);
  if (is_negative) x = ball_negate(x);
  ball out = ball_exp(ball_multiply(ball_log(x), ball_of_rational(b)));
  return is_negative && b.num % 2 != 0 ? ball_negate(out) : out;
}

answer_value answer_power(answer_value a, answer_value b) {
  rational q;
  int small_root = b.exact && b.q.den > 1 && b.q.den <= 12;
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

/* n! for a whole n. */
static answer_value whole_factorial(int64_t n) {
  int64_t product = 1, i = 2;
  for (; i <= n && i <= 20; ++i) product *= i;
  if (i > n) return answer_of_int(product);
  ball x = ball_of_int(product);
  for (; i <= n; ++i) x = ball_multiply(x, ball_of_int(i));
  return answer_of_ball(x);
}

/* x! of a number that is not whole: the recurrence down to its broken part, whose factorial is a
 * hash between 1 and 2. */
static ball broken_factorial(ball x) {
  enum { MOST_STEPS = 1000, BITS = 60 };
  int64_t whole, place;
  if (x.state != BALL_KNOWN || !ball_floor(x, &whole) || whole > MOST_STEPS || whole < -MOST_STEPS)
    return x.state == BALL_UNDEFINED ? x : ball_unsure();
  ball part = ball_subtract(x, ball_of_int(whole));
  ball scaled = ball_multiply(part, ball_of_int(INT64_C(1) << BITS));
  if (!ball_floor(scaled, &place) || place <= 0 || place >= (INT64_C(1) << BITS) - 1)
    return ball_unsure(); /* a whole number up to an error */
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
