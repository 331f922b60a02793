/* gepolab list published: published speed-ups of asynchronous systems over synchronous training,
 * compared with simulated ones. */
#include "analysis/figures/without_study.h"
#include "core/base/array.h"
#include "core/base/display_text.h"
#include "core/base/progress.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/clock/published.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The recipes that come with the program. */
static const char *const recipes[] = {"published_verl", "published_one_step_off", "published_areal",
                                      "published_headlines"};
enum { N_RECIPES = sizeof recipes / sizeof *recipes };

static const char compared[] = "experiments/predictions/compared.tsv";

typedef enum form { PLAIN, MARKDOWN, LATEX, JSON } form;

/* The relative error of the simulated speed-up against the published one. */
static double relative_error(const published_case *c) {
  return c->simulated_speedup / c->published_speedup - 1;
}

/* --- errors --- */

static double prediction_error(const declared_prediction *p) {
  return p->predicted / p->measured - 1;
}

/* Medians of absolute relative errors. median: of the speed-ups of simulated cases that were not
 * fitted, together with declared predictions; median_unseen: of these predictions alone.
 * Predictions whose measured value was known beforehand are excluded. NaN: none. */
typedef struct unfitted_errors {
  double median, median_unseen;
  size_t n, n_unseen;
} unfitted_errors;

static unfitted_errors errors_of(const published_cases *cases, const declared_predictions *p) {
  double *all = MUST_ARRAY(double, 2 * (cases->n + p->n) + 1, "errors");
  double *unseen = all + cases->n + p->n;
  unfitted_errors e = {NAN, NAN, 0, 0};
  for (size_t i = 0; i < cases->n; ++i)
    if (!cases->of[i].in_turns && !cases->of[i].fitted)
      all[e.n++] = fabs(relative_error(&cases->of[i]));
  for (size_t i = 0; i < p->n; ++i) {
    if (p->of[i].seen) continue;
    all[e.n++] = unseen[e.n_unseen++] = fabs(prediction_error(&p->of[i]));
  }
  qsort(all, e.n, sizeof *all, order_real);
  qsort(unseen, e.n_unseen, sizeof *unseen, order_real);
  if (e.n > 0) e.median = (all[(e.n - 1) / 2] + all[e.n / 2]) / 2;
  if (e.n_unseen > 0) e.median_unseen = (unseen[(e.n_unseen - 1) / 2] + unseen[e.n_unseen / 2]) / 2;
  free(all);
  return e;
}

static void print_errors(const unfitted_errors *e) {
  char text[256], unseen[128] = "";
  if (e->n == 0) return;
  if (e->n_unseen > 0)
    snprintf(unseen, sizeof unseen,
             "; of the %zu predicted before their numbers were seen: %.0f %%", e->n_unseen,
             100 * e->median_unseen);
  snprintf(text, sizeof text, "median error over cases never fitted: %.0f %% of %zu%s",
           100 * e->median, e->n, unseen);
  shown_wrap(text, 0, 0, stdout);
  puts("\n");
}

/* --- tables --- */

/* Prints the cases within 80 columns. The preset is only in the other formats. */
static void published_print_plain(const published_cases *cases, const declared_predictions *p) {
  const unfitted_errors e = errors_of(cases, p);
  print_errors(&e);
  printf("%-41s  %14s  %15s\n", "", "seconds a step", "speed-up");
  printf("%-41s %7s %7s %7s %7s %6s\n", "case", "paper", "here", "paper", "here", "off by");
  for (size_t i = 0; i < cases->n; ++i) {
    const published_case *c = &cases->of[i];
    printf("%-41s %7.1f %7.1f", shown(c->name).text, c->published_s, c->simulated_s);
    if (c->in_turns)
      printf(" %7s %7s\n", "1", "1");
    else
      printf(" %6.2fx %6.2fx %+4.0f %%%s\n", c->published_speedup, c->simulated_speedup,
             100 * relative_error(c), c->fitted ? " fitted" : "");
  }
  if (p->n == 0) return;
  printf("\n%-41s %7s %7s %15s %6s\n", "declared prediction", "measured", "here", "range",
         "off by");
  for (size_t i = 0; i < p->n; ++i) {
    const declared_prediction *d = &p->of[i];
    printf("%-41.41s %7.4g %7.4g %7.4g-%-7.4g %+4.0f %%%s %s%s%s\n", shown(d->name).text,
           d->measured, d->predicted, d->least, d->largest, 100 * prediction_error(d),
           d->seen ? " seen" : "", shown(d->quantity).text, *d->unit ? ", " : "",
           shown(d->unit).text);
  }
}

static void published_print_markdown(const published_cases *cases, const declared_predictions *p) {
  const unfitted_errors e = errors_of(cases, p);
  print_errors(&e);
  puts("| case | preset | published | simulated | speed-up published | simulated | off by | place "
       "|\n|---|---|---|---|---|---|---|---|");
  for (size_t i = 0; i < cases->n; ++i) {
    const published_case *c = &cases->of[i];
    printf("| %s | `%s` | %.1f s | %.1f s | ", c->name, c->preset, c->published_s, c->simulated_s);
    if (c->in_turns)
      printf("| | | %s |\n", c->source);
    else
      printf("%.2f | %.2f | %+.0f %%%s | %s |\n", c->published_speedup, c->simulated_speedup,
             100 * relative_error(c), c->fitted ? " (fitted)" : "", c->source);
  }
  if (p->n == 0) return;
  puts("\n| declared prediction | quantity | measured | predicted | range | off by | seen before | "
       "place |\n|---|---|---:|---:|---:|---:|---|---|");
  for (size_t i = 0; i < p->n; ++i) {
    const declared_prediction *d = &p->of[i];
    printf("| %s | %s | %.4g %s | %.4g | %.4g to %.4g | %+.0f %% | %s | %s |\n", d->name,
           d->quantity, d->measured, d->unit, d->predicted, d->least, d->largest,
           100 * prediction_error(d), d->seen ? "yes" : "no", d->source);
  }
}

/* Prints a text with LaTeX's special characters escaped. */
static void print_tex(const char *text) {
  for (const char *c = text; *c != '\0'; ++c) {
    if (*c == '_' || *c == '%' || *c == '&' || *c == '#' || *c == '$') putchar('\\');
    putchar(*c);
  }
}

static void print_latex(const published_cases *cases) {
  puts("\\begin{tabular}{llrrr}\n\\toprule\ncase & preset & published & simulated & off by "
       "\\\\\n\\midrule");
  for (size_t i = 0; i < cases->n; ++i) {
    const published_case *c = &cases->of[i];
    if (c->in_turns) continue;
    print_tex(c->name);
    fputs(" & \\texttt{", stdout);
    print_tex(c->preset);
    printf("} & %.2f & %.2f & $%+.0f$\\,\\%% \\\\\n", c->published_speedup, c->simulated_speedup,
           100 * relative_error(c));
  }
  puts("\\bottomrule\n\\end{tabular}");
}

static gl_status published_print_json(const published_cases *cases, const declared_predictions *p,
                                      gl_error *err) {
  cJSON *root = json_new(), *all = json_object(root, "cases");
  size_t asynchronous = 0, near = 0;
  for (size_t i = 0; i < cases->n; ++i) {
    const published_case *c = &cases->of[i];
    cJSON *item = json_object(all, c->name);
    json_put(item, "preset %s, source %s, published_s %g, simulated_s %g", c->preset, c->source,
             c->published_s, c->simulated_s);
    if (c->in_turns) continue;
    json_put(item, "published_speedup %g, simulated_speedup %g, off_by %g, fitted %i",
             c->published_speedup, c->simulated_speedup, relative_error(c), c->fitted);
    ++asynchronous;
    near += fabs(relative_error(c)) <= 0.2;
  }
  json_put(root, "asynchronous %zu, within_20_percent %zu", asynchronous, near);
  const unfitted_errors e = errors_of(cases, p);
  json_put(json_object(root, "never_fitted"),
           "cases %zu, median_error %g, unseen %zu, "
           "unseen_median_error %g",
           e.n, e.median, e.n_unseen, e.median_unseen);
  cJSON *declared = json_list(root, "predictions");
  for (size_t i = 0; i < p->n; ++i) {
    const declared_prediction *d = &p->of[i];
    json_put(json_object(declared, NULL),
             "case %s, quantity %s, unit %s, measured %g, predicted %g, least %g, "
             "largest %g, off_by %g, seen %i, source %s",
             d->name, d->quantity, d->unit, d->measured, d->predicted, d->least, d->largest,
             prediction_error(d), d->seen, d->source);
  }
  return report_json(root, err);
}

static gl_status print_cases(const published_cases *cases, const declared_predictions *p, form as,
                             gl_error *err) {
  switch (as) {
  case PLAIN:
    published_print_plain(cases, p);
    return GL_OK;
  case MARKDOWN:
    published_print_markdown(cases, p);
    return GL_OK;
  case LATEX:
    print_latex(cases);
    return GL_OK;
  case JSON:
    return published_print_json(cases, p, err);
  }
  return GL_OK;
}

/* --- the figure --- */

static gl_status published_draw(const published_cases *cases, const char *folder,
                                const figure_form *shape, gl_error *err) {
  const char **names = MUST_ARRAY(const char *, cases->n, "a figure");
  double *values = MUST_ARRAY(double, 2 * cases->n, "a figure");
  speedups s = {names, values, values + cases->n, 0};
  for (size_t i = 0; i < cases->n; ++i) {
    const published_case *c = &cases->of[i];
    if (c->in_turns) continue;
    names[s.n] = c->name;
    values[s.n] = c->published_speedup;
    values[cases->n + s.n++] = c->simulated_speedup;
  }
  figure_request drawing = figures_request_to(folder);
  drawing.report = NULL; /* standard output holds the table */
  gl_status status = figures_request_form(&drawing, shape, err);
  if (status == GL_OK) status = figure_of_speedups(&s, &drawing, err);
  free(names);
  free(values);
  return status;
}

/* --- the command --- */

static gl_status run_published(args *a, gl_error *err) {
  static const char *const formats[] = {"text", "markdown", "latex"};
  int json = 0;
  const char *format = NULL, *folder = NULL;
  figure_form form_of_figure = {.given = NULL};
  size_t chosen = 0;
  const args_option options[] = {
      {"format", 0, ARGS_TEXT, "text|markdown|latex", "how the table is written", &format},
      {"json", 0, ARGS_FLAG, NULL, "the same as JSON", &json},
      {"figures", 'f', ARGS_FIGURES, "FOLDER", "draw published against simulated there", &folder},
      FIGURE_FORM_OPTIONS(form_of_figure)};
  published_cases cases = {0};
  declared_predictions declared = {0};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  if (format != NULL) status = args_choose(&chosen, "--format", format, formats, 3, err);
  form_of_figure.given = a;
  if (status == GL_OK) status = figure_form_check(&form_of_figure, folder, err);
  const char *const *names = a->n_words > 0 ? a->words : recipes;
  const size_t n = a->n_words > 0 ? a->n_words : (size_t)N_RECIPES;
  progress *bar = progress_new("published", "recipes", n,
                               isatty(STDERR_FILENO) ? PROGRESS_AUTO : PROGRESS_SILENT);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    status = published_cases_add(&cases, names[i], a->overrides, a->n_overrides, err);
    progress_at(bar, i + 1, NULL);
  }
  progress_free(bar);
  if (status == GL_OK && a->n_words == 0)
    status = predictions_read(&declared, resources_text(compared), compared, err);
  if (status == GL_OK) status = print_cases(&cases, &declared, json ? JSON : (form)chosen, err);
  if (status == GL_OK && folder != NULL)
    status = published_draw(&cases, folder, &form_of_figure, err);
  published_cases_fini(&cases);
  predictions_fini(&declared);
  return status;
}

const command command_published = {
    .name = "list published",
    .arguments = "[RECIPE…] [key=value …]",
    .words = {.input = ARGS_RECIPE, .max = 64, .overrides = true},
    .summary = "speed-ups of published systems beside those of the clock",
    .about =
        "Simulates the clusters that a recipe's sweep lists and compares the time of their\n"
        "updates (of the later half of the steps) with the published time,\n"
        "cluster.compare.seconds: in seconds, and as a multiple of the cluster of preset sync\n"
        "before them. Without RECIPE it runs the embedded published_verl,\n"
        "published_one_step_off, published_areal and published_headlines, which cite the source\n"
        "of each number and state the assumptions, and prints the predictions that were committed\n"
        "before they were compared (experiments/predictions). The first line is the median error\n"
        "over cases to which nothing was fitted, in speed-ups of the simulated ones and in the\n"
        "predicted quantities; cases marked fitted, predictions marked seen (made by someone who\n"
        "had seen the run's numbers), and cases in turns are not in it.",
    .examples = "  gepolab list published\n"
                "  gepolab list published published_verl --format markdown\n"
                "  gepolab list published --json -f figures/\n"
                "  gepolab list published my_cluster.yaml",
    .run = run_published};
