/* Where the runs of a study begin: a cell whose transformer begins from a checkpoint states the
 * checkpoint's checksum, so that it is another cell when the folder has another model, and runs
 * from no other. */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_STARTS_H
#define GEPOLAB_EXPERIMENTS_RECIPE_STARTS_H

#include "experiments/recipe/recipe.h"
#include "llm/llm.h"

/* Checkpoints whose checksum is known, so that each is read once. {0} to begin with. */
typedef struct recipe_start {
  char *folder;
  char checksum[LLM_CHECKSUM_SIZE];
} recipe_start;
typedef struct recipe_starts {
  recipe_start *start; /* [n] */
  size_t n;
} recipe_starts;
void recipe_starts_fini(recipe_starts *s);

/* Sets world.model.checksum in the doc, which r was read from and is to be read again, where the
 * recipe's seed begins from a checkpoint. GL_EINPUT, at its place, for a folder that cannot be
 * read, or where the recipe states another checksum. */
gl_status recipe_pin_start(cfg_doc *doc, const recipe *r, recipe_starts *known, gl_error *err);

#endif
