/* The CPU backend: its number types, instruction sets and threads against each other. */
#include "llm/backend_cpu.h"
#include "tests/llm_backend_cases.h"
#include "tests/suite.h"

#include <string.h>

static backend *made(number_type type, size_t threads, cpu_variant variant) {
  backend *b = NULL;
  gl_error err = {.status = GL_OK};
  CU_ASSERT_EQUAL_FATAL(backend_cpu_new_variant(&b, type, threads, variant, &err), GL_OK);
  return b;
}

static void compare(number_type type, size_t threads, cpu_variant variant, number_type reference,
                    size_t reference_threads, cpu_variant reference_variant, double tolerance) {
  backend *a = made(type, threads, variant);
  backend *b = made(reference, reference_threads, reference_variant);
  CU_ASSERT_EQUAL(compare_backends(a, b, tolerance), 0);
  backend_free(a);
  backend_free(b);
}

/* Sums of up to 1100 terms in float32, relative to the largest number of the result. */
static void float_is_close_to_double(void) {
  compare(NUMBER_F32, 2, CPU_BEST, NUMBER_F64, 1, CPU_BEST, 3e-6);
  compare(NUMBER_F32, 1, CPU_GENERIC, NUMBER_F64, 1, CPU_BEST, 3e-6);
}

static void instruction_sets_agree(void) {
  compare(NUMBER_F64, 1, CPU_BEST, NUMBER_F64, 1, CPU_GENERIC, 1e-14);
  compare(NUMBER_F32, 1, CPU_BEST, NUMBER_F32, 1, CPU_GENERIC, 3e-6);
}

static void threads_do_not_change_a_bit(void) {
  compare(NUMBER_F32, 2, CPU_BEST, NUMBER_F32, 1, CPU_BEST, 0);
  compare(NUMBER_F32, 3, CPU_BEST, NUMBER_F32, 1, CPU_BEST, 0);
  compare(NUMBER_F64, 3, CPU_BEST, NUMBER_F64, 1, CPU_BEST, 0);
  compare(NUMBER_F32, 3, CPU_GENERIC, NUMBER_F32, 1, CPU_GENERIC, 0);
}

static void a_wrong_type_is_refused(void) {
  backend *b = NULL;
  gl_error err = {.status = GL_OK};
  CU_ASSERT_EQUAL(backend_new(&b, BACKEND_CPU, NUMBER_BF16, 1, &err), GL_EINPUT);
  CU_ASSERT_PTR_NULL(b);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "float32"));
}

static void automatic_finds_a_backend(void) {
  backend *b = NULL;
  gl_error err = {.status = GL_OK};
  CU_ASSERT_EQUAL_FATAL(backend_new(&b, BACKEND_AUTO, NUMBER_F32, 1, &err), GL_OK);
  CU_ASSERT_PTR_NOT_NULL(strstr(b->device, b->kind == BACKEND_CPU ? "1 thread" : ""));
  size_t total, available;
  b->ops->memory(b, &total, &available);
  CU_ASSERT(available > 0 && available <= total);
  backend_free(b);
}

/* The first failure stays, and what follows does nothing. */
static void short_memory_is_told_once(void) {
  backend *b = made(NUMBER_F32, 1, CPU_BEST);
  gl_error err = {.status = GL_OK}, again = {.status = GL_OK};
  float *x = b->ops->allocate(b, 4 * sizeof *x);
  CU_ASSERT_PTR_NOT_NULL_FATAL(x);
  CU_ASSERT_PTR_NULL(b->ops->allocate(b, SIZE_MAX - 4096));
  CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_ENOMEM);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "micro_batch"));
  CU_ASSERT_PTR_NULL(b->ops->allocate(b, 16));
  b->ops->product(b, NULL, x, x, 2, 2, 2, 0);
  b->ops->adamw(b, NULL, NULL, x, NULL, NULL, 4, &(adamw_step){0});
  CU_ASSERT_EQUAL(b->ops->status(b, &again), GL_ENOMEM);
  CU_ASSERT_STRING_EQUAL(err.text, again.text);
  b->ops->release(b, x);
  backend_free(b);
}

SUITE(llm_backend, "llm_backend", TEST(float_is_close_to_double), TEST(instruction_sets_agree),
      TEST(threads_do_not_change_a_bit), TEST(a_wrong_type_is_refused),
      TEST(automatic_finds_a_backend), TEST(short_memory_is_told_once));
