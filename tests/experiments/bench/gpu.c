/* gepolab bench gpu: that it answers without a device, that all it measures can be measured, on a
 * tiny model on the CPU, beside limits and a peer, and what its bundle takes and refuses. */
#include "experiments/bench/gpu.h"
#include "llm/backend/open/open.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("cli: bench gpu");

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
  cJSON *json = json_parsed(r.out);
  CU_ASSERT_PTR_NOT_NULL(json);
  return json;
}

static const cJSON *of(const cJSON *document, const char *key) {
  return member_at(member_at(document, "numbers"), key);
}
static const cJSON *beside(const cJSON *document, const char *key, const char *peer) {
  return member_at(member_at(of(document, key), "peers"), peer);
}

TEST(help_names_its_options) {
  cli_result r = CLI("bench", "gpu", "--help");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "usage: gepolab bench gpu"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "--only PARTS"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "GEPOLAB_PYTHON"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "limits, parity, train, peer-train,"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "peer-decode, logp, step; with"));
}

TEST(without_a_device_it_says_so_and_ends_well) {
  static const char *const only[] = {"limits", "parity"};
  cli_result r = ALONE("bench", "gpu");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT(strncmp(r.out, "skipped: no CUDA device", 23) == 0);
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "answers.json");
  r = ALONE("bench", "gpu", "-o", path);
  char *written = cli_read(path);
  CU_ASSERT(r.code == 0 && strstr(written, "\"skipped\":\t\"no CUDA device") != NULL);
  for (size_t i = 0; i < 2; ++i) {
    cJSON *json = answer(0, ALONE("bench", "gpu", "--json", "--only", only[i]));
    CU_ASSERT_PTR_NOT_NULL(strstr(text_at(json, "skipped"), "no CUDA device"));
  }
}

TEST(every_part_measures_a_tiny_model_on_the_cpu) {
  static const char *const keys[] = {
      "limit.product",     "limit.copy",         "tiny.train",     "tiny.decode.1",
      "tiny.decode.2",     "tiny.decode.4",      "tiny.first.1",   "tiny.logp",
      "tiny.step.score",   "tiny.step.update",   "tiny.step.peak", "tiny.logp_backward",
      "tiny.step.seconds", "tiny.step.generate", "tiny.repeats"};
  cJSON *json = ANSWER(0, "--shape", "tiny");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i) {
    if (number_at(of(json, keys[i]), "value") <= 0) fprintf(stderr, "%s: no number\n", keys[i]);
    CU_ASSERT(number_at(of(json, keys[i]), "value") > 0);
  }
  CU_ASSERT_PTR_NOT_NULL(of(json, "tiny.parity.draws"));
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text_at(beside(json, "tiny.train", "pytorch"), "missing"), "not installed"));
  /* Two layers of 64 x (64 + 2 x 32) + 64 x 64 + 3 x 64 x 192, and 600 x 64 of the output: 136,704
   * weights; 64 numbers of queries in each layer, 8.5 earlier positions of 16 on average. */
  const double product = number_at(of(json, "limit.product"), "value");
  const double copy = number_at(of(json, "limit.copy"), "value");
  const cJSON *limit = beside(json, "tiny.train", "limit");
  ASSERT_CLOSE(number_at(limit, "value"), product / (6 * 136704. + 12 * 128 * 8.5), 1e-9);
  ASSERT_CLOSE(number_at(limit, "ratio"),
               number_at(of(json, "tiny.train"), "value") / number_at(limit, "value"), 1e-9);
  CU_ASSERT_EQUAL(number_at(limit, "aim"), 0.5);
  /* Scoring is a third of training; 24 tokens a sequence. */
  ASSERT_CLOSE(number_at(beside(json, "tiny.step.score", "limit"), "value"),
               3 * product / (6 * 136704. + 12 * 128 * 12.5), 1e-9);
  /* Batch 4 at position 12 on average; a position is 2 layers x 2 x 32 numbers of 4 bytes. Where
   * the steps are too short to be told from their prompts there is a limit all the same. */
  limit = beside(json, "tiny.steps.4", "limit");
  ASSERT_CLOSE(number_at(limit, "value"), 4 * copy / (136704 * 4. + 4 * 12 * 512.), 1e-9);
  CU_ASSERT_EQUAL(number_at(limit, "aim"), 0.6);
}

/* A part's process draws a shape's parameters into memory from which the next ones take them. */
TEST(parameters_are_drawn_by_the_first_workload_alone) {
  const model_config c = gpu_shape_named("tiny", 1).model;
  const size_t n = model_config_parameters(&c);
  double *value = calloc(2 * n, sizeof *value);
  CU_ASSERT_PTR_NOT_NULL_FATAL(value);
  workload_parameters drawn = {value, 0};
  backend *b = NULL;
  ASSERT_OK(backend_new(&b, BACKEND_CPU, NUMBER_F64, 0, &err));
  for (size_t i = 0; i < 3; ++i) { /* the last one draws for itself */
    workload w;
    ASSERT_OK(workload_init(&w, &c, (workload_size){.sequences = 1, .length = 4},
                            i < 2 ? &drawn : NULL, b, &err));
    ASSERT_OK(model_get(w.m, value + n, &err));
    CU_ASSERT(drawn.drawn && value[n] == value[0] - (i == 2));
    CU_ASSERT_EQUAL(memcmp(value + 1, value + n + 1, (n - 1) * sizeof *value), 0);
    if (i == 0) value[0] += 1;
    workload_fini(&w);
  }
  backend_free(b);
  free(value);
}

TEST(parity_holds_float32_against_float64) {
  cJSON *json = ANSWER(0, "--only", "parity");
  CU_ASSERT(number_at(of(json, "tiny.parity.logp"), "value") >
            0); /* two number types were compared */
  CU_ASSERT(number_at(of(json, "tiny.parity.logp"), "value") < 1e-4);
  CU_ASSERT(number_at(of(json, "tiny.parity.gradient"), "value") > 0.999999);
  CU_ASSERT(number_at(of(json, "tiny.parity.norm"), "value") < 1e-6);
  CU_ASSERT_EQUAL(number_at(of(json, "tiny.parity.same_greedy"), "value"), 128);
  CU_ASSERT_EQUAL(number_at(of(json, "tiny.parity.same_drawn"), "value"), 128);
  CU_ASSERT_PTR_NULL(of(json, "limit.product"));
}

TEST(bounds_are_of_parity_and_numbers_that_are_none_are_outside) {
  static const double good[GPU_PARITY_VALUES] = {0.05, 0.012, 0.999, 0.02, 0.04, 0.001};
  static const double bad[GPU_PARITY_VALUES] = {0.051, 0.0121, 0.998, 0.021, 0.041, 0.0011};
  CU_ASSERT_EQUAL(gpu_parity_check(good, NULL), GL_OK);
  for (size_t i = 0; i < 2 * GPU_PARITY_VALUES; ++i) {
    double value[GPU_PARITY_VALUES];
    gl_error err = {.status = GL_OK};
    memcpy(value, good, sizeof value);
    value[i / 2] = i % 2 == 0 ? bad[i / 2] : NAN;
    CU_ASSERT_EQUAL(gpu_parity_check(value, &err), GL_EIO);
    CU_ASSERT(strncmp(err.text, "parity.", 7) == 0);
  }
}

/* The limits that roofline.py computes from its table of kernels are those of the benchmark: in a
 * step of decoding, of weights, keys and values, and in one of training, of useful operations. */
TEST(the_table_of_kernels_has_the_limits_of_the_benchmark) {
  static const size_t batches[] = {1, 2, 4};
  char folder[64], path[128], command[512], key[32];
  if (system("python3 -c '' > /dev/null 2>&1") != 0) SKIP("python3 is not installed");
  cJSON *json = ANSWER(0, "--only", "train,decode");
  cli_scratch_make(folder);
  snprintf(command, sizeof command,
           "python3 experiments/bench/roofline.py --shape tiny --length 16 --position 12 --element "
           "4 --copy %.17g --product %.17g --json > %s",
           number_at(of(json, "limit.copy"), "value"),
           number_at(of(json, "limit.product"), "value"), cli_path(path, folder, "roofline"));
  CU_ASSERT_EQUAL_FATAL(system(command), 0);
  char *text = cli_read(path);
  cJSON *steps = json_parsed(text);
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(steps), 4);
  for (int i = 0; i < 4; ++i) {
    if (i < 3)
      snprintf(key, sizeof key, "tiny.steps.%zu", batches[i]);
    else
      snprintf(key, sizeof key, "tiny.train");
    ASSERT_CLOSE(number_at(cJSON_GetArrayItem(steps, i), "limit") /
                     number_at(beside(json, key, "limit"), "value"),
                 1, 1e-9);
  }
}

TEST(operations_have_a_table) {
  setenv("GEPOLAB_CUDA_TIMES", "1", 1);
  cli_result r = ALONE("bench", "gpu", "--device", "cpu", "--quick", "--only", "train",
                       "--in-process", "length=32");
  unsetenv("GEPOLAB_CUDA_TIMES");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "\ntiny.train "));
  unsigned calls = 0;
  const char *line = strstr(r.err, "\n  attention_backward ");
  CU_ASSERT_PTR_NOT_NULL_FATAL(line);
  CU_ASSERT_EQUAL(sscanf(line, " attention_backward %u", &calls), 1);
  CU_ASSERT_EQUAL(calls, 2); /* two layers, one repetition; none of the warm-up */
  double share = 0, each;
  for (line = strstr(r.err, "\ntiny.train "); line != NULL; line = strchr(line + 1, '\n'))
    if (sscanf(line, " %*s %*u %*f %*f %*f %lf", &each) == 1) share += each;
  ASSERT_CLOSE(share, 1, 0.02); /* each with three digits */
}

/* A stand-in for Python that answers as gpu.py does, about what it was asked and on which device.
 */
TEST(peers_are_compared) {
  static const char script[] =
      "#!/bin/sh\n"
      "while read kind shape; do echo on stderr >&2\n"
      "echo \"{\\\"rates\\\": [0.4, 0.6, 0.5], \\\"note\\\": \\\"$3 $kind $shape\\\"}\"\n"
      "done\n";
  char folder[64], path[128], log[128], command[160];
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "python"), script, sizeof script - 1);
  snprintf(command, sizeof command, "chmod +x %s", path);
  CU_ASSERT_EQUAL(system(command), 0);
  setenv("GEPOLAB_PYTHON", path, 1);
  setenv("GEPOLAB_PEER_LOG", cli_path(log, folder, "log"), 1);
  cJSON *json = answer(
      0, CLI("bench", "gpu", "--device", "cpu", "--quick", "--json", "--only", "train,peer-train"));
  const cJSON *torch = beside(json, "tiny.train", "pytorch");
  CU_ASSERT_EQUAL(number_at(torch, "value"), 0.5);
  CU_ASSERT_EQUAL(number_at(torch, "largest"), 0.6);
  ASSERT_CLOSE(number_at(torch, "ratio"), number_at(of(json, "tiny.train"), "value") / 0.5, 1e-9);
  CU_ASSERT_EQUAL(number_at(torch, "aim"), 1.2);
  CU_ASSERT_STRING_EQUAL(text_at(torch, "note"), "cpu train 64,2,4,2,16,192,600,2,16,8,8,0,5");
  CU_ASSERT(number_at(beside(json, "tiny.train", "limit"), "value") > 0);
  /* A peer has its time where there is none left for ours, and where ours was not asked for. */
  json = answer(0, CLI("bench", "gpu", "--device", "cpu", "--quick", "--json", "--only",
                       "peer-decode", "--seconds", "1"));
  CU_ASSERT_EQUAL(number_at(beside(json, "tiny.decode.4", "pytorch"), "value"), 0.5);
  CU_ASSERT_EQUAL(number_at(beside(json, "tiny.decode.4", "pytorch"), "aim"), 5);
  CU_ASSERT(isnan(number_at(of(json, "tiny.decode.4"), "value")));
  unsetenv("GEPOLAB_PYTHON");
  unsetenv("GEPOLAB_PEER_LOG");
  CU_ASSERT_EQUAL(cli_files_in(folder), 2);
}

/* What goes wrong in a part is told at the end, and the other parts are measured. */
TEST(a_part_that_fails_is_told_and_the_others_go_on) {
  cli_result r = ALONE("bench", "gpu", "--device", "cpu", "--quick", "--only", "parity,train",
                       "length=1", "--json");
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "tiny.parity: parity needs sequences of 4 tokens"));
  cJSON *json = json_parsed(r.out);
  CU_ASSERT_PTR_NOT_NULL(strstr(text_at(of(json, "tiny.parity"), "missing"), "needs sequences"));
  CU_ASSERT(number_at(of(json, "tiny.train"), "value") > 0);
}

TEST(parts_shapes_and_sizes_choose_and_wrong_words_are_told) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "numbers.json");
  cli_result r = ALONE("bench", "gpu", "--device", "cpu", "--quick", "--only", "decode", "batch=3",
                       "repetitions=1", "-o", path);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_EQUAL(cli_files_in(folder), 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "tiny.decode.3 "));
  CU_ASSERT_PTR_NULL(strstr(r.out, "tiny.decode.1 "));
  CU_ASSERT_PTR_NULL(strstr(r.out, "tiny.train"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "repetitions=6"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "--only", "train,trian"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "--shape", "7b"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "--device", "tpu"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "stray"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "bach=3"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "batch=0"));
  CU_ASSERT(CLI_GIVES(2, "bench", "gpu", "batch=3x"));
}

/* What does not fit into ten minutes is refused before anything runs. */
TEST(the_bundle_refuses_all_parts_in_one_call) {
  char folder[64], command[512];
  cli_scratch_make(folder);
  snprintf(command, sizeof command,
           "bash experiments/bench/gpu_bundle.sh %s/logs tests parity memcheck 120 racecheck "
           "initcheck 2>&1 | "
           "grep -q 'may take 880 s' && test ! -e %s/logs/device.log",
           folder, folder);
  CU_ASSERT_EQUAL(system(command), 0);
  snprintf(command, sizeof command,
           "bash experiments/bench/gpu_bundle.sh %s/logs all 2>&1 | grep -q \"no part 'all'\"",
           folder);
  CU_ASSERT_EQUAL(system(command), 0);
}

/* Each call that the record of benchmarks tells one to make is one that is not refused. Here it
 * ends at the libraries, which only a bundle has. */
TEST(the_bundles_documented_calls_fit_into_their_time) {
  static const char script[] =
      "cp experiments/bench/gpu_bundle.sh $f/run.sh && "
      "sed -n \"s/^.*run.sh LOGS \\([^#]*\\).*/\\1/p\" experiments/BENCHMARKS.md > $f/calls && "
      "n=0 && while read -r parts; do n=$((n + 1)); "
      "bash $f/run.sh $f/logs $parts < /dev/null > $f/said 2>&1; "
      "grep -q bundle.tar.gz $f/said || { cat $f/said; exit 1; }; done < $f/calls && test $n -ge 8";
  char folder[64], command[768];
  cli_scratch_make(folder);
  snprintf(command, sizeof command, "f='%s'; %s", folder, script);
  CU_ASSERT_EQUAL(system(command), 0);
}

/* Of each call the record says how many seconds its parts may take, and of the first three together
 * with a first look at the device: 25 minutes at most. */
TEST(the_bundles_documented_seconds_are_those_of_its_parts) {
  static const char script[] =
      "n=0 all=30; sed -n 's/^.*run.sh LOGS \\([^#]*\\)# *\\([0-9]*\\) s.*/\\2 \\1/p' "
      "experiments/BENCHMARKS.md | { while read -r said parts; do n=$((n + 1)); "
      "s=$(bash experiments/bench/gpu_bundle.sh --seconds $parts) && [ \"$s\" = \"$said\" ] || "
      "{ echo \"$parts: $s s\" >&2; exit 1; }; [ $n -gt 3 ] || all=$((all + s)); done; "
      "[ $n = $(grep -c 'run.sh LOGS ' experiments/BENCHMARKS.md) ] && [ $all -le 1500 ] && "
      "grep -q \"The first three calls take $all s at most\" experiments/BENCHMARKS.md; }";
  CU_ASSERT_EQUAL(system(script), 0);
}

/* 100 KiB of tracked files leave 28 of 128 for the bundle; a file that is not tracked does not
 * count. */
TEST(a_bundle_that_cannot_be_carried_beside_the_tracked_files_is_refused) {
  static const char script[] =
      "fits=$PWD/experiments/bench/bundle_fits.sh && cd $f && git init -q && mkdir bundle && "
      "head -c 102400 /dev/zero > tracked && git add tracked && head -c 30000 /dev/zero > other && "
      "head -c 20480 /dev/zero > bundle/part && export BUNDLE_TRAVELS=128 && "
      "$fits bundle | grep -q ' KiB of 28 ' && head -c 20480 /dev/zero > bundle/next && "
      "! $fits bundle 2> said > /dev/null && grep -q 'bundle/part' said && grep -q 'more than 28' "
      "said";
  char folder[64], command[768];
  cli_scratch_make(folder);
  snprintf(command, sizeof command, "f='%s'; %s", folder, script);
  CU_ASSERT_EQUAL(system(command), 0);
}

/* With false programs in the places of the bundle's, one of whose three tests fails: each test has
 * a process, the failure is named, a sanitizer says how far it came, and later parts are run. */
TEST(the_bundle_names_the_test_that_fails_and_goes_on) {
  static const char script[] =
      "mkdir -p $f/lib $f/bin && cp experiments/bench/gpu_bundle.sh $f/run.sh && cd $f && "
      "printf '#!/bin/sh\\ncase $1 in --list) printf \"llm: cuda\\\\n  one\\\\n  two\\\\nllm: cuda "
      "x\\\\n  three\\\\ncli: y\\\\n  four\\\\n\" ;; *) [ $3 != two ] ;; esac\\n' > gepolab-tests "
      "&& "
      "printf '#!/bin/sh\\necho gepolab\\n' > gepolab && "
      "printf '#!/bin/bash\\nwhile [[ $1 != ./* ]]; do shift; done\\nexec \"$@\"\\n' > "
      "bin/compute-sanitizer && "
      "for p in ldd nvidia-smi; do printf '#!/bin/sh\\n' > bin/$p; done && chmod +x gepolab* bin/* "
      "&& "
      "{ PATH=$f/bin:$PATH bash ./run.sh logs tests memcheck decode-0.6b > said 2>&1; [ $? = 1 ]; "
      "} && "
      "[ \"$(grep -c '^0 ' logs/tests.txt) $(grep '^[1-9]' logs/tests.txt)\" = '2 1 llm: cuda|two' "
      "] && "
      "grep -q '3 of 3 tests got through in 120 s, 1 with errors' logs/memcheck.log && "
      "grep -q '^decode-0.6b: passed' said && grep -q 'again: llm: cuda, two' logs/tests.log";
  char folder[64], command[2048];
  cli_scratch_make(folder);
  snprintf(command, sizeof command, "f='%s'; %s", folder, script);
  CU_ASSERT_EQUAL(system(command), 0);
}
