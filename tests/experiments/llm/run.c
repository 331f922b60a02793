/* Worlds of kind llm through the commands run and sweep. */
#include "experiments/base/program.h"
#include "experiments/recipe/recipe.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("cli: llm runs");

/* The embedded recipe, cut down to a moment. */
#define QUICK                                                                                      \
  "run", "llm_quick", "world.warmup={steps: 20, lr: 0.003}", "world.evaluation.prompts=32",        \
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
  CU_ASSERT(setenv("GEPOLAB_CACHE", "", 1) == 0);
}

/* Without access to the program's file, too. */
TEST(kept_results_are_those_of_the_same_build) {
  cache_place place;
  char build[32];
  snprintf(build, sizeof build, "%016llx", (unsigned long long)build_number());
  CU_ASSERT(build_number() != 0);
  CU_ASSERT_STRING_EQUAL(cache_find(&place)->code, build);
}

/* Made, kept, with other threads, and with no cache at all: the same numbers. */
TEST(llm_quick_runs_and_says_the_same_however_it_is_run) {
  char folder[64], cache[128];
  begin(folder);
  cli_result made = CLI(QUICK, "-t", "2");
  CU_ASSERT_EQUAL(made.code, 0);
  CU_ASSERT_EQUAL(cli_files_in(cli_path(cache, folder, "cache")), 2); /* and .locks */
  cli_result kept = CLI(QUICK, "-t", "1");
  CU_ASSERT(setenv("GEPOLAB_CACHE", "", 1) == 0);
  cli_result uncached = CLI(QUICK, "-t", "1");
  CU_ASSERT(setenv("GEPOLAB_CACHE", cache, 1) == 0);
  CU_ASSERT_STRING_EQUAL(made.out, kept.out);
  CU_ASSERT_STRING_EQUAL(made.out, uncached.out);
  double first = printed_number(&made, "eval_first"), best = printed_number(&made, "best"),
         last = printed_number(&made, "last");
  CU_ASSERT(first >= 0 && first <= best && last <= best && best <= 1);
  ASSERT_CLOSE(printed_number(&made, "best_to_last"), best - last, 1e-12);
  CU_ASSERT_EQUAL(printed_number(&made, "steps"), 4);
  end(folder);
}

TEST(a_sweep_of_transformers_does_not_depend_on_its_workers) {
  static const char text[] =
      "steps: 3\neval_every: 3\nworld: {kind: llm, backend: cpu, model: {layers: 1, hidden: 16, "
      "heads: 2, context: 24}, task: {kind: sorting, length: 3}, evaluation: {prompts: 8}, warmup: "
      "{steps: 20}}\ntrain: {groups: 2, group_size: 4}\ncluster: {preset: areal, samplers: 2, "
      "generation: 30}\nsweep: {algorithm: [grpo, gepo], seed: [1, 2]}\n";
  char folder[64], path[128], db[128], other[128];
  begin(folder);
  cli_write(cli_path(path, folder, "small.yaml"), text, sizeof text - 1);
  CU_ASSERT(CLI_GIVES(0, "sweep", path, "-o", cli_path(db, folder, "a.db"), "-j", "1", "-q"));
  CU_ASSERT(CLI_GIVES(0, "sweep", path, "-o", cli_path(other, folder, "b.db"), "-j", "2", "-q"));
  cli_result a = CLI("export", db, "--table", "steps", "--format", "csv"),
             b = CLI("export", other, "--table", "steps", "--format", "csv");
  CU_ASSERT(a.out_size > 1000);
  CU_ASSERT_STRING_EQUAL(a.out, b.out);
  CU_ASSERT(CLI_GIVES(0, "analyze", db));
  end(folder);
}

static int refused(const cli_result *r, int code, const char *says) {
  int good = r->code == code && strstr(r->err, says) != NULL && r->out_size == 0;
  if (!good) fprintf(stderr, "exit code %d: %s\n", r->code, r->err);
  return good;
}

static void says_what_is_missing(const char *name) {
  char folder[64], data[128], text[4096];
  size_t size = 0;
  begin(folder);
  cli_result r = CLI("run", name, "world.task.path=/no/such/file.jsonl");
  CU_ASSERT(refused(&r, 2, "cannot read /no/such/file.jsonl"));
  for (int i = 0; i < 60; ++i)
    size +=
        (size_t)snprintf(text + size, sizeof text - size,
                         "{\"problem\": \"%d+1?\", \"solution\": \"\\\\boxed{%d}\"}\n", i, i + 1);
  cli_write(cli_path(data, folder, "math.jsonl"), text, size);
  char path[200];
  snprintf(path, sizeof path, "world.task.path=%s", data);
  r = CLI("run", name, path, "world.model.path=/no/such/folder");
  CU_ASSERT(refused(&r, 2, "there is no folder '/no/such/folder'"));
  /* all its settings but the sizes, on a model that is made here */
  r = CLI("run", name, path, "world.backend=cpu", "world.dtype=float32",
          "world.model={layers: 1, hidden: 16, heads: 2, context: 160}", "world.tokenizer=byte",
          "world.stop=null", "world.template=null", "world.task.template='{prompt}'",
          "world.max_tokens=4", "world.micro_batch=512", "world.evaluation.prompts=2",
          "train.groups=2", "steps=2", "eval_every=2");
  if (r.code != 0) fprintf(stderr, "%s: %s\n", name, r.err);
  CU_ASSERT(r.code == 0);
  end(folder);
}

TEST(recipes_for_a_checkpoint_of_ones_own_say_what_is_missing) {
  says_what_is_missing("qwen3_math");
  says_what_is_missing("released_qwen3");
}

TEST(a_machine_without_cuda_says_so) {
  if (access("/dev/nvidiactl", F_OK) == 0) SKIP("there is a CUDA device");
  char folder[64];
  begin(folder);
  cli_result r = CLI(QUICK, "world.backend=cuda");
  CU_ASSERT(refused(&r, 1, "no CUDA device"));
  end(folder);
}

/* --- before a sweep begins --- */

static const char small[] =
    "steps: 2\neval_every: 2\nworld: {kind: llm, backend: cpu, model: {layers: 1, hidden: 16, "
    "heads: 2, context: 24}, task: {kind: sorting, length: 3}, evaluation: {prompts: 8}}\n"
    "train: {groups: 2, group_size: 4}\n"
    "sweep: {algorithm: [grpo, gepo], seed: [1, 2]}\n";

TEST(a_sweep_that_this_machine_cannot_run_is_one_message_and_no_file) {
  char folder[64], path[128], db[128];
  begin(folder);
  cli_write(cli_path(path, folder, "small.yaml"), small, sizeof small - 1);
  cli_path(db, folder, "a.db");
  cli_result r = CLI("sweep", path, "-o", db, "-q", "-j", "2",
                     "sweep.world.model.hidden=[16, 1000000]", "tune={lr: [0.1, 0.2], seeds: [9]}");
  CU_ASSERT(refused(&r, 1, "grpo, seed 1, {\"world.model.hidden\":1000000}: the model needs"));
  CU_ASSERT_PTR_NULL(strstr(r.err, "runs failed"));
  CU_ASSERT_EQUAL(cli_files_in(folder), 1);
  if (access("/dev/nvidiactl", F_OK) != 0) {
    r = CLI("sweep", path, "-o", db, "-q", "world.backend=cuda");
    CU_ASSERT(refused(&r, 1, "grpo, seed 1, {}: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "CUDA"));
    CU_ASSERT_EQUAL(cli_files_in(folder), 1);
  }
  end(folder);
}

/* Of a study that is begun only what is left asks for the machine. */
TEST(cells_that_are_finished_need_no_machine) {
  char folder[64], path[128], db[128];
  begin(folder);
  cli_write(cli_path(path, folder, "small.yaml"), small, sizeof small - 1);
  cli_path(db, folder, "a.db");
  const char *const sizes = "sweep.world.model.hidden=[16, 1000000]";
  CU_ASSERT(CLI_GIVES(0, "sweep", path, "-o", db, "-q", "sweep.world.model.hidden=[16]"));
  cli_result before = CLI("export", db, "--table", "runs", "--format", "csv");
  cli_result r = CLI("sweep", path, "-o", db, "-q", sizes);
  CU_ASSERT(refused(&r, 1, "the model needs"));
  cli_result after = CLI("export", db, "--table", "runs", "--format", "csv");
  CU_ASSERT(before.out_size > 100);
  CU_ASSERT_STRING_EQUAL(before.out, after.out);
  CU_ASSERT(CLI_GIVES(0, "sweep", path, "-o", db, "-q", "sweep.world.model.hidden=[16]"));
  end(folder);
}

TEST(what_a_transformer_cannot_do_is_told_with_its_place) {
  static const char wrong[] =
      "world: {kind: llm, model: {layers: 1, hidden: 16, heads: 2, context: 24}, "
      "task: {kind: sorting, length: 3}}\n"
      "train:\n  groups: 2\n  minibatches: 4\n"
      "algorithm: {base: gepo,\n  denominator: exact}\n";
  char folder[64], path[128];
  begin(folder);
  cli_write(cli_path(path, folder, "wrong.yaml"), wrong, sizeof wrong - 1);
  cli_result r = CLI("run", path);
  CU_ASSERT(refused(&r, 2, "wrong.yaml:4:16: train.minibatches is 4"));
  r = CLI("run", path, "train.minibatches=1");
  CU_ASSERT(refused(&r, 2, "wrong.yaml:6:16: algorithm gepo(denominator=exact): denominator"));
  r = CLI("run", path, "train.minibatches=3");
  CU_ASSERT(refused(&r, 2, "command line:1:19: in 'train.minibatches=3': train.minibatches is 3"));
  r = CLI("run", path, "train={group_size: 1}", "algorithm=grpo");
  CU_ASSERT(
      refused(&r, 2, "command line:1:20: in 'train={group_size: 1}': algorithm grpo: baseline"));
  CU_ASSERT(strstr(r.err, "set group_size to 2 or more") != NULL);
  r = CLI("run", path, "train={group_size: 1}", "algorithm=is", "world={kind: bandit, arms: 3}");
  CU_ASSERT(refused(&r, 2, "algorithm is: baseline: leave_one_out compares"));
  r = CLI("run", path, "world={kind: bandit, arms: 3}");
  CU_ASSERT(refused(&r, 2, "wrong.yaml:4:16: train.minibatches is 4"));
  end(folder);
}

static gl_status check_file(const char *path, const char *override, recipe_worlds *known) {
  cfg_doc *doc = NULL;
  recipe r;
  gl_error err = {0};
  gl_status status = recipe_load(&doc, path, &override, override != NULL, &err);
  if (status == GL_OK) status = recipe_read(&r, doc, &err);
  if (status == GL_OK) status = recipe_check(&r, known, &err);
  cfg_free(doc);
  return status;
}

/* A data set that is gone is missed by the first cell that asks for it, and by no other. */
TEST(cells_of_one_world_read_its_files_once) {
  static const char line[] = "{\"prompt\": \"1+1?\", \"answer\": \"2\"}\n"
                             "{\"prompt\": \"1+2?\", \"answer\": \"3\"}\n";
  static const char text[] =
      "world: {kind: llm, model: {layers: 1, hidden: 16, heads: 2, context: 64}, max_tokens: 8, "
      "tokenizer: byte, task: {kind: math, path: math.jsonl, held_out: 0.5}}\n";
  char folder[64], path[128], data[128];
  recipe_worlds known = {0};
  begin(folder);
  cli_write(cli_path(data, folder, "math.jsonl"), line, sizeof line - 1);
  cli_write(cli_path(path, folder, "math.yaml"), text, sizeof text - 1);
  CU_ASSERT_EQUAL(check_file(path, NULL, &known), GL_OK);
  CU_ASSERT_EQUAL(remove(data), 0);
  CU_ASSERT_EQUAL(check_file(path, NULL, &known), GL_OK);
  CU_ASSERT_EQUAL(check_file(path, "seed=5", &known), GL_OK);
  CU_ASSERT_EQUAL(check_file(path, "algorithm=gepo", &known), GL_OK);
  CU_ASSERT_EQUAL(known.n, 2); /* a world and a cluster */
  CU_ASSERT_EQUAL(check_file(path, "optimizer={lr: -1}", &known), GL_EINPUT);
  CU_ASSERT_EQUAL(check_file(path, "train.minibatches=9", &known), GL_EINPUT);
  CU_ASSERT_EQUAL(check_file(path, "world.max_tokens=9", &known), GL_EINPUT);
  CU_ASSERT_EQUAL(check_file(path, "sampling={top_k: 2}", &known), GL_EINPUT);
  CU_ASSERT_EQUAL(check_file(path, NULL, NULL), GL_EINPUT);
  CU_ASSERT_EQUAL(known.n, 2);
  recipe_worlds_fini(&known);
  end(folder);
}
