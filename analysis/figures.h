/* Figures of a study: data, script and pictures side by side, so that `gnuplot NAME.gp` in the
 * folder draws a figure again. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_H
#define GEPOLAB_ANALYSIS_FIGURES_H

#include "analysis/results.h"

/* The plot scripts as text, plots/style.gp and plots/eval_score.gp, ended by zeros. */
typedef struct figure_scripts {
  const char *style, *eval_score;
} figure_scripts;

/* Evaluation score against update: IQM over seeds with 95 % bootstrap intervals, one panel per
 * combination of swept values. Writes eval_score.tsv and .gp into the folder, which must exist, and
 * has `gnuplot` (a program's name) draw eval_score.pdf and .png. Cells that are not finite are left
 * empty. GL_EINPUT if the study has no evaluation, GL_EIO if a file cannot be written or gnuplot is
 * missing or fails: data and script are then complete. */
gl_status figure_eval_score(const results *r, const char *folder, const char *gnuplot,
                            const figure_scripts *scripts, gl_error *err);

#endif
