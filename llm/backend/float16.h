/* Conversion of 16-bit floating-point numbers to and from float: IEEE 754 binary16 (f16), and
 * bfloat16 (bf16), which is the upper half of a float. A 16-bit number is passed as the uint16_t of
 * its bits. Functions are named result_of_argument, without prefix. */
#ifndef GEPOLAB_LLM_BACKEND_FLOAT16_H
#define GEPOLAB_LLM_BACKEND_FLOAT16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float float_of_bf16(uint16_t half) {
  return float_of_bits((uint32_t)half << 16);
}

/* The nearest bfloat16, ties to even; NaN stays NaN. */
static inline uint16_t bf16_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* The nearest bfloat16, rounded once. Going through float would round twice: if the float is
 * exactly between two bfloat16 numbers but the double is not, the float's last bit is moved towards
 * the double first. */
static inline uint16_t bf16_of_double(double value) {
  float near = (float)value;
  uint32_t bits;
  memcpy(&bits, &near, sizeof bits);
  if ((bits & 0xffffu) == 0x8000u && (double)near != value)
    bits += fabs((double)near) < fabs(value) ? 1u : UINT32_MAX;
  return bf16_of_float(float_of_bits(bits));
}

static inline float float_of_f16(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 31u,
           fraction = half & 1023u;
  if (exponent == 31) return float_of_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent > 0) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  float small = (float)fraction * 0x1p-24f; /* subnormal */
  return sign != 0 ? -small : small;
}

#endif
