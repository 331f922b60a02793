/* gepolab bench gpu: that it answers without a device, and that all it measures can be measured,
 * on a tiny model on the CPU. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* No device is seen and no peer is found, whatever this machine has. */
static cli_result alone(const char *const *arguments) {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  setenv("GEPOLAB_PYTHON", "/nonexistent/python3", 1);
  cli_result r = cli_run(NULL, arguments);
  unsetenv("CUDA_VISIBLE_DEVICES");
  unsetenv("GEPOLAB_PYTHON");
  return r;
}
#define ALONE(...) alone((const char *const[]){__VA_ARGS__, NULL})

static void help_names_its_options(void) {
  cli_result r = CLI("bench", "gpu", "--help");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "usage: gepolab bench gpu"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "--only PART"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "GEPOLAB_PYTHON"));
  cli_result_fini(&r);
}

static void without_a_device_it_says_so_and_ends_well(void) {
  cli_result r = ALONE("bench", "gpu");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT(strncmp(r.out, "skipped: no CUDA device", 23) == 0);
  cli_result_fini(&r);
  r = ALONE("bench", "gpu", "--json");
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *json = cJSON_Parse(r.out);
  CU_ASSERT(cJSON_IsString(cJSON_GetObjectItem(json, "skipped")));
  cJSON_Delete(json);
  cli_result_fini(&r);
}

static const cJSON *row_named(const cJSON *rows, const char *key) {
  const cJSON *row;
  cJSON_ArrayForEach(row, rows) if (strcmp(cJSON_GetObjectItem(row, "key")->valuestring, key) ==
                                    0) return row;
  return NULL;
}

static double number(const cJSON *row, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(row, key);
  return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

static void every_part_measures_a_tiny_model_on_the_cpu(void) {
  static const char *const keys[] = {"limit.product",   "limit.copy",         "tiny.train",
                                     "tiny.decode.1",   "tiny.decode.2",      "tiny.decode.4",
                                     "tiny.logp",       "tiny.logp_backward", "tiny.step.generate",
                                     "tiny.step.score", "tiny.step.update",   "tiny.step.total"};
  cli_result r = ALONE("bench", "gpu", "--device", "cpu", "--quick", "--json");
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *json = cJSON_Parse(r.out);
  const cJSON *rows = cJSON_GetObjectItem(json, "rows");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i) {
    const cJSON *row = row_named(rows, keys[i]);
    if (row == NULL || !(number(row, "value") > 0)) fprintf(stderr, "%s: no number\n", keys[i]);
    CU_ASSERT(number(row, "value") > 0);
    CU_ASSERT(number(row, "low") <= number(row, "value"));
    CU_ASSERT(number(row, "high") >= number(row, "value"));
    CU_ASSERT(number(row, "n") >= 2);
  }
  CU_ASSERT(number(row_named(rows, "tiny.train"), "share") > 0);
  const cJSON *peer = cJSON_GetObjectItem(row_named(rows, "tiny.train"), "peer_note");
  CU_ASSERT_STRING_EQUAL(cJSON_GetStringValue(peer), "not installed");
  cJSON_Delete(json);
  cli_result_fini(&r);
}

/* The shares rest on these: what a trained token costs, and what a decoding step reads. */
static void limits_are_those_worked_out_by_hand(void) {
  cli_result r = ALONE("bench", "gpu", "--device", "cpu", "--quick", "--json");
  cJSON *json = cJSON_Parse(r.out);
  const cJSON *rows = cJSON_GetObjectItem(json, "rows");
  const double product = 1e12 * number(row_named(rows, "limit.product"), "value");
  const double copy = 1e9 * number(row_named(rows, "limit.copy"), "value");
  /* Two layers of 64 x (64 + 2 x 32) + 64 x 64 + 3 x 64 x 192, and 600 x 64 of the output: 136,704
   * weights; 64 numbers of queries in each layer, 8.5 earlier positions of 16 on average. */
  ASSERT_CLOSE(number(row_named(rows, "tiny.train"), "limit"),
               product / (6 * 136704. + 12 * 128 * 8.5), 1e-9);
  /* Batch 4 at position 12 on average; a position is 2 layers x 2 x 32 numbers of 4 bytes. */
  ASSERT_CLOSE(number(row_named(rows, "tiny.steps.4"), "limit"),
               4 * copy / (136704 * 4. + 4 * 12 * 512.), 1e-9);
  cJSON_Delete(json);
  cli_result_fini(&r);
}

static void only_and_shape_choose_and_wrong_words_are_told(void) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "numbers.json");
  cli_result r = ALONE("bench", "gpu", "--device", "cpu", "--quick", "--only", "logp", "-o", path);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_EQUAL(cli_files_in(folder), 1);
  cli_scratch_remove(folder);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "tiny.logp "));
  CU_ASSERT_PTR_NULL(strstr(r.out, "tiny.train"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "peer: not installed"));
  cli_result_fini(&r);
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "--only", "trian"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "--shape", "7b"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "--device", "tpu"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "stray"));
}

SUITE(cli_bench_gpu, "cli: bench gpu", TEST(help_names_its_options),
      TEST(without_a_device_it_says_so_and_ends_well),
      TEST(every_part_measures_a_tiny_model_on_the_cpu), TEST(limits_are_those_worked_out_by_hand),
      TEST(only_and_shape_choose_and_wrong_words_are_told));
