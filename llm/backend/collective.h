/* Sums over the replicas of a data-parallel learner (all-reduce): each rank brings an array in its
 * own backend's memory, and all leave with the sum, the same bits on every rank.
 *
 * Two ways: through the host, in the order of ranks, for every backend; and NCCL
 * (collective_nccl.cu) over CUDA devices. A rank that fails calls collective_abort, or has
 * replicas_run do it, and those who wait for it return with an error instead. Prefix: collective_.
 */
#ifndef GEPOLAB_LLM_BACKEND_COLLECTIVE_H
#define GEPOLAB_LLM_BACKEND_COLLECTIVE_H

#include "llm/backend/backend.h"

#include <pthread.h>

typedef struct collective collective;

void collective_free(collective *c); /* NULL is fine */
const char *collective_name(const collective *c);

/* Replaces M memory[n] by its sum over all ranks. Every rank calls it, on its own thread, with the
 * same n; returns when this rank's memory holds the sum. GL_EIO where another rank gave up. */
gl_status collective_sum(collective *c, size_t rank, void *memory, size_t n, gl_error *err);
/* Wakes all who wait for other ranks, now or later; from any thread. */
void collective_abort(collective *c);
/* Forgets an abort, when no rank is inside. */
void collective_ready(collective *c);

/* --- for the implementations --------------------------------------------------------------------
 */

typedef struct collective_ops {
  const char *name;
  gl_status (*sum)(collective *c, size_t rank, void *memory, size_t n, gl_error *err);
  void (*free)(collective *c);
} collective_ops;

struct collective {
  const collective_ops *ops;
  backend **member; /* [n], borrowed backends */
  size_t n;
  pthread_mutex_t lock;
  pthread_cond_t all_here;
  size_t arrived; /* ranks that wait in collective_meet */
  uint64_t meetings;
  int aborted;
};

/* The part common to all; released with collective_fini. */
gl_status collective_init(collective *c, const collective_ops *ops, backend *const *member,
                          size_t n, gl_error *err);
void collective_fini(collective *c);
/* Returns once every rank is here; GL_EIO if one gave up instead. */
gl_status collective_meet(collective *c, gl_error *err);
int collective_is_aborted(collective *c);

gl_status collective_host_new(collective **out, backend *const *member, size_t n, gl_error *err);

#endif
