/* gepolab bench gpu: that it answers without a device, that all it measures can be measured, on a
 * tiny model on the CPU, and what its table says of lines given by hand. */
#include "experiments/bench/gpu.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

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
/* The answer on the CPU, as a tree, with these arguments more. */
#define ANSWER(code, ...)                                                                          \
  answer(code, ALONE("bench", "gpu", "--device", "cpu", "--quick", "--json", __VA_ARGS__))

static cJSON *answer(int code, cli_result r) {
  if (r.code != code) fprintf(stderr, "%s\n", r.err);
  CU_ASSERT_EQUAL(r.code, code);
  cJSON *json = cJSON_Parse(r.out);
  CU_ASSERT_PTR_NOT_NULL(json);
  cli_result_fini(&r);
  return json;
}

static const cJSON *line_named(const cJSON *document, const char *array, const char *key) {
  const cJSON *line;
  cJSON_ArrayForEach(
      line, cJSON_GetObjectItem(document,
                                array)) if (strcmp(cJSON_GetObjectItem(line, "key")->valuestring,
                                                   key) == 0) return line;
  return NULL;
}
static const cJSON *row(const cJSON *document, const char *key) {
  return line_named(document, "rows", key);
}

static double number(const cJSON *line, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(line, key);
  return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

static const char *text(const cJSON *line, const char *key) {
  const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(line, key));
  return s != NULL ? s : "";
}

static void help_names_its_options(void) {
  cli_result r = CLI("bench", "gpu", "--help");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "usage: gepolab bench gpu"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "--only PARTS"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "GEPOLAB_PYTHON"));
  for (const gpu_part *p = gpu_parts; p->name != NULL; ++p)
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, p->name));
  cli_result_fini(&r);
}

static void without_a_device_it_says_so_and_ends_well(void) {
  static const char *const only[] = {"limits", "parity"};
  cli_result r = ALONE("bench", "gpu");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT(strncmp(r.out, "skipped: no CUDA device", 23) == 0);
  cli_result_fini(&r);
  for (size_t i = 0; i < 2; ++i) {
    cJSON *json = answer(0, ALONE("bench", "gpu", "--json", "--only", only[i]));
    CU_ASSERT_PTR_NOT_NULL(strstr(text(json, "skipped"), "no CUDA device"));
    cJSON_Delete(json);
  }
}

static void every_part_measures_a_tiny_model_on_the_cpu(void) {
  static const char *const keys[] = {"limit.product",   "limit.copy",         "tiny.train",
                                     "tiny.decode.1",   "tiny.decode.2",      "tiny.decode.4",
                                     "tiny.logp",       "tiny.logp_backward", "tiny.step.generate",
                                     "tiny.step.score", "tiny.step.update",   "tiny.step.total",
                                     "tiny.step.peak",  "tiny.parity.draws"};
  cJSON *json = ANSWER(0, "--shape", "tiny");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i) {
    const cJSON *line = row(json, keys[i]);
    if (number(line, "value") < 0) fprintf(stderr, "%s: no number\n", keys[i]);
    CU_ASSERT(number(line, "value") >= 0);
    CU_ASSERT(number(line, "low") <= number(line, "value"));
    CU_ASSERT(number(line, "high") >= number(line, "value"));
  }
  CU_ASSERT(number(row(json, "tiny.train"), "n") >= 2);
  CU_ASSERT_STRING_EQUAL(text(row(json, "tiny.train"), "peer_note"), "not installed");
  /* Two layers of 64 x (64 + 2 x 32) + 64 x 64 + 3 x 64 x 192, and 600 x 64 of the output: 136,704
   * weights; 64 numbers of queries in each layer, 8.5 earlier positions of 16 on average. */
  const double product = 1e12 * number(row(json, "limit.product"), "value");
  const double copy = 1e9 * number(row(json, "limit.copy"), "value");
  ASSERT_CLOSE(number(row(json, "tiny.train"), "limit"), product / (6 * 136704. + 12 * 128 * 8.5),
               1e-9);
  /* Batch 4 at position 12 on average; a position is 2 layers x 2 x 32 numbers of 4 bytes. Where
   * the steps are too short to be told from their prompts there is a limit all the same. */
  ASSERT_CLOSE(number(row(json, "tiny.steps.4"), "limit"), 4 * copy / (136704 * 4. + 4 * 12 * 512.),
               1e-9);
  cJSON_Delete(json);
}

static void parity_holds_float32_against_float64(void) {
  static const char *const keys[] = {"tiny.parity.logp", "tiny.parity.gradient", "tiny.parity.norm",
                                     "tiny.parity.greedy", "tiny.parity.draws"};
  cJSON *json = ANSWER(0, "--only", "parity");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i)
    CU_ASSERT_STRING_EQUAL(text(row(json, keys[i]), "held"), "pass");
  CU_ASSERT(number(row(json, keys[0]), "value") > 0); /* two number types were compared */
  CU_ASSERT(number(row(json, keys[0]), "value") < 1e-4);
  CU_ASSERT(number(row(json, keys[1]), "value") > 0.999999);
  CU_ASSERT_STRING_EQUAL(text(row(json, keys[4]), "note"), "128 of 128 tokens the same");
  CU_ASSERT_PTR_NULL(row(json, "limit.product"));
  cJSON_Delete(json);
}

static void operations_have_a_table(void) {
  setenv("GEPOLAB_CUDA_TIMES", "1", 1);
  cJSON *json = ANSWER(0, "--only", "train", "--in-process", "length=32");
  cli_result r = ALONE("bench", "gpu", "--device", "cpu", "--quick", "--only", "train");
  unsetenv("GEPOLAB_CUDA_TIMES");
  double share = 0, product_calls = 0;
  const cJSON *line;
  cJSON_ArrayForEach(line, cJSON_GetObjectItem(json, "operations")) {
    CU_ASSERT_STRING_EQUAL(text(line, "key"), "tiny.train");
    CU_ASSERT(number(line, "calls") > 0);
    share += number(line, "share");
    if (strcmp(text(line, "operation"), "attention_backward") == 0)
      product_calls = number(line, "calls");
  }
  ASSERT_CLOSE(share, 1, 1e-9);
  CU_ASSERT_EQUAL(product_calls, 2 * 2); /* two layers, two repetitions; none of the warm-up */
  cJSON_Delete(json);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "\n  attention_backward "));
  cli_result_fini(&r);
}

/* A stand-in for Python that answers as gpu.py does. */
static void peers_are_compared(void) {
  static const char script[] =
      "#!/bin/sh\n"
      "echo a library says something\n"
      "echo '{\"key\":\"tiny.train\",\"unit\":\"tokens/s\",\"value\":0.5,\"low\":0.4,"
      "\"high\":0.6,\"n\":3,\"note\":\"part '$3'\"}'\n";
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "python"), script, sizeof script - 1);
  char command[160];
  snprintf(command, sizeof command, "chmod +x %s", path);
  CU_ASSERT_EQUAL(system(command), 0);
  setenv("GEPOLAB_PYTHON", path, 1);
  cJSON *json = answer(
      0, CLI("bench", "gpu", "--device", "cpu", "--quick", "--json", "--only", "train,peer-train"));
  const cJSON *train = row(json, "tiny.train");
  CU_ASSERT_EQUAL(number(train, "peer"), 0.5);
  CU_ASSERT_EQUAL(number(train, "peer_high"), 0.6);
  ASSERT_CLOSE(number(train, "ratio"), number(train, "value") / 0.5, 1e-9);
  CU_ASSERT_EQUAL(number(train, "ratio_aim"), 1.2);
  CU_ASSERT_STRING_EQUAL(text(train, "peer_note"), "part train");
  cJSON_Delete(json);
  json = answer(
      0, CLI("bench", "gpu", "--device", "cpu", "--quick", "--json", "--only", "peer-train"));
  CU_ASSERT_EQUAL(number(row(json, "tiny.train"), "peer"), 0.5);
  CU_ASSERT_EQUAL(number(row(json, "tiny.train"), "value"), -1);
  cJSON_Delete(json);
  unsetenv("GEPOLAB_PYTHON");
  cli_scratch_remove(folder);
}

/* What is compared and what is refused, of lines given by hand. */
static void limits_shares_and_bounds_follow_from_the_lines(void) {
  gl_error err = {.status = GL_OK};
  cJSON *json = cJSON_Parse(
      "{\"ours\": [{\"key\": \"limit.product\", \"unit\": \"TFLOP/s\", \"value\": 2},"
      "{\"key\": \"limit.copy\", \"unit\": \"GB/s\", \"value\": 4},"
      "{\"key\": \"x.train\", \"unit\": \"tokens/s\", \"value\": 5e10, \"flops\": 10},"
      "{\"key\": \"0.6b.train\", \"what\": \"train\", \"unit\": \"tokens/s\", \"value\": 5e10, "
      "\"flops\": 10},"
      "{\"key\": \"0.6b.steps.64\", \"what\": \"steps.64\", \"missing\": \"too short\"},"
      "{\"key\": \"x.step.total\", \"unit\": \"s\", \"value\": 4, \"flops\": 2e12, \"bytes\": 4e9},"
      "{\"key\": \"x.parity.logp\", \"unit\": \"nats\", \"value\": 0.02, \"at_most\": 0.02}],"
      "\"peers\": [], \"operations\": []}");
  CU_ASSERT_FATAL(gpu_compare(json));
  char *said = cJSON_PrintUnformatted(json);
  cJSON *again = cJSON_Parse(said);
  ASSERT_CLOSE(number(row(again, "x.train"), "limit"), 2e11, 1e-12);
  ASSERT_CLOSE(number(row(again, "x.train"), "share"), 0.25, 1e-12);
  /* the name of a shape may have a dot */
  ASSERT_CLOSE(number(row(again, "0.6b.train"), "share_aim"), 0.5, 0);
  ASSERT_CLOSE(number(row(again, "0.6b.train"), "ratio_aim"), 1.2, 0);
  ASSERT_CLOSE(number(row(again, "x.step.total"), "limit"), 2, 1e-12);
  ASSERT_CLOSE(number(row(again, "x.step.total"), "share"), 0.5, 1e-12);
  CU_ASSERT_EQUAL(gpu_check(json, &err), GL_OK);
  cJSON_Delete(again);
  free(said);
  cJSON_Delete(json);
  static const char *const bad[] = {
      "{\"key\": \"x.parity.logp\", \"unit\": \"nats\", \"value\": 0.021, \"at_most\": 0.02}",
      "{\"key\": \"x.parity.logp\", \"unit\": \"nats\", \"value\": null, \"at_most\": 0.02}",
      "{\"key\": \"x.parity.gradient\", \"unit\": \"cosine\", \"value\": 0.99, \"at_least\": "
      "0.999}",
      "{\"key\": \"x.parity.gradient\", \"missing\": \"ended by signal 9\"}",
      "{\"key\": \"x.parity.steps.1\", \"what\": \"parity.steps.1\", \"missing\": \"ended by "
      "signal 9\"}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    char document[256];
    snprintf(document, sizeof document, "{\"ours\": [%s], \"peers\": []}", bad[i]);
    json = cJSON_Parse(document);
    CU_ASSERT_FATAL(gpu_compare(json));
    CU_ASSERT_EQUAL(gpu_check(json, &err), GL_EIO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "x.parity"));
    cJSON_Delete(json);
  }
}

static void parts_shapes_and_sizes_choose_and_wrong_words_are_told(void) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "numbers.json");
  cli_result r = ALONE("bench", "gpu", "--device", "cpu", "--quick", "--only", "decode", "batch=3",
                       "repetitions=1", "-o", path);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_EQUAL(cli_files_in(folder), 1);
  cli_scratch_remove(folder);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "tiny.decode.3 "));
  CU_ASSERT_PTR_NULL(strstr(r.out, "tiny.decode.1 "));
  CU_ASSERT_PTR_NULL(strstr(r.out, "tiny.train"));
  cli_result_fini(&r);
  r = ALONE("bench", "gpu", "--device", "cpu", "--quick", "--only", "peer-logp");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "peer: not installed"));
  cli_result_fini(&r);
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "--only", "train,trian"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "--shape", "7b"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "--device", "tpu"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "stray"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "bach=3"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "batch=0"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "batch=3x"));
}

/* What does not fit into ten minutes is refused before anything runs. */
static void the_bundle_refuses_all_parts_in_one_call(void) {
  char folder[64], command[512];
  cli_scratch_make(folder);
  snprintf(
      command, sizeof command,
      "bash experiments/bench/gpu_bundle.sh %s/logs tests parity memcheck 120 racecheck 2>&1 | "
      "grep -q 'may take 800 s' && test ! -e %s/logs/device.log",
      folder, folder);
  CU_ASSERT_EQUAL(system(command), 0);
  snprintf(command, sizeof command,
           "bash experiments/bench/gpu_bundle.sh %s/logs all 2>&1 | grep -q \"no part 'all'\"",
           folder);
  CU_ASSERT_EQUAL(system(command), 0);
  cli_scratch_remove(folder);
}

/* Each call that the record of benchmarks tells one to make is one that is not refused. Here it
 * ends at the libraries, which only a bundle has. */
static void the_bundles_documented_calls_fit_into_their_time(void) {
  static const char script[] =
      "cp experiments/bench/gpu_bundle.sh $f/run.sh && "
      "sed -n \"s/^.*run.sh LOGS \\([^#]*\\).*/\\1/p\" experiments/BENCHMARKS.md > $f/calls && "
      "n=0 && while read -r parts; do n=$((n + 1)); "
      "bash $f/run.sh $f/logs $parts < /dev/null > $f/said 2>&1; "
      "grep -q lib.tar.gz $f/said || { cat $f/said; exit 1; }; done < $f/calls && test $n -ge 9";
  char folder[64], command[768];
  cli_scratch_make(folder);
  snprintf(command, sizeof command, "f='%s'; %s", folder, script);
  CU_ASSERT_EQUAL(system(command), 0);
  cli_scratch_remove(folder);
}

SUITE(cli_bench_gpu, "cli: bench gpu", TEST(help_names_its_options),
      TEST(without_a_device_it_says_so_and_ends_well),
      TEST(every_part_measures_a_tiny_model_on_the_cpu), TEST(parity_holds_float32_against_float64),
      TEST(operations_have_a_table), TEST(peers_are_compared),
      TEST(limits_shares_and_bounds_follow_from_the_lines),
      TEST(parts_shapes_and_sizes_choose_and_wrong_words_are_told),
      TEST(the_bundle_refuses_all_parts_in_one_call),
      TEST(the_bundles_documented_calls_fit_into_their_time));
