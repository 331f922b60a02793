/* The figures of the laboratory. analysis/plot/page.h describes the files of a figure. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_FIGURES_FIGURES_H
#define GEPOLAB_EXPERIMENTS_LAB_FIGURES_FIGURES_H

#include "analysis/plot/page.h"
#include "experiments/lab/table.h"
#include "experiments/lab/training.h"
#include "experiments/lab/truncation.h"

/* Data of the figures; borrowed. All NULL: only the figures of the theorems. */
typedef struct lab_figure_data {
  const lab_table *table;
  const lab_curves *curves;
  const lab_truncation *truncation;
} lab_figure_data;

/* Draws all figures whose data are present. Files are named RECIPE_NAME.png (those of the theorems
 * NAME.png). Errors: those of figures_draw_table() (analysis/plot/draw.h). */
gl_status lab_figures_draw(const lab_figure_data *data, const figure_request *q, gl_error *err);

#endif
