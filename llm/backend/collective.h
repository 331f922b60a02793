/* All-reduce over the replicas of a data-parallel learner: each rank brings an array in its own
 * backend's memory, and all leave with the sum over ranks, the same bits on every rank.
 *
 * There are two ways: through the host's memory, added in the order of ranks, for every backend
 * (collective_host_new); and NCCL over CUDA devices (llm/backend/cuda/nccl.cu). llm/backend/open
 * chooses. A rank that cannot take part calls collective_abort (rank_threads_run of the learner
 * does it for a rank whose work fails), and the ranks that wait for it return with an error instead
 * of waiting for ever. Prefix: collective_. */
#ifndef GEPOLAB_LLM_BACKEND_COLLECTIVE_H
#define GEPOLAB_LLM_BACKEND_COLLECTIVE_H

#include "llm/backend/backend.h"

#include <pthread.h>

typedef struct collective collective;

void collective_free(collective *c);              /* NULL is fine */
const char *collective_name(const collective *c); /* for people: "NCCL" or "the host" */

/* Replaces M memory [n] by its sum over all ranks. Every rank calls it, on its own thread, with the
 * same n; it returns when this rank's memory holds the sum. GL_EIO where another rank aborted or
 * its device failed; other errors are this rank's backend's. */
gl_status collective_sum(collective *c, size_t rank, void *memory, size_t n, gl_error *err);
/* Lets every rank that waits in collective_sum, or will, return with GL_EIO. From any thread. */
void collective_abort(collective *c);
/* Takes an abort back. The caller makes sure that no rank is in collective_sum. */
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
  /* collective_meet's barrier; the lock guards what follows it. */
  pthread_mutex_t lock;
  pthread_cond_t all_here;
  size_t arrived;    /* ranks that wait now */
  uint64_t meetings; /* how often all have met */
  int aborted;
};

/* Initialises the members common to all implementations. Released with collective_fini, after a
 * failure too. */
gl_status collective_init(collective *c, const collective_ops *ops, backend *const *member,
                          size_t n, gl_error *err);
void collective_fini(collective *c);
/* A barrier: returns once every rank has called it; GL_EIO after an abort. */
gl_status collective_meet(collective *c, gl_error *err);
int collective_is_aborted(collective *c);

/* The sum through the host's memory, over member [n], which is borrowed. */
gl_status collective_host_new(collective **out, backend *const *member, size_t n, gl_error *err);

#endif
