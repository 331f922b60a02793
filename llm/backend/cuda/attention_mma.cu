/* Attention on tensor cores, for bfloat16 heads of 64 and 128 numbers: the method of attention.cu
 * with tiles of 64 rows, of which a warp does 16 (Dao, FlashAttention-2, arXiv 2307.08691). Keys
 * and values of the next tile are copied while this tile is computed. Products are summed in float;
 * softmax weights and their gradients are rounded to bfloat16 before the second product, as every
 * operand of a tensor core is. */
#include "llm/backend/cuda/attention.cuh"
#include "llm/backend/cuda/mma.cuh"

static const unsigned WARPS = 4, THREADS = WARPS * 32, BLOCK = WARPS * 16, TILE = 64;
static const float LOG2E = 1.44269504f, LN2 = 0.69314718f;

/* c [16, N * 8] = 16 rows, from `row` on, of a_tile times the transpose of N * 8 rows of b_tile,
 * both DIM numbers wide. c[n] is a lane's part of columns [8 n, 8 n + 8), as mma.cuh says of C. */
template <int DIM, int N>
static __device__ __forceinline__ void scores(float (&c)[N][4], bf16 *a_tile, unsigned row,
                                              bf16 *b_tile) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) c[n][i] = 0;
#pragma unroll
  for (unsigned k = 0; k < DIM; k += 16) {
    uint32_t a[4];
    tile<DIM>::as_a(a, a_tile, row, k);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      uint32_t b[4];
      tile<DIM>::as_columns(b, b_tile, static_cast<unsigned>(n) * 8, k);
      mma(c[n], a, b[0], b[1]);
      mma(c[n + 1], a, b[2], b[3]);
    }
  }
}

/* sum [16, DIM] += w [16, N * 8], rounded to bfloat16, times the first N * 8 rows of b_tile. */
template <int DIM, int N>
static __device__ __forceinline__ void weighted(float (&sum)[DIM / 8][4], const float (&w)[N][4],
                                                bf16 *b_tile) {
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    const uint32_t a[4] = {pack(w[n][0], w[n][1]), pack(w[n][2], w[n][3]),
                           pack(w[n + 1][0], w[n + 1][1]), pack(w[n + 1][2], w[n + 1][3])};
#pragma unroll
    for (int d = 0; d < DIM / 8; d += 2) {
      uint32_t b[4];
      tile<DIM>::as_rows(b, b_tile, static_cast<unsigned>(n) * 8, static_cast<unsigned>(d) * 8);
      mma(sum[d], a, b[0], b[1]);
      mma(sum[d + 1], a, b[2], b[3]);
    }
  }
}

/* Sum and maximum over the four lanes that hold parts of the same row of C. */
static __device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(WARP, x, 1);
  return x + __shfl_xor_sync(WARP, x, 2);
}
static __device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(WARP, x, 1));
  return fmaxf(x, __shfl_xor_sync(WARP, x, 2));
}

/* Rows [first, first + 16), as far as they lie before `end`, of `to` = x * factor; of the 16 rows a
 * lane holds parts of rows g and g + 8, with factor[0] and factor[1]. */
template <int DIM>
static __device__ __forceinline__ void
store_block(bf16 *to, size_t ld, const float (&x)[DIM / 8][4], const float (&factor)[2],
            size_t first, size_t end) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const size_t row = first + lane / 4 + 8 * static_cast<size_t>(half);
    if (row >= end) continue;
#pragma unroll
    for (int d = 0; d < DIM / 8; ++d)
      *reinterpret_cast<uint32_t *>(to + row * ld + static_cast<unsigned>(d) * 8 + lane % 4 * 2) =
          pack(x[d][2 * half] * factor[half], x[d][2 * half + 1] * factor[half]);
  }
}

/* --- forward --- */

/* The step of online softmax for one tile of keys, which begins at key k: scores c become weights
 * 2^(score * scale - greatest), where greatest and total (the sum of weights so far) are updated
 * and keep[] is the factor by which everything summed before must shrink. The lane's rows are `row`
 * and row + 8; `masked`: keys after the row's own get weight 0. total holds this lane's part of the
 * sum. */
template <int N>
static __device__ __forceinline__ void
online_softmax(float (&c)[N][4], float (&greatest)[2], float (&total)[2], float (&keep)[2],
               size_t row, size_t k, float scale, bool masked) {
  const unsigned t = threadIdx.x % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float top = greatest[half];
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        const size_t key = k + static_cast<unsigned>(n) * 8 + 2 * t + static_cast<unsigned>(i % 2);
        c[n][i] = masked && key > row + 8 * static_cast<size_t>(half) ? -INFINITY : c[n][i] * scale;
        top = fmaxf(top, c[n][i]);
      }
    top = quad_max(top);
    keep[half] = power_of_2(greatest[half] - top);
    greatest[half] = top;
    float sum = 0;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        c[n][i] = power_of_2(c[n][i] - top);
        sum += c[n][i];
      }
    total[half] = total[half] * keep[half] + sum;
  }
}

/* out [rows, q * DIM] and lse [rows, q] of BLOCK queries of head blockIdx.y and sequence
 * blockIdx.z. The first tile of keys holds key 0, which every query sees, so no row's greatest
 * score stays -infinity. scale includes log2(e): exponentials are powers of 2. */
template <int DIM>
__global__ void __launch_bounds__(128)
    attention_mma(bf16 *out, float *lse, const bf16 *qk, const bf16 *qkv, const int32_t *start,
                  head_shape s, float scale) {
  SHARED_MEMORY(bf16, shared);
  const size_t begin = static_cast<size_t>(start[blockIdx.z]);
  const size_t end = static_cast<size_t>(start[blockIdx.z + 1]);
  const size_t block = begin + static_cast<size_t>(gridDim.x - 1 - blockIdx.x) * BLOCK;
  if (block >= end) return;
  const size_t h = blockIdx.y, kv = h / (s.q / s.kv);
  const bf16 *const keys = qk + (s.q + kv) * DIM, *const values = qkv + (s.q + s.kv + kv) * DIM;
  bf16 *const query = shared, *const key = query + BLOCK * DIM, *const value = key + 2 * TILE * DIM;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t row = block + warp * 16 + lane / 4;
  tile<DIM>::template load<BLOCK, THREADS>(query, qk + h * DIM, qk_width(s), block, end);
  tile<DIM>::template load<TILE, THREADS>(key, keys, qk_width(s), begin, end);
  tile<DIM>::template load<TILE, THREADS>(value, values, qkv_width(s), begin, end);
  copy_commit();
  float sum[DIM / 8][4] = {}, total[2] = {}, keep[2], c[TILE / 8][4];
  float greatest[2] = {-INFINITY, -INFINITY};
  const size_t last = block + BLOCK < end ? block + BLOCK : end;
  unsigned stage = 0;
  for (size_t k = begin; k < last; k += TILE, stage ^= 1) {
    if (k + TILE < last) {
      bf16 *const next_key = key + (stage ^ 1) * TILE * DIM;
      bf16 *const next_value = value + (stage ^ 1) * TILE * DIM;
      tile<DIM>::template load<TILE, THREADS>(next_key, keys, qk_width(s), k + TILE, end);
      tile<DIM>::template load<TILE, THREADS>(next_value, values, qkv_width(s), k + TILE, end);
    }
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    scores<DIM, TILE / 8>(c, query, warp * 16, key + stage * TILE * DIM);
    online_softmax<TILE / 8>(c, greatest, total, keep, row, k, scale, k + TILE > block);
#pragma unroll
    for (int d = 0; d < DIM / 8; ++d)
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[d][i] *= keep[i / 2];
    weighted<DIM, TILE / 8>(sum, c, value + stage * TILE * DIM);
    __syncthreads();
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] = quad_sum(total[half]);
    const size_t r = row + 8 * static_cast<size_t>(half);
    if (lane % 4 == 0 && r < end) lse[r * s.q + h] = (greatest[half] + log2f(total[half])) * LN2;
    total[half] = 1 / total[half];
  }
  store_block<DIM>(out + h * DIM, s.q * DIM, sum, total, block + warp * 16, end);
}

/* --- backward, queries --- */

/* The queries' part of dqk for BLOCK queries of head blockIdx.y and sequence blockIdx.z. row_dot
 * [rows, q] is the row sum of dO*O. Log-sum-exp is multiplied by log2(e), so that exponentials are
 * powers of 2. */
template <int DIM>
__global__ void __launch_bounds__(128)
    attention_mma_dq(bf16 *dqk, const bf16 *dout, const float *lse, const float *row_dot,
                     const bf16 *qk, const bf16 *qkv, const int32_t *start, head_shape s,
                     float scale) {
  SHARED_MEMORY(bf16, shared);
  const size_t begin = static_cast<size_t>(start[blockIdx.z]);
  const size_t end = static_cast<size_t>(start[blockIdx.z + 1]);
  const size_t block = begin + static_cast<size_t>(gridDim.x - 1 - blockIdx.x) * BLOCK;
  if (block >= end) return;
  const size_t h = blockIdx.y, kv = h / (s.q / s.kv);
  const bf16 *const keys = qk + (s.q + kv) * DIM, *const values = qkv + (s.q + s.kv + kv) * DIM;
  bf16 *const query = shared, *const dquery = query + BLOCK * DIM;
  bf16 *const key = dquery + BLOCK * DIM, *const value = key + 2 * TILE * DIM;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t row = block + warp * 16 + lane / 4;
  tile<DIM>::template load<BLOCK, THREADS>(query, qk + h * DIM, qk_width(s), block, end);
  tile<DIM>::template load<BLOCK, THREADS>(dquery, dout + h * DIM, s.q * DIM, block, end);
  tile<DIM>::template load<TILE, THREADS>(key, keys, qk_width(s), begin, end);
  tile<DIM>::template load<TILE, THREADS>(value, values, qkv_width(s), begin, end);
  copy_commit();
  float sum[DIM / 8][4] = {}, c[TILE / 8][4], dp[TILE / 8][4], log_total[2], mean[2];
  const float one[2] = {1, 1};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const size_t r = row + 8 * static_cast<size_t>(half), at = (r < end ? r : end - 1) * s.q + h;
    log_total[half] = lse[at] * LOG2E;
    mean[half] = row_dot[at];
  }
  const size_t last = block + BLOCK < end ? block + BLOCK : end;
  unsigned stage = 0;
  for (size_t k = begin; k < last; k += TILE, stage ^= 1) {
    if (k + TILE < last) {
      bf16 *const next_key = key + (stage ^ 1) * TILE * DIM;
      bf16 *const next_value = value + (stage ^ 1) * TILE * DIM;
      tile<DIM>::template load<TILE, THREADS>(next_key, keys, qk_width(s), k + TILE, end);
      tile<DIM>::template load<TILE, THREADS>(next_value, values, qkv_width(s), k + TILE, end);
    }
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    scores<DIM, TILE / 8>(c, query, warp * 16, key + stage * TILE * DIM);
    scores<DIM, TILE / 8>(dp, dquery, warp * 16, value + stage * TILE * DIM);
#pragma unroll
    for (int n = 0; n < static_cast<int>(TILE) / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const size_t at =
            k + static_cast<unsigned>(n) * 8 + 2 * (lane % 4) + static_cast<unsigned>(i % 2);
        const bool seen = at <= row + 8 * static_cast<size_t>(i / 2);
        const float p = seen ? power_of_2(c[n][i] * (scale * LOG2E) - log_total[i / 2]) : 0.0f;
        c[n][i] = p * (dp[n][i] - mean[i / 2]) * scale;
      }
    weighted<DIM, TILE / 8>(sum, c, key + stage * TILE * DIM);
    __syncthreads();
  }
  store_block<DIM>(dqk + h * DIM, qk_width(s), sum, one, block + warp * 16, end);
}

/* --- backward, keys and values --- */

static const unsigned QUERIES = 32; /* of a tile: accumulators leave registers for no more */

/* Starts copies of queries [first, first + QUERIES) of head h and of their dO, and stores their
 * log-sum-exp times log2(e) and their row sums of dO*O in shared memory. */
template <int DIM>
static __device__ __forceinline__ void
load_queries(bf16 *query, bf16 *dquery, float *log_total, float *mean, const bf16 *qk,
             const bf16 *dout, const float *lse, const float *row_dot, size_t first, size_t end,
             size_t h, head_shape s) {
  tile<DIM>::template load<QUERIES, THREADS>(query, qk + h * DIM, qk_width(s), first, end);
  tile<DIM>::template load<QUERIES, THREADS>(dquery, dout + h * DIM, s.q * DIM, first, end);
  if (threadIdx.x < QUERIES) {
    const size_t row = first + threadIdx.x, at = (row < end ? row : end - 1) * s.q + h;
    log_total[threadIdx.x] = row < end ? lse[at] * LOG2E : INFINITY; /* its weights are zero */
    mean[threadIdx.x] = row_dot[at];
  }
}

/* The keys' part of dqk and the values' part of dqkv for BLOCK keys of key/value head blockIdx.y
 * and sequence blockIdx.z. The score matrix is transposed here: a block's rows are keys. The
 * queries of its heads pass through, head after head, each from the block's first key on. */
template <int DIM>
__global__ void __launch_bounds__(128)
    attention_mma_dkv(bf16 *dqk, bf16 *dqkv, const bf16 *dout, const float *lse,
                      const float *row_dot, const bf16 *qk, const bf16 *qkv, const int32_t *start,
                      head_shape s, float scale) {
  SHARED_MEMORY(bf16, shared);
  __shared__ float log_total[2][QUERIES], mean[2][QUERIES];
  const size_t begin = static_cast<size_t>(start[blockIdx.z]);
  const size_t end = static_cast<size_t>(start[blockIdx.z + 1]);
  const size_t block = begin + static_cast<size_t>(blockIdx.x) * BLOCK;
  if (block >= end) return;
  const size_t kv = blockIdx.y, group = s.q / s.kv;
  bf16 *const key = shared, *const value = key + BLOCK * DIM;
  bf16 *const query = value + BLOCK * DIM, *const dquery = query + 2 * QUERIES * DIM;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t row = block + warp * 16 + lane / 4;
  tile<DIM>::template load<BLOCK, THREADS>(key, qk + (s.q + kv) * DIM, qk_width(s), block, end);
  tile<DIM>::template load<BLOCK, THREADS>(value, qkv + (s.q + s.kv + kv) * DIM, qkv_width(s),
                                           block, end);
  const size_t tiles = (end - block + QUERIES - 1) / QUERIES, steps = tiles * group;
  load_queries<DIM>(query, dquery, log_total[0], mean[0], qk, dout, lse, row_dot, block, end,
                    kv * group, s);
  copy_commit();
  float dkey[DIM / 8][4] = {}, dvalue[DIM / 8][4] = {}, c[QUERIES / 8][4], dp[QUERIES / 8][4];
  const float one[2] = {1, 1};
  for (size_t step = 0; step < steps; ++step) {
    const unsigned stage = step & 1, other = stage ^ 1;
    if (step + 1 < steps)
      load_queries<DIM>(query + other * QUERIES * DIM, dquery + other * QUERIES * DIM,
                        log_total[other], mean[other], qk, dout, lse, row_dot,
                        block + (step + 1) % tiles * QUERIES, end, kv * group + (step + 1) / tiles,
                        s);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    const size_t first = block + step % tiles * QUERIES;
    scores<DIM, QUERIES / 8>(c, key, warp * 16, query + stage * QUERIES * DIM);
    scores<DIM, QUERIES / 8>(dp, value, warp * 16, dquery + stage * QUERIES * DIM);
#pragma unroll
    for (int n = 0; n < static_cast<int>(QUERIES) / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const unsigned q =
            static_cast<unsigned>(n) * 8 + 2 * (lane % 4) + static_cast<unsigned>(i % 2);
        const bool seen = row + 8 * static_cast<size_t>(i / 2) <= first + q;
        const float p = seen ? power_of_2(c[n][i] * (scale * LOG2E) - log_total[stage][q]) : 0.0f;
        c[n][i] = p;
        dp[n][i] = p * (dp[n][i] - mean[stage][q]) * scale;
      }
    weighted<DIM, QUERIES / 8>(dvalue, c, dquery + stage * QUERIES * DIM);
    weighted<DIM, QUERIES / 8>(dkey, dp, query + stage * QUERIES * DIM);
    __syncthreads();
  }
  store_block<DIM>(dqk + (s.q + kv) * DIM, qk_width(s), dkey, one, block + warp * 16, end);
  store_block<DIM>(dqkv + (s.q + s.kv + kv) * DIM, qkv_width(s), dvalue, one, block + warp * 16,
                   end);
}

/* --- launches --- */

template <int DIM> static void launch(cuda_backend *b, const attention_call *a) {
  const unsigned blocks = blocks_of(a->rows.longest, BLOCK);
  const unsigned q = static_cast<unsigned>(a->shape.q), kv = static_cast<unsigned>(a->shape.kv);
  const unsigned sequences = static_cast<unsigned>(a->rows.sequences);
  const bf16 *qk = static_cast<const bf16 *>(a->qk), *qkv = static_cast<const bf16 *>(a->qkv);
  const bf16 *dout = static_cast<const bf16 *>(a->dout);
  bf16 *dqk = static_cast<bf16 *>(a->dqk), *dqkv = static_cast<bf16 *>(a->dqkv);
  const size_t row = DIM * sizeof(bf16);
  if (!a->backward) {
    LAUNCH(b, attention_mma<DIM>, dim3(blocks, q, sequences), THREADS, (BLOCK + 4 * TILE) * row,
           static_cast<bf16 *>(a->out), a->lse_to, qk, qkv, a->rows.start, a->shape,
           a->scale * LOG2E);
    return;
  }
  LAUNCH(b, attention_mma_dq<DIM>, dim3(blocks, q, sequences), THREADS,
         (2 * BLOCK + 4 * TILE) * row, dqk, dout, a->lse, a->row_dot, qk, qkv, a->rows.start,
         a->shape, a->scale);
  LAUNCH(b, attention_mma_dkv<DIM>, dim3(blocks, kv, sequences), THREADS,
         (2 * BLOCK + 4 * QUERIES) * row, dqk, dqkv, dout, a->lse, a->row_dot, qk, qkv,
         a->rows.start, a->shape, a->scale);
}

bool attention_tensor(cuda_backend *b, const attention_call *a) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(a->qk) | reinterpret_cast<uintptr_t>(a->qkv) |
                         reinterpret_cast<uintptr_t>(a->dout) |
                         reinterpret_cast<uintptr_t>(a->out) | reinterpret_cast<uintptr_t>(a->dqk) |
                         reinterpret_cast<uintptr_t>(a->dqkv);
  if (bits % 16 != 0 || (a->shape.dim != 64 && a->shape.dim != 128)) return false;
  if (a->shape.dim == 64)
    launch<64>(b, a);
  else
    launch<128>(b, a);
  return true;
}
