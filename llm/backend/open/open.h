/* Opens a backend of the kind a recipe names, and the sums over several: the one place that knows
 * every implementation. */
#ifndef GEPOLAB_LLM_BACKEND_OPEN_OPEN_H
#define GEPOLAB_LLM_BACKEND_OPEN_OPEN_H

#include "llm/backend/backend.h"
#include "llm/backend/collective.h"

/* threads: 0 for all cores this process may use (CPU). BACKEND_AUTO takes CUDA where a device is
 * found, else the CPU. GL_EINPUT for a type the backend does not have; GL_EIO "no CUDA device"
 * where none is found or gepolab was built without nvcc. */
gl_status backend_new(backend **out, backend_kind kind, number_type type, size_t threads,
                      gl_error *err);
/* One of several; `threads` of the CPU are divided among them. GL_EIO where there are fewer CUDA
 * devices than `devices`. */
gl_status backend_new_at(backend **out, backend_kind kind, number_type type, backend_place place,
                         size_t threads, gl_error *err);
/* CUDA devices of this machine, 0 also where gepolab was built without nvcc. */
size_t backend_cuda_devices(void);

/* Over member[n], whose order is that of ranks: NCCL where all are CUDA devices and gepolab was
 * built with its header and finds its library, else through the host. The backends are borrowed. */
gl_status collective_new(collective **out, backend *const *member, size_t n, gl_error *err);

#endif
