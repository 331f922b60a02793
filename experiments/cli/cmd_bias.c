/* gepolab lab bias: exact bias, variance and MSE of estimators in a world that can be enumerated.
 */
#include "core/base/thread_pool.h"
#include "experiments/base/args.h"
#include "experiments/base/process.h"
#include "experiments/cli/common.h"
#include "experiments/lab/figures/figures.h"
#include "experiments/lab/truncation.h"
#include "experiments/recipe/recipe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static gl_status print(const lab_table *t, int json, const char *format, gl_error *err) {
  if (format == NULL || json) return lab_table_print(t, json, err);
  lab_table_tsv(t, stdout);
  return GL_OK;
}

/* What the command line asks for. */
typedef struct request {
  int json;
  size_t threads;
  progress_mode shows;
  const char *format, *folder, *figure, *study;
  figure_form form;
} request;

static gl_status draw(const lab_figure_data *data, const request *q, gl_error *err) {
  figure_request figures = tell_figures(q->folder);
  figures.only = q->figure;
  gl_status status = tell_figures_form(&figures, &q->form, err);
  if (status != GL_OK) return status;
  return lab_figures_draw(data, &figures, err);
}

static gl_status measure(const lab_recipe *plan, const request *q, gl_error *err) {
  lab_table table = {0};
  const double begun = seconds_now();
  gl_error why = {.status = GL_OK};
  gl_status status = lab_table_init(&table, plan, q->threads, q->shows, &why);
  if (status == GL_EINPUT && plan->samples == 0)
    cfg_fail(plan->budget_place, err, "%s", why.text);
  else if (status != GL_OK)
    *err = why;
  if (status == GL_OK && q->study != NULL)
    status = lab_table_store(&table, q->study, seconds_now() - begun, err);
  if (status == GL_OK)
    status = q->folder != NULL ? draw(&(lab_figure_data){.table = &table}, q, err)
                               : print(&table, q->json, q->format, err);
  lab_table_fini(&table);
  return status;
}

static gl_status learn(const lab_recipe *plan, const request *q, gl_error *err) {
  lab_curves curves = {0};
  if (q->study != NULL)
    return gl_fail(err, GL_EINPUT, "learning curves are not kept in a study; use --format tsv");
  gl_status status = lab_curves_init(&curves, plan, q->threads, q->shows, err);
  if (status == GL_OK && q->folder != NULL)
    status = draw(&(lab_figure_data){.curves = &curves}, q, err);
  else if (status == GL_OK && q->format != NULL && !q->json)
    lab_curves_tsv(&curves, stdout);
  else if (status == GL_OK)
    status = lab_curves_print(&curves, q->json, err);
  lab_curves_fini(&curves);
  return status;
}

static gl_status truncate_dists(const cfg_doc *doc, const request *q, gl_error *err) {
  lab_truncation study = {0};
  if (q->study != NULL || q->format != NULL)
    return gl_fail(err, GL_EINPUT,
                   "a study of truncation is printed, as text or --json, or drawn with --figures");
  gl_status status = lab_truncation_init(&study, doc, q->threads, q->shows, err);
  if (status == GL_OK && q->folder != NULL)
    status = draw(&(lab_figure_data){.truncation = &study}, q, err);
  else if (status == GL_OK)
    status = lab_truncation_print(&study, q->json, err);
  lab_truncation_fini(&study);
  return status;
}

static gl_status run_bias(const command *self, int argc, char **argv, gl_error *err) {
  request q = {.threads = pool_usable_cores(),
               .shows = isatty(STDERR_FILENO) ? PROGRESS_AUTO : PROGRESS_SILENT};
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "an array with one object per algorithm, group size and KL",
       &q.json},
      {"format", 0, ARGS_TEXT, "tsv", "the table as tab-separated values, for figures", &q.format},
      {"output", 'o', ARGS_TEXT, "STUDY.db", "also keep the measurements in a study's table `bias`",
       &q.study},
      {"figures", 'f', ARGS_TEXT, "FOLDER",
       "draw instead of printing: data, script, PDF, PNG and SVG", &q.folder},
      {"figure", 0, ARGS_TEXT, "NAME", "with --figures: only this one", &q.figure},
      FIGURE_FORM_OPTIONS(q.form),
      {"threads", 'j', ARGS_COUNT, "N", "threads (default: all cores); results do not depend on it",
       &q.threads},
      {"jobs", 0, ARGS_RENAMED, "--threads", NULL, NULL}};
  one_recipe of;
  lab_recipe plan = {0};
  gl_status status =
      one_recipe_args(&of, self, options, sizeof options / sizeof *options, argc, argv, err);
  if (status == GL_OK && !of.words.help) {
    if (q.format != NULL && strcmp(q.format, "tsv") != 0)
      status = gl_fail(err, GL_EINPUT, "--format knows tsv only, not '%s'", q.format);
    if (status == GL_OK && q.figure != NULL && q.folder == NULL)
      status = gl_fail(err, GL_EINPUT, "--figure needs --figures FOLDER");
    if (status == GL_OK) status = one_recipe_load(&of, err);
    if (status == GL_OK) status = lab_recipe_read(&plan, of.doc, err);
    if (status == GL_OK)
      status = plan.dists.n_weights > 0 ? truncate_dists(of.doc, &q, err)
               : plan.training.n_lr > 0 ? learn(&plan, &q, err)
                                        : measure(&plan, &q, err);
  }
  lab_recipe_fini(&plan);
  one_recipe_fini(&of);
  return status;
}

const command command_bias = {
    .name = "lab bias",
    .arguments = "RECIPE [key=value …]",
    .summary = "exact bias, variance and MSE of estimators in a small world",
    .about =
        "For every algorithm, group size and pair of policies of the recipe: expectation and\n"
        "covariance of the gradient estimate by enumerating all multisets of responses, with no\n"
        "sampling noise; beyond the recipe's budget by Monte Carlo with standard errors, which "
        "the\n"
        "column `method` says.",
    .examples = "  gepolab lab bias four_arms\n"
                "  gepolab lab bias four_arms --json group_size=[2,4,8]\n"
                "  gepolab lab bias bias_vs_kl --format tsv > bias_vs_kl.tsv\n"
                "  gepolab lab bias llm_exact_bias        # through a transformer's own scores",
    .run = run_bias};
