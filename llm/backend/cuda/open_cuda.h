/* The interface of the CUDA backend for llm/backend/open, which defines these functions itself if
 * there is no nvcc. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_OPEN_CUDA_H
#define GEPOLAB_LLM_BACKEND_CUDA_OPEN_CUDA_H

#ifdef __cplusplus
extern "C" {
#endif

#include "llm/backend/backend.h"
#include "llm/backend/collective.h"

/* Makes a backend on device place.device. Errors: GL_EINPUT (float64), GL_EIO ("no CUDA device",
 * fewer than place.devices, or an error of CUDA), GL_ENOMEM. */
gl_status backend_cuda_new(backend **out, number_type type, backend_place place, gl_error *err);
/* Number of CUDA devices that this process sees. */
size_t backend_cuda_devices(void);
/* Makes an all-reduce by NCCL over member [n], CUDA backends, borrowed. If NCCL is not found *out
 * is NULL and the status GL_OK. Errors: GL_EIO. */
gl_status collective_nccl_new(collective **out, backend *const *member, size_t n, gl_error *err);

#ifdef __cplusplus
}
#endif
#endif
