/* gepolab whatif: what every algorithm would have done with the batches of a recorded run. */
#include "core/base/shown.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"
#include "experiments/policy/whatif.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- text --- */

static void print_head(const whatif *w) {
  printf("%zu updates, %zu groups, %zu responses, %zu tokens", w->n_batches, w->n_groups,
         w->n_responses, w->n_tokens);
  if (!isnan(w->first_step)) printf("; steps %g to %g", w->first_step, w->last_step);
  if (!isnan(w->first_time)) printf("; %g s", w->last_time - w->first_time);
  puts("\nMeans over updates; where some were infinite, their number is in [].\n");
}

static void print_cell(const whatif_moments *m) {
  char text[32];
  if (m->n_infinite > 0)
    snprintf(text, sizeof text, "[%zu inf]", m->n_infinite);
  else if (m->n == 0)
    snprintf(text, sizeof text, "-");
  else
    snprintf(text, sizeof text, "%.4g", m->mean);
  printf(" %10s", text);
}

static void print_rows(const whatif *w) {
  printf("%-28s", "algorithm");
  for (int q = 0; q < WHATIF_QUANTITIES; ++q) printf(" %10s", whatif_heading((whatif_quantity)q));
  putchar('\n');
  for (size_t i = 0; i < w->n_rows; ++i) {
    const whatif_row *r = &w->row[i];
    if (r->n == 0) continue;
    printf("%-28s", shown(r->algorithm.name).text);
    for (int q = 0; q < WHATIF_QUANTITIES; ++q) print_cell(&r->of[q]);
    putchar('\n');
  }
  for (size_t i = 0; i < w->n_rows; ++i)
    if (w->row[i].n_refused > 0)
      printf("%s: not of %zu updates: %s\n", shown(w->row[i].algorithm.name).text,
             w->row[i].n_refused, w->row[i].why);
}

static void print_ages(const whatif *w) {
  puts("\nstaleness    updates  KL a token  KL a response  ln var P/Q");
  for (size_t a = 0; a <= WHATIF_MOST_STALENESS; ++a) {
    const whatif_age *age = &w->age[a];
    if (age->n == 0) continue;
    printf("%8zu%s %10zu", a, a == WHATIF_MOST_STALENESS ? "+" : " ", age->n);
    print_cell(&age->kl_token);
    fputs("    ", stdout);
    print_cell(&age->kl_response);
    print_cell(&age->log_variance);
    putchar('\n');
  }
  if (w->n_unknown_age > 0)
    printf(" unknown  %10zu  (no version_gap in these records)\n", w->n_unknown_age);
}

/* JSON --- */

static int add_moments(cJSON *to, const char *name, const whatif_moments *m) {
  cJSON *o = cJSON_AddObjectToObject(to, name);
  return o != NULL && json_add_number(o, "mean", m->mean) != NULL &&
         json_add_number(o, "least", m->least) != NULL &&
         json_add_number(o, "most", m->most) != NULL &&
         json_add_number(o, "n", (double)m->n) != NULL &&
         json_add_number(o, "n_infinite", (double)m->n_infinite) != NULL;
}

static cJSON *add_item(cJSON *to) {
  cJSON *o = cJSON_CreateObject();
  if (o != NULL && cJSON_AddItemToArray(to, o)) return o;
  cJSON_Delete(o);
  return NULL;
}

static int add_row(cJSON *to, const whatif_row *r) {
  cJSON *o = add_item(to);
  int ok = o != NULL && json_add_string(o, "algorithm", r->algorithm.name) != NULL &&
           json_add_number(o, "updates", (double)r->n) != NULL &&
           json_add_number(o, "refused", (double)r->n_refused) != NULL;
  if (ok && r->n_refused > 0) ok = json_add_string(o, "why", r->why) != NULL;
  for (int q = 0; q < WHATIF_QUANTITIES && ok; ++q)
    ok = add_moments(o, whatif_name((whatif_quantity)q), &r->of[q]);
  return ok;
}

static int add_age(cJSON *to, size_t staleness, const whatif_age *age) {
  cJSON *o = add_item(to);
  return o != NULL && json_add_number(o, "staleness", (double)staleness) != NULL &&
         json_add_number(o, "updates", (double)age->n) != NULL &&
         add_moments(o, "kl_k3", &age->kl_token) &&
         add_moments(o, "kl_k3_seq", &age->kl_response) &&
         add_moments(o, "log_iw_variance_pq", &age->log_variance);
}

static gl_status print_json(const whatif *w, gl_error *err) {
  cJSON *d = cJSON_CreateObject();
  int ok = d != NULL && json_add_number(d, "updates", (double)w->n_batches) != NULL &&
           json_add_number(d, "groups", (double)w->n_groups) != NULL &&
           json_add_number(d, "responses", (double)w->n_responses) != NULL &&
           json_add_number(d, "tokens", (double)w->n_tokens) != NULL &&
           json_add_number(d, "first_step", w->first_step) != NULL &&
           json_add_number(d, "last_step", w->last_step) != NULL &&
           json_add_number(d, "seconds", w->last_time - w->first_time) != NULL &&
           json_add_number(d, "unknown_staleness", (double)w->n_unknown_age) != NULL;
  cJSON *rows = ok ? cJSON_AddArrayToObject(d, "algorithms") : NULL;
  cJSON *ages = ok ? cJSON_AddArrayToObject(d, "by_staleness") : NULL;
  ok = rows != NULL && ages != NULL;
  for (size_t i = 0; i < w->n_rows && ok; ++i) ok = add_row(rows, &w->row[i]);
  for (size_t a = 0; a <= WHATIF_MOST_STALENESS && ok; ++a)
    if (w->age[a].n > 0) ok = add_age(ages, a, &w->age[a]);
  return report_json_if(ok, d, err);
}

/* --- the command --- */

/* What the command line asks for. */
typedef struct request {
  args_list names;
  int json;
  const char *folder, *figure;
  figure_form form;
} request;

static gl_status check_request(const request *q, gl_error *err) {
  if (q->figure != NULL && q->folder == NULL)
    return gl_fail(err, GL_EINPUT, "--figure needs --figures FOLDER");
  if (q->json && q->folder != NULL)
    return gl_fail(err, GL_EINPUT, "--json prints and --figures draws: give one of them");
  return GL_OK;
}

static gl_status draw(const whatif *w, const request *q, gl_error *err) {
  figure_request figures = tell_figures(q->folder);
  figures.only = q->figure;
  gl_status status = tell_figures_form(&figures, &q->form, err);
  return status == GL_OK ? whatif_draw(w, &figures, err) : status;
}

static gl_status tell(const whatif *w, const request *q, gl_error *err) {
  if (q->folder != NULL) return draw(w, q, err);
  if (q->json) return print_json(w, err);
  print_head(w);
  print_rows(w);
  print_ages(w);
  return GL_OK;
}

static gl_status replay(const args *a, const request *q, gl_error *err) {
  whatif *w = calloc(1, sizeof *w);
  gl_status status =
      w != NULL ? whatif_init(w, q->names.item, q->names.n, err) : gl_fail_memory(err, "whatif");
  if (w != NULL) w->keeps = q->folder != NULL;
  for (size_t i = 0; i < a->n_words && status == GL_OK; ++i)
    status = whatif_read(w, a->words[i], err);
  if (status == GL_OK) status = tell(w, q, err);
  if (w != NULL) whatif_fini(w);
  free(w);
  return status;
}

static gl_status run_whatif(const command *self, int argc, char **argv, gl_error *err) {
  request q = {.json = 0};
  const args_option options[] = {
      {"algorithm", 'a', ARGS_EACH, "NAME", "only this algorithm; several times for several",
       &q.names},
      {"json", 0, ARGS_FLAG, NULL, "means, least and largest values as JSON", &q.json},
      {"figures", 'f', ARGS_TEXT, "FOLDER",
       "draw instead of printing: data, script, PDF, PNG and SVG", &q.folder},
      {"figure", 0, ARGS_TEXT, "NAME",
       "with --figures: only whatif_staleness, whatif_variance or whatif_algorithms", &q.figure},
      FIGURE_FORM_OPTIONS(q.form)};
  args a;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof options[0],
                                (args_shape){1, 256, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = check_request(&q, err);
    if (status == GL_OK) status = replay(&a, &q, err);
  }
  args_fini(&a);
  return status;
}

const command command_whatif = {
    .name = "whatif",
    .arguments = "LOG…",
    .summary = "what each algorithm would do with a recorded run's batches",
    .about =
        "LOG (or - for standard input) has a line of JSON for each update: the input of `gepolab\n"
        "policy`, with \"step\" and \"time_s\" where they are known (experiments/DATA.md). For "
        "every\n"
        "algorithm: mean, largest value and variance of its own weights, their effective sample\n"
        "size, the share that its clip acts on, the variance of advantage times weight, the norm\n"
        "of the coefficients d(-loss)/d log p (the gradient's, if the scores of tokens were\n"
        "orthonormal), the share of tokens without any, and the loss. Then the distance of "
        "sampler\n"
        "and learner by staleness. One line is in memory at a time. TRL writes such a log with\n"
        "log_groups=\"run.jsonl\" (python/README.md).",
    .examples = "  gepolab whatif run.jsonl\n  gepolab whatif run.jsonl -a gepo -a gspo --json\n"
                "  gepolab whatif run.jsonl -f figures/     # KL by staleness, variance by KL, ESS "
                "and clips by algorithm",
    .run = run_whatif};
