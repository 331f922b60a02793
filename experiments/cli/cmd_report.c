/* gepolab report: one HTML page about a study. */
#include "experiments/report/report.h"

#include "core/base/file.h"
#include "experiments/base/args.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"

#include <stdio.h>
#include <string.h>

/* The page replaces an older one only when it is complete. A signal is looked up at the end, when
 * the folder of figures has been removed. */
static gl_status write_to(const char *path, store *from, const report_request *q, gl_error *err) {
  file_writer w;
  gl_status status = file_begin(&w, path, err);
  if (status != GL_OK) return status;
  signals_catch();
  status = report_write(w.stream, from, q, err);
  if (signals_caught() != 0)
    status = gl_fail(err, GL_EINTERRUPTED, "stopped by %s; %s is as it was",
                     strsignal(signals_caught()), path);
  if (status == GL_OK) return file_commit(&w, err);
  file_abandon(&w);
  return status;
}

static gl_status run_report(const command *self, int argc, char **argv, gl_error *err) {
  report_request q = {.text_of = resources_text};
  const char *path = "report.html";
  const args_option options[] = {
      {"output", 'o', ARGS_WRITE, "FILE.html", "where it goes (default: report.html)", &path},
      {"study", 0, ARGS_TEXT, "NAME", "only this study of the file", &q.only},
      {"no-figures", 0, ARGS_FLAG, NULL, "tables only; gnuplot is not needed", &q.no_figures},
      {"gnuplot", 0, ARGS_TEXT, "PROGRAM", "the gnuplot to draw with", &q.gnuplot}};
  args a;
  store *from = NULL;
  gl_status status =
      args_parse(&a, self, options, sizeof options / sizeof *options, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = store_open(&from, a.words[0], STORE_READ, err);
    if (status == GL_OK) status = print_unfinished(from, a.words[0], err);
    if (status == GL_OK) status = write_to(path, from, &q, err);
    if (status == GL_OK && !q.no_figures && resources_text(REPORT_CHART) == NULL)
      fputs("gepolab: figures are pictures only: this program was built without Chart.js (Debian: "
            "libjs-chart.js)\n",
            stderr);
    if (status == GL_OK) puts(path);
  }
  store_close(from);
  args_fini(&a);
  return status;
}

const command command_report = {
    .name = "report",
    .arguments = "STUDY.db",
    .words = {ARGS_RUNS, 1, 1, false},
    .summary = "one HTML page about a study: figures, tables, provenance",
    .about =
        "The page is one file that contains its figures. It has the recipe and the outcomes of\n"
        "the runs, figures, scores with intervals, learning rates, the clock, the runs that\n"
        "diverged, failed or are missing with the reasons, provenance, and the command that\n"
        "repeats the study. With script, figures enlarge to charts with values and tables sort.\n"
        "There is a part for each study of the file. The same study gives the same page, byte\n"
        "for byte.",
    .examples = "  gepolab report study.db -o report.html\n"
                "  gepolab report study.db --no-figures -o tables.html",
    .run = run_report};
