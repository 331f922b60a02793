/* The interface of the CUDA backend for llm/backend/open, which replaces it where there is no nvcc.
 */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_OPEN_CUDA_H
#define GEPOLAB_LLM_BACKEND_CUDA_OPEN_CUDA_H

#ifdef __cplusplus
extern "C" {
#endif

#include "llm/backend/backend.h"
#include "llm/backend/collective.h"

/* A backend on device place.device. GL_EINPUT for float64; GL_EIO "no CUDA device" where there is
 * none, and where there are fewer than place.devices or CUDA fails; GL_ENOMEM. */
gl_status backend_cuda_new(backend **out, number_type type, backend_place place, gl_error *err);
/* CUDA devices that this process sees. */
size_t backend_cuda_devices(void);
/* An all-reduce by NCCL over member [n], CUDA backends, borrowed. Where NCCL is not found *out is
 * NULL and the status GL_OK; GL_EIO where it fails. */
gl_status collective_nccl_new(collective **out, backend *const *member, size_t n, gl_error *err);

#ifdef __cplusplus
}
#endif
#endif
