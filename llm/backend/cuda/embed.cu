/* Rows that are added to the rows of a table whose numbers they name, in a fixed order: the
 * gradient of the embedding, and the reverse of gather.
 *
 * Several rows may name the same row of the table, and additions in the order of arrival would
 * change the last bits from run to run. So each run of rows that name the same row (their key) is
 * added from front to back by one block. scatter_add's keys ascend; those of the embedding, tokens
 * of a text, are first sorted, stably, by a radix sort of eight bits at a time. A pass of the sort
 * counts the digits of each tile of keys (count_digits), sums the counts (sum_before) and moves
 * every key to its place (place_digits). */
#include "llm/backend/cuda/vector16.cuh"

static const unsigned TILE = 256, DIGITS = 256;

/* count [DIGITS, tiles]: how often each digit (eight bits of key [n] from bit `shift`) occurs in
 * each tile of TILE keys; a block does a tile. */
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

/* Moves keys and rows to their places in key_to, row_to [n]: `before` is count after sum_before. A
 * block does a tile; keys of the same digit stay in their order. */
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

/* As many numbers of the table as a vector of T has, as floats, and back. Where the table is wider
 * than T (float against bfloat16) they take two accesses. */
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

/* Block (x, y): if place x of the keys, which ascend, begins a run of equal keys, it adds the run's
 * rows to row key[x] of table, for as many columns as its threads have vectors, from column vector
 * y * blockDim on. Key i is that of row row[i], or with row NULL that of row i. Bytes: a row of T
 * for each row, and a row of the table read and written for each run. */
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

template <typename M, typename T>
static void add_sorted(cuda_backend *b, M *table, const T *rows, const uint32_t *key,
                       const uint32_t *row, size_t n, size_t width) {
  const dim3 grid(static_cast<unsigned>(n), blocks_of(width, 128 * vector16<T>::N));
  if (aligned16(width * sizeof(T), table, rows))
    LAUNCH(b, (add_runs<M, T, true>), grid, 128, 0, table, rows, key, row, n, width);
  else
    LAUNCH(b, (add_runs<M, T, false>), grid, 128, 0, table, rows, key, row, n, width);
}

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
