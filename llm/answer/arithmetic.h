/* Numbers in answers: exact fractions if 64 bits suffice, else balls.
 *
 * A ball is a real number of 384 bits with an error bound: the true value is within a radius of the
 * midpoint. So 2^{100} and 2^{100} + 1 are different numbers, and \sqrt{2}\sqrt{2} - 2 is zero up
 * to an error, not a small number. Arb computes balls, FLINT fractions. This module adds limits of
 * time and size, and two states. A number without a value (a division by zero, a logarithm of -1)
 * is BALL_UNDEFINED. A number that exists but cannot be distinguished from others in 384 bits (the
 * sine of 10^{100}, e^x for x = 10^{-80}), or that is larger than 2^(2^44) or smaller than its
 * inverse, is BALL_UNSURE. Operations propagate both, BALL_UNDEFINED before BALL_UNSURE.
 *
 * All types are plain values: they are copied by assignment and own no memory. The libraries
 * allocate a few kilobytes of scratch memory, and end the process if there is none.
 * answer_release_scratch() frees the scratch memory that they keep for the thread. */
#ifndef GEPOLAB_LLM_ANSWER_ARITHMETIC_H
#define GEPOLAB_LLM_ANSWER_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

#if __has_include(<flint/arb.h>) /* FLINT 3 includes Arb */
#include <flint/arb.h>
#else
#include <arb.h>
#endif

/* --- fractions --- */

/* In lowest terms, den > 0, |num| <= INT64_MAX. Operations return false if a result does not fit.
 */
typedef struct rational {
  int64_t num, den;
} rational;

/* num / den in lowest terms; den != 0. */
bool rational_make(rational *out, int64_t num, int64_t den);
bool rational_add(rational *out, rational a, rational b);
bool rational_subtract(rational *out, rational a, rational b);
bool rational_multiply(rational *out, rational a, rational b);
bool rational_divide(rational *out, rational a, rational b);
/* a^n for any integer n; 0^n needs n > 0. */
bool rational_power(rational *out, rational a, int64_t n);

static inline bool rational_equal(rational a, rational b) {
  return a.num == b.num && a.den == b.den;
}

/* --- balls --- */

enum { BALL_LIMBS = 6, BALL_BITS = 64 * BALL_LIMBS };

typedef enum ball_state { BALL_KNOWN, BALL_UNDEFINED, BALL_UNSURE } ball_state;

/* Arb's number. A mantissa of more than two limbs is stored in `limb`, so no memory is allocated.
 */
typedef struct ball {
  ball_state state;
  arb_struct number;
  mp_limb_t limb[BALL_LIMBS];
} ball;

ball ball_of_int(int64_t n);
/* Exact; x must be finite. */
ball ball_of_double(double x);
ball ball_of_rational(rational q);
ball ball_undefined(void);
ball ball_unsure(void);
/* The midpoint, rounded; infinite if a double cannot hold it. Only for a known number. */
double ball_to_double(ball x);

ball ball_negate(ball x);
/* The absolute value, by the sign of the midpoint. */
ball ball_abs(ball x);
ball ball_add(ball x, ball y);
ball ball_subtract(ball x, ball y);
ball ball_multiply(ball x, ball y);
/* Undefined if y may be 0, that is, if 0 is within its radius. */
ball ball_divide(ball x, ball y);
/* x^n; 0^0 is 1. */
ball ball_power(ball x, int64_t n);

/* Undefined for negative x. */
ball ball_sqrt(ball x);
ball ball_exp(ball x);
/* Undefined if x may be 0 or less. */
ball ball_log(ball x);
ball ball_sin(ball x);
ball ball_cos(ball x);
ball ball_atan(ball x);
/* Undefined outside of -1 .. 1. */
ball ball_asin(ball x);
ball ball_pi(void);

/* True if 0 is within the radius; false for unknown numbers. */
bool ball_may_be_zero(ball x);
/* True if |x| is certainly at most |y|. */
bool ball_is_within(ball x, ball y);
/* True if the two can be the same number: their balls overlap, and both are known to a relative
 * error of 2^-100. Zero equals only numbers that may be zero, with a radius of at most 2^-100.
 * False for unknown numbers. */
bool ball_equal(ball x, ball y);
/* True if adding y to x lost the digits that distinguish the smaller one: the sum is rounded, and
 * one of them is less than 2^-250 of the other, but not zero. */
bool ball_sum_swallows(ball x, ball y, ball sum);
/* Writes the largest integer up to the midpoint of x into *out; false if it needs more than 62 bits
 * or x is not known. */
bool ball_floor(ball x, int64_t *out);

/* --- values --- */

typedef struct answer_value {
  bool exact; /* 1: q holds the value, 0: x does */
  bool has_variables;
  rational q;
  ball x;
  int places; /* decimal places of a plain number, 0 for an integer; -1: not a plain number */
  int digits; /* digits of a plain number from the first nonzero one on */
} answer_value;

answer_value answer_of_rational(rational q);
answer_value answer_of_int(int64_t n);
answer_value answer_of_ball(ball x);
/* The value as a ball. */
ball answer_ball(const answer_value *a);
/* a + b, a - b, a * b or a / b. A sum is BALL_UNSURE if the smaller number would be rounded away.
 */
answer_value answer_apply(char operation, answer_value a, answer_value b);
/* a^b; roots of perfect powers with a small index are exact, odd roots of negative numbers are
 * real. */
answer_value answer_power(answer_value a, answer_value b);
/* Undefined for negative numbers and numbers that are not integers; BALL_UNSURE above
 * ANSWER_MOST_FACTORS. For the value x of a formula only the recurrence x! = x (x - 1)! is
 * guaranteed, which is sufficient for formulas. */
enum { ANSWER_MOST_FACTORS = 10000 };
answer_value answer_factorial(answer_value a);
answer_value answer_binomial(answer_value n, answer_value k);
/* Frees the scratch memory that the libraries keep for this thread. */
void answer_release_scratch(void);

#endif
