/* gepolab theory: the paper's three theorems against exact values. */
#include "core/base/json.h"
#include "core/base/shown.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/tell_figures.h"
#include "experiments/lab/figures/figures.h"
#include "experiments/lab/theory_run.h"
#include "experiments/recipe/recipe.h"

#include <stdio.h>
#include <string.h>

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

static gl_status run_theory(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const char *folder = NULL, *only = NULL;
  figure_form form = {NULL, NULL};
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json},
      {"figures", 'f', ARGS_TEXT, "FOLDER",
       "draw instead of printing: data, script, PDF, PNG and SVG", &folder},
      {"figure", 0, ARGS_TEXT, "NAME", "with --figures: only this one", &only},
      FIGURE_FORM_OPTIONS(form)};
  args a;
  cfg_doc *doc = NULL;
  theory_spec spec = {0};
  cJSON *document = NULL;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof *options,
                                (args_shape){0, 1, 1}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status =
        recipe_load(&doc, a.n_words > 0 ? a.words[0] : "theory", a.overrides, a.n_overrides, err);
    if (status == GL_OK && only != NULL && folder == NULL)
      status = gl_fail(err, GL_EINPUT, "--figure needs --figures FOLDER");
    if (status == GL_OK) status = theory_read(&spec, doc, err);
    if (status == GL_OK && folder != NULL) status = draw(folder, only, &form, err);
    if (status == GL_OK && folder == NULL) status = theory_run(&document, &spec, err);
    if (status == GL_OK && json && folder == NULL) {
      status = report_json(document, err);
      document = NULL;
    } else if (status == GL_OK && document != NULL) {
      theory_print(document, stdout);
    }
  }
  cJSON_Delete(document);
  theory_fini(&spec);
  cfg_free(doc);
  args_fini(&a);
  return status;
}

const command command_theory = {
    .name = "theory",
    .arguments = "[RECIPE] [key=value …]",
    .summary = "the paper's three theorems against exact values",
    .about =
        "Theorem 1: the smallest constant that is valid on n outcomes, and over random families;\n"
        "the KL above which GEPO's weights vary less. Theorem 2: a search for violations under\n"
        "each baseline, with the worst distributions found. Theorem 3: variance of A w next to\n"
        "that of w. Without RECIPE the embedded recipe `theory` is taken.",
    .examples = "  gepolab theory\n  gepolab theory outcomes=[2,4,1024] starts=200 --json",
    .run = run_theory};
