/* Small kernels with a race or another mistake and without, for the tests of what finds them. */
#include "cuda_runtime.h"

extern "C" {
#include "emulate_control.h"
}

enum { N = 64 };

/* out[i] = in[N - 1 - i] through shared memory. */
__global__ void reverse(float *out, const float *in, bool waits) {
  __shared__ float reversed[N];
  reversed[threadIdx.x] = in[threadIdx.x];
  if (waits) __syncthreads();
  out[blockIdx.x * N + threadIdx.x] = reversed[N - 1 - threadIdx.x];
}

/* The same within a warp, in dynamic shared memory. */
__global__ void reverse_warp(float *out, const float *in, bool waits) {
  float *reversed = reinterpret_cast<float *>(emulate_shared_memory());
  reversed[threadIdx.x] = in[threadIdx.x];
  if (waits) __syncwarp();
  out[threadIdx.x] = reversed[threadIdx.x ^ 31u];
}

/* An asynchronous copy that is read after the wait and a barrier, or after the wait alone. */
__global__ void copied(float *out, const float *in, bool waits) {
  float *there = reinterpret_cast<float *>(emulate_shared_memory());
  if (threadIdx.x < N / 4) emulate_copy_async(there + 4 * threadIdx.x, in + 4 * threadIdx.x, true);
  emulate_copy_commit();
  emulate_copy_wait(0);
  if (waits) __syncthreads();
  out[threadIdx.x] = there[N - 1 - threadIdx.x];
}

/* Every block adds to a number of its own, or all to the same number. */
__global__ void add_blocks(float *out, bool apart) {
  if (threadIdx.x == 0) out[apart ? blockIdx.x : 0] += 1;
}

/* All blocks add to the same number atomically, which is no race. */
__global__ void add_atomic(unsigned *out) {
  atomicAdd(out, 1u);
}

/* The block that arrives last reads what all have written; the others fence before they say that
 * they have arrived, or do not. */
__global__ void last_adds(float *out, const float *in, unsigned *arrived, bool fences) {
  __shared__ bool last;
  out[blockIdx.x * N + threadIdx.x] = in[threadIdx.x];
  if (fences) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(arrived, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  if (fences) __threadfence();
  float sum = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) sum += out[b * N + threadIdx.x];
  out[gridDim.x * N + threadIdx.x] = sum;
}

void emulate_race_case(enum race_case which, int clean) {
  float *in = nullptr, *out = nullptr;
  const bool ok = clean != 0;
  cudaMalloc(reinterpret_cast<void **>(&in), 4 * N * sizeof *in);
  cudaMalloc(reinterpret_cast<void **>(&out), 4 * N * sizeof *out);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMemsetAsync(in, 0, 4 * N * sizeof *in, stream);
  cudaMemsetAsync(out, 0, 4 * N * sizeof *out, stream);
  const size_t shared = N * sizeof(float);
  switch (which) {
  case RACE_SHARED:
    emulate_kernel("reverse", 3, N, 0, stream, [=]() { reverse(out, in, ok); });
    break;
  case RACE_WARP:
    emulate_kernel("reverse_warp", 1, N, shared, stream, [=]() { reverse_warp(out, in, ok); });
    break;
  case RACE_COPY:
    emulate_kernel("copied", 1, N, shared, stream, [=]() { copied(out, in, ok); });
    break;
  case RACE_BLOCKS:
    emulate_kernel("add_blocks", 4, 32, 0, stream, [=]() { add_blocks(out, ok); });
    break;
  case RACE_LAST:
    emulate_kernel("last_adds", 3, N, 0, stream,
                   [=]() { last_adds(out, in, reinterpret_cast<unsigned *>(in + N), ok); });
    break;
  case RACE_ATOMIC:
    emulate_kernel("add_atomic", 4, 32, 0, stream,
                   [=]() { add_atomic(reinterpret_cast<unsigned *>(out)); });
    break;
  }
  cudaFree(in);
  cudaFree(out);
  cudaStreamDestroy(stream);
}

/* --- rules of recordings and of early starts, and what accesses cost --- */

__global__ void write_ones(float *out) {
  out[threadIdx.x] = 1;
}

/* to = from, with the wait before what has to come after it, or at the mistaken place. */
__global__ void copy_early(float *to, const float *from, rule_case which, bool ok) {
  if (which == RULE_WRITES_LATE && !ok) to[threadIdx.x] = 0;
  const float early = which == RULE_READS_LATE && !ok ? from[threadIdx.x] : 0.0f;
  if (which != RULE_WAITS || ok || threadIdx.x != 3) emulate_wait_for_kernels();
  to[threadIdx.x] = early + from[threadIdx.x];
}

/* A warp reads every `stride`-th number of device memory, or of shared memory. */
__global__ void read_apart(float *to, const float *from, unsigned stride) {
  to[blockIdx.x * 32 + threadIdx.x] = from[threadIdx.x * stride];
}
__global__ void share_apart(float *to, unsigned stride) {
  float *shared = reinterpret_cast<float *>(emulate_shared_memory());
  shared[threadIdx.x * stride] = static_cast<float>(threadIdx.x);
  __syncthreads();
  to[threadIdx.x] = shared[(31 - threadIdx.x) * stride];
}

void emulate_rule_case(enum rule_case which, int clean) {
  enum { LANES = 32, STRIDE = 8 };
  float *in = nullptr, *out = nullptr;
  const bool ok = clean != 0;
  const unsigned stride = ok ? 1 : STRIDE;
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMalloc(reinterpret_cast<void **>(&in), LANES * STRIDE * sizeof *in);
  cudaMalloc(reinterpret_cast<void **>(&out), LANES * STRIDE * sizeof *out);
  cudaGraph_t recorded = nullptr;
  cudaGraphExec_t graph = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  if (which == RULE_SECTORS)
    emulate_kernel("read_apart", 3, LANES, 0, stream, [=]() { read_apart(out, in, stride); });
  else if (which == RULE_BANKS)
    emulate_kernel("share_apart", 1, LANES, LANES * STRIDE * sizeof *in, stream,
                   [=]() { share_apart(out, stride); });
  else {
    emulate_kernel("write_ones", 1, LANES, 0, ok || which != RULE_STREAM ? stream : nullptr,
                   [=]() { write_ones(in); });
    emulate_kernel(
        "copy_early", 1, LANES, 0, stream, [=]() { copy_early(out, in, which, ok); }, true);
  }
  cudaStreamEndCapture(stream, &recorded);
  cudaGraphInstantiate(&graph, recorded, 0);
  cudaGraphLaunch(graph, stream);
  cudaGraphExecDestroy(graph);
  cudaGraphDestroy(recorded);
  cudaFree(in);
  cudaFree(out);
  cudaStreamDestroy(stream);
}
