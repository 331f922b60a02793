/* Generation: the cache of keys and values, attention of each row's query over its slot, with or
 * without the preparation of its heads (heads.cuh), and the copies by which the host reads sampled
 * tokens while the next step runs.
 *
 * Layout: in both caches a slot has `capacity` positions of kv * dim numbers.
 *
 * The positions of a slot are divided into groups of UNITS units of UNIT keys. A warp computes a
 * unit and a block a group, for the query heads that read the same keys. Each has a partial
 * softmax: its greatest score, its sum of weights e^(score - greatest), and its values weighted by
 * them. A block combines its units in order. If a row has several groups, its last block combines
 * those (as in Flash-Decoding; Dao et al., 2023). So a row's result depends only on its slot and
 * position. */
#include "llm/backend/cuda/heads.cuh"
#include "llm/backend/cuda/mma.cuh"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static const unsigned UNIT = 32, UNITS = 8, THREADS = UNITS * 32;

/* Stores row blockIdx.x in its slot of both caches. */
template <typename T>
__global__ void store_rows(T *cache_k, T *cache_v, const T *qk, const T *qkv, const int32_t *slot,
                           const int32_t *position, size_t capacity, head_shape s) {
  const size_t r = blockIdx.x, width = s.kv * s.dim;
  if (slot[r] < 0) return;
  const size_t to =
      (static_cast<size_t>(slot[r]) * capacity + static_cast<size_t>(position[r])) * width;
  const T *key = qk + r * cuda_qk_width(s) + s.q * s.dim;
  const T *value = qkv + r * cuda_qkv_width(s) + (s.q + s.kv) * s.dim;
  for (size_t i = threadIdx.x; i < width; i += blockDim.x) {
    cache_k[to + i] = key[i];
    cache_v[to + i] = value[i];
  }
}

template <typename T>
static void op_cache_store(backend *base, void *cache_k, void *cache_v, const void *qk,
                           const void *qkv, const int32_t *slot, const int32_t *position,
                           size_t rows, size_t capacity, head_shape shape) {
  cuda_operation op(base, "cache_store", rows, capacity, shape.kv * shape.dim);
  LAUNCH(op.b, store_rows<T>, static_cast<unsigned>(rows), THREADS, 0, static_cast<T *>(cache_k),
         static_cast<T *>(cache_v), static_cast<const T *>(qk), static_cast<const T *>(qkv), slot,
         position, capacity, shape);
}

static void op_cache_copy(backend *base, void *cache_k, void *cache_v, size_t from, size_t to,
                          size_t length, size_t capacity, head_shape shape) {
  const size_t row = shape.kv * shape.dim * base->element, slot = capacity * row;
  char *k = static_cast<char *>(cache_k), *v = static_cast<char *>(cache_v);
  base->ops->copy(base, k + to * slot, k + from * slot, length * row);
  base->ops->copy(base, v + to * slot, v + from * slot, length * row);
}

/* --- attention --- */

/* The n keys and values of a unit, `width` numbers apart; at least one. */
template <typename T> struct unit_rows {
  const T *key, *value;
  unsigned n;
  size_t width;
};

/* Units of the types below compute, with all lanes of a warp, for HEADS query heads of DIM numbers
 * (0: of any size up to 256): stats [HEADS] = greatest score and sum of weights; sum [HEADS, dim] =
 * weighted sum of values. */

/* In float arithmetic. Lane j has the score of key j. */
template <typename T> struct float_unit {
  typedef T type;
  static const int HEADS = 1, DIM = 0, NUMBERS = 8; /* numbers of a head per lane */
  static __device__ __forceinline__ void load(float (&to)[NUMBERS], const T *from, size_t dim) {
#pragma unroll
    for (unsigned e = 0; e < NUMBERS; ++e) {
      const unsigned at = threadIdx.x % 32 + 32 * e;
      to[e] = at < dim ? to_float(from[at]) : 0.0f;
    }
  }
  static __device__ __forceinline__ void compute(float2 *stats, float *sum, const T *query,
                                                 const unit_rows<T> &rows, size_t dim,
                                                 float scale) {
    const unsigned lane = threadIdx.x % 32;
    float q[NUMBERS], x[NUMBERS], o[NUMBERS] = {}, score = -INFINITY;
    load(q, query, dim);
#pragma unroll 4
    for (unsigned j = 0; j < rows.n; ++j) {
      load(x, rows.key + j * rows.width, dim);
      float dot = 0;
#pragma unroll
      for (int e = 0; e < NUMBERS; ++e) dot += q[e] * x[e];
      dot = warp_sum(dot);
      if (lane == j) score = dot * scale;
    }
    const float top = warp_max(score), weight = expf(score - top), total = warp_sum(weight);
#pragma unroll 4
    for (unsigned j = 0; j < rows.n; ++j) {
      load(x, rows.value + j * rows.width, dim);
      const float w = __shfl_sync(WARP, weight, static_cast<int>(j));
#pragma unroll
      for (int e = 0; e < NUMBERS; ++e) o[e] += w * x[e];
    }
#pragma unroll
    for (unsigned e = 0; e < NUMBERS; ++e)
      if (lane + 32 * e < dim) sum[lane + 32 * e] = o[e];
    if (lane == 0) stats[0] = make_float2(top, total);
  }
};

static __device__ __forceinline__ uint32_t lower_halves(uint32_t x, uint32_t y) {
  return (x & 0xffffu) | y << 16;
}
static __device__ __forceinline__ uint32_t upper_halves(uint32_t x, uint32_t y) {
  return x >> 16 | (y & 0xffff0000u);
}

/* On tensor cores. Lanes read operands of mma() from device memory, 16 bytes at a time. The order
 * of dimensions within a product's operands is free, so a lane's eight adjacent numbers are placed
 * where mma() expects numbers that are not adjacent.
 *
 * scores [heads, keys] = A [queries] B [keys]: row g of A is the query of head g % 4 (zeros if
 * there is no such head), rows from 8 on are zeros. values [dim, heads] = A [values] B [weights]:
 * columns 0 to 3 of B are the weights of the heads as bfloat16, columns 4 to 7 what this rounding
 * left, so the sum of a head's two columns has weights of 16 bits. */
template <int DIM_, int HEADS_> struct mma_unit {
  typedef bf16 type;
  static const int HEADS = HEADS_, DIM = DIM_;
  static_assert(HEADS <= 4 && DIM % 64 == 0, "as the head of this type says");
  static __device__ __forceinline__ void load(uint32_t (&to)[4], const bf16 *from) {
    const uint4 x = *reinterpret_cast<const uint4 *>(from);
    to[0] = x.x;
    to[1] = x.y;
    to[2] = x.z;
    to[3] = x.w;
  }
  static __device__ __forceinline__ void compute(float2 *stats, float *sum, const bf16 *query,
                                                 const unit_rows<bf16> &rows, size_t, float scale) {
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, last = rows.n - 1;
    uint32_t k[UNIT / 8][DIM / 32][4];
#pragma unroll
    for (unsigned j = 0; j < UNIT / 8; ++j) {
      const bf16 *row = rows.key + min(8 * j + g, last) * rows.width + 8 * t;
#pragma unroll
      for (unsigned c = 0; c < DIM / 32; ++c) load(k[j][c], row + 32 * c);
    }
    float x[UNIT / 8][4] = {};
#pragma unroll
    for (unsigned c = 0; c < DIM / 32; ++c) {
      uint32_t q[4] = {};
      if (g % 4 < HEADS) load(q, query + g % 4 * DIM + 32 * c + 8 * t);
      const uint32_t first[4] = {q[0], 0, q[1], 0}, second[4] = {q[2], 0, q[3], 0};
#pragma unroll
      for (unsigned j = 0; j < UNIT / 8; ++j) {
        mma(x[j], first, k[j][c][0], k[j][c][1]);
        mma(x[j], second, k[j][c][2], k[j][c][3]);
      }
    }
    float top = -INFINITY, total = 0;
#pragma unroll
    for (unsigned j = 0; j < UNIT / 8; ++j)
#pragma unroll
      for (unsigned e = 0; e < 2; ++e) {
        x[j][e] = 8 * j + 2 * t + e <= last ? x[j][e] * scale : -INFINITY;
        top = fmaxf(top, x[j][e]);
      }
    top = quad_max(top);
    uint32_t weight[UNIT / 8];
#pragma unroll
    for (unsigned j = 0; j < UNIT / 8; ++j) {
      float w[2];
#pragma unroll
      for (unsigned e = 0; e < 2; ++e) {
        w[e] = expf(x[j][e] - top);
        total += w[e];
        if (g >= 4) w[e] -= to_float(to_bf16(w[e]));
      }
      weight[j] = pack_halves(w[0], w[1]);
    }
    total = quad_sum(total);
    if (t == 0 && g < HEADS) stats[g] = make_float2(top, total);
    float o[DIM / 64][4][4] = {};
#pragma unroll
    for (unsigned i = 0; i < UNIT / 16; ++i) {
      uint32_t v[4][DIM / 64][4];
#pragma unroll
      for (unsigned j = 0; j < 4; ++j) {
        const unsigned key = 16 * i + 2 * t + j % 2 + j / 2 * 8;
        const bf16 *row = rows.value + min(key, last) * rows.width + 8 * g;
#pragma unroll
        for (unsigned c = 0; c < DIM / 64; ++c) load(v[j][c], row + 64 * c);
      }
#pragma unroll
      for (unsigned c = 0; c < DIM / 64; ++c)
#pragma unroll
        for (unsigned m = 0; m < 4; ++m) {
          const uint32_t a[4] = {
              lower_halves(v[0][c][m], v[1][c][m]), upper_halves(v[0][c][m], v[1][c][m]),
              lower_halves(v[2][c][m], v[3][c][m]), upper_halves(v[2][c][m], v[3][c][m])};
          mma(o[c][m], a, weight[2 * i], weight[2 * i + 1]);
        }
    }
#pragma unroll
    for (unsigned c = 0; c < DIM / 64; ++c)
#pragma unroll
      for (unsigned m = 0; m < 4; ++m) {
#pragma unroll
        for (unsigned e = 0; e < 4; ++e) o[c][m][e] += __shfl_xor_sync(WARP, o[c][m][e], 2);
#pragma unroll
        for (unsigned e = 0; e < 2; ++e)
          if (t < 2 && 2 * t + e < HEADS)
            *reinterpret_cast<float2 *>(sum + (2 * t + e) * DIM + 64 * c + 8 * g + 2 * m) =
                make_float2(o[c][m][e], o[c][m][e + 2]);
      }
  }
};

/* Queries, keys and values as the product leaves them, for a kernel that prepares them itself
 * (operations.h: heads_attention). */
struct raw_heads {
  const bf16 *qkv, *q_weight, *k_weight; /* weights NULL: no norm */
  const float *cosine, *sine;
  bf16 *cache_k, *cache_v;
  float eps;
  unsigned lanes; /* of a head (head_lanes) */
};

/* The result and the inputs (shapes in operations.h): qk, or raw. */
template <typename T> struct cached_arrays {
  T *out;
  const T *qk, *cache_k, *cache_v;
  raw_heads raw;
};

/* The other arguments, and scratch memory for the results of groups. */
struct cached_call {
  const int32_t *slot, *position;
  size_t capacity, groups; /* groups of a full slot */
  head_shape shape;
  float scale;
  float2 *stats;     /* [rows, q, groups]: greatest score, sum of weights */
  float *sum;        /* [rows, q, groups, dim]: weighted sum of values */
  unsigned *arrived; /* [rows, q / HEADS] counters of finished blocks */
};

/* A partial softmax, with one number of its weighted sum of values. */
struct partial {
  float top, total, sum;
};

/* The combination of n partial softmaxes: stats[i * stats_step], sum[i * sum_step]. Its operations
 * are explicit, so that the compiler uses the same ones in every kernel. */
static __device__ __forceinline__ partial combine(size_t n, const float2 *stats, size_t stats_step,
                                                  const float *sum, size_t sum_step) {
  partial all = {-INFINITY, 0, 0};
  for (size_t i = 0; i < n; ++i) all.top = fmaxf(all.top, stats[i * stats_step].x);
  for (size_t i = 0; i < n; ++i) {
    const float factor = expf(stats[i * stats_step].x - all.top);
    all.total = fmaf(factor, stats[i * stats_step].y, all.total);
    all.sum = fmaf(factor, sum[i * sum_step], all.sum);
  }
  return all;
}

/* The norm and the rotary embedding of row r's query heads [h, h + HEADS), into query [HEADS, dim]
 * in shared memory; if `stores`, also of the key head that they share, which goes to the cache with
 * its value, both at number `place` on. Whole warps. Row r's angles are at `position`. */
template <unsigned HEADS>
static __device__ __forceinline__ void prepare_heads(bf16 *query, const raw_heads &raw, size_t r,
                                                     size_t h, size_t position, head_shape s,
                                                     bool stores, size_t place) {
  const unsigned N = vector16<bf16>::N, each = THREADS / raw.lanes;
  const size_t half = s.dim / 2, i = threadIdx.x % raw.lanes * N, kv = h / (s.q / s.kv);
  const float *const cosine = raw.cosine + position * half;
  const float *const sine = raw.sine + position * half;
  for (unsigned first = threadIdx.x / 32 * (32 / raw.lanes); first < HEADS + 2; first += each) {
    const unsigned mine = first + threadIdx.x % 32 / raw.lanes;
    const bool is_query = mine < HEADS;
    const bool is_value = mine > HEADS;
    const size_t head = is_query ? h + mine : s.q + (is_value ? s.kv : 0) + kv;
    float a[N], b[N];
    const float scale = load_head<bf16, true>(a, b, raw.qkv + (r * (s.q + 2 * s.kv) + head) * s.dim,
                                              i, s.dim, raw.lanes, raw.eps);
    if (mine >= HEADS + 2 || i >= half || (!is_query && !stores)) continue;
    if (!is_value)
      norm_and_rotate<bf16, true>(a, b, scale, is_query ? raw.q_weight : raw.k_weight, cosine, sine,
                                  i, half);
    bf16 *const to =
        is_query ? query + mine * s.dim : (is_value ? raw.cache_v : raw.cache_k) + place;
    store_vector16<true>(to + i, a, half - i);
    store_vector16<true>(to + half + i, b, half - i);
  }
}

/* Block (x, y, z): row x; the HEADS query heads from y * HEADS on, which share a key/value head;
 * group z of the row's slot. RAW: from heads as the product leaves them, where these query heads
 * are all that share the key/value head; else qk has the queries and the cache the row's key and
 * value. */
template <typename U, bool RAW>
__global__ void __launch_bounds__(THREADS, 2)
    cached_group(typename U::type *out, const typename U::type *qk, const typename U::type *cache_k,
                 const typename U::type *cache_v, raw_heads raw, cached_call a) {
  typedef typename U::type T;
  wait_for_kernels_before();
  __shared__ float2 stats[UNITS * U::HEADS];
  __align__(16) __shared__ T prepared[RAW ? U::HEADS * U::DIM : 1];
  SHARED_MEMORY(float, sum); /* [UNITS, HEADS, dim] */
  const head_shape s = a.shape;
  const size_t dim = U::DIM > 0 ? static_cast<size_t>(U::DIM) : s.dim, n = U::HEADS * dim;
  const size_t r = blockIdx.x, h = blockIdx.y * U::HEADS, width = s.kv * dim;
  const size_t positions = static_cast<size_t>(a.position[r]) + 1,
               begin = blockIdx.z * UNITS * UNIT;
  out += (r * s.q + h) * dim;
  if (a.slot[r] < 0) {
    for (size_t i = threadIdx.x; i < n && blockIdx.z == 0; i += THREADS) out[i] = number<T>(0.0f);
    return;
  }
  if (begin >= positions) return;
  const unsigned warp = threadIdx.x / 32;
  const size_t left = positions - begin,
               units = left > (UNITS - 1) * UNIT ? UNITS : (left + UNIT - 1) / UNIT;
  const size_t first = begin + warp * UNIT, keys = positions > first ? positions - first : 0;
  const size_t base = static_cast<size_t>(a.slot[r]) * a.capacity * width + h / (s.q / s.kv) * dim;
  const unit_rows<T> rows = {cache_k + base + first * width, cache_v + base + first * width,
                             static_cast<unsigned>(keys < UNIT ? keys : UNIT), width};
  const T *query = RAW ? prepared : qk + r * cuda_qk_width(s) + h * dim;
  if constexpr (RAW) {
    prepare_heads<U::HEADS>(prepared, raw, r, h, positions - 1, s, left <= UNITS * UNIT,
                            base + (positions - 1) * width);
    __syncthreads();
  }
  if (warp < units) U::compute(stats + warp * U::HEADS, sum + warp * n, query, rows, dim, a.scale);
  __syncthreads();
  const size_t groups = (positions + UNITS * UNIT - 1) / (UNITS * UNIT);
  for (size_t i = threadIdx.x; i < n; i += THREADS) {
    const partial x = combine(units, stats + i / dim, U::HEADS, sum + i, n);
    if (groups == 1) {
      out[i] = number<T>(x.sum / x.total);
    } else {
      const size_t to = (r * s.q + h + i / dim) * a.groups + blockIdx.z;
      a.sum[to * dim + i % dim] = x.sum;
      if (i % dim == 0) a.stats[to] = make_float2(x.top, x.total);
    }
  }
  if (groups == 1 ||
      !is_last_of(static_cast<unsigned>(groups), a.arrived + r * gridDim.y + blockIdx.y))
    return;
  for (size_t i = threadIdx.x; i < n; i += THREADS) {
    const size_t at = (r * s.q + h + i / dim) * a.groups;
    const partial x = combine(groups, a.stats + at, 1, a.sum + at * dim + i % dim, dim);
    out[i] = number<T>(x.sum / x.total);
  }
}

/* Launches at most as many rows at a time as there are counters. */
template <typename U, bool RAW>
static void launch_cached(cuda_backend *b, const cached_arrays<typename U::type> &given,
                          cached_call a, size_t rows) {
  typedef typename U::type T;
  const size_t blocks = a.shape.q / U::HEADS, most = ATTENTION_ARRIVALS / blocks;
  if (most == 0) return cuda_fail(b, GL_EINPUT, "attention", "more than 65,536 heads");
  T *out = given.out;
  const T *qk = given.qk;
  raw_heads raw = given.raw;
  for (size_t r = 0; r < rows; r += most) {
    const size_t n = rows - r < most ? rows - r : most;
    const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(blocks),
                    static_cast<unsigned>(a.groups));
    LAUNCH(b, (cached_group<U, RAW>), grid, THREADS, UNITS * U::HEADS * a.shape.dim * sizeof(float),
           out, qk, given.cache_k, given.cache_v, raw, a);
    out += n * a.shape.q * a.shape.dim;
    if (RAW)
      raw.qkv += n * cuda_qkv_width(a.shape);
    else
      qk += n * cuda_qk_width(a.shape);
    a.slot += n;
    a.position += n;
  }
}

/* Query heads that share a key/value head read it together, up to four in a block. */
template <int DIM, bool RAW>
static void launch_mma(cuda_backend *b, const cached_arrays<bf16> &given, const cached_call &a,
                       size_t rows) {
  const size_t sharing = a.shape.q / a.shape.kv;
  if (sharing % 4 == 0)
    launch_cached<mma_unit<DIM, 4>, RAW>(b, given, a, rows);
  else if (sharing % 2 == 0)
    launch_cached<mma_unit<DIM, 2>, RAW>(b, given, a, rows);
  else
    launch_cached<mma_unit<DIM, 1>, RAW>(b, given, a, rows);
}

static void launch(cuda_backend *b, const cached_arrays<float> &given, const cached_call &a,
                   size_t rows) {
  launch_cached<float_unit<float>, false>(b, given, a, rows);
}
static void launch(cuda_backend *b, const cached_arrays<bf16> &given, const cached_call &a,
                   size_t rows) {
  const bool aligned = aligned16(0, given.qk, given.cache_k, given.cache_v);
  if (aligned && a.shape.dim == 128)
    launch_mma<128, false>(b, given, a, rows);
  else if (aligned && a.shape.dim == 64)
    launch_mma<64, false>(b, given, a, rows);
  else
    launch_cached<float_unit<bf16>, false>(b, given, a, rows);
}

static size_t groups_of(size_t capacity) {
  return (capacity + UNIT * UNITS - 1) / (UNIT * UNITS);
}

/* Scratch bytes for that many rows. */
size_t cuda_cached_scratch(size_t rows, size_t capacity, head_shape shape) {
  const size_t n = rows * shape.q * groups_of(capacity);
  return carved(n * shape.dim, sizeof(float)) + carved(n, sizeof(float2));
}

/* The call for these rows, with scratch memory; sum NULL after an error. */
static cached_call cached_call_of(cuda_backend *b, const int32_t *slot, const int32_t *position,
                                  size_t rows, size_t capacity, head_shape shape) {
  cached_call a = {};
  assert(head_shape_is_valid(shape));
  a.slot = slot;
  a.position = position;
  a.capacity = capacity;
  a.groups = groups_of(capacity);
  a.shape = shape;
  a.scale = cuda_attention_scale(shape);
  const size_t n = rows * shape.q * a.groups;
  char *at = static_cast<char *>(cuda_scratch(b, cuda_cached_scratch(rows, capacity, shape)));
  if (at == NULL) return a;
  a.sum = carve<float>(&at, n * shape.dim);
  a.stats = carve<float2>(&at, n);
  a.arrived = b->arrived + PRODUCT_ARRIVALS;
  return a;
}

template <typename T>
static void op_attention_cached(backend *base, void *out, const void *qk, const void *cache_k,
                                const void *cache_v, const int32_t *slot, const int32_t *position,
                                size_t rows, size_t capacity, head_shape shape) {
  cuda_operation op(base, "attention_cached", rows, capacity, shape.dim);
  if (shape.dim > 256)
    return cuda_fail(op.b, GL_EINPUT, "attention",
                     "heads of more than 256 numbers are not supported");
  const cached_call a = cached_call_of(op.b, slot, position, rows, capacity, shape);
  cached_arrays<T> given = {};
  given.out = static_cast<T *>(out);
  given.qk = static_cast<const T *>(qk);
  given.cache_k = static_cast<const T *>(cache_k);
  given.cache_v = static_cast<const T *>(cache_v);
  if (a.sum != NULL) launch(op.b, given, a, rows);
}

/* Most rows whose attention prepares its heads. With more, blocks wait one after the other for what
 * a kernel of its own does at once: on an H100 a step of 256 rows took 3 % more, of one 5 % less.
 */
static const size_t MOST_PREPARING_ROWS = 64;

/* True if attention can prepare its heads: on tensor cores, one block a key/value head. */
static bool can_prepare(const backend *b, size_t rows, head_shape s) {
  const size_t sharing = s.q / s.kv;
  return b->type == NUMBER_BF16 && rows <= MOST_PREPARING_ROWS && (s.dim == 64 || s.dim == 128) &&
         (sharing == 1 || sharing == 2 || sharing == 4);
}

static void op_heads_attention(backend *base, void *out, void *qk, void *rstd, void *cache_k,
                               void *cache_v, const void *qkv, const void *q_weight,
                               const void *k_weight, const void *cosine, const void *sine,
                               const int32_t *position, const int32_t *slot, size_t rows,
                               size_t capacity, head_shape shape, double eps) {
  if (!can_prepare(base, rows, shape) ||
      !aligned16(0, qk, cache_k, cache_v, qkv, q_weight, k_weight, cosine, sine)) {
    base->ops->heads_store(base, qk, rstd, cache_k, cache_v, qkv, q_weight, k_weight, cosine, sine,
                           position, slot, rows, capacity, shape, eps);
    base->ops->attention_cached(base, out, qk, cache_k, cache_v, slot, position, rows, capacity,
                                shape);
    return;
  }
  cuda_operation op(base, "heads_attention", rows, capacity, shape.dim);
  const cached_call a = cached_call_of(op.b, slot, position, rows, capacity, shape);
  cached_arrays<bf16> given = {};
  given.out = static_cast<bf16 *>(out);
  given.cache_k = given.raw.cache_k = static_cast<bf16 *>(cache_k);
  given.cache_v = given.raw.cache_v = static_cast<bf16 *>(cache_v);
  given.raw.qkv = static_cast<const bf16 *>(qkv);
  given.raw.q_weight = static_cast<const bf16 *>(q_weight);
  given.raw.k_weight = static_cast<const bf16 *>(k_weight);
  given.raw.cosine = static_cast<const float *>(cosine);
  given.raw.sine = static_cast<const float *>(sine);
  given.raw.eps = static_cast<float>(eps);
  given.raw.lanes = head_lanes<bf16>(shape.dim);
  if (a.sum == NULL) return;
  if (shape.dim == 128)
    launch_mma<128, true>(op.b, given, a, rows);
  else
    launch_mma<64, true>(op.b, given, a, rows);
}

/* --- fetches --- */

struct backend_fetch {
  void *host; /* pinned */
  cudaEvent_t arrived;
  bool under_way;
};

static void op_fetch_free(backend *base, backend_fetch *f) {
  if (f == NULL) return;
  cuda_operation op(base, "fetch_free");
  if (f->under_way) cudaEventSynchronize(f->arrived);
  if (f->arrived != NULL) cudaEventDestroy(f->arrived);
  if (f->host != NULL) cudaFreeHost(f->host);
  free(f);
}

static backend_fetch *op_fetch_new(backend *base, size_t bytes) {
  cuda_operation op(base, "fetch_new", bytes);
  if (cuda_stopped(op.b)) return NULL;
  backend_fetch *f = static_cast<backend_fetch *>(calloc(1, sizeof *f));
  if (f == NULL) {
    cuda_fail(op.b, GL_ENOMEM, "calloc", "host memory is short");
    return NULL;
  }
  if (!CUDA_CALL(op.b, cudaMallocHost(&f->host, bytes)) &&
      !CUDA_CALL(op.b, cudaEventCreateWithFlags(&f->arrived, cudaEventDisableTiming)))
    return f;
  op_fetch_free(base, f);
  return NULL;
}

static void op_fetch_start(backend *base, backend_fetch *f, const void *from, size_t bytes) {
  cuda_operation op(base, "fetch_start", bytes);
  assert(!f->under_way);
  if (cuda_stopped(op.b) ||
      CUDA_CALL(op.b, cudaMemcpyAsync(f->host, from, bytes, cudaMemcpyDefault, op.b->stream)) ||
      CUDA_CALL(op.b, cudaEventRecord(f->arrived, op.b->stream)))
    return;
  f->under_way = true;
}

static const void *op_fetch_wait(backend *base, backend_fetch *f) {
  cuda_operation op(base, "fetch_wait");
  if (cuda_stopped(op.b) || CUDA_CALL(op.b, cudaEventSynchronize(f->arrived))) return NULL;
  f->under_way = false;
  return f->host;
}

CUDA_TYPED_OPERATION(cache_store)
CUDA_OPERATION(cache_copy)
CUDA_TYPED_OPERATION(attention_cached)
CUDA_OPERATION(heads_attention)
CUDA_OPERATION(fetch_new)
CUDA_OPERATION(fetch_start)
CUDA_OPERATION(fetch_wait)
CUDA_OPERATION(fetch_free)
