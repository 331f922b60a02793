/* Attention on tensor cores, for bfloat16 heads of 64 and 128 numbers: the method of attention.cu
 * with tiles (Dao, FlashAttention-2, arXiv 2307.08691). Keys and values of the next tile are copied
 * while this tile is computed. Products are summed in float. Softmax weights and their gradients
 * are rounded to bfloat16 before the second product, like every operand of a tensor core.
 *
 * A warp processes R blocks of 16 rows, so that the keys and values it reads from shared memory
 * serve R multiplications. In the forward with heads of 128 numbers it reads 320 bytes per
 * multiplication with one block of rows, and 192 with two. A multiprocessor reads 128 bytes a clock
 * and starts little more than one multiplication in two clocks (experiments/BENCHMARKS.md has the
 * arithmetic). Accumulators of three blocks do not fit into registers; nor do those of two if a
 * kernel has two results (keys and values in the backward). R is 2 if there are enough rows to
 * occupy the device, else 1. Rows have the same bits either way. */
#include "llm/backend/cuda/device.cuh"
#include "llm/backend/cuda/mma.cuh"

static const unsigned WARPS = 4, THREADS = WARPS * 32;
static const unsigned TILE = 64, TILE_DQ = 32; /* keys of a tile, in the forward and for dq */
static const unsigned KEYS = 32;               /* keys whose scores the forward stores at a time */
static const unsigned BLOCK = WARPS * 16;      /* a block has R * BLOCK rows */
static const float LOG2E = 1.44269504f, LN2 = 0.69314718f;

/* c [R * 16, N * 8] = R * 16 rows of a_tile, from `row` on, times the transpose of N * 8 rows of
 * b_tile; both are DIM numbers wide. c[r][n] is a lane's part of columns [8 n, 8 n + 8) of the r-th
 * 16 rows, in the layout of C in mma.cuh. */
template <int DIM, int N, int R>
static __device__ __forceinline__ void score_tile(float (&c)[R][N][4], bf16 *a_tile, unsigned row,
                                                  bf16 *b_tile) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) c[r][n][i] = 0;
#pragma unroll
  for (unsigned k = 0; k < DIM; k += 16) {
    uint32_t a[R][4];
#pragma unroll
    for (int r = 0; r < R; ++r)
      tile<DIM>::as_a(a[r], a_tile, row + static_cast<unsigned>(r) * 16, k);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      uint32_t b[4];
      tile<DIM>::as_columns(b, b_tile, static_cast<unsigned>(n) * 8, k);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        mma(c[r][n], a[r], b[0], b[1]);
        mma(c[r][n + 1], a[r], b[2], b[3]);
      }
    }
  }
}

/* sum [R * 16, DIM] += w [R * 16, N * 8], rounded to bfloat16, times the first N * 8 rows of
 * b_tile.
 */
template <int DIM, int N, int R>
static __device__ __forceinline__ void weighted_tile(float (&sum)[R][DIM / 8][4],
                                                     const float (&w)[R][N][4], bf16 *b_tile) {
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    uint32_t a[R][4];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      a[r][0] = pack_halves(w[r][n][0], w[r][n][1]);
      a[r][1] = pack_halves(w[r][n][2], w[r][n][3]);
      a[r][2] = pack_halves(w[r][n + 1][0], w[r][n + 1][1]);
      a[r][3] = pack_halves(w[r][n + 1][2], w[r][n + 1][3]);
    }
#pragma unroll
    for (int d = 0; d < DIM / 8; d += 2) {
      uint32_t b[4];
      tile<DIM>::as_rows(b, b_tile, static_cast<unsigned>(n) * 8, static_cast<unsigned>(d) * 8);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        mma(sum[r][d], a[r], b[0], b[1]);
        mma(sum[r][d + 1], a[r], b[2], b[3]);
      }
    }
  }
}

/* --- forward --- */

/* Sums and differences of products are explicit here and below (fmaf), and a scaled score is
 * rounded before it is used, so that all instances of a kernel compute the same bits whatever the
 * compiler combines. */

/* One step of online softmax for N * 8 keys, from key k on. Scores c become weights 2^(score *
 * scale - greatest). greatest and total (the sum of weights so far) are updated, and keep[] is the
 * factor for everything summed before. The lane's rows are `row` and row + 8. masked: keys after
 * the row's own get weight 0. total holds this lane's part of the sum. */
template <int N>
static __device__ __forceinline__ void
online_softmax(float (&c)[N][4], float (&greatest)[2], float (&total)[2], float (&keep)[2],
               unsigned row, unsigned k, float scale, bool masked) {
  const unsigned t = threadIdx.x % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float top = greatest[half];
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        const unsigned key =
            k + static_cast<unsigned>(n) * 8 + 2 * t + static_cast<unsigned>(i % 2);
        c[n][i] = masked && key > row + 8 * static_cast<unsigned>(half) ? -INFINITY
                                                                        : __fmul_rn(c[n][i], scale);
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
    total[half] = fmaf(total[half], keep[half], sum);
  }
}

/* out [rows, q * DIM] and lse [rows, q] of R * BLOCK queries of head blockIdx.y and sequence
 * blockIdx.z. The first tile of keys holds key 0, to which every query attends, so no row's
 * greatest score remains -infinity. A warp skips tiles whose keys come after all of its rows. scale
 * includes log2(e): exponentials are powers of 2. */
template <int DIM, int R>
__global__ void __launch_bounds__(128)
    attention_mma(bf16 *out, float *lse, const bf16 *qk, const bf16 *qkv, const int32_t *start,
                  head_shape s, float scale) {
  SHARED_MEMORY(bf16, shared);
  const unsigned begin = static_cast<unsigned>(start[blockIdx.z]);
  const unsigned end = static_cast<unsigned>(start[blockIdx.z + 1]);
  const unsigned block = begin + (gridDim.x - 1 - blockIdx.x) * (R * BLOCK);
  if (block >= end) return;
  const size_t h = blockIdx.y, kv = h / (s.q / s.kv);
  const bf16 *const keys = qk + (s.q + kv) * DIM, *const values = qkv + (s.q + s.kv + kv) * DIM;
  bf16 *const query = shared, *const key = query + R * BLOCK * DIM;
  bf16 *const value = key + 2 * TILE * DIM;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned first = block + warp * (R * 16), row = first + lane / 4;
  tile<DIM>::template load<R * BLOCK, THREADS>(query, qk + h * DIM, cuda_qk_width(s), block, end);
  tile<DIM>::template load<TILE, THREADS>(key, keys, cuda_qk_width(s), begin, end);
  tile<DIM>::template load<TILE, THREADS>(value, values, cuda_qkv_width(s), begin, end);
  copy_commit();
  float sum[R][DIM / 8][4] = {}, total[R][2] = {}, greatest[R][2], keep[2], c[R][KEYS / 8][4];
#pragma unroll
  for (int r = 0; r < R; ++r) greatest[r][0] = greatest[r][1] = -INFINITY;
  const unsigned last = block + R * BLOCK < end ? block + R * BLOCK : end;
  unsigned stage = 0;
  for (unsigned k = begin; k < last; k += TILE, stage ^= 1) {
    if (k + TILE < last) {
      bf16 *const next_key = key + (stage ^ 1) * TILE * DIM;
      bf16 *const next_value = value + (stage ^ 1) * TILE * DIM;
      tile<DIM>::template load<TILE, THREADS>(next_key, keys, cuda_qk_width(s), k + TILE, end);
      tile<DIM>::template load<TILE, THREADS>(next_value, values, cuda_qkv_width(s), k + TILE, end);
    }
    copy_commit();
    copy_wait<1>();
    __syncthreads();
#pragma unroll 1
    for (unsigned part = 0; part < TILE; part += KEYS) {
      if (k + part >= first + R * 16) break;
      const unsigned at = (stage * TILE + part) * DIM;
      score_tile<DIM, KEYS / 8, R>(c, query, warp * (R * 16), key + at);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        online_softmax<KEYS / 8>(c[r], greatest[r], total[r], keep,
                                 row + static_cast<unsigned>(r) * 16, k + part, scale,
                                 k + part + KEYS > first);
#pragma unroll
        for (int d = 0; d < DIM / 8; ++d)
#pragma unroll
          for (int i = 0; i < 4; ++i) sum[r][d][i] *= keep[i / 2];
      }
      weighted_tile<DIM, KEYS / 8, R>(sum, c, value + at);
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const unsigned of = static_cast<unsigned>(r) * 16;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      total[r][half] = quad_sum(total[r][half]);
      const size_t at = row + of + 8 * static_cast<unsigned>(half);
      if (lane % 4 == 0 && at < end)
        lse[at * s.q + h] = (greatest[r][half] + log2f(total[r][half])) * LN2;
      total[r][half] = 1 / total[r][half];
    }
    store_block<DIM>(out + h * DIM, s.q * DIM, sum[r], total[r], first + of, end);
  }
}

/* --- backward, queries --- */

/* The queries' columns of dqk, for R * BLOCK queries of head blockIdx.y and sequence blockIdx.z.
 * row_dot [rows, q] is the row sum of dO*O. The log-sum-exp is multiplied by log2(e), so that
 * exponentials are powers of 2. */
template <int DIM, int R>
__global__ void __launch_bounds__(128)
    attention_mma_dq(bf16 *dqk, const bf16 *dout, const float *lse, const float *row_dot,
                     const bf16 *qk, const bf16 *qkv, const int32_t *start, head_shape s,
                     float scale) {
  SHARED_MEMORY(bf16, shared);
  __shared__ float2 of_row[R * BLOCK]; /* log-sum-exp times log2(e), and row sum of dO*O */
  const unsigned begin = static_cast<unsigned>(start[blockIdx.z]);
  const unsigned end = static_cast<unsigned>(start[blockIdx.z + 1]);
  const unsigned block = begin + (gridDim.x - 1 - blockIdx.x) * (R * BLOCK);
  if (block >= end) return;
  const size_t h = blockIdx.y, kv = h / (s.q / s.kv);
  const bf16 *const keys = qk + (s.q + kv) * DIM, *const values = qkv + (s.q + s.kv + kv) * DIM;
  bf16 *const query = shared, *const dquery = query + R * BLOCK * DIM;
  bf16 *const key = dquery + R * BLOCK * DIM, *const value = key + 2 * TILE_DQ * DIM;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned first = block + warp * (R * 16), row = first + lane / 4;
  tile<DIM>::template load<R * BLOCK, THREADS>(query, qk + h * DIM, cuda_qk_width(s), block, end);
  tile<DIM>::template load<R * BLOCK, THREADS>(dquery, dout + h * DIM, s.q * DIM, block, end);
  tile<DIM>::template load<TILE_DQ, THREADS>(key, keys, cuda_qk_width(s), begin, end);
  tile<DIM>::template load<TILE_DQ, THREADS>(value, values, cuda_qkv_width(s), begin, end);
  copy_commit();
  float sum[R][DIM / 8][4] = {}, c[R][TILE_DQ / 8][4], dp[R][TILE_DQ / 8][4];
  const float one[2] = {1, 1};
  for (unsigned i = threadIdx.x; i < R * BLOCK; i += THREADS) {
    const size_t at = static_cast<size_t>(block + i < end ? block + i : end - 1) * s.q + h;
    of_row[i] = make_float2(lse[at] * LOG2E, row_dot[at]);
  }
  const unsigned last = block + R * BLOCK < end ? block + R * BLOCK : end;
  unsigned stage = 0;
  for (unsigned k = begin; k < last; k += TILE_DQ, stage ^= 1) {
    if (k + TILE_DQ < last) {
      bf16 *const next_key = key + (stage ^ 1) * TILE_DQ * DIM;
      bf16 *const next_value = value + (stage ^ 1) * TILE_DQ * DIM;
      tile<DIM>::template load<TILE_DQ, THREADS>(next_key, keys, cuda_qk_width(s), k + TILE_DQ,
                                                 end);
      tile<DIM>::template load<TILE_DQ, THREADS>(next_value, values, cuda_qkv_width(s), k + TILE_DQ,
                                                 end);
    }
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    if (k < first + R * 16) {
      score_tile<DIM, TILE_DQ / 8, R>(c, query, warp * (R * 16), key + stage * TILE_DQ * DIM);
      score_tile<DIM, TILE_DQ / 8, R>(dp, dquery, warp * (R * 16), value + stage * TILE_DQ * DIM);
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const unsigned of = row + static_cast<unsigned>(r) * 16 + static_cast<unsigned>(half) * 8;
          const float2 known = of_row[of - block];
#pragma unroll
          for (int n = 0; n < static_cast<int>(TILE_DQ) / 8; ++n)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
              const unsigned at =
                  k + static_cast<unsigned>(n) * 8 + 2 * (lane % 4) + static_cast<unsigned>(i % 2);
              const float p =
                  at <= of ? power_of_2(fmaf(c[r][n][i], scale * LOG2E, -known.x)) : 0.0f;
              c[r][n][i] = p * (dp[r][n][i] - known.y) * scale;
            }
        }
      weighted_tile<DIM, TILE_DQ / 8, R>(sum, c, key + stage * TILE_DQ * DIM);
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < R; ++r)
    store_block<DIM>(dqk + h * DIM, cuda_qk_width(s), sum[r], one,
                     first + static_cast<unsigned>(r) * 16, end);
}

/* --- backward, keys and values --- */

static const unsigned QUERIES = 32; /* queries per tile; accumulators leave no registers for more */

/* Starts copies of queries [first, first + QUERIES) of head h and of their dO, and stores their
 * log-sum-exp times log2(e) and their row sums of dO*O in shared memory. */
template <int DIM>
static __device__ __forceinline__ void
load_queries(bf16 *query, bf16 *dquery, float *log_total, float *mean, const bf16 *qk,
             const bf16 *dout, const float *lse, const float *row_dot, size_t first, size_t end,
             size_t h, head_shape s) {
  tile<DIM>::template load<QUERIES, THREADS>(query, qk + h * DIM, cuda_qk_width(s), first, end);
  tile<DIM>::template load<QUERIES, THREADS>(dquery, dout + h * DIM, s.q * DIM, first, end);
  if (threadIdx.x < QUERIES) {
    const size_t row = first + threadIdx.x, at = (row < end ? row : end - 1) * s.q + h;
    log_total[threadIdx.x] =
        row < end ? lse[at] * LOG2E : INFINITY; /* INFINITY makes its weights zero */
    mean[threadIdx.x] = row_dot[at];
  }
}

/* The keys' columns of dqk and the values' columns of dqkv, for BLOCK keys of key/value head
 * blockIdx.y and sequence blockIdx.z. The score matrix is transposed here: a block's rows are keys.
 * Loops over the queries of its heads, head after head, each from the block's first key on. */
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
  tile<DIM>::template load<BLOCK, THREADS>(key, qk + (s.q + kv) * DIM, cuda_qk_width(s), block,
                                           end);
  tile<DIM>::template load<BLOCK, THREADS>(value, qkv + (s.q + s.kv + kv) * DIM, cuda_qkv_width(s),
                                           block, end);
  const size_t tiles = (end - block + QUERIES - 1) / QUERIES, steps = tiles * group;
  load_queries<DIM>(query, dquery, log_total[0], mean[0], qk, dout, lse, row_dot, block, end,
                    kv * group, s);
  copy_commit();
  float dkey[1][DIM / 8][4] = {}, dvalue[1][DIM / 8][4] = {};
  float c[1][QUERIES / 8][4], dp[1][QUERIES / 8][4];
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
    score_tile<DIM, QUERIES / 8, 1>(c, key, warp * 16, query + stage * QUERIES * DIM);
    score_tile<DIM, QUERIES / 8, 1>(dp, value, warp * 16, dquery + stage * QUERIES * DIM);
#pragma unroll
    for (int n = 0; n < static_cast<int>(QUERIES) / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const unsigned q =
            static_cast<unsigned>(n) * 8 + 2 * (lane % 4) + static_cast<unsigned>(i % 2);
        const bool seen = row + 8 * static_cast<size_t>(i / 2) <= first + q;
        const float p =
            seen ? power_of_2(fmaf(c[0][n][i], scale * LOG2E, -log_total[stage][q])) : 0.0f;
        c[0][n][i] = p;
        dp[0][n][i] = p * (dp[0][n][i] - mean[stage][q]) * scale;
      }
    weighted_tile<DIM, QUERIES / 8, 1>(dvalue, c, dquery + stage * QUERIES * DIM);
    weighted_tile<DIM, QUERIES / 8, 1>(dkey, dp, query + stage * QUERIES * DIM);
    __syncthreads();
  }
  store_block<DIM>(dqk + (s.q + kv) * DIM, cuda_qk_width(s), dkey[0], one, block + warp * 16, end);
  store_block<DIM>(dqkv + (s.q + s.kv + kv) * DIM, cuda_qkv_width(s), dvalue[0], one,
                   block + warp * 16, end);
}

/* --- launches --- */

/* A grid of blocks of R * BLOCK query rows, for every head and sequence. */
template <int R> static dim3 query_blocks(const attention_call *a) {
  return dim3(blocks_of(a->rows.longest, R * BLOCK), static_cast<unsigned>(a->shape.q),
              static_cast<unsigned>(a->rows.sequences));
}

template <int DIM, int R> static void forward(cuda_backend *b, const attention_call *a) {
  LAUNCH(b, (attention_mma<DIM, R>), query_blocks<R>(a), THREADS,
         (R * BLOCK + 4 * TILE) * DIM * sizeof(bf16), static_cast<bf16 *>(a->out), a->lse_to,
         static_cast<const bf16 *>(a->qk), static_cast<const bf16 *>(a->qkv), a->rows.start,
         a->shape, a->scale * LOG2E);
}

template <int DIM, int R> static void backward_queries(cuda_backend *b, const attention_call *a) {
  LAUNCH(b, (attention_mma_dq<DIM, R>), query_blocks<R>(a), THREADS,
         (2 * R * BLOCK + 4 * TILE_DQ) * DIM * sizeof(bf16), static_cast<bf16 *>(a->dqk),
         static_cast<const bf16 *>(a->dout), a->lse, a->row_dot, static_cast<const bf16 *>(a->qk),
         static_cast<const bf16 *>(a->qkv), a->rows.start, a->shape, a->scale);
}

template <int DIM> static void backward_keys(cuda_backend *b, const attention_call *a) {
  const dim3 grid(blocks_of(a->rows.longest, BLOCK), static_cast<unsigned>(a->shape.kv),
                  static_cast<unsigned>(a->rows.sequences));
  LAUNCH(b, attention_mma_dkv<DIM>, grid, THREADS, (2 * BLOCK + 4 * QUERIES) * DIM * sizeof(bf16),
         static_cast<bf16 *>(a->dqk), static_cast<bf16 *>(a->dqkv),
         static_cast<const bf16 *>(a->dout), a->lse, a->row_dot, static_cast<const bf16 *>(a->qk),
         static_cast<const bf16 *>(a->qkv), a->rows.start, a->shape, a->scale);
}

/* Uses two row blocks per warp if then no block is without work and there is a block for every
 * multiprocessor. */
template <int DIM> static void launch(cuda_backend *b, const attention_call *a) {
  const dim3 few = query_blocks<2>(a);
  const size_t blocks = static_cast<size_t>(few.x) * few.y * few.z;
  const bool two = a->rows.longest > BLOCK && blocks >= static_cast<size_t>(b->multiprocessors);
  if (!a->backward) return two ? forward<DIM, 2>(b, a) : forward<DIM, 1>(b, a);
  two ? backward_queries<DIM, 2>(b, a) : backward_queries<DIM, 1>(b, a);
  backward_keys<DIM>(b, a);
}

bool attention_tensor(cuda_backend *b, const attention_call *a) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(a->qk) | reinterpret_cast<uintptr_t>(a->qkv) |
                         reinterpret_cast<uintptr_t>(a->dout) |
                         reinterpret_cast<uintptr_t>(a->out) | reinterpret_cast<uintptr_t>(a->dqk) |
                         reinterpret_cast<uintptr_t>(a->dqkv);
  if (bits % 16 != 0 || (a->shape.dim != 64 && a->shape.dim != 128)) return false;
  if (attention_wgmma(b, a)) return true;
  if (a->shape.dim == 64)
    launch<64>(b, a);
  else
    launch<128>(b, a);
  return true;
}
