/* Arithmetic shared by the CPU and CUDA backends, part one: functions that do not depend on the
 * number type (the exponential, stochastic rounding, softmax statistics), and how a kernel is
 * divided among threads.
 *
 * A kernel here processes one row of a matrix (or one attention head of a row) and is run by a
 * group of lanes: one lane on the CPU, the threads of a warp or a block in CUDA. Lane l of n
 * processes elements l, l + n, l + 2 n, .... Sums and maxima over the row include all lanes, and
 * every lane gets the result. With one lane the loops are plain, and the compiler vectorises them
 * (SIMD).
 *
 * Before including this file CUDA defines kernel_group (a type, passed by value), LANE(g),
 * LANES(g), LANE_SUM(g, x) and LANE_MAX(g, x). The last two accept float and double, may
 * synchronise the lanes, and give all lanes the same bits. So all lanes of a group must call a
 * kernel together.
 *
 * Part two is kernels_rows.h: the kernels, included once per number type. In CUDA norms, attention
 * heads and the gated unit have separate loops over vectors of 16 bytes
 * (llm/backend/cuda/vector16.cuh), and share the per-number functions (norm_number, ...) with the
 * CPU.
 *
 * nvcc fuses a product with the addition that uses it, and of a sum of two products it fuses
 * either: in one kernel the first for some numbers and the second for others. KERNEL_PRODUCT(x, y)
 * is rounded, so that such a sum has the same bits in all kernels. */
#ifndef GEPOLAB_LLM_BACKEND_KERNELS_H
#define GEPOLAB_LLM_BACKEND_KERNELS_H

#include "llm/backend/backend.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__) || defined(GEPOLAB_EMULATE) /* tests/emulate: CUDA on the host */
#define KERNEL_CUDA
#endif

#ifdef KERNEL_CUDA

#define KERNEL static __device__ __forceinline__
#define KERNEL_BOTH static __host__ __device__ __forceinline__
#define KERNEL_RESTRICT __restrict__
#define SIMD
#define SIMD_SUM(...)
#define SIMD_MAX(...)
#define KERNEL_PRODUCT(x, y) __fmul_rn(x, y)

#else

#define KERNEL static inline
#define KERNEL_BOTH static inline
#define KERNEL_RESTRICT restrict
typedef struct kernel_group {
  char one;
} kernel_group;
#define LANE(g) 0
#define LANES(g) 1
#define LANE_SUM(g, x) (x)
#define LANE_MAX(g, x) (x)
#define KERNEL_PRAGMA(text) _Pragma(#text)
#define SIMD KERNEL_PRAGMA(omp simd)
#define SIMD_SUM(...) KERNEL_PRAGMA(omp simd reduction(+ : __VA_ARGS__))
#define SIMD_MAX(...) KERNEL_PRAGMA(omp simd reduction(max : __VA_ARGS__))
#define KERNEL_PRODUCT(x, y) ((x) * (y))

#endif

/* The type of a kernel's parameter g, which is not read if there is one lane. */
#define GROUP __attribute__((unused)) kernel_group

#ifdef KERNEL_CUDA

KERNEL float kernel_exp_f32(float x) {
  return expf(x);
}

#else

/* e^x within 2 ulp; 0 for x < -86.98 (there e^x is below twice the least normal float) and infinity
 * for x > 88.72284 (the logarithm of the largest float). Computed as 2^n e^r with n = round(x / log
 * 2) and |r| <= log(2) / 2. e^r is its Taylor polynomial of degree 7, with a remainder below 6e-9.
 * 2^n is computed as 2 * 2^(n - 1), because 2^(n - 1) is a normal float for every x in this range.
 * Adding 1.5 * 2^23 rounds to an integer and leaves it in the float's low bits. Outside the range
 * the result is replaced by masks instead of conditions: for a condition gcc would compute
 * everything that follows, a division for instance, for both outcomes. */
KERNEL float kernel_exp_f32(float x) {
  const float shift = 12582912.0f;
  const float shifted = x * 1.44269504f + shift, n = shifted - shift;
  const float r = (x - n * 0.693145751953125f) - n * 1.42860682030941723e-6f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * (r * r) + r + 1.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  const uint32_t half_power = (bits - 0x4B400000u + 126u) << 23; /* 2^(n - 1) */
  float power;
  memcpy(&power, &half_power, sizeof power);
  float y = p * 2 * power;
  const uint32_t below = 0u - (uint32_t)(x < -86.98f), above = 0u - (uint32_t)(x > 88.72284f);
  memcpy(&bits, &y, sizeof bits);
  bits = (bits & ~(below | above)) | (above & 0x7F800000u);
  memcpy(&y, &bits, sizeof y);
  return y;
}

#endif

KERNEL double kernel_exp_f64(double x) {
  return exp(x);
}

/* The bits of x in bfloat16, rounded stochastically: the upper 16 bits of `random`, a uniform
 * number, are added to the 16 bits of x that are dropped. Between neighbours a < b, x becomes b
 * with probability (x - a) / (b - a) exactly, so its expected value is x. Values that bfloat16
 * represents and infinities do not change; NaN becomes 0x7fff. Beyond the greatest finite bfloat16,
 * x is rounded to it. */
KERNEL_BOTH uint16_t kernel_round_bf16(float x, uint32_t random) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t infinite = 0x7f800000u, size = bits & 0x7fffffffu, up = bits + (random >> 16);
  if (size > infinite) return (uint16_t)0x7fff;
  if (size < infinite && (up & 0x7fffffffu) >= infinite) return (uint16_t)(bits >> 16);
  return (uint16_t)(up >> 16);
}

/* Radians per position by which pair i of a head of `dim` numbers turns: theta^(-2 i / dim), scaled
 * as in Llama 3 (transformers' _compute_llama3_parameters). */
KERNEL_BOTH double rotary_speed(double theta, rotary_scaling s, size_t i, size_t dim) {
  const double speed = pow(theta, -2.0 * (double)i / (double)dim);
  if (!(s.factor > 0)) return speed;
  const double turns = s.positions * speed / 6.283185307179586476925;
  if (turns > s.high) return speed;
  if (turns < s.low) return speed / s.factor;
  const double between = (turns - s.low) / (s.high - s.low);
  return (1 - between) * speed / s.factor + between * speed;
}

/* Running statistics of softmax(factor * z) over some elements of z (an online softmax): their
 * maximum and, with d = factor * (z - maximum), the sum of e^d and the sum of d e^d. They determine
 * log-sum-exp, entropy and log-probabilities. */
typedef struct softmax_stats {
  double greatest, sum, weighted;
} softmax_stats;

/* The statistics of a's and b's elements together. For no elements: greatest is -infinity and the
 * sums are 0. */
KERNEL_BOTH softmax_stats softmax_stats_join(softmax_stats a, softmax_stats b, double factor) {
  if (a.greatest < b.greatest) {
    softmax_stats swap = a;
    a = b;
    b = swap;
  }
  if (b.greatest == -INFINITY) return a;
  const double d = factor * (b.greatest - a.greatest), shrink = exp(d);
  a.sum += shrink * b.sum;
  a.weighted += shrink * (b.weighted + d * b.sum);
  return a;
}

/* Log-sum-exp: log of the sum of e^(factor * z). */
KERNEL_BOTH double softmax_stats_lse(softmax_stats s, double factor) {
  return factor * s.greatest + log(s.sum);
}

/* Entropy of the softmax in nats: the log of the sum of e^d, minus the softmax's mean of d. */
KERNEL_BOTH double softmax_stats_entropy(softmax_stats s) {
  return log(s.sum) - s.weighted / s.sum;
}

/* From the statistics of two parts of a row's logits: the probability of the first part, and the
 * entropy of the distribution renormalised over either part. If the second part is empty: mass 1
 * and entropy_rest NaN. */
typedef struct softmax_parts {
  double mass, entropy, entropy_rest;
} softmax_parts;
KERNEL_BOTH softmax_parts softmax_parts_of(softmax_stats part, softmax_stats rest,
                                           int rest_is_empty, double factor) {
  softmax_parts p = {1, softmax_stats_entropy(part), NAN};
  if (rest_is_empty) return p;
  p.mass = 1 / (1 + exp(softmax_stats_lse(rest, factor) - softmax_stats_lse(part, factor)));
  p.entropy_rest = softmax_stats_entropy(rest);
  return p;
}

/* Log-probability of an element z, in nats. */
KERNEL_BOTH double softmax_stats_logp(softmax_stats s, double z, double factor) {
  return factor * (z - s.greatest) - log(s.sum);
}

#endif
