/* gepolab analyze: a summary of studies and other programs' exports; and its tables of outcomes,
 * contrasts, effects, announcements and features. */
#include "analysis/auc.h"
#include "analysis/collapse_prediction.h"
#include "analysis/contrasts.h"
#include "analysis/decline_prediction.h"
#include "analysis/effects.h"
#include "analysis/evaluation_sets.h"
#include "analysis/import/report.h"
#include "analysis/outcome.h"
#include "analysis/profiles.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"
#include "experiments/recipe/recipe.h"
#include "experiments/sweep/grid.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints a report, or frees it if making it failed (`made`). */
static gl_status print_report(table *t, gl_status made, table_format format, bool is_json,
                              gl_error *err) {
  if (made == GL_OK) return report_table(t, format, is_json, err);
  table_free(t);
  return made;
}

/* --- analyze --- */

static gl_status analyze_files(const gather_request *q, const char *printed_in, table_format format,
                               int json, gl_error *err) {
  table *t = table_document();
  published printed = {0};
  gl_status status = printed_in ? published_read(&printed, printed_in, err) : GL_OK;
  if (status == GL_OK) status = report_analysis(t, q, printed_in ? &printed : NULL, err);
  published_fini(&printed);
  return print_report(t, status, format, json, err);
}

static gl_status run_analyze(args *a, gl_error *err) {
  enum { OWN = 4 };
  static const char *const tables[] = {"summary",  "outcomes",      "contrasts",
                                       "effects",  "announcements", "declines",
                                       "features", "power",         "profiles"};
  int json = 0;
  const char *printed = NULL, *asked = tables[0];
  size_t summary = 0;
  import_options import = {0};
  gather_request q;
  table_format form = TABLE_AS_TEXT;
  args_option options[OWN + IMPORT_OPTION_COUNT] = {
      {"table", 0, ARGS_TEXT,
       "summary|outcomes|contrasts|effects|announcements|declines|features|power|profiles",
       "which one (default: summary); --table NAME --help has its options", &asked},
      {"format", ARGS_OLD('f'), ARGS_FORMAT, "text|markdown|latex", "how tables are written",
       &form},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json},
      {"published", 0, ARGS_READ, "PRINTED.csv",
       "printed numbers (run, benchmark, best, last) to compare", &printed}};
  import_options_list(&import, options + OWN);
  gl_status status = args_parse(a, options, OWN + IMPORT_OPTION_COUNT, err);
  if (status != GL_OK || a->help) return status;
  status = args_choose(&summary, "--table", asked, tables, sizeof tables / sizeof *tables, err);
  if (status == GL_OK) status = import_options_request(&import, a->words, a->n_words, &q, err);
  for (size_t i = 0; i < a->n_words && status == GL_OK; ++i) print_unfinished_file(a->words[i]);
  if (status == GL_OK) status = analyze_files(&q, printed, form, json, err);
  return status;
}

const command command_analyze = {
    .name = "analyze",
    .arguments = "FILE …",
    .words = {.input = ARGS_RUNS, .min = 1, .max = ARGS_LIST_MOST},
    .summary = "tables of a study or of other programs' logs",
    .about =
        "--table summary is printed without --table. The others: outcomes (which runs\n"
        "collapsed, and when), contrasts (comparisons that a recipe declared), effects (of\n"
        "factors at two levels), announcements (which metrics predict a collapse), features (of\n"
        "published curves).\n"
        "Of a study, for every algorithm and setting: interquartile means over seeds of the\n"
        "best score, the last score and their gap with 95 % bootstrap intervals, the learning\n"
        "rate, and rank correlations over the cells. Settings are the fields in which the\n"
        "stored recipes differ. Only seeds are averaged over, and the studies of one file are\n"
        "listed separately.\n"
        "Evaluation sets: best, last and gap of each and of their average. Logs of other\n"
        "programs, several at once and together with studies: W&B panel exports, CSV and TSV\n"
        "(`step,gepo,grpo`, or long tables with a column for the run), JSON Lines. The format\n"
        "is detected from the content. There is a line for each run and quantity; with several\n"
        "labels there are columns of best and last scores and their averages. Whether higher is\n"
        "better is known of the metrics of `gepolab list metrics`.",
    .examples =
        "  gepolab analyze study.db\n  gepolab analyze study.db --format latex > table.tex\n"
        "  gepolab analyze study.db --set hard\n"
        "  gepolab analyze --table outcomes study.db\n"
        "  gepolab analyze eval_math500.csv --json\n"
        "  gepolab analyze a.csv b.csv -l a.csv=MATH500 -l b.csv=AIME24 --at common\n"
        "  gepolab analyze runs.csv --group-by '(.*)_seed[0-9]+' --rename '^GEPO$=gepo'\n"
        "  gepolab analyze kl.csv --metric kl --lower-is-better",
    .run = run_analyze};

/* --- outcomes: what became of runs, by one rule for all --- */

typedef struct outcomes_request {
  const char *set; /* evaluation set whose scores are used; NULL: the runs' own score */
  table_format format;
  int json, runs, levels;
} outcomes_request;

static gl_status put_outcomes(table *to, const results *r, const outcomes_request *q,
                              gl_error *err) {
  const outcome_rule rule = outcome_rule_default();
  stability s = {0};
  gl_status status = stability_init(&s, r, &rule, err);
  if (status == GL_OK) status = stability_fit(&s, err);
  if (status == GL_OK) stability_report(to, &s, q->runs);
  if (status == GL_OK && q->levels) status = levels_report(to, r, err);
  if (status == GL_OK) status = equal_arms_report(to, r, err);
  stability_fini(&s);
  return status;
}

static gl_status add_outcomes(table *to, store *from, const char *name, const outcomes_request *q,
                              gl_error *err) {
  results *r = NULL;
  gl_status status = results_load(&r, from, name, err);
  if (status == GL_OK && q->set != NULL) status = sets_choose(r, q->set, err);
  if (status == GL_OK) status = put_outcomes(to, r, q, err);
  results_free(r);
  return status;
}

/* Reports the outcomes of another program's log, or of a folder of logs. Scores are the log's
 * evaluation metrics. */
static gl_status report_outcomes_of_log(const char *path, const outcomes_request *q,
                                        gl_error *err) {
  gathered g;
  results *r = NULL;
  table *t = table_document();
  gl_status status = gather(&g, &(gather_request){.files = &path, .n_files = 1}, err);
  if (status == GL_OK && q->set != NULL)
    status = gl_fail(err, GL_EINPUT, "%s is no study, and --set is for evaluation sets of studies",
                     path);
  tell_gathered(&g);
  if (status == GL_OK) status = gathered_results(&r, NULL, &g, err);
  if (status == GL_OK) status = put_outcomes(t, r, q, err);
  results_free(r);
  gathered_fini(&g);
  return print_report(t, status, q->format, q->json, err);
}

/* Reports all studies of the file. With several the JSON is {"studies": [...]}. */
static gl_status report_outcomes(store *from, const outcomes_request *q, gl_error *err) {
  char **names = NULL;
  size_t n = 0;
  gl_status status = results_studies(&names, &n, from, err);
  if (status != GL_OK) return status;
  table *all = table_document();
  table *list = n > 1 ? table_list(table_field(all, "studies")) : NULL;
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    if (i > 0) table_line(list, "%s", "");
    status =
        add_outcomes(n > 1 ? table_object(table_field(list, "")) : all, from, names[i], q, err);
  }
  free(names);
  return print_report(all, status, q->format, q->json, err);
}

static gl_status run_outcomes(args *a, gl_error *err) {
  outcomes_request q = {0};
  args_option options[] = {
      {"set", 0, ARGS_TEXT, "SET",
       "the evaluation set that is judged, or mean (default: the first)", &q.set},
      {"runs", 0, ARGS_FLAG, NULL, "also each run, with its updates", &q.runs},
      {"levels", 0, ARGS_FLAG, NULL,
       "also where runs end, by setting and rate: score, pass@G, diversity", &q.levels},
      {"format", ARGS_OLD('f'), ARGS_FORMAT, "FORMAT", "text, markdown or latex", &q.format},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &q.json}};
  store *from = NULL;
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  if (!file_is_database(a->words[0])) {
    status = report_outcomes_of_log(a->words[0], &q, err);
  } else {
    status = store_open(&from, a->words[0], STORE_READ, err);
    if (status == GL_OK) status = print_unfinished(from, a->words[0], err);
    if (status == GL_OK) status = report_outcomes(from, &q, err);
  }
  store_close(from);
  return status;
}

const command command_outcomes = {
    .name = "analyze --table outcomes",
    .arguments = "STUDY.db",
    .words = {.input = ARGS_RUNS, .min = 1, .max = 1},
    .summary = "which runs collapsed, when, and at which learning rate",
    .about =
        "Judges every run by one rule. The gain is the rise of the evaluation score above its\n"
        "first value; it must reach 0.1. A run collapses at the first of four evaluations in a\n"
        "row below half of the gain so far. The table calls this a late fall after at least 200\n"
        "updates within the last tenth of the gain, else an early fall, and a dip if the run\n"
        "recovers. Falling at the end: only the last two or three evaluations are that low.\n"
        "Lost start: the gain stays below 0.1 and the last four evaluations are below half of\n"
        "the first score. Other outcomes are: never learned (a gain below 0.1), not finite, and\n"
        "stable.\n"
        "--runs prints each run with the updates at which it collapsed and recovered.\n"
        "For every algorithm and setting: the number of runs with each outcome, the collapse\n"
        "rate (collapses, dips, lost starts and not finite; in JSON: fallen) with its exact 95\n"
        "% interval, and the median update of the collapse (Kaplan-Meier). If the study sweeps\n"
        "optimizer.lr: the learning rates at which 10 and 50 % of the runs collapse, by\n"
        "penalised logistic regression in their logarithm, with 95 % intervals over starts (a\n"
        "jackknife), which are open outside the rates run; and the highest last score over the\n"
        "rates (an interquartile mean with a bootstrap interval; chosen and reported on the\n"
        "same runs). A method that learns nothing does not collapse either.",
    .examples = "  gepolab analyze --table outcomes study.db\n  gepolab analyze --table outcomes "
                "study.db --format latex\n"
                "  gepolab analyze --table outcomes study.db --set hard\n"
                "  gepolab analyze --table outcomes study.db --runs\n"
                "  gepolab analyze --table outcomes study.db --json",
    .run = run_outcomes};

/* --- contrasts: comparisons that a recipe declared before its study was run --- */

static gl_status read_declared(declared_contrasts *out, cfg_doc **doc, const char *declared,
                               gl_error *err) {
  gl_status status = recipe_load(doc, declared, NULL, 0, err);
  if (status == GL_OK) status = declared_contrasts_read(out, *doc, err);
  if (status == GL_OK && out->n == 0)
    status = cfg_fail(cfg_root(*doc), err,
                      "the recipe declares no contrasts; add contrasts: [{name: NAME, of: "
                      "{algorithm: A}, against: {algorithm: B}}]");
  return status;
}

/* State of find_planned(): for each contrast and each field of its arms, whether the study has a
 * run with its value, or plans one. */
typedef struct plan_search {
  const declared_contrasts *of;
  unsigned char *found; /* [of->n][2][CONTRAST_FIELDS] */
  size_t missing;
} plan_search;

static const contrast_field *field_at(const plan_search *s, size_t i) {
  const contrast *c = &s->of->contrast[i / (2 * CONTRAST_FIELDS)];
  const contrast_arm *a = i / CONTRAST_FIELDS % 2 == 0 ? &c->of : &c->against;
  return i % CONTRAST_FIELDS < a->n ? &a->field[i % CONTRAST_FIELDS] : NULL;
}

/* Whether a planned cell has that value of the field, or sets its whole section. */
static bool cell_has(const planned_cell *cell, const cJSON *swept, const contrast_field *f) {
  if (strcmp(f->path, "algorithm") == 0) return strcmp(cell->algorithm, f->value) == 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, swept) {
    double value;
    if (strcmp(item->string, f->path) != 0) {
      if (cfg_path_is_inside(f->path, item->string)) return true;
    } else if (cJSON_IsNumber(item))
      return csv_number(f->value, &value) && value == item->valuedouble;
    else if (cJSON_IsString(item))
      return strcmp(item->valuestring, f->value) == 0;
    else
      return true;
  }
  return false;
}

static int find_in_cell(void *self, const planned_cell *cell) {
  plan_search *s = self;
  cJSON *swept = json_tree_of(cell->swept);
  ++s->missing;
  for (size_t i = 0; i < s->of->n * 2 * CONTRAST_FIELDS; i++) {
    const contrast_field *f = field_at(s, i);
    if (f != NULL && !s->found[i]) s->found[i] = cell_has(cell, swept, f);
  }
  cJSON_Delete(swept);
  return 1;
}

/* Lets the contrasts wait whose arms have runs or planned cells, if cells are missing. */
static gl_status let_planned_wait(declared_contrasts *d, const results *r, store *from,
                                  gl_error *err) {
  plan_search s = {.of = d};
  s.found = MUST_ARRAY(unsigned char, d->n * 2 * CONTRAST_FIELDS, "the contrasts");
  const gl_status status = store_missing(from, r->study, find_in_cell, &s, err);
  for (size_t i = 0; i < d->n; i++) d->contrast[i].may_wait = s.missing > 0;
  for (size_t i = 0; i < d->n * 2 * CONTRAST_FIELDS; i++) {
    const contrast_field *f = field_at(&s, i);
    if (f != NULL && !s.found[i] && !(contrast_knows(r, f->path) && contrast_has_run(r, f)))
      d->contrast[i / (2 * CONTRAST_FIELDS)].may_wait = false;
  }
  free(s.found);
  return status;
}

typedef struct contrasts_request {
  const char *study; /* NULL: the only study of the file */
  table_format format;
  int json, unfinished;
} contrasts_request;

/* Compares the arms. An error that --unfinished would avoid names it. */
static gl_status find_contrasts(contrast_result *found, declared_contrasts *d, const results *r,
                                store *from, const contrasts_request *q, gl_error *err) {
  gl_status status = q->unfinished ? let_planned_wait(d, r, from, err) : GL_OK;
  if (status == GL_OK) status = contrasts_find(r, d->contrast, d->n, found, err);
  if (status != GL_EINPUT || q->unfinished) return status;
  const gl_error why = *err;
  gl_error other = {0};
  if (let_planned_wait(d, r, from, &other) == GL_OK &&
      contrasts_find(r, d->contrast, d->n, found, &other) == GL_OK) {
    gl_error_clear(err);
    gl_fail(err, status,
            "%s; cells of the study are missing: with --unfinished, contrasts that need them wait",
            why.text);
  }
  return status;
}

static gl_status report_contrasts(const results *r, declared_contrasts *d, store *from,
                                  const contrasts_request *q, gl_error *err) {
  contrast_result *found = MUST_ARRAY(contrast_result, d->n, "the contrasts");
  gl_status status = find_contrasts(found, d, r, from, q, err);
  if (status == GL_OK) {
    table *t = table_document();
    contrasts_report(t, r, d->contrast, found, d->n);
    status = equal_arms_report(t, r, err);
    status = print_report(t, status, q->format, q->json, err);
  }
  free(found);
  return status;
}

static gl_status compare_declared(const char *file, const char *declared,
                                  const contrasts_request *q, gl_error *err) {
  declared_contrasts d = {0};
  cfg_doc *doc = NULL;
  store *from = NULL;
  results *r = NULL;
  gl_status status = read_declared(&d, &doc, declared, err);
  if (status == GL_OK) status = store_open(&from, file, STORE_READ, err);
  if (status == GL_OK) status = print_unfinished(from, file, err);
  if (status == GL_OK) status = results_load(&r, from, q->study, err);
  if (status == GL_OK) status = declared_contrasts_origins(&d, from, r->study, err);
  if (status == GL_OK) status = report_contrasts(r, &d, from, q, err);
  results_free(r);
  store_close(from);
  declared_contrasts_fini(&d);
  cfg_free(doc);
  return status;
}

static gl_status run_contrasts(args *a, gl_error *err) {
  contrasts_request q = {0};
  args_option options[] = {
      {"study", 's', ARGS_TEXT, "NAME", "the study, where the file has several", &q.study},
      {"unfinished", 0, ARGS_FLAG, NULL,
       "contrasts without a pair of runs yet have no numbers and count with p = 1", &q.unfinished},
      {"format", ARGS_OLD('f'), ARGS_FORMAT, "FORMAT", "text, markdown or latex", &q.format},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &q.json}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  return compare_declared(a->words[0], a->words[1], &q, err);
}

const command command_contrasts = {
    .name = "analyze --table contrasts",
    .arguments = "STUDY.db RECIPE",
    .words = {.input = ARGS_ANY, .min = 2, .max = 2, .algorithms = true},
    .summary = "tests the comparisons that a recipe declared before its study was run",
    .about =
        "Compares the two arms of each of the recipe's `contrasts` seed by seed: a pair is a\n"
        "run of each arm with the same seed. Collapses (as the table outcomes judges them) are\n"
        "compared by McNemar's exact test, last scores by Wilcoxon's exact signed-rank test;\n"
        "p-values are adjusted over all contrasts of the recipe (Holm). The last column is the\n"
        "power: the fraction of pairs that must differ, all in one direction, to be detected\n"
        "with probability 0.8.\n"
        "`written` says when the contrast was declared: before the runs, if the study's recipe\n"
        "had it before the first run ended, else after the runs, which makes it exploratory.",
    .examples = "  gepolab analyze --table contrasts confirmation.db confirmation\n"
                "  gepolab analyze --table contrasts study.db recipe.yaml --json",
    .run = run_contrasts};

/* --- effects of factors at two levels --- */

typedef struct effects_request {
  table_format format;
  size_t most; /* effects of a fit that are printed; 0: all */
  int json;
} effects_request;

/* Reports the only study of the file, or the study with that name. */
static gl_status report_effects(store *from, const char *study, const effects_request *q,
                                gl_error *err) {
  const outcome_rule rule = outcome_rule_default();
  results *r = NULL;
  effect_table t = {0};
  gl_status status = results_load(&r, from, study, err);
  if (status == GL_OK) status = effect_table_init(&t, r, &rule, err);
  if (status == GL_OK) {
    table *to = table_document();
    status = effect_table_report(to, &t, q->most, err);
    status = print_report(to, status, q->format, q->json, err);
  }
  effect_table_fini(&t);
  results_free(r);
  return status;
}

static gl_status run_effects(args *a, gl_error *err) {
  const char *study = NULL;
  size_t most = 10;
  int all = 0;
  effects_request q = {0};
  args_option options[] = {
      {"study", 's', ARGS_TEXT, "NAME", "the study, where the file has several", &study},
      {"most", 'n', ARGS_COUNT, "N", "effects of each response that are printed (10)", &most},
      {"all", 0, ARGS_FLAG, NULL, "print all effects", &all},
      {"format", ARGS_OLD('f'), ARGS_FORMAT, "FORMAT", "text, markdown or latex", &q.format},
      {"json", 0, ARGS_FLAG, NULL, "all effects as JSON", &q.json}};
  store *from = NULL;
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  q.most = all ? 0 : most;
  status = store_open(&from, a->words[0], STORE_READ, err);
  if (status == GL_OK) status = print_unfinished(from, a->words[0], err);
  if (status == GL_OK) status = report_effects(from, study, &q, err);
  store_close(from);
  return status;
}

const command command_effects = {
    .name = "analyze --table effects",
    .arguments = "STUDY.db",
    .words = {.input = ARGS_RUNS, .min = 1, .max = 1},
    .summary = "what factors at two levels do to gap, last score and lifetime",
    .about =
        "For a study whose fields have two values each (sweep.factorial): the change of the\n"
        "gap, the last score and the lifetime (updates until a collapse, or until the end) when\n"
        "a factor goes from its low to its high value, and interactions of two factors if there\n"
        "are enough runs. Least squares over the runs with seeds as blocks, 95 % intervals of\n"
        "Student's t, and the false discovery rate q over the effects on a response (Benjamini\n"
        "and Hochberg). For every algorithm, and for the difference of each from the first one,\n"
        "over pairs of runs that are otherwise equal. Fields that always change together are\n"
        "one factor.",
    .examples = "  gepolab analyze --table effects screen.db\n  gepolab analyze --table effects "
                "screen.db --all --format latex\n"
                "  gepolab analyze --table effects screen.db --json",
    .run = run_effects};

/* --- announcements: which metrics predict a collapse --- */

typedef struct announcements_request {
  contrast_arm of; /* selects the runs */
  announce_rule rule;
  table_format format;
  int json;
} announcements_request;

/* The studies that are reported together. */
typedef struct studies {
  results **list; /* [n], owned */
  size_t n;
  char *names; /* "a, b"; owned */
} studies;

static void studies_fini(studies *s) {
  for (size_t i = 0; i < s->n; ++i) results_free(s->list[i]);
  free(s->list);
  free(s->names);
}

static gl_status studies_add(studies *s, results *r, gl_error *err) {
  *MUST_ADD(s->list, s->n, "the studies") = r;
  if (r->lower_is_better)
    return gl_fail(err, GL_EINPUT, "%s: outcomes are those of scores that are better when higher",
                   r->study);
  char *names = s->names == NULL ? must_copy(r->study, "the studies' names")
                                 : must_textf("the studies' names", "%s, %s", s->names, r->study);
  free(s->names);
  s->names = names;
  return GL_OK;
}

static gl_status announcements_add_study(studies *s, store *from, const char *name, gl_error *err) {
  results *r = NULL;
  gl_status status = results_load(&r, from, name, err);
  return status == GL_OK ? studies_add(s, r, err) : status;
}

/* If the logs name no seeds (all runs have the same one), numbers the runs, so that each counts as
 * an independent seed. */
static void number_starts_of(results *r) {
  for (size_t i = 1; i < r->n_runs; ++i)
    if (r->runs[i].seed != r->runs[0].seed) return;
  for (size_t i = 0; i < r->n_runs; ++i) r->runs[i].seed = i + 1;
}

/* Adds all logs of the request as one study. */
static gl_status studies_add_logs(studies *s, const gather_request *q, gl_error *err) {
  gathered g;
  results *r = NULL;
  gl_status status = gather(&g, q, err);
  tell_gathered(&g);
  if (status == GL_OK) status = gathered_results(&r, NULL, &g, err);
  if (status == GL_OK) {
    number_starts_of(r);
    status = studies_add(s, r, err);
  }
  gathered_fini(&g);
  return status;
}

static gl_status announcements_add_file(studies *s, const char *path, gl_error *err) {
  store *from = NULL;
  char **names = NULL;
  size_t n = 0;
  gl_status status = store_open(&from, path, STORE_READ, err);
  if (status == GL_OK) status = print_unfinished(from, path, err);
  if (status == GL_OK) status = results_studies(&names, &n, from, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = announcements_add_study(s, from, names[i], err);
  free(names);
  store_close(from);
  return status;
}

/* Adds study files one by one, and all other files together as one study. */
static gl_status studies_add_files(studies *s, const char *const *files, size_t n,
                                   const import_options *import, gl_error *err) {
  const char *logs[ARGS_LIST_MOST];
  size_t n_logs = 0;
  gl_status status = GL_OK;
  gather_request q;
  if (import->set || import->each_set)
    return gl_fail(err, GL_EINPUT, "--set and --each-set are for the tables summary and outcomes");
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    if (file_is_database(files[i]))
      status = announcements_add_file(s, files[i], err);
    else
      logs[n_logs++] = files[i];
  }
  if (status == GL_OK && n_logs > 0) status = import_options_request(import, logs, n_logs, &q, err);
  return status == GL_OK && n_logs > 0 ? studies_add_logs(s, &q, err) : status;
}

static gl_status report_announcements(const studies *s, const announcements_request *q,
                                      gl_error *err) {
  announcements a = {0};
  gl_status status =
      announcements_init(&a, (const results *const *)s->list, s->n, &q->of, &q->rule, err);
  if (status == GL_OK) {
    table *t = table_document();
    announcements_report(t, &a, s->names);
    status = report_table(t, q->format, q->json, err);
  }
  announcements_fini(&a);
  return status;
}

static gl_status add_run_field(contrast_arm *to, const char *path, const char *value,
                               gl_error *err) {
  if (to->n == CONTRAST_FIELDS)
    return gl_fail(err, GL_EINPUT, "runs are chosen by at most %d fields", CONTRAST_FIELDS);
  to->field[to->n++] = (contrast_field){path, value};
  return GL_OK;
}

/* Adds a --of choice, FIELD=VALUE. Splits `choice`, a copy that the caller owns, in place. */
static gl_status add_run_choice(contrast_arm *to, char *choice, gl_error *err) {
  char *equals = strchr(choice, '=');
  if (equals == NULL || equals == choice)
    return gl_fail(err, GL_EINPUT, "--of %s: FIELD=VALUE is needed", choice);
  *equals = '\0';
  return add_run_field(to, choice, equals + 1, err);
}

static gl_status choose_runs(contrast_arm *to, const char *algorithm, const args_list *fields,
                             char **copy, gl_error *err) {
  gl_status status = algorithm != NULL ? add_run_field(to, "algorithm", algorithm, err) : GL_OK;
  for (size_t i = 0; i < fields->n && status == GL_OK; ++i) {
    copy[i] = must_copy(fields->item[i], "a field");
    status = add_run_choice(to, copy[i], err);
  }
  return status;
}

static gl_status run_announcements(args *a, gl_error *err) {
  enum { OWN = 6 };
  const char *algorithm = NULL;
  import_options import = {0};
  args_list fields = {0};
  char *copy[ARGS_LIST_MOST] = {0};
  size_t percent = 10;
  announcements_request q = {.rule = announce_rule_default()};
  size_t window = q.rule.window;
  args_option options[OWN + IMPORT_OPTION_COUNT] = {
      {"algorithm", 'a', ARGS_TEXT, "NAME", "runs of this algorithm alone", &algorithm},
      {"of", ARGS_OLD('o'), ARGS_EACH, "FIELD=VALUE",
       "runs with this value of a field in which they differ; several times: with all", &fields},
      {"window", 'w', ARGS_COUNT, "N", "updates whose mean is watched (8)", &window},
      {"false-alarms", 0, ARGS_COUNT, "PERCENT",
       "of surviving runs that may raise an alarm where thresholds are chosen (10)", &percent},
      {"format", ARGS_OLD('f'), ARGS_FORMAT, "FORMAT", "text, markdown or latex", &q.format},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON, with the ROC curves", &q.json}};
  import_options_list(&import, options + OWN);
  studies s = {0};
  gl_status status = args_parse(a, options, OWN + IMPORT_OPTION_COUNT, err);
  if (status != GL_OK || a->help) return status;
  if (percent >= 100)
    status =
        gl_fail(err, GL_EINPUT, "--false-alarms %zu: a percentage below 100 is needed", percent);
  q.rule.window = window;
  q.rule.false_alarms = (double)percent / 100;
  if (status == GL_OK) status = choose_runs(&q.of, algorithm, &fields, copy, err);
  if (status == GL_OK) status = studies_add_files(&s, a->words, a->n_words, &import, err);
  if (status == GL_OK) status = report_announcements(&s, &q, err);
  for (size_t i = 0; i < fields.n; ++i) free(copy[i]);
  studies_fini(&s);
  return status;
}

const command command_announcements = {
    .name = "analyze --table announcements",
    .arguments = "STUDY.db...",
    .words = {.input = ARGS_RUNS, .min = 1, .max = ARGS_LIST_MOST},
    .summary = "which metrics predict a collapse",
    .about =
        "For every metric that could predict a collapse (effective sample size, gradient norm,\n"
        "cosine of consecutive gradients, second moment of log-ratios, kept mass, spread within\n"
        "groups, clipped fractions, entropies; for comparison reward, response length and\n"
        "divergences): its mean over the last updates, until the collapse that the table\n"
        "outcomes finds, or until the run ends.\n"
        "AUC is the area under the ROC curve of runs: the probability that the metric of a\n"
        "collapsed run goes further than that of a stable run, on the side (rises or falls)\n"
        "where it is larger. Then every seed is judged by the others: side and threshold are\n"
        "chosen on them, the threshold so that at most 10 % of their stable runs raise an\n"
        "alarm. The table has the fraction of collapses that are predicted, the fraction of\n"
        "stable runs with a false alarm, and the median number of updates between alarm and\n"
        "collapse. 95 % intervals are a bootstrap over seeds.\n"
        "The second table needs no threshold. So many updates before the collapse, the run is\n"
        "compared with the stable runs of its own cell (algorithm and setting) at the same\n"
        "update, so that neither learning rate nor duration distinguishes them. 0.5 is chance.\n"
        "Runs that never learned, or failed, are excluded, and so are metrics that the study\n"
        "lacks.",
    .examples = "  gepolab analyze --table announcements study.db\n"
                "  gepolab analyze --table announcements study.db --algorithm gspo --window 16\n"
                "  gepolab analyze --table announcements confirmation.db -a 'gspo 0.2' --of "
                "cluster.preset=sync\n"
                "  gepolab analyze --table announcements edges.db frontier.db --json",
    .run = run_announcements};

/* --- declines: which metrics announce the next one --- */

static gl_status report_declines(const studies *s, const declines_rule *rule, table_format format,
                                 int json, gl_error *err) {
  declines d;
  gl_status status = declines_of(&d, (const results *const *)s->list, s->n, rule, err);
  table *t = table_document();
  if (status == GL_OK) declines_report(t, &d, s->names);
  return print_report(t, status, format, json, err);
}

static gl_status run_declines(args *a, gl_error *err) {
  enum { OWN = 3 };
  int json = 0;
  const char *least = "0";
  declines_rule rule = {0};
  import_options import = {0};
  table_format form = TABLE_AS_TEXT;
  args_option options[OWN + IMPORT_OPTION_COUNT] = {
      {"least", 0, ARGS_TEXT, "X", "a score that falls by no more than X does not decline (0)",
       &least},
      {"format", 0, ARGS_FORMAT, "FORMAT", "text, markdown or latex", &form},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json}};
  studies s = {0};
  import_options_list(&import, options + OWN);
  gl_status status = args_parse(a, options, OWN + IMPORT_OPTION_COUNT, err);
  if (status != GL_OK || a->help) return status;
  if (!(csv_number(least, &rule.least) && rule.least >= 0))
    status =
        gl_fail(err, GL_EINPUT, "--least %s: a number from 0 on, in units of the score", least);
  if (status == GL_OK) status = studies_add_files(&s, a->words, a->n_words, &import, err);
  if (status == GL_OK) status = report_declines(&s, &rule, form, json, err);
  studies_fini(&s);
  return status;
}

const command command_declines = {
    .name = "analyze --table declines",
    .arguments = "FILE …",
    .words = {.input = ARGS_RUNS, .min = 1, .max = ARGS_LIST_MOST},
    .summary = "which metrics announce the next decline of the score, within runs",
    .about =
        "Of studies and of other programs' logs. Between two evaluations lies a window of "
        "updates;\n"
        "if the score falls from the evaluation at its end to the next one, it precedes a "
        "decline.\n"
        "A run without three evaluations is judged by the mean reward of its updates. For every\n"
        "metric: the probability that its mean in a window before a decline is higher than in\n"
        "another window of the same run (AUC), the number of declines that it rests on, its\n"
        "interval and p, and the AUC if each run is judged on the side that the others choose.",
    .examples = "  gepolab analyze --table declines study.db\n"
                "  gepolab analyze --table declines runs/*/trainer_state.json --least 0.02\n"
                "  gepolab analyze --table declines verl.jsonl --json",
    .run = run_declines};

/* --- profiles: scores over settings and seeds, as in rliable --- */

static gl_status report_profiles_of(const studies *s, double best, table_format format, int json,
                                    gl_error *err) {
  profiles p = {.n = 0};
  table *t = table_document();
  gl_status status = GL_OK;
  if (s->n != 1)
    status = gl_fail(err, GL_EINPUT, "profiles are of one study, or of logs; these are %zu", s->n);
  if (status == GL_OK) status = profiles_of(&p, s->list[0], best, err);
  if (status == GL_OK) profiles_report(t, &p, s->names);
  profiles_fini(&p);
  return print_report(t, status, format, json, err);
}

static gl_status run_profiles(args *a, gl_error *err) {
  enum { OWN = 3 };
  int json = 0;
  double limit = 1;
  const char *best = "1";
  import_options import = {0};
  table_format form = TABLE_AS_TEXT;
  args_option options[OWN + IMPORT_OPTION_COUNT] = {
      {"best", 0, ARGS_TEXT, "X", "the score beyond which nothing is gained (1)", &best},
      {"format", 0, ARGS_FORMAT, "FORMAT", "text, markdown or latex", &form},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON, with the whole profiles", &json}};
  studies s = {0};
  import_options_list(&import, options + OWN);
  gl_status status = args_parse(a, options, OWN + IMPORT_OPTION_COUNT, err);
  if (status != GL_OK || a->help) return status;
  if (!(csv_number(best, &limit) && isfinite(limit)))
    status = gl_fail(err, GL_EINPUT, "--best %s: a number is needed", best);
  if (status == GL_OK) status = studies_add_files(&s, a->words, a->n_words, &import, err);
  if (status == GL_OK) status = report_profiles_of(&s, limit, form, json, err);
  studies_fini(&s);
  return status;
}

const command command_profiles = {
    .name = "analyze --table profiles",
    .arguments = "FILE …",
    .words = {.input = ARGS_RUNS, .min = 1, .max = ARGS_LIST_MOST},
    .summary = "performance profiles, optimality gaps, probabilities of improvement",
    .about =
        "Of the last scores of all runs, as in rliable (2108.13264), settings being its tasks:\n"
        "the fraction of runs above a score, how far the mean is below --best (scores above it\n"
        "count as it), and of every two algorithms the probability that a run of the first is\n"
        "better than one of the second in the same setting. Intervals of 95 % are a bootstrap\n"
        "within settings.",
    .examples = "  gepolab analyze --table profiles study.db\n"
                "  gepolab analyze --table profiles eval.csv --group-by '(.*)_seed[0-9]+' --json",
    .run = run_profiles};

/* --- power: how many events an AUC needs --- */

static gl_status read_auc(double *to, const char *option, const char *text, gl_error *err) {
  if (csv_number(text, to) && *to >= 0 && *to <= 1) return GL_OK;
  return gl_fail(err, GL_EINPUT, "%s %s: an AUC is a number from 0 to 1", option, text);
}

static gl_status run_power(args *a, gl_error *err) {
  int json = 0;
  size_t events = 0, others = 0, level = 5, power = 80;
  const char *against = "0.7";
  double observed[ARGS_LIST_MOST];
  args_list aucs = {.n = 0};
  table_format form = TABLE_AS_TEXT;
  args_option options[] = {
      {"events", 0, ARGS_COUNT, "N", "declines, or runs that collapsed", &events},
      {"others", 0, ARGS_COUNT, "N", "windows without a decline, or runs that survived", &others},
      {"auc", 0, ARGS_EACH, "X", "an AUC that was observed on them; several times: each", &aucs},
      {"against", 0, ARGS_TEXT, "X", "the AUC that is to be distinguished from 0.5 (0.7)",
       &against},
      {"level", 0, ARGS_COUNT, "PERCENT", "of the two-sided test (5)", &level},
      {"power", 0, ARGS_COUNT, "PERCENT", "wanted (80)", &power},
      {"format", 0, ARGS_FORMAT, "FORMAT", "text, markdown or latex", &form},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json}};
  power_request q = {.observed = observed};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  status = read_auc(&q.against, "--against", against, err);
  for (size_t i = 0; i < aucs.n && status == GL_OK; ++i)
    status = read_auc(&observed[q.n_observed++], "--auc", aucs.item[i], err);
  if (status == GL_OK && (level < 1 || level > 50 || power < 1 || power > 99))
    status = gl_fail(err, GL_EINPUT, "--level is from 1 to 50 %% and --power from 1 to 99 %%");
  if (status == GL_OK && (events == 0) != (others == 0))
    status = gl_fail(err, GL_EINPUT, "--events and --others belong together; give both");
  if (status == GL_OK && aucs.n > 0 && events == 0)
    status = gl_fail(err, GL_EINPUT, "--auc needs --events and --others: how many it is of");
  q.events = events, q.others = others;
  q.level = (double)level / 100, q.power = (double)power / 100;
  table *t = table_document();
  if (status == GL_OK) power_report(t, &q);
  return print_report(t, status, form, json, err);
}

const command command_power = {
    .name = "analyze --table power",
    .arguments = "",
    .summary = "how many declines distinguish the AUC of a warning from chance",
    .about =
        "A metric's AUC for the next decline is known no better than its declines are many. Given\n"
        "their number, the probability that the exact test of Mann and Whitney distinguishes an\n"
        "AUC from 0.5; the number that is needed; and of AUCs that were observed the 95 % "
        "interval\n"
        "(standard error of Hanley and McNeil) and the exact p.",
    .examples = "  gepolab analyze --table power\n"
                "  gepolab analyze --table power --events 5 --others 19 --auc 0.22 --auc 0.62",
    .run = run_power};

/* --- features of published curves --- */

static gl_status report_features(const gather_request *q, const features_rule *rule,
                                 table_format format, int as_json, gl_error *err) {
  gathered g = {0};
  table *t = table_document();
  gl_status status = gather(&g, q, err);
  if (status == GL_OK) status = features_report(t, &g, rule, err);
  gathered_fini(&g);
  return print_report(t, status, format, as_json, err);
}

static gl_status run_features(args *a, gl_error *err) {
  enum { OWN = 4 };
  int json = 0;
  size_t ends = 100, until = 0;
  features_rule rule = features_rule_default();
  import_options import = {0};
  gather_request q;
  table_format form = TABLE_AS_TEXT;
  args_option options[OWN + IMPORT_OPTION_COUNT] = {
      {"format", ARGS_OLD('f'), ARGS_FORMAT, "text|markdown|latex", "how tables are written",
       &form},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json},
      {"ends", 0, ARGS_COUNT, "N", "updates at either end that are compared (100)", &ends},
      {"until", 0, ARGS_COUNT, "N", "the last update of metrics that is looked at", &until}};
  import_options_list(&import, options + OWN);
  gl_status status = args_parse(a, options, OWN + IMPORT_OPTION_COUNT, err);
  if (status != GL_OK || a->help) return status;
  rule.ends = (double)ends;
  if (until > 0) rule.until = (double)until;
  status = import_options_request(&import, a->words, a->n_words, &q, err);
  for (size_t i = 0; i < a->n_words && status == GL_OK; ++i) print_unfinished_file(a->words[i]);
  if (status == GL_OK) status = report_features(&q, &rule, form, json, err);
  return status;
}

const command command_features = {
    .name = "analyze --table features",
    .arguments = "FILE …",
    .words = {.input = ARGS_RUNS, .min = 1, .max = ARGS_LIST_MOST},
    .summary = "which features of published curves runs have: plateau, slow spread, jump",
    .about =
        "Finds features of training curves, in studies and in other programs' exports, by fixed\n"
        "rules: a plateau of the score (200 updates or more within the last 10 % of a gain of\n"
        "0.1 or more); its early or late collapse, as in the table outcomes; a slow spread of\n"
        "importance weights, divergence or gradient norm (the median of the last 100 updates is\n"
        "at least three times that of the first 100, and the rank correlation with the update\n"
        "is at least 0.5); their peak, and their jump at the collapse relative to the median.\n"
        "If the score is known, metrics count until the collapse begins; they never count\n"
        "beyond --until. Runs that differ only in their seed are reported together.",
    .examples = "  gepolab analyze --table features study.db\n"
                "  gepolab analyze --table features study.db iw_variance.csv --until 850\n"
                "  gepolab analyze --table features eval.csv --json",
    .run = run_features};
