/* Threads of a data-parallel learner: one for each of its replicas, numbered by rank. Rank 0 is the
 * caller's own thread, so that a learner of one replica never leaves it. Everything that a replica
 * owns on its device is made, used and released on its rank's thread: CUDA keeps a current device
 * for each thread. Prefix: rank_threads_. */
#ifndef GEPOLAB_LLM_LEARNER_RANK_THREADS_H
#define GEPOLAB_LLM_LEARNER_RANK_THREADS_H

#include "core/base/error.h"
#include "llm/backend/collective.h"

#include <stddef.h>

typedef struct rank_threads rank_threads;

/* A rank's part of some work. err is this rank's own. */
typedef gl_status (*rank_task)(void *context, size_t rank, gl_error *err);

/* n from 1 on. GL_ENOMEM, GL_EIO where a thread cannot be started. */
gl_status rank_threads_new(rank_threads **out, size_t n, gl_error *err);
/* Ends the threads; no task may be running. NULL is fine. */
void rank_threads_free(rank_threads *r);
size_t rank_threads_count(const rank_threads *r);

/* Names the collective that tasks sum with (borrowed; NULL: none). When a rank fails it is aborted,
 * so that ranks that wait in a sum return with an error. */
void rank_threads_set_sums(rank_threads *r, collective *sums);

/* Runs the task on every rank at the same time and returns when all have ended. Of several failures
 * the first is returned, naming the device where there are several. */
gl_status rank_threads_run(rank_threads *r, rank_task task, void *context, gl_error *err);
/* Runs the task on one rank alone. */
gl_status rank_threads_run_at(rank_threads *r, size_t rank, rank_task task, void *context,
                              gl_error *err);

#endif
