/* gepolab analyze: what studies and other programs' exports say. */
#include "analysis/import/report.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"

#include <stdio.h>

static gl_status analyze(const gather_request *q, const char *printed_in, table_form format,
                         int json, gl_error *err) {
  table *t = table_document();
  published printed = {0};
  gl_status status = printed_in ? published_read(&printed, printed_in, err) : GL_OK;
  if (status == GL_OK) status = report_analysis(t, q, printed_in ? &printed : NULL, err);
  published_fini(&printed);
  if (status == GL_OK) return report_table(t, format, json, err);
  table_free(t);
  return status;
}

static gl_status run_analyze(const command *self, int argc, char **argv, gl_error *err) {
  enum { OWN = 4 };
  static const char *const tables[] = {"summary", "outcomes",      "contrasts",
                                       "effects", "announcements", "features"};
  int json = 0;
  const char *name = "text", *printed = NULL, *asked = tables[0];
  size_t format = 0, summary = 0;
  import_options import = {0};
  gather_request q;
  args_option options[OWN + IMPORT_OPTION_COUNT] = {
      {"table", 0, ARGS_TEXT, "summary|outcomes|contrasts|effects|announcements|features",
       "which one (default: summary); --table NAME --help has its options", &asked},
      {"format", 'f', ARGS_TEXT, "text|markdown|latex", "how tables are written", &name},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json},
      {"published", 0, ARGS_TEXT, "PRINTED.csv",
       "printed numbers (run, benchmark, best, last) to compare", &printed}};
  args a;
  import_options_list(&import, options + OWN);
  gl_status status = args_parse(&a, self, options, OWN + IMPORT_OPTION_COUNT,
                                (args_shape){1, ARGS_LIST_MOST, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = args_choose(&summary, "--table", asked, tables, sizeof tables / sizeof *tables, err);
    if (status == GL_OK)
      status = args_choose(&format, "--format", name, table_form_names, TABLE_FOR_PEOPLE, err);
    if (status == GL_OK) status = import_options_request(&import, a.words, a.n_words, &q, err);
    for (size_t i = 0; i < a.n_words && status == GL_OK; i++) tell_unfinished_file(a.words[i]);
    if (status == GL_OK) status = analyze(&q, printed, (table_form)format, json, err);
  }
  args_fini(&a);
  return status;
}

const command command_analyze = {
    .name = "analyze",
    .arguments = "FILE …",
    .summary = "tables of a study or of other programs' logs",
    .about =
        "--table summary, which is printed without --table; the others: outcomes (which runs "
        "fell,\n"
        "and when), contrasts (comparisons that a recipe declared), effects (of factors at two\n"
        "levels), announcements (which metrics say beforehand that a run will fall), features (of\n"
        "published curves).\n\n"
        "A study: for every algorithm and setting the interquartile means over seeds of best, "
        "last\n"
        "and their gap with 95 % bootstrap intervals, the learning rate, and rank correlations "
        "over\n"
        "the cells. Settings are the fields in which the stored recipes differ; only seeds are\n"
        "averaged over, and several studies of one file are shown apart. Of evaluation sets: "
        "best,\n"
        "last and gap of each, of their average, and side by side as tables of papers have "
        "them.\n\n"
        "Other programs' logs, several at once and together with studies: W&B panel exports, CSV\n"
        "and TSV (`step,gepo,grpo`, or long tables with a column for the run), JSON Lines. What a\n"
        "file is follows from its content. A line for each run and quantity; with several labels\n"
        "best and last side by side and their averages. Known metrics know their direction.",
    .examples =
        "  gepolab analyze study.db\n  gepolab analyze study.db --format latex > table.tex\n"
        "  gepolab analyze study.db --set hard\n"
        "  gepolab analyze --table outcomes study.db\n"
        "  gepolab analyze eval_math500.csv --json\n"
        "  gepolab analyze math.csv aime.csv -l math.csv=MATH500 -l aime.csv=AIME24 --at common\n"
        "  gepolab analyze runs.csv --group-by '(.*)_seed[0-9]+' --rename '^GEPO$=gepo'\n"
        "  gepolab analyze kl.csv --metric kl --lower-is-better",
    .run = run_analyze};
