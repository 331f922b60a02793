/* Attention on the tensor cores of compute capability 9.0 (H100, H200), for bfloat16 heads of 64
 * and 128 numbers: attention_mma.cu with the products of warpgroups (wgmma.cuh), which read their
 * operands from shared memory and run while the warps compute something else (Shah et al.,
 * FlashAttention-3, arXiv 2407.08608).
 *
 * A block has three warpgroups. The first copies tiles into a ring of shared memory. Each of the
 * others owns 64 rows of the block's 128. For every tile one barrier counts finished copies, and
 * another (`empty`) counts warps that have finished reading it. So the two computing warpgroups
 * need not be in step: one computes exponentials while the other's products run.
 *
 * Milliseconds, and useful TFLOP/s (half of the scores; of the backward five products, although the
 * kernels compute seven, scores and dP twice), on an H100 80GB HBM3 with 16 query and 8 key/value
 * heads of 128 numbers:
 *
 *                            forward                     backward
 *                            mma.sync     wgmma          mma.sync     wgmma
 *   8 sequences of 2048      0.566, 243   0.318, 433     1.988, 173   0.996, 345
 *   2 sequences of 8192      1.999, 275   1.049, 524     7.202, 191   3.453, 398
 *   16 of 50 to 2048         0.403, 229   0.240, 383     1.382, 167   0.735, 313
 *   64 sequences of 256      0.125, 137   0.124, 138     0.398, 108   0.290, 148
 *
 * A block computes nothing until its first tile is copied, so TFLOP/s grow with the number of its
 * tiles: 8.5 of 128 keys on average in the first line, 32.5 in the second. */
#include "llm/backend/cuda/device.cuh"
#include "llm/backend/cuda/wgmma.cuh"

#ifdef GEPOLAB_EMULATE
bool attention_wgmma(cuda_backend *, const attention_call *) {
  return false;
}
#else

static const unsigned OWNERS = 2, THREADS = (1 + OWNERS) * WARPGROUP;
static const unsigned ROWS = 64, BLOCK = OWNERS * ROWS; /* rows of a warpgroup, of a block */
static const unsigned KEYS = 128;                       /* positions in a tile of keys or values */
static const unsigned STAGES = 2;                       /* tiles of keys and values in the ring */
static const unsigned QUERIES = 64, QUERY_STAGES = 3;   /* the same for tiles of queries */
static const unsigned DONE = OWNERS * 4; /* arrivals that free a tile: one per warp */
static const int FEWER = 40, MORE = 232; /* registers per thread: copying, computing */
static const float LOG2E = 1.44269504f, LN2 = 0.69314718f;

/* A position in a ring of N tiles: the tile's index, and the parity of the current phase of its
 * barriers. */
template <unsigned N> struct ring {
  unsigned at, parity;
  __device__ __forceinline__ void next() {
    if (++at == N) {
      at = 0;
      parity ^= 1;
    }
  }
};

/* The part of dynamic shared memory that starts at a multiple of 1024 bytes. */
static __device__ __forceinline__ bf16 *panels_in(bf16 *shared) {
  return shared + (1024 - shared_address(shared) % 1024) % 1024 / sizeof(bf16);
}

/* Reports to the barrier that this warp has finished reading the tile. */
static __device__ __forceinline__ void release_tile(uint64_t *empty) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive(empty);
}

/* --- forward --- */

struct tile_barriers {
  uint64_t query, key[STAGES], value[STAGES], key_empty[STAGES], value_empty[STAGES];
};
/* Initialises the barriers; the whole block calls it. */
static __device__ __forceinline__ void init_barriers(tile_barriers &barriers) {
  if (threadIdx.x == 0) {
    barrier_init(&barriers.query, WARPGROUP);
    for (unsigned i = 0; i < STAGES; ++i) {
      barrier_init(&barriers.key[i], WARPGROUP);
      barrier_init(&barriers.value[i], WARPGROUP);
      barrier_init(&barriers.key_empty[i], DONE);
      barrier_init(&barriers.value_empty[i], DONE);
    }
  }
  __syncthreads();
}

/* One step of online softmax: scores c become weights 2^((score - greatest) * scale). greatest and
 * total (this lane's part of the sum of weights) are updated; keep[] is the factor for everything
 * summed before. */
template <int N>
static __device__ __forceinline__ void online_softmax(float (&c)[N][4], float (&greatest)[2],
                                                      float (&total)[2], float (&keep)[2],
                                                      float scale) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float top = greatest[half];
#pragma unroll
    for (int n = 0; n < N; ++n) top = fmaxf(top, fmaxf(c[n][2 * half], c[n][2 * half + 1]));
    top = quad_max(top);
    keep[half] = power_of_2((greatest[half] - top) * scale);
    greatest[half] = top;
    const float less = top * scale;
    float sum = 0;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        c[n][i] = power_of_2(fmaf(c[n][i], scale, -less));
        sum += c[n][i];
      }
    total[half] = total[half] * keep[half] + sum;
  }
}

/* Causal mask of the tile that has the block's own positions. c: this lane's scores in rows `row`
 * and row + 8 of the tile, which has N * 8 columns. Those in columns greater than their row become
 * -infinity. */
template <int N> static __device__ __forceinline__ void mask(float (&c)[N][4], unsigned row) {
  const unsigned t = threadIdx.x % 4 * 2;
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (unsigned i = 0; i < 4; ++i)
      if (static_cast<unsigned>(n) * 8 + t + i % 2 > row + i / 2 * 8) c[n][i] = -INFINITY;
}

/* out [rows, q * DIM] and lse [rows, q] of BLOCK queries of head blockIdx.y and sequence
 * blockIdx.z. A tile has as many keys as a block has queries. A block processes its tiles from last
 * to first; the last one has the block's own positions and is the only one that needs a mask. scale
 * includes log2(e): exponentials are powers of 2. */
template <int DIM>
__global__ void __launch_bounds__(THREADS, 1)
    attention_forward(bf16 *out, float *lse, const bf16 *qk, const bf16 *qkv, const int32_t *start,
                      head_shape s, float scale) {
  SHARED_MEMORY(bf16, shared);
  __shared__ tile_barriers barriers;
  const unsigned begin = static_cast<unsigned>(start[blockIdx.z]);
  const unsigned end = static_cast<unsigned>(start[blockIdx.z + 1]);
  const unsigned tiles = gridDim.x - blockIdx.x, block = begin + (tiles - 1) * BLOCK;
  if (block >= end) return;
  const unsigned h = blockIdx.y, kv = h / static_cast<unsigned>(s.q / s.kv);
  bf16 *const query = panels_in(shared), *const key = query + BLOCK * DIM;
  bf16 *const value = key + STAGES * KEYS * DIM;
  init_barriers(barriers);
  const unsigned group = __shfl_sync(WARP, threadIdx.x / WARPGROUP, 0);
  if (group == 0) {
    fewer_registers<FEWER>();
    const size_t ld = cuda_qk_width(s), value_ld = cuda_qkv_width(s);
    const bf16 *const keys = qk + (s.q + kv) * DIM, *const values = qkv + (s.q + s.kv + kv) * DIM;
    copy_panels<BLOCK, DIM>(query, qk + h * DIM, ld, block, end);
    barrier_arrive_after_copies(&barriers.query);
    ring<STAGES> k = {0, 0}, v = {0, 0};
    /* Keys are copied one tile ahead of values. */
    for (unsigned i = 0; i <= tiles; ++i) {
      if (i < tiles) {
        barrier_wait(&barriers.key_empty[k.at], k.parity ^ 1);
        copy_panels<KEYS, DIM>(key + k.at * KEYS * DIM, keys, ld, block - i * KEYS, end);
        barrier_arrive_after_copies(&barriers.key[k.at]);
        k.next();
      }
      if (i == 0) continue;
      barrier_wait(&barriers.value_empty[v.at], v.parity ^ 1);
      copy_panels<KEYS, DIM>(value + v.at * KEYS * DIM, values, value_ld, block - (i - 1) * KEYS,
                             end);
      barrier_arrive_after_copies(&barriers.value[v.at]);
      v.next();
    }
    return;
  }
  more_registers<MORE>();
  const unsigned of = (group - 1) * ROWS; /* the warpgroup's first row in the block */
  const unsigned row = of + threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4;
  const uint64_t a = panels_at(shared_address(query) + of * 128, 0);
  const uint64_t b = panels_at(shared_address(key), 0);
  const uint64_t values = panels_at(shared_address(value), KEYS * 128);
  const unsigned tile_bytes = KEYS * DIM * sizeof(bf16);
  float sum[DIM / 8][4] = {}, c[KEYS / 8][4], total[2] = {}, keep[2];
  float greatest[2] = {-INFINITY, -INFINITY};
  uint32_t weights[KEYS / 16][4];
  ring<STAGES> k = {0, 0}, v = {0, 0};
  barrier_wait_for_copies(&barriers.query, 0);
  barrier_wait_for_copies(&barriers.key[0], 0);
  wgmma_begin();
  product_rows<DIM, BLOCK>(c, a, b);
  wgmma_commit();
  products_wait<0>();
  hold(c);
  release_tile(&barriers.key_empty[0]);
  k.next();
  mask(c, row);
  online_softmax(c, greatest, total, keep, scale);
  as_a(weights, c);
  for (unsigned i = 1; i < tiles; ++i) {
    barrier_wait_for_copies(&barriers.key[k.at], k.parity);
    hold(sum);
    wgmma_begin();
    product_rows<DIM, BLOCK>(c, a, panels_after(b, k.at * tile_bytes));
    wgmma_commit();
    barrier_wait_for_copies(&barriers.value[v.at], v.parity);
    wgmma_begin();
    product_columns(sum, weights, panels_after(values, v.at * tile_bytes));
    wgmma_commit();
    products_wait<1>();
    hold(c);
    release_tile(&barriers.key_empty[k.at]);
    k.next();
    online_softmax(c, greatest, total, keep, scale);
    products_wait<0>();
    hold(sum);
    release_tile(&barriers.value_empty[v.at]);
    v.next();
#pragma unroll
    for (int d = 0; d < DIM / 8; ++d)
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[d][j] *= keep[j / 2];
    as_a(weights, c);
  }
  barrier_wait_for_copies(&barriers.value[v.at], v.parity);
  hold(sum);
  wgmma_begin();
  product_columns(sum, weights, panels_after(values, v.at * tile_bytes));
  wgmma_commit();
  products_wait<0>();
  hold(sum);
#pragma unroll
  for (unsigned half = 0; half < 2; ++half) {
    total[half] = quad_sum(total[half]);
    const size_t at = block + row + 8 * half;
    if (threadIdx.x % 4 == 0 && at < end)
      lse[at * s.q + h] = (greatest[half] * scale + log2f(total[half])) * LN2;
    total[half] = 1 / total[half];
  }
  store_block<DIM>(out + h * DIM, s.q * DIM, sum, total, block + row - threadIdx.x % 32 / 4, end);
}

/* --- backward, queries --- */

/* The queries' columns of dqk, for BLOCK queries of head blockIdx.y and sequence blockIdx.z.
 * row_dot [rows, q] is the row sum of dO*O. */
template <int DIM>
__global__ void __launch_bounds__(THREADS, 1)
    attention_backward_queries(bf16 *dqk, const bf16 *dout, const float *lse, const float *row_dot,
                               const bf16 *qk, const bf16 *qkv, const int32_t *start, head_shape s,
                               float scale) {
  SHARED_MEMORY(bf16, shared);
  __shared__ tile_barriers barriers;
  const unsigned begin = static_cast<unsigned>(start[blockIdx.z]);
  const unsigned end = static_cast<unsigned>(start[blockIdx.z + 1]);
  const unsigned tiles = gridDim.x - blockIdx.x, block = begin + (tiles - 1) * BLOCK;
  if (block >= end) return;
  const unsigned h = blockIdx.y, kv = h / static_cast<unsigned>(s.q / s.kv);
  bf16 *const query = panels_in(shared), *const dquery = query + BLOCK * DIM;
  bf16 *const key = dquery + BLOCK * DIM, *const value = key + STAGES * KEYS * DIM;
  init_barriers(barriers);
  const unsigned group = __shfl_sync(WARP, threadIdx.x / WARPGROUP, 0);
  if (group == 0) {
    fewer_registers<FEWER>();
    const size_t ld = cuda_qk_width(s), value_ld = cuda_qkv_width(s);
    const bf16 *const keys = qk + (s.q + kv) * DIM, *const values = qkv + (s.q + s.kv + kv) * DIM;
    copy_panels<BLOCK, DIM>(query, qk + h * DIM, ld, block, end);
    copy_panels<BLOCK, DIM>(dquery, dout + h * DIM, s.q * DIM, block, end);
    barrier_arrive_after_copies(&barriers.query);
    ring<STAGES> k = {0, 0};
    for (unsigned i = 0; i < tiles; ++i, k.next()) {
      barrier_wait(&barriers.key_empty[k.at], k.parity ^ 1);
      copy_panels<KEYS, DIM>(key + k.at * KEYS * DIM, keys, ld, block - i * KEYS, end);
      barrier_arrive_after_copies(&barriers.key[k.at]);
      barrier_wait(&barriers.value_empty[k.at], k.parity ^ 1);
      copy_panels<KEYS, DIM>(value + k.at * KEYS * DIM, values, value_ld, block - i * KEYS, end);
      barrier_arrive_after_copies(&barriers.value[k.at]);
    }
    return;
  }
  more_registers<MORE>();
  const unsigned of = (group - 1) * ROWS;
  const unsigned row = of + threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4;
  const uint64_t a = panels_at(shared_address(query) + of * 128, 0);
  const uint64_t da = panels_at(shared_address(dquery) + of * 128, 0);
  const uint64_t keys = panels_at(shared_address(key), KEYS * 128);
  const uint64_t values = panels_at(shared_address(value), 0);
  const unsigned tile_bytes = KEYS * DIM * sizeof(bf16);
  const float factor = scale * LOG2E, scales[2] = {scale, scale};
  float sum[DIM / 8][4] = {}, c[KEYS / 8][4], dp[KEYS / 8][4], log_total[2], mean[2];
  uint32_t weights[KEYS / 16][4];
#pragma unroll
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned at = block + row + 8 * half;
    log_total[half] = lse[static_cast<size_t>(at < end ? at : end - 1) * s.q + h] * LOG2E;
    mean[half] = row_dot[static_cast<size_t>(at < end ? at : end - 1) * s.q + h];
  }
  ring<STAGES> k = {0, 0};
  barrier_wait_for_copies(&barriers.query, 0);
  for (unsigned i = 0; i < tiles; ++i, k.next()) {
    barrier_wait_for_copies(&barriers.key[k.at], k.parity);
    wgmma_begin();
    product_rows<DIM, BLOCK>(c, a, panels_after(keys, k.at * tile_bytes));
    wgmma_commit();
    barrier_wait_for_copies(&barriers.value[k.at], k.parity);
    wgmma_begin();
    product_rows<DIM, BLOCK>(dp, da, panels_after(values, k.at * tile_bytes));
    wgmma_commit();
    products_wait<1>();
    hold(c);
    if (i == 0) mask(c, row);
#pragma unroll
    for (int n = 0; n < static_cast<int>(KEYS) / 8; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) c[n][j] = power_of_2(fmaf(c[n][j], factor, -log_total[j / 2]));
    products_wait<0>();
    hold(dp);
    release_tile(&barriers.value_empty[k.at]);
#pragma unroll
    for (int n = 0; n < static_cast<int>(KEYS) / 8; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) c[n][j] *= dp[n][j] - mean[j / 2];
    as_a(weights, c);
    hold(sum);
    wgmma_begin();
    product_columns(sum, weights, panels_after(keys, k.at * tile_bytes));
    wgmma_commit();
    products_wait<0>();
    hold(sum);
    release_tile(&barriers.key_empty[k.at]);
  }
  store_block<DIM>(dqk + h * DIM, cuda_qk_width(s), sum, scales, block + row - threadIdx.x % 32 / 4,
                   end);
}

/* --- backward, keys and values --- */

/* mask() for transposed scores, whose rows are keys and whose columns are queries. The tile's first
 * column has number `first`, counted from the block's first row. Scores in columns less than their
 * row become -infinity. */
template <int N>
static __device__ __forceinline__ void mask_transposed(float (&c)[N][4], unsigned row,
                                                       unsigned first) {
  const unsigned t = first + threadIdx.x % 4 * 2;
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (unsigned i = 0; i < 4; ++i)
      if (static_cast<unsigned>(n) * 8 + t + i % 2 < row + i / 2 * 8) c[n][i] = -INFINITY;
}

struct key_barriers {
  uint64_t key, query[QUERY_STAGES], empty[QUERY_STAGES];
};

/* The keys' columns of dqk and the values' columns of dqkv, for BLOCK keys of key/value head
 * blockIdx.y and sequence blockIdx.z. The score matrix is transposed here: a block's rows are keys.
 * Loops over the queries of its heads, head after head, each from the block's first key on. Rows of
 * a tile after the sequence's end are zeros and add nothing to the gradients. */
template <int DIM>
__global__ void __launch_bounds__(THREADS, 1)
    attention_backward_keys(bf16 *dqk, bf16 *dqkv, const bf16 *dout, const float *lse,
                            const float *row_dot, const bf16 *qk, const bf16 *qkv,
                            const int32_t *start, head_shape s, float scale) {
  SHARED_MEMORY(bf16, shared);
  __shared__ key_barriers barriers;
  /* Log-sum-exp and row sum of dO*O. The racecheck of compute-sanitizer 13.0 reports that these are
   * read while they are written; this is a false alarm, because the barriers `query` and `empty`
   * order them, as they do for the tiles. */
  __shared__ float2 of_query[QUERY_STAGES][QUERIES];
  const unsigned begin = static_cast<unsigned>(start[blockIdx.z]);
  const unsigned end = static_cast<unsigned>(start[blockIdx.z + 1]);
  const unsigned block = begin + blockIdx.x * BLOCK;
  if (block >= end) return;
  const unsigned kv = blockIdx.y, heads = static_cast<unsigned>(s.q / s.kv);
  const unsigned tiles = (end - block + QUERIES - 1) / QUERIES;
  bf16 *const key = panels_in(shared), *const value = key + BLOCK * DIM;
  bf16 *const query = value + BLOCK * DIM, *const dquery = query + QUERY_STAGES * QUERIES * DIM;
  if (threadIdx.x == 0) {
    barrier_init(&barriers.key, WARPGROUP);
    for (unsigned i = 0; i < QUERY_STAGES; ++i) {
      barrier_init(&barriers.query[i], WARPGROUP);
      barrier_init(&barriers.empty[i], DONE);
    }
  }
  __syncthreads();
  const unsigned group = __shfl_sync(WARP, threadIdx.x / WARPGROUP, 0);
  const size_t ld = cuda_qk_width(s);
  if (group == 0) {
    fewer_registers<FEWER>();
    copy_panels<BLOCK, DIM>(key, qk + (s.q + kv) * DIM, ld, block, end);
    copy_panels<BLOCK, DIM>(value, qkv + (s.q + s.kv + kv) * DIM, cuda_qkv_width(s), block, end);
    barrier_arrive_after_copies(&barriers.key);
    ring<QUERY_STAGES> q = {0, 0};
    for (unsigned h = kv * heads; h < (kv + 1) * heads; ++h)
      for (unsigned first = block; first < end; first += QUERIES, q.next()) {
        barrier_wait(&barriers.empty[q.at], q.parity ^ 1);
        copy_panels<QUERIES, DIM>(query + q.at * QUERIES * DIM, qk + h * DIM, ld, first, end);
        copy_panels<QUERIES, DIM>(dquery + q.at * QUERIES * DIM, dout + h * DIM, s.q * DIM, first,
                                  end);
        const unsigned row = first + threadIdx.x % QUERIES;
        float *const to = reinterpret_cast<float *>(&of_query[q.at][threadIdx.x % QUERIES]);
        const size_t at = static_cast<size_t>(row < end ? row : first) * s.q + h;
        if (threadIdx.x < QUERIES)
          copy_number_async(to, lse + at, row < end);
        else
          copy_number_async(to + 1, row_dot + at, row < end);
        barrier_arrive_after_copies(&barriers.query[q.at]);
      }
    return;
  }
  more_registers<MORE>();
  const unsigned of = (group - 1) * ROWS;
  const unsigned row = of + threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4;
  const uint64_t a = panels_at(shared_address(key) + of * 128, 0);
  const uint64_t da = panels_at(shared_address(value) + of * 128, 0);
  const uint64_t queries = panels_at(shared_address(query), QUERIES * 128);
  const uint64_t dqueries = panels_at(shared_address(dquery), QUERIES * 128);
  const unsigned tile_bytes = QUERIES * DIM * sizeof(bf16);
  const float factor = scale * LOG2E, one[2] = {1, 1}, scales[2] = {scale, scale};
  float dkey[DIM / 8][4] = {}, dvalue[DIM / 8][4] = {};
  float c[QUERIES / 8][4], dp[QUERIES / 8][4];
  uint32_t weights[QUERIES / 16][4], dweights[QUERIES / 16][4];
  ring<QUERY_STAGES> q = {0, 0};
  const unsigned steps = tiles * heads;
  barrier_wait_for_copies(&barriers.key, 0);
  unsigned tile = 0; /* number of the tile of queries among those of its head */
  for (unsigned step = 0; step < steps; ++step, q.next()) {
    const float2 *const known = of_query[q.at] + threadIdx.x % 4 * 2;
    barrier_wait_for_copies(&barriers.query[q.at], q.parity);
    wgmma_begin();
    product_rows<DIM, BLOCK>(c, a, panels_after(queries, q.at * tile_bytes));
    wgmma_commit();
    product_rows<DIM, BLOCK>(dp, da, panels_after(dqueries, q.at * tile_bytes));
    wgmma_commit();
    products_wait<1>();
    hold(c);
    if (tile < OWNERS) mask_transposed(c, row, tile * QUERIES);
    tile = tile + 1 == tiles ? 0 : tile + 1;
#pragma unroll
    for (int n = 0; n < static_cast<int>(QUERIES) / 8; ++n) {
      const float4 two = *reinterpret_cast<const float4 *>(known + n * 8);
      const float less[2] = {two.x * LOG2E, two.z * LOG2E};
#pragma unroll
      for (int i = 0; i < 4; ++i) c[n][i] = power_of_2(fmaf(c[n][i], factor, -less[i % 2]));
    }
    as_a(weights, c);
    products_wait<0>();
    hold(dp);
    hold(dvalue);
    wgmma_begin();
    product_columns(dvalue, weights, panels_after(dqueries, q.at * tile_bytes));
    wgmma_commit();
#pragma unroll
    for (int n = 0; n < static_cast<int>(QUERIES) / 8; ++n) {
      const float4 two = *reinterpret_cast<const float4 *>(known + n * 8);
      const float mean[2] = {two.y, two.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) dp[n][i] = c[n][i] * (dp[n][i] - mean[i % 2]);
    }
    as_a(dweights, dp);
    hold(dkey);
    wgmma_begin();
    product_columns(dkey, dweights, panels_after(queries, q.at * tile_bytes));
    wgmma_commit();
    products_wait<0>();
    hold(dvalue);
    hold(dkey);
    release_tile(&barriers.empty[q.at]);
  }
  const size_t first = block + row - threadIdx.x % 32 / 4;
  store_block<DIM>(dqk + (s.q + kv) * DIM, ld, dkey, scales, first, end);
  store_block<DIM>(dqkv + (s.q + s.kv + kv) * DIM, cuda_qkv_width(s), dvalue, one, first, end);
}

/* --- launches --- */

static size_t shared_of(size_t rows, size_t dim) {
  return 1024 + rows * dim * sizeof(bf16);
}
static dim3 blocks(const attention_call *a, size_t heads) {
  return dim3(blocks_of(a->rows.longest, BLOCK), static_cast<unsigned>(heads),
              static_cast<unsigned>(a->rows.sequences));
}

template <int DIM> static void launch(cuda_backend *b, const attention_call *a) {
  const bf16 *const qk = static_cast<const bf16 *>(a->qk);
  const bf16 *const qkv = static_cast<const bf16 *>(a->qkv);
  const bf16 *const dout = static_cast<const bf16 *>(a->dout);
  bf16 *const dqk = static_cast<bf16 *>(a->dqk), *const dqkv = static_cast<bf16 *>(a->dqkv);
  if (!a->backward) {
    LAUNCH(b, attention_forward<DIM>, blocks(a, a->shape.q), THREADS,
           shared_of(BLOCK + 2 * STAGES * KEYS, DIM), static_cast<bf16 *>(a->out), a->lse_to, qk,
           qkv, a->rows.start, a->shape, a->scale * LOG2E);
    return;
  }
  LAUNCH(b, attention_backward_queries<DIM>, blocks(a, a->shape.q), THREADS,
         shared_of(2 * BLOCK + 2 * STAGES * KEYS, DIM), dqk, dout, a->lse, a->row_dot, qk, qkv,
         a->rows.start, a->shape, a->scale);
  LAUNCH(b, attention_backward_keys<DIM>, blocks(a, a->shape.kv), THREADS,
         shared_of(2 * BLOCK + 2 * QUERY_STAGES * QUERIES, DIM), dqk, dqkv, dout, a->lse,
         a->row_dot, qk, qkv, a->rows.start, a->shape, a->scale);
}

bool attention_wgmma(cuda_backend *b, const attention_call *a) {
  if (!b->wgmma) return false;
  a->shape.dim == 64 ? launch<64>(b, a) : launch<128>(b, a);
  return true;
}
#endif
