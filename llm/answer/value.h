/* Numbers of answers: exact fractions where 64 bits hold them, else balls.
 *
 * A ball is a real number of 384 bits with a bound of its error: a midpoint and a radius between
 * whose difference and sum the true value lies. So 2^{100} and 2^{100} + 1 are two numbers, and
 * \sqrt{2}\sqrt{2} - 2 is known to be zero up to an error rather than a small number. Arb computes
 * them, FLINT the fractions; what is added here are the bounds of time and size, and two states. A
 * number without a value (a division by zero, a logarithm of -1) is BALL_UNDEFINED. One that exists
 * but cannot be distinguished from its neighbours in 384 bits (the sine of 10^{100}, e^x for x =
 * 10^{-80}), or is larger than 2^(2^44) or smaller than its inverse, is BALL_UNSURE. Both pass
 * through every operation, BALL_UNDEFINED before BALL_UNSURE.
 *
 * All types are plain values: they are copied by assignment and hold no memory. The libraries
 * allocate scratch space of a few kilobytes, and end the process where there is none;
 * answer_release_scratch() frees what they keep of it for the thread. */
#ifndef GEPOLAB_LLM_ANSWER_VALUE_H
#define GEPOLAB_LLM_ANSWER_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#if __has_include(<flint/arb.h>) /* FLINT 3 has Arb inside */
#include <flint/arb.h>
#else
#include <arb.h>
#endif

/* --- fractions --- */

/* In lowest terms, den > 0, |num| <= INT64_MAX. A result that does not fit is refused. */
typedef struct rational {
  int64_t num, den;
} rational;

/* num / den in lowest terms; den != 0. */
bool rational_make(rational *out, int64_t num, int64_t den);
bool rational_add(rational *out, rational a, rational b);
bool rational_subtract(rational *out, rational a, rational b);
bool rational_multiply(rational *out, rational a, rational b);
bool rational_divide(rational *out, rational a, rational b);
/* a^n for any whole n; 0^n needs n > 0. */
bool rational_power(rational *out, rational a, int64_t n);

static inline bool rational_equal(rational a, rational b) {
  return a.num == b.num && a.den == b.den;
}

/* --- balls --- */

enum { BALL_LIMBS = 6, BALL_BITS = 64 * BALL_LIMBS };

typedef enum ball_state { BALL_KNOWN, BALL_UNDEFINED, BALL_UNSURE } ball_state;

/* Arb's number; a mantissa of more than two limbs is in `limb` instead of memory of its own. */
typedef struct ball {
  ball_state state;
  arb_struct number;
  mp_limb_t limb[BALL_LIMBS];
} ball;

ball ball_of_int(int64_t n);
/* x is finite; exact. */
ball ball_of_double(double x);
ball ball_of_rational(rational q);
ball ball_undefined(void);
ball ball_unsure(void);
/* The midpoint, rounded; infinite where a double cannot hold it. Only of a known number. */
double ball_to_double(ball x);

ball ball_negate(ball x);
/* Without the sign of the midpoint. */
ball ball_abs(ball x);
ball ball_add(ball x, ball y);
ball ball_subtract(ball x, ball y);
ball ball_multiply(ball x, ball y);
/* Undefined where y may be 0, that is, where 0 lies within its radius. */
ball ball_divide(ball x, ball y);
/* x^n; 0^0 is 1. */
ball ball_power(ball x, int64_t n);

/* Undefined for negative x. */
ball ball_sqrt(ball x);
ball ball_exp(ball x);
/* Undefined where x may be 0 or less. */
ball ball_log(ball x);
ball ball_sin(ball x);
ball ball_cos(ball x);
ball ball_atan(ball x);
/* Undefined outside of -1 .. 1. */
ball ball_asin(ball x);
ball ball_pi(void);

/* Whether 0 lies within the radius; no for what is not known. */
bool ball_may_be_zero(ball x);
/* Whether x is certainly below 0. */
bool ball_is_negative(ball x);
/* Whether |x| is certainly at most |y|. */
bool ball_is_within(ball x, ball y);
/* Whether the two can be one number: their balls meet, and both are known to a relative error of
 * 2^-100. Zero equals only what may be zero, with a radius of at most 2^-100. No for what is not
 * known. */
bool ball_equal(ball x, ball y);
/* Whether adding y to x lost digits of the smaller that tell it from its neighbours: the sum is
 * rounded and one of them is less than 2^-250 of the other, yet not zero. */
bool ball_sum_swallows(ball x, ball y, ball sum);
/* The largest whole number that is at most the midpoint of x, into *out; no if it needs more than
 * 62 bits or x is not known. */
bool ball_floor(ball x, int64_t *out);

/* --- values --- */

typedef struct answer_value {
  bool exact; /* q holds the value; else x does */
  bool has_variables;
  rational q;
  ball x;
  int places; /* decimal places of a bare number, 0 of a whole one; -1: it is no bare number */
  int digits; /* of a bare number from its first that is not 0 on */
} answer_value;

answer_value answer_of_rational(rational q);
answer_value answer_of_int(int64_t n);
answer_value answer_of_ball(ball x);
/* The value as a ball, however it is held. */
ball answer_ball(const answer_value *a);
/* a + b, a - b, a * b or a / b. A sum of two numbers whose sizes differ so much that the smaller
 * would be rounded away is BALL_UNSURE. */
answer_value answer_apply(char operation, answer_value a, answer_value b);
/* a^b; roots of perfect powers of small index stay exact, odd roots of negative numbers are real.
 */
answer_value answer_power(answer_value a, answer_value b);
/* Undefined for negative and broken numbers, BALL_UNSURE above ANSWER_MOST_FACTORS. Of a formula's
 * value x only the recurrence x! = x (x - 1)! holds, which is what formulas use. */
enum { ANSWER_MOST_FACTORS = 10000 };
answer_value answer_factorial(answer_value a);
answer_value answer_binomial(answer_value n, answer_value k);
/* Frees the memory that the libraries keep for later use by this thread. */
void answer_release_scratch(void);

#endif
