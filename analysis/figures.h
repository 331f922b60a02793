/* Figures of a study: data, script and pictures side by side, so that `gnuplot NAME.gp` in the
 * folder draws a figure again.
 *
 * Every figure NAME is NAME.tsv (its numbers, a comment naming the columns, one block per curve;
 * what is not finite is an empty cell), NAME.gp (the whole script, style included), NAME.pdf and
 * NAME.png. Points are interquartile means over seeds with 95 % bootstrap intervals. An algorithm
 * keeps its colour, dash and point in all figures of a study. A page holds at most four settings
 * side by side (eval_score: twelve in all), spread evenly over the grid with the first and last in.
 */
#ifndef GEPOLAB_ANALYSIS_FIGURES_H
#define GEPOLAB_ANALYSIS_FIGURES_H

#include "analysis/results.h"

/* How many batches or updates had staleness 0, 1, ... updates. */
typedef struct staleness_histogram {
  char *name; /* of the run, or the heading of a panel; "" for none */
  uint64_t *count;
  size_t n;
} staleness_histogram;

/* Where figures go, which ones, and what draws them. Everything but folder and script may be NULL.
 */
typedef struct figure_request {
  const char *folder;                      /* made if missing, with those it lies in */
  const char *only;                        /* one figure's name; NULL: all the study has data for */
  const staleness_histogram *measured;     /* beside the simulated staleness; its name is shown */
  const char *gnuplot;                     /* the program; NULL: "gnuplot" */
  const char *(*script)(const char *path); /* text of "plots/style.gp", …, ended by a zero */
  /* Told of each figure once it is drawn (why == NULL), or why it is left out. */
  void (*told)(void *context, const char *figure, const char *why);
  void *context;
} figure_request;

typedef struct figure_about {
  const char *name, *shows;
} figure_about;

/* The i-th figure that exists, or NULL past the end. */
const figure_about *figures_at(size_t i);

/* Writes data and scripts of every applicable figure, then draws them. GL_EINPUT if `only` is no
 * figure's name (the nearest is named) or does not apply (and why), or no figure applies, or the
 * measured export is wrong; GL_EIO if the folder or a file cannot be written, or gnuplot is missing
 * or fails: data and scripts are then complete. */
gl_status figures_draw(const results *r, const figure_request *q, gl_error *err);

/* The figure `staleness` of n histograms alone, one panel each, headed by their names, against
 * q->measured if given; for schedules without a study. Errors as above; GL_EINPUT if all histograms
 * are empty. */
gl_status figure_staleness(const staleness_histogram *panels, size_t n, const figure_request *q,
                           gl_error *err);

/* Measured staleness (metric part "step_diff" or "staleness") of one run of a W&B export; values
 * are rounded to whole updates, one count per logged update. run as in wandb_choose()
 * (analysis/wandb.h): NULL where the file has one run. Release with staleness_histogram_fini(),
 * also after a failure. */
gl_status staleness_measured(staleness_histogram *out, const char *path, const char *run,
                             gl_error *err);
void staleness_histogram_fini(staleness_histogram *h);

#endif
