/* Addressed (counter-based) random numbers: every sample has an address, and its value depends on
 * nothing else.
 *
 * The generator is Philox4x32-10 (Salmon et al., SC11) as implemented by Random123. A stream is
 * (seed, purpose, entity); block `index` of a stream holds four independent 32-bit words:
 *
 *   key     = { seed low, seed high }
 *   counter = { index low, entity low, entity high, purpose << 16 | index high 16 }
 *
 * A stream has 2^48 blocks of four words, and streams never overlap. Threads, order, resuming and
 * backends cannot change a sample; the same functions compile in CUDA. Hot loops call rng_block();
 * code that needs a GSL distribution wraps a stream with rng_gsl_new() (about three times the cost
 * per sample). */
#ifndef GEPOLAB_CORE_RANDOM_RNG_H
#define GEPOLAB_CORE_RANDOM_RNG_H

#include "core/random/rng_purposes.h"

/* Disables Random123's use of intrinsics, which Philox does not need, and whose headers have forty
 * thousand lines. */
#define R123_USE_SSE 0
#define R123_USE_X86INTRIN_H 0
#include <Random123/philox.h>
#include <assert.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdint.h>

/* Marks functions that CUDA kernels call too. */
#ifdef __CUDACC__
#define RNG_FUNCTION static inline __host__ __device__
#else
#define RNG_FUNCTION static inline
#endif

typedef struct rng_words {
  uint32_t v[4];
} rng_words;

RNG_FUNCTION rng_stream rng_stream_at(uint64_t seed, rng_purpose purpose, uint64_t entity) {
  return (rng_stream){seed, entity, (uint32_t)purpose};
}

/* The four 32-bit words of block `index` of a stream. index is below 2^48, which is asserted on the
 * host: higher bits are not part of the address, so two blocks would have the same words. */
RNG_FUNCTION rng_words rng_block(rng_stream s, uint64_t index) {
#ifndef __CUDA_ARCH__
  assert(index >> 48 == 0);
#endif
  philox4x32_ctr_t counter = {{(uint32_t)index, (uint32_t)s.entity, (uint32_t)(s.entity >> 32),
                               s.purpose << 16 | (uint32_t)(index >> 32 & 0xffffu)}};
  philox4x32_key_t key = {{(uint32_t)s.seed, (uint32_t)(s.seed >> 32)}};
  philox4x32_ctr_t out = philox4x32(counter, key);
  return (rng_words){{out.v[0], out.v[1], out.v[2], out.v[3]}};
}

/* Uniform on (0,1), never 0 or 1: the 2^32 midpoints (x + 1/2) / 2^32. */
RNG_FUNCTION double rng_u01(uint32_t word) {
  return ((double)word + 0.5) * 0x1p-32;
}

/* Uniform on (0,1), never 0 or 1: the 2^52 odd multiples of 2^-53. All are exactly representable,
 * so nothing rounds up to 1, and floor(u n) is below n for any n. */
RNG_FUNCTION double rng_u01_53(uint32_t high, uint32_t low) {
  uint64_t x = (uint64_t)high << 21 ^ (uint64_t)low >> 11;
  return (double)(x | 1) * 0x1p-53;
}

/* Block index of token `position` (below 2^20) of response `response` (below 2^28) in a batch. */
RNG_FUNCTION uint64_t rng_token_index(uint64_t response, uint64_t position) {
  return response << 20 | position;
}

/* --- standard normal numbers --- */
/* Normal numbers by the Box-Muller method: for uniform u and v, sqrt(-2 ln u) cos(2 pi v) and
 * sqrt(-2 ln u) sin(2 pi v) are independent and normal. All normal numbers of the program are
 * sampled here. Prefix: rng_normal. */

/* Both normal numbers of a block, from 53-bit uniforms: writes scale * cosine to out[0] and scale *
 * sine to out[1]. */
RNG_FUNCTION void rng_normal_pair(rng_words w, double scale, double out[2]) {
  const double radius = scale * sqrt(-2 * log(rng_u01_53(w.v[0], w.v[1])));
  const double angle = 6.283185307179586477 * rng_u01_53(w.v[2], w.v[3]);
  out[0] = radius * cos(angle);
  out[1] = radius * sin(angle);
}

/* Only the first of the two, with scale 1. */
static inline double rng_normal(rng_words w) {
  const double radius = sqrt(-2 * log(rng_u01_53(w.v[0], w.v[1])));
  return radius * cos(6.283185307179586477 * rng_u01_53(w.v[2], w.v[3]));
}

/* One normal number from 32-bit uniforms, the block's first two words; at most 6.8 in absolute
 * value. For random directions, so that stored results stay reproducible. */
static inline double rng_normal_32(rng_words w) {
  return sqrt(-2 * log(rng_u01(w.v[0]))) * cos(6.283185307179586477 * rng_u01(w.v[1]));
}

/* --- distributions of GSL --- */

/* Wraps a stream as a GSL generator, starting at block 0, using words in order; free with
 * gsl_rng_free(). NULL if out of memory. gsl_rng_set() restarts the stream with another seed,
 * rng_gsl_seek() at any block. */
gsl_rng *rng_gsl_new(rng_stream stream);
void rng_gsl_seek(gsl_rng *generator, rng_stream stream, uint64_t block);

#endif
