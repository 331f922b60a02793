/* Operations on values: exact while 64-bit fractions hold them, in doubles beyond. */
#include "llm/answer/internal.h"

#include <math.h>

answer_value answer_of_rational(rational q) {
  return (answer_value){1, q, (double)q.num / (double)q.den, 0, -1};
}

answer_value answer_of_double(double x) {
  return (answer_value){.x = x, .places = -1};
}

answer_value answer_apply(char operation, answer_value a, answer_value b) {
  rational q;
  int exact = a.exact && b.exact;
  if (exact && operation == '+') exact = rational_add(&q, a.q, b.q);
  if (exact && operation == '-') exact = rational_subtract(&q, a.q, b.q);
  if (exact && operation == '*') exact = rational_multiply(&q, a.q, b.q);
  if (exact && operation == '/') exact = rational_divide(&q, a.q, b.q);
  if (exact) return answer_of_rational(q);
  return answer_of_double(operation == '+'   ? a.x + b.x
                          : operation == '-' ? a.x - b.x
                          : operation == '*' ? a.x * b.x
                                             : a.x / b.x);
}

/* a^b; roots of perfect powers of small index stay exact. */
answer_value answer_power(answer_value a, answer_value b) {
  rational q;
  if (a.exact && b.exact && b.q.den == 1 && rational_power(&q, a.q, b.q.num))
    return answer_of_rational(q);
  if (a.exact && b.exact && b.q.den > 1 && b.q.den <= 12 && (a.q.num >= 0 || b.q.den % 2 == 1)) {
    double index = (double)b.q.den, sign = a.q.num < 0 ? -1 : 1;
    rational root = {(int64_t)(sign * round(pow(fabs((double)a.q.num), 1 / index))),
                     (int64_t)round(pow((double)a.q.den, 1 / index))},
             back;
    if (root.den > 0 && rational_power(&back, root, b.q.den) && rational_equal(back, a.q) &&
        rational_power(&q, root, b.q.num))
      return answer_of_rational(q);
    if (a.q.num < 0) return answer_of_double(-pow(-a.x, b.x) * (b.q.num % 2 == 0 ? -1 : 1));
  }
  return answer_of_double(pow(a.x, b.x));
}

/* lgamma() writes a global. */
static double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

answer_value answer_factorial(answer_value a) {
  if (a.exact && (a.q.den != 1 || a.q.num < 0)) return answer_of_double(NAN);
  if (!a.exact || a.q.num > 20) return answer_of_double(exp(log_gamma(a.x + 1)));
  int64_t product = 1;
  for (int64_t i = 2; i <= a.q.num; ++i) product *= i;
  return answer_of_rational((rational){product, 1});
}

answer_value answer_binomial(answer_value n, answer_value k) {
  if (!k.exact || k.q.den != 1 || k.q.num < 0 || k.q.num > 1000) return answer_of_double(NAN);
  answer_value value = answer_of_rational((rational){1, 1});
  for (int64_t i = 1; i <= k.q.num; ++i) { /* (n - k + i) / i */
    answer_value step = answer_of_rational((rational){i, 1}),
                 above = answer_apply('-', n, answer_of_rational((rational){k.q.num - i, 1}));
    value = answer_apply('/', answer_apply('*', value, above), step);
  }
  return value;
}
