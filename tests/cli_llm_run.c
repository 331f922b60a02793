/* Worlds of kind llm through the commands run and sweep. */
#include "tests/cli_support.h"
#include "tests/suite.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The embedded recipe, cut down to a moment. */
#define QUICK                                                                                      \
  "run", "llm_quick", "world.warmup={steps: 60, lr: 0.003}", "world.eval.prompts=32",              \
      "train={groups: 4, group_size: 4}", "steps=4", "eval_every=2", "-q", "--json"

/* A scratch folder, of which the cache is a part: no test writes into anyone's own. */
static void begin(char folder[64]) {
  char cache[128];
  cli_scratch_make(folder);
  CU_ASSERT_FATAL(setenv("GEPOLAB_CACHE", cli_path(cache, folder, "cache"), 1) == 0);
}

static void end(const char *folder) {
  char cache[128];
  if (access(cli_path(cache, folder, "cache"), F_OK) == 0) cli_scratch_remove(cache);
  cli_scratch_remove(folder);
  CU_ASSERT(setenv("GEPOLAB_CACHE", "", 1) == 0);
}

static double number(const cli_result *r, const char *key) {
  cJSON *json = cJSON_Parse(r->out);
  const cJSON *value = cJSON_GetObjectItem(json, key);
  double x = cJSON_IsNumber(value) ? value->valuedouble : NAN;
  cJSON_Delete(json);
  return x;
}

/* Made, kept, with other threads, and with no cache at all: the same numbers. */
static void llm_quick_runs_and_says_the_same_however_it_is_run(void) {
  char folder[64], cache[128];
  begin(folder);
  cli_result made = CLI(QUICK, "-t", "2");
  CU_ASSERT_EQUAL(made.code, 0);
  CU_ASSERT_EQUAL(cli_files_in(cli_path(cache, folder, "cache")), 1);
  cli_result kept = CLI(QUICK, "-t", "1");
  CU_ASSERT(setenv("GEPOLAB_CACHE", "", 1) == 0);
  cli_result uncached = CLI(QUICK, "-t", "1");
  CU_ASSERT(setenv("GEPOLAB_CACHE", cache, 1) == 0);
  CU_ASSERT_STRING_EQUAL(made.out, kept.out);
  CU_ASSERT_STRING_EQUAL(made.out, uncached.out);
  double first = number(&made, "eval_first"), best = number(&made, "best"),
         last = number(&made, "last");
  CU_ASSERT(first >= 0 && first <= best && last <= best && best <= 1);
  ASSERT_CLOSE(number(&made, "best_to_last"), best - last, 1e-12);
  CU_ASSERT_EQUAL(number(&made, "steps"), 4);
  cli_result_fini(&made);
  cli_result_fini(&kept);
  cli_result_fini(&uncached);
  end(folder);
}

static void a_sweep_of_transformers_does_not_depend_on_its_workers(void) {
  static const char recipe[] =
      "steps: 3\neval_every: 3\nworld: {kind: llm, backend: cpu, model: {layers: 1, hidden: 16, "
      "heads: 2, context: 24}, task: {kind: sorting, length: 3}, eval: {prompts: 8}, warmup: "
      "{steps: 20}}\ntrain: {groups: 2, group_size: 4}\ncluster: {preset: areal, samplers: 2, "
      "generation: 30}\nsweep: {algorithm: [grpo, gepo], seed: [1, 2]}\n";
  char folder[64], path[128], db[128], other[128];
  begin(folder);
  cli_write(cli_path(path, folder, "small.yaml"), recipe, sizeof recipe - 1);
  CU_ASSERT(CLI_GIVES(0, "sweep", path, "-o", cli_path(db, folder, "a.db"), "-j", "1", "-q"));
  CU_ASSERT(CLI_GIVES(0, "sweep", path, "-o", cli_path(other, folder, "b.db"), "-j", "2", "-q"));
  cli_result a = CLI("export", db, "--table", "steps", "--format", "csv"),
             b = CLI("export", other, "--table", "steps", "--format", "csv");
  CU_ASSERT(a.out_size > 1000);
  CU_ASSERT_STRING_EQUAL(a.out, b.out);
  CU_ASSERT(CLI_GIVES(0, "analyze", db));
  cli_result_fini(&a);
  cli_result_fini(&b);
  end(folder);
}

static int refused(const cli_result *r, int code, const char *says) {
  int good = r->code == code && strstr(r->err, says) != NULL && r->out_size == 0;
  if (!good) fprintf(stderr, "exit code %d: %s\n", r->code, r->err);
  return good;
}

static void qwen3_math_says_what_is_missing(void) {
  char folder[64], data[128], text[4096];
  size_t size = 0;
  begin(folder);
  cli_result r = CLI("run", "qwen3_math", "world.task.path=/no/such/file.jsonl");
  CU_ASSERT(refused(&r, 2, "cannot read /no/such/file.jsonl"));
  cli_result_fini(&r);
  for (int i = 0; i < 60; ++i)
    size +=
        (size_t)snprintf(text + size, sizeof text - size,
                         "{\"problem\": \"%d+1?\", \"solution\": \"\\\\boxed{%d}\"}\n", i, i + 1);
  cli_write(cli_path(data, folder, "math.jsonl"), text, size);
  char path[200];
  snprintf(path, sizeof path, "world.task.path=%s", data);
  r = CLI("run", "qwen3_math", path, "world.model.path=/no/such/folder");
  CU_ASSERT(refused(&r, 2, "there is no folder '/no/such/folder'"));
  cli_result_fini(&r);
  end(folder);
}

static void a_machine_without_cuda_says_so(void) {
  if (access("/dev/nvidiactl", F_OK) == 0) SKIP("there is a CUDA device");
  char folder[64];
  begin(folder);
  cli_result r = CLI(QUICK, "world.backend=cuda");
  CU_ASSERT(refused(&r, 1, "no CUDA device"));
  cli_result_fini(&r);
  end(folder);
}

SUITE(cli_llm_run, "cli: llm runs", TEST(llm_quick_runs_and_says_the_same_however_it_is_run),
      TEST(a_sweep_of_transformers_does_not_depend_on_its_workers),
      TEST(qwen3_math_says_what_is_missing), TEST(a_machine_without_cuda_says_so));
