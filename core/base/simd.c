/* e^x in four lanes: x = k ln 2 + r with |r| <= ln(2)/2, and a polynomial for e^r, without table
 * lookups and branches. */

#include "core/base/simd.h"

#include <math.h>
#include <string.h>

/* Numbers are processed PIECE at a time. Beyond LIMIT, where 2^k is not a normal number, exp() is
 * used. */
enum { PIECE = 64 };
#define LIMIT 700.0

/* Adding this constant rounds a number to an integer in the lowest bits. */
#define WHOLE 0x1.8p52
#define INVERSE_LN2 0x1.71547652b82fep0
/* ln 2 in two parts; the first has 20 trailing zeros, so that k times it is exact. */
#define LN2_HIGH 0x1.62e42fefp-1
#define LN2_LOW 0x1.473de6af278edp-34

/* Coefficients of (e^r - 1 - r) / r^2 for |r| <= 0.3466, giving e^r a relative error of 3.7e-18.
 * Minimax polynomial, found by Lawson's reweighted least squares at 400 points with 60 digits. */
static const double c[] = {0x1.000000000000ap-1,  0x1.55555555554fap-3,  0x1.5555555550863p-5,
                           0x1.1111111127b93p-7,  0x1.6c16c1842eccep-10, 0x1.a01a012a8058ep-13,
                           0x1.a0199a0114f39p-16, 0x1.71df24e3f5f65p-19, 0x1.28ad7c32c9429p-22,
                           0x1.ad803396b7244p-26};

INLINE void exp4(const lane4 *x, lane4 *out) {
  const lane4 shifted = *x * INVERSE_LN2 + WHOLE, k = shifted - WHOLE;
  const lane4 r = (*x - k * LN2_HIGH) - k * LN2_LOW, y = r * r, y2 = y * y;
  const lane4 low = (c[0] + c[1] * r) + (c[2] + c[3] * r) * y;
  const lane4 high = (c[4] + c[5] * r) + (c[6] + c[7] * r) * y + (c[8] + c[9] * r) * y2;
  const lane4 e = 1 + (r + y * (low + high * y2));
  *out = (lane4)((mask4)e + ((mask4)shifted << 52));
}

CLONES static void exp_piece(const double *x, double *out) {
  for (size_t k = 0; k < PIECE; k += 4) exp4((const lane4 *)(x + k), (lane4 *)(out + k));
}

/* Whether all numbers are within LIMIT. */
CLONES static int all_within(const double *x, size_t n) {
  uint64_t beyond = 0;
  for (size_t k = 0; k < n; ++k) beyond += fabs(x[k]) <= LIMIT ? 0 : 1;
  return beyond == 0;
}

void vector_exp(const double *x, size_t n, double *out) {
  for (size_t first = 0; first < n; first += PIECE) {
    const size_t m = n - first < PIECE ? n - first : PIECE;
    double in[PIECE], result[PIECE];
    const int within = all_within(x + first, m);
    if (m == PIECE && within) {
      exp_piece(x + first, out + first);
      continue;
    }
    memset(in, 0, sizeof in);
    memcpy(in, x + first, m * sizeof *in);
    for (size_t k = 0; k < m && !within; ++k) in[k] = fabs(in[k]) <= LIMIT ? in[k] : 0;
    exp_piece(in, result);
    for (size_t k = 0; k < m && !within; ++k)
      if (!(fabs(x[first + k]) <= LIMIT)) result[k] = exp(x[first + k]);
    memcpy(out + first, result, m * sizeof *result);
  }
}
