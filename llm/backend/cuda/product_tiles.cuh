/* The tiles of the products that are the same row by row (product_rows.cu): the WEIGHTS x ROWS
 * results of out = in weight^T that one block computes, and how its threads sum them.
 *
 * All tiles of one number type sum a result alike, whatever their size: the terms of a split of k
 * in ascending order from zero, by fused multiply-additions (plain_tile) or by mma of 16 terms
 * (tensor_tile); then split after split. In `sum`, number i of thread t is the result whose row and
 * weight are at(t, i) of the tile. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_PRODUCT_TILES_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_PRODUCT_TILES_CUH

#include "llm/backend/cuda/mma.cuh"

/* What a block multiplies: rows [row0, row0 + ROWS) of in [rows, k] by rows [weight0, weight0 +
 * WEIGHTS) of weight [m, k], or, PAIRED, by rows [weight0, weight0 + WEIGHTS / 2) of each of the
 * two halves of weight [2 m, k], one after the other; over terms [first, end) of k. `split` is the
 * length of a split of k, a multiple of 64, and `first` a multiple of `split`. */
template <typename T> struct tile_work {
  const T *in, *weight;
  size_t rows, m, row0, weight0;
  unsigned k, first, end, split;
  bool
      early; /* what computes `in` may still run: weights are copied first, then it is waited for */
};

/* Where in its tile a result is. */
struct tile_place {
  unsigned row, weight;
};

/* What the sum over splits begins with: adding to it leaves every number as it is, zeros of either
 * sign included. */
static const float NEGATIVE_ZERO = -0.0f;

/* Adds the sums c of a split to those of the splits before it; c begins again at zero. */
template <int N> static __device__ __forceinline__ void add_split(float (&sum)[N], float (&c)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    sum[i] += c[i];
    c[i] = 0;
  }
}

/* --- tensor cores: bfloat16, k a multiple of 8, matrices and rows at multiples of 16 bytes --- */
/* The weights are mma's A, 16 at a time, and the rows its B, 8 at a time, so that few rows mean few
 * multiplications by padding. ACROSS warps divide the tile's weights and DOWN warps its rows.
 * STAGES steps of DEPTH terms have room in shared memory; all but one of them are being copied. */
template <unsigned WEIGHTS_, unsigned ROWS_, unsigned ACROSS, unsigned DOWN, unsigned STAGES>
struct tensor_tile {
  typedef bf16 type;
  static const unsigned WEIGHTS = WEIGHTS_, ROWS = ROWS_, THREADS = 32 * ACROSS * DOWN;
  static const unsigned DEPTH = 64, STAGE = (WEIGHTS + ROWS) * DEPTH;
  static const int A = WEIGHTS / ACROSS / 16, B = ROWS / DOWN / 8, N = A * B * 4;
  static const size_t SHARED = STAGES * STAGE * sizeof(bf16);

  static __device__ __forceinline__ tile_place at(unsigned thread, unsigned i) {
    const unsigned warp = thread / 32, lane = thread % 32, block = i / 4;
    return {warp / ACROSS * B * 8 + block % B * 8 + lane % 4 * 2 + i % 2,
            warp % ACROSS * A * 16 + block / B * 16 + lane / 4 + i % 4 / 2 * 8};
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

  /* c += the products of one stage. Every number of c gets its terms 16 at a time in ascending
   * order. */
  static __device__ __forceinline__ void multiply(float (&c)[N], bf16 *stage) {
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned weight = warp % ACROSS * A * 16, row = warp / ACROSS * B * 8;
    bf16 *const in = stage + WEIGHTS * DEPTH;
    uint32_t b[(B + 1) / 2][4];
#pragma unroll
    for (unsigned k = 0; k < DEPTH; k += 16) {
      if (B > 1) {
#pragma unroll
        for (int j = 0; j < B; j += 2)
          tile<DEPTH>::as_columns(b[j / 2], in, row + static_cast<unsigned>(j) * 8, k);
      } else if (k % 32 == 0) { /* eight rows: thirty-two of k at once */
        load_matrices(b[0], tile<DEPTH>::vector16(in, row + lane % 8, k + lane / 8 * 8));
      }
#pragma unroll
      for (int i = 0; i < A; ++i) {
        uint32_t a[4];
        tile<DEPTH>::as_a(a, stage, weight + static_cast<unsigned>(i) * 16, k);
#pragma unroll
        for (int j = 0; j < B; ++j) {
          const unsigned at = B > 1 ? static_cast<unsigned>(j) % 2 * 2 : k % 32 / 8;
          multiply_one(c, i * B + j, a, b[j / 2][at], b[j / 2][at + 1]);
        }
      }
    }
  }
  /* One mma into four numbers of c. */
  static __device__ __forceinline__ void
  multiply_one(float (&c)[N], int block, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    float d[4] = {c[block * 4], c[block * 4 + 1], c[block * 4 + 2], c[block * 4 + 3]};
    mma(d, a, b0, b1);
#pragma unroll
    for (int i = 0; i < 4; ++i) c[block * 4 + i] = d[i];
  }

  /* sum += all terms of w; the whole block calls it, and may use `shared` for something else after
   * it. */
  template <bool PAIRED>
  static __device__ __forceinline__ void sum_up(float (&sum)[N], float *shared,
                                                const tile_work<bf16> &w) {
    bf16 *const stages = reinterpret_cast<bf16 *>(shared);
    const unsigned steps = (w.end - w.first + DEPTH - 1) / DEPTH;
    const unsigned split_steps = w.split / DEPTH;
    float c[N] = {};
    const unsigned before = w.early ? STAGES - 1 : 0; /* steps whose weights are copied already */
    for (unsigned s = 0; s < before && s < steps; ++s)
      load_weights<PAIRED>(stages + s * STAGE, w, w.first + s * DEPTH);
    wait_for_kernels_before();
#pragma unroll
    for (unsigned s = 0; s < STAGES - 1; ++s) {
      if (s >= before && s < steps)
        load_weights<PAIRED>(stages + s * STAGE, w, w.first + s * DEPTH);
      if (s < steps) load_inputs(stages + s * STAGE, w, w.first + s * DEPTH);
      copy_commit();
    }
    for (unsigned step = 0, split_step = 0; step < steps; ++step) {
      const unsigned ahead = step + STAGES - 1;
      copy_wait<STAGES - 2>();
      __syncthreads(); /* this step is there, and all warps are done with the one before */
      if (ahead < steps) {
        load_weights<PAIRED>(stages + ahead % STAGES * STAGE, w, w.first + ahead * DEPTH);
        load_inputs(stages + ahead % STAGES * STAGE, w, w.first + ahead * DEPTH);
      }
      copy_commit();
      multiply(c, stages + step % STAGES * STAGE);
      if (++split_step < split_steps && step + 1 < steps) continue;
      add_split(sum, c);
      split_step = 0;
    }
    copy_wait<0>();
    __syncthreads();
  }
};

/* --- any number type, shape and address: each thread sums 4 weights by R rows --- */

template <typename T, unsigned R> struct plain_tile {
  typedef T type;
  static const unsigned WEIGHTS = 64, ROWS = 8 * R, THREADS = 128, DEPTH = 32, LD = DEPTH + 4;
  static const unsigned STAGE = (WEIGHTS + ROWS) * LD;
  static const int N = 4 * R;
  static const size_t SHARED = 2 * STAGE * sizeof(float);

  static __device__ __forceinline__ tile_place at(unsigned thread, unsigned i) {
    return {thread / 16 + i / 4 * 8, thread % 16 + i % 4 * 16};
  }

  /* Loads terms [k, k + DEPTH) of COUNT rows into registers: a thread gets term threadIdx.x % 32 of
   * every fourth row, zero beyond `rows` and `width`; put_rows stores them to shared memory. */
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
  /* The same for the tile's weights. */
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

  /* As tensor_tile's. The next step's numbers are loaded into registers while this step's are
   * multiplied. */
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
      add_split(sum, c);
      split_step = 0;
    }
    __syncthreads();
  }
};

#endif
