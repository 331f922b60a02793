/* The profile of a backend's operations, on the CPU: calls, arithmetic, bytes, time, memory, and
 * that operations are the backend's own again at its end. */
#include "llm/backend/profiler.h"
#include "llm/backend/open/open.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("llm: backend profiled");

static const backend_work *work_named(const backend_work *work, size_t n, const char *name) {
  for (size_t i = 0; i < n; ++i)
    if (strcmp(work[i].operation, name) == 0) return &work[i];
  return NULL;
}

static backend *cpu(void) {
  backend *b;
  ASSERT_OK(backend_new(&b, BACKEND_CPU, NUMBER_F32, 1, &err));
  return b;
}

static backend_profile *profiled(backend *b, profile_kind kind) {
  backend_profile *w;
  ASSERT_OK(backend_profile_begin(&w, b, kind, &err));
  return w;
}

TEST(operations_are_counted_with_their_arithmetic) {
  backend *b = cpu();
  backend_profile *w = profiled(b, PROFILE_TIMES);
  backend_work work[BACKEND_OPERATIONS];
  float *x = b->ops->allocate(b, 6 * sizeof *x), *y = b->ops->allocate(b, 8 * sizeof *y);
  float *z = b->ops->allocate(b, 12 * sizeof *z);
  b->ops->upload(b, x, (const float[6]){1, 2, 3, 4, 5, 6}, 6 * sizeof *x);
  b->ops->upload(b, y, (const float[8]){1, 0, 0, 1, 1, 1, 2, 0}, 8 * sizeof *y);
  for (int i = 0; i < 3; ++i) b->ops->product(b, z, x, y, 3, 4, 2, 0);
  CU_ASSERT_EQUAL(z[3], 2); /* 1 * 2 + 2 * 0 */
  CU_ASSERT_EQUAL(b->ops->sum_squares(b, x, 2), 5);
  const size_t n = backend_profile_read(w, work);
  CU_ASSERT_EQUAL(n, 3);
  const backend_work *product = work_named(work, n, "product");
  CU_ASSERT_PTR_NOT_NULL_FATAL(product);
  CU_ASSERT_EQUAL(product->calls, 3);
  CU_ASSERT_EQUAL(product->flops, 3 * 2 * 3 * 4 * 2);
  CU_ASSERT_EQUAL(product->bytes, 3 * 4 * (6 + 8 + 12));
  CU_ASSERT(product->seconds > 0);
  CU_ASSERT_EQUAL(work_named(work, n, "upload")->bytes, 4 * (6 + 8));
  CU_ASSERT_EQUAL(work_named(work, n, "sum_squares")->calls, 1);
  for (size_t i = 1; i < n; ++i) CU_ASSERT(work[i - 1].seconds >= work[i].seconds);
  backend_profile_clear(w);
  CU_ASSERT_EQUAL(backend_profile_read(w, work), 0);
  b->ops->release(b, x);
  b->ops->release(b, y);
  b->ops->release(b, z);
  backend_profile_end(w);
  backend_free(b);
}

/* Two sequences of three: each row has two pairs on average. */
TEST(attention_counts_pairs_of_its_sequences) {
  backend *b = cpu();
  backend_profile *w = profiled(b, PROFILE_TIMES);
  backend_work work[BACKEND_OPERATIONS];
  static const int32_t start[] = {0, 3, 6};
  const packed_rows rows = {6, 2, 3, start};
  const head_shape h = {2, 1, 4};
  float qk[6 * 12] = {0}, qkv[6 * 16] = {0}, out[6 * 8], lse[6 * 2];
  b->ops->attention(b, out, lse, qk, qkv, rows, h);
  CU_ASSERT_EQUAL_FATAL(backend_profile_read(w, work), 1);
  CU_ASSERT_STRING_EQUAL(work[0].operation, "attention");
  CU_ASSERT_EQUAL(work[0].flops, 4 * 12 * 8);
  backend_profile_end(w);
  backend_free(b);
}

TEST(memory_alone_leaves_operations_as_they_are) {
  backend *b = cpu();
  const backend_ops *own = b->ops;
  backend_profile *w = profiled(b, PROFILE_MEMORY);
  backend_work work[BACKEND_OPERATIONS];
  CU_ASSERT(b->ops != own);
  CU_ASSERT(b->ops->product == own->product);
  void *x = b->ops->allocate(b, 1000);
  b->ops->zero(b, x, 1000);
  b->ops->release(b, x);
  CU_ASSERT_EQUAL(backend_profile_read(w, work), 0);
  CU_ASSERT(backend_profile_peak(w) > 0);
  backend_profile_end(w);
  CU_ASSERT_PTR_EQUAL(b->ops, own);
  backend_free(b);
}
