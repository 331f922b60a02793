/* gepolab lab theory: the paper's three theorems against exact values. */
#include "core/base/shown.h"
#include "core/base/thread_pool.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"
#include "experiments/lab/figures/figures.h"
#include "experiments/lab/theory.h"
#include "experiments/recipe/recipe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Only what is drawn: that figures of other commands lack their data here tells nobody anything. */
static void told_drawn(void *context, const char *file, const char *why) {
  if (why == NULL) tell_figures(context).told(context, file, NULL);
}

static gl_status draw(const char *folder, const char *only, const figure_form *form,
                      gl_error *err) {
  figure_request q = tell_figures(folder);
  q.only = only;
  q.told = told_drawn;
  gl_status status = tell_figures_form(&q, form, err);
  if (status != GL_OK) return status;
  return lab_figures_draw(&(lab_figure_data){.table = NULL}, &q, err);
}

/* A recipe with a world takes the pairs of distributions from training in it. */
static gl_status tell_training(const cfg_doc *doc, size_t threads, int json, gl_error *err) {
  lab_recipe r = {0};
  table *document = NULL;
  gl_status status = lab_recipe_read(&r, doc, err);
  if (status == GL_OK)
    status = theory_training_run(&document, &r, threads,
                                 isatty(STDERR_FILENO) ? PROGRESS_AUTO : PROGRESS_SILENT, err);
  lab_recipe_fini(&r);
  return status == GL_OK ? report_table(document, TABLE_AS_TEXT, json, err) : status;
}

static gl_status tell_theory(const cfg_doc *doc, int json, gl_error *err) {
  theory_spec spec;
  table *document = NULL;
  gl_status status = theory_read(&spec, doc, err);
  if (status == GL_OK) status = theory_run(&document, &spec, err);
  theory_fini(&spec);
  if (status == GL_OK) return report_table(document, TABLE_AS_TEXT, json, err);
  table_free(document);
  return status;
}

/* The figures are of the theorems alone; the recipe is read for its mistakes. */
static gl_status draw_theory(const cfg_doc *doc, const char *folder, const char *only,
                             const figure_form *form, gl_error *err) {
  theory_spec spec;
  gl_status status = theory_read(&spec, doc, err);
  theory_fini(&spec);
  return status == GL_OK ? draw(folder, only, form, err) : status;
}

static gl_status run_theory(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  size_t threads = pool_usable_cores();
  const char *folder = NULL, *only = NULL;
  figure_form form = {NULL, NULL};
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json},
      {"figures", 'f', ARGS_TEXT, "FOLDER",
       "draw instead of printing: data, script, PDF, PNG and SVG", &folder},
      {"figure", 0, ARGS_TEXT, "NAME", "with --figures: only this one", &only},
      {"threads", 'j', ARGS_COUNT, "N",
       "of pairs from training: threads (default: all cores); results do not depend on it",
       &threads},
      FIGURE_FORM_OPTIONS(form)};
  args a;
  cfg_doc *doc = NULL;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof *options,
                                (args_shape){0, 1, 1}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status =
        recipe_load(&doc, a.n_words > 0 ? a.words[0] : "theory", a.overrides, a.n_overrides, err);
    if (status == GL_OK && only != NULL && folder == NULL)
      status = gl_fail(err, GL_EINPUT, "--figure needs --figures FOLDER");
    const int trains = status == GL_OK && cfg_find(cfg_root(doc), "world") != NULL;
    if (status == GL_OK && trains && folder != NULL)
      status = gl_fail(err, GL_EINPUT, "--figures: there is no figure of pairs from training");
    if (status == GL_OK && folder != NULL)
      status = draw_theory(doc, folder, only, &form, err);
    else if (status == GL_OK && trains)
      status = tell_training(doc, threads, json, err);
    else if (status == GL_OK)
      status = tell_theory(doc, json, err);
  }
  cfg_free(doc);
  args_fini(&a);
  return status;
}

const command command_theory = {
    .name = "lab theory",
    .arguments = "[RECIPE] [key=value …]",
    .summary = "the paper's three theorems against exact values",
    .about =
        "Theorem 1: the smallest constant that is valid on n outcomes, and over random families;\n"
        "the KL above which GEPO's weights vary less. Theorem 2: a search for violations under\n"
        "each baseline, with the worst distributions found. Theorem 3: variance of A w next to\n"
        "that of w. Without RECIPE the embedded recipe `theory` is taken.\n"
        "With a recipe that has a world, `training` and training.stalenesses, Theorems 1 and 3 "
        "are\n"
        "asked of pairs of laws from training: the learner's and its batch's, along the paths of\n"
        "several algorithms; the last column takes the baseline that a group's mean estimates.",
    .examples = "  gepolab lab theory\n  gepolab lab theory outcomes=[2,4,1024] starts=200 --json\n"
                "  gepolab lab theory theory_training",
    .run = run_theory};
