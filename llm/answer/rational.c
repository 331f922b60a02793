/* Exact fractions of 64-bit integers, kept in lowest terms; what does not fit is refused. */
#include "llm/answer/rational.h"

/* Of magnitudes that both fit; never both 0. */
static int64_t gcd(int64_t a, int64_t b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

int rational_make(rational *out, int64_t num, int64_t den) {
  if (den == 0 || num == INT64_MIN || den == INT64_MIN) return 0;
  int64_t g = gcd(num, den);
  if (den < 0) g = -g;
  *out = (rational){num / g, den / g};
  return 1;
}

int rational_add(rational *out, rational a, rational b) {
  int64_t g = gcd(a.den, b.den), left, right, num, den;
  if (__builtin_mul_overflow(a.num, b.den / g, &left) ||
      __builtin_mul_overflow(b.num, a.den / g, &right) ||
      __builtin_add_overflow(left, right, &num) || __builtin_mul_overflow(a.den, b.den / g, &den))
    return 0;
  return rational_make(out, num, den);
}

int rational_subtract(rational *out, rational a, rational b) {
  return rational_add(out, a, (rational){-b.num, b.den});
}

/* Common factors go before the products are formed, so that only a result that does not fit is
 * refused. */
int rational_multiply(rational *out, rational a, rational b) {
  int64_t g = gcd(a.num, b.den), h = gcd(b.num, a.den), num, den;
  if (__builtin_mul_overflow(a.num / g, b.num / h, &num) ||
      __builtin_mul_overflow(a.den / h, b.den / g, &den))
    return 0;
  return rational_make(out, num, den);
}

int rational_divide(rational *out, rational a, rational b) {
  if (b.num == 0) return 0;
  rational inverse = {b.num < 0 ? -b.den : b.den, b.num < 0 ? -b.num : b.num};
  return rational_multiply(out, a, inverse);
}

int rational_power(rational *out, rational a, int64_t n) {
  rational result = {1, 1};
  if (n < 0 && (n == INT64_MIN || !rational_divide(&a, result, a))) return 0;
  if (n == 0 && a.num == 0) return 0;
  for (uint64_t k = (uint64_t)(n < 0 ? -n : n); k != 0; k >>= 1) {
    if ((k & 1) != 0 && !rational_multiply(&result, result, a)) return 0;
    if (k > 1 && !rational_multiply(&a, a, a)) return 0;
  }
  *out = result;
  return 1;
}
