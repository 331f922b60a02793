/* Threads that share the tasks of one piece of work. The caller works, too; which thread runs which
 * task is left to chance, so tasks must not depend on it. A pool is made per backend, after any
 * fork. Prefix: pool_. */
#ifndef GEPOLAB_CORE_BASE_THREAD_POOL_H
#define GEPOLAB_CORE_BASE_THREAD_POOL_H

#include "core/base/error.h"

#include <stddef.h>

typedef struct pool pool;

/* Runs task number `task` (of those asked for) on worker `worker` (0 .. threads - 1). */
typedef void (*pool_task)(void *context, size_t task, size_t worker);

/* A pool of `threads` workers, the caller being worker 0; 0: all cores this process may use.
 * GL_ENOMEM, GL_EIO where a thread cannot be started. */
gl_status pool_new(pool **out, size_t threads, gl_error *err);
void pool_free(pool *p); /* NULL is fine */
size_t pool_threads(const pool *p);
/* Cores this process may use. */
size_t pool_usable_cores(void);

/* Runs tasks 0 .. n - 1 and returns when all are done. Only one thread at a time may call it. */
void pool_run(pool *p, pool_task run, void *context, size_t n);

/* Runs task(context, i) for i in [0, n) on a pool of its own of up to `threads` workers (0: one).
 * Of the tasks that fail the lowest one's error is returned, whatever the threads did; tasks above
 * one that has failed may be left out. */
gl_status pool_try(size_t n, size_t threads,
                   gl_status (*task)(void *context, size_t i, gl_error *err), void *context,
                   gl_error *err);

#endif
