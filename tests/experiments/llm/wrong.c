/* gepolab llm: wrong usage, what does not fit, damaged folders, outputs that cannot be written. */
#include "llm/backend/open/open.h"
#include "tests/support/cli_llm.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("cli: llm refusals");

TEST(wrong_usage_is_told) {
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
  REFUSED(2, "-o FILE.yaml", "llm", "profile", p.recipe, "--distribution", "empirical");
  REFUSED(2, "-o FILE.yaml", "llm", "profile", p.recipe, "--law", "empirical"); /* the old name */
  REFUSED(2, "'lengths'", "llm", "profile", p.recipe, "--law", "length");
  REFUSED(2, "'world'", "llm", "info", p.recipe, "wrold.slots=3");
  cli_result r = CLI("llm");
  CU_ASSERT(r.code == 2 && strstr(r.err, "profile") != NULL);
  CU_ASSERT_EQUAL(cli_files_in(p.folder), 1);
}

TEST(every_word_has_help_with_examples) {
  static const char *const words[] = {"info", "tasks", "sft", "rl", "eval", "generate", "profile"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    cli_result r = CLI("llm", words[i], "--help");
    CU_ASSERT_EQUAL(r.code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "examples:\n  gepolab llm"));
  }
  cli_result r = CLI("llm", "--help");
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, words[i]));
}

TEST(prompts_that_no_token_writes_are_refused) {
  place p = place_with_model();
  REFUSED(2, "alphabet", "llm", "generate", p.model, "3+x=");
  REFUSED(2, "context", "llm", "generate", p.model, "1111111111111111111111111111111111111111");
}

TEST(what_does_not_fit_into_memory_is_refused_before_it_starts) {
  place p = place_make();
  const char *const large = "world.model={layers: 64, hidden: 16384, context: 32}";
  cli_result r = CLI("llm", "info", p.recipe, large);
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "smaller model"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "total"));
  REFUSED(1, "smaller model", "llm", "sft", p.recipe, "-o", p.model, "-q", large);
  REFUSED(1, "smaller model", "run", p.recipe, "-q", large);
  REFUSED(1, "micro_batch", "llm", "sft", p.recipe, "-o", p.model, "-q",
          "world.micro_batch=10000000000");
  CU_ASSERT_EQUAL(cli_files_in(p.folder), 1);
}

/* --- damaged and unwritable --- */

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
}

TEST(damaged_folders_are_named_and_refused) {
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
}

/* The last of the file's float32 numbers becomes `bits`. */
static void end_with(const char *path, const unsigned char bits[4]) {
  FILE *f = fopen(path, "r+b");
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  CU_ASSERT(fseek(f, -4, SEEK_END) == 0 && fwrite(bits, 1, 4, f) == 4);
  fclose(f);
}

/* "pass@1 0.0000" and exit code 0 would be taken for a result. */
TEST(weights_that_are_not_finite_are_refused_by_every_word) {
  static const unsigned char nan_bits[4] = {0, 0, 0xc0, 0x7f}, infinity[4] = {0, 0, 0x80, 0x7f};
  place p = place_with_model();
  char path[192], other[192];
  snprintf(path, sizeof path, "%s/model.safetensors", p.model);
  snprintf(other, sizeof other, "%s/other", p.folder);
  end_with(path, infinity);
  REFUSED(2, "holds inf at [", "llm", "eval", p.model, "-q");
  end_with(path, nan_bits);
  REFUSED(2, "model.safetensors: tensor ", "llm", "eval", p.model, "-q", "--samples", "4");
  REFUSED(2, "holds nan at [", "llm", "generate", p.model, "1+1=");
  REFUSED(2, "holds nan at [", "llm", "rl", p.model, "-q", "steps=1");
  REFUSED(2, "holds nan at [", "llm", "sft", p.model, "-q", "-o", other,
          "world.warmup={steps: 2, cache: false}");
}

TEST(outputs_that_cannot_be_written_are_found_first) {
  place p = place_make();
  char below[192];
  snprintf(below, sizeof below, "%s/missing/model", p.folder);
  REFUSED(1, "missing/model", "llm", "sft", p.recipe, "-o", below, "-q");
  REFUSED(1, "is a file", "llm", "sft", p.recipe, "-o", p.recipe, "-q");
  REFUSED(1, "missing/model", "llm", "rl", p.recipe, "-o", below, "-q");
  snprintf(below, sizeof below, "%s/missing/machine.yaml", p.folder);
  REFUSED(1, "missing", "llm", "profile", p.recipe, "-o", below, "-q");
}

TEST(a_folder_without_a_model_says_so) {
  place p = place_with_model();
  char path[192];
  REFUSED(2, "so it is no model's folder", "llm", "info", p.folder);
  snprintf(path, sizeof path, "%s/gepolab.json", p.model);
  CU_ASSERT_FATAL(unlink(path) == 0);
  REFUSED(2, "--set world.tokenizer=byte", "llm", "generate", p.model, "hello");
}

TEST(a_folder_with_a_model_is_not_overwritten) {
  place p = place_with_model();
  char path[192], docs[128];
  snprintf(path, sizeof path, "%s/model.safetensors", p.model);
  struct stat before, after;
  CU_ASSERT_FATAL(stat(path, &before) == 0);
  REFUSED(2, "name another folder", "llm", "sft", p.recipe, "-o", p.model, "-q");
  REFUSED(2, "name another folder", "llm", "sft", p.model, "-o", p.model, "-q",
          "world.warmup={steps: 2, cache: false}");
  REFUSED(2, "name another folder", "llm", "rl", p.model, "-o", p.model, "-q", "steps=1");
  CU_ASSERT(stat(path, &after) == 0 && after.st_ino == before.st_ino);
  CU_ASSERT_FATAL(mkdir(cli_path(docs, p.folder, "docs"), 0777) == 0);
  snprintf(path, sizeof path, "%s/config.json", docs);
  cli_write(path, "{}", 2);
  REFUSED(2, "docs' has a file config.json already", "llm", "sft", p.recipe, "-o", docs, "-q");
}

TEST(a_full_disk_leaves_no_half_model) {
  char folder[64], recipe[128], model[128], path[192];
  cli_scratch_make(folder);
  if (mount("tmpfs", folder, "tmpfs", 0, "size=40k") != 0) {
    SKIP("a small tmpfs needs root");
  }
  cli_write(cli_path(recipe, folder, "tiny.yaml"), llm_recipe, strlen(llm_recipe));
  cli_result r = CLI("llm", "sft", recipe, "-o", cli_path(model, folder, "model"), "-q",
                     "world.model.hidden=64");
  CU_ASSERT_EQUAL(r.code, 1);
  if (strstr(r.err, "full") == NULL) fprintf(stderr, "%s", r.err);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "full"));
  snprintf(path, sizeof path, "%s/model.safetensors", model);
  CU_ASSERT_EQUAL(access(path, F_OK), -1);
  CU_ASSERT_EQUAL(umount(folder), 0);
}

TEST(a_device_that_is_not_there_is_told) {
  place p = place_make();
  cli_result r = CLI("llm", "info", p.recipe, "world.backend=cuda");
  if (r.code != 0)
    check_refusal(&r, 1, "no CUDA device");
  else
    CU_ASSERT(backend_devices() > 0);
}

/* `gpu` is another program's name of the device. */
TEST(another_name_of_a_device_has_the_right_one) {
  place p = place_make();
  cli_result r = CLI("llm", "info", p.recipe, "world.backend=gpu");
  check_refusal(&r, 2, "write world.backend=cuda");
}
