/* gepolab analyze --table announcements: which metrics say beforehand that a run will fall. */
#include "analysis/announce.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct announcements_request {
  contrast_arm of; /* which runs */
  announce_rule rule;
  table_form format;
  int json;
} announcements_request;

/* The studies that are told of together. */
typedef struct studies {
  results **list; /* [n], owned */
  size_t n;
  char *names; /* "a, b"; owned */
} studies;

static void studies_fini(studies *s) {
  for (size_t i = 0; i < s->n; i++) results_free(s->list[i]);
  free(s->list);
  free(s->names);
}

static gl_status add_name(studies *s, const char *name, gl_error *err) {
  const size_t old = s->names != NULL ? strlen(s->names) : 0, size = old + strlen(name) + 3;
  char *longer = realloc(s->names, size);
  if (longer == NULL) return gl_fail_memory(err, "the studies' names");
  s->names = longer;
  snprintf(longer + old, size - old, "%s%s", old > 0 ? ", " : "", name);
  return GL_OK;
}

static gl_status add_study(studies *s, store *from, const char *name, gl_error *err) {
  results **longer = realloc(s->list, (s->n + 1) * sizeof *longer);
  if (longer == NULL) return gl_fail_memory(err, "the studies");
  s->list = longer;
  gl_status status = results_load(&s->list[s->n], from, name, err);
  if (status != GL_OK) return status;
  const results *r = s->list[s->n++];
  if (r->lower_is_better)
    return gl_fail(err, GL_EINPUT, "%s: outcomes are those of scores that are better when higher",
                   r->study);
  return add_name(s, r->study, err);
}

static gl_status add_file(studies *s, const char *path, gl_error *err) {
  store *from = NULL;
  char **names = NULL;
  size_t n = 0;
  gl_status status = store_open(&from, path, STORE_READ, err);
  if (status == GL_OK) status = tell_unfinished(from, path, err);
  if (status == GL_OK) status = results_studies(&names, &n, from, err);
  for (size_t i = 0; i < n && status == GL_OK; i++) status = add_study(s, from, names[i], err);
  free(names);
  store_close(from);
  return status;
}

static gl_status tell(const studies *s, const announcements_request *q, gl_error *err) {
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

static gl_status add_field(contrast_arm *to, const char *path, const char *value, gl_error *err) {
  if (to->n == CONTRAST_FIELDS)
    return gl_fail(err, GL_EINPUT, "runs are chosen by at most %d fields", CONTRAST_FIELDS);
  to->field[to->n++] = (contrast_field){path, value};
  return GL_OK;
}

/* FIELD=VALUE, split in place of a copy that is the caller's. */
static gl_status add_choice(contrast_arm *to, char *choice, gl_error *err) {
  char *equals = strchr(choice, '=');
  if (equals == NULL || equals == choice)
    return gl_fail(err, GL_EINPUT, "--of %s: FIELD=VALUE is needed", choice);
  *equals = '\0';
  return add_field(to, choice, equals + 1, err);
}

static gl_status choose_runs(contrast_arm *to, const char *algorithm, const args_list *fields,
                             char **copy, gl_error *err) {
  gl_status status = algorithm != NULL ? add_field(to, "algorithm", algorithm, err) : GL_OK;
  for (size_t i = 0; i < fields->n && status == GL_OK; i++) {
    copy[i] = strdup(fields->item[i]);
    status = copy[i] != NULL ? add_choice(to, copy[i], err) : gl_fail_memory(err, "a field");
  }
  return status;
}

static gl_status run_announcements(const command *self, int argc, char **argv, gl_error *err) {
  const char *name = "text", *algorithm = NULL;
  args_list fields = {0};
  char *copy[ARGS_LIST_MOST] = {0};
  size_t format = 0, percent = 10;
  announcements_request q = {.rule = announce_rule_default()};
  size_t window = q.rule.window;
  args_option options[] = {
      {"algorithm", 'a', ARGS_TEXT, "NAME", "runs of this algorithm alone", &algorithm},
      {"of", 'o', ARGS_EACH, "FIELD=VALUE",
       "runs with this value of a field in which they differ; several times: with all", &fields},
      {"window", 'w', ARGS_COUNT, "N", "updates whose mean is watched (8)", &window},
      {"false-alarms", 0, ARGS_COUNT, "PERCENT",
       "of surviving runs that may raise an alarm where thresholds are chosen (10)", &percent},
      {"format", 'f', ARGS_TEXT, "FORMAT", "text, markdown or latex", &name},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON, with the ROC curves", &q.json}};
  args a;
  studies s = {0};
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof options[0],
                                (args_shape){1, ARGS_LIST_MOST, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = args_choose(&format, "--format", name, table_form_names, TABLE_FOR_PEOPLE, err);
    if (status == GL_OK && percent >= 100)
      status =
          gl_fail(err, GL_EINPUT, "--false-alarms %zu: a percentage below 100 is needed", percent);
    q.format = (table_form)format;
    q.rule.window = window;
    q.rule.false_alarms = (double)percent / 100;
    if (status == GL_OK) status = choose_runs(&q.of, algorithm, &fields, copy, err);
    for (size_t i = 0; i < a.n_words && status == GL_OK; i++)
      status = add_file(&s, a.words[i], err);
    if (status == GL_OK) status = tell(&s, &q, err);
  }
  for (size_t i = 0; i < fields.n; i++) free(copy[i]);
  studies_fini(&s);
  args_fini(&a);
  return status;
}

const command command_announcements = {
    .name = "analyze --table announcements",
    .arguments = "STUDY.db...",
    .summary = "which metrics say beforehand that a run will fall",
    .about =
        "For every metric that could announce a fall (effective sample size, gradient norm, "
        "cosine\n"
        "of consecutive gradients, second moment of log-ratios, kept mass, spread within groups,\n"
        "shares clipped and gated, entropies, and for comparison reward, response length and\n"
        "divergences): its mean over the last updates is watched until the fall begins, as\n"
        "the table outcomes defines it, or until the run ends.\n\n"
        "AUC is the area under the ROC curve of runs: the probability that a run that fell went\n"
        "further than one that survived, on the side (rises or falls) where it is larger. Then\n"
        "every start (seed) is judged by the others: side and threshold are chosen on them, the\n"
        "threshold so that at most 10 % of their surviving runs raise an alarm. Told are the "
        "share\n"
        "of falls that are announced, the share of surviving runs with a false alarm, and the\n"
        "median of updates between alarm and fall. Intervals of 95 % are a bootstrap over starts.\n"
        "The second table needs no threshold: so many updates before the fall, the run that "
        "falls is\n"
        "compared with the survivors of its own cell (algorithm and setting) at the same update, "
        "so\n"
        "that neither a rate nor a longer watch tells them apart. 0.5 is chance.\n"
        "Runs that never learned, or failed, are left out. Metrics that a study does not have are\n"
        "not told of: studies of older versions lack some.",
    .examples = "  gepolab analyze --table announcements study.db\n"
                "  gepolab analyze --table announcements study.db --algorithm gspo --window 16\n"
                "  gepolab analyze --table announcements confirmation.db -a 'gspo 0.2' --of "
                "cluster.preset=sync\n"
                "  gepolab analyze --table announcements edges.db frontier.db --json",
    .run = run_announcements};
