#include "llm/backend.h"

#ifndef GEPOLAB_WITH_CUDA
gl_status backend_cuda_new(backend **out, number_type type, gl_error *err) {
  (void)type;
  *out = NULL;
  return gl_fail(err, GL_EIO,
                 "no CUDA device: this gepolab was built without nvcc; say backend: cpu, or build "
                 "it where the CUDA Toolkit is installed");
}
#endif

gl_status backend_new(backend **out, backend_kind kind, number_type type, size_t threads,
                      gl_error *err) {
  *out = NULL;
  if (kind != BACKEND_CPU) {
    gl_error none = {.status = GL_OK};
    gl_status status = backend_cuda_new(out, type, kind == BACKEND_AUTO ? &none : err);
    /* Automatic: whatever keeps the GPU from being used, the CPU does what it can. */
    if (status == GL_OK || kind == BACKEND_CUDA) return status;
  }
  return backend_cpu_new(out, type, threads, err);
}

void backend_free(backend *b) {
  if (b != NULL) b->ops->free(b);
}
