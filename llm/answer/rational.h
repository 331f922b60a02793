/* Exact fractions of 64-bit integers. Every operation says 0 where its result does not fit or does
 * not exist (division by zero) and leaves *out alone, so a caller can fall back or refuse; nothing
 * ever wraps around. Prefix: rational_. */
#ifndef GEPOLAB_LLM_ANSWER_RATIONAL_H
#define GEPOLAB_LLM_ANSWER_RATIONAL_H

#include <stdint.h>

/* In lowest terms, den > 0, |num| <= INT64_MAX. */
typedef struct rational {
  int64_t num, den;
} rational;

/* num / den in lowest terms; den != 0. */
int rational_make(rational *out, int64_t num, int64_t den);
int rational_add(rational *out, rational a, rational b);
int rational_subtract(rational *out, rational a, rational b);
int rational_multiply(rational *out, rational a, rational b);
int rational_divide(rational *out, rational a, rational b);
/* a^n for any whole n; 0^n needs n > 0. */
int rational_power(rational *out, rational a, int64_t n);

static inline int rational_equal(rational a, rational b) {
  return a.num == b.num && a.den == b.den;
}

#endif
