/* A thread pool for jobs that may last a few microseconds: a decoding step of the transformer is a
 * sequence of many short jobs.
 *
 * One 64-bit word, `state`, holds the job's number (upper half) and the next task (lower half). A
 * worker takes a task with a compare-and-exchange that advances the next task. If the job has
 * changed meanwhile the exchange fails and nothing is taken, so pool_run() need not wait for
 * workers that are asleep or late. Workers spin for some microseconds before they sleep on the
 * condition variable. */
#define _GNU_SOURCE
#include "core/base/thread_pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define CLOSED UINT32_MAX /* job being replaced: take no task */

/* SPINS: how often a worker polls for a new job before it sleeps. PATIENCE: how often pool_run()
 * polls for the end of the last tasks before it yields the processor. */
enum { SPINS = 4000, PATIENCE = 20000 };

typedef struct pool_worker {
  pool *owner;
  size_t number;
  pthread_t thread;
} pool_worker;

struct pool {
  _Atomic uint64_t state;
  _Atomic(pool_task) run;  /* the job: its function */
  _Atomic(void *) context; /* the function's argument */
  _Atomic size_t n;        /* the job's number of tasks */
  _Atomic size_t done;     /* number of finished tasks */
  _Atomic size_t sleeping; /* number of workers waiting for `wake` */
  _Atomic int stop;
  pthread_mutex_t lock; /* held while going to sleep and while waking sleepers */
  pthread_cond_t wake;
  size_t threads, started; /* number of workers including the caller; number of started threads */
  pool_worker worker[];    /* [threads]; 0 is the caller, without a thread */
};

static void pause_briefly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Takes and runs tasks until none are left. */
static void thread_pool_work(pool *p, size_t number) {
  uint64_t state = atomic_load(&p->state);
  for (;;) {
    const uint32_t next = (uint32_t)state;
    if (next == CLOSED || next >= atomic_load(&p->n)) return;
    pool_task run = atomic_load(&p->run);
    void *context = atomic_load(&p->context);
    if (!atomic_compare_exchange_weak(&p->state, &state, state + 1)) continue;
    run(context, next, number);
    atomic_fetch_add(&p->done, 1);
    state = atomic_load(&p->state);
  }
}

/* Sleeps until there is a job with a number other than `seen`, or the pool ends. */
static void sleep_until_work(pool *p, uint32_t seen) {
  pthread_mutex_lock(&p->lock);
  atomic_fetch_add(&p->sleeping, 1);
  while (!atomic_load(&p->stop) && (uint32_t)(atomic_load(&p->state) >> 32) == seen)
    pthread_cond_wait(&p->wake, &p->lock);
  atomic_fetch_sub(&p->sleeping, 1);
  pthread_mutex_unlock(&p->lock);
}

/* The main function of a worker thread. */
static void *worker_main(void *argument) {
  pool_worker *self = argument;
  pool *p = self->owner;
  uint32_t seen = 0;
  while (!atomic_load(&p->stop)) {
    int spins = 0;
    while (spins < SPINS && (uint32_t)(atomic_load(&p->state) >> 32) == seen) {
      pause_briefly();
      ++spins;
    }
    if (spins == SPINS) sleep_until_work(p, seen);
    seen = (uint32_t)(atomic_load(&p->state) >> 32);
    thread_pool_work(p, self->number);
  }
  return NULL;
}

void pool_run(pool *p, pool_task run, void *context, size_t n) {
  assert(p != NULL && run != NULL);
  if (p->threads == 1 || n <= 1) {
    for (size_t i = 0; i < n; ++i) run(context, i, 0);
    return;
  }
  if (n >= CLOSED) { /* more tasks than the lower half of `state` can count */
    for (size_t i = 0; i < n; ++i) run(context, i, 0);
    return;
  }
  const uint64_t number = (uint64_t)((uint32_t)(atomic_load(&p->state) >> 32) + 1) << 32;
  atomic_store(&p->state, number | CLOSED);
  atomic_store(&p->run, run);
  atomic_store(&p->context, context);
  atomic_store(&p->n, n);
  atomic_store(&p->done, 0);
  atomic_store(&p->state, number);
  if (atomic_load(&p->sleeping) > 0) {
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
  }
  thread_pool_work(p, 0);
  for (int spins = 0; atomic_load(&p->done) < n; ++spins) {
    if (spins < PATIENCE)
      pause_briefly();
    else
      sched_yield();
  }
}

size_t pool_usable_cores(void) {
#ifdef __EMSCRIPTEN__ /* a module of WebAssembly has one thread */
  return 1;
#else
  cpu_set_t set[8]; /* of 1,024 cores each; the call fails if the machine may have more */
  if (sched_getaffinity(0, sizeof set, set) != 0) return 1;
  const int n = CPU_COUNT_S(sizeof set, set);
  return n > 0 ? (size_t)n : 1;
#endif
}

gl_status pool_new(pool **out, size_t threads, gl_error *err) {
  *out = NULL;
  if (threads == 0) threads = pool_usable_cores();
  if (threads > 4096) return gl_fail(err, GL_EINPUT, "%zu threads; at most 4096", threads);
  pool *p = calloc(1, sizeof *p + threads * sizeof *p->worker);
  if (p == NULL) return gl_fail_memory(err, "threads");
  p->threads = threads;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->wake, NULL);
  for (size_t i = 1; i < threads; ++i) {
    p->worker[i] = (pool_worker){.owner = p, .number = i};
    if (pthread_create(&p->worker[i].thread, NULL, worker_main, &p->worker[i]) != 0) {
      pool_free(p);
      return gl_fail(err, GL_EIO, "thread %zu of %zu could not be started; ask for fewer threads",
                     i + 1, threads);
    }
    p->started = i;
  }
  *out = p;
  return GL_OK;
}

void pool_free(pool *p) {
  if (p == NULL) return;
  pthread_mutex_lock(&p->lock);
  atomic_store(&p->stop, 1);
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
  for (size_t i = 1; i <= p->started; ++i) pthread_join(p->worker[i].thread, NULL);
  pthread_cond_destroy(&p->wake);
  pthread_mutex_destroy(&p->lock);
  free(p);
}

size_t pool_threads(const pool *p) {
  return p->threads;
}

/* --- many small tasks --- */

/* Tasks are divided into runs of consecutive tasks. Number of runs per thread: several, because
 * tasks differ in duration. */
enum { RUNS = 8 };

typedef struct spread {
  pool_task run;
  void *context;
  size_t n, runs;
} spread;

/* The first task of run number k. */
static size_t start_of(const spread *s, size_t k) {
  const size_t each = s->n / s->runs, rest = s->n % s->runs;
  return k * each + (k < rest ? k : rest);
}

static void do_run(void *context, size_t k, size_t worker) {
  const spread *s = context;
  for (size_t i = start_of(s, k); i < start_of(s, k + 1); ++i) s->run(s->context, i, worker);
}

void pool_spread(pool *p, pool_task run, void *context, size_t n) {
  const size_t runs = p == NULL ? 1 : RUNS * p->threads;
  spread s = {.run = run, .context = context, .n = n, .runs = runs < n ? runs : n};
  if (p != NULL)
    pool_run(p, do_run, &s, s.runs);
  else
    for (size_t i = 0; i < n; ++i) run(context, i, 0);
}

/* --- tasks that may fail --- */

typedef struct trial {
  gl_status (*task)(void *context, size_t i, gl_error *err);
  void *context;
  _Atomic size_t failed; /* index of the lowest task that failed; n if none has */
  pthread_mutex_t lock;  /* protects the following members and changes of `failed` */
  gl_error error;
} trial;

/* Runs task i unless a task with a lower number has failed. Of several failures the one with the
 * lowest number is reported, so that the error does not depend on scheduling. */
static void try_one(void *context, size_t i, size_t worker) {
  trial *t = context;
  gl_error err = {.status = GL_OK};
  (void)worker;
  if (i > atomic_load(&t->failed) || t->task(t->context, i, &err) == GL_OK) return;
  pthread_mutex_lock(&t->lock);
  if (i < atomic_load(&t->failed)) {
    atomic_store(&t->failed, i);
    t->error = err;
  }
  pthread_mutex_unlock(&t->lock);
}

gl_status pool_try(size_t n, size_t threads,
                   gl_status (*task)(void *context, size_t i, gl_error *err), void *context,
                   gl_error *err) {
  trial t = {.task = task, .context = context, .failed = n};
  pool *p = NULL;
  if (threads > n) threads = n;
  if (threads < 1) threads = 1;
  gl_status status = pool_new(&p, threads, err);
  if (status != GL_OK) return status;
  pthread_mutex_init(&t.lock, NULL);
  pool_run(p, try_one, &t, n);
  pool_free(p);
  pthread_mutex_destroy(&t.lock);
  return t.failed == n ? GL_OK : gl_fail(err, t.error.status, "%s", t.error.text);
}

/* --- buffers of OpenBLAS --- */

/* Exist in OpenBLAS, but not in other BLAS libraries, where the weak symbols are NULL. */
extern void openblas_set_num_threads(int n) __attribute__((weak));
extern void *blas_memory_alloc(int position) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));

enum { BUFFER_MIB = 128 }; /* size of a buffer on x86-64, the maximum over its targets */
enum { SPARE_MIB = 1 };    /* alignment of a buffer */

static int has_room(void) {
  const size_t bytes = (size_t)(BUFFER_MIB + SPARE_MIB) << 20;
  void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return 0;
  munmap(room, bytes);
  return 1;
}

static gl_status blas_room_refuse(size_t threads, size_t missing, gl_error *err) {
  struct rlimit limit;
  unsigned long long mib = 0;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    mib = (unsigned long long)limit.rlim_cur >> 20;
  const size_t need = missing * (size_t)(BUFFER_MIB + SPARE_MIB);
  if (mib > 0)
    return gl_fail(err, GL_ENOMEM,
                   "matrix products need %zu MiB more of address space (%d MiB for each of %zu "
                   "threads), beyond the limit of %llu MiB (ulimit -v); raise it or use fewer "
                   "threads (--threads)",
                   need, BUFFER_MIB + SPARE_MIB, threads, mib);
  return gl_fail(err, GL_ENOMEM,
                 "matrix products need %zu MiB more of memory (%d MiB for each of %zu threads), "
                 "which the system refuses; see ulimit -d and vm.overcommit_memory, or use fewer "
                 "threads (--threads)",
                 need, BUFFER_MIB + SPARE_MIB, threads);
}

gl_status blas_reserve(size_t threads, gl_error *err) {
  if (openblas_set_num_threads != NULL) openblas_set_num_threads(1);
  if (blas_memory_alloc == NULL || blas_memory_free == NULL) return GL_OK;
  void **buffer = calloc(threads, sizeof *buffer);
  if (buffer == NULL) return gl_fail_memory(err, "the buffers of matrix products");
  size_t n = 0;
  while (n < threads && has_room()) buffer[n++] = blas_memory_alloc(0);
  for (size_t i = 0; i < n; ++i) blas_memory_free(buffer[i]);
  free(buffer);
  return n == threads ? GL_OK : blas_room_refuse(threads, threads - n, err);
}
