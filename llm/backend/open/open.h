/* Makes the backend of the kind that a recipe names, and the all-reduce over several backends. Only
 * this folder knows all implementations; others use llm/backend/backend.h and
 * llm/backend/collective.h. */
#ifndef GEPOLAB_LLM_BACKEND_OPEN_OPEN_H
#define GEPOLAB_LLM_BACKEND_OPEN_OPEN_H

#include "llm/backend/backend.h"
#include "llm/backend/collective.h"

/* Makes a backend of that kind and number type; free it with backend_free. BACKEND_AUTO is CUDA if
 * a device can be used for this type, else the CPU. threads: of the CPU, 0 for all cores this
 * process may use. *out is NULL after an error. Errors: GL_EINPUT (a type that the backend does not
 * have), GL_EIO "no CUDA device" (none found, or gepolab was built without nvcc), GL_ENOMEM. */
gl_status backend_new(backend **out, backend_kind kind, number_type type, size_t threads,
                      gl_error *err);
/* backend_new() on device place.device of place.devices; the CPU's `threads` are divided among
 * them. BACKEND_AUTO with several devices is CUDA if this machine has any and the type is not
 * float64. Further error: GL_EIO (fewer CUDA devices than place.devices). */
gl_status backend_new_at(backend **out, backend_kind kind, number_type type, backend_place place,
                         size_t threads, gl_error *err);
/* The instruction set that a new CPU backend would use ("avx2"), or "refused" if the environment
 * names one that this processor does not support. A string constant. */
const char *backend_cpu_form(void);
/* Number of CUDA devices that this process sees; 0 if gepolab was built without nvcc. */
size_t backend_devices(void);

/* Makes the all-reduce over member [n], in the order of ranks. It uses NCCL if all are CUDA
 * backends, gepolab was built with NCCL's header, and the library is found; otherwise host memory.
 * The backends are borrowed and must outlive it. Free it with collective_free. */
gl_status collective_new(collective **out, backend *const *member, size_t n, gl_error *err);

#endif
