/* Attention forward and backward in float arithmetic, for every head size up to 256. Scores stay on
 * the chip: keys and values are read through shared memory in tiles of TILE, and for each query a
 * warp keeps the running maximum of the scores and sum of exponentials (online softmax: Milakov &
 * Gimelshein, arXiv 1805.02867; Dao et al., FlashAttention, arXiv 2205.14135). The backward
 * recomputes the scores from the forward's log-sum-exp.
 *
 * A warp processes ROWS query rows at once (in the pass for keys and values: ROWS key rows). Lane j
 * holds the scores with column j of the tile; in weighted sums, lane l holds dimensions l, l + 32,
 * .... The backward makes two passes, one that writes dq and one that writes dk and dv, so the
 * order of additions does not depend on scheduling.
 *
 * bfloat16 heads of 64 and 128 numbers use the tensor cores instead (attention_mma.cu). */
#include "llm/backend/cuda/vector16.cuh"

#include <assert.h>
#include <math.h>

static const unsigned WARPS = 4, ROWS = 4, TILE = 32, BLOCK_ROWS = WARPS * ROWS;
/* Floats of shared memory for exchanging weights between the lanes of each warp. */
static const unsigned WEIGHTS = WARPS * TILE * ROWS;

/* to [n, dim + 1] = rows [first, first + n) of a matrix with row distance ld, as floats; zeros from
 * row `end` on. The extra column avoids bank conflicts between rows. The whole block calls it and
 * must synchronise before reading `to`. */
template <typename T>
static __device__ void load_tile(float *to, const T *from, size_t ld, size_t first, size_t end,
                                 size_t n, size_t dim) {
  for (size_t i = threadIdx.x; i < n * dim; i += blockDim.x) {
    const size_t r = i / dim, d = i % dim;
    to[r * (dim + 1) + d] = first + r < end ? to_float(from[(first + r) * ld + d]) : 0.0f;
  }
}

/* score[r] = row r of a [ROWS, dim + 1] times b [dim]. */
static __device__ __forceinline__ void dots(float *score, const float *a, const float *b,
                                            size_t dim) {
#pragma unroll
  for (unsigned r = 0; r < ROWS; ++r) score[r] = 0;
  for (size_t d = 0; d < dim; ++d) {
    const float x = b[d];
#pragma unroll
    for (unsigned r = 0; r < ROWS; ++r) score[r] += a[r * (dim + 1) + d] * x;
  }
}

/* sum[r][c] += over columns j of the tile: weight[r] of lane j times row j of b [TILE, dim + 1], in
 * dimension lane + 32 c. The weights are exchanged through `shared` [TILE, ROWS], which belongs to
 * the warp. */
template <int C>
static __device__ __forceinline__ void weighted(float (&sum)[ROWS][C], const float *weight,
                                                const float *b, size_t dim, float *shared) {
  const unsigned lane = threadIdx.x % 32;
  __syncwarp();
#pragma unroll
  for (unsigned r = 0; r < ROWS; ++r) shared[lane * ROWS + r] = weight[r];
  __syncwarp();
  for (unsigned j = 0; j < TILE; ++j) {
    const float4 w = *reinterpret_cast<const float4 *>(shared + j * ROWS);
#pragma unroll
    for (unsigned c = 0; c < C; ++c) {
      const size_t d = lane + 32 * c;
      const float x = d < dim ? b[j * (dim + 1) + d] : 0.0f;
      sum[0][c] += w.x * x;
      sum[1][c] += w.y * x;
      sum[2][c] += w.z * x;
      sum[3][c] += w.w * x;
    }
  }
}

/* Rows [first, first + ROWS) of `to`, up to `end`, = x * factor[row]. */
template <typename T, int C>
static __device__ __forceinline__ void store_rows(T *to, size_t ld, const float (&x)[ROWS][C],
                                                  const float *factor, size_t first, size_t end,
                                                  size_t dim) {
#pragma unroll
  for (unsigned r = 0; r < ROWS; ++r)
#pragma unroll
    for (unsigned c = 0; c < C; ++c) {
      const size_t d = threadIdx.x % 32 + 32 * c;
      if (d < dim && first + r < end) to[(first + r) * ld + d] = number<T>(x[r][c] * factor[r]);
    }
}

/* --- forward --- */

/* out [rows, q * dim] and lse [rows, q] of BLOCK_ROWS queries of head blockIdx.y and sequence
 * blockIdx.z. Blocks with more keys start first. C: dimensions per lane. */
template <typename T, int C>
__global__ void attention_rows(T *out, float *lse, const T *qk, const T *qkv, const int32_t *start,
                               head_shape s, float scale) {
  SHARED_MEMORY(float, shared);
  const size_t begin = static_cast<size_t>(start[blockIdx.z]);
  const size_t end = static_cast<size_t>(start[blockIdx.z + 1]);
  const size_t block = begin + static_cast<size_t>(gridDim.x - 1 - blockIdx.x) * BLOCK_ROWS;
  if (block >= end) return;
  const size_t h = blockIdx.y, kv = h / (s.q / s.kv), dim = s.dim;
  float *const query = shared + WEIGHTS, *const key = query + BLOCK_ROWS * (dim + 1);
  float *const value = key + TILE * (dim + 1);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t first = block + warp * ROWS;
  load_tile(query, qk + h * dim, cuda_qk_width(s), block, end, BLOCK_ROWS, dim);
  float sum[ROWS][C] = {}, greatest[ROWS], total[ROWS], score[ROWS];
#pragma unroll
  for (unsigned r = 0; r < ROWS; ++r) {
    greatest[r] = -INFINITY;
    total[r] = 0;
  }
  const size_t last = block + BLOCK_ROWS < end ? block + BLOCK_ROWS : end;
  for (size_t k = begin; k < last; k += TILE) {
    __syncthreads();
    load_tile(key, qk + (s.q + kv) * dim, cuda_qk_width(s), k, end, TILE, dim);
    load_tile(value, qkv + (s.q + s.kv + kv) * dim, cuda_qkv_width(s), k, end, TILE, dim);
    __syncthreads();
    dots(score, query + warp * ROWS * (dim + 1), key + lane * (dim + 1), dim);
#pragma unroll
    for (unsigned r = 0; r < ROWS; ++r) {
      const float z = k + lane <= first + r ? score[r] * scale : -INFINITY;
      const float top = fmaxf(greatest[r], warp_max(z));
      const float keep = greatest[r] == -INFINITY ? 0.0f : expf(greatest[r] - top);
      score[r] = z == -INFINITY ? 0.0f : expf(z - top);
      total[r] = total[r] * keep + warp_sum(score[r]);
      greatest[r] = top;
#pragma unroll
      for (unsigned c = 0; c < C; ++c) sum[r][c] *= keep;
    }
    weighted<C>(sum, score, value, dim, shared + warp * TILE * ROWS);
  }
#pragma unroll
  for (unsigned r = 0; r < ROWS; ++r) {
    if (lane == 0 && first + r < end) lse[(first + r) * s.q + h] = greatest[r] + logf(total[r]);
    total[r] = 1 / total[r];
  }
  store_rows<T, C>(out + h * dim, s.q * dim, sum, total, first, end, dim);
}

/* --- backward: with p the softmax and dp = dO V^T, ds = p (dp - row sum of dO*O) scale --- */

/* row_dot [n] = the row sum of dO*O over each head's dim numbers, n = rows * q; `lanes` threads per
 * row and head, a power of 2 up to 32. */
template <typename T, bool WIDE>
__global__ void row_dots(float *row_dot, const T *dout, const T *out, size_t n, size_t dim,
                         unsigned lanes) {
  const unsigned N = vector16<T>::N, lane = threadIdx.x % lanes;
  const size_t i = (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) / lanes;
  float sum = 0, x[vector16<T>::N], y[vector16<T>::N];
  for (size_t d = lane * N; i < n && d < dim; d += lanes * N) {
    load_vector16<WIDE>(x, dout + i * dim + d, dim - d);
    load_vector16<WIDE>(y, out + i * dim + d, dim - d);
#pragma unroll
    for (unsigned e = 0; e < N; ++e) sum += x[e] * y[e];
  }
  for (unsigned with = lanes / 2; with > 0; with /= 2) sum += __shfl_xor_sync(WARP, sum, with);
  if (lane == 0 && i < n) row_dot[i] = sum;
}

template <typename T>
void attention_row_dot(cuda_backend *b, float *row_dot, const void *dout, const void *out, size_t n,
                       size_t dim) {
  static const unsigned threads = 256;
  unsigned lanes = 1;
  while (lanes < 32 && lanes < vectors16_of<T>(dim)) lanes *= 2;
  LAUNCH_VECTOR16(b, aligned16(dim * sizeof(T), dout, out), row_dots, T,
                  blocks_of(n * lanes, threads), threads, 0, row_dot, static_cast<const T *>(dout),
                  static_cast<const T *>(out), n, dim, lanes);
}
template void attention_row_dot<float>(cuda_backend *, float *, const void *, const void *, size_t,
                                       size_t);
template void attention_row_dot<bf16>(cuda_backend *, float *, const void *, const void *, size_t,
                                      size_t);

/* The queries' columns of dqk, for BLOCK_ROWS queries of head blockIdx.y and sequence blockIdx.z.
 */
template <typename T, int C>
__global__ void attention_rows_dq(T *dqk, const T *dout, const float *lse, const float *row_dot,
                                  const T *qk, const T *qkv, const int32_t *start, head_shape s,
                                  float scale) {
  SHARED_MEMORY(float, shared);
  const size_t begin = static_cast<size_t>(start[blockIdx.z]);
  const size_t end = static_cast<size_t>(start[blockIdx.z + 1]);
  const size_t block = begin + static_cast<size_t>(gridDim.x - 1 - blockIdx.x) * BLOCK_ROWS;
  if (block >= end) return;
  const size_t h = blockIdx.y, kv = h / (s.q / s.kv), dim = s.dim, step = dim + 1;
  float *const query = shared + WEIGHTS, *const dquery = query + BLOCK_ROWS * step;
  float *const key = dquery + BLOCK_ROWS * step, *const value = key + TILE * step;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t first = block + warp * ROWS;
  load_tile(query, qk + h * dim, cuda_qk_width(s), block, end, BLOCK_ROWS, dim);
  load_tile(dquery, dout + h * dim, s.q * dim, block, end, BLOCK_ROWS, dim);
  float sum[ROWS][C] = {}, score[ROWS], dp[ROWS], one[ROWS];
  const size_t last = block + BLOCK_ROWS < end ? block + BLOCK_ROWS : end;
  for (size_t k = begin; k < last; k += TILE) {
    __syncthreads();
    load_tile(key, qk + (s.q + kv) * dim, cuda_qk_width(s), k, end, TILE, dim);
    load_tile(value, qkv + (s.q + s.kv + kv) * dim, cuda_qkv_width(s), k, end, TILE, dim);
    __syncthreads();
    dots(score, query + warp * ROWS * step, key + lane * step, dim);
    dots(dp, dquery + warp * ROWS * step, value + lane * step, dim);
#pragma unroll
    for (unsigned r = 0; r < ROWS; ++r) {
      const size_t row = (first + r < end ? first + r : end - 1) * s.q + h;
      const float p = k + lane <= first + r ? expf(score[r] * scale - lse[row]) : 0.0f;
      score[r] = p * (dp[r] - row_dot[row]) * scale;
      one[r] = 1;
    }
    weighted<C>(sum, score, key, dim, shared + warp * TILE * ROWS);
  }
  store_rows<T, C>(dqk + h * dim, cuda_qk_width(s), sum, one, first, end, dim);
}

/* The keys' columns of dqk and the values' columns of dqkv, for BLOCK_ROWS keys of key/value head
 * blockIdx.y and sequence blockIdx.z. Loops over the queries that attend to these keys, one query
 * head after the other. */
template <typename T, int C>
__global__ void attention_rows_dkv(T *dqk, T *dqkv, const T *dout, const float *lse,
                                   const float *row_dot, const T *qk, const T *qkv,
                                   const int32_t *start, head_shape s, float scale) {
  SHARED_MEMORY(float, shared);
  const size_t begin = static_cast<size_t>(start[blockIdx.z]);
  const size_t end = static_cast<size_t>(start[blockIdx.z + 1]);
  const size_t block = begin + static_cast<size_t>(blockIdx.x) * BLOCK_ROWS;
  if (block >= end) return;
  const size_t kv = blockIdx.y, dim = s.dim, step = dim + 1, group = s.q / s.kv;
  float *const key = shared + WEIGHTS, *const value = key + BLOCK_ROWS * step;
  float *const query = value + BLOCK_ROWS * step, *const dquery = query + TILE * step;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t first = block + warp * ROWS;
  load_tile(key, qk + (s.q + kv) * dim, cuda_qk_width(s), block, end, BLOCK_ROWS, dim);
  load_tile(value, qkv + (s.q + s.kv + kv) * dim, cuda_qkv_width(s), block, end, BLOCK_ROWS, dim);
  float dkey[ROWS][C] = {}, dvalue[ROWS][C] = {}, score[ROWS], dp[ROWS], one[ROWS];
  for (size_t h = kv * group; h < (kv + 1) * group; ++h)
    for (size_t q = block; q < end; q += TILE) {
      __syncthreads();
      load_tile(query, qk + h * dim, cuda_qk_width(s), q, end, TILE, dim);
      load_tile(dquery, dout + h * dim, s.q * dim, q, end, TILE, dim);
      __syncthreads();
      dots(score, key + warp * ROWS * step, query + lane * step, dim);
      dots(dp, value + warp * ROWS * step, dquery + lane * step, dim);
      const size_t row = (q + lane < end ? q + lane : end - 1) * s.q + h;
#pragma unroll
      for (unsigned r = 0; r < ROWS; ++r) {
        const bool seen = q + lane < end && first + r <= q + lane;
        score[r] = seen ? expf(score[r] * scale - lse[row]) : 0.0f;
        dp[r] = score[r] * (dp[r] - row_dot[row]) * scale;
        one[r] = 1;
      }
      weighted<C>(dvalue, score, dquery, dim, shared + warp * TILE * ROWS);
      weighted<C>(dkey, dp, query, dim, shared + warp * TILE * ROWS);
    }
  store_rows<T, C>(dqk + (s.q + kv) * dim, cuda_qk_width(s), dkey, one, first, end, dim);
  store_rows<T, C>(dqkv + (s.q + s.kv + kv) * dim, cuda_qkv_width(s), dvalue, one, first, end, dim);
}

/* --- launches --- */

template <typename T, int C> static void forward(cuda_backend *b, const attention_call *a) {
  const size_t shared = (WEIGHTS + (BLOCK_ROWS + 2 * TILE) * (a->shape.dim + 1)) * sizeof(float);
  const dim3 grid(blocks_of(a->rows.longest, BLOCK_ROWS), static_cast<unsigned>(a->shape.q),
                  static_cast<unsigned>(a->rows.sequences));
  LAUNCH(b, (attention_rows<T, C>), grid, WARPS * 32, shared, static_cast<T *>(a->out), a->lse_to,
         static_cast<const T *>(a->qk), static_cast<const T *>(a->qkv), a->rows.start, a->shape,
         a->scale);
}

template <typename T, int C> static void backward(cuda_backend *b, const attention_call *a) {
  const size_t shared = (WEIGHTS + 2 * (BLOCK_ROWS + TILE) * (a->shape.dim + 1)) * sizeof(float);
  const unsigned tiles = blocks_of(a->rows.longest, BLOCK_ROWS);
  const unsigned sequences = static_cast<unsigned>(a->rows.sequences);
  const T *qk = static_cast<const T *>(a->qk), *qkv = static_cast<const T *>(a->qkv);
  const T *dout = static_cast<const T *>(a->dout);
  LAUNCH(b, (attention_rows_dq<T, C>), dim3(tiles, static_cast<unsigned>(a->shape.q), sequences),
         WARPS * 32, shared, static_cast<T *>(a->dqk), dout, a->lse, a->row_dot, qk, qkv,
         a->rows.start, a->shape, a->scale);
  LAUNCH(b, (attention_rows_dkv<T, C>), dim3(tiles, static_cast<unsigned>(a->shape.kv), sequences),
         WARPS * 32, shared, static_cast<T *>(a->dqk), static_cast<T *>(a->dqkv), dout, a->lse,
         a->row_dot, qk, qkv, a->rows.start, a->shape, a->scale);
}

/* Chooses the kernels by head size. */
template <typename T> static void run(cuda_backend *b, const attention_call *a) {
  const size_t dim = a->shape.dim;
  if (sizeof(T) == 2 && attention_tensor(b, a)) return;
  if (dim > 256)
    cuda_fail(b, GL_EINPUT, "attention", "heads of more than 256 numbers are not supported");
  else if (dim > 128)
    a->backward ? backward<T, 8>(b, a) : forward<T, 8>(b, a);
  else
    a->backward ? backward<T, 4>(b, a) : forward<T, 4>(b, a);
}

template <typename T> void attention_run(cuda_backend *b, const attention_call *a) {
  /* A grid has at most 65,535 sequences, so more are processed in several launches. */
  static const size_t MOST = 65535;
  attention_call part = *a;
  for (size_t s = 0; s < a->rows.sequences; s += MOST) {
    part.rows.start = a->rows.start + s;
    part.rows.sequences = a->rows.sequences - s < MOST ? a->rows.sequences - s : MOST;
    run<T>(b, &part);
  }
}
template void attention_run<float>(cuda_backend *, const attention_call *);
template void attention_run<bf16>(cuda_backend *, const attention_call *);

template <typename T>
static void op_attention(backend *base, void *out, void *lse, const void *qk, const void *qkv,
                         packed_rows rows, head_shape shape) {
  cuda_operation op(base, "attention", rows.rows, rows.longest, shape.dim);
  assert(head_shape_is_valid(shape));
  attention_call a = {};
  a.out = out;
  a.lse_to = static_cast<float *>(lse);
  a.qk = qk;
  a.qkv = qkv;
  a.rows = rows;
  a.shape = shape;
  a.scale = cuda_attention_scale(shape);
  attention_run<T>(op.b, &a);
}

template <typename T>
static void op_attention_backward(backend *base, void *dqk, void *dqkv, const void *dout,
                                  const void *out, const void *lse, const void *qk, const void *qkv,
                                  packed_rows rows, head_shape shape) {
  cuda_operation op(base, "attention_backward", rows.rows, rows.longest, shape.dim);
  assert(head_shape_is_valid(shape));
  attention_call a = {};
  a.backward = true;
  a.dqk = dqk;
  a.dqkv = dqkv;
  a.dout = dout;
  a.lse = static_cast<const float *>(lse);
  a.qk = qk;
  a.qkv = qkv;
  a.rows = rows;
  a.shape = shape;
  a.scale = cuda_attention_scale(shape);
  a.row_dot = static_cast<float *>(cuda_scratch(op.b, rows.rows * shape.q * sizeof(float)));
  attention_row_dot<T>(op.b, a.row_dot, dout, out, rows.rows * shape.q, shape.dim);
  attention_run<T>(op.b, &a);
}

CUDA_TYPED_OPERATION(attention)
CUDA_TYPED_OPERATION(attention_backward)
