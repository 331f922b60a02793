/* Real numbers of 384 bits that carry a bound of their error: ball arithmetic. Values of answers
 * are computed with them where exact fractions do not hold them, so that 2^{100} and 2^{100} + 1
 * are two numbers, and \sqrt{2}\sqrt{2} - 2 is known to be zero up to an error rather than a small
 * number.
 *
 * A number is a midpoint and a radius; the true value lies between midpoint - radius and midpoint +
 * radius. Every operation widens the radius by what it rounds away, so it never has to be guessed
 * how much two results may differ. What has no value (a division by zero, a logarithm of -1) is
 * BALL_UNDEFINED; what exists but cannot be told apart from its neighbours in 384 bits (the sine of
 * 10^{100}, e^x for x = 10^{-80}), or is larger than 2^(2^44) or smaller than its inverse, is
 * BALL_UNSURE. Both pass through every operation, BALL_UNDEFINED before BALL_UNSURE.
 *
 * Nothing here allocates. Prefix: ball_. */
#ifndef GEPOLAB_LLM_ANSWER_BALL_H
#define GEPOLAB_LLM_ANSWER_BALL_H

#include "llm/answer/rational.h"

#include <stdint.h>

enum { BALL_LIMBS = 6, BALL_BITS = 64 * BALL_LIMBS };

typedef enum ball_state { BALL_KNOWN, BALL_UNDEFINED, BALL_UNSURE } ball_state;

/* mantissa * 2^exponent; the mantissa is 0 or has its highest bit set. */
typedef struct ball_radius {
  uint32_t mantissa;
  int64_t exponent;
} ball_radius;

/* sign * 0.limb * 2^exponent, the fraction in [1/2, 1) with limb[BALL_LIMBS - 1] its highest 64
 * bits; sign 0 is the midpoint 0, and the other fields are then not read. */
typedef struct ball {
  ball_state state;
  int sign;
  int64_t exponent;
  uint64_t limb[BALL_LIMBS];
  ball_radius radius;
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
ball ball_add(ball x, ball y);
ball ball_subtract(ball x, ball y);
ball ball_multiply(ball x, ball y);
/* Undefined where y may be 0, that is, where 0 lies within its radius. */
ball ball_divide(ball x, ball y);
/* x^n by repeated squaring; 0^0 is 1. */
ball ball_power(ball x, int64_t n);
/* x with a radius that is larger by the most that |by| can be. */
ball ball_widened(ball x, ball by);

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
int ball_may_be_zero(ball x);
/* Whether x is certainly below 0. */
int ball_is_negative(ball x);
/* Whether |x| is certainly at most |y|. */
int ball_is_within(ball x, ball y);
/* Whether the two can be one number: their balls meet, and both are known to a share of 2^-100.
 * Zero equals only what may be zero, with a radius of at most 2^-100. No for what is not known. */
int ball_equal(ball x, ball y);
/* Whether adding y to x lost digits of the smaller that tell it from its neighbours: the sum is
 * rounded and one of them is less than 2^-250 of the other, yet not zero. */
int ball_sum_swallows(ball x, ball y, ball sum);
/* The largest whole number that is at most the midpoint of x, into *out; 0 if it needs more than 62
 * bits or x is not known. */
int ball_floor(ball x, int64_t *out);

#endif
