/* gepolab plot: the figures of a study, with their data and scripts. */
#include "analysis/figures.h"
#include "core/config.h"
#include "experiments/args.h"
#include "experiments/command.h"
#include "experiments/resources.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The text of an embedded plot script; embedded files end with a zero. */
static const char *script(const char *path) {
  for (size_t i = 0; resources_at(i) != NULL; ++i)
    if (strcmp(resources_at(i)->path, path) == 0) return resources_at(i)->data;
  return "";
}

/* Makes the folder and those it lies in. */
static gl_status make_folder(const char *folder, gl_error *err) {
  char path[PATH_MAX];
  size_t n = strlen(folder);
  if (n >= sizeof path) return gl_fail(err, GL_EINPUT, "the path '%.100s…' is too long", folder);
  for (size_t i = 1; i <= n; ++i) {
    if (folder[i] != '/' && folder[i] != '\0') continue;
    memcpy(path, folder, i);
    path[i] = '\0';
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
      return gl_fail(err, GL_EIO, "cannot make the folder '%s': %s", path, strerror(errno));
  }
  return GL_OK;
}

static gl_status draw_study(const char *study, const char *folder, const char *gnuplot,
                            gl_error *err) {
  store *s = NULL;
  results *r = NULL;
  const figure_scripts scripts = {.style = script("plots/style.gp"),
                                  .eval_score = script("plots/eval_score.gp")};
  gl_status status = store_open(&s, study, STORE_READ, err);
  if (status == GL_OK) status = results_load(&r, s, err);
  store_close(s);
  if (status == GL_OK) status = make_folder(folder, err);
  if (status == GL_OK) status = figure_eval_score(r, folder, gnuplot, &scripts, err);
  results_free(r);
  return status;
}

static gl_status run_plot(const command *self, int argc, char **argv, gl_error *err) {
  const char *folder = "figures", *gnuplot = "gnuplot";
  const args_option options[] = {
      {"output", 'o', ARGS_TEXT, "FOLDER", "where they go (default: figures)", &folder},
      {"gnuplot", 0, ARGS_TEXT, "PROGRAM", "the gnuplot to draw with", &gnuplot}};
  args a;
  gl_status status = args_parse(&a, self, options, 2, (args_shape){1, 1, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) status = draw_study(a.words[0], folder, gnuplot, err);
  args_fini(&a);
  return status;
}

const command command_plot = {
    .name = "plot",
    .arguments = "STUDY.db",
    .summary = "the figures a study has data for, as PDF and PNG",
    .about =
        "Next to each figure lie its data (.tsv) and its script (.gp): `gnuplot NAME.gp` in the\n"
        "folder draws it again, after any change.",
    .examples = "  gepolab plot study.db -o figures/",
    .run = run_plot};
