/* gepolab llm profile: how long this machine takes, as delay distributions for a recipe's cluster.
 */
#include "core/base/display_text.h"
#include "core/base/file.h"
#include "core/base/progress.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/llm/profile.h"
#include "experiments/llm/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum dist_form { FORM_LOGNORMAL, FORM_EMPIRICAL, FORM_LENGTHS } dist_form;
static const char *const form_names[] = {
    [FORM_LOGNORMAL] = "lognormal", [FORM_EMPIRICAL] = "empirical", [FORM_LENGTHS] = "lengths"};
enum { DEFAULT_REPETITIONS = 10 };

/* The printed profile. */
typedef struct page {
  const llm_session *session;
  const llm_profile *profile;
  dist_form form;
  const char *csv; /* name of the CSV file, as written in empirical distributions; NULL: none */
} page;

/* --- distributions --- */

/* A distribution as YAML flow text without blanks, which is one word for a shell. */
static const char *profile_dist_text(const page *p, const llm_timing *t, const char *column,
                                     char text[512]) {
  char a[NUMBER_TEXT_SIZE], b[NUMBER_TEXT_SIZE];
  if (p->form == FORM_EMPIRICAL)
    snprintf(text, 512, "{\"distribution\":\"empirical\",\"file\":\"%.300s\",\"column\":\"%s\"}",
             p->csv, column);
  else if (t->sigma > 0)
    snprintf(text, 512, "{\"distribution\":\"lognormal\",\"mu\":%s,\"sigma\":%s}",
             number_text(t->mu, a), number_text(t->sigma, b));
  else
    snprintf(text, 512, "%s", number_text(t->mean, a));
  return text;
}

/* A field of `cluster` and its value. */
typedef struct cluster_field {
  const char *key;
  char value[512];
} cluster_field;

enum { MOST_FIELDS = 8 };

static void profile_add_number(cluster_field *f, const char *key, double value) {
  char text[NUMBER_TEXT_SIZE];
  f->key = key;
  snprintf(f->value, sizeof f->value, "%s", number_text(value, text));
}

static size_t list_fields(const page *p, cluster_field f[MOST_FIELDS]) {
  const llm_profile *m = p->profile;
  const llm_session *s = p->session;
  char text[512];
  size_t n = 0;
  profile_add_number(&f[n++], "weights_bytes",
                     (double)model_config_parameters(&s->spec.model) * (double)s->backend->element);
  if (p->form == FORM_LENGTHS) {
    profile_add_number(&f[n++], "generation", m->prompt.mean);
    f[n].key = "lengths";
    snprintf(f[n++].value, sizeof f->value,
             "{\"distribution\":\"empirical\",\"file\":\"%.300s\",\"column\":\"tokens\"}", p->csv);
    profile_add_number(&f[n++], "max_tokens", (double)s->spec.max_tokens);
    profile_add_number(&f[n++], "tokens_per_s", m->decode_per_s);
    profile_add_number(&f[n++], "concurrency", (double)m->concurrency);
  } else {
    f[n].key = "generation";
    snprintf(f[n++].value, sizeof f->value, "%s",
             profile_dist_text(p, &m->generation, "generation_s", text));
  }
  f[n].key = "learner.step";
  snprintf(f[n++].value, sizeof f->value, "%s", profile_dist_text(p, &m->step, "step_s", text));
  return n;
}

/* --- printing --- */

static void print_timing(FILE *to, const char *what, const llm_timing *t) {
  fprintf(to, "# %-10s mean %.4g s, sd %.3g, from %.4g to %.4g\n", what, t->mean, t->sd,
          t->smallest, t->largest);
}

static void print_yaml(FILE *to, const page *p) {
  const llm_profile *m = p->profile;
  char about[LLM_ABOUT_SIZE];
  cluster_field f[MOST_FIELDS];
  size_t n = list_fields(p, f);
  fprintf(to, "# %s: %s\n", shown(p->session->source).text,
          shown(llm_session_about(p->session, about)).text);
  fprintf(to, "# batches of %zu x %zu responses of %.1f tokens, measured %zu times\n",
          p->session->recipe.groups, p->session->recipe.group_size, m->tokens, m->repetitions);
  print_timing(to, "prompts", &m->prompt);
  print_timing(to, "generation", &m->generation);
  print_timing(to, "step", &m->step);
  fprintf(to, "# %.4g tokens/s generated, %.4g tokens/s trained\ncluster:\n", m->tokens_per_s,
          m->trained_per_s);
  for (size_t i = 0; i + 1 < n; ++i) fprintf(to, "  %s: %s\n", f[i].key, f[i].value);
  fprintf(to, "  learner: {step: %s}\n", f[n - 1].value);
}

static void print_overrides(const page *p) {
  cluster_field f[MOST_FIELDS];
  size_t n = list_fields(p, f);
  for (size_t i = 0; i < n; ++i) printf("cluster.%s=%s\n", f[i].key, f[i].value);
}

static void timing_json(cJSON *d, const char *key, const llm_timing *t, size_t n) {
  cJSON *o = json_object(d, key);
  json_put(o, "mean %g, sd %g, min %g, max %g, mu %g, sigma %g", t->mean, t->sd, t->smallest,
           t->largest, t->mu, t->sigma);
  json_numbers(o, "seconds", t->seconds, n);
}

static gl_status profile_print_json(const page *p, gl_error *err) {
  const llm_profile *m = p->profile;
  cluster_field f[MOST_FIELDS];
  const size_t n = list_fields(p, f);
  cJSON *d = json_new();
  json_put(d, "source %s, device %s, repetitions %zu, responses %zu, concurrency %zu",
           p->session->source, p->session->backend->device, m->repetitions, m->responses,
           m->concurrency);
  json_put(d, "tokens_mean %g, tokens_per_s %g, trained_tokens_per_s %g, decode_tokens_per_s %g",
           m->tokens, m->tokens_per_s, m->trained_per_s, m->decode_per_s);
  timing_json(d, "prompts_s", &m->prompt, m->repetitions);
  timing_json(d, "generation_s", &m->generation, m->repetitions);
  timing_json(d, "step_s", &m->step, m->repetitions);
  cJSON *fields = json_object(d, "cluster");
  for (size_t i = 0; i < n; ++i) json_raw(fields, f[i].key, f[i].value);
  return report_json(d, err);
}

/* --- files --- */

/* Writes times and lengths as columns; the shorter columns end early. */
static void print_csv(FILE *to, const llm_profile *m) {
  char a[NUMBER_TEXT_SIZE], b[NUMBER_TEXT_SIZE];
  fputs("generation_s,step_s,tokens\n", to);
  for (size_t i = 0; i < m->repetitions * m->responses; ++i) {
    int timed = i < m->repetitions;
    fprintf(to, "%s,%s,%.0f\n", timed ? number_text(m->generation.seconds[i], a) : "",
            timed ? number_text(m->step.seconds[i], b) : "", m->lengths[i]);
  }
}

/* Returns FILE.csv for FILE.yaml; the caller frees it. */
static char *csv_beside(const char *yaml) {
  size_t length = strlen(yaml);
  if (length > 5 && strcmp(yaml + length - 5, ".yaml") == 0) length -= 5;
  char *path = must_alloc(length + 5, 1, "a file name");
  snprintf(path, length + 5, "%.*s.csv", (int)length, yaml);
  return path;
}

static gl_status write_files(const page *p, const char *yaml, const char *csv, gl_error *err) {
  file_writer w;
  gl_status status = file_begin(&w, csv, err);
  if (status != GL_OK) return status;
  print_csv(w.stream, p->profile);
  status = file_commit(&w, err);
  if (status == GL_OK) status = file_begin(&w, yaml, err);
  if (status != GL_OK) return status;
  const char *slash = strrchr(csv, '/');
  page beside = *p;
  beside.csv = slash != NULL ? slash + 1 : csv;
  print_yaml(w.stream, &beside);
  return file_commit(&w, err);
}

/* --- the command --- */

typedef struct profile_options {
  size_t repetitions, threads;
  const char *output;
  dist_form form;
  int overrides, json, quiet;
} profile_options;

static int after_repetition(void *self, size_t done) {
  progress_at(self, done, NULL);
  return signals_caught();
}

static gl_status profile_report(const page *p, const profile_options *o, gl_error *err) {
  if (o->output != NULL) {
    gl_status status = write_files(p, o->output, p->csv, err);
    if (status != GL_OK) return status;
  }
  if (o->json) return profile_print_json(p, err);
  if (o->overrides)
    print_overrides(p);
  else if (o->output == NULL)
    print_yaml(stdout, p);
  return GL_OK;
}

static gl_status profile_session(llm_session *s, const profile_options *o, gl_error *err) {
  llm_profile m = {0};
  char *csv = o->output != NULL ? csv_beside(o->output) : NULL;
  gl_status status = GL_OK;
  if (o->output != NULL && csv == NULL) status = gl_fail_memory(err, "a file name");
  if (status == GL_OK) status = file_check(o->output, err);
  signals_catch();
  if (status == GL_OK) status = llm_session_learner(s, NULL, err);
  progress *bar = progress_new(s->source, "repetitions", o->repetitions,
                               o->quiet ? PROGRESS_SILENT : PROGRESS_AUTO);
  if (status == GL_OK)
    status = llm_profile_init(&m,
                              &(llm_profile_request){.learner = &s->learner,
                                                     .recipe = &s->recipe,
                                                     .slots = s->spec.slots,
                                                     .repetitions = o->repetitions,
                                                     .after = after_repetition,
                                                     .self = bar},
                              err);
  progress_free(bar);
  const page p = {s, &m, o->form, csv};
  if (status == GL_OK) status = profile_report(&p, o, err);
  llm_profile_fini(&m);
  free(csv);
  return status;
}

static gl_status choose_form(profile_options *o, const char *name, gl_error *err) {
  size_t which = FORM_LOGNORMAL;
  gl_status status =
      name != NULL ? args_choose(&which, "--distribution", name, form_names, 3, err) : GL_OK;
  o->form = (dist_form)which;
  if (status == GL_OK && o->form != FORM_LOGNORMAL && o->output == NULL)
    return gl_fail(
        err, GL_EINPUT,
        "--distribution %s keeps its measurements in a file: add -o FILE.yaml, and FILE.csv "
        "is written beside it",
        name);
  return status;
}

static gl_status run_profile(args *a, gl_error *err) {
  profile_options o = {.repetitions = DEFAULT_REPETITIONS};
  const char *dist = NULL;
  const args_option options[] = {
      {"repetitions", 'n', ARGS_COUNT, "N", "batches and updates measured (10)", &o.repetitions},
      {"distribution", 0, ARGS_TEXT, "lognormal|empirical|lengths", "lognormal is the default",
       &dist},
      {"law", 0, ARGS_TEXT, "", NULL, &dist},
      {"output", 'o', ARGS_WRITE, "FILE.yaml", "the section in a file, FILE.csv beside it",
       &o.output},
      {"overrides", 0, ARGS_FLAG, NULL, "as key=value words for a command line", &o.overrides},
      {"threads", 0, ARGS_COUNT, "N", "threads to compute with (default: all cores)", &o.threads},
      {"quiet", 'q', ARGS_FLAG, NULL, "no progress", &o.quiet},
      {"json", 0, ARGS_FLAG, NULL, "as JSON, with every measurement", &o.json}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  llm_session s = {0};
  status = choose_form(&o, dist, err);
  if (status == GL_OK) status = llm_session_init(&s, a, o.threads, 0, err);
  if (status == GL_OK) llm_session_print(&s);
  if (status == GL_OK) status = llm_session_override(&s, "optimizer.lr=0", err);
  if (status == GL_OK) status = profile_session(&s, &o, err);
  llm_session_fini(&s);
  return status;
}

const command command_llm_profile = {
    .name = "llm profile",
    .arguments = "RECIPE [key=value …]",
    .words = {.input = ARGS_RECIPE, .min = 1, .max = 1, .overrides = true},
    .summary = "this machine's generation and step times as delay distributions",
    .about =
        "Samples batches as the recipe says (its `train` section, after its warm-up), updates\n"
        "on each at learning rate 0, and prints a `cluster` section of the measured times, to\n"
        "paste into a recipe: simulated samplers and learner then run at this machine's speed.\n"
        "  lognormal  distributions fitted to times of generation and of learner steps\n"
        "  empirical  the measured times themselves, from FILE.csv\n"
        "  lengths    generation follows measured lengths: prompts, then tokens_per_s\n"
        "`weights_bytes` is the model's size; it costs time where links have a bandwidth.",
    .examples = "  gepolab llm profile llm_quick\n"
                "  gepolab llm profile llm_quick --distribution lengths -o machine.yaml -n 30\n"
                "  gepolab run llm_quick $(gepolab llm profile llm_quick --overrides)",
    .run = run_profile};
