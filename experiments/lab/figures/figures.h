/* The figures of the laboratory. What files a figure is made of: analysis/plot/figure.h. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_FIGURES_FIGURES_H
#define GEPOLAB_EXPERIMENTS_LAB_FIGURES_FIGURES_H

#include "analysis/plot/page.h"
#include "experiments/lab/table.h"
#include "experiments/lab/training.h"
#include "experiments/lab/truncation.h"

/* What figures are drawn from; borrowed. All NULL: the theorems alone. */
typedef struct lab_figure_data {
  const lab_table *table;
  const lab_curves *curves;
  const lab_truncation *truncation;
} lab_figure_data;

/* Draws the figures that there are data for; files are named after the recipe, RECIPE_NAME.png
 * (those of the theorems NAME.png). Errors: figures_draw_table (analysis/plot/draw.h). */
gl_status lab_figures_draw(const lab_figure_data *data, const figure_request *q, gl_error *err);

#endif
