/* The GPU benchmark on the emulated device: its bfloat16 path, parity with the CPU in float32, and
 * the table of operations. */
#include "experiments/bench/gpu.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Emulated threads are slow. */
static const char *const sizes[] = {"repetitions=1", "draws=4", "batch=2"};

static cJSON *bench(const char *only, const char *times) {
  gl_error err = {.status = GL_OK};
  cJSON *document = NULL;
  gpu_options o = {.only = only,
                   .python = "/nonexistent/python3",
                   .shapes = {gpu_shape_named("tiny", 1)},
                   .n_shapes = 1,
                   .seconds = 600,
                   .kind = BACKEND_CUDA,
                   .quick = 1,
                   .in_process = 1,
                   .silent = 1};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    CU_ASSERT_EQUAL_FATAL(gpu_shape_set(&o.shapes[0], sizes[i], &err), GL_OK);
  setenv("GEPOLAB_CUDA_TIMES", times, 1);
  const gl_status status = gpu_bench(&o, &document, &err);
  unsetenv("GEPOLAB_CUDA_TIMES");
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  CU_ASSERT_FATAL(gpu_compare(document));
  if (gpu_check(document, &err) != GL_OK) {
    fprintf(stderr, "%s\n", err.text);
    CU_FAIL("a part was not measured, or a bound not held");
  }
  return document;
}

static double calls_of(const cJSON *document, const char *operation) {
  const cJSON *line;
  cJSON_ArrayForEach(
      line, cJSON_GetObjectItem(
                document,
                "operations")) if (strcmp(cJSON_GetObjectItem(line, "operation")->valuestring,
                                          operation) == 0) return cJSON_GetObjectItem(line, "calls")
      ->valuedouble;
  return 0;
}

static void bfloat16_agrees_with_the_cpu_in_float32(void) {
  cJSON *document = bench("parity", "0");
  const cJSON *line;
  size_t held = 0;
  cJSON_ArrayForEach(line, cJSON_GetObjectItem(document, "rows")) held +=
      cJSON_HasObjectItem(line, "held") ? 1 : 0;
  CU_ASSERT_EQUAL(held, 5);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(document, "operations")), 0);
  cJSON_Delete(document);
}

static void training_has_times_of_its_operations(void) {
  cJSON *document = bench("train", "1");
  CU_ASSERT_EQUAL(calls_of(document, "attention_backward"), 2); /* layers */
  CU_ASSERT_EQUAL(calls_of(document, "output"), 1);
  cJSON_Delete(document);
}

/* Recorded, decoding is graphs; unrecorded, its operations show. */
static void decoding_is_graphs_or_operations(void) {
  cJSON *document = bench("decode", "1");
  CU_ASSERT(calls_of(document, "graph_run") > 0);
  cJSON_Delete(document);
  document = bench("decode", "all");
  CU_ASSERT_EQUAL(calls_of(document, "graph_run"), 0);
  CU_ASSERT(calls_of(document, "attention_cached") > 0);
  cJSON_Delete(document);
}

SUITE(emulated_bench, "emulated: bench gpu", TEST(bfloat16_agrees_with_the_cpu_in_float32),
      TEST(training_has_times_of_its_operations), TEST(decoding_is_graphs_or_operations));
