/* Functions common to all collectives (the barrier of ranks and its abort), and the all-reduce
 * through host memory. */
#include "llm/backend/collective.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- the barrier --- */

gl_status collective_init(collective *c, const collective_ops *ops, backend *const *member,
                          size_t n, gl_error *err) {
  assert(ops != NULL && n > 0);
  *c = (collective){.ops = ops, .n = n, .member = calloc(n, sizeof(backend *))};
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->all_here, NULL);
  if (c->member == NULL) return gl_fail_memory(err, "sums over devices");
  memcpy(c->member, member, n * sizeof(backend *));
  return GL_OK;
}

void collective_fini(collective *c) {
  pthread_mutex_destroy(&c->lock);
  pthread_cond_destroy(&c->all_here);
  free(c->member);
}

gl_status collective_meet(collective *c, gl_error *err) {
  pthread_mutex_lock(&c->lock);
  const uint64_t meeting = c->meetings;
  if (!c->aborted && ++c->arrived == c->n) {
    c->arrived = 0;
    ++c->meetings;
    pthread_cond_broadcast(&c->all_here);
  }
  while (c->meetings == meeting && !c->aborted) pthread_cond_wait(&c->all_here, &c->lock);
  const int met = c->meetings != meeting;
  pthread_mutex_unlock(&c->lock);
  if (met) return GL_OK;
  return gl_fail(err, GL_EIO, "a sum over devices was given up, for another device failed");
}

void collective_abort(collective *c) {
  pthread_mutex_lock(&c->lock);
  c->aborted = 1;
  pthread_cond_broadcast(&c->all_here);
  pthread_mutex_unlock(&c->lock);
}

void collective_ready(collective *c) {
  pthread_mutex_lock(&c->lock);
  c->aborted = 0;
  c->arrived = 0;
  pthread_mutex_unlock(&c->lock);
}

int collective_is_aborted(collective *c) {
  pthread_mutex_lock(&c->lock);
  const int aborted = c->aborted;
  pthread_mutex_unlock(&c->lock);
  return aborted;
}

/* --- any collective --- */

void collective_free(collective *c) {
  if (c != NULL) c->ops->free(c);
}

const char *collective_name(const collective *c) {
  return c->ops->name;
}

gl_status collective_sum(collective *c, size_t rank, void *memory, size_t n, gl_error *err) {
  assert(rank < c->n && (memory != NULL || n == 0));
  return c->ops->sum(c, rank, memory, n, err);
}

/* --- through the host --- */
/* An array is summed chunk by chunk. Each rank downloads its numbers of the chunk into its own row
 * of a table on the host, and waits for the others. Then each rank adds its part of the chunk's
 * columns over all rows, in the order of ranks, and waits again. Finally each uploads the whole
 * sum. */

enum { CHUNK = 1 << 18 }; /* numbers: 1 or 2 MiB, which fit the processor's caches for few ranks */

typedef struct host_collective {
  collective base;
  char *chunk; /* M [n + 1, CHUNK]: one row per rank, then the sum; owned */
} host_collective;

/* Sums columns [from, to); float32 is summed in double and rounded once. */
static void add_up(const host_collective *c, size_t from, size_t to) {
  const size_t n = c->base.n;
  if (c->base.member[0]->master == NUMBER_F64) {
    const double *in = (const double *)(const void *)c->chunk;
    double *sum = (double *)(void *)c->chunk + n * CHUNK;
    for (size_t i = from; i < to; ++i) {
      double s = in[i];
      for (size_t rank = 1; rank < n; ++rank) s += in[rank * CHUNK + i];
      sum[i] = s;
    }
    return;
  }
  const float *in = (const float *)(const void *)c->chunk;
  float *sum = (float *)(void *)c->chunk + n * CHUNK;
  for (size_t i = from; i < to; ++i) {
    double s = (double)in[i];
    for (size_t rank = 1; rank < n; ++rank) s += (double)in[rank * CHUNK + i];
    sum[i] = (float)s;
  }
}

/* A rank's row and the sum are never written while others read them: all ranks meet at a barrier
 * between a read and the next write. */
static gl_status host_sum(collective *base, size_t rank, void *memory, size_t n, gl_error *err) {
  const host_collective *c = (const host_collective *)base;
  backend *b = base->member[rank];
  const size_t width = b->master_element;
  char *own_chunk = c->chunk + rank * CHUNK * width;
  const char *sum = c->chunk + base->n * CHUNK * width;
  gl_status status = GL_OK;
  for (size_t at = 0; at < n && status == GL_OK; at += CHUNK) {
    const size_t k = n - at < CHUNK ? n - at : CHUNK;
    b->ops->download(b, own_chunk, (const char *)memory + at * width, k * width);
    status = b->ops->status(b, err);
    if (status == GL_OK) status = collective_meet(base, err);
    if (status == GL_OK) {
      add_up(c, k * rank / base->n, k * (rank + 1) / base->n);
      status = collective_meet(base, err);
    }
    if (status == GL_OK) b->ops->upload(b, (char *)memory + at * width, sum, k * width);
  }
  return status == GL_OK ? b->ops->status(b, err) : status;
}

static void host_free(collective *base) {
  free(((host_collective *)base)->chunk);
  collective_fini(base);
  free(base);
}

gl_status collective_host_new(collective **out, backend *const *member, size_t n, gl_error *err) {
  static const collective_ops ops = {"the host", host_sum, host_free};
  *out = NULL;
  host_collective *c = calloc(1, sizeof *c);
  if (c == NULL) return gl_fail_memory(err, "sums over devices");
  gl_status status = collective_init(&c->base, &ops, member, n, err);
  for (size_t rank = 1; rank < n && status == GL_OK; ++rank)
    if (member[rank]->master != member[0]->master)
      status = gl_fail(err, GL_EINTERNAL, "a sum over devices that compute in other numbers");
  if (status == GL_OK) {
    c->chunk = calloc((n + 1) * CHUNK, member[0]->master_element);
    if (c->chunk == NULL) status = gl_fail_memory(err, "sums over devices");
  }
  if (status == GL_OK)
    *out = &c->base;
  else
    host_free(&c->base);
  return status;
}
