/* gepolab bias: exact bias, variance and MSE of estimators in a toy world. */
#include "experiments/args.h"
#include "experiments/command.h"
#include "experiments/lab_figure.h"
#include "experiments/recipe.h"

#include <stdio.h>
#include <string.h>

static gl_status print(const lab_table *t, int json, const char *format, gl_error *err) {
  if (json) return lab_table_json(t, err);
  if (format != NULL)
    lab_table_tsv(t, stdout);
  else
    lab_table_print(t, stdout);
  return GL_OK;
}

static gl_status run_bias(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  size_t threads = lab_table_threads();
  const char *format = NULL, *folder = NULL;
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "an array with one object per algorithm, group size and KL",
       &json},
      {"format", 0, ARGS_TEXT, "tsv", "the table as tab-separated values, for figures", &format},
      {"figures", 'f', ARGS_TEXT, "FOLDER", "draw instead of printing: data, script, PDF and PNG",
       &folder},
      {"jobs", 'j', ARGS_COUNT, "N", "threads (default: all cores); results do not depend on it",
       &threads}};
  args a;
  cfg_doc *doc = NULL;
  lab_recipe plan = {0};
  lab_table table = {0};
  gl_status status = args_parse(&a, self, options, 4, (args_shape){1, 1, 1}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    if (format != NULL && strcmp(format, "tsv") != 0)
      status = gl_fail(err, GL_EINPUT, "--format knows tsv only, not '%s'", format);
    if (status == GL_OK) status = recipe_load(&doc, a.words[0], a.overrides, a.n_overrides, err);
    if (status == GL_OK) status = lab_recipe_read(&plan, doc, err);
    if (status == GL_OK) status = lab_table_init(&table, &plan, threads, err);
    if (status == GL_OK)
      status =
          folder != NULL ? lab_bias_figures(&table, folder, err) : print(&table, json, format, err);
  }
  lab_table_fini(&table);
  lab_recipe_fini(&plan);
  cfg_free(doc);
  args_fini(&a);
  return status;
}

const command command_bias = {
    .name = "bias",
    .arguments = "RECIPE [key=value …]",
    .summary = "exact bias, variance and MSE of estimators in a toy world",
    .about =
        "For every algorithm, group size and pair of policies of the recipe: expectation and\n"
        "covariance of the gradient estimate by enumerating all multisets of responses, with no\n"
        "sampling noise; beyond the recipe's budget by Monte Carlo with standard errors, which "
        "the\n"
        "column `method` says.",
    .examples = "  gepolab bias four_arms\n"
                "  gepolab bias four_arms --json group_size=[2,4,8]\n"
                "  gepolab bias bias_vs_kl --format tsv > bias_vs_kl.tsv",
    .run = run_bias};
