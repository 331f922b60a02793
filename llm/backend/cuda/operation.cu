/* Used by every operation of the CUDA backend: recording of errors, and the shared memory that a
 * kernel may have. */
#include "llm/backend/cuda/cuda.cuh"

#include <stdio.h>

#ifndef GEPOLAB_EMULATE
#include <nvtx3/nvToolsExt.h>
#endif

/* --- failures --- */

cuda_operation::cuda_operation(backend *base, const char *name, size_t n0, size_t n1, size_t n2)
    : b(cuda_of(base)) {
  if (!cuda_stopped(b)) {
    b->operation = name;
    b->shape[0] = n0;
    b->shape[1] = n1;
    b->shape[2] = n2;
  }
#ifndef GEPOLAB_EMULATE
  nvtxRangePushA(name);
#endif
}

cuda_operation::~cuda_operation() {
#ifndef GEPOLAB_EMULATE
  nvtxRangePop();
#endif
}

void cuda_fail(cuda_backend *b, gl_status status, const char *call, const char *reason) {
  if (cuda_stopped(b)) return;
  gl_fail(&b->failed, status, "CUDA: %s failed in %s [%zu, %zu, %zu]: %s", call,
          b->operation != NULL ? b->operation : "the start", b->shape[0], b->shape[1], b->shape[2],
          reason);
}

int cuda_failed(cuda_backend *b, cudaError_t e, const char *call) {
  if (e == cudaSuccess) return 0;
  cudaGetLastError();
  cuda_fail(b, e == cudaErrorMemoryAllocation ? GL_ENOMEM : GL_EIO, call, cudaGetErrorString(e));
  return 1;
}

/* --- shared memory of kernels --- */

/* Bytes of shared memory that a kernel may use without a call of cudaFuncSetAttribute. */
static const size_t WITHOUT_ASKING = 48 << 10;

/* The kernel's entry in the table, which may be unused; NULL if the table is full. */
static cuda_kernel *kernel_of(cuda_backend *b, const void *function) {
  const size_t n = sizeof b->kernels / sizeof *b->kernels;
  const size_t first = reinterpret_cast<uintptr_t>(function) / 16;
  for (size_t i = 0; i < n; ++i) {
    cuda_kernel *k = &b->kernels[(first + i) % n];
    if (k->function == function || k->function == NULL) return k;
  }
  return NULL;
}

bool cuda_allow_shared(cuda_backend *b, const void *function, const char *name, size_t shared) {
  cuda_kernel *k = kernel_of(b, function);
  if (k != NULL && k->function == function && shared <= k->allowed) return true;
  cudaFuncAttributes kernel;
  if (cuda_failed(b, cudaFuncGetAttributes(&kernel, function), name)) return false;
  const size_t own = kernel.sharedSizeBytes;
  if (own + shared > b->shared_bytes) {
    char reason[128];
    snprintf(reason, sizeof reason, "it needs %zu bytes of shared memory, a block can have %zu",
             own + shared, b->shared_bytes);
    cuda_fail(b, GL_EINPUT, name, reason);
    return false;
  }
  size_t allowed = WITHOUT_ASKING > own ? WITHOUT_ASKING - own : 0;
  if (shared > allowed) {
    allowed = b->shared_bytes - own;
    if (cuda_failed(b,
                    cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(allowed)),
                    name))
      return false;
  }
  if (k != NULL) *k = {function, allowed};
  return true;
}
