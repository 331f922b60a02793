/* What the draws of tokens (sample.cu) and the sets of tokens that they keep (kept.cu) share.
 *
 * A token's weight is e^((z - greatest) / temperature), computed in float and then rounded to a
 * whole multiple of 2^-44. Sums of whole numbers are exact, so they are the same in any order and
 * may be made by any number of blocks with atomic additions. The rounding moves a weight by some
 * 2^-22 of itself, as much as the rounding of the logits does; a weight below 2^-45 of the greatest
 * token's is zero. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_SAMPLE_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_SAMPLE_CUH

#include "llm/backend/cuda/device.cuh"

#define R123_USE_SSE 0 /* as core/random/rng.h */
#define R123_USE_X86INTRIN_H 0
#include <Random123/philox.h>
#include <gsl/gsl_rng.h>

extern "C" {
#include "core/random/rng.h"
}

#include <float.h>
#include <math.h>

typedef unsigned long long weight_t;

static const float WEIGHT_UNIT = 0x1p44f;

/* The arguments of `sample` that are the same for all rows. */
struct sample_spec {
  double temperature, top_p;
  size_t top_k; /* 0: off */
  float factor; /* log2(e) / temperature */
  rng_stream stream;
  int greedy;
};

/* The distribution that is given, over so many tokens; stream and greedy are the caller's to set.
 */
static inline sample_spec sample_spec_of(const sampling_spec *given, size_t vocabulary) {
  sample_spec spec = {};
  spec.temperature = given->temperature;
  spec.top_p = given->top_p;
  spec.top_k = given->top_k < vocabulary ? given->top_k : 0;
  spec.factor = static_cast<float>(fmin(M_LOG2E / given->temperature, FLT_MAX));
  return spec;
}

/* The results, [rows] each. */
struct sample_to {
  int32_t *token;
  float *logq, *logq_truncated;
};

/* One row: its n logits, the greatest of them, and sample_spec.factor. */
struct sample_row {
  const float *z;
  size_t n;
  float greatest, factor;
};

/* The weight of logit z in units of 2^-44; 0 for not-a-number. */
static __device__ __forceinline__ weight_t logit_weight(const sample_row &x, float z) {
  const float w = exp2f((z - x.greatest) * x.factor);
  return w >= 0 ? static_cast<weight_t>(w * WEIGHT_UNIT + 0.5f) : 0;
}

/* A float's key: an integer that is ordered as floats are, and the float of a key. Both zeros have
 * one key; not-a-number has key 0, below all others. */
static __device__ __forceinline__ uint32_t logit_key(float z) {
  if (!(z >= -INFINITY)) return 0;
  const uint32_t u = __float_as_uint(z + 0.0f);
  return u >> 31 ? ~u : u | 0x80000000u;
}
static __device__ __forceinline__ float float_of(uint32_t key) {
  return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

/* A token's rank in its row: the key of its logit in the upper half, below it 2^32 - 1 - its
 * number, so that of equal logits the first token has the greatest rank. */
static __device__ __forceinline__ weight_t rank_of(float z, size_t token) {
  return static_cast<weight_t>(logit_key(z)) << 32 | (0xffffffffu - static_cast<uint32_t>(token));
}
static __device__ __forceinline__ size_t ranked_token(weight_t rank) {
  return 0xffffffffu - static_cast<uint32_t>(rank);
}

/* The greatest rank in slice blockIdx.y of the row of logits z[n], slices being of BLOCK * EACH
 * tokens. The whole block calls it, as those below. */
template <unsigned BLOCK, unsigned EACH>
static __device__ __forceinline__ weight_t best_of_slice(const float *z, size_t n) {
  const size_t first = blockIdx.y * static_cast<size_t>(BLOCK * EACH) + threadIdx.x;
  weight_t best = 0;
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    const size_t i = first + e * BLOCK;
    if (i >= n) continue;
    const weight_t rank = rank_of(z[i], i);
    best = rank > best ? rank : best;
  }
  return block_max(best);
}

/* The greatest of the ranks best[n] of a row's slices. */
template <unsigned BLOCK>
static __device__ __forceinline__ weight_t best_of_row(const weight_t *best, size_t n) {
  weight_t most = 0;
  for (size_t s = threadIdx.x; s < n; s += BLOCK) most = best[s] > most ? best[s] : most;
  return block_max(most);
}

/* Row r, whose greatest rank is `best`. */
static __device__ __forceinline__ sample_row sample_row_at(const float *logits, size_t r,
                                                           size_t vocabulary, weight_t best,
                                                           float factor) {
  return {logits + r * vocabulary, vocabulary, float_of(static_cast<uint32_t>(best >> 32)), factor};
}

/* The sum of x over the lanes of the warp before this one (exclusive prefix sum); *all is the whole
 * sum. */
template <typename T> static __device__ __forceinline__ T warp_sum_before(T x, T *all) {
  const T own = x;
  for (unsigned by = 1; by < 32; by *= 2) {
    const T other = __shfl_up_sync(WARP, x, by);
    if (threadIdx.x % 32 >= by) x += other;
  }
  *all = __shfl_sync(WARP, x, 31);
  return x - own;
}

/* The sum of x over the threads before this one of a block of BLOCK; the whole block calls it, any
 * number of times. */
template <unsigned BLOCK> static __device__ __forceinline__ weight_t block_sum_before(weight_t x) {
  __shared__ weight_t of_warp[BLOCK / 32];
  weight_t all, before = warp_sum_before(x, &all);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = all;
  __syncthreads();
  for (unsigned w = 0; w < threadIdx.x / 32; ++w) before += of_warp[w];
  return before;
}

/* The weight, below total, at which the draw of block `index` of the stream falls: u * total. */
static __device__ __forceinline__ weight_t drawn_weight(const sample_spec &spec, uint64_t index,
                                                        weight_t total) {
  const rng_words w = rng_block(spec.stream, index);
  const weight_t at =
      static_cast<weight_t>(rng_u01_53(w.v[0], w.v[1]) * static_cast<double>(total));
  return at < total ? at : total - 1;
}

/* Writes row r's token and its log-probabilities, before truncation (the sum of all weights is
 * `total`) and after it (the sum of those kept is `kept`). */
static __device__ __forceinline__ void put_sample(const sample_to &to, size_t r,
                                                  const sample_row &x, const sample_spec &spec,
                                                  size_t token, weight_t total, weight_t kept) {
  const double unit = static_cast<double>(WEIGHT_UNIT);
  const double d =
      (static_cast<double>(x.z[token]) - static_cast<double>(x.greatest)) / spec.temperature;
  to.token[r] = static_cast<int32_t>(token);
  to.logq[r] = static_cast<float>(d - log(static_cast<double>(total) / unit));
  to.logq_truncated[r] = static_cast<float>(d - log(static_cast<double>(kept) / unit));
}

/* Writes row r's token where its draw falls upon one of the EACH tokens from `first` on that this
 * thread of a block of BLOCK has. weight: theirs; before: of all slices before the block's; the
 * draw is at `wanted`. The whole block calls it. */
template <unsigned BLOCK, unsigned EACH>
static __device__ __forceinline__ void
put_draw_among(const sample_to &to, size_t r, const sample_row &x, const sample_spec &spec,
               size_t first, const weight_t (&weight)[EACH], weight_t before, weight_t wanted,
               weight_t total, weight_t kept) {
  weight_t mine = 0;
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) mine += weight[e];
  before += block_sum_before<BLOCK>(mine);
  if (wanted < before || wanted >= before + mine) return;
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) {
    if (wanted >= before && wanted < before + weight[e])
      put_sample(to, r, x, spec, first + e, total, kept);
    before += weight[e];
  }
}

/* A row whose logits are no distribution (no greatest number): the last token, with
 * log-probabilities that are not-a-number, so that the caller sees it. */
static __device__ __forceinline__ void put_nan_draw(const sample_to &to, size_t r, size_t n) {
  to.token[r] = static_cast<int32_t>(n - 1);
  to.logq[r] = to.logq_truncated[r] = NAN;
}

#endif
