/* What tests of gepolab llm share: a folder with a small model, and the numbers of JSON answers. */
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

void check_refusal(const cli_result *r, int code, const char *says) {
  int good = r->code == code && strncmp(r->err, "gepolab: ", 9) == 0 &&
             strstr(r->err, says) != NULL && r->out_size == 0;
  if (!good) fprintf(stderr, "exit %d, expected %d and '%s': %s", r->code, code, says, r->err);
  CU_ASSERT(good);
}
