/* gepolab analyze: what a study, or a W&B export, says. */
#include "analysis/analyze.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/tell_unfinished.h"

#include <stdio.h>

static const char *const format_names[] = {"text", "markdown", "latex"};
static const table_format formats[] = {TABLE_TEXT, TABLE_MARKDOWN, TABLE_LATEX};

static gl_status analyze_one(const char *path, table_format format, int json, gl_error *err) {
  cJSON *document = NULL;
  gl_status status = analyze_file(path, format, json ? NULL : stdout, json ? &document : NULL, err);
  return status == GL_OK && json ? report_json(document, err) : status;
}

static gl_status run_analyze(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const char *name = "text";
  size_t format = 0;
  const args_option options[] = {
      {"format", 'f', ARGS_TEXT, "FORMAT", "text, markdown or latex", &name},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 2, (args_shape){1, 1, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = args_choose(&format, "--format", name, format_names, 3, err);
    if (status == GL_OK) tell_unfinished_file(a.words[0]);
    if (status == GL_OK) status = analyze_one(a.words[0], formats[format], json, err);
  }
  args_fini(&a);
  return status;
}

const command command_analyze = {
    .name = "analyze",
    .arguments = "STUDY.db | EXPORT.csv",
    .summary = "best, last and gap with intervals; correlations",
    .about =
        "A study: for every algorithm and setting the interquartile means over seeds of best, "
        "last\n"
        "and their gap with 95 % bootstrap intervals, the learning rate, and rank correlations "
        "over\n"
        "the cells. Settings are the fields in which the stored recipes differ; only seeds are\n"
        "averaged over, and several studies of one file are shown apart. A CSV export of W&B: "
        "best, last and gap of every run.",
    .examples =
        "  gepolab analyze study.db\n  gepolab analyze study.db --format latex > table.tex\n"
        "  gepolab analyze eval_math500.csv --json",
    .run = run_analyze};
