/* The CUDA backend against the CPU's: every operation. In build/gepolab-tests the backend is the
 * real one and needs a device; in build/tests-emulated the same file runs the same kernels on the
 * host. */
#include "llm/backend/open/open.h"
#include "tests/support/llm_backend_cases.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("llm: cuda");

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

/* All cases on the device against the CPU, and once more on the device, bit by bit. 0 where there
 * is no device. */
static int check_cases(number_type type, double tolerance) {
  backend *cuda, *again, *cpu;
  gl_error err = {.status = GL_OK};
  if (!both(&cuda, &cpu, type)) return 0;
  CU_ASSERT_EQUAL_FATAL(backend_new(&again, BACKEND_CUDA, type, 0, &err), GL_OK);
  case_results *first = case_results_new(cuda, type, cuda->master),
               *second = case_results_new(again, type, cuda->master),
               *reference = case_results_new(cpu, type, cuda->master);
  CU_ASSERT_EQUAL(compare_results(first, reference, tolerance), 0);
  CU_ASSERT_EQUAL(compare_results(first, second, 0), 0);
  case_results_free(first);
  case_results_free(second);
  case_results_free(reference);
  backend_free(cpu);
  backend_free(again);
  backend_free(cuda);
  return 1;
}

TEST(float32_agrees_with_the_cpu_within_1e_4_and_has_the_same_bits_again) {
  if (!check_cases(NUMBER_F32, 1e-4)) SKIP("no CUDA device");
}

TEST(bfloat16_agrees_with_the_cpu_within_2e_2_and_has_the_same_bits_again) {
  if (!check_cases(NUMBER_BF16, 2e-2)) SKIP("no CUDA device");
}

TEST(double_precision_is_refused) {
  backend *b;
  gl_error err = {.status = GL_OK};
  gl_status status = backend_new(&b, BACKEND_CUDA, NUMBER_F64, 0, &err);
  CU_ASSERT_PTR_NULL(b);
  CU_ASSERT(status == GL_EINPUT || strstr(err.text, "without nvcc") != NULL);
}
