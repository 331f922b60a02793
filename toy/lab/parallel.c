#include "toy/lab/lab.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct pool {
  pthread_mutex_t lock;
  size_t next, n, failed; /* failed: lowest index that failed, n while none has */
  gl_status (*task)(void *context, size_t i, gl_error *err);
  void *context;
  gl_error error;
} pool;

/* Takes tasks in order until none are left. Tasks below a failed one still run, so that the error
 * reported is that of the lowest failing index whatever the threads did. */
static void *work(void *argument) {
  pool *p = argument;
  for (;;) {
    gl_error err = {.status = GL_OK};
    pthread_mutex_lock(&p->lock);
    size_t i = p->next < p->failed ? p->next++ : p->n;
    pthread_mutex_unlock(&p->lock);
    if (i >= p->n) return NULL;
    if (p->task(p->context, i, &err) == GL_OK) continue;
    pthread_mutex_lock(&p->lock);
    if (i < p->failed) {
      p->failed = i;
      p->error = err;
    }
    pthread_mutex_unlock(&p->lock);
  }
}

gl_status lab_parallel(size_t n, size_t threads,
                       gl_status (*task)(void *context, size_t i, gl_error *err), void *context,
                       gl_error *err) {
  pool p = {.n = n, .failed = n, .task = task, .context = context};
  if (threads > n) threads = n;
  pthread_t *thread = threads > 1 ? calloc(threads - 1, sizeof *thread) : NULL;
  size_t started = 0;
  pthread_mutex_init(&p.lock, NULL);
  /* A thread that cannot be had is work for the others. */
  while (thread != NULL && started + 1 < threads &&
         pthread_create(&thread[started], NULL, work, &p) == 0)
    ++started;
  work(&p);
  for (size_t i = 0; i < started; ++i) pthread_join(thread[i], NULL);
  pthread_mutex_destroy(&p.lock);
  free(thread);
  if (p.failed == n) return GL_OK;
  return gl_fail(err, p.error.status, "%s", p.error.text);
}
