/* The recipes of the GEPO paper's released code and of its text are accepted and run, shortened. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("cli: recipes of the paper");

static void run_shortened(const char *name) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "s.db");
  cli_result r =
      CLI("sweep", name, "-o", path, "-j", "1", "-q", "steps=2", "eval_every=2", "sweep.seed=[1]",
          "world.warmup.steps=2", "world.evaluation.prompts=4", "world.evaluation.samples=1",
          "world.model.layers=1", "world.model.hidden=16", "world.model.heads=2", "train.groups=2");
  if (r.code != 0) fprintf(stderr, "%s: %s\n", name, r.err);
  CU_ASSERT(r.code == 0);
  r = CLI("status", path, "--json");
  CU_ASSERT(r.code == 0);
}

TEST(the_released_codes_recipes_run) {
  run_shortened("released_online");
  run_shortened("released_delay");
}

TEST(the_papers_texts_recipes_run) {
  run_shortened("paper_online");
  run_shortened("paper_delay");
}
