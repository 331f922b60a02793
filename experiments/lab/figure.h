/* Figures of the laboratory: data, script and pictures side by side, as those of a study. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_FIGURE_H
#define GEPOLAB_EXPERIMENTS_LAB_FIGURE_H

#include "core/base/json.h"
#include "experiments/lab/table.h"
#include "experiments/lab/training.h"

#include <stdio.h>

/* One figure being written: FOLDER/NAME.tsv and .gp, then NAME.pdf and .png by gnuplot. */
typedef struct lab_figure {
  const char *folder, *name;
  FILE *data, *script;
} lab_figure;

/* Opens both files (the folder is made if it is missing). GL_EIO with the path. */
gl_status lab_figure_begin(lab_figure *f, const char *folder, const char *name, gl_error *err);
/* `array NAME[n] = [...]` in the script, text escaped for gnuplot. */
void lab_figure_names(lab_figure *f, const char *array, const char *const *names, size_t n);
/* Appends the style and the embedded script plots/SHAPE.gp, closes and draws. Also after a failure
 * (status), which is then returned. GL_EIO if gnuplot is missing or fails: the files are complete.
 */
gl_status lab_figure_end(lab_figure *f, const char *shape, gl_status status, gl_error *err);

/* bias, variance and MSE against KL for every group size; the plane of bias and variance; the ratio
 * of MSE of two rows over KL and G; cosine against staleness where the pairs have one. */
gl_status lab_bias_figures(const lab_table *t, const char *folder, gl_error *err);
/* Return, cosine and variance against samples, a line per row. */
gl_status lab_training_figure(const lab_curves *c, const char *folder, gl_error *err);
/* Variance surfaces and green region; the constants of Theorem 1. */
gl_status lab_theory_figures(const char *folder, gl_error *err);

#endif
