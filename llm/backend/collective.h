/* All-reduce over the replicas of a data-parallel learner: each rank passes an array in its own
 * backend's memory, and afterwards each array holds the sum over ranks, with the same bits on every
 * rank.
 *
 * There are two implementations: through host memory, summed in the order of ranks, for every
 * backend (collective_host_new); and NCCL, for CUDA devices (llm/backend/cuda/nccl.cu).
 * llm/backend/open chooses. A rank that cannot take part calls collective_abort (rank_threads_run
 * of the learner does it for a rank whose work fails). The ranks that wait for it then return with
 * an error. Prefix: collective_. */
#ifndef GEPOLAB_LLM_BACKEND_COLLECTIVE_H
#define GEPOLAB_LLM_BACKEND_COLLECTIVE_H

#include "llm/backend/backend.h"

#include <pthread.h>

typedef struct collective collective;

void collective_free(collective *c);              /* NULL is allowed */
const char *collective_name(const collective *c); /* for messages: "NCCL" or "the host" */

/* Replaces M memory [n] by its sum over all ranks. Every rank calls it on its own thread with the
 * same n. It returns when this rank's memory holds the sum. Errors: GL_EIO (another rank aborted or
 * its device failed), those of this rank's backend. */
gl_status collective_sum(collective *c, size_t rank, void *memory, size_t n, gl_error *err);
/* Makes every present and future call of collective_sum return GL_EIO. May be called from any
 * thread. */
void collective_abort(collective *c);
/* Resets an abort. The caller ensures that no rank is in collective_sum. */
void collective_ready(collective *c);

/* --- for the implementations --- */

typedef struct collective_ops {
  const char *name;
  gl_status (*sum)(collective *c, size_t rank, void *memory, size_t n, gl_error *err);
  void (*free)(collective *c);
} collective_ops;

struct collective {
  const collective_ops *ops;
  backend **member; /* [n] backends by rank, borrowed */
  size_t n;
  /* The barrier of collective_meet; the lock protects the members below it. */
  pthread_mutex_t lock;
  pthread_cond_t all_here;
  size_t arrived;    /* ranks waiting now */
  uint64_t meetings; /* number of completed barriers */
  int aborted;
};

/* Initialises the members common to all implementations. Release with collective_fini, also after
 * an error. */
gl_status collective_init(collective *c, const collective_ops *ops, backend *const *member,
                          size_t n, gl_error *err);
void collective_fini(collective *c);
/* A barrier: returns after every rank has called it. Errors: GL_EIO (after an abort). */
gl_status collective_meet(collective *c, gl_error *err);
int collective_is_aborted(collective *c);

/* The all-reduce through host memory, over member [n], which is borrowed. */
gl_status collective_host_new(collective **out, backend *const *member, size_t n, gl_error *err);

#endif
