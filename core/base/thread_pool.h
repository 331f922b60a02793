/* A pool of threads that run the tasks of one job together with the caller. Which thread runs which
 * task is not determined, so tasks must not depend on it. Threads do not survive fork(): a process
 * that forks makes its pools afterwards. Prefix: pool_. */
#ifndef GEPOLAB_CORE_BASE_THREAD_POOL_H
#define GEPOLAB_CORE_BASE_THREAD_POOL_H

#include "core/base/error.h"

#include <stddef.h>

typedef struct pool pool;

/* Runs task number `task` (0 .. n - 1) on worker `worker` (0 .. threads - 1); two tasks never run
 * on one worker at the same time, so a worker's scratch memory is the task's alone. */
typedef void (*pool_task)(void *context, size_t task, size_t worker);

/* A pool of `threads` workers (0: as many as pool_usable_cores), the caller of pool_run being
 * worker 0. Released with pool_free. GL_EINPUT for more than 4096, GL_ENOMEM, GL_EIO where a thread
 * cannot be started. */
gl_status pool_new(pool **out, size_t threads, gl_error *err);
void pool_free(pool *p); /* waits for its threads to end; NULL is fine */
size_t pool_threads(const pool *p);
/* Processor cores this process may use (its affinity), at least 1. */
size_t pool_usable_cores(void);

/* Runs tasks 0 .. n - 1 and returns when all are done; what they wrote is then visible to the
 * caller. Only one thread at a time may call it, and no task may. */
void pool_run(pool *p, pool_task run, void *context, size_t n);

/* The same for many small tasks, which workers take in runs of consecutive ones; p NULL: the caller
 * does them all. */
void pool_spread(pool *p, pool_task run, void *context, size_t n);

/* Runs task(context, i) for i in [0, n) on a pool of its own of up to `threads` workers (0: one).
 * Of the tasks that fail the lowest one's error is returned, whatever the threads did; tasks after
 * a failed one may not run. */
gl_status pool_try(size_t n, size_t threads,
                   gl_status (*task)(void *context, size_t i, gl_error *err), void *context,
                   gl_error *err);

/* --- working memory of OpenBLAS, for each thread --- */
/* A routine of OpenBLAS takes a working buffer, which it asks the system for when none of those it
 * has is free. Versions before 0.3.30 ask again without end where the system refuses (a limit on
 * the address space, `ulimit -v`, or on the data segment). So a caller of BLAS routines first
 * reserves the buffers; OpenBLAS keeps them until the process ends. */

/* Makes OpenBLAS compute with the calling thread alone, in the whole process, and gives it buffers
 * for `threads` threads that call it at the same time. GL_ENOMEM, with what is needed and the
 * limit, where there is no room for them. A BLAS that is not OpenBLAS is left alone. Not while
 * another thread calls a BLAS routine. */
gl_status blas_reserve(size_t threads, gl_error *err);

#endif
