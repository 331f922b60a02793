/* Tensor cores for bfloat16, and asynchronous copies into shared memory: one PTX instruction each
 * (PTX ISA 9.0: mma.m16n8k16, ldmatrix, cp.async). Under GEPOLAB_EMULATE functions of tests/emulate
 * replace them.
 *
 * A warp multiplies A [16, 16] by B [16, 8] and adds to C [16, 8]. With g = lane / 4 and t = lane %
 * 4 a lane holds these numbers, two bfloat16 per register with the first in the lower half:
 *
 *   - a[0], a[1]: columns 2t, 2t + 1 of rows g and g + 8; a[2], a[3]: columns 2t + 8, 2t + 9
 *   - b[0], b[1]: rows 2t, 2t + 1 and rows 2t + 8, 2t + 9 of column g
 *   - c[0..1], c[2..3]: columns 2t, 2t + 1 of rows g and g + 8, as floats
 *
 * All lanes of a warp must call these functions together. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_MMA_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_MMA_CUH

#include "llm/backend/cuda/device.cuh"

/* Two floats as bfloat16, the first in the lower half. */
static __device__ __forceinline__ uint32_t pack_halves(float low, float high) {
#ifdef GEPOLAB_EMULATE
  return static_cast<uint32_t>(to_bf16(high).bits) << 16 | to_bf16(low).bits;
#else
  uint32_t out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
#endif
}

/* 2^x within 2 ulp; 0 where the result would be subnormal. */
static __device__ __forceinline__ float power_of_2(float x) {
#ifdef GEPOLAB_EMULATE
  return exp2f(x);
#else
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
#endif
}

/* c += a b. */
static __device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                           uint32_t b1) {
#ifdef GEPOLAB_EMULATE
  const uint32_t b[2] = {b0, b1};
  emulate_mma(c, a, b);
#else
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

#ifndef GEPOLAB_EMULATE
static __device__ __forceinline__ uint32_t shared_address(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
#endif

/* Loads four 8 x 8 matrices from shared memory. Lane l passes the address of row l % 8 of matrix l
 * / 8 (16 bytes). It receives in r[i] columns 2t, 2t + 1 of row g of matrix i; if transposed, rows
 * 2t, 2t + 1 of column g. */
static __device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const bf16 *row) {
#ifdef GEPOLAB_EMULATE
  emulate_load_matrices(r, row, false);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
#endif
}
static __device__ __forceinline__ void load_matrices_transposed(uint32_t (&r)[4], const bf16 *row) {
#ifdef GEPOLAB_EMULATE
  emulate_load_matrices(r, row, true);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
#endif
}

/* Starts a copy of 16 bytes from device memory to shared memory. If `there` is false, zeros are
 * written and `from` is not read. This thread may read the bytes after copy_wait, the block's other
 * threads after a subsequent barrier. */
static __device__ __forceinline__ void copy_async(void *to, const void *from, bool there) {
#ifdef GEPOLAB_EMULATE
  emulate_copy_async(to, from, there);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(there ? 16 : 0)
               : "memory");
#endif
}
/* Combines the copies that this thread has started since the last group into a group. */
static __device__ __forceinline__ void copy_commit() {
#ifdef GEPOLAB_EMULATE
  emulate_copy_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* Waits until all but the latest N groups of this thread are complete. */
template <int N> static __device__ __forceinline__ void copy_wait() {
#ifdef GEPOLAB_EMULATE
  emulate_copy_wait(N);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

/* --- blocks that see each other's shared memory --- */
/* A cluster of blocks runs at the same time (compute capability 9.0, LAUNCH_CLUSTER). */

/* A barrier of all threads of the cluster in two steps. What a thread wrote to shared or device
 * memory before cluster_arrive() can be read by all after cluster_wait(). */
static __device__ __forceinline__ void cluster_arrive() {
#if !defined(GEPOLAB_EMULATE) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
static __device__ __forceinline__ void cluster_wait() {
#if !defined(GEPOLAB_EMULATE) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
/* Stores four floats in the shared memory of block `rank` of the cluster, at the offset that p has
 * in this block's. */
static __device__ __forceinline__ void store_to_block(float *p, unsigned rank, float4 x) {
#if !defined(GEPOLAB_EMULATE) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t at;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(at)
               : "r"(shared_address(p)), "r"(rank));
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(x.x), "f"(x.y),
               "f"(x.z), "f"(x.w)
               : "memory");
#else
  (void)rank;
  *reinterpret_cast<float4 *>(p) = x;
#endif
}

/* --- the layout of C --- */

/* Sum over the four lanes that hold parts of the same row of C; below, maximum. */
static __device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(WARP, x, 1);
  return x + __shfl_xor_sync(WARP, x, 2);
}
static __device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(WARP, x, 1));
  return fmaxf(x, __shfl_xor_sync(WARP, x, 2));
}

/* Rows [first, first + 16) of `to`, up to `end`, = x * factor. A lane holds numbers of rows g and g
 * + 8, whose factors are factor[0] and factor[1]. */
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
          pack_halves(x[d][2 * half] * factor[half], x[d][2 * half + 1] * factor[half]);
  }
}

/* --- tiles in shared memory --- */
/* Tiles are rows of WIDTH bfloat16. The vectors of 16 bytes are permuted so that a column's vectors
 * of eight adjacent rows are in different banks (swizzling). */

template <int WIDTH> struct tile {
  static const int VECTORS = WIDTH / 8;
  /* Address of the vector that begins with number `column`, a multiple of 8, of a row. */
  static __device__ __forceinline__ bf16 *vector16(bf16 *t, unsigned row, unsigned column) {
    return t + row * WIDTH + (((column / 8) ^ (row & 7)) * 8);
  }
  /* Starts copies of rows [first, first + N) of a matrix with row distance ld; zeros from row `end`
   * on. All THREADS of the block call it; the caller commits, waits and synchronises. */
  template <int N, int THREADS>
  static __device__ __forceinline__ void load(bf16 *t, const bf16 *from, size_t ld, size_t first,
                                              size_t end) {
#pragma unroll
    for (unsigned i = 0; i < N * VECTORS / THREADS; ++i) {
      const unsigned at = i * THREADS + threadIdx.x, row = at / VECTORS, column = at % VECTORS * 8;
      const bool there = first + row < end;
      copy_async(vector16(t, row, column), from + (there ? first + row : first) * ld + column,
                 there);
    }
  }
  /* Rows [first, first + 16), columns [k, k + 16) as the A of mma(). */
  static __device__ __forceinline__ void as_a(uint32_t (&a)[4], bf16 *t, unsigned first,
                                              unsigned k) {
    const unsigned lane = threadIdx.x % 32;
    load_matrices(a, vector16(t, first + lane % 16, k + lane / 16 * 8));
  }
  /* The transpose of rows [first, first + 16), columns [k, k + 16) as the Bs of two mma(): b[0],
   * b[1] are of rows [first, first + 8), b[2], b[3] of the next eight. */
  static __device__ __forceinline__ void as_columns(uint32_t (&b)[4], bf16 *t, unsigned first,
                                                    unsigned k) {
    const unsigned lane = threadIdx.x % 32;
    load_matrices(b, vector16(t, first + lane % 8 + lane / 16 * 8, k + lane / 8 % 2 * 8));
  }
  /* Rows [k, k + 16), columns [first, first + 16) as the Bs of two mma(), of eight columns each. */
  static __device__ __forceinline__ void as_rows(uint32_t (&b)[4], bf16 *t, unsigned k,
                                                 unsigned first) {
    const unsigned lane = threadIdx.x % 32;
    load_matrices_transposed(b, vector16(t, k + lane % 16, first + lane / 16 * 8));
  }
};

#endif
