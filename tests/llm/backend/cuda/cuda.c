/* The CUDA backend against the CPU's: every operation. In build/gepolab-tests the backend is the
 * real one and needs a device; in build/tests-emulated the same file runs the same kernels on the
 * host. */
#include "llm/backend/open/open.h"
#include "tests/support/llm_backend_cases.h"
#include "tests/support/suite.h"

#include <string.h>

/* Makes a CUDA backend of that type and a CPU backend in double precision; 0 where there is no
 * device. */
static int both(backend **cuda, backend **cpu, number_type type) {
  gl_error err = {.status = GL_OK};
  if (backend_new(cuda, BACKEND_CUDA, type, 0, &err) != GL_OK) {
    CU_ASSERT_EQUAL(err.status, GL_EIO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no CUDA device"));
    return 0;
  }
  CU_ASSERT_EQUAL_FATAL(backend_new(cpu, BACKEND_CPU, NUMBER_F64, 1, &err), GL_OK);
  return 1;
}

static void float32_agrees_with_the_cpu_within_1e_4(void) {
  backend *cuda, *cpu;
  if (!both(&cuda, &cpu, NUMBER_F32)) SKIP("no CUDA device");
  CU_ASSERT_EQUAL(compare_backends(cuda, cpu, 1e-4), 0);
  backend_free(cpu);
  backend_free(cuda);
}

static void bfloat16_agrees_with_the_cpu_within_2e_2(void) {
  backend *cuda, *cpu;
  if (!both(&cuda, &cpu, NUMBER_BF16)) SKIP("no CUDA device");
  CU_ASSERT_EQUAL(compare_backends(cuda, cpu, 2e-2), 0);
  backend_free(cpu);
  backend_free(cuda);
}

static void two_runs_give_the_same_bits(void) {
  static const number_type types[] = {NUMBER_F32, NUMBER_BF16};
  for (size_t i = 0; i < 2; ++i) {
    backend *first, *second, *cpu;
    if (!both(&first, &cpu, types[i])) SKIP("no CUDA device");
    backend_free(cpu);
    CU_ASSERT_FATAL(both(&second, &cpu, types[i]));
    CU_ASSERT_EQUAL(compare_backends(first, second, 0), 0);
    backend_free(cpu);
    backend_free(second);
    backend_free(first);
  }
}

static void double_precision_is_refused(void) {
  backend *b;
  gl_error err = {.status = GL_OK};
  gl_status status = backend_new(&b, BACKEND_CUDA, NUMBER_F64, 0, &err);
  CU_ASSERT_PTR_NULL(b);
  CU_ASSERT(status == GL_EINPUT || strstr(err.text, "without nvcc") != NULL);
}

SUITE(cuda, "llm: cuda", TEST(float32_agrees_with_the_cpu_within_1e_4),
      TEST(bfloat16_agrees_with_the_cpu_within_2e_2), TEST(two_runs_give_the_same_bits),
      TEST(double_precision_is_refused));
