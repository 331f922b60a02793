/* gepolab lab bias, theory and selection: the exact laboratory. */
#include "core/base/display_text.h"
#include "core/base/json.h"
#include "core/base/thread_pool.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/clock/selection.h"
#include "experiments/lab/figures/figures.h"
#include "experiments/lab/table.h"
#include "experiments/lab/theory.h"
#include "experiments/lab/truncation.h"
#include "experiments/recipe/recipe.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- bias: exact bias, variance and MSE of estimators in a world that can be enumerated --- */

static gl_status print_bias(const lab_table *t, int json, const char *format, gl_error *err) {
  if ((format == NULL || json) && t->recipe->directions > 1)
    return lab_directions_print(t, json, err);
  if (format == NULL || json) return lab_table_print(t, json, err);
  lab_table_tsv(t, stdout);
  return GL_OK;
}

/* The options of the command line. */
typedef struct bias_request {
  int json;
  size_t threads;
  progress_mode shows;
  const char *format, *folder, *figure, *study;
  figure_form form;
} bias_request;

static gl_status draw_lab(const lab_figure_data *data, const bias_request *q, gl_error *err) {
  figure_request figures = figures_request_to(q->folder);
  figures.only = q->figure;
  gl_status status = figures_request_form(&figures, &q->form, err);
  if (status != GL_OK) return status;
  return lab_figures_draw(data, &figures, err);
}

static gl_status measure_bias(const lab_recipe *plan, const bias_request *q, gl_error *err) {
  lab_table measured = {0};
  const double begun = seconds_now();
  gl_error why = {.status = GL_OK};
  gl_status status = lab_table_init(&measured, plan, q->threads, q->shows, &why);
  if (status == GL_EINPUT && plan->samples == 0)
    cfg_fail(plan->budget_place, err, "%s", why.text);
  else if (status != GL_OK)
    *err = why;
  if (status == GL_OK && q->study != NULL)
    status = lab_table_store(&measured, q->study, seconds_now() - begun, err);
  if (status == GL_OK)
    status = q->folder != NULL ? draw_lab(&(lab_figure_data){.table = &measured}, q, err)
                               : print_bias(&measured, q->json, q->format, err);
  lab_table_fini(&measured);
  return status;
}

static gl_status learn_curves(const lab_recipe *plan, const bias_request *q, gl_error *err) {
  lab_curves curves = {0};
  if (q->study != NULL)
    return gl_fail(err, GL_EINPUT, "learning curves are not kept in a study; use --format tsv");
  gl_status status = lab_curves_init(&curves, plan, q->threads, q->shows, err);
  if (status == GL_OK && q->folder != NULL)
    status = draw_lab(&(lab_figure_data){.curves = &curves}, q, err);
  else if (status == GL_OK && q->format != NULL && !q->json)
    lab_curves_tsv(&curves, stdout);
  else if (status == GL_OK)
    status = lab_curves_print(&curves, q->json, err);
  lab_curves_fini(&curves);
  return status;
}

static gl_status truncate_dists(const cfg_doc *doc, const bias_request *q, gl_error *err) {
  lab_truncation study = {0};
  if (q->study != NULL || q->format != NULL)
    return gl_fail(err, GL_EINPUT,
                   "a study of truncation is printed, as text or --json, or drawn with --figures");
  gl_status status = lab_truncation_init(&study, doc, q->threads, q->shows, err);
  if (status == GL_OK && q->folder != NULL)
    status = draw_lab(&(lab_figure_data){.truncation = &study}, q, err);
  else if (status == GL_OK)
    status = lab_truncation_print(&study, q->json, err);
  lab_truncation_fini(&study);
  return status;
}

static gl_status run_bias(args *a, gl_error *err) {
  bias_request q = {.threads = pool_usable_cores(),
                    .shows = isatty(STDERR_FILENO) ? PROGRESS_AUTO : PROGRESS_SILENT};
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "an array with one object per algorithm, group size and KL",
       &q.json},
      {"format", 0, ARGS_TEXT, "tsv", "the table as tab-separated values, for figures", &q.format},
      {"output", 'o', ARGS_STUDY, "STUDY.db",
       "also keep the measurements in a study's table `bias`", &q.study},
      {"figures", 'f', ARGS_FIGURES, "FOLDER",
       "draw instead of printing: data, script, PDF, PNG and SVG", &q.folder},
      {"figure", 0, ARGS_TEXT, "NAME", "with --figures: only this one", &q.figure},
      FIGURE_FORM_OPTIONS(q.form),
      {"threads", 'j', ARGS_COUNT, "N", "threads (default: all cores); results do not depend on it",
       &q.threads},
      {"jobs", 0, ARGS_RENAMED, "--threads", NULL, NULL}};
  one_recipe of = {.words = a};
  lab_recipe plan = {0};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  q.form.given = a;
  if (q.format != NULL && strcmp(q.format, "tsv") != 0)
    status = gl_fail(err, GL_EINPUT, "--format knows tsv only, not '%s'", q.format);
  if (status == GL_OK && q.figure != NULL && q.folder == NULL)
    status = gl_fail(err, GL_EINPUT, "--figure needs --figures FOLDER");
  if (status == GL_OK) status = figure_form_check(&q.form, q.folder, err);
  if (status == GL_OK) status = one_recipe_load(&of, err);
  if (status == GL_OK)
    status = recipe_say_command(of.doc, a->command->name, lab_recipe_read(&plan, of.doc, err), err);
  if (status == GL_OK)
    status = plan.dists.n_weights > 0 ? truncate_dists(of.doc, &q, err)
             : plan.training.n_lr > 0 ? learn_curves(&plan, &q, err)
                                      : measure_bias(&plan, &q, err);
  lab_recipe_fini(&plan);
  cfg_free(of.doc);
  return status;
}

const command command_bias = {
    .name = "lab bias",
    .arguments = "RECIPE [key=value …]",
    .words = {.input = ARGS_RECIPE, .min = 1, .max = 1, .overrides = true},
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

/* --- theory: the paper's three theorems against exact values --- */

/* Reports drawn figures only. The others belong to other commands and never have data here. */
static void report_drawn_figure(void *context, const char *file, const char *why) {
  if (why == NULL) figures_request_to(context).report(context, file, NULL);
}

static gl_status draw_theorems(const char *folder, const char *only, const figure_form *form,
                               gl_error *err) {
  figure_request q = figures_request_to(folder);
  q.only = only;
  q.report = report_drawn_figure;
  gl_status status = figures_request_form(&q, form, err);
  if (status != GL_OK) return status;
  return lab_figures_draw(&(lab_figure_data){.table = NULL}, &q, err);
}

/* In a recipe with a world, the pairs of distributions come from training in it. */
static gl_status report_training(const cfg_doc *doc, size_t threads, int json, gl_error *err) {
  lab_recipe r = {0};
  table *document = NULL;
  gl_status status = lab_recipe_read(&r, doc, err);
  if (status == GL_OK)
    status = theory_training_run(&document, &r, threads,
                                 isatty(STDERR_FILENO) ? PROGRESS_AUTO : PROGRESS_SILENT, err);
  lab_recipe_fini(&r);
  return status == GL_OK ? report_table(document, TABLE_AS_TEXT, json, err) : status;
}

static gl_status report_theory(const cfg_doc *doc, int json, gl_error *err) {
  theory_spec spec;
  table *document = NULL;
  gl_status status = theory_read(&spec, doc, err);
  if (status == GL_OK) status = theory_run(&document, &spec, err);
  theory_fini(&spec);
  if (status == GL_OK) return report_table(document, TABLE_AS_TEXT, json, err);
  table_free(document);
  return status;
}

/* Draws the figures of the theorems, which do not depend on the recipe; the recipe is read to
 * report its errors. */
static gl_status draw_theory(const cfg_doc *doc, const char *folder, const char *only,
                             const figure_form *form, gl_error *err) {
  theory_spec spec;
  gl_status status = theory_read(&spec, doc, err);
  theory_fini(&spec);
  return status == GL_OK ? draw_theorems(folder, only, form, err) : status;
}

static gl_status run_theory(args *a, gl_error *err) {
  int json = 0;
  size_t threads = pool_usable_cores();
  const char *folder = NULL, *only = NULL;
  figure_form form = {.given = NULL};
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json},
      {"figures", 'f', ARGS_FIGURES, "FOLDER",
       "draw instead of printing: data, script, PDF, PNG and SVG", &folder},
      {"figure", 0, ARGS_TEXT, "NAME", "with --figures: only this one", &only},
      {"threads", 'j', ARGS_COUNT, "N",
       "of pairs from training: threads (default: all cores); results do not depend on it",
       &threads},
      FIGURE_FORM_OPTIONS(form)};
  cfg_doc *doc = NULL;
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  form.given = a;
  status =
      recipe_load(&doc, a->n_words > 0 ? a->words[0] : "theory", a->overrides, a->n_overrides, err);
  if (status == GL_OK) status = args_read_files(a, doc, err);
  if (status == GL_OK && only != NULL && folder == NULL)
    status = gl_fail(err, GL_EINPUT, "--figure needs --figures FOLDER");
  const int trains = status == GL_OK && cfg_find(cfg_root(doc), "world") != NULL;
  if (status == GL_OK && trains && folder != NULL)
    status = gl_fail(err, GL_EINPUT, "--figures: there is no figure of pairs from training");
  if (status == GL_OK && folder != NULL)
    status = draw_theory(doc, folder, only, &form, err);
  else if (status == GL_OK && trains)
    status = report_training(doc, threads, json, err);
  else if (status == GL_OK)
    status = report_theory(doc, json, err);
  status = recipe_say_command(doc, a->command->name, status, err);
  cfg_free(doc);
  return status;
}

const command command_theory = {
    .name = "lab theory",
    .arguments = "[RECIPE] [key=value …]",
    .words = {.input = ARGS_RECIPE, .max = 1, .overrides = true},
    .summary = "the paper's three theorems against exact values",
    .about =
        "Theorem 1: the smallest constant that is valid on n outcomes, and over random\n"
        "families; the KL above which GEPO's weights have the lower variance. Theorem 2: a\n"
        "search for violations under each baseline, with the worst distributions found. Theorem\n"
        "3: the variance of A w, with that of w. Without RECIPE it runs the embedded recipe\n"
        "`theory`.\n"
        "With a recipe that has a world, `training` and training.stalenesses, Theorems 1 and 3\n"
        "are tested on the policies of training runs: the learner's and the one that its batch\n"
        "was sampled from, along the paths of several algorithms. The last column uses the\n"
        "baseline that the mean of a group estimates.",
    .examples = "  gepolab lab theory\n  gepolab lab theory outcomes=[2,4,1024] starts=200 --json\n"
                "  gepolab lab theory theory_training",
    .run = run_theory};

/* --- selection: the gradient of what arrives against the gradient of all that was drawn --- */

static void report_arrivals(table *d, const char *name, const arrivals_side *side) {
  table *o = table_object(table_field(d, name));
  table_put(o, "reward %g, length %g", side->reward, side->length);
}

static gl_status report_selection(const selection_case *m, bool is_json, gl_error *err) {
  static const table_column columns[] = {
      {"tokens", TABLE_INTEGER, .head = "longest response", .width = -16},
      {"share", TABLE_REAL, .head = "share", .format = "%.4f", .width = 10},
      {"groups", TABLE_INTEGER, .head = "groups", .width = 10},
      {"arrives", TABLE_REAL, .head = "arrives", .width = 10}};
  const arrivals *a = &m->found;
  table *d = table_document();
  table_put(d, "probability %g, cosine %g, norm_ratio %g, correlation %g", a->probability,
            a->cosine, a->norm_ratio, a->correlation);
  report_arrivals(d, "drawn", &a->drawn);
  report_arrivals(d, "arrived", &a->arrived);
  table_line(d, "%-26s %10s %10s", "", "drawn", "arrived");
  table_line(d, "%-26s %10.4f %10.4f", "fraction of groups", 1.0, a->probability);
  table_line(d, "%-26s %10.4f %10.4f", "mean reward", a->drawn.reward, a->arrived.reward);
  table_line(d, "%-26s %10.4f %10.4f", "mean length", a->drawn.length, a->arrived.length);
  table_line(d, "%-26s %10.4f", "length and reward", a->correlation);
  table_line(d, "%-26s %10s %10.4f", "gradient: cosine", "1", a->cosine);
  table_line(d, "%-26s %10s %10.4f", "gradient: norm", "1", a->norm_ratio);
  table_line(d, "%s", "");
  table *t = table_rows(table_field(d, "by_longest"), columns, sizeof columns / sizeof *columns);
  table_plain(t, 0);
  for (size_t k = 1; k <= a->max_length; ++k) {
    table_row(t);
    table_count(t, k), table_real(t, a->longest[k]);
    table_integer(t, (int64_t)(m->trained[k] + m->missed[k]));
    table_real(t, m->arrives[k]);
    table_shown(t, "%.2f %%", 100 * m->arrives[k]);
  }
  return report_table(d, TABLE_AS_TEXT, is_json, err);
}

/* The folder and form of the figure. */
typedef struct selection_drawing {
  const char *folder; /* NULL: no figure */
  figure_form form;
} selection_drawing;

static gl_status draw_selection(selection_case *m, const char *policy, const args *words,
                                const selection_drawing *to, gl_error *err) {
  const selection_recipe of = {words->words[0], words->overrides, words->n_overrides};
  figure_request request = figures_request_to(to->folder);
  request.report = NULL; /* standard output holds the numbers, perhaps as JSON */
  gl_status status = figures_request_form(&request, &to->form, err);
  return status == GL_OK ? selection_case_draw(m, policy, &of, &request, err) : status;
}

static gl_status run_selection(args *a, gl_error *err) {
  int json = 0;
  selection_drawing to = {.folder = NULL};
  const args_option options[] = {{"figures", 'f', ARGS_FIGURES, "FOLDER",
                                  "draw the policies for stale data there", &to.folder},
                                 FIGURE_WIDTH_OPTION(to.form),
                                 {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json}};
  one_recipe of = {.words = a};
  cluster_spec *cluster = NULL;
  selection_case m = {.max_length = 0};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  to.form.given = a;
  const recipe *r = &of.r;
  status = one_recipe_read(&of, err);
  if (status == GL_OK) status = cluster_parse(&cluster, r->cluster, r->groups, r->group_size, err);
  if (status == GL_OK) status = selection_case_measure(&m, r, cluster, err);
  if (status == GL_OK) status = report_selection(&m, json, err);
  if (status == GL_OK && to.folder != NULL)
    status = draw_selection(&m, cluster_stale(cluster), a, &to, err);
  selection_case_fini(&m);
  cluster_free(cluster);
  cfg_free(of.doc);
  return status;
}

const command command_selection = {
    .name = "lab selection",
    .arguments = "RECIPE [key=value …]",
    .words = {.input = ARGS_RECIPE, .min = 1, .max = 1, .overrides = true},
    .summary = "the gradient of groups that arrive against that of all that were sampled",
    .about =
        "Runs the clock of the recipe with groups of its toy world's initial policy, counts by "
        "the\n"
        "longest response which groups are trained and which are thrown away or lost, and gives\n"
        "for these chances the exact expected gradient, reward and length of groups that arrive\n"
        "beside those of all groups, and how reward goes with length in what was sampled\n"
        "(paper/methods.md 7.11). Groups that are trained with less weight (stale: downweight)\n"
        "count as much less. The policy does not learn meanwhile.\n"
        "With --figures, the recipe's policy for stale data is drawn beside the others that its\n"
        "cluster can have (discard, wait, downweight).",
    .examples = "  gepolab lab selection what_arrives\n"
                "  gepolab lab selection what_arrives --figures figures/\n"
                "  gepolab lab selection what_arrives cluster.window=1 --json",
    .run = run_selection};
