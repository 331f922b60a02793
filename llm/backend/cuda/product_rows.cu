/* Row-wise products, in which a row's bits do not depend on the number of rows or on its position
 * among them: the products of generation, and its logits.
 *
 * out [rows, m] = in [rows, k] weight [m, k]^T. A library would choose its order of summation by
 * the number of rows. Here it follows only from m, k and the number type: k is divided into splits
 * (split-K), each split is summed in ascending order from zero, and the splits' sums are added in
 * order. The number of rows determines only how results are divided among blocks: into tiles of 8
 * to 256 rows, and whether one block sums the splits of a tile one after the other, or each split
 * has its own block. In the latter case the blocks of a tile form a cluster (compute capability
 * 9.0): each block receives the sums of some of the rows from the others through shared memory,
 * adds and stores them. On older devices the sums go through scratch memory, and the last block to
 * finish adds them; which one that is depends on scheduling, the order of additions does not. The
 * rows of `in` become columns of the tensor cores' products (wgmma on 9.0, else mma), which compute
 * all columns in the same way: on an H100 the results of all tiles had equal bits.
 *
 * Performance. A product of few rows takes the time of a launch (1 us in a recorded step), of
 * reading its weights, 2 m k bytes in bfloat16, and of adding splits and storing. Measured on an
 * H100 80GB HBM3 (3.0 TB/s for copies), one product after the other in a recorded step, with
 * weights that are in no cache; in us, without / with clusters and wgmma. "Bytes" is the time of
 * the weights' bytes at 3.0 TB/s:
 *
 *   m x k             bytes   1 row          64 rows        128 rows       256 rows
 *   4096 x 1024        2.8    6.3 / 6.2      9.9 / 6.9     14.0 / 7.5     22.3 / 8.8
 *   1024 x 2048        1.4    5.6 / 5.3     10.1 / 6.1     13.5 / 7.1     14.6 / 9.2
 *   2 x 3072 x 1024    4.2    8.8 / 7.8     13.0 / 8.6     22.6 / 9.8     19.3 / 13.4
 *   1024 x 3072        2.1    6.2 / 6.5     11.4 / 7.5     15.2 / 8.7     16.4 / 11.2
 *   151936 x 1024     104     109 / 106     134 / 123      182 / 141      342 / 218
 *
 * Of 7.1 us of the first product at 64 rows in two splits, all data had arrived 3.6 us after its
 * blocks started; exchanging, adding and storing sums was most of the rest. So k is split only
 * until there are 64 (tiles of 64 weights) x splits, or 4 splits, or until a split would be shorter
 * than 256 terms. Tiles have as many steps of 64 terms in flight as shared memory allows for one or
 * two blocks per multiprocessor. From 64 to 256 rows blocks read weights and rows at up to 6 TB/s
 * from the second-level cache, which is their limit; from 2,048 rows on, 128 x 256 results per
 * block reach 470 to 510 TFLOP/s (one split), and 128 x 128 reach 360 to 380 (several).
 *
 * The gated unit after a product is computed by the product's kernel (product_form): a tile has the
 * weights of some gates and of the `up` numbers that they multiply. The bits equal those of
 * separate kernels. A norm has a kernel of its own, because it needs all tiles of a row. A version
 * in which the last block to store its tile computed the norm took 2.2 us for one row and 9.8 us
 * for eight.
 *
 * In a recorded step of few rows (starts_early) a block starts to copy its first weights while the
 * previous kernel still runs; GEPOLAB_CUDA_PDL=0 turns this off.
 *
 * float32, and matrices that are not aligned, use plain multiplications with numbers loaded one
 * step ahead: close to the bandwidth limit for few rows, and limited by arithmetic from about 30
 * rows on. */
#include "llm/backend/cuda/vector16.cuh"
#include "llm/backend/cuda/wgmma.cuh"

#include <assert.h>

/* --- tiles --- */

/* The tiles of the row-wise products: the WEIGHTS x ROWS results of out = in weight^T that one
 * block computes, and how its threads sum them.
 *
 * All tiles of one number type sum a result in the same order, whatever their size: the terms of a
 * split of k in ascending order from zero, by fused multiply-additions (plain_tile) or by mma of 16
 * terms (tensor_tile); then split after split. Number i of thread t in `sum` is the result whose
 * row and weight are at(t, i) of the tile. */

/* The work of a block: it multiplies rows [row0, row0 + ROWS) of in [rows, k] times rows [weight0,
 * weight0 + WEIGHTS) of weight [m, k]; or, if PAIRED, times rows [weight0, weight0 + WEIGHTS / 2)
 * of each of the two halves of weight [2 m, k]; over terms [first, end) of k. `split` is the length
 * of a split of k, a multiple of 64, and `first` a multiple of `split`. */
template <typename T> struct tile_work {
  const T *in, *weight;
  size_t rows, m, row0, weight0;
  unsigned k, first, end, split;
  bool
      early; /* the kernel that computes `in` may still run: copy weights first, then wait for it */
};

/* The position of a result in its tile. */
struct tile_place {
  unsigned row, weight;
};

/* The initial value of the sum over splits: adding to it changes no number, not even the sign of
 * zero. */
static const float NEGATIVE_ZERO = -0.0f;

/* Adds the sums c of a split to those of the splits before it. */
template <int N>
static __device__ __forceinline__ void add_split_sums(float (&sum)[N], const float (&c)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) sum[i] += c[i];
}

/* --- tensor cores: bfloat16, k a multiple of 8, matrices and rows at multiples of 16 bytes --- */
/* Weights are factor A and rows factor B of the products, because B may have as few as eight
 * columns, so that few rows need little padding. Four warps compute 64 weights and ROWS / DOWN
 * rows, by wgmma where the device has it, else by mma. Shared memory has room for STAGES steps of
 * DEPTH terms. A block of a tile that is not SERIAL sums one split only. */
template <unsigned WEIGHTS_, unsigned ROWS_, unsigned DOWN, unsigned STAGES, bool SERIAL_ = true>
struct tensor_tile {
  typedef bf16 type;
  static const bool SERIAL = SERIAL_;
  static const unsigned WEIGHTS = WEIGHTS_, ROWS = ROWS_, ACROSS = WEIGHTS / 64;
  static const unsigned THREADS = 128 * ACROSS * DOWN, MINE = ROWS / DOWN;
  static const unsigned DEPTH = 64, STAGE = (WEIGHTS + ROWS) * DEPTH;
  static const int N = MINE / 2;
  /* Steps between two barriers: two where many are in flight. (With 6 or 8 in flight two take more
   * time than one.) */
  static const unsigned TOGETHER = STAGES >= 12 && STAGES % 2 == 0 ? 2 : 1,
                        ROUNDS = STAGES / TOGETHER;
  static const size_t SHARED = STAGES * STAGE * sizeof(bf16);
  static const bool CLUSTERS = SHARED >= ROWS * (2 * WEIGHTS + 4) * sizeof(float);
  static_assert(WEIGHTS % 64 == 0 && MINE % 8 == 0 && STAGES >= 3, "what the threads divide");

  static __device__ __forceinline__ tile_place at(unsigned thread, unsigned i) {
    const unsigned group = thread / 128, warp = thread / 32 % 4, lane = thread % 32;
    return {group / ACROSS * MINE + i / 4 * 8 + lane % 4 * 2 + i % 2,
            group % ACROSS * 64 + warp * 16 + lane / 4 + i % 4 / 2 * 8};
  }

  /* Starts copies of terms [k, k + DEPTH) of COUNT rows of `width` numbers; zeros beyond `width`
   * and from row `rows` on. Offsets within a tile fit into 32 bits, which saves registers. */
  template <unsigned COUNT>
  static __device__ __forceinline__ void load_rows(bf16 *to, const bf16 *from, unsigned rows,
                                                   unsigned width, unsigned k) {
#pragma unroll
    for (unsigned i = 0; i < (COUNT * 8 + THREADS - 1) / THREADS; ++i) {
      const unsigned vector = i * THREADS + threadIdx.x, row = vector / 8, column = vector % 8 * 8;
      if (COUNT * 8 % THREADS != 0 && vector >= COUNT * 8) break;
      const bool there = row < rows && k + column < width;
      copy_async(tile<DEPTH>::vector16(to, row, column),
                 from + (there ? row * width + k + column : 0), there);
    }
  }
  template <bool PAIRED>
  static __device__ __forceinline__ void load_weights(bf16 *stage, const tile_work<bf16> &w,
                                                      unsigned k) {
    const unsigned PART = PAIRED ? WEIGHTS / 2 : WEIGHTS;
    const size_t left = w.m - w.weight0;
    const unsigned weights = left < PART ? static_cast<unsigned>(left) : PART;
    load_rows<PART>(stage, w.weight + w.weight0 * w.k, weights, w.k, k);
    if (PAIRED)
      load_rows<PART>(stage + PART * DEPTH, w.weight + (w.m + w.weight0) * w.k, weights, w.k, k);
  }
  static __device__ __forceinline__ void load_inputs(bf16 *stage, const tile_work<bf16> &w,
                                                     unsigned k) {
    const size_t rows = w.rows - w.row0;
    load_rows<ROWS>(stage + WEIGHTS * DEPTH, w.in + w.row0 * w.k,
                    rows < ROWS ? static_cast<unsigned>(rows) : ROWS, w.k, k);
  }

  /* Starts c = the products of one stage, or += if `adds`. Every number of c receives its terms 16
   * at a time in ascending order. finish_but<n>() waits for all products but those of the last n
   * calls. */
#ifdef HAS_WGMMA
  static __device__ __forceinline__ void multiply(float (&c)[N], bf16 *stage, bool adds) {
    const unsigned group = threadIdx.x / 128;
    uint64_t a = rows_at(stage + group % ACROSS * 64 * DEPTH);
    uint64_t b = rows_at(stage + (WEIGHTS + group / ACROSS * MINE) * DEPTH);
    wgmma_begin();
#pragma unroll
    for (unsigned k = 0; k < DEPTH; k += 16) {
      if constexpr (MINE == 256) {
        wgmma<128, 0>(c, a, b, adds || k > 0);
        wgmma<128, 64>(c, a, b + 128 * DEPTH * sizeof(bf16) / 16, adds || k > 0);
      } else {
        wgmma<MINE, 0>(c, a, b, adds || k > 0);
      }
      a += 2;
      b += 2;
    }
    wgmma_commit();
  }
  template <int LATEST> static __device__ __forceinline__ void finish_but(float (&c)[N]) {
    hold(c);
    products_wait<LATEST>();
    hold(c);
  }
  static __device__ __forceinline__ void publish() {
    wgmma_publish();
  }
#else
  static __device__ __forceinline__ void multiply(float (&c)[N], bf16 *stage, bool adds) {
    const unsigned group = threadIdx.x / 128, lane = threadIdx.x % 32;
    const unsigned weight = group % ACROSS * 64 + threadIdx.x / 32 % 4 * 16;
    const unsigned row = group / ACROSS * MINE;
    bf16 *const in = stage + WEIGHTS * DEPTH;
    uint32_t b[4] = {};
#pragma unroll
    for (int i = 0; i < N; ++i) c[i] = adds ? c[i] : 0;
#pragma unroll
    for (unsigned k = 0; k < DEPTH; k += 16) {
      uint32_t a[4];
      tile<DEPTH>::as_a(a, stage, weight, k);
      if (MINE == 8) { /* eight rows: loads B for 32 terms at once */
        if (k % 32 == 0)
          load_matrices(b, tile<DEPTH>::vector16(in, row + lane % 8, k + lane / 8 * 8));
        multiply_one(c, 0, a, b[k % 32 / 8], b[k % 32 / 8 + 1]);
      } else {
#pragma unroll
        for (unsigned j = 0; j < MINE / 8; j += 2) {
          tile<DEPTH>::as_columns(b, in, row + j * 8, k);
          multiply_one(c, j, a, b[0], b[1]);
          multiply_one(c, j + 1, a, b[2], b[3]);
        }
      }
    }
  }
  /* One mma into four numbers of c. */
  static __device__ __forceinline__ void
  multiply_one(float (&c)[N], unsigned block, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    float d[4] = {c[block * 4], c[block * 4 + 1], c[block * 4 + 2], c[block * 4 + 3]};
    mma(d, a, b0, b1);
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) c[block * 4 + i] = d[i];
  }
  template <int LATEST> static __device__ __forceinline__ void finish_but(float (&)[N]) {}
  static __device__ __forceinline__ void publish() {}
#endif

  /* Starts the copies of a step's weights and rows. */
  template <bool PAIRED>
  static __device__ __forceinline__ void load_step(bf16 *stages, const tile_work<bf16> &w,
                                                   unsigned step, bool weights) {
    bf16 *const stage = stages + step % STAGES * STAGE;
    if (weights) load_weights<PAIRED>(stage, w, w.first + step * DEPTH);
    load_inputs(stage, w, w.first + step * DEPTH);
  }

  /* sum += all terms of w. The whole block calls it, and may reuse `shared` afterwards. */
  template <bool PAIRED>
  static __device__ __forceinline__ void sum_up(float (&sum)[N], float *shared,
                                                const tile_work<bf16> &w) {
    bf16 *const stages = reinterpret_cast<bf16 *>(shared);
    const unsigned steps = (w.end - w.first + DEPTH - 1) / DEPTH;
    const unsigned split_steps = w.split / DEPTH;
    const unsigned before = w.early ? STAGES : 0; /* steps whose weights are copied first */
    float c[N];
    for (unsigned s = 0; s < before && s < steps; ++s)
      load_weights<PAIRED>(stages + s * STAGE, w, w.first + s * DEPTH);
    wait_for_kernels_before();
#pragma unroll
    for (unsigned s = 0; s < STAGES; ++s) {
      if (s < steps) load_step<PAIRED>(stages, w, s, s >= before);
      if (s % TOGETHER == TOGETHER - 1) copy_commit();
    }
    unsigned split_step = 0;
    for (unsigned round = 0; round * TOGETHER < steps; ++round) {
      if (round == 0)
        copy_wait<ROUNDS - 1>();
      else if (round == 1)
        copy_wait<ROUNDS - 2>();
      else
        copy_wait<ROUNDS - 3>();
      publish();
      __syncthreads(); /* this round's data is complete, and all warps have finished the products of
                          round - 2, whose stages are overwritten below */
#pragma unroll
      for (unsigned j = 0; j < TOGETHER; ++j) {
        const unsigned step = round * TOGETHER + j;
        if (j > 0 && step >= steps) break;
        if (SERIAL && split_step == split_steps) {
          finish_but<0>(c);
          add_split_sums(sum, c);
          split_step = 0;
        }
        multiply(c, stages + step % STAGES * STAGE, split_step > 0);
        ++split_step;
      }
      if (round >= 2) {
#pragma unroll
        for (unsigned j = 0; j < TOGETHER; ++j) {
          const unsigned step = (round - 2 + ROUNDS) * TOGETHER + j;
          if (step < steps) load_step<PAIRED>(stages, w, step, true);
        }
        copy_commit();
      }
      finish_but<TOGETHER>(c);
    }
    finish_but<0>(c);
    add_split_sums(sum, c);
    copy_wait<0>();
    __syncthreads();
  }
};

/* --- any number type, shape and address: each thread sums 4 weights by R rows --- */

template <typename T, unsigned R> struct plain_tile {
  typedef T type;
  static const bool SERIAL = true, CLUSTERS = false;
  static const unsigned WEIGHTS = 64, ROWS = 8 * R, THREADS = 128, DEPTH = 32, LD = DEPTH + 4;
  static const unsigned STAGE = (WEIGHTS + ROWS) * LD;
  static const int N = 4 * R;
  static const size_t SHARED = 2 * STAGE * sizeof(float);

  static __device__ __forceinline__ tile_place at(unsigned thread, unsigned i) {
    return {thread / 16 + i / 4 * 8, thread % 16 + i % 4 * 16};
  }

  /* Loads terms [k, k + DEPTH) of COUNT rows into registers: a thread loads term threadIdx.x % 32
   * of every fourth row, zero beyond `rows` and `width`; put_rows stores them to shared memory. */
  template <unsigned COUNT>
  static __device__ __forceinline__ void fetch_rows(T (&to)[COUNT / 4], const T *from, size_t first,
                                                    size_t rows, size_t width, size_t k) {
    const size_t column = k + threadIdx.x % 32;
#pragma unroll
    for (unsigned i = 0; i < COUNT / 4; ++i) {
      const size_t row = first + threadIdx.x / 32 + i * 4;
      to[i] = row < rows && column < width ? from[row * width + column] : number<T>(0);
    }
  }
  /* fetch_rows() for the tile's weights. */
  template <bool PAIRED>
  static __device__ __forceinline__ void fetch_weights(T (&to)[WEIGHTS / 4], const tile_work<T> &w,
                                                       size_t k) {
    const size_t column = k + threadIdx.x % 32;
#pragma unroll
    for (unsigned i = 0; i < WEIGHTS / 4; ++i) {
      const bool second = PAIRED && i >= WEIGHTS / 8;
      const size_t row = w.weight0 + threadIdx.x / 32 + (second ? i - WEIGHTS / 8 : i) * 4;
      const T *const from = w.weight + (second ? w.m : 0) * w.k;
      to[i] = row < w.m && column < w.k ? from[row * w.k + column] : number<T>(0);
    }
  }
  template <unsigned COUNT>
  static __device__ __forceinline__ void put_rows(float *to, const T (&from)[COUNT / 4]) {
#pragma unroll
    for (unsigned i = 0; i < COUNT / 4; ++i)
      to[(threadIdx.x / 32 + i * 4) * LD + threadIdx.x % 32] = to_float(from[i]);
  }

  /* c += the products of the DEPTH terms in a stage. */
  static __device__ __forceinline__ void multiply(float (&c)[N], const float *stage) {
    const float *const weight = stage + threadIdx.x % 16 * LD;
    const float *const in = stage + (WEIGHTS + threadIdx.x / 16) * LD;
#pragma unroll 2
    for (unsigned k = 0; k < DEPTH; k += 4) {
      float4 w[4];
#pragma unroll
      for (unsigned j = 0; j < 4; ++j)
        w[j] = *reinterpret_cast<const float4 *>(weight + j * 16 * LD + k);
#pragma unroll
      for (unsigned r = 0; r < R; ++r) {
        const float4 x = *reinterpret_cast<const float4 *>(in + r * 8 * LD + k);
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) {
          float s = c[r * 4 + j];
          s = fmaf(x.x, w[j].x, s);
          s = fmaf(x.y, w[j].y, s);
          s = fmaf(x.z, w[j].z, s);
          c[r * 4 + j] = fmaf(x.w, w[j].w, s);
        }
      }
    }
  }

  /* sum_up() as in tensor_tile. The next step's numbers are loaded into registers while this step's
   * are multiplied. */
  template <bool PAIRED>
  static __device__ __forceinline__ void sum_up(float (&sum)[N], float *shared,
                                                const tile_work<T> &w) {
    const unsigned steps = (w.end - w.first + DEPTH - 1) / DEPTH;
    const unsigned split_steps = w.split / DEPTH;
    float c[N] = {};
    T weight[WEIGHTS / 4], in[ROWS / 4];
    fetch_weights<PAIRED>(weight, w, w.first);
    wait_for_kernels_before();
    fetch_rows<ROWS>(in, w.in, w.row0, w.rows, w.k, w.first);
    for (unsigned step = 0, split_step = 0; step < steps; ++step) {
      float *const stage = shared + step % 2 * STAGE;
      put_rows<WEIGHTS>(stage, weight);
      put_rows<ROWS>(stage + WEIGHTS * LD, in);
      __syncthreads();
      if (step + 1 < steps) {
        const unsigned k = w.first + (step + 1) * DEPTH;
        fetch_weights<PAIRED>(weight, w, k);
        fetch_rows<ROWS>(in, w.in, w.row0, w.rows, w.k, k);
      }
      multiply(c, stage);
      if (++split_step < split_steps && step + 1 < steps) continue;
      add_split_sums(sum, c);
#pragma unroll
      for (int i = 0; i < N; ++i) c[i] = 0;
      split_step = 0;
    }
    __syncthreads();
  }
};

/* --- products from tiles --- */

/* How k is split for number type T. BLOCKS: splits are added until there are this many blocks
 * (tiles of 64 weights x splits). MOST: maximum number of splits. LEAST_SPLIT: minimum terms of a
 * split. UNIT: a split's length is a multiple of it. */
template <typename T> struct splitting { static const size_t BLOCKS = 256, MOST = 8; };
template <> struct splitting<bf16> { static const size_t BLOCKS = 64, MOST = 4; };
static const size_t LEAST_SPLIT = 256, UNIT = 64;

/* Offsets within a tile of up to 256 rows must fit into 32 bits. */
static const size_t MOST_K = static_cast<size_t>(1) << 24;

/* Splits have separate blocks only if a product has at most this many tiles
 * (MOST_TILES_OF_MANY_ROWS if its rows need several tiles) and blocks. This bounds the counters and
 * the scratch memory. */
static const size_t MOST_TILES = PRODUCT_ARRIVALS, MOST_BLOCKS = 512, MOST_TILES_OF_MANY_ROWS = 64;

/* What a product's kernel does with the results. PLAIN: stores them. GATED: stores the gated unit
 * silu(gate) * up of each pair of results. */
enum product_form { PLAIN, GATED };

/* One product; OUT is float or T. GATED: m is the number of results per row, half the number of
 * weights. */
template <typename T, typename OUT> struct rows_call {
  const T *in, *weight;
  OUT *out;
  size_t rows, m;
  unsigned k, split, splits; /* terms of a split, number of splits */
  bool early; /* may start before the previous kernel, which writes no weights, has finished */
  bool adds, aligned; /* aligned: every eight results of a row begin at a multiple of 16 bytes */
  bool apart;         /* a tile's splits have separate blocks */
  float *partial; /* sums of these blocks, [tiles, splits, results of a tile]; NULL if they form a
                     cluster and send each other their sums, or if not apart */
  unsigned
      *arrived; /* [tiles]: number of blocks whose sums are in partial; zero between products */
};

/* --- kernel --- */

/* Stores this block's sums of its split in `partial`. In the last block of a tile: adds the sums of
 * all splits in order into `sum` and returns true; false in the others. The whole block calls it.
 */
template <typename TILE>
static __device__ __forceinline__ bool combine_splits(float (&sum)[TILE::N], float *partial,
                                                      unsigned *arrived, unsigned splits) {
  const int VECTORS = TILE::N / 4;
  [[maybe_unused]] const int UNROLLED = VECTORS > 4 ? 1 : 4;
  const size_t at = blockIdx.y * gridDim.x + blockIdx.x, size = TILE::THREADS * VECTORS;
  float4 *const kept = reinterpret_cast<float4 *>(partial) + at * splits * size + threadIdx.x;
#pragma unroll
  for (int i = 0; i < VECTORS; ++i)
    kept[blockIdx.z * size + static_cast<unsigned>(i) * TILE::THREADS] =
        make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
  if (!is_last_of(splits, arrived + at)) return false;
#pragma unroll
  for (int i = 0; i < TILE::N; ++i) sum[i] = NEGATIVE_ZERO;
#pragma unroll UNROLLED
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

/* Exchanges sums among the `peers` blocks of a tile's cluster, each of which has the sums of one
 * split in `mine` [ROWS, WEIGHTS + 4]. Block z receives ROWS / peers rows, from z * ROWS / peers
 * on, of every split in `all` [ROWS, WEIGHTS], split after split. Every block must have called
 * cluster_arrive() after its products, which used the memory of `all`. */
template <typename TILE>
static __device__ __forceinline__ void exchange_splits(float *all, const float *mine,
                                                       unsigned peers) {
  const unsigned VECTORS = TILE::WEIGHTS / 4, part = TILE::ROWS / peers;
  cluster_wait();
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < TILE::ROWS * VECTORS; i += TILE::THREADS) {
    const unsigned row = i / VECTORS, at = i % VECTORS * 4, to = row * peers / TILE::ROWS;
    store_to_block(all + (blockIdx.z * part + row - to * part) * TILE::WEIGHTS + at, to,
                   *reinterpret_cast<const float4 *>(mine + row * (TILE::WEIGHTS + 4) + at));
  }
  cluster_arrive();
  cluster_wait();
}

/* x [8] = the sums over `peers` splits, in order, of eight adjacent results; `from`: the sums of
 * the first split; those of the next splits follow at distance `step`. */
static __device__ __forceinline__ void load_sums(float (&x)[8], const float *from, unsigned peers,
                                                 unsigned step) {
#pragma unroll
  for (int j = 0; j < 8; ++j) x[j] = NEGATIVE_ZERO;
#pragma unroll 4
  for (unsigned z = 0; z < peers; ++z)
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
      const float4 y = *reinterpret_cast<const float4 *>(from + z * step + j);
      x[j] += y.x;
      x[j + 1] += y.y;
      x[j + 2] += y.z;
      x[j + 3] += y.w;
    }
}

/* Stores (or adds) the tile at this row and weight. The results are exchanged through shared
 * memory, so that adjacent threads write adjacent numbers. If a cluster of `peers` blocks computes
 * the tile, each stores some of the rows. GATED: the first half of the tile's weights gives gates,
 * the second half the `up` numbers that they multiply. */
template <typename TILE, typename OUT, product_form FORM>
static __device__ __forceinline__ void store_tile(const rows_call<typename TILE::type, OUT> &a,
                                                  const float (&sum)[TILE::N], float *shared,
                                                  size_t row0, size_t weight0, unsigned peers) {
  typedef typename TILE::type T;
  const unsigned HALF = TILE::WEIGHTS / 2, VECTORS = (FORM == GATED ? HALF : TILE::WEIGHTS) / 8;
  unsigned ld = TILE::WEIGHTS + 4, part = TILE::ROWS;
  const float *from = shared;
  if (peers > 1) cluster_arrive();
#pragma unroll
  for (int i = 0; i < TILE::N; ++i) {
    const tile_place p = TILE::at(threadIdx.x, static_cast<unsigned>(i));
    shared[p.row * ld + p.weight] = sum[i];
  }
  __syncthreads();
  if constexpr (TILE::CLUSTERS) {
    if (peers > 1) {
      float *const all = shared + TILE::ROWS * (TILE::WEIGHTS + 4);
      exchange_splits<TILE>(all, shared, peers);
      from = all;
      ld = TILE::WEIGHTS;
      part /= peers;
      row0 += blockIdx.z * part;
    }
  }
  for (unsigned i = threadIdx.x; i < part * VECTORS; i += TILE::THREADS) {
    const size_t row = row0 + i / VECTORS, weight = weight0 + i % VECTORS * 8;
    if (row >= a.rows || weight >= a.m) continue;
    const float *const sums = from + i / VECTORS * ld + i % VECTORS * 8;
    float x[8];
    load_sums(x, sums, peers, part * ld);
    if (FORM == GATED) { /* both rounded as if they had been stored */
      float units[8];
      load_sums(units, sums + HALF, peers, part * ld);
#pragma unroll
      for (unsigned j = 0; j < 8; ++j)
        x[j] = rows_of<T>::swiglu_number(to_float(number<T>(x[j])), to_float(number<T>(units[j])));
    }
    OUT *const to = a.out + row * a.m + weight;
    if (a.aligned) {
      eight<OUT> y = {};
      if (a.adds) y = *reinterpret_cast<const eight<OUT> *>(to);
#pragma unroll
      for (int j = 0; j < 8; ++j) y.x[j] = number<OUT>(a.adds ? to_float(y.x[j]) + x[j] : x[j]);
      *reinterpret_cast<eight<OUT> *>(to) = y;
    } else {
#pragma unroll
      for (size_t j = 0; j < 8; ++j)
        if (weight + j < a.m) to[j] = number<OUT>(a.adds ? to_float(to[j]) + x[j] : x[j]);
    }
  }
}

/* Block (x, y, z): tile x of rows, tile y of weights, split z (all splits if not apart). */
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
  w.end = a.apart && w.first + a.split < a.k ? w.first + a.split : a.k;
  w.split = a.split;
  w.early = a.early;
  float sum[TILE::N];
#pragma unroll
  for (int i = 0; i < TILE::N; ++i) sum[i] = NEGATIVE_ZERO;
  TILE::template sum_up<FORM == GATED>(sum, shared, w);
  if (a.partial != NULL && !combine_splits<TILE>(sum, a.partial, a.arrived, a.splits)) return;
  const unsigned peers = a.apart && a.partial == NULL ? a.splits : 1;
  store_tile<TILE, OUT, FORM>(a, sum, shared, w.row0, w.weight0, peers);
}

/* --- launches --- */

/* Launches a product with this kind of tile. If there are few tiles, each split of a tile gets its
 * own block. Without clusters their sums go through scratch memory. */
template <typename TILE, product_form FORM, typename OUT>
static void launch_tiles(cuda_backend *b, rows_call<typename TILE::type, OUT> a) {
  static_assert(TILE::SHARED >= TILE::ROWS * (TILE::WEIGHTS + 4) * sizeof(float), "room to store");
  dim3 grid(blocks_of(a.rows, TILE::ROWS),
            blocks_of(a.m, FORM == GATED ? TILE::WEIGHTS / 2 : TILE::WEIGHTS));
  const size_t tiles = static_cast<size_t>(grid.x) * grid.y;
  const bool cluster = TILE::CLUSTERS && b->clusters;
  a.apart = a.splits > 1 &&
            (!TILE::SERIAL || (tiles * a.splits <= MOST_BLOCKS &&
                               tiles <= (grid.x == 1 ? MOST_TILES : MOST_TILES_OF_MANY_ROWS)));
  if (a.apart) grid.z = a.splits;
  assert(!cluster || !a.apart || TILE::ROWS % a.splits == 0); /* 2 or 4 splits */
  if (a.apart && !cluster) {
    a.partial = static_cast<float *>(
        cuda_scratch(b, tiles * a.splits * TILE::ROWS * TILE::WEIGHTS * sizeof(float)));
    if (a.partial == NULL) return;
  }
  LAUNCH_CLUSTER(b, (product_rows<TILE, OUT, FORM>), a.rows, cluster ? grid.z : 1, grid,
                 TILE::THREADS, TILE::SHARED, a);
}

template <product_form FORM, typename T, typename OUT>
static void launch_plain_tiles(cuda_backend *b, const rows_call<T, OUT> &a) {
  if (a.rows <= 8)
    launch_tiles<plain_tile<T, 1>, FORM>(b, a);
  else if (a.rows <= 32)
    launch_tiles<plain_tile<T, 4>, FORM>(b, a);
  else
    launch_tiles<plain_tile<T, 8>, FORM>(b, a);
}

template <product_form FORM, typename OUT>
static void launch_product_rows(cuda_backend *b, const rows_call<float, OUT> &a) {
  launch_plain_tiles<FORM>(b, a);
}

/* True if the device has the shared memory of this tile. Every device has 99 KiB for a block. */
template <typename TILE> static bool has_room(const cuda_backend *b) {
  return TILE::SHARED + 2048 <= b->shared_bytes;
}

/* Launches the first kind of tile if the device has room for it, else the second. */
template <typename TILE, typename SMALLER, product_form FORM, typename OUT>
static void launch_either(cuda_backend *b, const rows_call<bf16, OUT> &a) {
  static_assert(SMALLER::SHARED + 2048 <= 99 << 10, "as much as a block has on every device");
  if (has_room<TILE>(b))
    launch_tiles<TILE, FORM>(b, a);
  else
    launch_tiles<SMALLER, FORM>(b, a);
}

/* For very many results. The tile `largest` reads the least memory, but has no shared memory in
 * which a cluster could exchange the sums of several splits (CLUSTERS). */
template <product_form FORM, typename OUT>
static void launch_large_tiles(cuda_backend *b, const rows_call<bf16, OUT> &a) {
  typedef tensor_tile<128, 256, 2, 4, false> largest;
  typedef tensor_tile<128, 128, 1, 6, false> large;
  const size_t blocks = blocks_of(a.rows, 128) * blocks_of(a.m, 128) * a.splits;
  if (a.splits == 1 && a.rows <= 128 && has_room<large>(b))
    launch_tiles<large, FORM>(b, a);
  else if (a.splits == 1 && has_room<largest>(b))
    launch_tiles<largest, FORM>(b, a);
  else if (b->clusters && blocks <= static_cast<size_t>(b->multiprocessors))
    launch_tiles<tensor_tile<64, 128, 1, 3, false>, FORM>(b, a);
  else
    launch_either<tensor_tile<128, 128, 1, 4>, tensor_tile<128, 128, 1, 3>, FORM>(b, a);
}

/* From this number of tiles of 128 weights on, 33 to 64 rows are read once for 128 weights, not for
 * 64: with fewer, multiprocessors would have no work. */
static const size_t FEWEST_WIDE_TILES = 96;

/* For 33 rows and more. If k is not split there are few blocks, so narrow tiles are used where
 * wider ones would leave multiprocessors without work. */
template <product_form FORM, typename OUT>
static void launch_many_rows(cuda_backend *b, const rows_call<bf16, OUT> &a) {
  typedef tensor_tile<64, 128, 2, 8, false>
      alone; /* shared memory for one block per multiprocessor */
  typedef tensor_tile<128, 64, 1, 8, false> wide;
  const size_t weights = FORM == GATED ? 2 * a.m : a.m,
               most = static_cast<size_t>(b->multiprocessors);
  const size_t blocks = static_cast<size_t>(blocks_of(a.rows, 128)) * blocks_of(weights, 64);
  const bool whole = a.splits == 1, few = weights <= 64 * MOST_TILES;
  if (a.rows <= 64 && whole && few && weights >= 128 * FEWEST_WIDE_TILES && has_room<wide>(b))
    launch_tiles<wide, FORM>(b, a);
  else if (a.rows <= 64 && whole && few)
    launch_tiles<tensor_tile<64, 32, 1, 8>, FORM>(b, a);
  else if (a.rows <= 64)
    launch_tiles<tensor_tile<64, 64, 1, 6>, FORM>(b, a);
  else if (!few || (a.rows > 256 && !(whole && blocks <= 2 * most)))
    launch_large_tiles<FORM>(b, a);
  else if (whole && 2 * blocks <= most)
    launch_tiles<tensor_tile<64, 64, 2, 6>, FORM>(b, a);
  else if ((a.rows <= 128 || (whole && blocks <= most)) && has_room<alone>(b))
    launch_tiles<alone, FORM>(b, a);
  else
    launch_tiles<tensor_tile<64, 128, 1, 4, false>, FORM>(b, a);
}

/* Uses tensor cores or plain multiplications, depending on k and the alignment of the matrices,
 * never on the number of rows. With k a multiple of 8, every row begins at a multiple of 16 bytes
 * if the first does. */
template <product_form FORM, typename OUT>
static void launch_product_rows(cuda_backend *b, const rows_call<bf16, OUT> &a) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(a.in) | reinterpret_cast<uintptr_t>(a.weight);
  if (a.k % 8 != 0 || bits % 16 != 0)
    launch_plain_tiles<FORM>(b, a);
  else if (a.rows <= 8)
    launch_either<tensor_tile<64, 8, 1, 12>, tensor_tile<64, 8, 1, 8>, FORM>(b, a);
  else if (a.rows <= 16)
    launch_tiles<tensor_tile<64, 16, 1, 8>, FORM>(b, a);
  else if (a.rows <= 32)
    launch_tiles<tensor_tile<64, 32, 1, 8>, FORM>(b, a);
  else
    launch_many_rows<FORM>(b, a);
}

/* The length of a split of k, which follows from m and k; at least k if there is one split. */
template <typename T> static size_t split_length(size_t m, size_t k) {
  size_t parts = 1;
  while (parts < splitting<T>::MOST && (m + 63) / 64 * parts < splitting<T>::BLOCKS &&
         k / (2 * parts) >= LEAST_SPLIT)
    parts *= 2;
  return ((k + parts - 1) / parts + UNIT - 1) / UNIT * UNIT;
}

/* Describes the product of in [rows, k] and p->n weights; `results` numbers per row are stored. */
template <typename T, typename OUT>
static rows_call<T, OUT> call_of(cuda_backend *b, const cuda_product *p, size_t results) {
  rows_call<T, OUT> a = {};
  const size_t split = split_length<T>(p->n, p->k);
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
  a.early = starts_early(b, p->m);
  return a;
}

template <typename T, typename OUT> static void run(cuda_backend *b, const cuda_product *p) {
  launch_product_rows<PLAIN>(b, call_of<T, OUT>(b, p, p->n));
}

/* True if there is work and it can be done. */
static bool can_run(cuda_backend *b, const cuda_product *p) {
  if (cuda_stopped(b) || p->m == 0 || p->n == 0 || p->k == 0) return false;
  assert(!p->a_transposed && p->b_transposed);
  if (p->k > MOST_K) cuda_fail(b, GL_EINPUT, "product", "rows of more than 2^24 numbers");
  return p->k <= MOST_K;
}

/* The product with b transposed and a not. A row's bits of c do not depend on m or on the row's
 * position (product_rows.cu). float32 is never rounded to TF32. */
static void cuda_product_row_by_row(cuda_backend *b, const cuda_product *p) {
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

CUDA_TYPED_OPERATION(product_swiglu)

/* True if k is split in some product of generation. */
template <typename T> static bool any_split(const run_shape *s) {
  const size_t heads = s->heads.q * s->heads.dim;
  return split_length<T>(heads + 2 * s->heads.kv * s->heads.dim, s->hidden) < s->hidden ||
         split_length<T>(s->hidden, heads) < heads ||
         split_length<T>(2 * s->intermediate, s->hidden) < s->hidden ||
         split_length<T>(s->hidden, s->intermediate) < s->intermediate ||
         split_length<T>(s->vocabulary, s->hidden) < s->hidden;
}

/* Scratch bytes of generation for any number of rows: MOST_BLOCKS of the largest tile if some
 * product of the model is split. */
size_t cuda_product_rows_scratch(const run_shape *s, number_type type) {
  const bool halves = type == NUMBER_BF16;
  const size_t side = halves ? 128 : 64;
  const bool any = halves ? any_split<bf16>(s) : any_split<float>(s);
  return s->slots > 0 && any ? MOST_BLOCKS * side * side * sizeof(float) : 0;
}

/* --- the operations --- */

/* Row-wise products are computed here, all others in blas.cu. */

template <typename T>
static void op_product(backend *base, void *out, const void *in, const void *weight, size_t rows,
                       size_t m, size_t k, int flags) {
  cuda_operation op(base, "product", rows, m, k);
  const number_type type = type_of<T>::value;
  const bool adds = (flags & PRODUCT_ADD) != 0;
  const cuda_product p = {type, type, in, weight, out, rows, m, k, false, true, adds};
  if (flags & PRODUCT_ROW_BY_ROW)
    cuda_product_row_by_row(op.b, &p);
  else
    cuda_blas_product(op.b, &p);
}

template <typename T>
static void op_logits(backend *base, void *logits, const void *in, const void *weight, size_t rows,
                      size_t vocabulary, size_t k) {
  cuda_operation op(base, "logits", rows, vocabulary, k);
  const cuda_product p = {type_of<T>::value, NUMBER_F32, in,    weight, logits, rows,
                          vocabulary,        k,          false, true,   false};
  cuda_product_row_by_row(op.b, &p);
}

template <typename T>
static void op_product_backward_input(backend *base, void *din, const void *dout,
                                      const void *weight, size_t rows, size_t m, size_t k,
                                      int flags) {
  cuda_operation op(base, "product_backward_input", rows, m, k);
  const number_type type = type_of<T>::value;
  const bool adds = (flags & PRODUCT_ADD) != 0;
  const cuda_product p = {type, type, dout, weight, din, rows, k, m, false, false, adds};
  cuda_blas_product(op.b, &p);
}

template <typename T>
static void op_product_backward_weight(backend *base, void *dweight, const void *dout,
                                       const void *in, size_t rows, size_t m, size_t k) {
  cuda_operation op(base, "product_backward_weight", rows, m, k);
  const cuda_product p = {
      type_of<T>::value, NUMBER_F32, dout, in, dweight, m, k, rows, true, false, true};
  cuda_blas_product(op.b, &p);
}

CUDA_TYPED_OPERATION(product)
CUDA_TYPED_OPERATION(product_backward_input)
CUDA_TYPED_OPERATION(product_backward_weight)
CUDA_TYPED_OPERATION(logits)
