/* Makes backends and all-reduces by kind. If gepolab was built without nvcc, this file also defines
 * the functions of llm/backend/cuda/open_cuda.h, which report that there is no CUDA device. */
#include "llm/backend/open/open.h"

#include "core/base/thread_pool.h"
#include "llm/backend/cpu/cpu.h"
#include "llm/backend/cuda/open_cuda.h"

#include <assert.h>

#ifndef GEPOLAB_WITH_CUDA
size_t backend_cuda_devices(void) {
  return 0;
}

gl_status backend_cuda_new(backend **out, number_type type, backend_place place, gl_error *err) {
  (void)type;
  (void)place;
  *out = NULL;
  return gl_fail(err, GL_EIO,
                 "no CUDA device: this gepolab was built without nvcc; say backend: cpu, or build "
                 "it where the CUDA Toolkit is installed");
}

gl_status collective_nccl_new(collective **out, backend *const *member, size_t n, gl_error *err) {
  (void)member;
  (void)n;
  (void)err;
  *out = NULL;
  return GL_OK;
}
#endif

size_t backend_devices(void) {
  return backend_cuda_devices();
}

const char *backend_cpu_form(void) {
  gl_error none = {.status = GL_OK};
  cpu_form form;
  return cpu_form_chosen(&form, &none) == GL_OK ? cpu_form_name(form) : "refused";
}

gl_status backend_new(backend **out, backend_kind kind, number_type type, size_t threads,
                      gl_error *err) {
  return backend_new_at(out, kind, type, (backend_place){0, 1}, threads, err);
}

/* Number of CPU threads for one of several devices. Results do not depend on it. */
static size_t threads_at(backend_place place, size_t threads) {
  if (place.devices <= 1) return threads;
  if (threads == 0) threads = pool_usable_cores();
  const size_t share = threads / place.devices + (place.device < threads % place.devices);
  return share > 0 ? share : 1;
}

gl_status backend_new_at(backend **out, backend_kind kind, number_type type, backend_place place,
                         size_t threads, gl_error *err) {
  assert(place.device < place.devices);
  *out = NULL;
  if (kind != BACKEND_CPU) {
    gl_error none = {.status = GL_OK};
    /* On one device BACKEND_AUTO falls back to the CPU for any reason. With several devices it does
     * not fall back if this machine has GPUs: running on the CPU would be unexpected, and the error
     * explains why the GPUs cannot be used. */
    const int must = kind == BACKEND_CUDA ||
                     (place.devices > 1 && type != NUMBER_F64 && backend_cuda_devices() > 0);
    gl_status status = backend_cuda_new(out, type, place, must ? err : &none);
    if (status == GL_OK || must) return status;
  }
  return backend_cpu_new(out, type, threads_at(place, threads), err);
}

gl_status collective_new(collective **out, backend *const *member, size_t n, gl_error *err) {
  int devices = 1;
  *out = NULL;
  for (size_t rank = 0; rank < n; ++rank) devices &= member[rank]->kind == BACKEND_CUDA;
  if (devices) {
    gl_status status = collective_nccl_new(out, member, n, err);
    if (status != GL_OK || *out != NULL) return status;
  }
  return collective_host_new(out, member, n, err);
}
