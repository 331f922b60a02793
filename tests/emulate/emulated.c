/* What only the emulated device can show of the CUDA backend: recorded graphs that outlive their
 * scratch memory, memory that runs out, failures that are kept, memory that is given back. */
#include "emulate_control.h"
#include "llm/backend/open/open.h"
#include "tests/support/llm_backend_cases.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: emulated cuda");

static backend *device(number_type type) {
  backend *b;
  gl_error err = {.status = GL_OK};
  gl_status status = backend_new(&b, BACKEND_AUTO, type, 0, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  CU_ASSERT_EQUAL_FATAL(b->kind, BACKEND_CUDA);
  return b;
}

static float *numbers(backend *b, const float *host, size_t n) {
  float *memory = b->ops->allocate(b, n * sizeof *memory);
  if (host != NULL) b->ops->upload(b, memory, host, n * sizeof *memory);
  return memory;
}

TEST(kernels_run_and_their_memory_is_given_back) {
  const size_t before = emulate_allocations();
  const uint64_t threads = emulate_threads_run();
  backend *b = device(NUMBER_F32);
  float *x = numbers(b, (const float[3]){3, 4, 12}, 3);
  CU_ASSERT_EQUAL(b->ops->sum_squares(b, x, 3), 169);
  CU_ASSERT(emulate_threads_run() > threads);
  size_t total, available;
  b->ops->memory(b, &total, &available);
  CU_ASSERT(total > available && available > 0);
  b->ops->release(b, x);
  b->ops->release(b, NULL);
  backend_free(b);
  CU_ASSERT_EQUAL(emulate_allocations(), before);
}

TEST(memory_that_runs_out_is_told_with_what_to_lower) {
  backend *b = device(NUMBER_BF16);
  gl_error err = {.status = GL_OK};
  emulate_memory_limit((size_t)8 << 20);
  void *first = b->ops->allocate(b, (size_t)5 << 20);
  CU_ASSERT_PTR_NOT_NULL(first);
  CU_ASSERT_PTR_NULL(b->ops->allocate(b, (size_t)5 << 20));
  CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_ENOMEM);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "5.0 MiB"));
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "micro_batch"));
  b->ops->release(b, first);
  backend_free(b);
  emulate_memory_limit(SIZE_MAX);
}

/* Where scratch memory runs out the operation stops, and later operations do nothing. */
TEST(the_first_failure_is_kept) {
  backend *b = device(NUMBER_F32);
  gl_error err = {.status = GL_OK}, again = {.status = GL_OK};
  float *x = numbers(b, (const float[2]){1, 2}, 2);
  size_t total, available;
  b->ops->memory(b, &total, &available);
  emulate_memory_limit(total - available + 8192);
  void *big = numbers(b, NULL, 1);
  b->ops->norm_backward(b, big, big, big, big, big, big, 1000, 1000);
  emulate_memory_limit(SIZE_MAX);
  CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_ENOMEM);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "norm_backward"));
  float host[2] = {7, 7};
  b->ops->download(b, host, x, sizeof host);
  CU_ASSERT_EQUAL(host[0], 7);
  CU_ASSERT_PTR_NULL(b->ops->allocate(b, 8));
  CU_ASSERT_EQUAL(b->ops->status(b, &again), GL_ENOMEM);
  CU_ASSERT_STRING_EQUAL(err.text, again.text);
  b->ops->release(b, big);
  b->ops->release(b, x);
  backend_free(b);
}

TEST(heads_too_large_are_refused) {
  backend *b = device(NUMBER_F32);
  gl_error err = {.status = GL_OK};
  float *x = numbers(b, NULL, 4096);
  const int32_t place[2] = {0, 1};
  int32_t *start = b->ops->allocate(b, sizeof place);
  b->ops->upload(b, start, place, sizeof place);
  b->ops->attention(b, x, x, x, x, (packed_rows){1, 1, 1, start}, (head_shape){1, 1, 258});
  CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_EINPUT);
  b->ops->release(b, start);
  b->ops->release(b, x);
  backend_free(b);
}

/* A recorded norm and its backward run on other numbers, after another operation has needed more
 * scratch memory than the graph was recorded with. */
TEST(a_recorded_graph_runs_again_on_other_numbers) {
  enum { ROWS = 3, WIDTH = 40, N = ROWS * WIDTH };
  backend *b = device(NUMBER_F32);
  float host[N], got[2][N], weight_gradient[2][WIDTH];
  for (int i = 0; i < N; ++i) host[i] = (float)((i * 37 + 11) % 23 - 11);
  float *in = numbers(b, host, N), *weight = numbers(b, host, WIDTH), *out = numbers(b, NULL, N);
  float *rstd = numbers(b, NULL, ROWS), *dweight = numbers(b, NULL, WIDTH);
  b->ops->graph_begin(b);
  b->ops->zero(b, dweight, WIDTH * sizeof *dweight);
  b->ops->norm(b, out, rstd, NULL, in, NULL, weight, ROWS, WIDTH, 1e-6);
  b->ops->norm_backward(b, out, dweight, in, in, rstd, weight, ROWS, WIDTH);
  backend_graph *g = b->ops->graph_end(b);
  CU_ASSERT_PTR_NOT_NULL_FATAL(g);
  float *wide = numbers(b, NULL, 3 * 4 * 5000), *read = wide + 2 * 4 * 5000;
  b->ops->norm_backward(b, wide, wide + 4 * 5000, read, read, read, read, 4, 5000);
  for (int i = 0; i < N; ++i) host[i] = (float)((i * 7 + 5) % 19 - 9);
  b->ops->upload(b, in, host, sizeof host);
  b->ops->graph_run(b, g);
  b->ops->download(b, got[0], out, sizeof got[0]);
  b->ops->download(b, weight_gradient[0], dweight, sizeof weight_gradient[0]);
  b->ops->zero(b, dweight, WIDTH * sizeof *dweight);
  b->ops->norm(b, out, rstd, NULL, in, NULL, weight, ROWS, WIDTH, 1e-6);
  b->ops->norm_backward(b, out, dweight, in, in, rstd, weight, ROWS, WIDTH);
  b->ops->download(b, got[1], out, sizeof got[1]);
  b->ops->download(b, weight_gradient[1], dweight, sizeof weight_gradient[1]);
  CU_ASSERT_EQUAL(memcmp(got[0], got[1], sizeof got[0]), 0);
  CU_ASSERT_EQUAL(memcmp(weight_gradient[0], weight_gradient[1], sizeof weight_gradient[0]), 0);
  ASSERT_OK(b->ops->status(b, &err));
  b->ops->graph_free(b, g);
  float *all[] = {in, weight, out, rstd, dweight, wide};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) b->ops->release(b, all[i]);
  backend_free(b);
}

TEST(an_upload_into_a_recording_is_an_error) {
  backend *b = device(NUMBER_F32);
  gl_error err = {.status = GL_OK};
  float *x = numbers(b, NULL, 1);
  b->ops->graph_begin(b);
  b->ops->upload(b, x, (const float[1]){1}, sizeof *x);
  CU_ASSERT_PTR_NULL(b->ops->graph_end(b));
  CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_EINTERNAL);
  b->ops->release(b, x);
  backend_free(b);
}

/* Copies pass through two pinned buffers of 4 MiB; these are larger than both together. */
TEST(large_copies_arrive_whole) {
  const size_t n = ((size_t)9 << 20) + 3;
  backend *b = device(NUMBER_F32);
  unsigned char *host = malloc(2 * n), *back = host + n;
  for (size_t i = 0; i < n; ++i) host[i] = (unsigned char)(i * 2654435761u >> 13);
  void *memory = b->ops->allocate(b, n);
  b->ops->upload(b, memory, host, n);
  b->ops->download(b, back, memory, n);
  CU_ASSERT_EQUAL(memcmp(host, back, n), 0);
  b->ops->release(b, memory);
  backend_free(b);
  free(host);
}

/* Attention over sequences of heads of 128, which takes more shared memory than a kernel has
 * unasked as soon as its static shared memory counts. */
static void attend(backend *b) {
  enum { ROWS = 40, DIM = 128 };
  const int32_t place[2] = {0, ROWS};
  const size_t bytes = ROWS * DIM * sizeof(float);
  void *qk = b->ops->allocate(b, 2 * bytes), *qkv = b->ops->allocate(b, 3 * bytes);
  void *out = b->ops->allocate(b, bytes), *lse = b->ops->allocate(b, bytes);
  int32_t *start = b->ops->allocate(b, sizeof place);
  b->ops->upload(b, start, place, sizeof place);
  b->ops->attention(b, out, lse, qk, qkv, (packed_rows){ROWS, 1, ROWS, start},
                    (head_shape){1, 1, DIM});
  void *all[] = {qk, qkv, out, lse, start};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) b->ops->release(b, all[i]);
}

TEST(static_shared_memory_counts_and_is_asked_for_once) {
  emulate_static_shared((size_t)47 << 10);
  backend *b = device(NUMBER_F32);
  const uint64_t before = emulate_shared_asked();
  attend(b);
  const uint64_t asked = emulate_shared_asked() - before;
  CU_ASSERT(asked > 0);
  attend(b);
  CU_ASSERT_EQUAL(emulate_shared_asked() - before, asked);
  ASSERT_OK(b->ops->status(b, &err));
  backend_free(b);
  emulate_static_shared(0);
}

TEST(more_shared_memory_than_a_block_can_have_is_told) {
  gl_error err = {.status = GL_OK};
  emulate_static_shared((size_t)226 << 10);
  backend *b = device(NUMBER_F32);
  attend(b);
  CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "shared memory"));
  backend_free(b);
  emulate_static_shared(0);
}
