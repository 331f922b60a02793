/* What the two forms of drawing share.
 *
 * A token's weight is e^((z - greatest) / temperature), computed in float, as a whole number of
 * 2^-44: sums are exact and the same in any order, so that they may be taken by any number of
 * blocks and atomic additions. Rounding moves a weight by some 2^-22 of itself, as the logits' own
 * does; a weight below 2^-45 of the greatest one's is zero. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_SAMPLE_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_SAMPLE_CUH

#include "llm/backend/cuda/device.cuh"

#include <Random123/philox.h>
#include <gsl/gsl_rng.h>

extern "C" {
#include "core/random/rng.h"
}

#include <float.h>
#include <math.h>

typedef unsigned long long weight_t;

static const float WEIGHT_UNIT = 0x1p44f;

struct sample_spec {
  double temperature, top_p;
  size_t top_k; /* 0: off */
  float factor; /* log2(e) / temperature */
  rng_stream stream;
  int greedy;
};

/* Where draws go, [rows] each. */
struct sample_to {
  int32_t *token;
  float *logq, *logq_truncated;
};

/* One row: n logits, the greatest of them. */
struct sample_row {
  const float *z;
  size_t n;
  float greatest, factor;
};

static __device__ __forceinline__ weight_t weight_of(const sample_row &x, float z) {
  const float w = exp2f((z - x.greatest) * x.factor);
  return w >= 0 ? static_cast<weight_t>(w * WEIGHT_UNIT + 0.5f) : 0;
}

/* Order-preserving bits of a float, and back; both zeros are one, what is not a number is below
 * all. */
static __device__ __forceinline__ uint32_t key_of(float z) {
  if (!(z >= -INFINITY)) return 0;
  const uint32_t u = __float_as_uint(z + 0.0f);
  return u >> 31 ? ~u : u | 0x80000000u;
}
static __device__ __forceinline__ float float_of(uint32_t key) {
  return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

/* Sum over the warp's lanes before this one, and over all. */
template <typename T> static __device__ __forceinline__ T warp_sum_before(T x, T *all) {
  const T own = x;
  for (unsigned by = 1; by < 32; by *= 2) {
    const T other = __shfl_up_sync(WARP, x, by);
    if (threadIdx.x % 32 >= by) x += other;
  }
  *all = __shfl_sync(WARP, x, 31);
  return x - own;
}

/* How much of `total` lies before the draw of block `index`; below total. */
static __device__ __forceinline__ weight_t drawn_weight(const sample_spec &spec, uint64_t index,
                                                        weight_t total) {
  const rng_words w = rng_block(spec.stream, index);
  const weight_t at =
      static_cast<weight_t>(rng_u01_53(w.v[0], w.v[1]) * static_cast<double>(total));
  return at < total ? at : total - 1;
}

/* Row r's draw: the token, and its log-probabilities under sums of weights `total` and `kept`. */
static __device__ __forceinline__ void put_draw(const sample_to &to, size_t r, const sample_row &x,
                                                const sample_spec &spec, size_t token,
                                                weight_t total, weight_t kept) {
  const double unit = static_cast<double>(WEIGHT_UNIT);
  const double d =
      (static_cast<double>(x.z[token]) - static_cast<double>(x.greatest)) / spec.temperature;
  to.token[r] = static_cast<int32_t>(token);
  to.logq[r] = static_cast<float>(d - log(static_cast<double>(total) / unit));
  to.logq_truncated[r] = static_cast<float>(d - log(static_cast<double>(kept) / unit));
}

/* A row without a greatest number: the last token, told by its log-probability. */
static __device__ __forceinline__ void put_nan_draw(const sample_to &to, size_t r, size_t n) {
  to.token[r] = static_cast<int32_t>(n - 1);
  to.logq[r] = to.logq_truncated[r] = NAN;
}

/* Draws with top-k or top-p (backend_cuda_sample_truncated.cu). */
void sample_truncated(cuda_backend *b, sample_to to, const float *logits, const uint64_t *index,
                      size_t rows, size_t vocabulary, sample_spec spec);

#endif
