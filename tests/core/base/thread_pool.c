/* Tasks that may fail, shared by the threads of a pool. */
#include "core/base/thread_pool.h"
#include "tests/support/suite.h"

#include <stdatomic.h>
#include <string.h>

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

static void every_task_runs_once_on_any_number_of_threads(void) {
  for (size_t threads = 0; threads <= 4; ++threads) {
    work w = {.first_bad = TASKS, .step = 1};
    gl_error err = {.status = GL_OK};
    CU_ASSERT_EQUAL(pool_try(TASKS, threads, run, &w, &err), GL_OK);
    for (size_t i = 0; i < TASKS; ++i) CU_ASSERT_EQUAL(atomic_load(&w.runs[i]), 1);
    CU_ASSERT_EQUAL(pool_try(0, threads, run, &w, &err), GL_OK);
  }
}

static void the_lowest_failure_is_the_one_that_is_told(void) {
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

static void small_tasks_are_done_once_each_with_a_pool_or_without(void) {
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

SUITE(base_thread_pool, "core: tasks on threads",
      TEST(small_tasks_are_done_once_each_with_a_pool_or_without),
      TEST(every_task_runs_once_on_any_number_of_threads),
      TEST(the_lowest_failure_is_the_one_that_is_told));
