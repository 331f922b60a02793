/* Runs that begin from checkpoints of `gepolab llm sft`, one for each seed: they begin where those
 * ended, cells know their checkpoint, and one that does not fit is refused by name. */
#include "tests/support/cli_llm.h"
#include "tests/support/suite.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("cli: starts");

#define TASK "  task: {kind: sorting, length: 3, values: 3, reward: graded}\n"
#define WORLD "world:\n  kind: llm\n  backend: cpu\n  evaluation: {prompts: 16}\n" TASK

static const char sft_recipe[] =
    "name: warm\n" WORLD "  model: {layers: 1, hidden: 16, heads: 2, context: 32}\n"
    "  warmup: {steps: 80, batch: 16, lr: 5e-3, check_every: 20, cache: false}\n";
static const char rl_recipe[] = "name: rl\nsteps: 2\n" WORLD "  model: {path: \"starts/{seed}\"}\n"
                                "train: {groups: 2, group_size: 4}\n";

/* A folder with recipes of the warm-up, of a run and of a sweep over the seeds 1 and 2, and with
 * these seeds' starts. */
typedef struct study_place {
  char folder[64], sft[128], rl[128], sweep[128], study[128], start[3][128];
} study_place;

static void warm_up(const study_place *p, int seed, const char *steps) {
  char word[32];
  cli_scratch_remove(p->start[seed]);
  snprintf(word, sizeof word, "seed=%d", seed);
  CU_ASSERT_FATAL(CLI_GIVES(0, "llm", "sft", p->sft, "-o", p->start[seed], "-q", word, steps));
}

static study_place study_make(void) {
  study_place p;
  char text[1024], starts[128];
  cli_scratch_make(p.folder);
  cli_write(cli_path(p.sft, p.folder, "sft.yaml"), sft_recipe, sizeof sft_recipe - 1);
  cli_write(cli_path(p.rl, p.folder, "rl.yaml"), rl_recipe, sizeof rl_recipe - 1);
  snprintf(text, sizeof text, "%ssweep: {seed: [1, 2]}\n", rl_recipe);
  cli_write(cli_path(p.sweep, p.folder, "sweep.yaml"), text, strlen(text));
  cli_path(p.study, p.folder, "study.db");
  CU_ASSERT_FATAL(mkdir(cli_path(starts, p.folder, "starts"), 0777) == 0);
  cli_path(p.start[1], p.folder, "starts/1");
  cli_path(p.start[2], p.folder, "starts/2");
  for (int seed = 1; seed <= 2; ++seed) warm_up(&p, seed, "world.warmup.steps=80");
  return p;
}

static double number_of(cli_result r, const char *path) {
  cJSON *json = json_of(&r);
  const double found = number_at(json, path);
  return found;
}

/* The first evaluation of a run of that seed is what `llm eval` says of the seed's start. */
TEST(a_run_begins_where_its_seeds_start_ended) {
  study_place p = study_make();
  double score[3] = {0};
  for (int seed = 1; seed <= 2; ++seed) {
    char word[32];
    snprintf(word, sizeof word, "seed=%d", seed);
    score[seed] = number_of(CLI("run", p.rl, word, "--json", "-q"), "eval_first");
    const double reward =
        number_of(CLI("llm", "eval", p.start[seed], "--json", "-q"), "greedy.reward");
    ASSERT_CLOSE(score[seed], reward, 1e-12);
    CU_ASSERT(score[seed] > 0);
  }
  CU_ASSERT(score[1] != score[2]);
}

static int says(cli_result r, const char *words) {
  const int found = r.code == 0 && strstr(r.out, words) != NULL;
  if (!found && r.code != 0) fprintf(stderr, "%s", r.err);
  return found;
}

/* A start that is trained anew is another cell, and the run of the old one stays. Starts of
 * different seeds are draws of one cell; only two starts of one seed are told apart. */
TEST(cells_know_the_checkpoint_that_they_begin_from) {
  study_place p = study_make();
  CU_ASSERT(CLI_GIVES(0, "sweep", p.sweep, "-o", p.study, "-q"));
  CU_ASSERT_EQUAL(number_of(CLI("status", p.study, "--json"), "studies.0.done"), 2);
  CU_ASSERT(!says(CLI("analyze", p.study), "model checksum"));
  CU_ASSERT(CLI_GIVES(0, "sweep", p.sweep, "-o", p.study, "-q"));
  CU_ASSERT_EQUAL(number_of(CLI("status", p.study, "--json"), "studies.0.done"), 2);
  warm_up(&p, 2, "world.warmup.steps=81");
  CU_ASSERT(CLI_GIVES(0, "sweep", p.sweep, "-o", p.study, "-q"));
  CU_ASSERT_EQUAL(number_of(CLI("status", p.study, "--json"), "studies.0.done"), 3);
  CU_ASSERT(says(CLI("analyze", p.study), "model checksum"));
  /* the same model again: its first run is found */
  warm_up(&p, 2, "world.warmup.steps=80");
  CU_ASSERT(CLI_GIVES(0, "sweep", p.sweep, "-o", p.study, "-q"));
  CU_ASSERT_EQUAL(number_of(CLI("status", p.study, "--json"), "studies.0.done"), 3);
}

TEST(a_start_that_does_not_fit_is_refused_by_name) {
  study_place p = study_make();
  char parameters[160];
  REFUSED(2, "there is no folder", "run", p.rl, "-q", "seed=7");
  REFUSED(2, "trained on the task sorting, whose letters", "run", p.rl, "-q", "seed=1",
          "world.task={kind: addition}");
  REFUSED(2, "trained with tokenizer: char, and the recipe has byte", "run", p.rl, "-q", "seed=1",
          "world.tokenizer=byte");
  REFUSED(2, "has the checksum xxh3-", "run", p.rl, "-q", "seed=1", "world.model.checksum=xxh3-0");
  REFUSED(2, "has the checksum xxh3-", "sweep", p.sweep, "-q", "-o", p.study,
          "world.model.checksum=xxh3-0");
  REFUSED(2, "checksum is that of a folder", "run", p.sft, "-q", "steps=1",
          "world.model.checksum=xxh3-0");
  snprintf(parameters, sizeof parameters, "%s/model.safetensors", p.start[2]);
  CU_ASSERT_FATAL(truncate(parameters, 100) == 0);
  REFUSED(2, "was not copied whole", "run", p.rl, "-q", "seed=2");
  CU_ASSERT_FATAL(unlink(parameters) == 0);
  REFUSED(2, "has no parameters", "sweep", p.sweep, "-q", "-o", p.study);
  CU_ASSERT(access(p.study, F_OK) != 0);
}
