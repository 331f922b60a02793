/* gepolab analyze --table features: which features of published curves runs have. */
#include "analysis/import/report.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"

#include <stdio.h>

static gl_status tell(const gather_request *q, const features_rule *rule, table_form format,
                      int as_json, gl_error *err) {
  gathered g = {0};
  table *t = table_document();
  gl_status status = gather(&g, q, err);
  if (status == GL_OK) status = features_report(t, &g, rule, err);
  gathered_fini(&g);
  if (status == GL_OK) return report_table(t, format, as_json, err);
  table_free(t);
  return status;
}

static gl_status run_features(const command *self, int argc, char **argv, gl_error *err) {
  enum { OWN = 4 };
  int json = 0;
  const char *name = "text";
  size_t format = 0, ends = 100, until = 0;
  features_rule rule = features_rule_default();
  import_options import = {0};
  gather_request q;
  args_option options[OWN + IMPORT_OPTION_COUNT] = {
      {"format", 'f', ARGS_TEXT, "text|markdown|latex", "how tables are written", &name},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json},
      {"ends", 0, ARGS_COUNT, "N", "updates at either end that are compared (100)", &ends},
      {"until", 0, ARGS_COUNT, "N", "the last update of metrics that is looked at", &until}};
  args a;
  import_options_list(&import, options + OWN);
  gl_status status = args_parse(&a, self, options, OWN + IMPORT_OPTION_COUNT,
                                (args_shape){1, ARGS_LIST_MOST, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = args_choose(&format, "--format", name, table_form_names, TABLE_FOR_PEOPLE, err);
    rule.ends = (double)ends;
    if (until > 0) rule.until = (double)until;
    if (status == GL_OK) status = import_options_request(&import, a.words, a.n_words, &q, err);
    for (size_t i = 0; i < a.n_words && status == GL_OK; i++) tell_unfinished_file(a.words[i]);
    if (status == GL_OK) status = tell(&q, &rule, (table_form)format, json, err);
  }
  args_fini(&a);
  return status;
}

const command command_features = {
    .name = "analyze --table features",
    .arguments = "FILE …",
    .summary = "which features of published curves runs have: plateau, slow spread, jump",
    .about =
        "Studies and other programs' exports alike, by rules that are the same for all (and do "
        "not\n"
        "depend on what is found): a plateau of the score (200 updates or more within the last "
        "10 %\n"
        "of a gain of 0.1 or more), its early or late fall as the table outcomes has it; a slow\n"
        "spread of importance weights, divergence or gradient norm (the median of the last 100\n"
        "updates is three times that of the first or more, and it rises along the way: a rank\n"
        "correlation of 0.5 or more); their peak, and their jump at the fall, over the median.\n"
        "Metrics are looked at until a fall begins, where the run's score is there to say so, and\n"
        "no further than --until. Runs that differ only in their seed are told of together.",
    .examples = "  gepolab analyze --table features study.db\n"
                "  gepolab analyze --table features study.db iw_variance.csv --until 850\n"
                "  gepolab analyze --table features eval.csv --json",
    .run = run_features};
