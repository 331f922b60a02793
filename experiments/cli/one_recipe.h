/* The words of a command that takes one recipe, overrides and options. Prefix: one_recipe_. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_ONE_RECIPE_H
#define GEPOLAB_EXPERIMENTS_CLI_ONE_RECIPE_H

#include "core/config/config.h"
#include "experiments/base/args.h"
#include "experiments/recipe/recipe.h"

typedef struct one_recipe {
  args words; /* words.help: help was asked for and printed, and there is nothing to do */
  cfg_doc *doc;
  recipe r;
} one_recipe;

/* Parses `RECIPE [key=value …]` and the options. GL_EINPUT as args_parse(). Release with
 * one_recipe_fini() in any case. */
gl_status one_recipe_args(one_recipe *o, const command *c, const args_option *options,
                          size_t n_options, int argc, char **argv, gl_error *err);
/* Fills in doc, for commands that read other sections than those of a run. GL_EINPUT as
 * recipe_load(). */
gl_status one_recipe_load(one_recipe *o, gl_error *err);
/* Fills in doc and r. GL_EINPUT as recipe_load() and recipe_read(). */
gl_status one_recipe_read(one_recipe *o, gl_error *err);
void one_recipe_fini(one_recipe *o);

#endif
