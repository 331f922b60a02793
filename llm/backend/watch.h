/* Watches what a backend does while it does it: how often each operation is called, how long it
 * takes, what arithmetic and how many bytes it needs, and the most memory in use. It stands between
 * the backend and whoever uses it, in the place of the backend's table of operations, so that no
 * kernel knows of it. Prefix: backend_watch_. */
#ifndef GEPOLAB_LLM_BACKEND_WATCH_H
#define GEPOLAB_LLM_BACKEND_WATCH_H

#include "llm/backend/backend.h"

enum {
#define OPERATION(result, name, arguments) BACKEND_OPERATION_##name,
#define OPTIONAL_OPERATION OPERATION
#define HOST_OPERATION OPERATION
#include "llm/backend/operations.h"
  BACKEND_OPERATIONS
};

/* All calls of one operation. flops and bytes are what the result takes, not what the backend did:
 * every number is read and written once, and what is computed again is not counted; 0 where they do
 * not follow from the arguments. */
typedef struct backend_work {
  const char *operation;
  size_t calls;
  double seconds, flops, bytes;
} backend_work;

/* What is measured: memory alone; the time of each operation, where a recorded graph is one and so
 * are the operations within in_ranges; the time of each, and nothing is recorded or run in ranges,
 * so that those show, too. */
typedef enum watch_kind { WATCH_MEMORY, WATCH_TIMES, WATCH_TIMES_UNRECORDED } watch_kind;

typedef struct backend_watch backend_watch;

/* From now on b's operations are watched. On a device the times lie between events before and after
 * each, so an operation that waits for the host to launch it is charged for the wait; on the CPU
 * they are the clock's. GL_ENOMEM, or what the backend fails with; *out is then NULL. */
gl_status backend_watch_begin(backend_watch **out, backend *b, watch_kind kind, gl_error *err);
/* Gives the backend its own operations back; comes before backend_free(). NULL is fine. */
void backend_watch_end(backend_watch *w);
/* Forgets times and calls so far, as after a run that warms up. Waits for all operations. */
void backend_watch_clear(backend_watch *w);
/* The operations done so far, the longest first, into work [BACKEND_OPERATIONS]; how many there
 * are. Waits for all operations. */
size_t backend_watch_read(backend_watch *w, backend_work *work);
/* Most bytes in use after any allocation or at a call of this: on a device all that it holds, on
 * the CPU all that this machine's programs do. */
size_t backend_watch_peak(backend_watch *w);

#endif
