/* Tasks that may fail, shared by the threads of a pool. */
#include "core/base/thread_pool.h"
#include "tests/support/sanitized.h"
#include "tests/support/suite.h"

#include <cblas.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("core: tasks on threads");

enum { TASKS = 300 };

typedef struct work {
  _Atomic int runs[TASKS];
  size_t first_bad, step; /* tasks first_bad, first_bad + step ... fail; TASKS: none */
} work;

static gl_status run(void *context, size_t i, gl_error *err) {
  work *w = context;
  atomic_fetch_add(&w->runs[i], 1);
  if (i < w->first_bad || (i - w->first_bad) % w->step != 0) return GL_OK;
  return gl_fail(err, GL_EINPUT, "task %zu", i);
}

TEST(every_task_runs_once_on_any_number_of_threads) {
  for (size_t threads = 0; threads <= 4; ++threads) {
    work w = {.first_bad = TASKS, .step = 1};
    ASSERT_OK(pool_try(TASKS, threads, run, &w, &err));
    for (size_t i = 0; i < TASKS; ++i) CU_ASSERT_EQUAL(atomic_load(&w.runs[i]), 1);
    ASSERT_OK(pool_try(0, threads, run, &w, &err));
  }
}

TEST(the_lowest_failure_is_the_one_that_is_told) {
  for (size_t threads = 1; threads <= 4; ++threads)
    for (int again = 0; again < 20; ++again) {
      work w = {.first_bad = 37, .step = 3};
      gl_error err = {.status = GL_OK};
      CU_ASSERT_EQUAL(pool_try(TASKS, threads, run, &w, &err), GL_EINPUT);
      CU_ASSERT_STRING_EQUAL(err.text, "task 37");
      for (size_t i = 0; i <= 37; ++i) CU_ASSERT_EQUAL(atomic_load(&w.runs[i]), 1);
    }
}

static void count(void *context, size_t i, size_t worker) {
  work *w = context;
  (void)worker;
  atomic_fetch_add(&w->runs[i], 1);
}

TEST(small_tasks_are_done_once_each_with_a_pool_or_without) {
  static const size_t numbers[] = {0, 1, 2, 15, 16, 17, 31, 33, TASKS};
  for (size_t threads = 0; threads <= 5; ++threads)
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; ++k) {
      work w = {.first_bad = TASKS, .step = 1};
      pool *p = NULL;
      if (threads > 0) CU_ASSERT_EQUAL_FATAL(pool_new(&p, threads, NULL), GL_OK);
      pool_spread(p, count, &w, numbers[k]);
      for (size_t i = 0; i < TASKS; ++i) CU_ASSERT_EQUAL(atomic_load(&w.runs[i]), i < numbers[k]);
      pool_free(p);
    }
}

/* --- OpenBLAS's working memory under a limit --- */

SUITE("core: room for matrix products");

enum { N = 300 };

/* Bytes of this process's address space. */
static rlim_t address_space(void) {
  unsigned long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f == NULL || fscanf(f, "%lu", &pages) != 1) abort();
  fclose(f);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static int multiplies(void) {
  static double a[N * N], b[N * N], c[N * N];
  for (size_t i = 0; i < N * N; ++i) a[i] = b[i] = 1;
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 0, c, N);
  return c[N * N - 1] == N;
}

/* In a process of its own that has so many MiB left: 0 reserved and multiplied, 1 refused as it
 * should be, others are wrong. alarm() ends one that hangs. */
static int reserve_with(size_t mib, size_t threads) {
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(120);
    const rlim_t limit = address_space() + ((rlim_t)mib << 20);
    const struct rlimit both = {limit, limit};
    gl_error err = {0};
    if (setrlimit(RLIMIT_AS, &both) != 0) _exit(10);
    const gl_status status = blas_reserve(threads, &err);
    if (status == GL_OK) _exit(multiplies() ? 0 : 11);
    const int told = strstr(err.text, "ulimit -v") != NULL && strstr(err.text, "--threads") != NULL;
    _exit(status == GL_ENOMEM && told ? 1 : 12);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST(what_does_not_fit_is_refused_and_what_fits_computes) {
  if (SANITIZED) SKIP("a sanitizer takes the address space");
  CU_ASSERT_EQUAL(reserve_with(64, 1), 1);
  CU_ASSERT_EQUAL(reserve_with(200, 1), 0);
  CU_ASSERT_EQUAL(reserve_with(200, 4), 1);
  CU_ASSERT_EQUAL(reserve_with(800, 4), 0);
}

TEST(without_a_limit_it_may_be_asked_again_and_again) {
  for (int i = 0; i < 100; ++i) ASSERT_OK(blas_reserve(2, &err));
  CU_ASSERT(multiplies());
}
