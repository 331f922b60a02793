/* gepolab export: a table of a study as text. */
#include "core/base/file.h"
#include "core/store/store.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/cli/tell_unfinished.h"

#include <stdio.h>

static gl_status export_to(store *s, const char *table, const char *format, const char *path,
                           gl_error *err) {
  if (path == NULL) return store_export(s, table, format, stdout, err);
  file_writer w;
  gl_status status = file_begin(&w, path, err);
  if (status != GL_OK) return status;
  gl_error why = {.status = GL_OK};
  status = store_export(s, table, format, w.stream, &why);
  if (status != GL_OK && !ferror(w.stream)) {
    file_abandon(&w);
    if (err != NULL) *err = why;
    return status;
  }
  return file_commit(&w, err); /* trouble with the stream is told with the file's name */
}

static gl_status run_export(const command *self, int argc, char **argv, gl_error *err) {
  static const char *const tables[] = {"runs",  "steps", "evals", "staleness",
                                       "clock", "tuned", "bias"};
  static const char *const formats[] = {"csv", "tsv", "jsonl"};
  const char *table = "runs", *format = "csv", *path = NULL;
  const args_option options[] = {
      {"table", 't', ARGS_TEXT, "NAME", "runs, steps, evals, staleness, clock, tuned or bias",
       &table},
      {"format", 'f', ARGS_TEXT, "FORMAT", "csv, tsv or jsonl", &format},
      {"output", 'o', ARGS_TEXT, "FILE",
       "write there instead of standard output; an old file stays until the new one is whole",
       &path}};
  args a;
  size_t which = 0;
  store *s = NULL;
  gl_status status = args_parse(&a, self, options, 3, (args_shape){1, 1, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = args_choose(&which, "--table", table, tables, sizeof tables / sizeof tables[0], err);
    if (status == GL_OK)
      status =
          args_choose(&which, "--format", format, formats, sizeof formats / sizeof formats[0], err);
    if (status == GL_OK) status = store_open(&s, a.words[0], STORE_READ, err);
    if (status == GL_OK) status = tell_unfinished(s, a.words[0], err);
    if (status == GL_OK) status = export_to(s, table, format, path, err);
  }
  store_close(s);
  args_fini(&a);
  return status;
}

const command command_export = {
    .name = "export",
    .arguments = "STUDY.db",
    .summary = "a table of a study as CSV, TSV or JSON lines",
    .about =
        "Rows are in the order of the study's grid and hold no wall-clock times, so that two\n"
        "executions of one study export the same bytes. What tells runs apart stands in columns\n"
        "named by the fields of the recipe (cluster.max_delay), the learning rate in\n"
        "optimizer.lr.",
    .examples = "  gepolab export study.db --table steps --format csv > steps.csv\n"
                "  gepolab export study.db -t runs -f jsonl",
    .run = run_export};
