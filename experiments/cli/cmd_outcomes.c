/* gepolab analyze --table outcomes: what became of a study's runs, by one rule for all. */
#include "analysis/outcome.h"
#include "analysis/sets.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"

#include <stdio.h>
#include <stdlib.h>

static gl_status tell_study(table *to, store *from, const char *name, const char *set,
                            gl_error *err) {
  const outcome_rule rule = outcome_rule_default();
  results *r = NULL;
  stability s = {0};
  gl_status status = results_load(&r, from, name, err);
  if (status == GL_OK && set != NULL) status = sets_choose(r, set, err);
  if (status == GL_OK) status = stability_init(&s, r, &rule, err);
  if (status == GL_OK) status = stability_fit(&s, err);
  if (status == GL_OK) stability_report(to, &s);
  stability_fini(&s);
  results_free(r);
  return status;
}

/* All studies of the file; of several the JSON is {"studies": [...]}. */
static gl_status tell_file(store *from, const char *set, table_form format, int as_json,
                           gl_error *err) {
  char **names = NULL;
  size_t n = 0;
  gl_status status = results_studies(&names, &n, from, err);
  if (status != GL_OK) return status;
  table *all = table_document();
  table *list = n > 1 ? table_list(table_field(all, "studies")) : NULL;
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    if (i > 0) table_line(list, "%s", "");
    status =
        tell_study(n > 1 ? table_object(table_field(list, "")) : all, from, names[i], set, err);
  }
  free(names);
  if (status == GL_OK) return report_table(all, format, as_json, err);
  table_free(all);
  return status;
}

static gl_status run_outcomes(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const char *name = "text", *set = NULL;
  size_t format = 0;
  args_option options[] = {{"set", 0, ARGS_TEXT, "SET",
                            "the evaluation set that is judged, or mean (default: the first)",
                            &set},
                           {"format", 'f', ARGS_TEXT, "FORMAT", "text, markdown or latex", &name},
                           {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json}};
  args a;
  store *from = NULL;
  gl_status status = args_parse(&a, self, options, 3, (args_shape){1, 1, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = args_choose(&format, "--format", name, table_form_names, TABLE_FOR_PEOPLE, err);
    if (status == GL_OK) status = store_open(&from, a.words[0], STORE_READ, err);
    if (status == GL_OK) status = tell_unfinished(from, a.words[0], err);
    if (status == GL_OK) status = tell_file(from, set, (table_form)format, json, err);
    store_close(from);
  }
  args_fini(&a);
  return status;
}

const command command_outcomes = {
    .name = "analyze --table outcomes",
    .arguments = "STUDY.db",
    .summary = "which runs fell, when, and at which learning rate a share falls",
    .about =
        "Judges every run by one rule. It has fallen at the first of four evaluations in a row\n"
        "below half of what it had gained until then, the gain being at least 0.1; the fall is\n"
        "late after at least 200 updates within the last tenth of its gain, else early. Other\n"
        "outcomes are: never learned (a gain below 0.1), not finite, and survived. A start that\n"
        "is lost before anything is learned is told beside `never learned`.\n\n"
        "For every algorithm and setting: how many runs have which outcome, the share that fell\n"
        "(not finite and lost starts among them) with its exact 95 % interval, and the median\n"
        "onset in updates (Kaplan-Meier). Where the study sweeps optimizer.lr, rates are doses:\n"
        "the rate at which 10 and 50 % fall, by penalised logistic regression in its logarithm,\n"
        "with 95 % profile intervals, which are open where the study does not bound them; and the\n"
        "highest last score over the rates (an interquartile mean with its bootstrap interval,\n"
        "chosen and told on the same runs): a method that learns nothing does not fall either.",
    .examples = "  gepolab analyze --table outcomes study.db\n  gepolab analyze --table outcomes "
                "study.db --format latex\n"
                "  gepolab analyze --table outcomes study.db --set hard\n"
                "  gepolab analyze --table outcomes study.db --json",
    .run = run_outcomes};
