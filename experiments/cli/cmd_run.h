/* What `gepolab run` does with a recipe, for the commands that do it too. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_CMD_RUN_H
#define GEPOLAB_EXPERIMENTS_CLI_CMD_RUN_H

#include "core/rl/learner.h"
#include "experiments/recipe/recipe.h"

typedef struct run_options {
  const char *file, *checkpoints, *save_to;
  size_t every, threads; /* 0: as the recipe says, all */
  int json, quiet;
  /* Called with the learner after its last update; NULL: nothing more is wanted of it. */
  gl_status (*at_end)(void *self, const learner *l, gl_error *err);
  void *self; /* of at_end */
} run_options;

/* Checks the recipe, trains as it says, keeps the run in the study file and prints the summary. */
gl_status run_recipe(const cfg_doc *doc, const recipe *r, const run_options *q, gl_error *err);

#endif
