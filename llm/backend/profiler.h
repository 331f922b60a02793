/* Profiles a backend: how often each operation is called, how long it takes, its arithmetic and
 * bytes, and peak memory. It replaces the backend's table of operations, so kernels need no
 * changes. Prefix: backend_profile_. */
#ifndef GEPOLAB_LLM_BACKEND_PROFILER_H
#define GEPOLAB_LLM_BACKEND_PROFILER_H

#include "llm/backend/backend.h"

enum {
#define OPERATION(result, name, arguments) BACKEND_OPERATION_##name,
#define OPTIONAL_OPERATION OPERATION
#define HOST_OPERATION OPERATION
#include "llm/backend/operations.h"
  BACKEND_OPERATIONS
};

/* All calls of one operation. flops and bytes are the minimum that the result requires, not what
 * the backend did: every number is read and written once, and recomputation is not counted. Both
 * are 0 for operations whose arguments do not determine them. */
typedef struct backend_work {
  const char *operation;
  size_t calls;
  double seconds, flops, bytes;
} backend_work;

/* The kind of measurement. PROFILE_MEMORY: only memory. PROFILE_TIMES: the time of each operation;
 * a recorded graph counts as one operation, as do the operations within in_ranges.
 * PROFILE_TIMES_UNRECORDED: without recording or ranges, so that their operations are listed, too.
 */
typedef enum profile_kind { PROFILE_MEMORY, PROFILE_TIMES, PROFILE_TIMES_UNRECORDED } profile_kind;

typedef struct backend_profile backend_profile;

/* Begins to profile b's operations. On a device times are measured between events before and after
 * each operation, so they include the time until the host has launched it; on the CPU they are
 * wall-clock times. *out is NULL after an error. Errors: GL_ENOMEM, those of the backend. */
gl_status backend_profile_begin(backend_profile **out, backend *b, profile_kind kind,
                                gl_error *err);
/* Restores the backend's own operations; to be called before backend_free(). NULL is allowed. */
void backend_profile_end(backend_profile *w);
/* Discards times and calls so far, for example after a warm-up. Waits for all operations. */
void backend_profile_clear(backend_profile *w);
/* Writes the totals of each operation called so far into work [BACKEND_OPERATIONS], in descending
 * order of time; returns the number of these operations. Waits for all operations. */
size_t backend_profile_read(backend_profile *w, backend_work *work);
/* Peak of the bytes in use, measured after every allocation and at this call. Counts the memory of
 * all programs: on the device, or for the CPU on this machine. */
size_t backend_profile_peak(backend_profile *w);

#endif
