/* gepolab plot: the figures of a study, with their data and scripts. */
#include "analysis/figures.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/resources.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* context is the request. */
static void told(void *context, const char *figure, const char *why) {
  const char *folder = ((const figure_request *)context)->folder;
  if (why == NULL)
    printf("%s/%s.pdf, .png, .tsv, .gp\n", folder, figure);
  else
    printf("no %s: %s\n", figure, why);
}

static gl_status draw_study(store *from, const char *name, const figure_request *q, gl_error *err) {
  results *r = NULL;
  gl_status status = results_load(&r, from, name, err);
  if (status == GL_OK) status = figures_draw(r, q, err);
  results_free(r);
  return status;
}

/* Where a file has several studies, each has a folder of its own, named after it. */
static gl_status draw_studies(const char *file, const figure_request *q, gl_error *err) {
  store *s = NULL;
  char **names = NULL;
  size_t n = 0;
  gl_status status = store_open(&s, file, STORE_READ, err);
  if (status == GL_OK) status = results_studies(&names, &n, s, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    char folder[PATH_MAX];
    figure_request one = *q;
    int length = snprintf(folder, sizeof folder, "%s/%s", q->folder, names[i]);
    if (n > 1 && (length < 0 || (size_t)length >= sizeof folder || strchr(names[i], '/') != NULL))
      status = gl_fail(err, GL_EINPUT, "no folder can be named after the study '%.100s'", names[i]);
    if (n > 1) one.folder = folder;
    one.context = &one;
    if (status == GL_OK) status = draw_study(s, names[i], &one, err);
  }
  free(names);
  store_close(s);
  return status;
}

static gl_status run_plot(const command *self, int argc, char **argv, gl_error *err) {
  const char *path = NULL, *run = NULL;
  staleness_histogram measured = {0};
  figure_request q = {.folder = "figures", .script = resources_text, .told = told};
  const args_option options[] = {
      {"output", 'o', ARGS_TEXT, "FOLDER", "where they go (default: figures)", &q.folder},
      {"figure", 'f', ARGS_TEXT, "NAME", "only this one", &q.only},
      {"measured", 'm', ARGS_TEXT, "EXPORT.csv", "a W&B export with measured staleness", &path},
      {"measured-run", 0, ARGS_TEXT, "RUN", "which of its runs, where there are several", &run},
      {"gnuplot", 0, ARGS_TEXT, "PROGRAM", "the gnuplot to draw with", &q.gnuplot}};
  args a;
  gl_status status = args_parse(&a, self, options, 5, (args_shape){1, 1, 0}, argc, argv, err);
  q.context = &q;
  if (status == GL_OK && run != NULL && path == NULL)
    status = gl_fail(err, GL_EINPUT, "--measured-run needs --measured EXPORT.csv");
  if (status == GL_OK && !a.help && path != NULL) {
    status = staleness_measured(&measured, path, run, err);
    q.measured = &measured;
  }
  if (status == GL_OK && !a.help) status = draw_studies(a.words[0], &q, err);
  staleness_histogram_fini(&measured);
  args_fini(&a);
  return status;
}

const command command_plot = {
    .name = "plot",
    .arguments = "STUDY.db",
    .summary = "the figures a study has data for, as PDF and PNG",
    .about =
        "Next to each figure lie its data (.tsv) and its script (.gp): `gnuplot NAME.gp` in the\n"
        "folder draws it again, after any change. Figures: eval_score, training, divergence,\n"
        "window, staleness, throughput_delay, throughput_loss, best_last.",
    .examples = "  gepolab plot study.db -o figures/\n"
                "  gepolab plot study.db --figure staleness --measured staleness.csv",
    .run = run_plot};
