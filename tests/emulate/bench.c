/* The GPU benchmark on the emulated device: its bfloat16 path, parity with the CPU in float32, and
 * the table of operations. */
#include "experiments/bench/gpu.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("emulated: bench gpu");

/* Emulated threads are slow. */
static const char *const sizes[] = {"repetitions=1", "draws=4", "batch=2"};

static gpu_bench *run(const char *only) {
  gpu_bench *g = NULL;
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
    ASSERT_OK(gpu_shape_set(&o.shapes[0], sizes[i], &err));
  ASSERT_OK(gpu_bench_run(&g, &o, &err));
  if (g->failed.status != GL_OK) fprintf(stderr, "%s\n", g->failed.text);
  CU_ASSERT_EQUAL(g->failed.status, GL_OK);
  CU_ASSERT_EQUAL(g->skipped.status, GL_OK);
  return g;
}

/* How often an operation was called in the part, by the table on stderr. */
static unsigned calls_of(const char *only, const char *times, const char *operation) {
  char line[160], name[64];
  unsigned found = 0, calls;
  FILE *said = tmpfile();
  CU_ASSERT_PTR_NOT_NULL_FATAL(said);
  const int kept = dup(STDERR_FILENO);
  fflush(stderr);
  dup2(fileno(said), STDERR_FILENO);
  setenv("GEPOLAB_CUDA_TIMES", times, 1);
  gpu_bench_free(run(only));
  unsetenv("GEPOLAB_CUDA_TIMES");
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  rewind(said);
  while (found == 0 && fgets(line, sizeof line, said) != NULL)
    if (sscanf(line, " %63s %u", name, &calls) == 2 && strcmp(name, operation) == 0) found = calls;
  fclose(said);
  return found;
}

TEST(bfloat16_agrees_with_the_cpu_in_float32) {
  gpu_bench *g = run("parity"); /* bounds that are not kept are a failure */
  CU_ASSERT_EQUAL(g->b.n, 8);
  CU_ASSERT(g->b.numbers[0].value > 0);
  gpu_bench_free(g);
}

TEST(training_has_times_of_its_operations) {
  CU_ASSERT_EQUAL(calls_of("train", "1", "attention_backward"), 2); /* layers */
  CU_ASSERT_EQUAL(calls_of("train", "1", "output"), 1);
  CU_ASSERT_EQUAL(calls_of("train", "0", "output"), 0);
}

/* Recorded, decoding is graphs; unrecorded, its operations show. */
TEST(decoding_is_graphs_or_operations) {
  CU_ASSERT(calls_of("decode", "1", "graph_run") > 0);
  CU_ASSERT_EQUAL(calls_of("decode", "all", "graph_run"), 0);
  CU_ASSERT(calls_of("decode", "all", "heads_attention") > 0);
}
