/* gepolab sim: the clock of a recipe, without any learning. */
#include "analysis/figures/figures.h"
#include "core/base/thread_pool.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"
#include "experiments/clock/counter_tables.h"
#include "experiments/clock/sim.h"
#include "experiments/clock/sim_print.h"
#include "experiments/recipe/recipe.h"
#include "sim/schedule.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Theoretical values of the cluster, and those measured from the schedule. */
typedef struct comparison {
  theory said;
  theory_measured measured;
} comparison;

/* Adds a further report to the schedule's: to its JSON under the key, or as text after it. */
static gl_status add_report(cJSON *document, const char *key, table *report, gl_error *err) {
  gl_status status = GL_OK;
  if (document != NULL)
    json_attach(document, key, table_to_json(report));
  else
    status = table_write(report, TABLE_AS_TEXT, stdout, err);
  table_free(report);
  return status;
}

/* With several optimiser updates per step, the k-th trains on data that are k - 1 updates staler
 * than at the beginning of the step. Assumes that every update trains on equally many tokens. */
static void sim_report_within(cJSON *document, const recipe *r) {
  const double updates = (double)r->minibatches * (double)r->epochs;
  if (updates <= 1) return;
  if (document != NULL)
    json_put(cJSON_GetObjectItem(document, "staleness"),
             "updates_per_version %g, updates_within %g", updates, (updates - 1) / 2);
  else
    printf("%-20s  %.6g optimiser updates within a step on average, beside %g for each version of "
           "staleness\n",
           "staleness_within", (updates - 1) / 2, updates);
}

/* Prints a schedule. beside: its comparison with theory, or NULL. */
static gl_status report_schedule(const schedule *s, const recipe *r, const cluster_spec *cluster,
                                 const comparison *beside, bool selection, bool is_json,
                                 gl_error *err) {
  cJSON *document = NULL;
  gl_status status = GL_OK;
  if (is_json)
    status = schedule_to_json(s, cluster, &document, err);
  else
    schedule_print_table(s, cluster, stdout);
  if (status == GL_OK) sim_report_within(document, r);
  if (status == GL_OK && beside != NULL) {
    table *t = table_document();
    sim_theory_report(t, &beside->said, &beside->measured, s);
    status = add_report(document, "theory", t, err);
  }
  if (status == GL_OK && selection) {
    table *t = table_document();
    unit_fates_report(t, s, cluster);
    status = add_report(document, "selection", t, err);
  }
  return is_json && status == GL_OK ? report_json(document, err) : status;
}

/* --- replicas --- */

static const table_column replicas_columns[] = {
    {NULL, TABLE_TEXT, .head = ""},
    {NULL, TABLE_INTERVAL, .head = "mean [95 % interval]", .format = "%.6g"},
    {NULL, TABLE_REAL, .head = "sd"},
    {NULL, TABLE_REAL, .head = "least", .format = "%.6g"},
    {NULL, TABLE_REAL, .head = "most", .format = "%.6g"}};

static gl_status report_replicas(const replicas *q, bool is_json, gl_error *err) {
  const unsigned long long first = q->r->seed;
  table *d = table_document();
  table_put(d, "replicas %zu, first_seed %llu", q->n, first);
  table_line(d, "%zu replicas, seeds %llu to %llu", q->n, first, first + q->n - 1);
  table *shown = table_rows(table_field(d, NULL), replicas_columns,
                            sizeof replicas_columns / sizeof *replicas_columns);
  for (size_t k = 0; k < q->n_numbers; ++k) {
    const replicas_spread s = replicas_spread_of(q, k);
    table_put(table_object(table_field(d, s.name)),
              "mean %g, low %g, high %g, sd %g, min %g, max %g", s.mean, s.low, s.high, s.sd,
              s.least, s.most);
    if (s.n == 0) continue;
    table_row(shown);
    table_textf(shown, "%s%s%s", s.name, s.unit[0] != 0 ? ", " : "", s.unit);
    table_interval(shown, s.mean, s.low, s.high);
    table_real(shown, s.sd);
    table_real(shown, s.least);
    table_real(shown, s.most);
  }
  return report_table(d, TABLE_AS_TEXT, is_json, err);
}

static gl_status simulate_replicas(const recipe *r, const cluster_spec *cluster, size_t n,
                                   size_t threads, bool is_json, gl_error *err) {
  replicas q;
  gl_status status = replicas_run(&q, r, cluster, n, threads, err);
  if (status == GL_OK) status = report_replicas(&q, is_json, err);
  replicas_fini(&q);
  return status;
}

/* --- one run --- */

/* What --schedule may print. */
static const char *const schedule_forms[] = {"csv", "tokens"};
enum { SCHEDULE_CSV = 1, SCHEDULE_TOKENS };

/* The options of the command line. */
typedef struct request {
  int json, timeline, densities, theory, selection, definitions;
  size_t schedule;                     /* 0: none; else 1 + the index in schedule_forms */
  size_t format;                       /* format of the table of definitions; a table_format */
  size_t replicas, threads;            /* 0 replicas: one run, in full */
  const char *measured, *measured_run; /* a W&B export and its run */
  const char *folder;                  /* folder for the figures; NULL: no figures */
  const char *between;                 /* interval of the timeline; NULL: chosen automatically */
  figure_form form;
} request;

static gl_status draw_timeline(const schedule *s, const recipe *r, const cluster_spec *cluster,
                               const request *q, const figure_request *drawing, gl_error *err) {
  double between[2];
  gl_status status = GL_OK;
  if (q->between != NULL) status = timeline_between(q->between, between, err);
  if (status != GL_OK) return status;
  return timeline_draw(s, cluster, r->seed, q->between != NULL ? between : NULL, drawing, err);
}

/* Draws figures if a folder is given: the simulated staleness distribution compared with that of
 * the W&B export (else with the measured one in the recipe), the timeline and the densities. */
static gl_status sim_draw(const schedule *s, const recipe *r, const cfg_doc *doc,
                          const cluster_spec *cluster, const staleness_histogram *export,
                          const request *q, gl_error *err) {
  char none[] = "";
  const staleness_histogram simulated = {none, s->staleness, s->n_staleness};
  const cluster_measurements *compare = cluster_measured(cluster);
  staleness_histogram of_recipe = {0};
  const staleness_histogram *measured = NULL;
  gl_status status = GL_OK;
  if (q->folder == NULL) return GL_OK;
  if (q->measured != NULL) {
    measured = export;
  } else if (compare->n > 0) {
    of_recipe = (staleness_histogram){compare->name, compare->count, compare->n};
    measured = &of_recipe;
  }
  figure_request drawing = figures_request_to(q->folder);
  drawing.report = NULL; /* standard output holds the summary, perhaps as JSON */
  if (status == GL_OK) status = figures_request_form(&drawing, &q->form, err);
  if (status == GL_OK) status = figure_of_staleness(&simulated, 1, measured, &drawing, err);
  if (status == GL_OK && q->timeline) status = draw_timeline(s, r, cluster, q, &drawing, err);
  if (status == GL_OK && q->densities) status = densities_draw(r, doc, &drawing, err);
  return status;
}

/* Checks a coupled clock, which gets response lengths from the learner. There is no learner here,
 * so the cluster must have a distribution of lengths. */
static gl_status stand_in(const recipe *r, const cluster_spec *cluster, gl_error *err) {
  if (!cluster_is_coupled(cluster)) return GL_OK;
  if (!cluster_has_lengths(cluster))
    return cfg_fail(
        cfg_find(r->cluster, "coupled"), err,
        "the clock is coupled to the learner, and `gepolab sim` has none; give the "
        "cluster a distribution of `lengths` in place of real responses, or use `gepolab "
        "run`");
  fputs("gepolab: note: the cluster is coupled; response lengths are sampled from the distribution "
        "of `lengths` here, not from the learner\n",
        stderr);
  return GL_OK;
}

static gl_status sim_one_run(const recipe *r, const cfg_doc *doc, const request *q, gl_error *err) {
  cluster_spec *cluster = NULL;
  schedule s = {0};
  comparison c = {.said = {0}};
  staleness_histogram export = {0};
  const comparison *beside = q->theory ? &c : NULL;
  gl_status status = cluster_parse(&cluster, r->cluster, r->groups, r->group_size, err);
  if (status == GL_OK) status = stand_in(r, cluster, err);
  if (status == GL_OK && q->replicas > 0) {
    status = simulate_replicas(r, cluster, q->replicas, q->threads, q->json, err);
    cluster_free(cluster);
    return status;
  }
  if (status == GL_OK && q->measured != NULL)
    status = staleness_measured(&export, q->measured, q->measured_run, err);
  if (status == GL_OK && beside != NULL) status = sim_theory_of(&c.said, cluster, err);
  if (status == GL_OK) status = schedule_build(&s, cluster, r->seed, r->steps, err);
  if (status == GL_OK && beside != NULL) status = sim_theory_measure(&c.measured, &s, cluster, err);
  if (status == GL_OK && q->schedule == SCHEDULE_CSV)
    schedule_print_csv(&s, stdout);
  else if (status == GL_OK && q->schedule == SCHEDULE_TOKENS)
    status = schedule_print_tokens(&s, cluster, r->seed, stdout, err);
  else if (status == GL_OK)
    status = report_schedule(&s, r, cluster, beside, q->selection, q->json, err);
  if (status == GL_OK) status = sim_draw(&s, r, doc, cluster, &export, q, err);
  staleness_histogram_fini(&export);
  sim_theory_fini(&c.said);
  schedule_fini(&s);
  cluster_free(cluster);
  return status;
}

/* Reads the words of --schedule and --format. */
static gl_status read_forms(request *q, const char *events, const char *format, gl_error *err) {
  gl_status status = GL_OK;
  if (events != NULL) {
    status = args_choose(&q->schedule, "--schedule", events, schedule_forms,
                         sizeof schedule_forms / sizeof *schedule_forms, err);
    ++q->schedule;
  }
  if (status == GL_OK && format != NULL && !q->definitions)
    status = gl_fail(err, GL_EINPUT, "--format needs --definitions");
  if (status != GL_OK || format == NULL) return status;
  return args_choose(&q->format, "--format", format, table_format_names, TABLE_COMMAND_FORMATS,
                     err);
}

/* Checks that the options can be combined. */
static gl_status check_options(const request *q, gl_error *err) {
  const struct {
    const char *name;
    int given;
  } tables[] = {{"json", q->json}, {"theory", q->theory}, {"selection", q->selection}};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i)
    if (q->schedule > 0 && tables[i].given)
      return gl_fail(err, GL_EINPUT, "--schedule and --%s exclude each other", tables[i].name);
  if (q->definitions && (q->schedule > 0 || q->theory || q->selection || q->replicas > 0 ||
                         q->timeline || q->densities || q->folder != NULL))
    return gl_fail(err, GL_EINPUT,
                   "--definitions prints a table of its own: leave out --schedule, --theory, "
                   "--selection, --replicas and figures");
  if (q->replicas > 0 && (q->schedule > 0 || q->theory || q->selection || q->timeline ||
                          q->densities || q->folder != NULL))
    return gl_fail(err, GL_EINPUT,
                   "--replicas prints numbers of many seeds; --schedule, --theory, --selection "
                   "and figures are of one run, so leave these out");
  if (q->between != NULL && !q->timeline)
    return gl_fail(err, GL_EINPUT, "--between needs --timeline");
  if (q->measured != NULL && q->folder == NULL && !q->timeline && !q->densities)
    return gl_fail(err, GL_EINPUT, "--measured needs --figures FOLDER");
  if (q->measured_run != NULL && q->measured == NULL)
    return gl_fail(err, GL_EINPUT, "--measured-run needs --measured EXPORT.csv");
  double between[2];
  if (q->between != NULL && timeline_between(q->between, between, err) != GL_OK) return GL_EINPUT;
  return figure_form_check(&q->form, q->folder, err);
}

/* Prints the values that the staleness counters of trainers would report, for every setting of the
 * sweep. */
static gl_status sim_definitions(const one_recipe *of, const request *q, gl_error *err) {
  definitions_comparison c;
  gl_status status = definitions_compare(&c, &of->r, of->doc, err);
  if (status == GL_OK) status = report_table(c.table, (table_format)q->format, q->json, err);
  definitions_comparison_fini(&c);
  return status;
}

static gl_status sim_read_and_run(one_recipe *of, const request *q, gl_error *err) {
  gl_status status = one_recipe_read(of, err);
  if (status != GL_OK) return status;
  if (q->definitions) return sim_definitions(of, q, err);
  note_left_sweep(of->r.sweep);
  return sim_one_run(&of->r, of->doc, q, err);
}

static gl_status run_sim(args *a, gl_error *err) {
  const char *events = NULL, *format = NULL;
  request q = {.threads = pool_usable_cores()};
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "the summary as JSON", &q.json},
      {"schedule", 0, ARGS_TEXT, "WHAT",
       "as CSV: every trained batch with its times (csv), or every run of tokens of one version "
       "(tokens)",
       &events},
      {"figures", 'f', ARGS_FIGURES, "FOLDER", "draw the staleness distribution there", &q.folder},
      {"timeline", ARGS_OLD('t'), ARGS_FLAG, NULL,
       "and what samplers, links and the learner do when (default folder: figures)", &q.timeline},
      {"theory", 0, ARGS_FLAG, NULL,
       "and what closed forms say, beside the simulated numbers with their error", &q.theory},
      {"selection", 0, ARGS_FLAG, NULL,
       "and what became of all that was sampled, by lengths and prompts", &q.selection},
      {"densities", 'd', ARGS_FLAG, NULL,
       "and the densities of all distributions, those of the sweep's cells too", &q.densities},
      {"definitions", 0, ARGS_FLAG, NULL,
       "what the staleness counters of trainers would read, for every setting of the sweep",
       &q.definitions},
      {"format", 0, ARGS_TEXT, "FORMAT", "of the definitions: text, markdown or latex", &format},
      {"between", 0, ARGS_TEXT, "FROM,TO",
       "simulated seconds of the timeline (default: the first 64 updates)", &q.between},
      {"replicas", 0, ARGS_COUNT, "N",
       "repeat with N consecutive seeds, starting at the recipe's; prints means, intervals, "
       "extremes",
       &q.replicas},
      {"threads", 'j', ARGS_COUNT, "N",
       "of replicas (default: all cores); numbers do not depend on it", &q.threads},
      FIGURE_FORM_OPTIONS(q.form),
      {"plot", 'p', ARGS_RENAMED, "--figures", NULL, NULL},
      {"measured", 'm', ARGS_READ, "EXPORT.csv", "beside it that of a W&B export", &q.measured},
      {"measured-run", 0, ARGS_TEXT, "RUN", "which of its runs, where there are several",
       &q.measured_run}};
  one_recipe of = {.words = a};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  q.form.given = a;
  if ((q.timeline || q.densities) && q.folder == NULL) q.folder = "figures";
  status = read_forms(&q, events, format, err);
  if (status == GL_OK) status = check_options(&q, err);
  if (status == GL_OK) status = sim_read_and_run(&of, &q, err);
  cfg_free(of.doc);
  return status;
}

const command command_sim = {
    .name = "sim",
    .arguments = "RECIPE [key=value …]",
    .words = {.input = ARGS_RECIPE, .min = 1, .max = 1, .overrides = true},
    .summary = "timing only: staleness, throughput, utilisation, bytes",
    .about =
        "Runs the clock of the recipe's cluster until its number of learner updates is done.\n"
        "RECIPE is a file or the name of an embedded recipe; key=value overrides any field.\n"
        "--theory: queueing theory and order statistics, if the cluster is one that they cover\n"
        "(paper/methods.md 10.11); else the condition that it breaks is named, exit code 2.\n"
        "--selection: how many batches, groups or responses were sampled, and how many of these\n"
        "were trained, too stale, evicted, aborted, lost or are pending. The trained ones\n"
        "differ from the sampled ones if slow ones arrive too late.\n"
        "--definitions: the counters that `gepolab list definitions` explains.",
    .examples = "  gepolab sim heterorl_trace --json\n"
                "  gepolab sim heterorl_trace cluster.window=4\n"
                "  gepolab sim heterorl_trace --figures figures/ --measured staleness.csv\n"
                "  gepolab sim packet_loss --timeline --between 0,3600 -f figures/\n"
                "  gepolab sim delay_sweep --densities -f figures/\n"
                "  gepolab sim quickstart 'cluster={preset: sync, samplers: 4}' --theory\n"
                "  gepolab sim slow_prompts --selection\n"
                "  gepolab sim staleness_counters --definitions\n"
                "  gepolab sim shared_egress --replicas 32\n"
                "  gepolab sim quickstart --schedule csv > schedule.csv",
    .run = run_sim};
