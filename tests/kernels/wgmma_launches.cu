/* Prints how llm/backend/cuda/attention_wgmma.cu launches its kernels, which the emulated device
 * does not run: the file's own code for the host, linked so that four functions of CUDA's runtime
 * are those below (--wrap), which note what they are asked for. Nothing is run. Lines as
 * emulate_launched() writes them (tests/emulate), with the kernel's name in the place of its
 * address. Built and read by tests/kernels/launches.sh. */
#include "llm/backend/cuda/device.cuh"

#include <map>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>

/* By function: its name, and the dynamic shared memory that it was allowed. */
static std::map<const void *, std::string> &names() {
  static std::map<const void *, std::string> all;
  return all;
}
static std::map<const void *, int> allowed;

extern "C" {
void __real___cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *,
                                   uint3 *, dim3 *, dim3 *, int *);
void __wrap___cudaRegisterFunction(void **module, const char *function, char *device,
                                   const char *name, int limit, uint3 *thread, uint3 *block,
                                   dim3 *of_block, dim3 *of_grid, int *warp) {
  names()[function] = name;
  __real___cudaRegisterFunction(module, function, device, name, limit, thread, block, of_block,
                                of_grid, warp);
}
/* Static shared memory is known to launches.sh. */
cudaError_t __wrap_cudaFuncGetAttributes(cudaFuncAttributes *out, const void *) {
  *out = {};
  return cudaSuccess;
}
cudaError_t __wrap_cudaFuncSetAttribute(const void *function, cudaFuncAttribute, int value) {
  allowed[function] = value;
  return cudaSuccess;
}
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *function, void **) {
  printf("%s\t%u\t%zu\t%d\t%u\t%u\t%u\n", names().at(function).c_str(),
         c->blockDim.x * c->blockDim.y * c->blockDim.z, c->dynamicSmemBytes, allowed[function],
         c->gridDim.x, c->gridDim.y, c->gridDim.z);
  return cudaSuccess;
}
gl_status gl_fail(gl_error *e, gl_status status, const char *format, ...) {
  va_list more;
  va_start(more, format);
  vfprintf(stderr, format, more);
  va_end(more);
  return e->status = status;
}
}

/* 512 sequences, the longest of 40,960 tokens: heads as in Qwen3 0.6B. */
int main() {
  cuda_backend *const b = static_cast<cuda_backend *>(calloc(1, sizeof *b));
  b->wgmma = true;
  b->shared_bytes = 227 << 10;
  for (const size_t dim : {64, 128})
    for (const bool backward : {false, true}) {
      attention_call a = {};
      a.backward = backward;
      a.rows.sequences = 512;
      a.rows.longest = 40960;
      a.shape = {16, 8, dim};
      if (!attention_wgmma(b, &a) || cuda_stopped(b)) return EXIT_FAILURE;
    }
  free(b);
}
