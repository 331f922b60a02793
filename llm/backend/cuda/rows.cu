/* Row-wise operations: gather and embed, norm, the gated unit. kernels_rows.h, shared with the CPU,
 * has the arithmetic of a number. This file divides rows among lanes and vectors of 16 bytes
 * (vector16.cuh). A block processes one row.
 *
 * Memory bandwidth limits the speed of all of them. Bytes read and written for a row of `width`
 * numbers of t bytes each, without weights, which stay in the cache:
 *
 *   gather, embed      2 t width         norm_backward      4 t width (din is read and written)
 *   norm               2 t width, with add 4 t width (sum is written, and not read again)
 *   heads              2 t width of queries and keys; heads_backward 3 t
 *   swiglu             3 t width         swiglu_backward    5 t width
 *
 * Gradients of norm weights are sums over rows, in a fixed order: each block adds some rows in
 * order and writes its sum, and a second kernel adds the blocks' sums. The number of blocks depends
 * only on the number of rows. */
#include "llm/backend/cuda/vector16.cuh"

/* --- sums over rows --- */

static const unsigned SUM_COLUMNS = 32, SUM_LANES = 32;

/* to [width] += the sums of SUM_COLUMNS columns of in [rows, ld]. Lane l of a column adds rows l, l
 * + SUM_LANES, ..., then the lanes' sums are added in order. */
template <typename T>
__global__ void add_row_sums(float *to, const T *in, size_t rows, size_t ld, size_t width) {
  __shared__ float part[SUM_LANES * SUM_COLUMNS];
  const unsigned column = threadIdx.x % SUM_COLUMNS, lane = threadIdx.x / SUM_COLUMNS;
  const size_t i = blockIdx.x * static_cast<size_t>(SUM_COLUMNS) + column;
  float sum = 0;
  for (size_t r = lane; r < rows && i < width; r += SUM_LANES) sum += to_float(in[r * ld + i]);
  part[threadIdx.x] = sum;
  __syncthreads();
  if (lane > 0 || i >= width) return;
  for (unsigned l = 1; l < SUM_LANES; ++l) sum += part[l * SUM_COLUMNS + column];
  to[i] += sum;
}

void cuda_add_parts(cuda_backend *b, void *to, const float *part, unsigned parts, size_t ld,
                    size_t width) {
  LAUNCH(b, add_row_sums<float>, blocks_of(width, SUM_COLUMNS), SUM_COLUMNS * SUM_LANES, 0,
         static_cast<float *>(to), part, parts, ld, width);
}

/* --- copies of rows --- */

/* out [n, width] = rows index [n] of in; block r copies row r. */
template <typename T>
__global__ void gather_rows(T *out, const T *in, const int32_t *index, size_t width) {
  const size_t r = blockIdx.x;
  const T *from = in + static_cast<size_t>(index[r]) * width;
  for (size_t i = threadIdx.x; i < width; i += blockDim.x) out[r * width + i] = from[i];
}

/* Copies 16 bytes at a time if every row begins at a multiple of 16 bytes. */
template <typename T>
static void op_gather(backend *base, void *out, const void *in, const int32_t *index, size_t n,
                      size_t width) {
  cuda_operation op(base, "gather", n, width);
  const unsigned rows = static_cast<unsigned>(n);
  if (aligned16(width * sizeof(T), out, in))
    LAUNCH(op.b, gather_rows<uint4>, rows, 128, 0, static_cast<uint4 *>(out),
           static_cast<const uint4 *>(in), index, width * sizeof(T) / sizeof(uint4));
  else
    LAUNCH(op.b, gather_rows<T>, rows, 128, 0, static_cast<T *>(out), static_cast<const T *>(in),
           index, width);
}

template <typename T>
static void op_embed(backend *base, void *out, const void *table, const int32_t *token, size_t rows,
                     size_t width) {
  op_gather<T>(base, out, table, token, rows, width);
}

/* Row blockIdx.x of a step that reads its token on the device (operations.h: embed_next). All
 * threads read the row's source before one of them writes that of the next step. */
template <typename T>
__global__ void embed_next_rows(T *out, const T *table, int32_t *source, int32_t *position,
                                uint64_t *index, const int32_t *slot, const int32_t *drawn,
                                size_t width) {
  const size_t r = blockIdx.x;
  const int32_t where = source[r];
  const int32_t token = where >= 0 ? where : drawn[-1 - where];
  __syncthreads();
  if (threadIdx.x == 0 && slot[r] >= 0) {
    source[r] = -1 - static_cast<int32_t>(r);
    ++position[r];
    ++index[r];
  }
  const T *from = table + static_cast<size_t>(token) * width;
  for (size_t i = threadIdx.x; i < width; i += blockDim.x) out[r * width + i] = from[i];
}

template <typename T>
static void op_embed_next(backend *base, void *out, const void *table, int32_t *source,
                          int32_t *position, uint64_t *index, const int32_t *slot,
                          const int32_t *drawn, size_t n, size_t width) {
  cuda_operation op(base, "embed_next", n, width);
  const unsigned rows = static_cast<unsigned>(n);
  if (aligned16(width * sizeof(T), out, table))
    LAUNCH(op.b, embed_next_rows<uint4>, rows, 128, 0, static_cast<uint4 *>(out),
           static_cast<const uint4 *>(table), source, position, index, slot, drawn,
           width * sizeof(T) / sizeof(uint4));
  else
    LAUNCH(op.b, embed_next_rows<T>, rows, 128, 0, static_cast<T *>(out),
           static_cast<const T *>(table), source, position, index, slot, drawn, width);
}

/* --- norm --- */

/* The norm of row blockIdx.x (arrays as in operations.h). A thread keeps its first vector in
 * registers between the two loops. It has no further vector if a row has at most as many vectors as
 * the block has threads; then nothing is read twice. */
template <typename T, bool WIDE>
__global__ void norm_rows(T *out, float *rstd, T *sum, const T *in, const T *add, const T *weight,
                          size_t width, float eps) {
  wait_for_kernels_before();
  const unsigned N = vector16<T>::N;
  const size_t row = blockIdx.x * width, first = threadIdx.x * N, step = blockDim.x * N;
  float kept[N], x[N], w[N], squares = 0;
  for (size_t i = first; i < width; i += step) {
    load_residual<T, WIDE>(x, in + row, add == nullptr ? nullptr : add + row, i, width - i);
    if (add != nullptr) store_vector16<WIDE>(sum + row + i, x, width - i);
#pragma unroll
    for (unsigned e = 0; e < N; ++e) {
      squares += x[e] * x[e];
      if (i == first) kept[e] = x[e];
    }
  }
  const T *from = add == nullptr ? in : sum;
  const float r = 1 / sqrtf(block_sum(squares) / static_cast<float>(width) + eps);
  for (size_t i = first; i < width; i += step) {
    load_vector16<WIDE>(w, weight + i, width - i);
    if (i != first) load_vector16<WIDE>(x, from + row + i, width - i);
#pragma unroll
    for (unsigned e = 0; e < N; ++e)
      x[e] = rows_of<T>::norm_number(i == first ? kept[e] : x[e], r, w[e]);
    store_vector16<WIDE>(out + row + i, x, width - i);
  }
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
}

template <typename T>
static void op_norm(backend *base, void *out, void *rstd, void *sum, const void *in,
                    const void *add, const void *weight, size_t rows, size_t width, double eps) {
  cuda_operation op(base, "norm", rows, width);
  const bool wide = aligned16(width * sizeof(T), out, add == NULL ? NULL : sum, in, add, weight);
  LAUNCH_EARLY_VECTOR16(op.b, wide, norm_rows, T, rows, static_cast<unsigned>(rows),
                        vector16_threads(vectors16_of<T>(width)), 0, static_cast<T *>(out),
                        static_cast<float *>(rstd), static_cast<T *>(sum),
                        static_cast<const T *>(in), static_cast<const T *>(add),
                        static_cast<const T *>(weight), width, static_cast<float>(eps));
}

/* din [rows, width] += its gradient; part [gridDim.x, width] = each block's sum for the gradient of
 * the weight, over rows blockIdx.x, blockIdx.x + gridDim.x, .... The sum is in shared memory, where
 * each thread accesses only its own columns: numbers 4 f .. 4 f + 3 of vector p are at dweight[f *
 * vectors + p], so that adjacent threads use adjacent banks. */
template <typename T, bool WIDE>
__global__ void norm_backward_rows(T *din, float *part, const T *dout, const T *in,
                                   const float *rstd, const T *weight, size_t rows, size_t width) {
  SHARED_MEMORY(float4, dweight);
  const unsigned N = vector16<T>::N;
  const size_t vectors = (width + N - 1) / N;
  for (size_t i = threadIdx.x; i < vectors; i += blockDim.x)
#pragma unroll
    for (unsigned f = 0; f < N / 4; ++f) dweight[f * vectors + i] = make_float4(0, 0, 0, 0);
  for (size_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const size_t row = r * width;
    float dy[N], x[N], w[N], d[N], dot = 0;
    for (size_t p = threadIdx.x; p < vectors; p += blockDim.x) {
      const size_t i = p * N, left = width - i;
      load_vector16<WIDE>(dy, dout + row + i, left);
      load_vector16<WIDE>(x, in + row + i, left);
      load_vector16<WIDE>(w, weight + i, left);
#pragma unroll
      for (unsigned e = 0; e < N; ++e) dot += w[e] * dy[e] * x[e];
    }
    const float s = rstd[r], back = block_sum(dot) * s * s / static_cast<float>(width);
    for (size_t p = threadIdx.x; p < vectors; p += blockDim.x) {
      const size_t i = p * N, left = width - i;
      load_vector16<WIDE>(dy, dout + row + i, left);
      load_vector16<WIDE>(x, in + row + i, left);
      load_vector16<WIDE>(w, weight + i, left);
      load_vector16<WIDE>(d, din + row + i, left);
#pragma unroll
      for (unsigned e = 0; e < N; ++e) d[e] += rows_of<T>::norm_grad(dy[e], x[e], w[e], s, back);
      store_vector16<WIDE>(din + row + i, d, left);
#pragma unroll
      for (unsigned f = 0; f < N / 4; ++f) {
        float4 mine = dweight[f * vectors + p];
        mine.x += rows_of<T>::norm_weight_grad(dy[4 * f], x[4 * f], s);
        mine.y += rows_of<T>::norm_weight_grad(dy[4 * f + 1], x[4 * f + 1], s);
        mine.z += rows_of<T>::norm_weight_grad(dy[4 * f + 2], x[4 * f + 2], s);
        mine.w += rows_of<T>::norm_weight_grad(dy[4 * f + 3], x[4 * f + 3], s);
        dweight[f * vectors + p] = mine;
      }
    }
  }
  for (size_t p = threadIdx.x; p < vectors; p += blockDim.x)
#pragma unroll
    for (unsigned f = 0; f < N / 4; ++f) {
      const float4 mine = dweight[f * vectors + p];
      const float x[4] = {mine.x, mine.y, mine.z, mine.w};
      const size_t i = p * N + 4 * f;
      if (i < width) store_floats<WIDE>(part + blockIdx.x * width + i, x, width - i);
    }
}

template <typename T>
static void op_norm_backward(backend *base, void *din, void *dweight, const void *dout,
                             const void *in, const void *rstd, const void *weight, size_t rows,
                             size_t width) {
  cuda_operation op(base, "norm_backward", rows, width);
  const unsigned parts = cuda_parts(rows);
  const size_t vectors = vectors16_of<T>(width);
  float *part = static_cast<float *>(cuda_scratch(op.b, parts * width * sizeof *part));
  LAUNCH_VECTOR16(op.b, aligned16(width * sizeof(T), din, dout, in, weight), norm_backward_rows, T,
                  parts, vector16_threads(vectors), vectors * vector16<T>::N * sizeof(float),
                  static_cast<T *>(din), part, static_cast<const T *>(dout),
                  static_cast<const T *>(in), static_cast<const float *>(rstd),
                  static_cast<const T *>(weight), rows, width);
  if (rows > 0) cuda_add_parts(op.b, dweight, part, parts, width, width);
}

/* --- bias --- */

/* Row blockIdx.x of out [rows, width] += bias [width]. */
template <typename T, bool WIDE> __global__ void bias_rows(T *out, const T *bias, size_t width) {
  const unsigned N = vector16<T>::N;
  T *const row = out + blockIdx.x * width;
  for (size_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
    float x[N], y[N];
    load_vector16<WIDE>(x, row + i, width - i);
    load_vector16<WIDE>(y, bias + i, width - i);
#pragma unroll
    for (unsigned e = 0; e < N; ++e) x[e] += y[e];
    store_vector16<WIDE>(row + i, x, width - i);
  }
}

template <typename T>
static void op_bias(backend *base, void *out, const void *bias, size_t rows, size_t width) {
  cuda_operation op(base, "bias", rows, width);
  LAUNCH_VECTOR16(op.b, aligned16(width * sizeof(T), out, bias), bias_rows, T,
                  static_cast<unsigned>(rows), vector16_threads(vectors16_of<T>(width)), 0,
                  static_cast<T *>(out), static_cast<const T *>(bias), width);
}

template <typename T>
static void op_bias_backward(backend *base, void *dbias, const void *dout, size_t rows,
                             size_t width) {
  cuda_operation op(base, "bias_backward", rows, width);
  LAUNCH(op.b, add_row_sums<T>, blocks_of(width, SUM_COLUMNS), SUM_COLUMNS * SUM_LANES, 0,
         static_cast<float *>(dbias), static_cast<const T *>(dout), rows, width, width);
}

/* --- gated unit --- */

/* Row blockIdx.x of out [rows, width] and of gate_up [rows, 2 * width]. */
template <typename T, bool WIDE>
__global__ void swiglu_rows(T *out, const T *gate_up, size_t width) {
  const unsigned N = vector16<T>::N;
  const T *gate = gate_up + blockIdx.x * 2 * width, *up = gate + width;
  for (size_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
    float g[N], u[N];
    load_vector16<WIDE>(g, gate + i, width - i);
    load_vector16<WIDE>(u, up + i, width - i);
#pragma unroll
    for (unsigned e = 0; e < N; ++e) g[e] = rows_of<T>::swiglu_number(g[e], u[e]);
    store_vector16<WIDE>(out + blockIdx.x * width + i, g, width - i);
  }
}

template <typename T>
static void op_swiglu(backend *base, void *out, const void *gate_up, size_t rows, size_t width) {
  cuda_operation op(base, "swiglu", rows, width);
  LAUNCH_VECTOR16(op.b, aligned16(width * sizeof(T), out, gate_up), swiglu_rows, T,
                  static_cast<unsigned>(rows), vector16_threads(vectors16_of<T>(width)), 0,
                  static_cast<T *>(out), static_cast<const T *>(gate_up), width);
}

/* Row blockIdx.x of dgate_up [rows, 2 * width]. */
template <typename T, bool WIDE>
__global__ void swiglu_backward_rows(T *dgate_up, const T *dout, const T *gate_up, size_t width) {
  const unsigned N = vector16<T>::N;
  const size_t row = blockIdx.x * 2 * width;
  for (size_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
    float d[N], g[N], u[N];
    load_vector16<WIDE>(d, dout + blockIdx.x * width + i, width - i);
    load_vector16<WIDE>(g, gate_up + row + i, width - i);
    load_vector16<WIDE>(u, gate_up + row + width + i, width - i);
#pragma unroll
    for (unsigned e = 0; e < N; ++e) {
      const float gate = g[e], up = u[e];
      rows_of<T>::swiglu_grads(&g[e], &u[e], d[e], gate, up);
    }
    store_vector16<WIDE>(dgate_up + row + i, g, width - i);
    store_vector16<WIDE>(dgate_up + row + width + i, u, width - i);
  }
}

template <typename T>
static void op_swiglu_backward(backend *base, void *dgate_up, const void *dout, const void *gate_up,
                               size_t rows, size_t width) {
  cuda_operation op(base, "swiglu_backward", rows, width);
  LAUNCH_VECTOR16(op.b, aligned16(width * sizeof(T), dgate_up, dout, gate_up), swiglu_backward_rows,
                  T, static_cast<unsigned>(rows), vector16_threads(vectors16_of<T>(width)), 0,
                  static_cast<T *>(dgate_up), static_cast<const T *>(dout),
                  static_cast<const T *>(gate_up), width);
}

CUDA_TYPED_OPERATION(embed)
CUDA_TYPED_OPERATION(embed_next)
CUDA_TYPED_OPERATION(gather)
CUDA_TYPED_OPERATION(norm)
CUDA_TYPED_OPERATION(norm_backward)
CUDA_TYPED_OPERATION(bias)
CUDA_TYPED_OPERATION(bias_backward)
CUDA_TYPED_OPERATION(swiglu)
CUDA_TYPED_OPERATION(swiglu_backward)

/* --- sums over rows with the same index --- */

/* Adds rows to the rows of a table given by their indices, in a fixed order: the gradient of the
 * embedding, and the reverse of gather.
 *
 * Several rows may have the same index, and additions in order of completion would change the last
 * bits from run to run. So one block adds each run of rows with the same index (their key) from
 * front to back. scatter_add's keys ascend. Those of the embedding are the tokens of a text, and
 * are first sorted by a stable radix sort with eight bits per pass. A pass counts the digits of
 * each tile of keys (count_digits), sums the counts (sum_before) and moves every key to its place
 * (place_digits). */

static const unsigned TILE = 256, DIGITS = 256;

/* count [DIGITS, tiles]: how often each digit (eight bits of key [n] from bit `shift`) occurs in
 * each tile of TILE keys; one block per tile. */
__global__ void count_digits(uint32_t *count, const uint32_t *key, size_t n, unsigned shift) {
  __shared__ uint32_t mine[DIGITS];
  mine[threadIdx.x] = 0;
  __syncthreads();
  const size_t i = blockIdx.x * static_cast<size_t>(TILE) + threadIdx.x;
  if (i < n) atomicAdd(&mine[key[i] >> shift & (DIGITS - 1)], 1u);
  __syncthreads();
  count[threadIdx.x * static_cast<size_t>(gridDim.x) + blockIdx.x] = mine[threadIdx.x];
}

/* count [n] becomes its exclusive prefix sum; one block. */
__global__ void sum_before(uint32_t *count, size_t n) {
  __shared__ uint32_t part[DIGITS];
  const size_t each = (n + DIGITS - 1) / DIGITS, from = threadIdx.x * each;
  const size_t to = from + each < n ? from + each : n;
  uint32_t sum = 0;
  for (size_t i = from; i < to; ++i) sum += count[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (unsigned t = 0; t < threadIdx.x; ++t) sum += part[t];
  for (size_t i = from; i < to; ++i) {
    const uint32_t here = count[i];
    count[i] = sum;
    sum += here;
  }
}

/* Moves keys and rows to their places in key_to, row_to [n]; `before` is count after sum_before.
 * One block per tile; keys with the same digit keep their order. */
__global__ void place_digits(uint32_t *key_to, uint32_t *row_to, const uint32_t *key,
                             const uint32_t *row, const uint32_t *before, size_t n,
                             unsigned shift) {
  __shared__ uint32_t digit[TILE];
  const size_t i = blockIdx.x * static_cast<size_t>(TILE) + threadIdx.x;
  const uint32_t mine = i < n ? key[i] >> shift & (DIGITS - 1) : DIGITS;
  digit[threadIdx.x] = mine;
  __syncthreads();
  if (i >= n) return;
  uint32_t rank = 0;
  for (unsigned t = 0; t < threadIdx.x; ++t) rank += digit[t] == mine;
  const size_t to = before[mine * static_cast<size_t>(gridDim.x) + blockIdx.x] + rank;
  key_to[to] = key[i];
  row_to[to] = row[i];
}

/* key [n] = index, row [n] = 0, 1, 2, ... */
__global__ void number_rows(uint32_t *key, uint32_t *row, const int32_t *index, size_t n) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  key[i] = static_cast<uint32_t>(index[i]);
  row[i] = static_cast<uint32_t>(i);
}

/* Loads N numbers of the table, as many as a vector of T has, as floats; below, stores them. If the
 * table's type is wider than T (float against bfloat16) this takes two accesses. */
template <bool WIDE, unsigned N>
static __device__ __forceinline__ void load_table(float (&x)[N], const float *p, size_t left) {
  load_floats<WIDE>(x, p, left);
}
template <bool WIDE>
static __device__ __forceinline__ void load_table(float (&x)[8], const bf16 *p, size_t left) {
  load_vector16<WIDE>(x, p, left);
}
template <bool WIDE, unsigned N>
static __device__ __forceinline__ void store_table(float *p, const float (&x)[N], size_t left) {
  store_floats<WIDE>(p, x, left);
}
template <bool WIDE>
static __device__ __forceinline__ void store_table(bf16 *p, const float (&x)[8], size_t left) {
  store_vector16<WIDE>(p, x, left);
}

/* Block (x, y): if a run of equal keys begins at x (keys ascend), adds the run's rows to row key[x]
 * of table, for the columns of its threads' vectors, from vector y * blockDim on. Key i belongs to
 * row row[i], or to row i if row is NULL. Memory traffic: every row is read once, and a row of the
 * table is read and written once per run. */
template <typename M, typename T, bool WIDE>
__global__ void add_runs(M *table, const T *rows, const uint32_t *key, const uint32_t *row,
                         size_t n, size_t width) {
  const unsigned N = vector16<T>::N;
  const size_t first = blockIdx.x;
  const size_t i = (blockIdx.y * static_cast<size_t>(blockDim.x) + threadIdx.x) * N;
  if (first > 0 && key[first - 1] == key[first]) return;
  if (i >= width) return;
  M *to = table + key[first] * width + i;
  float sum[N], x[N];
  load_table<WIDE>(sum, to, width - i);
  for (size_t j = first; j < n && key[j] == key[first]; ++j) {
    const size_t from = row != nullptr ? row[j] : j;
    load_vector16<WIDE>(x, rows + from * width + i, width - i);
#pragma unroll
    for (unsigned e = 0; e < N; ++e) sum[e] += x[e];
  }
  store_table<WIDE>(to, sum, width - i);
}

size_t cuda_embed_scratch(size_t rows) {
  const size_t counts = static_cast<size_t>(blocks_of(rows, TILE)) * DIGITS;
  return 4 * carved(rows, 4) + carved(counts, 4);
}

/* Adds rows [n, width] to rows key[i] of the table, where keys ascend (add_runs). */
template <typename M, typename T>
static void add_sorted(cuda_backend *b, M *table, const T *rows, const uint32_t *key,
                       const uint32_t *row, size_t n, size_t width) {
  const dim3 grid(static_cast<unsigned>(n), blocks_of(width, 128 * vector16<T>::N));
  if (aligned16(width * sizeof(T), table, rows))
    LAUNCH(b, (add_runs<M, T, true>), grid, 128, 0, table, rows, key, row, n, width);
  else
    LAUNCH(b, (add_runs<M, T, false>), grid, 128, 0, table, rows, key, row, n, width);
}

/* add_sorted() for indices in any order: sorts (index, row number) by index first. */
template <typename M, typename T>
static void sort_and_add(cuda_backend *b, M *table, const T *rows, const int32_t *index, size_t n,
                         size_t width) {
  if (n == 0) return;
  const unsigned tiles = blocks_of(n, TILE);
  const size_t counts = static_cast<size_t>(tiles) * DIGITS;
  char *at = static_cast<char *>(cuda_scratch(b, cuda_embed_scratch(n)));
  if (at == NULL) return;
  uint32_t *key[2], *row[2];
  for (int i = 0; i < 2; ++i) {
    key[i] = carve<uint32_t>(&at, n);
    row[i] = carve<uint32_t>(&at, n);
  }
  uint32_t *count = carve<uint32_t>(&at, counts);
  LAUNCH(b, number_rows, tiles, TILE, 0, key[0], row[0], index, n);
  for (unsigned pass = 0; pass < 4; ++pass) {
    const unsigned from = pass % 2, to = 1 - from, shift = 8 * pass;
    LAUNCH(b, count_digits, tiles, TILE, 0, count, key[from], n, shift);
    LAUNCH(b, sum_before, 1, DIGITS, 0, count, counts);
    LAUNCH(b, place_digits, tiles, TILE, 0, key[to], row[to], key[from], row[from], count, n,
           shift);
  }
  add_sorted(b, table, rows, key[0], row[0], n, width);
}

template <typename T>
static void op_embed_backward(backend *base, void *dtable, const void *dout, const int32_t *token,
                              size_t rows, size_t width) {
  cuda_operation op(base, "embed_backward", rows, width);
  sort_and_add(op.b, static_cast<float *>(dtable), static_cast<const T *>(dout), token, rows,
               width);
}

template <typename T>
static void op_scatter_add(backend *base, void *in, const void *out, const int32_t *index, size_t n,
                           size_t width) {
  cuda_operation op(base, "scatter_add", n, width);
  add_sorted<T, T>(op.b, static_cast<T *>(in), static_cast<const T *>(out),
                   reinterpret_cast<const uint32_t *>(index), NULL, n, width);
}

CUDA_TYPED_OPERATION(embed_backward)
CUDA_TYPED_OPERATION(scatter_add)
