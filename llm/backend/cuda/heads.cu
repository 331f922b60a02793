/* Attention heads: the norm of each head and the rotary embedding, forward and backward, in vectors
 * of 16 bytes (vector16.cuh). rows.cu describes their performance limit. */
#include "llm/backend/cuda/heads.cuh"

#include <assert.h>

enum { HEAD_THREADS = 128 };

/* cosine, sine [positions, half]: thread `at` computes element `at` of both arrays, which have n =
 * positions * half elements. */
__global__ void rotary_angles(float *cosine, float *sine, size_t n, size_t half, double theta,
                              rotary_scaling scaling) {
  const size_t at = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (at >= n) return;
  const size_t p = at / half, i = at % half;
  const double angle = static_cast<double>(p) * rotary_speed(theta, scaling, i, 2 * half);
  cosine[at] = static_cast<float>(cos(angle));
  sine[at] = static_cast<float>(sin(angle));
}

static void op_rotary_table(backend *base, void *cosine, void *sine, size_t positions, size_t dim,
                            double theta, rotary_scaling scaling) {
  cuda_operation op(base, "rotary_table", positions, dim);
  const size_t n = positions * (dim / 2);
  LAUNCH(op.b, rotary_angles, blocks_of(n, 128), 128, 0, static_cast<float *>(cosine),
         static_cast<float *>(sine), n, dim / 2, theta, scaling);
}

/* All heads of all rows. A group of lanes processes one head. */
struct head_rows {
  const float *cosine, *sine;
  const int32_t *position;
  size_t n; /* total number of heads: rows * (q + kv) */
  head_shape shape;
  unsigned lanes; /* per group: a power of two, at most 32 */
};

/* qk [rows, (q + kv) * dim], rstd [n] from qkv: group `mine` computes head `mine`. All lanes of a
 * warp take part in the sum, so groups beyond the last head compute the last head again and write
 * nothing. */
template <typename T, bool WIDE>
__global__ void head_rows_forward(T *qk, float *rstd, const T *qkv, const T *q_weight,
                                  const T *k_weight, head_rows at, float eps) {
  const unsigned N = vector16<T>::N, heads_each = HEAD_THREADS / at.lanes;
  const size_t mine = blockIdx.x * static_cast<size_t>(heads_each) + threadIdx.x / at.lanes;
  const head_shape s = at.shape;
  const size_t n = mine < at.n ? mine : at.n - 1, heads = s.q + s.kv, r = n / heads, h = n % heads;
  const size_t half = s.dim / 2, i = threadIdx.x % at.lanes * N;
  const size_t angle = static_cast<size_t>(at.position[r]) * half;
  float a[N], b[N];
  const float scale =
      load_head<T, WIDE>(a, b, qkv + (r * (heads + s.kv) + h) * s.dim, i, s.dim, at.lanes, eps);
  if (mine >= at.n || i >= half) return;
  norm_and_rotate<T, WIDE>(a, b, scale, h < s.q ? q_weight : k_weight, at.cosine + angle,
                           at.sine + angle, i, half);
  store_vector16<WIDE>(qk + n * s.dim + i, a, half - i);
  store_vector16<WIDE>(qk + n * s.dim + half + i, b, half - i);
  if (i == 0 && q_weight != nullptr) rstd[n] = scale;
}

/* A head must fit into one group: 32 lanes with two vectors of 4 floats. */
static bool head_fits(cuda_backend *b, head_shape shape) {
  if (shape.dim <= 256) return true;
  cuda_fail(b, GL_EINPUT, "heads", "heads of more than 256 numbers are not supported");
  return false;
}

template <typename T>
static void op_heads(backend *base, void *qk, void *rstd, const void *qkv, const void *q_weight,
                     const void *k_weight, const void *cosine, const void *sine,
                     const int32_t *position, size_t rows, head_shape shape, double eps) {
  cuda_operation op(base, "heads", rows, shape.q + shape.kv, shape.dim);
  assert(shape.dim % 2 == 0);
  if (!head_fits(op.b, shape)) return;
  const head_rows at = {static_cast<const float *>(cosine),
                        static_cast<const float *>(sine),
                        position,
                        rows * (shape.q + shape.kv),
                        shape,
                        head_lanes<T>(shape.dim)};
  const bool wide = aligned16(shape.dim / 2 * sizeof(T), qk, qkv, q_weight, k_weight, cosine, sine);
  LAUNCH_VECTOR16(op.b, wide, head_rows_forward, T, blocks_of(at.n, HEAD_THREADS / at.lanes),
                  HEAD_THREADS, 0, static_cast<T *>(qk), static_cast<float *>(rstd),
                  static_cast<const T *>(qkv), static_cast<const T *>(q_weight),
                  static_cast<const T *>(k_weight), at, static_cast<float>(eps));
}

/* Where a decode's keys and values are stored (operations.h: cache_store). */
template <typename T> struct head_cache {
  T *k, *v;
  const int32_t *slot;
  size_t capacity;
};

/* head_rows_forward() that also stores keys and values in the cache. at.n includes the heads of
 * values: rows * (q + 2 kv). */
template <typename T, bool WIDE>
__global__ void head_rows_store(T *qk, float *rstd, head_cache<T> cache, const T *qkv,
                                const T *q_weight, const T *k_weight, head_rows at, float eps) {
  const unsigned N = vector16<T>::N, heads_each = HEAD_THREADS / at.lanes;
  const size_t mine = blockIdx.x * static_cast<size_t>(heads_each) + threadIdx.x / at.lanes;
  const head_shape s = at.shape;
  const size_t heads = s.q + s.kv, all = heads + s.kv, n = mine < at.n ? mine : at.n - 1;
  const size_t r = n / all, h = n % all, half = s.dim / 2, i = threadIdx.x % at.lanes * N;
  const size_t position = static_cast<size_t>(at.position[r]);
  float a[N], b[N];
  const float scale = load_head<T, WIDE>(a, b, qkv + n * s.dim, i, s.dim, at.lanes, eps);
  if (mine >= at.n || i >= half) return;
  if (h < heads) {
    norm_and_rotate<T, WIDE>(a, b, scale, h < s.q ? q_weight : k_weight,
                             at.cosine + position * half, at.sine + position * half, i, half);
    T *const to = qk + (r * heads + h) * s.dim;
    store_vector16<WIDE>(to + i, a, half - i);
    store_vector16<WIDE>(to + half + i, b, half - i);
    if (i == 0 && q_weight != nullptr) rstd[r * heads + h] = scale;
  }
  if (h < s.q || cache.slot[r] < 0) return;
  const size_t place = static_cast<size_t>(cache.slot[r]) * cache.capacity + position;
  T *const to = (h < heads ? cache.k : cache.v) + (place * s.kv + (h - s.q) % s.kv) * s.dim;
  store_vector16<WIDE>(to + i, a, half - i);
  store_vector16<WIDE>(to + half + i, b, half - i);
}

template <typename T>
static void op_heads_store(backend *base, void *qk, void *rstd, void *cache_k, void *cache_v,
                           const void *qkv, const void *q_weight, const void *k_weight,
                           const void *cosine, const void *sine, const int32_t *position,
                           const int32_t *slot, size_t rows, size_t capacity, head_shape shape,
                           double eps) {
  cuda_operation op(base, "heads_store", rows, shape.q + 2 * shape.kv, shape.dim);
  assert(shape.dim % 2 == 0);
  if (!head_fits(op.b, shape)) return;
  const head_rows at = {static_cast<const float *>(cosine),
                        static_cast<const float *>(sine),
                        position,
                        rows * (shape.q + 2 * shape.kv),
                        shape,
                        head_lanes<T>(shape.dim)};
  const head_cache<T> cache = {static_cast<T *>(cache_k), static_cast<T *>(cache_v), slot,
                               capacity};
  const bool wide = aligned16(shape.dim / 2 * sizeof(T), qk, qkv, q_weight, k_weight, cosine, sine,
                              cache_k, cache_v);
  LAUNCH_VECTOR16(op.b, wide, head_rows_store, T, blocks_of(at.n, HEAD_THREADS / at.lanes),
                  HEAD_THREADS, 0, static_cast<T *>(qk), static_cast<float *>(rstd), cache,
                  static_cast<const T *>(qkv), static_cast<const T *>(q_weight),
                  static_cast<const T *>(k_weight), at, static_cast<float>(eps));
}

/* The gradient of one head: writes dqkv [dim], and adds this lane's part of the weight's gradient
 * to da_weight, db_weight. All lanes of the group must call it. `there` is false for a group
 * without a head, which takes part in the sum and writes nothing. */
template <typename T, bool WIDE>
static __device__ __forceinline__ void
head_grads(T *dqkv, float (&da_weight)[vector16<T>::N], float (&db_weight)[vector16<T>::N],
           const T *dqk, const T *qkv, float rstd, const T *weight, const float *cosine,
           const float *sine, size_t dim, unsigned lanes, bool there) {
  const unsigned N = vector16<T>::N;
  const size_t half = dim / 2, i = threadIdx.x % lanes * N;
  float da[N], db[N], a[N], b[N], wa[N], wb[N], c[N], t[N], dot = 0;
  load_halves<WIDE>(da, db, dqk, i, half);
  load_halves<WIDE>(a, b, qkv, i, half);
#pragma unroll
  for (unsigned e = 0; e < N; ++e) c[e] = t[e] = wa[e] = wb[e] = 0;
  if (weight != nullptr) load_halves<WIDE>(wa, wb, weight, i, half);
  if (i < half) {
    load_floats<WIDE>(c, cosine + i, half - i);
    load_floats<WIDE>(t, sine + i, half - i);
  }
#pragma unroll
  for (unsigned e = 0; e < N; ++e) {
    rows_of<T>::rotate_pair(&da[e], &db[e], c[e], -t[e]);
    dot += fmaf(da[e] * wa[e], a[e], db[e] * wb[e] * b[e]);
  }
  const float back = lanes_sum(dot, lanes) * rstd * rstd / static_cast<float>(dim);
  if (!there || i >= half) return;
  if (weight == nullptr) {
    store_vector16<WIDE>(dqkv + i, da, half - i);
    store_vector16<WIDE>(dqkv + half + i, db, half - i);
    return;
  }
#pragma unroll
  for (unsigned e = 0; e < N; ++e) {
    da_weight[e] += rows_of<T>::norm_weight_grad(da[e], a[e], rstd);
    db_weight[e] += rows_of<T>::norm_weight_grad(db[e], b[e], rstd);
    a[e] = rows_of<T>::norm_grad(da[e], a[e], wa[e], rstd, back);
    b[e] = rows_of<T>::norm_grad(db[e], b[e], wb[e], rstd, back);
  }
  store_vector16<WIDE>(dqkv + i, a, half - i);
  store_vector16<WIDE>(dqkv + half + i, b, half - i);
}

/* Writes this lane's gradients of q_weight (two halves) and of k_weight (two halves) to dweight
 * [2 * dim] of its group. */
template <unsigned N>
static __device__ __forceinline__ void
write_weight_grads(float *dweight, const float (&weight_grad)[4][N], size_t i, size_t half) {
#pragma unroll
  for (unsigned part = 0; part < 4; ++part)
#pragma unroll
    for (unsigned e = 0; e < N; ++e)
      if (i + e < half) dweight[part * half + i + e] = weight_grad[part][e];
}

/* Writes queries and keys of dqkv, and part [gridDim.x, 2 * dim]: each block's sum for the
 * gradients of q_weight and k_weight. All groups of a block run the same number of iterations,
 * because sums over lanes need all lanes of a warp. */
template <typename T, bool WIDE>
__global__ void head_rows_backward(T *dqkv, float *part, const T *dqk, const T *qkv,
                                   const float *rstd, const T *q_weight, const T *k_weight,
                                   head_rows at) {
  SHARED_MEMORY(float, dweight);
  const unsigned N = vector16<T>::N, groups = HEAD_THREADS / at.lanes,
                 group = threadIdx.x / at.lanes;
  const head_shape s = at.shape;
  const size_t heads = s.q + s.kv, half = s.dim / 2, width = 2 * s.dim;
  float weight_grad[4][N]; /* of q_weight: two halves; of k_weight: two halves */
#pragma unroll
  for (unsigned e = 0; e < N; ++e)
    weight_grad[0][e] = weight_grad[1][e] = weight_grad[2][e] = weight_grad[3][e] = 0;
  for (size_t base = blockIdx.x * static_cast<size_t>(groups); base < at.n;
       base += static_cast<size_t>(gridDim.x) * groups) {
    const bool there = base + group < at.n;
    const size_t n = there ? base + group : at.n - 1, r = n / heads, h = n % heads;
    const size_t angle = static_cast<size_t>(at.position[r]) * half;
    const size_t from = (r * (heads + s.kv) + h) * s.dim;
    const bool key = h >= s.q;
    float da[N], db[N];
#pragma unroll
    for (unsigned e = 0; e < N; ++e) da[e] = db[e] = 0;
    head_grads<T, WIDE>(dqkv + from, da, db, dqk + n * s.dim, qkv + from,
                        q_weight != nullptr ? rstd[n] : 0.0f, key ? k_weight : q_weight,
                        at.cosine + angle, at.sine + angle, s.dim, at.lanes, there);
#pragma unroll
    for (unsigned e = 0; e < N; ++e) {
      weight_grad[0][e] += key ? 0.0f : da[e];
      weight_grad[1][e] += key ? 0.0f : db[e];
      weight_grad[2][e] += key ? da[e] : 0.0f;
      weight_grad[3][e] += key ? db[e] : 0.0f;
    }
  }
  write_weight_grads<N>(dweight + group * width, weight_grad, threadIdx.x % at.lanes * N, half);
  __syncthreads();
  for (size_t i = threadIdx.x; i < width; i += blockDim.x) {
    float sum = 0;
    for (unsigned g = 0; g < groups; ++g) sum += dweight[g * width + i];
    part[blockIdx.x * width + i] = sum;
  }
}

template <typename T>
static void op_heads_backward(backend *base, void *dqkv, void *dq_weight, void *dk_weight,
                              const void *dqk, const void *qkv, const void *rstd,
                              const void *q_weight, const void *k_weight, const void *cosine,
                              const void *sine, const int32_t *position, size_t rows,
                              head_shape shape) {
  cuda_operation op(base, "heads_backward", rows, shape.q + shape.kv, shape.dim);
  assert(shape.dim % 2 == 0);
  if (!head_fits(op.b, shape)) return;
  const head_rows at = {static_cast<const float *>(cosine),
                        static_cast<const float *>(sine),
                        position,
                        rows * (shape.q + shape.kv),
                        shape,
                        head_lanes<T>(shape.dim)};
  const unsigned groups = HEAD_THREADS / at.lanes, parts = cuda_parts(blocks_of(at.n, groups));
  const size_t width = 2 * shape.dim;
  const bool wide =
      aligned16(shape.dim / 2 * sizeof(T), dqkv, dqk, qkv, q_weight, k_weight, cosine, sine);
  float *part = static_cast<float *>(cuda_scratch(op.b, parts * width * sizeof *part));
  LAUNCH_VECTOR16(op.b, wide, head_rows_backward, T, parts, HEAD_THREADS,
                  groups * width * sizeof(float), static_cast<T *>(dqkv), part,
                  static_cast<const T *>(dqk), static_cast<const T *>(qkv),
                  static_cast<const float *>(rstd), static_cast<const T *>(q_weight),
                  static_cast<const T *>(k_weight), at);
  if (rows == 0 || q_weight == NULL) return;
  cuda_add_parts(op.b, dq_weight, part, parts, width, shape.dim);
  cuda_add_parts(op.b, dk_weight, part + shape.dim, parts, width, shape.dim);
}

CUDA_OPERATION(rotary_table)
CUDA_TYPED_OPERATION(heads)
CUDA_TYPED_OPERATION(heads_store)
CUDA_TYPED_OPERATION(heads_backward)
