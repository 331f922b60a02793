/* gepolab plan: how to use the GPUs of one's own cluster. */
#include "analysis/figures/without_study.h"
#include "analysis/import/read.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/progress.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/clock/log_description.h"
#include "experiments/plan/plan.h"
#include "experiments/recipe/recipe.h"
#include "experiments/tokens/token_log.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
  const char *output;
  const char *folder; /* folder for the figure; NULL: no figure */
  figure_form form;
  const char *trainer; /* word of the trainer whose settings are written; NULL: none */
  size_t settings_of;  /* index of that trainer (plan_trainer_at()) */
  size_t threads;
  const char *format; /* format of the logs; NULL: recognised */
  size_t samplers;    /* number of samplers of the logged run; 0: not given */
  size_t group_size;  /* of token-level logs without prompts; 0: not given */
  int json, quiet, describe;
  log_description log; /* doc NULL: a description was read */
} request;

/* --- a log instead of a description --- */

/* A folder, a table or JSON Lines is a log; JSON is one unless it has a section `plan`. */
static bool plan_is_log(const char *word, const char *format) {
  cfg_doc *doc = NULL;
  if (format != NULL || file_is_folder(word) || folder_name_is_table(word)) return true;
  if (!folder_name_is_log(word)) return false;
  const bool is_description =
      cfg_load_file(&doc, word, NULL) == GL_OK && cfg_find(cfg_root(doc), "plan") != NULL;
  cfg_free(doc);
  return !is_description;
}

/* The logs of the command line: with a number for each step, and with a line for each response. */
typedef struct plan_logs {
  const char **steps, **responses; /* the names are borrowed */
  size_t n_steps, n_responses;
} plan_logs;

/* Whether the folder or file has times of requests, and whether it may have numbers of steps, whose
 * reader reports what is wrong with it. */
static gl_status kinds_at(const char *path, bool *has_rows, bool *has_steps, gl_error *err) {
  read_kind kind = READ_IS_OTHER;
  folder_logs f;
  *has_rows = false, *has_steps = true;
  if (!file_is_folder(path)) {
    const gl_status status = read_which(&kind, path, err);
    *has_rows = kind == READ_IS_ROWS;
    *has_steps = !*has_rows;
    return status;
  }
  *has_rows = folder_list(&f, path, READ_IS_ROWS, NULL) == GL_OK && !f.are_tables;
  folder_fini(&f);
  if (!*has_rows) return GL_OK;
  *has_steps = folder_list(&f, path, READ_IS_SERIES, NULL) == GL_OK;
  folder_fini(&f);
  return GL_OK;
}

static gl_status sort_logs(plan_logs *to, const args *a, const char *format, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < a->n_words && status == GL_OK; ++i) {
    bool of_responses = false, of_steps = true;
    status = fit_log_has_tokens(&of_responses, a->words[i], format, err);
    if (status == GL_OK && of_responses)
      of_steps = false;
    else if (status == GL_OK && format == NULL)
      status = kinds_at(a->words[i], &of_responses, &of_steps, err);
    if (of_responses) *MUST_ADD(to->responses, to->n_responses, "logs") = a->words[i];
    if (of_steps) *MUST_ADD(to->steps, to->n_steps, "logs") = a->words[i];
  }
  return status;
}

static gl_status read_and_describe(request *q, plan_logs *logs, const args *a, gl_error *err) {
  const args_list by_name = {.n = 0};
  const fit_log_request reading = {
      .columns = &by_name, .format = q->format, .group_size = q->group_size};
  calibrate_log steps = {.n = 0};
  fit_log responses = {.batches = {.staleness = NAN, .staleness_most = NAN}};
  gl_status status = token_group_size_check(q->group_size, logs->n_responses > 0, a->words[0], err);
  if (status == GL_OK && logs->n_responses > 0)
    status = fit_log_read(&responses, logs->responses, logs->n_responses, &reading, err);
  for (size_t i = 0; i < responses.n_beside; ++i)
    *MUST_ADD(logs->steps, logs->n_steps, "logs") = responses.beside[i];
  if (status == GL_OK && logs->n_steps > 0)
    status = calibrate_log_read(&steps, logs->steps, logs->n_steps,
                                logs->n_responses > 0 ? NULL : q->format, err);
  tell_gathered(&steps.from);
  tell_incomplete(responses.batches.n_incomplete);
  if (status == GL_OK)
    status = log_describe(&q->log,
                          &(log_description_request){.steps = &steps,
                                                     .responses = &responses,
                                                     .name = a->words[0],
                                                     .samplers = q->samplers,
                                                     .overrides = a->overrides,
                                                     .n_overrides = a->n_overrides},
                          err);
  calibrate_log_fini(&steps);
  fit_log_fini(&responses);
  return status;
}

static gl_status describe_log(cfg_doc **out, request *q, const args *a, gl_error *err) {
  plan_logs logs = {.n_steps = 0};
  gl_status status = sort_logs(&logs, a, q->format, err);
  if (status == GL_OK) status = read_and_describe(q, &logs, a, err);
  free(logs.steps), free(logs.responses);
  *out = q->log.doc;
  q->log.doc = NULL;
  return status;
}

static gl_status load_description(cfg_doc **out, request *q, const args *a, gl_error *err) {
  if (plan_is_log(a->words[0], q->format)) return describe_log(out, q, a, err);
  if (a->n_words > 1)
    return gl_fail(err, GL_EINPUT,
                   "'%s': a plan is made from one description, or from the logs of one run; usage: "
                   "gepolab plan CLUSTER [key=value …], or LOG… key=value …",
                   a->words[1]);
  if (q->describe || q->samplers > 0 || q->group_size > 0)
    return gl_fail(err, GL_EINPUT, "--%s is for logs, and %s is a description",
                   q->describe       ? "describe"
                   : q->samplers > 0 ? "samplers"
                                     : "group-size",
                   a->words[0]);
  return recipe_load_cluster(out, a->words[0], a->overrides, a->n_overrides, err);
}

/* Prints the description as YAML, after comments that state what was read from the log. */
static gl_status print_description(const cfg_doc *doc, const table *read, gl_error *err) {
  static const char *const first[] = {"name", "seed", "steps", "train", "cluster"};
  char *text = NULL, *tree_text = cfg_canonical(cfg_root(doc));
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  must_succeed(to != NULL && tree_text != NULL, "a description");
  gl_status status = table_write(read, TABLE_AS_TEXT, to, err);
  must_succeed(fclose(to) == 0, "a description");
  for (char *line = strtok(text, "\n"); line != NULL && status == GL_OK; line = strtok(NULL, "\n"))
    printf("# %s\n", line);
  cJSON *tree = must_have(json_tree_of(tree_text), "a description");
  yaml_write(tree, first, sizeof first / sizeof *first, stdout);
  cJSON_Delete(tree);
  free(tree_text);
  free(text);
  return status;
}

/* Prints the logged run's throughput and staleness, and the plan's speed relative to it. */
static void print_against_log(const plan_result *r, const log_description *log) {
  if (log->read == NULL || r->chosen == SIZE_MAX) return;
  const double rate = plan_throughput(&r->system[r->chosen]).mean;
  if (isnan(log->responses_per_hour)) return;
  printf("\nthe logged run: %.0f responses/h", log->responses_per_hour);
  if (!isnan(log->staleness)) printf(", staleness %.3g", log->staleness);
  printf("; the plan is %.2f times as fast\n", rate / log->responses_per_hour);
}

/* --- progress and Ctrl-C --- */

typedef struct watch {
  progress *bar;
  int quiet;
} watch;

static void begin_phase(void *self, const char *what, size_t simulations) {
  watch *w = self;
  progress_free(w->bar);
  w->bar =
      progress_new(what, "simulations", simulations, w->quiet ? PROGRESS_SILENT : PROGRESS_AUTO);
}

static void plan_advance(void *self, size_t simulations) {
  progress_at(((watch *)self)->bar, simulations, NULL);
}

static int plan_is_stopped(void *self) {
  (void)self;
  return signals_caught();
}

/* --- the recommended recipe --- */

/* Returns the recommended recipe as JSON, with numbers as the recipe writes them. NULL and GL_OK if
 * there is none; *why_not as in plan_recommend(). */
static gl_status recommended(cJSON **out, const plan_result *r, char why_not[PLAN_WHY_SIZE],
                             gl_error *err) {
  cfg_doc *doc = NULL;
  *out = NULL;
  why_not[0] = '\0';
  if (r->chosen == SIZE_MAX) return GL_OK;
  gl_status status = plan_recommend(&doc, &r->system[r->chosen].candidate, r->d, why_not, err);
  char *text = status == GL_OK ? cfg_canonical(cfg_root(doc)) : NULL;
  if (text != NULL) *out = json_tree_of(text);
  if (status == GL_OK && *out == NULL) status = gl_fail_memory(err, "the recommended recipe");
  free(text);
  cfg_free(doc);
  return status;
}

static void plan_print_recipe(const cJSON *planned, FILE *to) {
  static const char *const first[] = {"name",  "description", "seed",      "steps",
                                      "world", "train",       "algorithm", "optimizer"};
  yaml_write(planned, first, sizeof first / sizeof *first, to);
}

static gl_status write_recipe(const cJSON *planned, const char *path, gl_error *err) {
  file_writer w;
  gl_status status = file_begin(&w, path, err);
  if (status != GL_OK) return status;
  fputs("# Recommended by gepolab plan.\n", w.stream);
  plan_print_recipe(planned, w.stream);
  return file_commit(&w, err);
}

/* --- the figure --- */

static pareto_point point_of(const plan_system *s, pareto_kind kind) {
  const plan_estimate t = plan_throughput(s), a = plan_staleness(s);
  return (pareto_point){kind,   a.mean,          a.mean - a.half, a.mean + a.half,
                        t.mean, t.mean - t.half, t.mean + t.half};
}

/* Lists the points in drawing order: candidates, the Pareto front, and on top the recommended
 * candidate. */
static size_t list_points(const plan_result *r, pareto_point *out) {
  size_t n = 0;
  for (size_t i = 0; i < r->ranking.n; ++i) {
    out[n] = point_of(&r->system[r->of[i]], PARETO_CANDIDATE);
    out[n].x_low = out[n].x_high = out[n].y_low = out[n].y_high = NAN;
    ++n;
  }
  for (size_t i = 0; i < r->n_front; ++i)
    out[n++] = point_of(&r->system[r->front[i]], PARETO_FRONT);
  if (r->chosen != SIZE_MAX) out[n++] = point_of(&r->system[r->chosen], PARETO_CHOSEN);
  return n;
}

static gl_status plan_draw(const plan_result *r, const request *q, gl_error *err) {
  if (q->folder == NULL) return GL_OK;
  pareto_point *points = MUST_ARRAY(pareto_point, r->ranking.n + r->n_front + 1, "a figure");
  const pareto front = {.x_axis = "mean staleness [updates]",
                        .y_axis = "trained responses per hour",
                        .points = points,
                        .n = list_points(r, points),
                        .limit = r->d->limits.staleness};
  figure_request drawing = figures_request_to(q->folder);
  drawing.report = NULL; /* standard output holds the plan, perhaps as JSON */
  gl_status status = figures_request_form(&drawing, &q->form, err);
  if (status == GL_OK) status = figure_of_pareto(&front, &drawing, err);
  free(points);
  return status;
}

/* --- the command --- */

static gl_status plan_print_result(const plan_result *r, const request *q, gl_error *err) {
  char why_not[PLAN_WHY_SIZE];
  cJSON *planned = NULL;
  gl_status status = recommended(&planned, r, why_not, err);
  if (status == GL_OK && planned != NULL && q->output != NULL)
    status = write_recipe(planned, q->output, err);
  if (status != GL_OK) {
    cJSON_Delete(planned);
    return status;
  }
  plan_warn(r, stderr);
  if (why_not[0] != '\0')
    fprintf(stderr,
            "gepolab: note: gepolab sim runs the recommended recipe; a learner does not: %s\n",
            why_not);
  if (q->json) {
    cJSON *plan = plan_to_json(r, planned);
    if (plan != NULL && q->trainer != NULL && r->chosen != SIZE_MAX)
      plan_settings_json(json_object(plan, "for"), r, q->settings_of);
    if (plan != NULL && q->log.read != NULL) {
      cJSON *log = must_have(table_to_json(q->log.read), "JSON");
      json_number(log, "responses_per_hour", q->log.responses_per_hour);
      json_attach(plan, "log", log);
    }
    status = report_json(plan, err);
  } else {
    plan_print(r, stdout);
    print_against_log(r, &q->log);
    if (planned != NULL && q->output == NULL) {
      fputs("\n# the recommended recipe (-o FILE.yaml writes it)\n", stdout);
      plan_print_recipe(planned, stdout);
    }
    cJSON_Delete(planned);
    if (q->trainer != NULL && r->chosen != SIZE_MAX) plan_settings_print(r, q->settings_of, stdout);
  }
  if (status == GL_OK) status = plan_draw(r, q, err);
  if (status == GL_OK && r->chosen == SIZE_MAX)
    return gl_fail(err, GL_ENUMERIC,
                   "no candidate of %s keeps plan.limits%s; loosen them, or widen plan.search",
                   r->d->name, q->output != NULL ? ", so no recipe is written" : "");
  return status;
}

static gl_status plan_and_print(const plan_description *d, const request *q, gl_error *err) {
  plan_result r;
  watch w = {.quiet = q->quiet};
  const plan_watch watching = {&w, begin_phase, plan_advance, plan_is_stopped};
  signals_catch();
  if (q->log.read != NULL && !q->json) {
    const gl_status printed = table_write(q->log.read, TABLE_AS_TEXT, stdout, err);
    if (printed != GL_OK) return printed;
    putchar('\n');
  }
  gl_status status = plan_search(&r, d, q->threads, &watching, err);
  progress_free(w.bar);
  if (status == GL_OK) status = plan_print_result(&r, q, err);
  plan_result_fini(&r);
  return status;
}

static gl_status find_trainer(request *q, gl_error *err) {
  const char *words[16];
  size_t n = 0;
  for (const plan_trainer *t; n < 16 && (t = plan_trainer_at(n)) != NULL;) words[n++] = t->word;
  return q->trainer == NULL ? GL_OK
                            : args_choose(&q->settings_of, "--for", q->trainer, words, n, err);
}

static gl_status run_plan(args *a, gl_error *err) {
  request q = {.json = 0};
  const args_option options[] = {
      {"output", 'o', ARGS_WRITE, "FILE.yaml", "write the recommended recipe there", &q.output},
      {"figures", 'f', ARGS_FIGURES, "FOLDER", "draw the Pareto front there", &q.folder},
      FIGURE_WIDTH_OPTION(q.form),
      {"for", 0, ARGS_TEXT, "TRAINER",
       "also the settings of verl, prime-rl, areal, nemo-rl, trl or slime", &q.trainer},
      {"threads", 'j', ARGS_COUNT, "N", "simulations side by side (default: all cores)",
       &q.threads},
      {"samplers", 0, ARGS_COUNT, "N", "engines that generated the logged run", &q.samplers},
      {"group-size", 0, ARGS_COUNT, "N", "of token-level logs: groups are N consecutive responses",
       &q.group_size},
      {"log-format", 0, ARGS_TEXT, "NAME", "of the logs (`gepolab list formats`)", &q.format},
      {"describe", 0, ARGS_FLAG, NULL, "print the description made from the log, and stop",
       &q.describe},
      {"quiet", 'q', ARGS_FLAG, NULL, "no progress", &q.quiet},
      {"json", 0, ARGS_FLAG, NULL, "the plan as JSON, with the recipe", &q.json}};
  cfg_doc *doc = NULL;
  plan_description d;
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  q.form.given = a;
  status = figure_form_check(&q.form, q.folder, err);
  if (status == GL_OK) status = find_trainer(&q, err);
  if (status == GL_OK) status = load_description(&doc, &q, a, err);
  if (status == GL_OK) status = args_read_files(a, doc, err);
  if (status == GL_OK) status = plan_describe(&d, doc, err);
  if (status == GL_OK) status = file_check(q.output, err);
  if (status == GL_OK)
    status = q.describe ? print_description(doc, q.log.read, err) : plan_and_print(&d, &q, err);
  log_description_fini(&q.log);
  cfg_free(doc);
  return status;
}

const command command_plan = {
    .name = "plan",
    .arguments = "CLUSTER|LOG… [key=value …]",
    .words = {.input = ARGS_CLUSTER, .min = 1, .max = 256, .overrides = true},
    .summary = "how to use a cluster's GPUs: throughput against staleness",
    .about =
        "CLUSTER describes the GPUs, the network between them and measured speeds: a file, or\n"
        "one_node, data_centre or three_continents (experiments/RECIPES.md has its fields).\n"
        "LOG is a trainer's log with a number for each step, as calibrate reads it, or with a "
        "line\n"
        "for each response, as whatif and fit read it, or a folder; several are of one run.\n"
        "The description is then made from them: step, weight delay and, from responses, lengths\n"
        "are fitted, otherwise lengths and decoding speed computed. key=value must add what the\n"
        "logs do not say (plan.sites, plan.learner.gpus, plan.sampler.gpus; without responses\n"
        "train.groups, train.group_size; without steps cluster.learner.step) and replaces what\n"
        "they say. Each field is printed as read, given or assumed, and the clock's\n"
        "prediction of the second half beside the log.\n"
        "gepolab simulates splits of the GPUs between learner and samplers, concurrency,\n"
        "batches per update, window and publishing interval with common random numbers, until\n"
        "the best candidate within plan.limits is selected with a stated error rate, up to an\n"
        "indifference zone (paper/methods.md 10.14). It prints the recommended recipe, the\n"
        "resource that limits it, the gain from one more of each resource, and the Pareto\n"
        "front. The verdict says what binds, what asynchrony can bring at most and what the plan\n"
        "brings. --for TRAINER adds the settings of that trainer, each with the place where its\n"
        "name was read, and says what of the plan cannot be set there.\n"
        "With plan.limits.staleness the goal is the highest throughput, with\n"
        "plan.limits.throughput alone the lowest staleness.",
    .examples = "  gepolab plan three_continents -o planned.yaml && gepolab sim planned.yaml\n"
                "  gepolab plan one_node plan.limits.staleness=1 --figures figures/\n"
                "  gepolab plan one_node --for verl\n"
                "  gepolab plan verl.jsonl plan.sites='[{name: here, gpus: 64}]' \\\n"
                "    plan.learner.gpus=16 plan.sampler.gpus=4 train.groups=64 train.group_size=8\n"
                "  gepolab plan exp_001/ plan.sites='[{name: here, gpus: 64}]' \\\n"
                "    plan.learner.gpus=16 plan.sampler.gpus=4 cluster.learner.step=40 \\\n"
                "    plan.sampler.decoding='[{concurrency: 64, tokens_per_s: 40}]'\n"
                "  gepolab plan my_cluster.yaml plan.limits.throughput=50000 --json",
    .run = run_plan};
