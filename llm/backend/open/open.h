/* Makes the backend of the kind a recipe names, and the all-reduce over several backends. This room
 * is the only one that knows every implementation; all others use llm/backend/backend.h and
 * llm/backend/collective.h. */
#ifndef GEPOLAB_LLM_BACKEND_OPEN_OPEN_H
#define GEPOLAB_LLM_BACKEND_OPEN_OPEN_H

#include "llm/backend/backend.h"
#include "llm/backend/collective.h"

/* A backend of that kind and number type, released with backend_free. BACKEND_AUTO is CUDA where a
 * device can be used for this type, else the CPU. `threads` are the CPU's, 0 for all cores this
 * process may use. GL_EINPUT for a type the backend does not have; GL_EIO "no CUDA device" where
 * none is found or gepolab was built without nvcc; GL_ENOMEM. *out is NULL after an error. */
gl_status backend_new(backend **out, backend_kind kind, number_type type, size_t threads,
                      gl_error *err);
/* The backend on device place.device of place.devices; `threads` of the CPU are divided among them.
 * BACKEND_AUTO with several devices is CUDA where this machine has any and the type is not float64.
 * Also GL_EIO where there are fewer CUDA devices than place.devices. */
gl_status backend_new_at(backend **out, backend_kind kind, number_type type, backend_place place,
                         size_t threads, gl_error *err);
/* The form of the CPU's arithmetic that a backend made now would have ("avx2"), or "refused" where
 * the environment asks for one that this processor does not run. A constant. */
const char *backend_cpu_form(void);
/* CUDA devices that this process sees; 0 where gepolab was built without nvcc. */
size_t backend_devices(void);

/* The all-reduce over member [n], whose order is that of ranks: NCCL where all are CUDA backends,
 * gepolab was built with NCCL's header and the library is found, else through the host's memory.
 * The backends are borrowed and must outlive it; released with collective_free. */
gl_status collective_new(collective **out, backend *const *member, size_t n, gl_error *err);

#endif
