/* gepolab plot: the figures of a study, with their data and scripts. */
#include "analysis/figures.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/resources.h"

#include <stdio.h>

/* context is the request. */
static void told(void *context, const char *figure, const char *why) {
  const char *folder = ((const figure_request *)context)->folder;
  if (why == NULL)
    printf("%s/%s.pdf, .png, .tsv, .gp\n", folder, figure);
  else
    printf("no %s: %s\n", figure, why);
}

static gl_status draw_study(const char *study, const figure_request *q, gl_error *err) {
  store *s = NULL;
  results *r = NULL;
  gl_status status = store_open(&s, study, STORE_READ, err);
  if (status == GL_OK) status = results_load(&r, s, err);
  store_close(s);
  if (status == GL_OK) status = figures_draw(r, q, err);
  results_free(r);
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
  if (status == GL_OK && !a.help) status = draw_study(a.words[0], &q, err);
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
