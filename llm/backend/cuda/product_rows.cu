/* Products whose rows have the same bits however many rows are multiplied together and wherever a
 * row stands among them: the products of generation, and its logits.
 *
 * out [rows, m] = in [rows, k] weight [m, k]^T. A library chooses its way of summing by the number
 * of rows. Here it follows from m, k and the number type alone: k is divided into splits (split-K),
 * each split is summed in ascending order from zero, and the splits' sums are added in their order.
 * The number of rows decides only how results are divided among blocks: tiles of 8 rows up to 128,
 * and whether the splits of a tile are summed by one block one after the other, or by a block each,
 * of which the last to finish adds the splits' sums. Which block that is depends on the order of
 * arrival; the order of additions does not. Rows are columns of mma, which computes all its results
 * alike.
 *
 * What limits it. Up to some 64 rows the time of a product is the reading of its weights, 2 m k
 * bytes in bfloat16: a decoding step of a model of b bytes cannot take less than b divided by the
 * memory's bandwidth. Each weight is read from memory once for up to 64 rows, and once per 128 rows
 * beyond. To keep a memory of 3.35 TB/s (H100) busy, whose answers take most of a microsecond,
 * some 2.5 MB must be under way at any time, 20 kB for each multiprocessor. A block of up to 32
 * rows has 5 steps of 64 x 64 weights under way (40 kB; three or four such blocks fit on a
 * multiprocessor), one of 64 rows 3 steps of 128 x 64 (48 kB; two fit). k is split until there are
 * 256 (tiles of 64 weights) x splits, or 8 splits, or until a split would be shorter than 256
 * terms. In a recorded step that is asked to overlap (GEPOLAB_CUDA_PDL=1) a block starts the copies
 * of its first weights while the kernel before it still runs. What is read besides comes from the
 * second-level cache: the rows, once for each tile of weights (64 rows are half as many bytes as
 * the tile's weights), and the splits' sums, 8 rows m splits bytes written and read. From some
 * hundred rows on the limit is mma's rate: 128 x 128 results a block, eight warps of 64 x 32.
 *
 * What follows a product in a decode can be done by its kernel (product_form): the gated unit, for
 * which a tile has as many weights of gates as of units, the ones that belong together; and for up
 * to eight rows the norm, by the last block to store its tile. More rows are too much for one
 * block, so the norm is a kernel of its own then. Either way the bits are those of separate
 * kernels.
 *
 * float32, and matrices that are not aligned, use plain multiplications with numbers loaded one
 * step ahead: near the bandwidth's limit for few rows, at the arithmetic's rate from some 30 rows
 * on. */
#include "llm/backend/cuda/product_tiles.cuh"
#include "llm/backend/cuda/vector16.cuh"

#include <assert.h>

/* Splitting k: blocks of 64 weights wanted, most splits, fewest terms of a split, and the unit of a
 * split's length. */
static const size_t BLOCKS = 256, MOST_SPLITS = 8, LEAST_SPLIT = 256, UNIT = 64;

/* Offsets within a tile of up to 128 rows must fit into 32 bits. */
static const size_t MOST_K = static_cast<size_t>(1) << 24;

/* Most tiles whose splits are summed by blocks of their own, and most blocks of all these tiles:
 * they bound the counters and the scratch memory. */
static const size_t MOST_TILES = PRODUCT_ARRIVALS - 1, MOST_BLOCKS = 512,
                    MOST_TILES_OF_MANY_ROWS = 64;

/* What a product's kernel does with the results: it stores them; it stores the gated unit of those
 * that belong together; it stores them, and the last block computes the norm of what they are added
 * to. */
enum product_form { PLAIN, GATED, NORMED };

/* Rows up to which the norm is computed by the last block: those of the smallest tile. */
static const size_t MOST_NORMED = 8;

/* The norm of a NORMED product (operations.h: product_norm), with `threads` as a kernel of its own
 * would have, because they decide on the order of sums. */
template <typename T> struct norm_after {
  T *out, *sum;
  float *rstd;
  const T *in, *weight;
  float eps;
  unsigned threads;
  bool wide;
  unsigned *arrived; /* tiles that are stored; zero between products */
};

/* One product; OUT is float or T. GATED: m is the number of results, half of that of weights. */
template <typename T, typename OUT> struct rows_call {
  const T *in, *weight;
  OUT *out;
  size_t rows, m;
  unsigned k, split, splits; /* terms of a split, number of splits */
  bool early;         /* may start before the kernel before it is over, which writes no weights */
  bool adds, aligned; /* aligned: every eight results of a row begin at a multiple of 16 bytes */
  float *partial;     /* [tiles, splits, results of a tile]; NULL: a block sums all splits */
  unsigned *arrived;  /* [tiles]: blocks whose sums are in partial; zero between products */
  norm_after<T> norm; /* of a NORMED product */
};

/* --- kernel --- */

/* Stores this block's sums of its split in `partial`. In the last block of a tile, adds the sums of
 * all splits, in their order, into `sum` and returns true; false in the others. The whole block
 * calls it. */
template <typename TILE>
static __device__ __forceinline__ bool combine_splits(float (&sum)[TILE::N], float *partial,
                                                      unsigned *arrived, unsigned splits) {
  const int VECTORS = TILE::N / 4;
  const size_t at = blockIdx.y * gridDim.x + blockIdx.x, size = TILE::THREADS * VECTORS;
  float4 *const kept = reinterpret_cast<float4 *>(partial) + at * splits * size + threadIdx.x;
#pragma unroll
  for (int i = 0; i < VECTORS; ++i)
    kept[blockIdx.z * size + static_cast<unsigned>(i) * TILE::THREADS] =
        make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
  if (!is_last_of(splits, arrived + at)) return false;
#pragma unroll
  for (int i = 0; i < TILE::N; ++i) sum[i] = NEGATIVE_ZERO;
#pragma unroll(VECTORS > 4 ? 1 : 4)
  for (unsigned z = 0; z < splits; ++z)
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
      const float4 x = __ldcg(kept + z * size + static_cast<unsigned>(i) * TILE::THREADS);
      sum[4 * i] += x.x;
      sum[4 * i + 1] += x.y;
      sum[4 * i + 2] += x.z;
      sum[4 * i + 3] += x.w;
    }
  return true;
}

/* Eight results of a row. */
template <typename OUT> struct __align__(16) eight {
  OUT x[8];
};

/* Stores (or adds) the tile whose first row and weight these are. The results pass through shared
 * memory, so that neighbouring threads write neighbouring numbers. GATED: numbers of the tile's
 * second half are the units that the first half gates. */
template <typename TILE, typename OUT, product_form FORM>
static __device__ __forceinline__ void store_tile(const rows_call<typename TILE::type, OUT> &a,
                                                  const float (&sum)[TILE::N], float *shared,
                                                  size_t row0, size_t weight0) {
  typedef typename TILE::type T;
  const unsigned LD = TILE::WEIGHTS + 4, HALF = TILE::WEIGHTS / 2;
  const unsigned VECTORS = (FORM == GATED ? HALF : TILE::WEIGHTS) / 8;
#pragma unroll
  for (int i = 0; i < TILE::N; ++i) {
    const tile_place p = TILE::at(threadIdx.x, static_cast<unsigned>(i));
    shared[p.row * LD + p.weight] = sum[i];
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < TILE::ROWS * VECTORS; i += TILE::THREADS) {
    const size_t row = row0 + i / VECTORS, weight = weight0 + i % VECTORS * 8;
    if (row >= a.rows || weight >= a.m) continue;
    float *const from = shared + i / VECTORS * LD + i % VECTORS * 8;
    if (FORM == GATED) { /* of both as they would have been stored */
#pragma unroll
      for (unsigned j = 0; j < 8; ++j)
        from[j] = rows_of<T>::swiglu_number(to_float(number<T>(from[j])),
                                            to_float(number<T>(from[HALF + j])));
    }
    OUT *const to = a.out + row * a.m + weight;
    if (a.aligned) {
      eight<OUT> y = {};
      if (a.adds) y = *reinterpret_cast<const eight<OUT> *>(to);
#pragma unroll
      for (int j = 0; j < 8; ++j)
        y.x[j] = number<OUT>(a.adds ? to_float(y.x[j]) + from[j] : from[j]);
      *reinterpret_cast<eight<OUT> *>(to) = y;
    } else {
      for (size_t j = 0; j < 8 && weight + j < a.m; ++j)
        to[j] = number<OUT>(a.adds ? to_float(to[j]) + from[j] : from[j]);
    }
  }
}

/* The norm of all rows after a product whose results, in `branch` [rows, width], are all stored:
 * what norm_rows of rows.cu does, with this block's warps taking turns as that kernel's. The whole
 * block calls it. */
template <typename TILE, bool WIDE>
static __device__ __forceinline__ void norm_of_rows(const norm_after<typename TILE::type> &a,
                                                    const typename TILE::type *branch, size_t rows,
                                                    size_t width, float *shared) {
  typedef typename TILE::type T;
  const unsigned N = vector16<T>::N, WARPS = TILE::THREADS / 32, warps = a.threads / 32;
  const unsigned lane = threadIdx.x % 32;
  const size_t step = static_cast<size_t>(a.threads) * N;
  float x[N], w[N];
  for (size_t r = 0; r < rows; ++r)
    for (unsigned as = threadIdx.x / 32; as < warps; as += WARPS) {
      float squares = 0;
      for (size_t i = (as * 32 + lane) * N; i < width; i += step) {
        load_residual<T, WIDE>(x, a.in + r * width, branch + r * width, i, width - i);
        store_vector16<WIDE>(a.sum + r * width + i, x, width - i);
#pragma unroll
        for (unsigned e = 0; e < N; ++e) squares += x[e] * x[e];
      }
      squares = warp_sum(squares);
      if (lane == 0) shared[r * warps + as] = squares;
    }
  __syncthreads();
  for (size_t r = 0; r < rows; ++r) {
    float squares = shared[r * warps];
    for (unsigned as = 1; as < warps; ++as) squares += shared[r * warps + as];
    const float scale = 1 / sqrtf(squares / static_cast<float>(width) + a.eps);
    for (unsigned as = threadIdx.x / 32; as < warps; as += WARPS)
      for (size_t i = (as * 32 + lane) * N; i < width; i += step) {
        load_vector16<WIDE>(x, a.sum + r * width + i, width - i);
        load_vector16<WIDE>(w, a.weight + i, width - i);
#pragma unroll
        for (unsigned e = 0; e < N; ++e) x[e] = rows_of<T>::norm_number(x[e], scale, w[e]);
        store_vector16<WIDE>(a.out + r * width + i, x, width - i);
      }
    if (threadIdx.x == 0) a.rstd[r] = scale;
  }
}

/* Block (x, y, z): tile x of rows, tile y of weights, split z (or all splits, where partial is
 * NULL). */
template <typename TILE, typename OUT, product_form FORM>
__global__ void __launch_bounds__(TILE::THREADS)
    product_rows(rows_call<typename TILE::type, OUT> a) {
  SHARED_MEMORY(float, shared);
  tile_work<typename TILE::type> w = {};
  w.in = a.in;
  w.weight = a.weight;
  w.rows = a.rows;
  w.m = a.m;
  w.k = a.k;
  w.row0 = static_cast<size_t>(blockIdx.x) * TILE::ROWS;
  w.weight0 = static_cast<size_t>(blockIdx.y) * (FORM == GATED ? TILE::WEIGHTS / 2 : TILE::WEIGHTS);
  w.first = blockIdx.z * a.split;
  w.end = a.partial != NULL && w.first + a.split < a.k ? w.first + a.split : a.k;
  w.split = a.split;
  w.early = a.early;
  float sum[TILE::N];
#pragma unroll
  for (int i = 0; i < TILE::N; ++i) sum[i] = NEGATIVE_ZERO;
  TILE::template sum_up<FORM == GATED>(sum, shared, w);
  if (a.partial != NULL && !combine_splits<TILE>(sum, a.partial, a.arrived, a.splits)) return;
  store_tile<TILE, OUT, FORM>(a, sum, shared, w.row0, w.weight0);
  if constexpr (FORM == NORMED) {
    if (!is_last_of(gridDim.y, a.norm.arrived)) return;
    if (a.norm.wide)
      norm_of_rows<TILE, true>(a.norm, a.out, a.rows, a.m, shared);
    else
      norm_of_rows<TILE, false>(a.norm, a.out, a.rows, a.m, shared);
  }
}

/* --- launches --- */

/* Launches one kind of tile; splits get blocks of their own where the tiles are few. */
template <typename TILE, product_form FORM, typename OUT>
static void launch_tiles(cuda_backend *b, rows_call<typename TILE::type, OUT> a) {
  static_assert(TILE::SHARED >= TILE::ROWS * (TILE::WEIGHTS + 4) * sizeof(float), "room to store");
  static_assert(TILE::SHARED <= 99 << 10, "as much as a block has on every device");
  dim3 grid(blocks_of(a.rows, TILE::ROWS),
            blocks_of(a.m, FORM == GATED ? TILE::WEIGHTS / 2 : TILE::WEIGHTS));
  const size_t tiles = static_cast<size_t>(grid.x) * grid.y;
  if (a.splits > 1 && tiles * a.splits <= MOST_BLOCKS &&
      tiles <= (grid.x == 1 ? MOST_TILES : MOST_TILES_OF_MANY_ROWS)) {
    grid.z = a.splits;
    a.partial = static_cast<float *>(
        cuda_scratch(b, tiles * a.splits * TILE::ROWS * TILE::WEIGHTS * sizeof(float)));
    if (a.partial == NULL) return;
  }
  LAUNCH_EARLY(b, (product_rows<TILE, OUT, FORM>), grid, TILE::THREADS, TILE::SHARED, a);
}

template <product_form FORM, typename T, typename OUT>
static void launch_plain_tiles(cuda_backend *b, const rows_call<T, OUT> &a) {
  const product_form MANY = FORM == NORMED ? PLAIN : FORM;
  if (FORM == NORMED || a.rows <= 8)
    launch_tiles<plain_tile<T, 1>, FORM>(b, a);
  else if (a.rows <= 32)
    launch_tiles<plain_tile<T, 4>, MANY>(b, a);
  else
    launch_tiles<plain_tile<T, 8>, MANY>(b, a);
}

template <product_form FORM, typename OUT>
static void launch_product_rows(cuda_backend *b, const rows_call<float, OUT> &a) {
  launch_plain_tiles<FORM>(b, a);
}

/* Tensor cores or plain multiplications: that depends on k and on where the matrices begin, never
 * on the number of rows. With k a multiple of 8, every row begins at a multiple of 16 bytes if the
 * first does. */
template <product_form FORM, typename OUT>
static void launch_product_rows(cuda_backend *b, const rows_call<bf16, OUT> &a) {
  const product_form MANY = FORM == NORMED ? PLAIN : FORM;
  const uintptr_t bits = reinterpret_cast<uintptr_t>(a.in) | reinterpret_cast<uintptr_t>(a.weight);
  if (a.k % 8 != 0 || bits % 16 != 0)
    launch_plain_tiles<FORM>(b, a);
  else if (FORM == NORMED || a.rows <= 8)
    launch_tiles<tensor_tile<64, 8, 4, 1, 6>, FORM>(b, a);
  else if (a.rows <= 16)
    launch_tiles<tensor_tile<64, 16, 4, 1, 6>, MANY>(b, a);
  else if (a.rows <= 32)
    launch_tiles<tensor_tile<64, 32, 4, 1, 6>, MANY>(b, a);
  else if (a.rows <= 64)
    launch_tiles<tensor_tile<128, 64, 4, 2, 4>, MANY>(b, a);
  else
    launch_tiles<tensor_tile<128, 128, 2, 4, 3>, MANY>(b, a);
}

/* The length of a split of k, which follows from m and k alone; at least k where there is one
 * split. */
static size_t split_length(size_t m, size_t k) {
  size_t parts = 1;
  while (parts < MOST_SPLITS && (m + 63) / 64 * parts < BLOCKS && k / (2 * parts) >= LEAST_SPLIT)
    parts *= 2;
  return ((k + parts - 1) / parts + UNIT - 1) / UNIT * UNIT;
}

/* The product of in [rows, k] and p->n weights, of which `results` numbers a row are stored. */
template <typename T, typename OUT>
static rows_call<T, OUT> call_of(cuda_backend *b, const cuda_product *p, size_t results) {
  rows_call<T, OUT> a = {};
  const size_t split = split_length(p->n, p->k);
  a.in = static_cast<const T *>(p->a);
  a.weight = static_cast<const T *>(p->b);
  a.out = static_cast<OUT *>(p->c);
  a.rows = p->m;
  a.m = results;
  a.k = static_cast<unsigned>(p->k);
  a.split = static_cast<unsigned>(split);
  a.splits = static_cast<unsigned>((p->k + split - 1) / split);
  a.adds = p->adds;
  a.aligned = results % 8 == 0 && reinterpret_cast<uintptr_t>(p->c) % 16 == 0;
  a.arrived = b->arrived;
  a.early = b->early && b->recording;
  return a;
}

template <typename T, typename OUT> static void run(cuda_backend *b, const cuda_product *p) {
  launch_product_rows<PLAIN>(b, call_of<T, OUT>(b, p, p->n));
}

/* Whether there is something to do, and it can be done. */
static bool can_run(cuda_backend *b, const cuda_product *p) {
  if (cuda_stopped(b) || p->m == 0 || p->n == 0 || p->k == 0) return false;
  assert(!p->a_transposed && p->b_transposed);
  if (p->k > MOST_K) cuda_fail(b, GL_EINPUT, "product", "rows of more than 2^24 numbers");
  return p->k <= MOST_K;
}

void cuda_product_row_by_row(cuda_backend *b, const cuda_product *p) {
  if (!can_run(b, p)) return;
  if (p->in == NUMBER_F32)
    run<float, float>(b, p);
  else if (p->out == NUMBER_F32)
    run<bf16, float>(b, p);
  else
    run<bf16, bf16>(b, p);
}

/* --- products with what follows them --- */

template <typename T>
static void op_product_swiglu(backend *base, void *out, const void *in, const void *weight,
                              size_t rows, size_t width, size_t k) {
  cuda_operation op(base, "product_swiglu", rows, width, k);
  const number_type type = type_of<T>::value;
  const cuda_product p = {type, type, in, weight, out, rows, 2 * width, k, false, true, false};
  if (can_run(op.b, &p)) launch_product_rows<GATED>(op.b, call_of<T, T>(op.b, &p, width));
}

template <typename T>
static void op_product_norm(backend *base, void *normed, void *rstd, void *sum,
                            const void *residual, const void *norm_weight, double eps, void *branch,
                            const void *in, const void *weight, size_t rows, size_t m, size_t k) {
  cuda_operation op(base, "product_norm", rows, m, k);
  const number_type type = type_of<T>::value;
  const cuda_product p = {type, type, in, weight, branch, rows, m, k, false, true, false};
  if (!can_run(op.b, &p)) return;
  if (rows > MOST_NORMED) {
    run<T, T>(op.b, &p);
    base->ops->norm(base, normed, rstd, sum, residual, branch, norm_weight, rows, m, eps);
    return;
  }
  rows_call<T, T> a = call_of<T, T>(op.b, &p, m);
  a.norm.out = static_cast<T *>(normed);
  a.norm.sum = static_cast<T *>(sum);
  a.norm.rstd = static_cast<float *>(rstd);
  a.norm.in = static_cast<const T *>(residual);
  a.norm.weight = static_cast<const T *>(norm_weight);
  a.norm.eps = static_cast<float>(eps);
  a.norm.threads = vector16_threads(vectors16_of<T>(m));
  a.norm.wide = aligned16(m * sizeof(T), normed, sum, residual, branch, norm_weight);
  a.norm.arrived = op.b->arrived + MOST_TILES;
  launch_product_rows<NORMED>(op.b, a);
}

CUDA_TYPED_OPERATION(product_swiglu)
CUDA_TYPED_OPERATION(product_norm)

/* Scratch bytes of generation with any number of rows: MOST_BLOCKS of the largest tile where some
 * product of the model is split. */
size_t cuda_product_rows_scratch(const run_shape *s, number_type type) {
  const size_t heads = s->heads.q * s->heads.dim, side = type == NUMBER_BF16 ? 128 : 64;
  const bool any = split_length(heads + 2 * s->heads.kv * s->heads.dim, s->hidden) < s->hidden ||
                   split_length(s->hidden, heads) < heads ||
                   split_length(2 * s->intermediate, s->hidden) < s->hidden ||
                   split_length(s->hidden, s->intermediate) < s->intermediate ||
                   split_length(s->vocabulary, s->hidden) < s->hidden;
  return s->slots > 0 && any ? MOST_BLOCKS * side * side * sizeof(float) : 0;
}
