/* What the commands of one recipe begin and end with. */
#include "experiments/cli/one_recipe.h"

gl_status one_recipe_args(one_recipe *o, const command *c, const args_option *options,
                          size_t n_options, int argc, char **argv, gl_error *err) {
  *o = (one_recipe){.doc = NULL};
  return args_parse(&o->words, c, options, n_options, (args_shape){1, 1, 1}, argc, argv, err);
}

gl_status one_recipe_load(one_recipe *o, gl_error *err) {
  return recipe_load(&o->doc, o->words.words[0], o->words.overrides, o->words.n_overrides, err);
}

gl_status one_recipe_read(one_recipe *o, gl_error *err) {
  const gl_status status = one_recipe_load(o, err);
  return status == GL_OK ? recipe_read(&o->r, o->doc, err) : status;
}

void one_recipe_fini(one_recipe *o) {
  cfg_free(o->doc);
  args_fini(&o->words);
}
