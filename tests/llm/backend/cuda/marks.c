/* Times of the CUDA backend's operations, between events; on a device or on the emulated one. */
#include "llm/backend/open/open.h"
#include "llm/backend/profiler.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("llm: cuda times");

enum { NUMBERS = 1000, CALLS = 1100 }; /* more calls than there are marks */

/* One watched backend and memory of it; 0 where there is no device. */
static int begin(backend **b, backend_profile **w, float **x, profile_kind kind) {
  gl_error err = {.status = GL_OK};
  if (backend_new(b, BACKEND_CUDA, NUMBER_F32, 0, &err) != GL_OK) {
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no CUDA device"));
    return 0;
  }
  CU_ASSERT_EQUAL_FATAL(backend_profile_begin(w, *b, kind, &err), GL_OK);
  *x = (*b)->ops->allocate(*b, 2 * NUMBERS * sizeof **x);
  return 1;
}

static void end(backend *b, backend_profile *w, float *x) {
  ASSERT_OK(b->ops->status(b, &err));
  b->ops->release(b, x);
  backend_profile_end(w);
  backend_free(b);
}

TEST(operations_have_times) {
  backend *b;
  backend_profile *w;
  float *x;
  backend_work work[BACKEND_OPERATIONS];
  if (!begin(&b, &w, &x, PROFILE_TIMES)) SKIP("no CUDA device");
  for (int i = 0; i < CALLS; ++i) b->ops->copy(b, x + NUMBERS, x, NUMBERS * sizeof *x);
  CU_ASSERT_EQUAL(b->ops->sum_squares(b, x, NUMBERS), 0);
  CU_ASSERT_EQUAL(backend_profile_read(w, work), 2);
  const backend_work *copy = &work[strcmp(work[0].operation, "copy") != 0];
  CU_ASSERT_STRING_EQUAL(copy->operation, "copy");
  CU_ASSERT_EQUAL(copy->calls, CALLS);
  CU_ASSERT_EQUAL(copy->bytes, 2. * CALLS * NUMBERS * sizeof *x);
  CU_ASSERT(copy->seconds > 0);
  CU_ASSERT(copy->seconds < 60);
  CU_ASSERT(backend_profile_peak(w) >= 2 * NUMBERS * sizeof *x);
  end(b, w, x);
}

/* What is recorded is not run, and has no time; the graph is one operation. */
TEST(a_graph_is_one_operation) {
  backend *b;
  backend_profile *w;
  float *x;
  backend_work work[BACKEND_OPERATIONS];
  if (!begin(&b, &w, &x, PROFILE_TIMES)) SKIP("no CUDA device");
  b->ops->graph_begin(b);
  b->ops->copy(b, x + NUMBERS, x, NUMBERS * sizeof *x);
  backend_graph *g = b->ops->graph_end(b);
  CU_ASSERT_PTR_NOT_NULL_FATAL(g);
  for (int i = 0; i < 5; ++i) b->ops->graph_run(b, g);
  CU_ASSERT_EQUAL_FATAL(backend_profile_read(w, work), 1);
  CU_ASSERT_STRING_EQUAL(work[0].operation, "graph_run");
  CU_ASSERT_EQUAL(work[0].calls, 5);
  b->ops->graph_free(b, g);
  end(b, w, x);
}

TEST(without_recording_there_are_no_graphs) {
  backend *b;
  backend_profile *w;
  float *x;
  if (!begin(&b, &w, &x, PROFILE_TIMES_UNRECORDED)) SKIP("no CUDA device");
  CU_ASSERT_PTR_NULL(b->ops->graph_begin);
  end(b, w, x);
}
