/* Steps of the optimisers, which also write the copy of the parameters in the model's type; casts,
 * which write only that copy; and the sum of squares.
 *
 * A thread processes EACH numbers: 16 bytes of each float array. Memory bandwidth limits the speed.
 * Bytes read and written per number: 28 for adamw (parameter, gradient and two moments are read,
 * three of them written), 20 for sgd with momentum and 12 without, 2 more for a copy in bfloat16; 6
 * for a cast; 4 for the sum of squares. */
#include "llm/backend/cuda/vector16.cuh"

#include "core/random/rng.h"

#include <math.h>

enum { EACH = 4, THREADS = 256 };

/* A copy_rounding in the form of a kernel argument; not stochastic: round to nearest. */
struct rounding {
  copy_rounding at;
  bool stochastic;
};
static rounding copy_rounding_of(const copy_rounding *given) {
  rounding r = {};
  if (given != NULL) r.at = *given;
  r.stochastic = given != NULL;
  return r;
}

/* word [EACH] = the random words of numbers first .. first + EACH - 1, which come from one or two
 * blocks of the stream. */
static __device__ __forceinline__ void random_words(uint32_t (&word)[EACH], rng_stream stream,
                                                    uint64_t first) {
  const unsigned skip = static_cast<unsigned>(first % 4);
  const rng_words a = rng_block(stream, first / 4);
  const rng_words b = skip == 0 ? a : rng_block(stream, first / 4 + 1);
  const uint32_t all[8] = {a.v[0], a.v[1], a.v[2], a.v[3], b.v[0], b.v[1], b.v[2], b.v[3]};
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e)
    word[e] = skip == 0 ? all[e] : skip == 1 ? all[e + 1] : skip == 2 ? all[e + 2] : all[e + 3];
}

/* copy[i ..] = x, as T. WIDE: all EACH numbers exist, and copy + i is aligned to their size; else
 * only the first `left` are stored. */
template <bool WIDE>
static __device__ __forceinline__ void store_copy(float *copy, const float (&x)[EACH], size_t i,
                                                  size_t left, const rounding &) {
  store_floats<WIDE>(copy + i, x, left);
}
template <bool WIDE>
static __device__ __forceinline__ void store_copy(bf16 *copy, const float (&x)[EACH], size_t i,
                                                  size_t left, const rounding &r) {
  bf16 y[EACH];
  if (r.stochastic) {
    uint32_t word[EACH];
    random_words(word, r.at.stream, r.at.first + i);
#pragma unroll
    for (unsigned e = 0; e < EACH; ++e) y[e].bits = kernel_round_bf16(x[e], word[e]);
  } else {
#pragma unroll
    for (unsigned e = 0; e < EACH; ++e) y[e] = to_bf16(x[e]);
  }
  if constexpr (WIDE) {
    uint2 all;
    all.x = static_cast<unsigned>(y[1].bits) << 16 | y[0].bits;
    all.y = static_cast<unsigned>(y[3].bits) << 16 | y[2].bits;
    *reinterpret_cast<uint2 *>(copy + i) = all;
  } else {
#pragma unroll
    for (unsigned e = 0; e < EACH; ++e)
      if (e < left) copy[i + e] = y[e];
  }
}

/* --- the copy alone --- */

/* Casts EACH numbers from i on, of which `left` exist. */
template <typename T, bool WIDE>
static __device__ __forceinline__ void cast_four(T *out, const float *in, size_t i, size_t left,
                                                 const rounding &r) {
  float x[EACH];
  load_floats<WIDE>(x, in + i, left);
  store_copy<WIDE>(out, x, i, left, r);
}

/* out [n] = in [n] as T. Only the last thread may have fewer than EACH numbers. */
template <typename T, bool WIDE>
__global__ void cast_elements(T *out, const float *in, size_t n, rounding r) {
  const size_t i = (blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x) * EACH;
  if (i >= n) return;
  if (WIDE && n - i >= EACH)
    cast_four<T, true>(out, in, i, EACH, r);
  else
    cast_four<T, false>(out, in, i, n - i, r);
}

template <typename T>
static void cast(cuda_backend *b, void *out, const void *in, size_t n, rounding r) {
  if (out == in) return;
  LAUNCH_VECTOR16(b, aligned16(0, out, in), cast_elements, T, blocks_of(n, EACH * THREADS), THREADS,
                  0, static_cast<T *>(out), static_cast<const float *>(in), n, r);
}

template <typename T> static void op_cast(backend *base, void *out, const void *in, size_t n) {
  cuda_operation op(base, "cast", n);
  cast<T>(op.b, out, in, n, copy_rounding_of(NULL));
}

template <typename T>
static void op_cast_stochastic(backend *base, void *out, const void *in, size_t n,
                               const copy_rounding *r) {
  cuda_operation op(base, "cast_stochastic", n);
  cast<T>(op.b, out, in, n, copy_rounding_of(r));
}

/* --- steps --- */

/* The arrays [n] of a step (operations.h); v is NULL for sgd, m without momentum. */
template <typename T> struct step_arrays {
  float *param;
  T *copy;
  const float *grad;
  float *m, *v;
  size_t n;
  rounding round;
};

/* The hyperparameters of a step as adamw_number (kernels_rows.h) expects them. */
struct adamw_scalars {
  float beta1, beta2, keep, coupled, scale, rate, root, eps;
};

/* A step of AdamW for EACH parameters from i on, of which `left` exist. */
template <typename T, bool WIDE>
static __device__ __forceinline__ void adamw_four(const step_arrays<T> &a, const adamw_scalars &s,
                                                  size_t i, size_t left) {
  float p[EACH], g[EACH], m[EACH], v[EACH];
  load_floats<WIDE>(p, a.param + i, left);
  load_floats<WIDE>(g, a.grad + i, left);
  load_floats<WIDE>(m, a.m + i, left);
  load_floats<WIDE>(v, a.v + i, left);
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e)
    p[e] = rows_of<float>::adamw_number(p[e], g[e], &m[e], &v[e], s.beta1, s.beta2, s.keep,
                                        s.coupled, s.scale, s.rate, s.root, s.eps);
  store_floats<WIDE>(a.param + i, p, left);
  store_floats<WIDE>(a.m + i, m, left);
  store_floats<WIDE>(a.v + i, v, left);
  if (static_cast<void *>(a.copy) != static_cast<void *>(a.param))
    store_copy<WIDE>(a.copy, p, i, left, a.round);
}

template <typename T, bool WIDE>
__global__ void adamw_step_elements(step_arrays<T> a, adamw_scalars s) {
  const size_t i = (blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x) * EACH;
  if (i >= a.n) return;
  if (WIDE && a.n - i >= EACH)
    adamw_four<T, true>(a, s, i, EACH);
  else
    adamw_four<T, false>(a, s, i, a.n - i);
}

template <typename T>
static step_arrays<T> optimizer_arrays(void *param, void *copy, const void *grad, void *m, void *v,
                                       size_t n, const copy_rounding *round) {
  step_arrays<T> a = {};
  a.param = static_cast<float *>(param);
  a.copy = static_cast<T *>(copy);
  a.grad = static_cast<const float *>(grad);
  a.m = static_cast<float *>(m);
  a.v = static_cast<float *>(v);
  a.n = n;
  a.round = copy_rounding_of(round);
  return a;
}

template <typename T>
static void op_adamw(backend *base, void *param, void *copy, const void *grad, void *m, void *v,
                     size_t n, const adamw_step *s) {
  cuda_operation op(base, "adamw", n);
  const adamw_scalars scalars = {static_cast<float>(s->beta1),
                                 static_cast<float>(s->beta2),
                                 static_cast<float>(1 - s->lr * s->decoupled),
                                 static_cast<float>(s->coupled),
                                 static_cast<float>(s->scale),
                                 static_cast<float>(s->lr / s->correct1),
                                 static_cast<float>(1 / sqrt(s->correct2)),
                                 static_cast<float>(s->eps)};
  LAUNCH_VECTOR16(op.b, aligned16(0, param, copy, grad, m, v), adamw_step_elements, T,
                  blocks_of(n, EACH * THREADS), THREADS, 0,
                  optimizer_arrays<T>(param, copy, grad, m, v, n, s->rounding), scalars);
}

struct sgd_scalars {
  float lr, momentum, coupled, scale;
};

/* A step of gradient descent for EACH parameters from i on, of which `left` exist. */
template <typename T, bool WIDE>
static __device__ __forceinline__ void sgd_four(const step_arrays<T> &a, const sgd_scalars &s,
                                                size_t i, size_t left) {
  const bool moves = a.m != nullptr;
  float p[EACH], g[EACH], m[EACH];
  load_floats<WIDE>(p, a.param + i, left);
  load_floats<WIDE>(g, a.grad + i, left);
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e) m[e] = 0;
  if (moves) load_floats<WIDE>(m, a.m + i, left);
#pragma unroll
  for (unsigned e = 0; e < EACH; ++e)
    p[e] = rows_of<float>::sgd_number(p[e], g[e], moves ? &m[e] : nullptr, s.lr, s.momentum,
                                      s.coupled, s.scale);
  store_floats<WIDE>(a.param + i, p, left);
  if (moves) store_floats<WIDE>(a.m + i, m, left);
  if (static_cast<void *>(a.copy) != static_cast<void *>(a.param))
    store_copy<WIDE>(a.copy, p, i, left, a.round);
}

template <typename T, bool WIDE>
__global__ void sgd_step_elements(step_arrays<T> a, sgd_scalars s) {
  const size_t i = (blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x) * EACH;
  if (i >= a.n) return;
  if (WIDE && a.n - i >= EACH)
    sgd_four<T, true>(a, s, i, EACH);
  else
    sgd_four<T, false>(a, s, i, a.n - i);
}

template <typename T>
static void op_sgd(backend *base, void *param, void *copy, const void *grad, void *m, size_t n,
                   const sgd_step *s) {
  cuda_operation op(base, "sgd", n);
  const sgd_scalars scalars = {static_cast<float>(s->lr), static_cast<float>(s->momentum),
                               static_cast<float>(s->coupled), static_cast<float>(s->scale)};
  LAUNCH_VECTOR16(op.b, aligned16(0, param, copy, grad, m), sgd_step_elements, T,
                  blocks_of(n, EACH * THREADS), THREADS, 0,
                  optimizer_arrays<T>(param, copy, grad, m, NULL, n, s->rounding), scalars);
}

/* --- sum of squares: blocks sum parts of a fixed size, the host adds the parts in their order --- */

enum { SQUARES_BLOCKS = 1024, SQUARES_THREADS = 256 };

/* part [gridDim.x] = each block's sum of squares, in double. */
template <typename T, bool WIDE> __global__ void squares_parts(double *part, const T *x, size_t n) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x * EACH;
  double sum = 0;
  for (size_t i = (blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x) * EACH; i < n;
       i += step) {
    float y[EACH];
    if (WIDE && n - i >= EACH)
      load_floats<WIDE>(y, x + i, EACH);
    else
      load_floats<false>(y, x + i, n - i);
#pragma unroll
    for (unsigned e = 0; e < EACH; ++e)
      sum += static_cast<double>(y[e]) * static_cast<double>(y[e]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

static double op_sum_squares(backend *base, const void *x, size_t n) {
  cuda_operation op(base, "sum_squares", n);
  if (n == 0) return 0;
  double host[SQUARES_BLOCKS];
  const size_t whole = blocks_of(n, EACH * SQUARES_THREADS);
  const unsigned parts =
      whole < SQUARES_BLOCKS ? static_cast<unsigned>(whole) : static_cast<unsigned>(SQUARES_BLOCKS);
  double *part = static_cast<double *>(cuda_scratch(op.b, parts * sizeof *part));
  LAUNCH_VECTOR16(op.b, aligned16(0, x), squares_parts, float, parts, SQUARES_THREADS, 0, part,
                  static_cast<const float *>(x), n);
  base->ops->download(base, host, part, parts * sizeof *part);
  if (cuda_stopped(op.b)) return 0;
  double sum = 0;
  for (unsigned i = 0; i < parts; ++i) sum += host[i];
  return sum;
}

CUDA_TYPED_OPERATION(cast)
CUDA_TYPED_OPERATION(cast_stochastic)
CUDA_TYPED_OPERATION(adamw)
CUDA_TYPED_OPERATION(sgd)
CUDA_OPERATION(sum_squares)
