/* gepolab plot and gepolab report. */
#include "analysis/evaluation_sets.h"
#include "analysis/figures/figures.h"
#include "analysis/figures/without_study.h"
#include "analysis/import/gather.h"
#include "analysis/import/read.h"
#include "analysis/outcome.h"
#include "core/base/display_text.h"
#include "core/base/file.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/report/report.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void list_figures(void) {
  for (size_t i = 0; figures_at(i) != NULL; ++i) {
    const size_t column = (size_t)printf("%-18s ", figures_at(i)->name);
    shown_wrap(figures_at(i)->shows, column, column, stdout);
    putchar('\n');
  }
}

/* Draws a study. set: the evaluation set whose score is drawn; NULL: the runs' own score. */
static gl_status draw_study(store *from, const char *name, const char *set,
                            const staleness_histogram *measured, const figure_request *q,
                            gl_error *err) {
  results *r = NULL;
  gl_status status = results_load(&r, from, name, err);
  if (status == GL_OK && set != NULL) status = sets_choose(r, set, err);
  if (status == GL_OK) status = figures_draw(r, measured, q, err);
  results_free(r);
  return status;
}

/* Writes the path FOLDER/STUDY, with _ for / in the study's name; refuses a name that would lead
 * out of the folder. */
static gl_status study_folder(char path[PATH_MAX], const char *folder, const char *study,
                              gl_error *err) {
  const int length = snprintf(path, PATH_MAX, "%s/%s", folder, study);
  if (length >= 0 && length < PATH_MAX && study[0] != '\0' && strcmp(study, ".") != 0 &&
      strcmp(study, "..") != 0) {
    for (char *c = path + strlen(folder) + 1; *c != '\0'; ++c)
      if (*c == '/') *c = '_';
    return GL_OK;
  }
  return gl_fail(err, GL_EINPUT, "no folder can be named after the study '%.100s'", study);
}

/* Draws all studies of a file. If there are several, each gets a subfolder with its name. */
static gl_status draw_studies(const char *file, const char *set,
                              const staleness_histogram *measured, const figure_request *q,
                              gl_error *err) {
  store *s = NULL;
  char **names = NULL;
  size_t n = 0;
  gl_status status = store_open(&s, file, STORE_READ, err);
  if (status == GL_OK) status = print_unfinished(s, file, err);
  if (status == GL_OK) status = results_studies(&names, &n, s, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    char folder[PATH_MAX];
    figure_request one = *q;
    if (n > 1) one.folder = one.context = folder;
    if (n > 1) status = study_folder(folder, q->folder, names[i], err);
    if (status == GL_OK) status = draw_study(s, names[i], set, measured, &one, err);
  }
  free(names);
  store_close(s);
  return status;
}

/* Draws studies and exports together: one figure of each kind for all of them. */
static gl_status draw_together(const gather_request *q, const staleness_histogram *measured,
                               const figure_request *drawn, gl_error *err) {
  gathered g;
  results *r = NULL;
  char *left_out = NULL;
  gl_status status = gather(&g, q, err);
  tell_gathered(&g);
  if (status == GL_OK) status = gathered_results(&r, &left_out, &g, err);
  if (left_out)
    fprintf(stderr, "gepolab: note: no figure shows these metrics: %s\n", shown(left_out).text);
  if (status == GL_OK) status = figures_draw(r, measured, drawn, err);
  results_free(r);
  free(left_out);
  gathered_fini(&g);
  return status;
}

/* Draws figures of the outcomes that `gepolab results keep` stored in the file. */
static gl_status draw_outcomes(stored *kept, const figure_request *q, gl_error *err) {
  stability s = {0};
  gl_status status = stability_of_stored(&s, kept, err);
  if (status == GL_OK) status = figures_of_outcomes(&s, q, err);
  stability_fini(&s);
  return status;
}

/* Draws the measurements over directions that are stored in files, one world per file. */
static gl_status plot_directions(const stored *kept, const gather_request *files,
                                 const figure_request *q, gl_error *err) {
  directions d = {.n = 0};
  gl_status status = GL_OK;
  for (size_t i = 0; i < files->n_files && status == GL_OK; ++i) {
    const char *title = kept[i].name;
    if (!directions_are_stored(&kept[i]))
      status = gl_fail(err, GL_EINPUT,
                       "%s is not of `gepolab lab bias` with dial.directions as the others are; "
                       "stored results of another kind are drawn one file at a time",
                       files->files[i]);
    if (status == GL_OK) status = gather_label(&title, files, i, err);
    if (status == GL_OK) status = directions_add_stored(&d, &kept[i], title, err);
  }
  if (status == GL_OK) status = figure_of_directions(&d, q, err);
  directions_fini(&d);
  return status;
}

/* Draws files that `gepolab results keep` wrote: one file of outcomes, or any number of files of
 * directions. */
static gl_status draw_stored(const gather_request *files, const figure_request *q, gl_error *err) {
  stored *kept = MUST_ARRAY(stored, files->n_files, "stored results");
  gl_status status = GL_OK;
  for (size_t i = 0; i < files->n_files && status == GL_OK; ++i)
    status = stored_read(&kept[i], files->files[i], err);
  if (status == GL_OK)
    status = files->n_files == 1 && !directions_are_stored(kept)
                 ? draw_outcomes(kept, q, err)
                 : plot_directions(kept, files, q, err);
  for (size_t i = 0; i < files->n_files; ++i) stored_fini(&kept[i]);
  free(kept);
  return status;
}

/* *are: 1 if all files are stored results. */
static gl_status recognise_stored(const gather_request *files, int *are, gl_error *err) {
  *are = files->n_files > 0;
  for (size_t i = 0; i < files->n_files && *are; ++i) {
    if (file_is_folder(files->files[i])) return *are = 0, GL_OK;
    gl_status status = stored_recognise(files->files[i], are, err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

/* Draws the files. The studies of a single study file are drawn one by one; other files are drawn
 * together. */
static gl_status draw_files(const args *a, const import_options *import,
                            const staleness_histogram *measured, const figure_request *q,
                            gl_error *err) {
  gather_request together;
  int is_study = 0, is_stored = 0;
  gl_status status = import_options_request(import, a->words, a->n_words, &together, err);
  const int alone =
      a->n_words == 1 && !import_options_given(import) && !file_is_folder(a->words[0]);
  if (status == GL_OK && import->metric != NULL && a->n_words == 1 && file_is_database(a->words[0]))
    return gl_fail(err, GL_EINPUT,
                   "%s is a study, which says itself what its metrics are; leave --metric out and "
                   "choose with --figure NAME (`gepolab plot --list`)",
                   a->words[0]);
  if (status == GL_OK && alone) status = read_is_study(a->words[0], &is_study, err);
  if (status == GL_OK && !is_study) status = recognise_stored(&together, &is_stored, err);
  if (status != GL_OK) return status;
  import_options others = *import;
  others.labels = (args_list){0};
  if (is_stored && (together.set != NULL || import_options_given(&others)))
    return gl_fail(
        err, GL_EINPUT,
        "%s holds stored results, which know no evaluation sets and no metrics; of these "
        "options only --label applies",
        together.files[0]);
  if (is_stored) return draw_stored(&together, q, err);
  return is_study ? draw_studies(a->words[0], together.set, measured, q, err)
                  : draw_together(&together, measured, q, err);
}

enum { NAMED = 1024 };

/* Joins the figures that the command line names: "heat,gap". */
static gl_status list_named(char only[NAMED], const args_list *named, gl_error *err) {
  size_t length = 0;
  for (size_t i = 0; i < named->n; ++i) {
    const size_t more = strlen(named->item[i]) + (i > 0);
    if (length + more >= NAMED)
      return gl_fail(err, GL_EINPUT, "-f names too many figures; leave -f out for all of them");
    length += (size_t)sprintf(only + length, "%s%s", i > 0 ? "," : "", named->item[i]);
  }
  return GL_OK;
}

static gl_status run_plot(args *a, gl_error *err) {
  const char *folder = "figures", *points = NULL, *gnuplot = NULL, *path = NULL, *run = NULL;
  int list = 0, no_notes = 0;
  char only[NAMED] = "";
  args_list named = {0};
  figure_form form = {.given = NULL};
  import_options import = {0};
  staleness_histogram measured = {0};
  enum { OWN = 10 };
  args_option options[OWN + IMPORT_OPTION_COUNT] = {
      {"output", 'o', ARGS_FIGURES, "FOLDER", "where they go (default: figures)", &folder},
      {"figure", ARGS_OLD('f'), ARGS_EACH, "FIGURE", "only this one; may be given several times",
       &named},
      {"points", 0, ARGS_TEXT, "N|raw",
       "points of a curve against updates (40); raw: every update, no mean", &points},
      {"no-notes", 0, ARGS_FLAG, NULL, "no text below figures: NAME.txt has it", &no_notes},
      {"list", 0, ARGS_FLAG, NULL, "the names of all figures and what each shows", &list},
      {"measured", 'm', ARGS_READ, "EXPORT.csv",
       "measured staleness: a W&B export, CSV, TSV, JSON Lines", &path},
      {"measured-run", 0, ARGS_TEXT, "RUN", "which of its runs, where there are several", &run},
      {"gnuplot", 0, ARGS_TEXT, "PROGRAM", "the gnuplot to draw with", &gnuplot},
      FIGURE_FORM_OPTIONS(form)};
  import_options_list(&import, options + OWN);
  gl_status status = args_parse(a, options, OWN + IMPORT_OPTION_COUNT, err);
  if (status != GL_OK || a->help) return status;
  form.given = a;
  for (size_t i = 0; i < a->n_words; ++i)
    for (size_t k = 0; figures_at(k) != NULL; ++k)
      if (strcmp(figures_at(k)->name, a->words[i]) == 0 && access(a->words[i], F_OK) != 0)
        return gl_fail(err, GL_EINPUT, "'%s' is a figure and no file; write --figure %s",
                       a->words[i], a->words[i]);
  if (list) {
    list_figures();
  } else {
    figure_request q = figures_request_to(folder);
    status = list_named(only, &named, err);
    q.only = *only ? only : NULL;
    q.gnuplot = gnuplot;
    q.no_notes = no_notes;
    if (status == GL_OK) status = figures_request_form(&q, &form, err);
    if (status == GL_OK && points != NULL) status = figure_points(points, &q.points, err);
    if (status == GL_OK && a->n_words == 0)
      status = gl_fail(err, GL_EINPUT, "plot needs a study or an export: gepolab plot FILE");
    if (status == GL_OK && run != NULL && path == NULL)
      status = gl_fail(err, GL_EINPUT, "--measured-run needs --measured EXPORT.csv");
    if (status == GL_OK && path != NULL) status = staleness_measured(&measured, path, run, err);
    if (status == GL_OK) status = draw_files(a, &import, path != NULL ? &measured : NULL, &q, err);
  }
  staleness_histogram_fini(&measured);
  return status;
}

const command command_plot = {
    .name = "plot",
    .arguments = "FILE …",
    .words = {.input = ARGS_RUNS, .max = ARGS_LIST_MOST},
    .summary = "the figures a study has data for, as PDF, PNG and SVG",
    .about =
        "Each figure is written with its data (.tsv) and its script (.gp): `gnuplot -d NAME.gp`\n"
        "in the folder draws it again, after any change. `gepolab plot --list` names the\n"
        "figures. A list at the foot of a figure names what it has no room for. All text is 7.2\n"
        "points high at the figure's width. An algorithm has one colour, mark and dash in all\n"
        "figures of all studies; if there are more than eight, those not named by --highlight\n"
        "are grey.\n"
        "Files are a study, or any number of studies, W&B panel exports, CSV, TSV and JSON\n"
        "Lines, drawn together: series of one run may come from several files, and labels\n"
        "distinguish benchmarks or settings (`--label eval.csv=cluster.max_delay=600`).",
    .examples = "  gepolab plot study.db -o figures/\n"
                "  gepolab plot study.db --width icml --highlight gepo,gspo\n"
                "  gepolab plot study.db --figure staleness --measured staleness.csv\n"
                "  gepolab plot study.db --each-set --figure eval_score\n"
                "  gepolab plot study.db --figure training --figure window --points raw\n"
                "  gepolab plot kl.csv staleness.csv eval.csv -o figures/\n"
                "  gepolab plot a.csv b.csv -l a.csv=MATH500 -l b.csv=AIME24 --figure eval_score\n"
                "  gepolab plot paper/results/bias_directions*.tsv  # a stored world in each file",
    .run = run_plot};

/* --- report --- */

/* gepolab report: one HTML page about a study. */

/* Writes the page, which replaces an older one only when it is complete. A signal is handled at the
 * end, after the folder of figures was removed. */
static gl_status write_to(const char *path, store *from, const report_request *q, gl_error *err) {
  file_writer w;
  gl_status status = file_begin(&w, path, err);
  if (status != GL_OK) return status;
  signals_catch();
  status = report_write(w.stream, from, q, err);
  if (signals_caught() != 0)
    status = gl_fail(err, GL_EINTERRUPTED, "stopped by %s; %s is as it was",
                     strsignal(signals_caught()), path);
  return file_end(&w, status, err);
}

static gl_status run_report(args *a, gl_error *err) {
  report_request q = {.text_of = resources_text};
  const char *path = "report.html";
  const args_option options[] = {
      {"output", 'o', ARGS_WRITE, "FILE.html", "where it goes (default: report.html)", &path},
      {"study", 0, ARGS_TEXT, "NAME", "only this study of the file", &q.only},
      {"no-figures", 0, ARGS_FLAG, NULL, "tables only; gnuplot is not needed", &q.no_figures},
      {"gnuplot", 0, ARGS_TEXT, "PROGRAM", "the gnuplot to draw with", &q.gnuplot}};
  store *from = NULL;
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  status = store_open(&from, a->words[0], STORE_READ, err);
  if (status == GL_OK) status = print_unfinished(from, a->words[0], err);
  if (status == GL_OK) status = write_to(path, from, &q, err);
  if (status == GL_OK && !q.no_figures && resources_text(REPORT_CHART) == NULL)
    fputs("gepolab: figures are pictures only: this program was built without Chart.js (Debian: "
          "libjs-chart.js)\n",
          stderr);
  if (status == GL_OK) puts(path);
  store_close(from);
  return status;
}

const command command_report = {
    .name = "report",
    .arguments = "STUDY.db",
    .words = {.input = ARGS_RUNS, .min = 1, .max = 1},
    .summary = "one HTML page about a study: figures, tables, provenance",
    .about =
        "The page is one file that contains its figures. It has the recipe and the outcomes of\n"
        "the runs, figures, scores with intervals, learning rates, the clock, the runs that\n"
        "diverged, failed or are missing with the reasons, provenance, and the command that\n"
        "repeats the study. With JavaScript on, a click enlarges a figure into a chart with\n"
        "values, and tables can be sorted. There is a part for each study of the file. The same\n"
        "study gives the same page, byte for byte.",
    .examples = "  gepolab report study.db -o report.html\n"
                "  gepolab report study.db --no-figures -o tables.html",
    .run = run_report};
