/* CUDA on the host, for tests: enough of the runtime and of the device language that g++ compiles
 * llm/backend/cuda/NAME.cu and `make check` runs the kernels without a GPU. blas.cpp stands in for
 * cuBLASLt.
 *
 * The threads of a block are fibers of one host thread (emulate.cpp). A fiber runs until it reaches
 * a barrier or an exchange between the lanes of its warp, and goes on when all its partners have
 * arrived; so barriers, shuffles and tensor-core instructions do what they do on a device, lane by
 * lane. Blocks run one after the other. Three things make mistakes visible. Memory of the device is
 * filled with a pattern that reads as not-a-number, so that reading what was never written shows,
 * and AddressSanitizer sees accesses beyond an allocation. Every stream runs threads and blocks in
 * an order of its own (the first ascending, the second descending, then shuffled), so that a
 * missing barrier, or a result that depends on the order of blocks, shows as a difference between
 * two backends. `make racecheck` watches every load and store for races (race.cpp), and
 * UndefinedBehaviorSanitizer sees loads of 16 bytes from addresses that are no multiple of 16. What
 * is copied from the device into pinned memory of the host arrives there only when the stream, or
 * an event behind the copy, is waited for; copies within the host are made at once.
 *
 * Rules are kept: a recording ends with an error after a call that waits, frees memory, allocates
 * in the order of the stream or uses another stream; nobody uses the legacy default stream; a
 * thread of a kernel that may start early waits for the kernels before. counts.cpp counts launches,
 * and in `make racecheck` what they do to memory.
 *
 * What this cannot show: the PTX instructions of llm/backend/cuda/mma.cuh themselves, registers and
 * occupancy of a real device, launches that a real driver refuses for other reasons than their
 * sizes, anything about speed, and what cuBLASLt itself does. */
#ifndef GEPOLAB_TESTS_EMULATE_CUDA_RUNTIME_H
#define GEPOLAB_TESTS_EMULATE_CUDA_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "emulate_control.h"
#include "race.h"

#define __global__ static
#define __device__
#define __host__
/* No load or store may hide in a call's result, which -fsanitize=thread does not see. */
#ifdef GEPOLAB_EMULATE_RACES
#define __forceinline__ inline __attribute__((always_inline))
#else
#define __forceinline__ inline
#endif
#define __noinline__
#define __shared__ static
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

/* --- the device language --- */

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
static __forceinline__ uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
/* Nothing to do but for race.cpp: blocks run one after the other and see what earlier ones wrote.
 */
static inline void __threadfence() {
  race_fence();
}
template <typename T> static __forceinline__ T __ldcg(const T *p) {
  return *p;
}
static __forceinline__ float2 make_float2(float x, float y) {
  return {x, y};
}
static __forceinline__ float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

/* Where the running thread is: threadIdx, blockIdx, blockDim and gridDim. */
struct emulate_place {
  dim3 thread, block, block_size, grid;
};
extern __thread emulate_place *emulate_here; /* of the running fiber; NULL outside kernels */
#define threadIdx (emulate_here->thread)
#define blockIdx (emulate_here->block)
#define blockDim (emulate_here->block_size)
#define gridDim (emulate_here->grid)
#define warpSize 32

/* Dynamic shared memory of the running block. */
unsigned char *emulate_shared_memory();
/* Waits for all threads of the block that have not ended. */
void __syncthreads();
/* An exchange between the lanes of a warp: hands over this lane's `size` (up to 64) bytes and
 * returns the values of all 32 lanes, 64 bytes apart, once every lane of mask has called it with
 * the same mask and the same `kind`. Valid until the lane's second exchange after it. */
const unsigned char *emulate_exchange(unsigned mask, const char *kind, const void *value,
                                      size_t size);

/* The running thread's number in its block; whether memory is its own stack; whether it is the
 * emulation's. */
unsigned emulate_thread_number();
bool emulate_on_stack(const void *p);
bool emulate_is_own(const void *p);

/* The running thread waits for the kernels before; whether it has to, and has not yet. A thread of
 * a kernel that may start early has to before it ends. */
void emulate_wait_for_kernels();
bool emulate_waits_still();

/* What llm/backend/cuda/mma.cuh calls under GEPOLAB_EMULATE, as it describes each (tensor.cpp). */
void emulate_mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void emulate_load_matrices(uint32_t (&r)[4], const void *row, bool transposed);
void emulate_copy_async(void *to, const void *from, bool there);
void emulate_copy_commit();
void emulate_copy_wait(unsigned latest);
void emulate_copies_forget(unsigned thread);

template <typename T> static inline T emulate_lane(const unsigned char *values, unsigned lane) {
  T out;
  memcpy(&out, values + 64 * (size_t)(lane & 31u), sizeof out);
  return out;
}
static inline unsigned emulate_lane_number() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31u;
}

template <typename T> static inline T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  const unsigned char *all = emulate_exchange(mask, "shfl", &v, sizeof v);
  unsigned w = (unsigned)width, base = emulate_lane_number() & ~(w - 1);
  return emulate_lane<T>(all, base + ((unsigned)from & (w - 1)));
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32) {
  const unsigned char *all = emulate_exchange(mask, "shfl_xor", &v, sizeof v);
  unsigned w = (unsigned)width, lane = emulate_lane_number(), from = lane ^ (unsigned)with;
  return from < (lane & ~(w - 1)) + w ? emulate_lane<T>(all, from) : v;
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const unsigned char *all = emulate_exchange(mask, "shfl_down", &v, sizeof v);
  unsigned w = (unsigned)width, lane = emulate_lane_number();
  return lane + by < (lane & ~(w - 1)) + w ? emulate_lane<T>(all, lane + by) : v;
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const unsigned char *all = emulate_exchange(mask, "shfl_up", &v, sizeof v);
  unsigned w = (unsigned)width, lane = emulate_lane_number();
  return (lane & (w - 1)) >= by ? emulate_lane<T>(all, lane - by) : v;
}
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const unsigned char *all = emulate_exchange(mask, "ballot", &predicate, sizeof predicate);
  unsigned out = 0;
  for (unsigned l = 0; l < 32; ++l)
    if (mask >> l & 1u && emulate_lane<int>(all, l)) out |= 1u << l;
  return out;
}
static inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu) {
  int nothing = 0;
  emulate_exchange(mask, "syncwarp", &nothing, sizeof nothing);
}
/* Fibers are never interrupted, so plain additions are atomic. */
template <typename T, typename U> RACE_UNSEEN static inline T atomicAdd(T *to, U by) {
  race_atomic(to);
  T old = *to;
  *to = (T)(old + (T)by);
  return old;
}

template <typename T, typename U> RACE_UNSEEN static inline T atomicMin(T *to, U with) {
  race_atomic(to);
  T old = *to;
  if ((T)with < old) *to = (T)with;
  return old;
}

static inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
static inline float __fmul_rn(float a, float b) { /* never part of a fused operation */
  return a * b;
}
static inline unsigned __float_as_uint(float x) {
  unsigned u;
  memcpy(&u, &x, sizeof u);
  return u;
}
static inline float __uint_as_float(unsigned u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}
static inline float rsqrtf(float x) {
  return 1.0f / sqrtf(x);
}
static inline double rsqrt(double x) {
  return 1.0 / sqrt(x);
}
template <typename T> static __forceinline__ T __ldg(const T *p) {
  return *p;
}
template <typename T> static inline T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T> static inline T max(T a, T b) {
  return a < b ? b : a;
}

/* --- launches --- */

/* A kernel with its arguments; copied while a graph is recorded. */
struct emulate_call {
  void (*run)(const void *closure);
  void (*drop)(void *closure);
  void *(*copy)(const void *closure);
  const void *closure;
};
/* The launch of one; early: as programmatic launch allows it. */
struct emulate_launch {
  const char *name;
  dim3 grid, block;
  size_t shared;
  uint64_t order;
  bool early;
};
void emulate_launch_kernel(const emulate_launch &l, const emulate_call &call);
/* Whether kernels run some of their blocks on zeros (emulate_control.h). */
bool emulate_has_shapes_only();

/* A lock around whatever touches the devices: from emulate_enter to emulate_leave other threads
 * wait. */
void emulate_enter();
void emulate_leave();
/* While a graph is recorded, keeps the call for it and returns true; else returns false. */
bool emulate_record(const emulate_launch &l, const emulate_call &call);
/* The allocation of the device that p is in, or NULL. */
const void *emulate_allocation(const void *p);
/* In which order (a number) the threads and blocks of a stream run; aborts if another device is
 * current, or while a graph of another stream is recorded. */
uint64_t emulate_order_of(struct emulate_stream *s);

template <typename F>
static inline void emulate_kernel(const char *name, dim3 grid, dim3 block, size_t shared,
                                  struct emulate_stream *stream, const F &f, bool early = false) {
  emulate_call call = {
      [](const void *c) { (*(const F *)c)(); },
      [](void *c) { delete (F *)c; },
      [](const void *c) -> void * { return new F(*(const F *)c); },
      &f,
  };
  emulate_launch_kernel({name, grid, block, shared, emulate_order_of(stream), early}, call);
}

/* --- the runtime --- */

typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorInsufficientDriver = 35
} cudaError_t;
typedef struct emulate_stream *cudaStream_t;
typedef struct emulate_event *cudaEvent_t;
typedef struct emulate_graph *cudaGraph_t, *cudaGraphExec_t;
typedef enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
} cudaMemcpyKind;
typedef struct emulate_pool *cudaMemPool_t;
typedef enum cudaMemPoolAttr {
  cudaMemPoolAttrReleaseThreshold = 4,
  cudaMemPoolAttrReservedMemCurrent = 5,
  cudaMemPoolAttrUsedMemCurrent = 7
} cudaMemPoolAttr;
typedef enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 } cudaStreamCaptureMode;
typedef enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8
} cudaFuncAttribute;
struct cudaFuncAttributes {
  size_t sharedSizeBytes;
};
typedef enum cudaDeviceAttr { cudaDevAttrMemoryPoolsSupported = 115 } cudaDeviceAttr;
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlockOptin;
  int multiProcessorCount, major, minor;
};
enum { cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2 };

const char *cudaGetErrorString(cudaError_t e);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device);
/* cudaErrorInvalidValue where a launch of the kernel with so much dynamic shared memory would be
 * refused: with its static shared memory more than 48 KiB, and more than it was allowed. */
cudaError_t emulate_shared_refused(const void *function, size_t shared);
/* Appends the launch to the file that GEPOLAB_EMULATED_LAUNCHES in the environment names, if it is
 * larger than those of the kernel before: address in the program, threads, dynamic shared memory
 * and what was allowed of it, grid. For tests/kernels/launches.sh. */
void emulate_launched(const void *function, dim3 grid, dim3 block, size_t shared);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int device);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *function);
cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute what, int value);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamQuery(cudaStream_t s);
cudaError_t cudaMalloc(void **p, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t s);
cudaError_t cudaFreeAsync(void *p, cudaStream_t s);
cudaError_t cudaMallocHost(void **p, size_t bytes);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr what, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr what, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t s);
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t *e);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t g);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g);

#endif
