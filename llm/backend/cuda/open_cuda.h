/* What the CUDA backend offers to llm/backend/open. Without nvcc, llm/backend/open answers for it.
 */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_OPEN_CUDA_H
#define GEPOLAB_LLM_BACKEND_CUDA_OPEN_CUDA_H

#ifdef __cplusplus
extern "C" {
#endif

#include "llm/backend/backend.h"
#include "llm/backend/collective.h"

/* GL_EIO "no CUDA device" where there are fewer devices than place.devices. */
gl_status backend_cuda_new(backend **out, number_type type, backend_place place, gl_error *err);
/* CUDA devices of this machine. */
size_t backend_cuda_devices(void);
/* *out stays NULL, without an error, where there is no NCCL. */
gl_status collective_nccl_new(collective **out, backend *const *member, size_t n, gl_error *err);

#ifdef __cplusplus
}
#endif
#endif
