/* A thread for each rank, which waits for tasks and runs them. */
#include "llm/learner/rank_threads.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

static const size_t everyone = SIZE_MAX;

typedef struct rank_thread {
  rank_threads *owner;
  size_t rank;
  pthread_t thread;
} rank_thread;

struct rank_threads {
  size_t n, started; /* ranks, and threads beside the caller's */
  collective *sums;
  rank_thread *thread; /* [n], the first is not used */
  pthread_mutex_t lock;
  pthread_cond_t begun, ended;
  /* The task that is running, if busy; protected by the lock. */
  uint64_t number;
  rank_task task;
  void *context;
  size_t meant, busy; /* the only rank to run it, or SIZE_MAX for all; threads still running it */
  gl_error failed;    /* the first failure */
  int stop;
};

/* --- one rank --- */

static void keep_failure(rank_threads *r, size_t rank, gl_status status, const gl_error *err) {
  pthread_mutex_lock(&r->lock);
  if (r->n > 1)
    gl_fail(&r->failed, status, "device %zu: %s", rank, err->text);
  else
    gl_fail(&r->failed, status, "%s", err->text);
  pthread_mutex_unlock(&r->lock);
  if (r->sums != NULL) collective_abort(r->sums);
}

/* The failure is kept before collective_abort() wakes the other ranks, so that it stays the first.
 */
static void work(rank_threads *r, size_t rank, rank_task task, void *context) {
  gl_error err = {.status = GL_OK};
  const gl_status status = task(context, rank, &err);
  if (status != GL_OK) keep_failure(r, rank, status, &err);
}

static void *live(void *argument) {
  const rank_thread *self = argument;
  rank_threads *r = self->owner;
  uint64_t seen = 0;
  pthread_mutex_lock(&r->lock);
  for (;;) {
    while (!r->stop && r->number == seen) pthread_cond_wait(&r->begun, &r->lock);
    if (r->stop) break;
    seen = r->number;
    if (r->meant != everyone && r->meant != self->rank) continue;
    const rank_task task = r->task;
    void *context = r->context;
    pthread_mutex_unlock(&r->lock);
    work(r, self->rank, task, context);
    pthread_mutex_lock(&r->lock);
    if (--r->busy == 0) pthread_cond_signal(&r->ended);
  }
  pthread_mutex_unlock(&r->lock);
  return NULL;
}

/* --- all ranks --- */

static gl_status run(rank_threads *r, size_t meant, rank_task task, void *context, gl_error *err) {
  assert(meant == everyone || meant < r->n);
  if (r->n == 1)
    return task(context, 0, err); /* one rank: on this thread, with its error unchanged */
  if (r->sums != NULL) collective_ready(r->sums);
  pthread_mutex_lock(&r->lock);
  r->task = task;
  r->context = context;
  r->meant = meant;
  r->busy = meant == everyone ? r->n - 1 : meant != 0;
  r->failed = (gl_error){.status = GL_OK};
  ++r->number;
  pthread_cond_broadcast(&r->begun);
  pthread_mutex_unlock(&r->lock);
  if (meant == everyone || meant == 0) work(r, 0, task, context);
  pthread_mutex_lock(&r->lock);
  while (r->busy > 0) pthread_cond_wait(&r->ended, &r->lock);
  pthread_mutex_unlock(&r->lock);
  return r->failed.status == GL_OK ? GL_OK : gl_fail(err, r->failed.status, "%s", r->failed.text);
}

gl_status rank_threads_run(rank_threads *r, rank_task task, void *context, gl_error *err) {
  return run(r, everyone, task, context, err);
}

gl_status rank_threads_run_at(rank_threads *r, size_t rank, rank_task task, void *context,
                              gl_error *err) {
  return run(r, rank, task, context, err);
}

void rank_threads_set_sums(rank_threads *r, collective *sums) {
  r->sums = sums;
}

size_t rank_threads_count(const rank_threads *r) {
  return r->n;
}

/* --- beginning and end --- */

gl_status rank_threads_new(rank_threads **out, size_t n, gl_error *err) {
  *out = NULL;
  rank_threads *r = calloc(1, sizeof *r);
  rank_thread *thread = calloc(n, sizeof *thread);
  if (r == NULL || thread == NULL) {
    free(r);
    free(thread);
    return gl_fail_memory(err, "a learner's replicas");
  }
  r->n = n;
  r->thread = thread;
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->begun, NULL);
  pthread_cond_init(&r->ended, NULL);
  for (size_t rank = 1; rank < n; ++rank) {
    thread[rank] = (rank_thread){.owner = r, .rank = rank};
    if (pthread_create(&thread[rank].thread, NULL, live, &thread[rank]) != 0) {
      rank_threads_free(r);
      return gl_fail(err, GL_EIO, "the thread of device %zu of %zu could not be started", rank, n);
    }
    r->started = rank;
  }
  *out = r;
  return GL_OK;
}

void rank_threads_free(rank_threads *r) {
  if (r == NULL) return;
  pthread_mutex_lock(&r->lock);
  r->stop = 1;
  pthread_cond_broadcast(&r->begun);
  pthread_mutex_unlock(&r->lock);
  for (size_t rank = 1; rank <= r->started; ++rank) pthread_join(r->thread[rank].thread, NULL);
  pthread_cond_destroy(&r->begun);
  pthread_cond_destroy(&r->ended);
  pthread_mutex_destroy(&r->lock);
  free(r->thread);
  free(r);
}
