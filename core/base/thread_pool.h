/* A pool of threads that run the tasks of one job together with the caller. Which thread runs a
 * task is not deterministic, so results must not depend on it. Threads do not survive fork(): a
 * process that forks must create its pools afterwards. Prefix: pool_, except for
 * blas_reserve(). */
#ifndef GEPOLAB_CORE_BASE_THREAD_POOL_H
#define GEPOLAB_CORE_BASE_THREAD_POOL_H

#include "core/base/error.h"

#include <stddef.h>

typedef struct pool pool;

/* Runs task number `task` (0 .. n - 1) on worker `worker` (0 .. threads - 1). Two tasks never run
 * on one worker at the same time, so a task may use its worker's scratch memory exclusively. */
typedef void (*pool_task)(void *context, size_t task, size_t worker);

/* Makes a pool of `threads` workers (0: pool_usable_cores()); the caller of pool_run() is worker 0.
 * Release with pool_free(). Errors: GL_ENOMEM, GL_EINPUT (more than 4096), GL_EIO (a thread cannot
 * be started). */
gl_status pool_new(pool **out, size_t threads, gl_error *err);
void pool_free(pool *p); /* waits for its threads to end; p may be NULL */
size_t pool_threads(const pool *p);
/* The number of processor cores this process may use (its affinity), at least 1. */
size_t pool_usable_cores(void);

/* Runs tasks 0 .. n - 1 and returns when all are done; their writes are then visible to the caller.
 * Not reentrant: only one thread may call it at a time, and no task may. */
void pool_run(pool *p, pool_task run, void *context, size_t n);

/* The same for many small tasks, which workers take in runs of consecutive ones; p NULL: the caller
 * runs them all. */
void pool_spread(pool *p, pool_task run, void *context, size_t n);

/* Runs task(context, i) for i in [0, n) on a pool of its own with up to `threads` workers (0: one).
 * If tasks fail, returns the error of the lowest one, independent of scheduling; tasks after a
 * failed one may not run. */
gl_status pool_try(size_t n, size_t threads,
                   gl_status (*task)(void *context, size_t i, gl_error *err), void *context,
                   gl_error *err);

/* --- buffers of OpenBLAS --- */
/* OpenBLAS routines need a working buffer and allocate one if none of the existing ones is free.
 * Versions before 0.3.30 retry forever if the system refuses (a limit on the address space, `ulimit
 * -v`, or on the data segment). Callers of BLAS routines therefore reserve the buffers first;
 * OpenBLAS keeps them until the process ends. */

/* Restricts OpenBLAS, in the whole process, to the calling thread, and reserves buffers for
 * `threads` threads that call it concurrently. Does nothing for other BLAS libraries. Must not be
 * called while another thread is in a BLAS routine. Errors: GL_ENOMEM if there is no room for the
 * buffers, with the required size and the limit. */
gl_status blas_reserve(size_t threads, gl_error *err);

#endif
