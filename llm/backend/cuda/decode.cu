/* Generation: the cache of keys and values, attention of each row's query over its slot, and the
 * copies by which the host reads sampled tokens while the next step runs.
 *
 * Layout: in both caches a slot has `capacity` positions of kv * dim numbers.
 *
 * The positions of a slot are divided into units of UNIT keys, and GROUP units make a group. A unit
 * has a partial result: its values weighted by e^(score - greatest), its greatest score and its sum
 * of weights. The units of a group are combined in order, then the groups in order, so a row's
 * result depends only on its slot and position. The work is divided among blocks as in
 * Flash-Decoding (Dao et al., 2023): with many rows a block computes a group, with few rows a unit.
 * So a short context occupies much of the device even if one sequence is decoded. The last block of
 * a row and its heads combines the partial results. */
#include "llm/backend/cuda/device.cuh"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static const unsigned UNIT = 64, GROUP = 4, WARPS = 4, THREADS = WARPS * 32;

/* Rows are few if the number of rows, times query heads, times groups of a full slot, is at most
 * this. */
static const size_t MOST_OF_FEW = 2048;

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

/* Division of a head's dim numbers among lanes: LANES lanes share a key, each with NUMBERS numbers,
 * in vectors of VECTOR. */
template <typename T, int LANES_, int NUMBERS_, int VECTOR_> struct head_layout {
  typedef T type;
  static const int LANES = LANES_, NUMBERS = NUMBERS_, VECTOR = VECTOR_;
  /* The dimension of the lane's number e. */
  static __device__ __forceinline__ size_t at(unsigned lane, int e) {
    return (static_cast<size_t>(e / VECTOR) * LANES + lane) * VECTOR +
           static_cast<size_t>(e % VECTOR);
  }
  /* to [NUMBERS] = this lane's numbers of the head at `from`; zeros beyond dim. */
  static __device__ __forceinline__ void load(float *to, const T *from, unsigned lane, size_t dim) {
    if (VECTOR > 1) { /* dim is LANES * NUMBERS, and rows begin at multiples of 16 bytes */
#pragma unroll
      for (int e = 0; e < NUMBERS; e += VECTOR) {
        const uint4 raw = *reinterpret_cast<const uint4 *>(from + at(lane, e));
        T x[VECTOR];
        memcpy(x, &raw, sizeof raw);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) to[e + i] = to_float(x[i]);
      }
    } else {
#pragma unroll
      for (int e = 0; e < NUMBERS; ++e)
        to[e] = at(lane, e) < dim ? to_float(from[at(lane, e)]) : 0.0f;
    }
  }
};

/* The keys (or values) of a unit that a thread reads. The unit has n of them, ld numbers apart.
 * LANES threads read a key together: key(i) in round i < ROUNDS, or the last key if key(i) is n or
 * more. With vectors, load() issues the reads of all rounds at once, and numbers() waits for
 * them. */
template <typename L> struct unit_rows {
  typedef typename L::type T;
  static const unsigned GROUPS = THREADS / L::LANES, ROUNDS = UNIT / GROUPS;
  static const int VECTORS = L::VECTOR > 1 ? L::NUMBERS / L::VECTOR : 1;
  static const unsigned HELD = L::VECTOR > 1 ? ROUNDS : 1;
  static_assert(HELD <= 4,
                "loops over rounds are unrolled by four, so that raw stays in registers");
  uint4 raw[HELD][VECTORS];
  const T *from;
  size_t n, ld;
  static __device__ __forceinline__ unsigned key(unsigned i) {
    return threadIdx.x / L::LANES + i * GROUPS;
  }
  __device__ __forceinline__ const T *row(unsigned i) const {
    return from + (key(i) < n ? key(i) : n - 1) * ld;
  }
  __device__ __forceinline__ void load(const T *rows, size_t count, size_t distance) {
    from = rows;
    n = count;
    ld = distance;
    if constexpr (L::VECTOR > 1) {
#pragma unroll
      for (unsigned i = 0; i < HELD; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v)
          raw[i][v] = *reinterpret_cast<const uint4 *>(
              row(i) + L::at(threadIdx.x % L::LANES, v * L::VECTOR));
    }
  }
  __device__ __forceinline__ void numbers(float *to, unsigned i, size_t dim) const {
    if constexpr (L::VECTOR > 1) {
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) {
        T x[L::VECTOR];
        memcpy(x, &raw[i][v], sizeof x);
#pragma unroll
        for (int e = 0; e < L::VECTOR; ++e) to[v * L::VECTOR + e] = to_float(x[e]);
      }
    } else {
      L::load(to, row(i), threadIdx.x % L::LANES, dim);
    }
  }
};

/* The result and the inputs, in the model's number type (shapes in operations.h). */
struct cached_arrays {
  void *out;
  const void *qk, *cache_k, *cache_v;
};

/* The other arguments, and scratch memory for the results of parts. */
struct cached_call {
  const int32_t *slot, *position;
  size_t capacity, parts; /* parts of a full slot: groups, or units if rows are few */
  head_shape shape;
  float scale;
  float *sum;        /* [rows, q, parts, dim]: values weighted by e^(score - greatest) */
  float2 *stats;     /* [rows, q, parts]: greatest score, sum of weights */
  unsigned *arrived; /* [rows, q / HEADS] counters of finished blocks */
};

/* A partial softmax: greatest score, sum of weights, and one number of the weighted sum of values
 * (each thread has another one). add_partial() joins another partial softmax to it; its operations
 * are explicit, so that the compiler uses the same ones in every kernel. */
struct partial {
  float top, total, sum;
};
static __device__ __forceinline__ partial nothing() {
  return {-INFINITY, 0, 0};
}
static __device__ __forceinline__ void add_partial(partial &x, float top, float total, float sum) {
  const float greatest = fmaxf(x.top, top), keep = expf(x.top - greatest);
  const float factor = expf(top - greatest);
  x.total = fmaf(x.total, keep, total * factor);
  x.sum = fmaf(x.sum, keep, sum * factor);
  x.top = greatest;
}

/* score [HEADS, UNIT] (shared memory) = scaled scores of the unit's keys, -infinity beyond its last
 * key. query has HEADS heads. Each group of L::LANES lanes processes one key at a time. The caller
 * synchronises. */
template <typename L, int HEADS>
static __device__ __forceinline__ void cached_scores(float *score, const typename L::type *query,
                                                     const unit_rows<L> &keys, size_t dim,
                                                     float scale) {
  const unsigned lane = threadIdx.x % L::LANES;
  float q[HEADS][L::NUMBERS];
#pragma unroll
  for (int h = 0; h < HEADS; ++h) L::load(q[h], query + static_cast<size_t>(h) * dim, lane, dim);
#pragma unroll 4
  for (unsigned i = 0; i < unit_rows<L>::ROUNDS; ++i) {
    const unsigned j = unit_rows<L>::key(i);
    float k[L::NUMBERS];
    keys.numbers(k, i, dim);
#pragma unroll
    for (int h = 0; h < HEADS; ++h) {
      float dot = 0;
#pragma unroll
      for (int e = 0; e < L::NUMBERS; ++e) dot += q[h][e] * k[e];
#pragma unroll
      for (int with = L::LANES / 2; with > 0; with /= 2) dot += __shfl_xor_sync(WARP, dot, with);
      if (lane == 0)
        score[static_cast<unsigned>(h) * UNIT + j] = j < keys.n ? dot * scale : -INFINITY;
    }
  }
}

/* Replaces score [HEADS, UNIT] by the weights e^(score - greatest); stats [HEADS] = greatest score
 * and sum of weights; one warp per head. The caller synchronises before and after. */
template <int HEADS>
static __device__ __forceinline__ void cached_weights(float2 *stats, float *score) {
  const unsigned lane = threadIdx.x % 32;
  for (unsigned i = threadIdx.x / 32; i < HEADS; i += WARPS) {
    float top = -INFINITY, total = 0;
    for (unsigned j = lane; j < UNIT; j += 32) top = fmaxf(top, score[i * UNIT + j]);
    top = warp_max(top);
    for (unsigned j = lane; j < UNIT; j += 32) {
      const float w = expf(score[i * UNIT + j] - top);
      score[i * UNIT + j] = w;
      total += w;
    }
    total = warp_sum(total);
    if (lane == 0) stats[i] = make_float2(top, total);
  }
}

/* sum [WARPS, HEADS, dim] (shared memory) = each warp's sum of the unit's values weighted by weight
 * [HEADS, UNIT], which is zero beyond the last key. Ends with a barrier. */
template <typename L, int HEADS>
static __device__ __forceinline__ void cached_values(float *sum, const float *weight,
                                                     const unit_rows<L> &values, size_t dim) {
  const unsigned lane = threadIdx.x % L::LANES;
  float o[HEADS][L::NUMBERS] = {};
#pragma unroll 4
  for (unsigned i = 0; i < unit_rows<L>::ROUNDS; ++i) {
    float v[L::NUMBERS];
    values.numbers(v, i, dim);
#pragma unroll
    for (int h = 0; h < HEADS; ++h) {
      const float w = weight[static_cast<unsigned>(h) * UNIT + unit_rows<L>::key(i)];
#pragma unroll
      for (int e = 0; e < L::NUMBERS; ++e) o[h][e] += w * v[e];
    }
  }
  __syncwarp();
#pragma unroll
  for (int h = 0; h < HEADS; ++h)
#pragma unroll
    for (int e = 0; e < L::NUMBERS; ++e) {
#pragma unroll
      for (int with = L::LANES; with < 32; with *= 2)
        o[h][e] += __shfl_xor_sync(WARP, o[h][e], with);
      if (threadIdx.x % 32 < L::LANES && L::at(lane, e) < dim)
        sum[(threadIdx.x / 32 * HEADS + static_cast<unsigned>(h)) * dim + L::at(lane, e)] = o[h][e];
    }
  __syncthreads();
}

/* out [HEADS * dim], heads h .. h + HEADS - 1 of row r, from the partial softmaxes of their n parts
 * of UNITS units each. Parts are joined in two levels, groups of GROUP units first, so that the
 * order of additions, and thus the bits, does not depend on UNITS (see the head of this file). */
template <typename T, int HEADS, unsigned UNITS>
static __device__ __forceinline__ void combine_parts(T *out, const cached_call &a, size_t r,
                                                     size_t h, size_t n) {
  const size_t dim = a.shape.dim;
  for (size_t i = threadIdx.x; i < HEADS * dim; i += THREADS) {
    const size_t at = (r * a.shape.q + h + i / dim) * a.parts;
    const float *const sum = a.sum + at * dim + i % dim;
    partial all = nothing();
    for (size_t p = 0; p < n;) {
      partial group = nothing();
      for (unsigned u = 0; u < GROUP / UNITS && p < n; ++u, ++p)
        add_partial(group, a.stats[at + p].x, a.stats[at + p].y, sum[p * dim]);
      add_partial(all, group.top, group.total, group.sum);
    }
    out[i] = number<T>(all.sum / all.total);
  }
}

/* Block (x, y, z): row x; the HEADS query heads from y * HEADS on, which share a key/value head;
 * units [z * UNITS, (z + 1) * UNITS) of the row's slot. */
template <typename L, int HEADS, unsigned UNITS>
__global__ void __launch_bounds__(THREADS, HEADS == 4 ? 2 : 4)
    cached_part(typename L::type *out, const typename L::type *qk, const typename L::type *cache_k,
                const typename L::type *cache_v, cached_call a) {
  wait_for_kernels_before();
  __shared__ float score[HEADS * UNIT];
  __shared__ float2 stats[HEADS];
  SHARED_MEMORY(float, sum);
  const int EACH =
      (HEADS * L::LANES * L::NUMBERS + static_cast<int>(THREADS) - 1) / static_cast<int>(THREADS);
  const head_shape s = a.shape;
  const size_t r = blockIdx.x, h = blockIdx.y * HEADS, part = blockIdx.z, width = s.kv * s.dim;
  const size_t positions = static_cast<size_t>(a.position[r]) + 1, n = HEADS * s.dim;
  out += r * s.q * s.dim + h * s.dim;
  if (a.slot[r] < 0) {
    for (size_t i = threadIdx.x; i < n && part == 0; i += THREADS)
      out[i] = number<typename L::type>(0.0f);
    return;
  }
  if (part * UNITS * UNIT >= positions) return;
  const size_t slot =
      static_cast<size_t>(a.slot[r]) * a.capacity * width + h / (s.q / s.kv) * s.dim;
  partial mine[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) mine[e] = nothing();
  for (unsigned u = 0; u < UNITS; ++u) {
    const size_t first = (part * UNITS + u) * UNIT, at = slot + first * width;
    if (first >= positions) break;
    const size_t keys = positions - first < UNIT ? positions - first : UNIT;
    unit_rows<L> key, value;
    key.load(cache_k + at, keys, width);
    value.load(cache_v + at, keys, width);
    cached_scores<L, HEADS>(score, qk + r * cuda_qk_width(s) + h * s.dim, key, s.dim, a.scale);
    __syncthreads();
    cached_weights<HEADS>(stats, score);
    __syncthreads();
    cached_values<L, HEADS>(sum, score, value, s.dim);
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      const size_t i = threadIdx.x + static_cast<unsigned>(e) * THREADS;
      if (i >= n) break;
      float all = 0;
      for (size_t w = 0; w < WARPS; ++w) all += sum[w * n + i];
      add_partial(mine[e], stats[i / s.dim].x, stats[i / s.dim].y, all);
    }
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const size_t i = threadIdx.x + static_cast<unsigned>(e) * THREADS;
    if (i >= n) break;
    const size_t to = (r * s.q + h + i / s.dim) * a.parts + part;
    a.sum[to * s.dim + i % s.dim] = mine[e].sum;
    if (i % s.dim == 0) a.stats[to] = make_float2(mine[e].top, mine[e].total);
  }
  const size_t parts = (positions + UNITS * UNIT - 1) / (UNITS * UNIT);
  if (is_last_of(static_cast<unsigned>(parts), a.arrived + r * gridDim.y + blockIdx.y))
    combine_parts<typename L::type, HEADS, UNITS>(out, a, r, h, parts);
}

/* Launches at most as many rows at a time as there are counters. */
template <typename L, int HEADS, unsigned UNITS>
static void launch_parts(cuda_backend *b, const cached_arrays &given, cached_call a, size_t rows) {
  typedef typename L::type T;
  const size_t groups = a.shape.q / HEADS, most = ATTENTION_ARRIVALS / groups;
  if (most == 0) return cuda_fail(b, GL_EINPUT, "attention", "more than 65,536 heads");
  T *out = static_cast<T *>(given.out);
  const T *qk = static_cast<const T *>(given.qk);
  for (size_t r = 0; r < rows; r += most) {
    const size_t n = rows - r < most ? rows - r : most;
    const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(groups),
                    static_cast<unsigned>(a.parts));
    LAUNCH_EARLY(b, (cached_part<L, HEADS, UNITS>), grid, THREADS,
                 WARPS * HEADS * a.shape.dim * sizeof(float), out, qk,
                 static_cast<const T *>(given.cache_k), static_cast<const T *>(given.cache_v), a);
    out += n * a.shape.q * a.shape.dim;
    qk += n * cuda_qk_width(a.shape);
    a.slot += n;
    a.position += n;
  }
}

/* Number of groups of a full slot; below, whether that many rows are few. */
static size_t groups_of(size_t capacity) {
  return capacity == 0 ? 1 : (capacity + UNIT * GROUP - 1) / (UNIT * GROUP);
}
static bool are_few(size_t rows, size_t capacity, head_shape shape) {
  return rows <= MOST_OF_FEW / (shape.q * groups_of(capacity));
}

template <typename L, int HEADS>
static void launch_cached_rows(cuda_backend *b, const cached_arrays &given, const cached_call &a,
                               size_t rows) {
  if (are_few(rows, a.capacity, a.shape))
    launch_parts<L, HEADS, 1>(b, given, a, rows);
  else
    launch_parts<L, HEADS, GROUP>(b, given, a, rows);
}

/* For any head size up to 256: one query head per block. */
template <typename T> struct cached {
  static void launch(cuda_backend *b, const cached_arrays &given, const cached_call &a,
                     size_t rows) {
    launch_cached_rows<head_layout<T, 32, 8, 1>, 1>(b, given, a, rows);
  }
};

/* For bfloat16 heads of 64 and 128: query heads that share a key/value head read it together. */
template <typename L>
static void launch_group(cuda_backend *b, const cached_arrays &given, const cached_call &a,
                         size_t rows) {
  const size_t group = a.shape.q / a.shape.kv;
  if (group % 4 == 0)
    launch_cached_rows<L, 4>(b, given, a, rows);
  else if (group % 2 == 0)
    launch_cached_rows<L, 2>(b, given, a, rows);
  else
    launch_cached_rows<L, 1>(b, given, a, rows);
}

template <> struct cached<bf16> {
  static void launch(cuda_backend *b, const cached_arrays &given, const cached_call &a,
                     size_t rows) {
    const uintptr_t bits = reinterpret_cast<uintptr_t>(given.qk) |
                           reinterpret_cast<uintptr_t>(given.cache_k) |
                           reinterpret_cast<uintptr_t>(given.cache_v);
    if (bits % 16 == 0 && a.shape.dim == 128)
      launch_group<head_layout<bf16, 8, 16, 8>>(b, given, a, rows);
    else if (bits % 16 == 0 && a.shape.dim == 64)
      launch_group<head_layout<bf16, 4, 16, 8>>(b, given, a, rows);
    else
      launch_cached_rows<head_layout<bf16, 32, 8, 1>, 1>(b, given, a, rows);
  }
};

static size_t cached_parts(size_t rows, size_t capacity, head_shape shape) {
  return are_few(rows, capacity, shape) ? (capacity + UNIT - 1) / UNIT : groups_of(capacity);
}
static size_t parts_scratch(size_t rows, size_t capacity, head_shape shape) {
  const size_t n = rows * shape.q * cached_parts(rows, capacity, shape);
  return carved(n * shape.dim, sizeof(float)) + carved(n, sizeof(float2));
}

/* Scratch bytes for any number of rows up to `rows`. The largest number of rows that still counts
 * as few may need the most, because few rows are divided into more parts (cached_parts). */
size_t cuda_cached_scratch(size_t rows, size_t capacity, head_shape shape) {
  const size_t few = MOST_OF_FEW / (shape.q * groups_of(capacity));
  const size_t all = parts_scratch(rows, capacity, shape);
  const size_t least = parts_scratch(rows < few ? rows : few, capacity, shape);
  return all > least ? all : least;
}

template <typename T>
static void op_attention_cached(backend *base, void *out, const void *qk, const void *cache_k,
                                const void *cache_v, const int32_t *slot, const int32_t *position,
                                size_t rows, size_t capacity, head_shape shape) {
  cuda_operation op(base, "attention_cached", rows, capacity, shape.dim);
  assert(head_shape_is_valid(shape));
  cached_call a = {};
  a.slot = slot;
  a.position = position;
  a.capacity = capacity;
  a.parts = cached_parts(rows, capacity, shape);
  a.shape = shape;
  a.scale = cuda_attention_scale(shape);
  const size_t n = rows * shape.q * a.parts;
  char *at = static_cast<char *>(cuda_scratch(op.b, parts_scratch(rows, capacity, shape)));
  if (at == NULL) return;
  a.sum = carve<float>(&at, n * shape.dim);
  a.stats = carve<float2>(&at, n);
  a.arrived = op.b->arrived + PRODUCT_ARRIVALS;
  const cached_arrays given = {out, qk, cache_k, cache_v};
  if (shape.dim > 256)
    cuda_fail(op.b, GL_EINPUT, "attention", "heads of more than 256 numbers are not supported");
  else
    cached<T>::launch(op.b, given, a, rows);
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
CUDA_OPERATION(fetch_new)
CUDA_OPERATION(fetch_start)
CUDA_OPERATION(fetch_wait)
CUDA_OPERATION(fetch_free)
