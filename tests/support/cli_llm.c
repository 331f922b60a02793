/* A tiny recipe of a transformer, in a scratch folder, and a model of it. */
#include "tests/support/cli_llm.h"

#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

const char llm_recipe[] =
    "name: tiny\nseed: 3\nsteps: 2\n"
    "world:\n"
    "  kind: llm\n"
    "  backend: cpu\n"
    "  model: {layers: 1, hidden: 16, heads: 2, context: 32}\n"
    "  task: {kind: addition, digits: 1}\n"
    "  warmup: {steps: 60, batch: 16, lr: 5e-3, check_every: 20, cache: false}\n"
    "  evaluation: {prompts: 10}\n"
    "train: {groups: 2, group_size: 4}\n";

place place_make(void) {
  place p;
  cli_scratch_make(p.folder);
  cli_write(cli_path(p.recipe, p.folder, "tiny.yaml"), llm_recipe, sizeof llm_recipe - 1);
  cli_path(p.model, p.folder, "model");
  return p;
}

place place_with_model(void) {
  place p = place_make();
  CU_ASSERT_FATAL(CLI_GIVES(0, "llm", "sft", p.recipe, "-o", p.model, "-q"));
  return p;
}
