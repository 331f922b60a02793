/* gepolab diagnose: how stale a run's data are, what that costs, and what to change. */
#include "analysis/diagnose/diagnose.h"
#include "analysis/import/gather.h"
#include "analysis/import/read.h"
#include "core/base/display_text.h"
#include "core/base/file.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/policy/whatif.h"
#include "experiments/report/html.h"
#include "experiments/tokens/token_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct diagnose_options {
  const char *algorithm, *trainer, *page, *recipe;
  const char *step, *log_format; /* of logs by step */
  size_t change;
  int json;
  token_request log;
} diagnose_options;

/* The files of the command line: token-level logs and logs of series. */
typedef struct diagnose_files {
  char **tokens, **series; /* owned */
  size_t n_tokens, n_series;
} diagnose_files;

static void files_fini(diagnose_files *f) {
  for (size_t i = 0; i < f->n_tokens; ++i) free(f->tokens[i]);
  for (size_t i = 0; i < f->n_series; ++i) free(f->series[i]);
  free(f->tokens), free(f->series);
}

/* --- reading --- */

/* Sorts the files. Standard input, and every file if --format is given, is a token-level log. */
static gl_status sort_files(diagnose_files *f, const args *a, const char *format, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < a->n_words && status == GL_OK; ++i) {
    const char *path = a->words[i];
    bool is = format != NULL || strcmp(path, "-") == 0;
    if (!is) status = token_log_recognises(&is, path, err);
    if (is)
      *MUST_ADD(f->tokens, f->n_tokens, "the logs") = must_copy(path, "a log's name");
    else
      *MUST_ADD(f->series, f->n_series, "the logs") = must_copy(path, "a log's name");
  }
  return status;
}

static diagnose_batch batch_of(const token_batch *from, bool drops) {
  return (diagnose_batch){.in = &from->input,
                          .place = {from->first_file, from->last_file, from->first_line,
                                    from->last_line, from->n_lines},
                          .step = from->step,
                          .n_dropped = drops ? (double)from->n_untrained : NAN,
                          .dropped_tokens = from->untrained_tokens,
                          .dropped_tokens_squared = NAN};
}

static gl_status read_batches(diagnosis *d, token_log *log, gl_error *err) {
  const token_batch *update = NULL;
  gl_status status = GL_OK;
  while (status == GL_OK && (status = token_log_next(log, &update, err)) == GL_OK &&
         update != NULL) {
    const diagnose_batch b = batch_of(update, token_log_about(log)->drops);
    status = diagnosis_add_batch(d, &b, err);
  }
  return status;
}

/* --- writing --- */

static table *section_document(const diagnosis *d, diagnose_section s, gl_status *status,
                               gl_error *err) {
  table *t = table_document();
  if (*status == GL_OK) *status = diagnosis_section(t, d, s, err);
  return t;
}

static gl_status print_json_page(const diagnosis *d, gl_error *err) {
  table *all = table_document();
  gl_status status = GL_OK;
  for (int s = 0; s < DIAGNOSE_SECTIONS && status == GL_OK; ++s) {
    table *to = table_object(table_field(all, diagnose_section_id((diagnose_section)s)));
    status = diagnosis_section(to, d, (diagnose_section)s, err);
  }
  if (status == GL_OK) return report_table(all, TABLE_AS_TEXT, true, err);
  table_free(all);
  return status;
}

static gl_status print_text_page(const diagnosis *d, gl_error *err) {
  char lead[1024];
  gl_status status = GL_OK;
  diagnosis_lead(d, lead, sizeof lead);
  shown_wrap(lead, 0, 0, stdout);
  fputs("\n\n", stdout);
  for (int s = 0; s < DIAGNOSE_SECTIONS && status == GL_OK; ++s) {
    table *t = section_document(d, (diagnose_section)s, &status, err);
    if (status == GL_OK) {
      printf("%s%s\n\n", s > 0 ? "\n" : "", diagnose_section_heading((diagnose_section)s));
      status = report_table(t, TABLE_AS_TEXT, false, err);
    } else
      table_free(t);
  }
  return status;
}

static gl_status diagnose_write_sections(html *h, const diagnosis *d, gl_error *err) {
  char lead[1024];
  gl_status status = GL_OK;
  diagnosis_lead(d, lead, sizeof lead);
  html_markup(h, "<p class=\"lead\">"), html_text(h, lead), html_markup(h, "</p>\n");
  h->level = 2;
  for (int s = 0; s < DIAGNOSE_SECTIONS && status == GL_OK; ++s) {
    const char *id = diagnose_section_id((diagnose_section)s);
    table *t = section_document(d, (diagnose_section)s, &status, err);
    html_markup(h, "<section aria-labelledby=\""), html_markup(h, id), html_markup(h, "\">\n");
    html_heading(h, id, "%s", diagnose_section_heading((diagnose_section)s));
    html_table(h, t);
    html_markup(h, "</section>\n");
  }
  return status;
}

static gl_status write_html_page(const diagnosis *d, const char *path, gl_error *err) {
  file_writer w;
  gl_status status = file_begin(&w, path, err);
  if (status != GL_OK) return status;
  html h = {.to = w.stream, .level = 1};
  status = html_page_begin(&h, resources_text("experiments/report/report.css"), "gepolab diagnose",
                           "Diagnosis of a run", err);
  if (status == GL_OK) status = diagnose_write_sections(&h, d, err);
  html_script(&h, resources_text("experiments/report/report.js"));
  html_page_end(&h, "from the log alone: the same log gives the same page.");
  return file_end(&w, status, err);
}

static gl_status write_recipe_file(const diagnosis *d, const char *path, size_t change,
                                   gl_error *err) {
  char text[4096];
  const gl_status status = diagnosis_recipe(d, change > 0 ? change - 1 : 0, text, sizeof text, err);
  return status == GL_OK ? file_write_text(path, text, err) : status;
}

static gl_status write_results(const diagnosis *d, const diagnose_options *q, gl_error *err) {
  gl_status status = GL_OK;
  if (q->recipe != NULL) status = write_recipe_file(d, q->recipe, q->change, err);
  if (status == GL_OK && q->page != NULL) status = write_html_page(d, q->page, err);
  if (status == GL_OK && q->json) return print_json_page(d, err);
  if (status == GL_OK && q->page == NULL) return print_text_page(d, err);
  if (status == GL_OK) puts(q->page);
  return status;
}

/* --- the command --- */

static gl_status diagnose_check(const diagnose_options *q, gl_error *err) {
  const char *names[64];
  size_t n = 0, at;
  while (n < 64 && diagnose_trainer_at(n) != NULL) names[n] = diagnose_trainer_at(n), ++n;
  if (q->change > 0 && q->recipe == NULL)
    return gl_fail(err, GL_EINPUT, "--change needs --recipe FILE");
  return q->trainer == NULL ? GL_OK : args_choose(&at, "--trainer", q->trainer, names, n, err);
}

/* Returns the trainer with the same name as this format of token-level logs; NULL if there is none.
 */
static const char *known_trainer(const char *name) {
  for (size_t i = 0; name != NULL && diagnose_trainer_at(i) != NULL; ++i)
    if (strcmp(name, diagnose_trainer_at(i)) == 0) return diagnose_trainer_at(i);
  return NULL;
}

/* Adds the logs of series that the trainer wrote into the same folders as the token-level logs. */
static gl_status add_series_beside(diagnose_files *f, const token_log *log, gl_error *err) {
  gl_status status = GL_OK;
  const char *path;
  for (size_t i = 0; status == GL_OK && (path = token_log_skipped(log, i)) != NULL; ++i) {
    read_kind kind = READ_IS_OTHER;
    status = read_which(&kind, path, err);
    if (status == GL_OK && kind == READ_IS_SERIES)
      *MUST_ADD(f->series, f->n_series, "the logs") = must_copy(path, "a log's name");
  }
  return status;
}

static gl_status read_token_logs(diagnosis *d, diagnose_files *f, const diagnose_options *q,
                                 gl_error *err) {
  token_log *log = NULL;
  gl_status status =
      token_log_open(&log, (const char *const *)f->tokens, f->n_tokens, &q->log, err);
  if (status == GL_OK) status = read_batches(d, log, err);
  if (status == GL_OK) tell_incomplete(token_log_about(log)->n_incomplete);
  if (status == GL_OK && q->trainer == NULL)
    diagnosis_set_trainer(d, known_trainer(token_log_about(log)->format));
  if (status == GL_OK) status = add_series_beside(f, log, err);
  token_log_close(log);
  return status;
}

/* Adds the token-level logs, which identify the trainer, then the series. */
static gl_status read_logs(diagnosis *d, diagnose_files *f, const diagnose_options *q,
                           gathered *from_series, gl_error *err) {
  gl_status status = f->n_tokens > 0 ? read_token_logs(d, f, q, err) : GL_OK;
  if (status != GL_OK || f->n_series == 0) return status;
  const gather_request request = {
      .files = (const char *const *)f->series,
      .n_files = f->n_series,
      .shape = {.step = q->step, .columns = COLUMNS_ARE_METRICS, .format = q->log_format}};
  status = gather(from_series, &request, err);
  tell_gathered(from_series);
  return status == GL_OK ? diagnosis_add_series(d, from_series, err) : status;
}

static gl_status diagnose_logs(const args *a, const diagnose_options *q, gl_error *err) {
  policy_algorithm algorithm;
  diagnose_files f = {0};
  diagnosis *d = NULL;
  gathered from_series = {0};
  gl_status status = diagnose_check(q, err);
  if (status == GL_OK && q->algorithm != NULL)
    status = whatif_algorithm(&algorithm, q->algorithm, NULL, 0, err);
  if (status == GL_OK) status = sort_files(&f, a, q->log.format, err);
  const diagnose_request request = {.trainer = q->trainer,
                                    .rates =
                                        resources_text("paper/results/announcements_edges.tsv"),
                                    .algorithm = q->algorithm != NULL ? &algorithm : NULL};
  if (status == GL_OK)
    status = token_group_size_check(q->log.group_size, f.n_tokens > 0, a->words[0], err);
  if (status == GL_OK) status = diagnosis_new(&d, &request, err);
  if (status == GL_OK) status = read_logs(d, &f, q, &from_series, err);
  if (status == GL_OK) status = diagnosis_finish(d, err);
  if (status == GL_OK) status = write_results(d, q, err);
  diagnosis_free(d);
  gathered_fini(&from_series);
  files_fini(&f);
  return status;
}

static gl_status run_diagnose(args *a, gl_error *err) {
  diagnose_options q = {.json = 0};
  const args_option options[] = {
      {"output", 'o', ARGS_WRITE, "FILE.html", "write the page to this file instead of printing it",
       &q.page},
      {"json", 0, ARGS_FLAG, NULL, "the page as JSON", &q.json},
      {"recipe", 'r', ARGS_WRITE, "FILE.yaml",
       "write a recipe that shows the effect of the first change", &q.recipe},
      {"change", 0, ARGS_COUNT, "N", "with --recipe: of the N-th change", &q.change},
      {"algorithm", 'a', ARGS_TEXT, "ALGORITHM",
       "the method that ran, a name or {base: NAME, field: value, …}", &q.algorithm},
      {"trainer", 0, ARGS_TEXT, "NAME",
       "whose settings are named, where the log does not say (gepolab, nemo_rl, prime_rl, verl, "
       "trl, areal, skyrl, miles)",
       &q.trainer},
      {"format", 0, ARGS_TEXT, "NAME", "read the logs as this format of token-level logs",
       &q.log.format},
      {"group-size", 0, ARGS_COUNT, "N", "groups are N consecutive responses", &q.log.group_size},
      {"x", 'x', ARGS_TEXT, "COLUMN", "the column that holds the step of a log by step", &q.step},
      {"log-format", 0, ARGS_TEXT, "NAME", "of logs by step (`gepolab list formats`)",
       &q.log_format}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  return diagnose_logs(a, &q, err);
}

const command command_diagnose = {
    .name = "diagnose",
    .arguments = "LOG…",
    .words = {.input = ARGS_LOGS, .min = 1, .max = 256, .algorithms = true},
    .summary = "a run's staleness, what it costs, and what to change",
    .about =
        "LOG is a token-level log of a trainer (a file, or a folder; see `gepolab whatif --help`) "
        "or\n"
        "a log with a number for each step: CSV, TSV, W&B exports, JSON Lines. Several logs of "
        "one\n"
        "run are read together. Seven sections: what was read; staleness by every counter that "
        "the\n"
        "log allows; which part of the divergence between sampler and learner is mismatch of the\n"
        "engines and which is age; weights and clips of every algorithm; what limits the speed, "
        "and\n"
        "the most that asynchrony can bring; warnings, with their rates of false alarms; what to\n"
        "change, at most three settings, with the evidence. A number has a 95 % interval "
        "(bootstrap\n"
        "over blocks of updates), the field and the lines of the log it comes from: [1] is a "
        "number "
        "of\n"
        "the list of sources in the first section. What the log cannot say is named, with\n"
        "the setting of the trainer that makes it log more. A cause is named only if its whole\n"
        "interval is beyond a limit that is printed with its source.",
    .examples = "  gepolab diagnose run.jsonl\n"
                "  gepolab diagnose logs/exp_001/ metrics.jsonl -o page.html -r effect.yaml",
    .run = run_diagnose};
