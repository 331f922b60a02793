/* Sums over two emulated devices by the library that stands for NCCL: whole, in parts, and failing
 * at each call that can fail. */
#include "emulate_control.h"
#include "llm/backend/open/open.h"
#include "llm/learner/learner.h"
#include "nccl.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

SUITE("llm: emulated nccl");

enum { RANKS = 2 };

typedef struct pair {
  rank_threads *threads;
  backend *b[RANKS];
  float *x[RANKS];
  size_t n;
  collective *sums;
} pair;

/* A function of the library, which is open since the first collective was made. */
static void *of_library(const char *name) {
  void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  CU_ASSERT_PTR_NOT_NULL_FATAL(library);
  void *f = dlsym(library, name);
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  return f;
}
static void fail(enum emulate_nccl_failure what, int rank) {
  void (*f)(enum emulate_nccl_failure, int);
  *(void **)&f = of_library("emulate_nccl_fail");
  f(what, rank);
}
static size_t number(const char *name) {
  size_t (*f)(void);
  *(void **)&f = of_library(name);
  return f();
}

/* Numbers (i + 1) (rank + 1) at the ends of the array, zero between. */
enum { ENDS = 5 };
static gl_status make(void *context, size_t rank, gl_error *err) {
  pair *p = context;
  float end[ENDS];
  gl_status status =
      backend_new_at(&p->b[rank], BACKEND_CUDA, NUMBER_F32, (backend_place){rank, RANKS}, 1, err);
  if (status != GL_OK) return status;
  backend *b = p->b[rank];
  p->x[rank] = b->ops->allocate(b, p->n * sizeof *end);
  for (int i = 0; i < ENDS; ++i) end[i] = (float)(i + 1) * (float)(rank + 1);
  b->ops->upload(b, p->x[rank], end, sizeof end);
  b->ops->upload(b, p->x[rank] + p->n - ENDS, end, sizeof end);
  return b->ops->status(b, err);
}
static gl_status end(void *context, size_t rank, gl_error *err) {
  pair *p = context;
  (void)err;
  if (p->b[rank] == NULL) return GL_OK;
  p->b[rank]->ops->release(p->b[rank], p->x[rank]);
  backend_free(p->b[rank]);
  return GL_OK;
}
static gl_status sum(void *context, size_t rank, gl_error *err) {
  pair *p = context;
  return collective_sum(p->sums, rank, p->x[rank], p->n, err);
}
/* Whether both ends are three times those of rank 0. */
static gl_status check(void *context, size_t rank, gl_error *err) {
  pair *p = context;
  backend *b = p->b[rank];
  float got[2 * ENDS];
  b->ops->download(b, got, p->x[rank], sizeof got / 2);
  b->ops->download(b, got + ENDS, p->x[rank] + p->n - ENDS, sizeof got / 2);
  for (int i = 0; i < 2 * ENDS; ++i) CU_ASSERT_EQUAL(got[i], 3.0f * (float)(i % ENDS + 1));
  return b->ops->status(b, err);
}

/* Two devices with arrays of n numbers. */
static pair start(size_t n) {
  pair p = {.n = n};
  gl_error err = {.status = GL_OK};
  CU_ASSERT_EQUAL_FATAL(rank_threads_new(&p.threads, RANKS, &err), GL_OK);
  CU_ASSERT_EQUAL_FATAL(rank_threads_run(p.threads, make, &p, &err), GL_OK);
  return p;
}
static void connect(pair *p) {
  ASSERT_OK(collective_new(&p->sums, p->b, RANKS, &err));
  CU_ASSERT_STRING_EQUAL(collective_name(p->sums), "NCCL");
  rank_threads_set_sums(p->threads, p->sums);
}
static void finish(pair *p) {
  gl_error err = {.status = GL_OK};
  collective_free(p->sums);
  rank_threads_set_sums(p->threads, NULL);
  CU_ASSERT_EQUAL(rank_threads_run(p->threads, end, p, &err), GL_OK);
  rank_threads_free(p->threads);
  CU_ASSERT_EQUAL(number("emulate_nccl_communicators"), 0);
}

TEST(two_devices_sum_through_the_library) {
  pair p = start(1000);
  connect(&p);
  const size_t before = number("emulate_nccl_sums");
  ASSERT_OK(rank_threads_run(p.threads, sum, &p, &err));
  CU_ASSERT_EQUAL(number("emulate_nccl_sums"), before + 1);
  ASSERT_OK(rank_threads_run(p.threads, check, &p, &err));
  finish(&p);
}

/* One call takes 64 Mi numbers. */
TEST(a_large_array_takes_several_calls) {
  pair p = start(((size_t)64 << 20) + 3);
  connect(&p);
  const size_t before = number("emulate_nccl_sums");
  ASSERT_OK(rank_threads_run(p.threads, sum, &p, &err));
  CU_ASSERT_EQUAL(number("emulate_nccl_sums"), before + 2);
  ASSERT_OK(rank_threads_run(p.threads, check, &p, &err));
  finish(&p);
}

TEST(communicators_that_cannot_be_made_are_an_error) {
  pair p = start(10);
  connect(&p);
  collective_free(p.sums);
  rank_threads_set_sums(p.threads, NULL);
  gl_error err = {.status = GL_OK};
  fail(NCCL_FAILS_INIT, 0);
  CU_ASSERT_EQUAL(collective_new(&p.sums, p.b, RANKS, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "ncclCommInitAll failed for 2 devices: internal error"));
  CU_ASSERT_PTR_NULL(p.sums);
  fail(NCCL_FAILS_NOT, 0);
  finish(&p);
}

/* The rank whose call fails is named; the other one, whose stream waits for it, ends too. Later
 * sums say that they cannot be made. */
TEST(a_failing_rank_ends_the_sum_of_both) {
  static const struct {
    enum emulate_nccl_failure what;
    const char *why;
  } cases[] = {{NCCL_FAILS_CALL, "internal error"}, {NCCL_FAILS_LATER, "remote process exited"}};
  for (size_t i = 0; i < 2 * RANKS; ++i) {
    const size_t rank = i / 2;
    char named[64];
    gl_error err = {.status = GL_OK}, again = {.status = GL_OK};
    pair p = start(10);
    connect(&p);
    fail(cases[i % 2].what, (int)rank);
    CU_ASSERT_EQUAL(rank_threads_run(p.threads, sum, &p, &err), GL_EIO);
    snprintf(named, sizeof named, "ncclAllReduce failed on rank %zu of 2", rank);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, named));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i % 2].why));
    fail(NCCL_FAILS_NOT, 0);
    CU_ASSERT_EQUAL(rank_threads_run(p.threads, sum, &p, &again), GL_EIO);
    CU_ASSERT_PTR_NOT_NULL(strstr(again.text, "an earlier sum over devices failed"));
    finish(&p);
  }
}
