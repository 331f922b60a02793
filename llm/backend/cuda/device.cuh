/* Shared by the kernels: bfloat16, sums and maxima over warps and blocks, and the groups of lanes
 * that run the kernels shared with the CPU. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_DEVICE_CUH
#define GEPOLAB_LLM_BACKEND_CUDA_DEVICE_CUH

#include "llm/backend/cuda/cuda.cuh"

#include <math.h>

/* bfloat16: the upper half of a float. */
struct bf16 {
  uint16_t bits;
};

static __device__ __forceinline__ float to_float(float x) {
  return x;
}
static __device__ __forceinline__ float to_float(bf16 x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}

/* The nearest bfloat16, ties to even; NaN stays NaN. */
static __device__ __forceinline__ bf16 to_bf16(float x) {
  bf16 out;
#ifdef GEPOLAB_EMULATE
  const uint32_t u = __float_as_uint(x);
  out.bits = x != x ? static_cast<uint16_t>(0x7fff)
                    : static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
#else
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
#endif
  return out;
}

/* x as a T. */
template <typename T> __device__ __forceinline__ T number(float x);
template <> __device__ __forceinline__ float number<float>(float x) {
  return x;
}
template <> __device__ __forceinline__ bf16 number<bf16>(float x) {
  return to_bf16(x);
}

/* The number_type of T. */
template <typename T> struct type_of;
template <> struct type_of<float> { static const number_type value = NUMBER_F32; };
template <> struct type_of<bf16> { static const number_type value = NUMBER_BF16; };

/* Declares `name`, the block's dynamic shared memory as an array of T, at a multiple of 1024 bytes
 * (wgmma.cuh). */
#ifdef GEPOLAB_EMULATE
#define SHARED_MEMORY(T, name) T *name = reinterpret_cast<T *>(emulate_shared_memory())
#else
#define SHARED_MEMORY(T, name)                                                                     \
  extern __shared__ __align__(1024) unsigned char name##_bytes[];                                  \
  T *name = reinterpret_cast<T *>(name##_bytes)
#endif

static const unsigned WARP = 0xffffffffu; /* the mask of all lanes */

/* Sums and maxima over the 32 lanes of a warp, which must all call; all lanes get the same bits. */
template <typename T> static __device__ __forceinline__ T warp_sum(T x) {
  for (int with = 16; with > 0; with /= 2) x += __shfl_xor_sync(WARP, x, with);
  return x;
}
template <typename T> static __device__ __forceinline__ T warp_max(T x) {
  for (int with = 16; with > 0; with /= 2) {
    const T y = __shfl_xor_sync(WARP, x, with);
    x = y > x ? y : x;
  }
  return x;
}

/* Sum and maximum over all threads of a one-dimensional block of whole warps, which must all call.
 * The warps' values are combined in order. Both contain barriers. */
template <typename T> static __device__ __forceinline__ T block_sum(T x) {
  __shared__ T partial[32];
  x = warp_sum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  T sum = partial[0];
  for (unsigned w = 1; w < blockDim.x / 32; ++w) sum += partial[w];
  return sum;
}
template <typename T> static __device__ __forceinline__ T block_max(T x) {
  __shared__ T partial[32];
  x = warp_max(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  T top = partial[0];
  for (unsigned w = 1; w < blockDim.x / 32; ++w) top = partial[w] > top ? partial[w] : top;
  return top;
}

/* True in the last of n blocks that call this with the same counter. That block sees everything
 * that the others wrote before their calls. All threads of a block must call it and get the same
 * result. *arrived is zero before the first call and after the last. */
static __device__ __forceinline__ bool is_last_of(unsigned n, unsigned *arrived) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(arrived, 1u) == n - 1;
    if (last) *arrived = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

/* Lets the blocks of the next kernel start if there is room; then waits until earlier kernels have
 * finished and their results can be read. For kernels launched with LAUNCH_EARLY. After a plain
 * launch it only lets the next kernel start; below compute capability 9.0 it does nothing. */
static __device__ __forceinline__ void wait_for_kernels_before() {
#ifdef GEPOLAB_EMULATE
  emulate_wait_for_kernels();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* --- the lanes of the kernels shared with the CPU (kernels.h): a warp, or a whole block --- */

struct kernel_group {
  unsigned lane, lanes; /* 32 lanes: one warp; more: the whole block */
};
static __device__ __forceinline__ kernel_group this_warp() {
  return {threadIdx.x % 32, 32};
}
static __device__ __forceinline__ kernel_group this_block() {
  return {threadIdx.x, blockDim.x};
}
template <typename T> static __device__ __forceinline__ T group_sum(kernel_group g, T x) {
  return g.lanes == 32 ? warp_sum(x) : block_sum(x);
}
template <typename T> static __device__ __forceinline__ T group_max(kernel_group g, T x) {
  return g.lanes == 32 ? warp_max(x) : block_max(x);
}

#define LANE(g) ((g).lane)
#define LANES(g) ((g).lanes)
#define LANE_SUM(g, x) group_sum(g, x)
#define LANE_MAX(g, x) group_max(g, x)

/* --- attention --- */
/* Shared by the implementations of attention: attention.cu, in float arithmetic for any head size;
 * attention_mma.cu, on tensor cores; decode.cu, over a cache. */

/* The arguments of attention (which writes out and lse_to) or attention_backward (which writes dqk
 * and dqkv); operations.h has the shapes. */
struct attention_call {
  bool backward;
  void *out;
  float *lse_to;
  const void *qk, *qkv;
  void *dqk, *dqkv;
  const void *dout;
  const float *lse;
  float *row_dot; /* [rows, q]: row sum of dO*O, in scratch memory */
  packed_rows rows;
  head_shape shape;
  float scale;
};

/* row_dot [n] = the row sum of dO*O over each head's dim numbers, n = rows * q (attention.cu). */
template <typename T>
void attention_row_dot(cuda_backend *b, float *row_dot, const void *dout, const void *out, size_t n,
                       size_t dim);
/* Launches the call's kernels (attention.cu). */
template <typename T> void attention_run(cuda_backend *b, const attention_call *a);
/* Launches attention on tensor cores and returns true. Returns false without doing anything if
 * there is no such kernel for the head size or the alignment (attention_mma.cu). */
bool attention_tensor(cuda_backend *b, const attention_call *a);
/* Called by attention_tensor when it accepts the head size and the alignment. If the device has
 * products of warpgroups (wgmma), launches the kernels of attention_wgmma.cu and returns true; else
 * returns false. */
bool attention_wgmma(cuda_backend *b, const attention_call *a);

static __host__ __device__ inline size_t cuda_qk_width(head_shape s) {
  return (s.q + s.kv) * s.dim;
}
static __host__ __device__ inline size_t cuda_qkv_width(head_shape s) {
  return (s.q + 2 * s.kv) * s.dim;
}
static inline float cuda_attention_scale(head_shape s) {
  return static_cast<float>(1 / sqrt(static_cast<double>(s.dim)));
}

#endif
