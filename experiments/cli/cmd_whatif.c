/* gepolab whatif: what every algorithm would have done with the batches of a recorded run. */
#include "core/base/display_text.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"
#include "experiments/policy/whatif.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A cell for the moments of a quantity: an object in JSON, and the mean for people. */
static void put_moments(table *t, const whatif_moments *m) {
  table *o = table_object(t);
  if (m->n_infinite > 0)
    table_shown(t, "[%zu inf]", m->n_infinite);
  else if (m->n == 0)
    table_shown(t, "-");
  else
    table_shown(t, "%.4g", m->mean);
  table_put(o, "mean %g, least %g, most %g, n %zu, n_infinite %zu", m->mean, m->least, m->most,
            m->n, m->n_infinite);
}

/* Adds one note for all algorithms that had to do without logprox. */
static void put_proximal_note(table *document, const whatif *w) {
  char *names = must_copy("", "a note");
  for (size_t i = 0; i < w->n_rows; ++i) {
    if (w->row[i].n_no_prox == 0) continue;
    char *longer =
        must_textf("a note", "%s%s%s", names, *names != '\0' ? ", " : "", w->row[i].algorithm.name);
    free(names);
    names = longer;
  }
  if (*names != '\0') table_line(document, "note: %s: " WHATIF_LACKS_PROX, names);
  free(names);
}

static void put_algorithms(table *document, const whatif *w) {
  static const table_column columns[] = {{"algorithm", TABLE_TEXT, .head = "algorithm"},
                                         TABLE_KEY("updates", TABLE_INTEGER),
                                         TABLE_KEY("refused", TABLE_INTEGER),
                                         TABLE_KEY("why", TABLE_TEXT),
                                         TABLE_KEY("warning", TABLE_TEXT),
                                         TABLE_KEY("note", TABLE_TEXT)};
  table *t =
      table_rows(table_field(document, "algorithms"), columns, sizeof columns / sizeof *columns);
  char advice[POLICY_ADVICE_SIZE];
  for (int q = 0; q < WHATIF_QUANTITIES; ++q)
    table_add_column(t,
                     (table_column){.name = whatif_name((whatif_quantity)q), .type = TABLE_TABLE},
                     "%s", whatif_heading((whatif_quantity)q));
  for (size_t i = 0; i < w->n_rows; ++i) {
    const whatif_row *r = &w->row[i];
    table_row(t);
    if (r->n == 0) table_hide_row(t);
    table_text(t, r->algorithm.name), table_count(t, r->n), table_count(t, r->n_refused);
    table_text(t, r->n_refused > 0 ? r->why : NULL);
    policy_ess_advice(&r->algorithm, r->ess_on_policy.mean, advice);
    table_text(t, advice[0] != '\0' ? advice : NULL);
    table_text(t, r->n_no_prox > 0 ? WHATIF_LACKS_PROX : NULL);
    for (int q = 0; q < WHATIF_QUANTITIES; ++q) put_moments(t, &r->of[q]);
  }
  for (size_t i = 0; i < w->n_rows; ++i)
    if (w->row[i].n_refused > 0)
      table_line(document, "%s: not of %zu updates: %s", w->row[i].algorithm.name,
                 w->row[i].n_refused, w->row[i].why);
  for (size_t i = 0; i < w->n_rows; ++i) {
    policy_ess_advice(&w->row[i].algorithm, w->row[i].ess_on_policy.mean, advice);
    if (advice[0] != '\0')
      table_line(document, "warning: %s: %s", w->row[i].algorithm.name, advice);
  }
  put_proximal_note(document, w);
}

static void put_ages(table *document, const whatif *w) {
  static const table_column columns[] = {
      {"staleness", TABLE_INTEGER, .head = "staleness", .width = 9},
      {"updates", TABLE_INTEGER, .head = "updates", .width = 10},
      {"kl_k3", TABLE_TABLE, .head = "KL a token", .width = 10},
      {"kl_k3_seq", TABLE_TABLE, .head = "KL a response", .width = 14},
      {"log_iw_variance_pq", TABLE_TABLE, .head = "ln var P/Q", .width = 10}};
  table_line(document, "%s", "");
  table *t =
      table_rows(table_field(document, "by_staleness"), columns, sizeof columns / sizeof *columns);
  table_plain(t, 0);
  for (size_t a = 0; a <= WHATIF_MOST_STALENESS; ++a) {
    const whatif_age *age = &w->age[a];
    if (age->n == 0) continue;
    table_row(t);
    table_count(t, a);
    table_shown(t, "%zu%s", a, a == WHATIF_MOST_STALENESS ? "+" : " ");
    table_count(t, age->n);
    put_moments(t, &age->kl_token), put_moments(t, &age->kl_response);
    put_moments(t, &age->log_variance);
  }
  if (w->n_unknown_age > 0)
    table_line(document, " unknown  %10zu  (the log does not say which version sampled them)",
               w->n_unknown_age);
}

/* How groups were found, for logs of other trainers. */
static const char *grouping_text(token_grouping g) {
  switch (g) {
  case TOKEN_GROUPS_GIVEN:
    return "as the log has them";
  case TOKEN_GROUPS_PROMPT:
    return "responses of an update with the same prompt";
  case TOKEN_GROUPS_OF_SIZE:
    return "by --group-size";
  }
  return "";
}

static void put_warnings(table *d, const token_log_summary *log) {
  char incomplete[TOKEN_INCOMPLETE_SIZE];
  token_log_incomplete(incomplete, log->n_incomplete);
  if (incomplete[0] != '\0') table_line(d, "%s", incomplete);
  if (log->n_skipped > 0)
    table_line(d, "%zu file%s of the folder not read: of no format of token-level logs",
               log->n_skipped, plural_ending(log->n_skipped));
  if (log->n_untrained > 0)
    table_line(d,
               "%zu response%s left out, which the trainer masked: baselines of their groups "
               "are those of the others",
               log->n_untrained, plural_ending(log->n_untrained));
  if (!log->has_rewards)
    table_line(d, "warning: no rewards in this log: every algorithm uses the trainer's advantages");
  if (log->unread[0] != '\0') table_line(d, "fields not read: %s", shown(log->unread).text);
  if (log->n_restarts > 0)
    table_line(d,
               "warning: steps go back %zu time%s: several runs are pooled here; give whatif one "
               "log for each run",
               log->n_restarts, plural_ending(log->n_restarts));
}

/* Adds how much of the log was read and what was skipped. */
static void put_source(table *d, const token_log_summary *log) {
  table_text(table_field(d, "format"), log->format);
  table_count(table_field(d, "files"), log->n_files);
  table_count(table_field(d, "incomplete"), log->n_incomplete);
  table_count(table_field(d, "restarts"), log->n_restarts);
  table_count(table_field(d, "untrained_responses"), log->n_untrained);
  table_text(table_field(d, "grouping"), grouping_text(log->grouping));
  table_text(table_field(d, "advantages"), log->has_rewards ? "from rewards" : "of the trainer");
  table_text(table_field(d, "fields_not_read"), log->unread[0] != '\0' ? log->unread : NULL);
  if (strcmp(log->format, "gepolab") != 0)
    table_line(d, "%s, %zu file%s; groups of %zu to %zu responses: %s", log->title, log->n_files,
               plural_ending(log->n_files), log->group_least, log->group_most,
               grouping_text(log->grouping));
  put_warnings(d, log);
}

static gl_status print_whatif(const whatif *w, bool is_json, gl_error *err) {
  table *d = table_document();
  char steps[64] = "", seconds[32] = "";
  /* Steps or times that go back are of several runs, whose first and last ones say nothing. */
  const double took = w->log.last_time - w->log.first_time;
  const bool is_one_run = w->log.n_restarts == 0 && !(took < 0);
  table_put(d,
            "updates %zu, groups %zu, responses %zu, tokens %zu, first_step %g, last_step %g, "
            "seconds %g, unknown_staleness %zu",
            w->n_batches, w->n_groups, w->n_responses, w->n_tokens, w->log.first_step,
            w->log.last_step, is_one_run ? took : NAN, w->n_unknown_age);
  if (is_one_run && !isnan(w->log.first_step))
    snprintf(steps, sizeof steps, "; steps %g to %g", w->log.first_step, w->log.last_step);
  if (is_one_run && !isnan(took)) snprintf(seconds, sizeof seconds, "; %g s", took);
  table_line(d, "%zu update%s, %zu group%s, %zu response%s, %zu token%s%s%s", w->n_batches,
             plural_ending(w->n_batches), w->n_groups, plural_ending(w->n_groups), w->n_responses,
             plural_ending(w->n_responses), w->n_tokens, plural_ending(w->n_tokens), steps,
             seconds);
  put_source(d, &w->log);
  table_line(d, "Means over updates; where some were infinite, their number is in [].");
  table_line(d, "%s", "");
  put_algorithms(d, w);
  put_ages(d, w);
  return report_table(d, TABLE_AS_TEXT, is_json, err);
}

/* The options of the command line. */
typedef struct whatif_request {
  args_list names;
  int json;
  const char *folder, *figure;
  figure_form form;
  token_request log;
} whatif_request;

static gl_status check_whatif(const args *a, const whatif_request *q, gl_error *err) {
  for (size_t i = 0; i < a->n_words; ++i)
    if (policy_algorithms_find(a->words[i]) != NULL && access(a->words[i], F_OK) != 0)
      return gl_fail(err, GL_EINPUT, "'%s' is an algorithm and no file; write -a %s", a->words[i],
                     a->words[i]);
  if (q->figure != NULL && q->folder == NULL)
    return gl_fail(err, GL_EINPUT, "--figure needs --figures FOLDER");
  if (q->json && q->folder != NULL)
    return gl_fail(err, GL_EINPUT, "--json prints and --figures draws: give one of them");
  return figure_form_check(&q->form, q->folder, err);
}

static gl_status draw_whatif(const whatif *w, const whatif_request *q, gl_error *err) {
  figure_request figures = figures_request_to(q->folder);
  figures.only = q->figure;
  gl_status status = figures_request_form(&figures, &q->form, err);
  return status == GL_OK ? whatif_draw(w, &figures, err) : status;
}

static gl_status replay_logs(const args *a, const whatif_request *q, gl_error *err) {
  whatif *w = MUST_ARRAY(whatif, 1, "whatif");
  gl_status status = whatif_init(w, q->names.item, q->names.n, err);
  w->keeps = q->folder != NULL;
  if (status == GL_OK)
    status = whatif_read(w, (const char *const *)a->words, a->n_words, &q->log, err);
  if (status == GL_OK)
    status = q->folder != NULL ? draw_whatif(w, q, err) : print_whatif(w, q->json, err);
  whatif_fini(w);
  free(w);
  return status;
}

static gl_status run_whatif(args *a, gl_error *err) {
  whatif_request q = {.json = 0};
  const args_option options[] = {
      {"algorithm", 'a', ARGS_EACH, "ALGORITHM",
       "only this one, a name or {base: NAME, field: value, …}; several times for several",
       &q.names},
      {"json", 0, ARGS_FLAG, NULL, "means, least and largest values as JSON", &q.json},
      {"figures", 'f', ARGS_FIGURES, "FOLDER",
       "draw instead of printing: data, script, PDF, PNG and SVG", &q.folder},
      {"figure", 0, ARGS_TEXT, "NAME",
       "with --figures: only whatif_staleness, whatif_variance or whatif_algorithms", &q.figure},
      LOG_OPTIONS("LOG", q.log),
      FIGURE_FORM_OPTIONS(q.form)};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  q.form.given = a;
  status = check_whatif(a, &q, err);
  if (status == GL_OK) status = replay_logs(a, &q, err);
  return status;
}

const command command_whatif = {
    .name = "whatif",
    .arguments = "[--algorithm ALGORITHM] LOG…",
    .words = {.input = ARGS_LOGS, .min = 1, .max = 256, .algorithms = true},
    .summary = "what each algorithm would do with a recorded run's batches",
    .about =
        "LOG is a log of tokens: a file, a folder, compressed or not, or - for standard input. "
        "Its\n"
        "format is known by its content: gepolab's own (a line of JSON for each update, the input "
        "of\n"
        "`gepolab policy` with \"step\" and \"time_s\"), NeMo-RL's train_data_step*.jsonl, or "
        "prime-rl's\n"
        "token_exports/ (experiments/DATA.md, Logs of other trainers). For every algorithm: mean, "
        "largest value and variance of its own weights, their effective sample\n"
        "size, the fraction that its clip acts on, the variance of advantage times weight, the "
        "norm\n"
        "of the coefficients d(-loss)/d log p (the gradient's, if the scores of tokens were\n"
        "orthonormal), the fraction of tokens without any, and the loss. Then the distance of "
        "sampler\n"
        "and learner by staleness. One update is in memory at a time. TRL writes such a log with\n"
        "log_groups=\"run.jsonl\" (python/README.md).",
    .examples = "  gepolab whatif run.jsonl\n  gepolab whatif logs/exp_001 -a grpo     # NeMo-RL\n "
                " gepolab whatif run.jsonl -a gepo_released -a gspo --json\n"
                "  gepolab whatif run.jsonl -f figures/     # KL, variance, ESS and clips",
    .run = run_whatif};
