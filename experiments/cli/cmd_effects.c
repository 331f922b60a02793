/* gepolab analyze --table effects: what factors at two levels do to the runs of a study. */
#include "analysis/effects.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct effects_request {
  table_form format;
  size_t most; /* effects of a fit that are printed; 0: all */
  int json;
} effects_request;

/* The only study of the file, or the one of that name. */
static gl_status tell_file(store *from, const char *study, const effects_request *q,
                           gl_error *err) {
  const outcome_rule rule = outcome_rule_default();
  results *r = NULL;
  effect_table t = {0};
  gl_status status = results_load(&r, from, study, err);
  if (status == GL_OK) status = effect_table_init(&t, r, &rule, err);
  if (status == GL_OK) {
    table *to = table_document();
    status = effect_table_report(to, &t, q->most, err);
    if (status == GL_OK)
      status = report_table(to, q->format, q->json, err);
    else
      table_free(to);
  }
  effect_table_fini(&t);
  results_free(r);
  return status;
}

static gl_status run_effects(const command *self, int argc, char **argv, gl_error *err) {
  const char *name = "text", *study = NULL;
  size_t format = 0, most = 10;
  int all = 0;
  effects_request q = {0};
  args_option options[] = {
      {"study", 's', ARGS_TEXT, "NAME", "the study, where the file has several", &study},
      {"most", 'n', ARGS_COUNT, "N", "effects of each response that are printed (10)", &most},
      {"all", 0, ARGS_FLAG, NULL, "print all effects", &all},
      {"format", 'f', ARGS_TEXT, "FORMAT", "text, markdown or latex", &name},
      {"json", 0, ARGS_FLAG, NULL, "all effects as JSON", &q.json}};
  args a;
  store *from = NULL;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof options[0],
                                (args_shape){1, 1, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = args_choose(&format, "--format", name, table_form_names, TABLE_FOR_PEOPLE, err);
    q.format = (table_form)format;
    q.most = all ? 0 : most;
    if (status == GL_OK) status = store_open(&from, a.words[0], STORE_READ, err);
    if (status == GL_OK) status = tell_unfinished(from, a.words[0], err);
    if (status == GL_OK) status = tell_file(from, study, &q, err);
    store_close(from);
  }
  args_fini(&a);
  return status;
}

const command command_effects = {
    .name = "analyze --table effects",
    .arguments = "STUDY.db",
    .summary = "what factors at two levels do to gap, last score and lifetime",
    .about =
        "For a study whose fields have two values each (sweep.factorial): the change of the gap,\n"
        "of the last score and of the lifetime (updates until a fall, or until the end) when a\n"
        "factor goes from its low to its high value, and the interactions of two factors where\n"
        "there are runs enough for them. Least squares over the runs, seeds (starts) being "
        "blocks,\n"
        "with 95 % intervals of Student's t and the false discovery rate q over the effects of a\n"
        "response (Benjamini and Hochberg). For every algorithm, and for the difference of each "
        "to\n"
        "the first one over pairs of runs that are alike otherwise. Fields that always change\n"
        "together are one factor.",
    .examples = "  gepolab analyze --table effects screen.db\n  gepolab analyze --table effects "
                "screen.db --all --format latex\n"
                "  gepolab analyze --table effects screen.db --json",
    .run = run_effects};
