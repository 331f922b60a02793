/* gepolab llm: warm-up, evaluation, generation, profile, and what they refuse. */
#include "core/json.h"
#include "tests/cli_support.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const char recipe_text[] =
    "name: tiny\nseed: 3\nsteps: 2\n"
    "world:\n"
    "  kind: llm\n"
    "  backend: cpu\n"
    "  model: {layers: 1, hidden: 16, heads: 2, context: 32}\n"
    "  task: {kind: addition, digits: 1}\n"
    "  warmup: {steps: 60, batch: 16, lr: 5e-3, check_every: 20, cache: false}\n"
    "  eval: {prompts: 10}\n"
    "train: {groups: 2, group_size: 4}\n";

/* A scratch folder with the recipe in it; and where a model of it goes. */
typedef struct place {
  char folder[64], recipe[128], model[128];
} place;

static place place_make(void) {
  place p;
  cli_scratch_make(p.folder);
  cli_write(cli_path(p.recipe, p.folder, "tiny.yaml"), recipe_text, sizeof recipe_text - 1);
  cli_path(p.model, p.folder, "model");
  return p;
}

static place place_with_model(void) {
  place p = place_make();
  CU_ASSERT_FATAL(CLI_GIVES(0, "llm", "sft", p.recipe, "-o", p.model, "-q"));
  return p;
}

static cJSON *json_of(const cli_result *r) {
  if (r->code != 0) fprintf(stderr, "%s", r->err);
  CU_ASSERT_EQUAL_FATAL(r->code, 0);
  cJSON *json = cJSON_Parse(r->out);
  CU_ASSERT_PTR_NOT_NULL_FATAL(json);
  return json;
}

/* The number at a dotted path, whose parts may be places in arrays. */
static double number_at(const cJSON *json, const char *path) {
  char part[64];
  while (json != NULL && *path != '\0') {
    size_t n = strcspn(path, ".");
    snprintf(part, sizeof part, "%.*s", (int)n, path);
    json = cJSON_IsArray(json) ? cJSON_GetArrayItem(json, atoi(part))
                               : cJSON_GetObjectItemCaseSensitive(json, part);
    path += n + (path[n] == '.');
  }
  CU_ASSERT_FATAL(cJSON_IsNumber(json));
  return json->valuedouble;
}

/* Exit code, words in the message, and nothing on standard output. */
static void check_refusal(const cli_result *r, int code, const char *says) {
  int good = r->code == code && strncmp(r->err, "gepolab: ", 9) == 0 &&
             strstr(r->err, says) != NULL && r->out_size == 0;
  if (!good) fprintf(stderr, "exit %d, expected %d and '%s': %s", r->code, code, says, r->err);
  CU_ASSERT(good);
}

#define REFUSED(code, says, ...)                                                                   \
  do {                                                                                             \
    cli_result refused_ = CLI(__VA_ARGS__);                                                        \
    check_refusal(&refused_, code, says);                                                          \
    cli_result_fini(&refused_);                                                                    \
  } while (0)

/* --- what works ---------------------------------------------------------------------------------
 */

static void a_warm_up_lowers_the_loss_and_leaves_a_folder(void) {
  place p = place_make();
  cli_result r = CLI("llm", "sft", p.recipe, "-o", p.model, "--json", "-q", "--every", "10");
  cJSON *d = json_of(&r);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(d, "curve")), 6);
  CU_ASSERT(number_at(d, "curve.5.loss") < 0.8 * number_at(d, "curve.0.loss"));
  CU_ASSERT_EQUAL(number_at(d, "curve.5.step"), 60);
  CU_ASSERT_EQUAL(cli_files_in(p.model), 3);
  cJSON_Delete(d);
  cli_result_fini(&r);
  /* A second run writes the same bytes. */
  char other[128], line[400];
  CU_ASSERT(CLI_GIVES(0, "llm", "sft", p.recipe, "-o", cli_path(other, p.folder, "other"), "-q"));
  snprintf(line, sizeof line, "cmp -s %s/model.safetensors %s/model.safetensors", p.model, other);
  CU_ASSERT_EQUAL(system(line), 0);
  /* And training goes on from the folder. */
  r = CLI("llm", "sft", p.model, "-o", other, "--json", "-q",
          "world.warmup={steps: 20, batch: 16, lr: 1e-3, check_every: 10}");
  d = json_of(&r);
  CU_ASSERT(number_at(d, "loss") < 1.5);
  cJSON_Delete(d);
  cli_result_fini(&r);
  cli_scratch_remove(p.folder);
}

static void info_names_sizes_and_memory(void) {
  place p = place_with_model();
  const char *const sources[] = {p.recipe, p.model};
  for (size_t i = 0; i < 2; ++i) {
    cli_result r = CLI("llm", "info", sources[i], "--json");
    cJSON *d = json_of(&r);
    /* 15 tokens of 16 tied; q 16x16, k and v 8x16, o 16x16, feed-forward 3 x 48x16; norms. */
    double n = 15 * 16 + 2 * 256 + 2 * 128 + 3 * 768 + 2 * 8 + 3 * 16;
    CU_ASSERT_EQUAL(number_at(d, "model.parameters"), n);
    CU_ASSERT(number_at(d, "memory_bytes.total") <= number_at(d, "memory_bytes.free"));
    CU_ASSERT(number_at(d, "memory_bytes.gradients") == 4 * n);
    CU_ASSERT(cJSON_IsTrue(cJSON_GetObjectItem(d, "fits")));
    cJSON_Delete(d);
    cli_result_fini(&r);
  }
  cli_scratch_remove(p.folder);
}

static void evaluation_repeats_and_its_numbers_fit_together(void) {
  place p = place_with_model();
  const char *const line[] = {"llm", "eval",  p.model, "--samples", "6",
                              "--k", "1,2,6", "-q",    "--json",    NULL};
  cli_result a = cli_run(NULL, line), b = cli_run(NULL, line);
  CU_ASSERT_STRING_EQUAL(a.out, b.out);
  cJSON *d = json_of(&a);
  CU_ASSERT_EQUAL(number_at(d, "problems"), 10);
  double one = number_at(d, "sampled.pass.0.value"), two = number_at(d, "sampled.pass.1.value"),
         six = number_at(d, "sampled.pass.2.value");
  CU_ASSERT(0 <= one && one <= two && two <= six && six <= 1);
  ASSERT_CLOSE(one, number_at(d, "sampled.reward"), 1e-12);
  ASSERT_CLOSE(number_at(d, "greedy.pass.0.value"), number_at(d, "greedy.reward"), 1e-12);
  CU_ASSERT(number_at(d, "greedy.pass.0.low") <= number_at(d, "greedy.pass.0.value"));
  CU_ASSERT(number_at(d, "greedy.tokens") >= 1 && number_at(d, "greedy.tokens") <= 3);
  cJSON_Delete(d);
  cli_result_fini(&a);
  cli_result_fini(&b);
  /* More samples keep the first ones, so more problems are solved, never fewer. */
  cli_result more = CLI("llm", "eval", p.model, "--samples", "12", "--k", "12", "-q", "--json");
  d = json_of(&more);
  CU_ASSERT(number_at(d, "sampled.pass.0.value") >= six);
  cJSON_Delete(d);
  cli_result_fini(&more);
  cli_scratch_remove(p.folder);
}

static void a_recipe_is_evaluated_after_its_warm_up(void) {
  place p = place_with_model();
  cli_result folder = CLI("llm", "eval", p.model, "-q", "--json"),
             recipe = CLI("llm", "eval", p.recipe, "-q", "--json");
  cJSON *a = json_of(&folder), *b = json_of(&recipe);
  CU_ASSERT(cJSON_Compare(cJSON_GetObjectItem(a, "greedy"), cJSON_GetObjectItem(b, "greedy"), 1));
  CU_ASSERT(cJSON_Compare(cJSON_GetObjectItem(a, "sampled"), cJSON_GetObjectItem(b, "sampled"), 1));
  cJSON_Delete(a);
  cJSON_Delete(b);
  cli_result_fini(&folder);
  cli_result_fini(&recipe);
  cli_scratch_remove(p.folder);
}

static void text_comes_from_words_or_standard_input(void) {
  place p = place_with_model();
  const char *const piped[] = {"llm", "generate", p.model, "-n", "2", NULL};
  cli_result words = CLI("llm", "generate", p.model, "3+4=", "1+1=", "-n", "2"),
             lines = cli_run("3+4=\n1+1=", piped), none = cli_run("", piped),
             first = CLI("llm", "generate", p.model, "-n", "2", "3+4=");
  CU_ASSERT_EQUAL(words.code, 0);
  CU_ASSERT_STRING_EQUAL(words.out, lines.out);
  CU_ASSERT(none.code == 0 && none.out_size == 0);
  CU_ASSERT(strncmp(words.out, first.out, first.out_size) == 0);
  CU_ASSERT(strncmp(words.out, "3+4=", 4) == 0);
  cli_result_fini(&words);
  cli_result_fini(&lines);
  cli_result_fini(&none);
  cli_result_fini(&first);
  cli_scratch_remove(p.folder);
}

static void generated_log_probabilities_are_printed(void) {
  place p = place_with_model();
  cli_result r = CLI("llm", "generate", p.model, "3+4=", "--json", "-n", "3", "--top-k", "2",
                     "--temperature", "1.5", "--max-tokens", "2", "--seed", "9");
  cJSON *d = json_of(&r), *list = cJSON_GetObjectItem(d, "responses"), *item = NULL;
  CU_ASSERT_EQUAL(cJSON_GetArraySize(list), 3);
  cJSON_ArrayForEach(item, list) {
    cJSON *raw = cJSON_GetObjectItem(item, "logprobs"),
          *cut = cJSON_GetObjectItem(item, "logprobs_truncated");
    double sum = 0;
    CU_ASSERT(cJSON_GetArraySize(raw) >= 1 && cJSON_GetArraySize(raw) <= 2);
    for (int k = 0; k < cJSON_GetArraySize(raw); ++k) {
      double a = cJSON_GetArrayItem(raw, k)->valuedouble,
             b = cJSON_GetArrayItem(cut, k)->valuedouble;
      CU_ASSERT(a < b && b <= 0);
      sum += a;
    }
    ASSERT_CLOSE(sum, number_at(item, "logp"), 1e-12);
  }
  cJSON_Delete(d);
  cli_result_fini(&r);
  cli_result once = CLI("llm", "generate", p.model, "3+4=", "--greedy"),
             again = CLI("llm", "generate", p.model, "3+4=", "--greedy", "--seed", "5");
  CU_ASSERT_STRING_EQUAL(once.out, again.out);
  cli_result_fini(&once);
  cli_result_fini(&again);
  cli_scratch_remove(p.folder);
}

/* RL is what `run` does, and its last evaluation is that of the model it leaves. */
static void reinforcement_learning_keeps_its_model(void) {
  place p = place_with_model();
  char trained[128], db[128];
  cli_path(trained, p.folder, "trained");
  cli_path(db, p.folder, "runs.db");
  cli_result rl = CLI("llm", "rl", p.model, "-o", trained, "--study", db, "-q", "--json", "steps=3",
                      "train={groups: 2, group_size: 4}", "optimizer.lr=1e-2"),
             run = CLI("run", p.recipe, "-q", "--json", "steps=3", "optimizer.lr=1e-2");
  cJSON *a = json_of(&rl), *b = json_of(&run);
  CU_ASSERT_EQUAL(number_at(a, "last"), number_at(b, "last"));
  CU_ASSERT_EQUAL(number_at(a, "last_update.grad_norm"), number_at(b, "last_update.grad_norm"));
  cli_result eval = CLI("llm", "eval", trained, "-q", "--json", "--samples", "1");
  cJSON *e = json_of(&eval);
  CU_ASSERT_EQUAL(number_at(e, "greedy.reward"), number_at(a, "last"));
  CU_ASSERT(CLI_GIVES(0, "export", db, "--table", "runs"));
  cJSON_Delete(a);
  cJSON_Delete(b);
  cJSON_Delete(e);
  cli_result_fini(&rl);
  cli_result_fini(&run);
  cli_result_fini(&eval);
  cli_scratch_remove(p.folder);
}

/* The profile as overrides, and as files, is what a cluster section takes. */
static void profiles_are_laws_that_recipes_take(void) {
  place p = place_make();
  char yaml[128], line[600];
  cli_result r = CLI("llm", "profile", p.recipe, "-n", "3", "-q", "--overrides");
  CU_ASSERT_EQUAL_FATAL(r.code, 0);
  const char *words[8] = {"sim", p.recipe, "--json"};
  size_t n = 3;
  for (char *w = strtok(r.out, "\n"); w != NULL && n < 7; w = strtok(NULL, "\n")) words[n++] = w;
  CU_ASSERT_EQUAL(n, 6);
  CU_ASSERT(cli_gives(0, words));
  cli_result_fini(&r);
  cli_path(yaml, p.folder, "machine.yaml");
  CU_ASSERT(
      CLI_GIVES(0, "llm", "profile", p.recipe, "-n", "3", "-q", "--law", "lengths", "-o", yaml));
  snprintf(line, sizeof line, "%s/machine.csv", p.folder);
  CU_ASSERT_EQUAL(access(line, R_OK), 0);
  snprintf(line, sizeof line, "cat %s >> %s", yaml, p.recipe);
  CU_ASSERT_EQUAL(system(line), 0);
  r = CLI("sim", p.recipe, "--json");
  cJSON *d = json_of(&r);
  CU_ASSERT(number_at(d, "batches_trained") >= 1);
  cJSON_Delete(d);
  cli_result_fini(&r);
  cli_scratch_remove(p.folder);
}

/* --- what is refused ----------------------------------------------------------------------------
 */

static void wrong_usage_is_told(void) {
  place p = place_make();
  REFUSED(2, "'generate'", "llm", "genrate", p.recipe);
  REFUSED(2, "usage", "llm", "eval");
  REFUSED(2, "-o FOLDER", "llm", "sft", p.recipe);
  REFUSED(2, "sweep", "llm", "rl", p.recipe, "-q", "sweep.seed=[1,2]");
  REFUSED(2, "warmup", "llm", "sft", p.recipe, "-o", p.model, "world.warmup=null");
  REFUSED(2, "transformer", "llm", "info", "quickstart");
  REFUSED(2, "no such file", "llm", "eval", "nowhere/at/all");
  REFUSED(2, "--samples 9", "llm", "eval", p.recipe, "--k", "1,9");
  REFUSED(2, "1,4,8", "llm", "eval", p.recipe, "--k", "1,,2");
  REFUSED(2, "--samples", "llm", "eval", p.recipe, "--samples", "0");
  REFUSED(2, "temperature", "llm", "generate", p.recipe, "1+1=", "--temperature", "0");
  REFUSED(2, "top_p", "llm", "generate", p.recipe, "1+1=", "--top-p", "2");
  REFUSED(2, "-o FILE.yaml", "llm", "profile", p.recipe, "--law", "empirical");
  REFUSED(2, "'lengths'", "llm", "profile", p.recipe, "--law", "length");
  REFUSED(2, "'world'", "llm", "info", p.recipe, "wrold.slots=3");
  cli_result r = CLI("llm");
  CU_ASSERT(r.code == 2 && strstr(r.err, "profile") != NULL);
  cli_result_fini(&r);
  CU_ASSERT_EQUAL(cli_files_in(p.folder), 1);
  cli_scratch_remove(p.folder);
}

static void every_word_has_help_with_examples(void) {
  static const char *const words[] = {"info", "sft", "rl", "eval", "generate", "profile"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    cli_result r = CLI("llm", words[i], "--help");
    CU_ASSERT_EQUAL(r.code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "examples:\n  gepolab llm"));
    cli_result_fini(&r);
  }
  cli_result r = CLI("llm", "--help");
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, words[i]));
  cli_result_fini(&r);
}

static void prompts_that_no_token_writes_are_refused(void) {
  place p = place_with_model();
  REFUSED(2, "alphabet", "llm", "generate", p.model, "3+x=");
  REFUSED(2, "context", "llm", "generate", p.model, "1111111111111111111111111111111111111111");
  cli_scratch_remove(p.folder);
}

static void what_does_not_fit_into_memory_is_refused_before_it_starts(void) {
  place p = place_make();
  const char *const large = "world.model={layers: 64, hidden: 16384, context: 32}";
  cli_result r = CLI("llm", "info", p.recipe, large);
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "smaller model"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "total"));
  cli_result_fini(&r);
  REFUSED(1, "smaller model", "llm", "sft", p.recipe, "-o", p.model, "-q", large);
  REFUSED(1, "smaller model", "run", p.recipe, "-q", large);
  REFUSED(1, "micro_batch", "llm", "sft", p.recipe, "-o", p.model, "-q",
          "world.micro_batch=10000000000");
  CU_ASSERT_EQUAL(cli_files_in(p.folder), 1);
  cli_scratch_remove(p.folder);
}

/* --- damaged and unwritable ---------------------------------------------------------------------
 */

/* Replaces the first `from` in a file by `to` of the same length. */
static void damage(const char *folder, const char *name, const char *from, const char *to) {
  char path[192];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "r+b");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  static char bytes[1 << 16];
  size_t n = fread(bytes, 1, sizeof bytes, f), length = strlen(from), at = 0;
  while (at + length <= n && memcmp(bytes + at, from, length) != 0) ++at;
  CU_ASSERT_FATAL(at + length <= n && strlen(to) == length);
  CU_ASSERT(fseek(f, (long)at, SEEK_SET) == 0 && fwrite(to, 1, length, f) == length);
  fclose(f);
}

static void refuses_model(const place *p, const char *says) {
  cli_result r = CLI("llm", "eval", p->model, "-q");
  if (strstr(r.err, says) == NULL) fprintf(stderr, "'%s' expected: %s", says, r.err);
  CU_ASSERT((r.code == 1 || r.code == 2) && strstr(r.err, says) != NULL && r.out_size == 0);
  cli_result_fini(&r);
}

static void damaged_folders_are_named_and_refused(void) {
  place p = place_with_model();
  char path[192];
  damage(p.model, "config.json", "\"hidden_size\"", "\"hidden_sise\"");
  refuses_model(&p, "hidden_size");
  damage(p.model, "config.json", "\"hidden_sise\"", "\"hidden_size\"");
  damage(p.model, "model.safetensors", "\"dtype\"", "\"dtipe\"");
  refuses_model(&p, "model.safetensors");
  damage(p.model, "model.safetensors", "\"dtipe\"", "\"dtype\"");
  snprintf(path, sizeof path, "%s/gepolab.json", p.model);
  CU_ASSERT_EQUAL(truncate(path, 20), 0);
  refuses_model(&p, "gepolab.json");
  CU_ASSERT_EQUAL(remove(path), 0);
  refuses_model(&p, "world.task");
  REFUSED(2, "tokenizer", "llm", "generate", p.model, "1+1=");
  snprintf(path, sizeof path, "%s/model.safetensors", p.model);
  CU_ASSERT_EQUAL(truncate(path, 3000), 0);
  REFUSED(2, "model.safetensors", "llm", "eval", p.model, "-q",
          "world.task={kind: addition, digits: 1}");
  CU_ASSERT_EQUAL(remove(path), 0);
  REFUSED(2, "model.safetensors", "llm", "generate", p.model, "1+1=", "--set",
          "world.tokenizer=byte");
  cli_scratch_remove(p.folder);
}

static void outputs_that_cannot_be_written_are_found_first(void) {
  place p = place_make();
  char below[192];
  snprintf(below, sizeof below, "%s/missing/model", p.folder);
  REFUSED(1, "missing/model", "llm", "sft", p.recipe, "-o", below, "-q");
  REFUSED(1, "is a file", "llm", "sft", p.recipe, "-o", p.recipe, "-q");
  REFUSED(1, "missing/model", "llm", "rl", p.recipe, "-o", below, "-q");
  snprintf(below, sizeof below, "%s/missing/machine.yaml", p.folder);
  REFUSED(1, "missing", "llm", "profile", p.recipe, "-o", below, "-q");
  cli_scratch_remove(p.folder);
}

static void a_full_disk_leaves_no_half_model(void) {
  char folder[64], recipe[128], model[128], path[192];
  cli_scratch_make(folder);
  if (mount("tmpfs", folder, "tmpfs", 0, "size=40k") != 0) {
    cli_scratch_remove(folder);
    SKIP("a small tmpfs needs root");
  }
  cli_write(cli_path(recipe, folder, "tiny.yaml"), recipe_text, sizeof recipe_text - 1);
  cli_result r = CLI("llm", "sft", recipe, "-o", cli_path(model, folder, "model"), "-q",
                     "world.model.hidden=64");
  CU_ASSERT_EQUAL(r.code, 1);
  if (strstr(r.err, "full") == NULL) fprintf(stderr, "%s", r.err);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "full"));
  snprintf(path, sizeof path, "%s/model.safetensors", model);
  CU_ASSERT_EQUAL(access(path, F_OK), -1);
  cli_result_fini(&r);
  CU_ASSERT_EQUAL(umount(folder), 0);
  cli_scratch_remove(folder);
}

static void a_device_that_is_not_there_is_told(void) {
  place p = place_make();
  cli_result r = CLI("llm", "info", p.recipe, "world.backend=cuda");
  if (r.code != 0) check_refusal(&r, 1, "no CUDA device");
  cli_result_fini(&r);
  cli_scratch_remove(p.folder);
}

SUITE(cli_llm, "cli: llm", TEST(a_warm_up_lowers_the_loss_and_leaves_a_folder),
      TEST(info_names_sizes_and_memory), TEST(evaluation_repeats_and_its_numbers_fit_together),
      TEST(a_recipe_is_evaluated_after_its_warm_up), TEST(text_comes_from_words_or_standard_input),
      TEST(generated_log_probabilities_are_printed), TEST(reinforcement_learning_keeps_its_model),
      TEST(profiles_are_laws_that_recipes_take), TEST(wrong_usage_is_told),
      TEST(every_word_has_help_with_examples), TEST(prompts_that_no_token_writes_are_refused),
      TEST(what_does_not_fit_into_memory_is_refused_before_it_starts),
      TEST(damaged_folders_are_named_and_refused),
      TEST(outputs_that_cannot_be_written_are_found_first), TEST(a_full_disk_leaves_no_half_model),
      TEST(a_device_that_is_not_there_is_told));
