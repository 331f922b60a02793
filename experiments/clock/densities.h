/* `gepolab sim --densities`: the distributions of a recipe's cluster. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_DENSITIES_H
#define GEPOLAB_EXPERIMENTS_CLOCK_DENSITIES_H

#include "analysis/plot/figure.h"
#include "experiments/recipe/recipe.h"

/* Draws the figure `densities` of all distributions of the recipe's clusters, those of its sweep's
 * cells included: a panel for each field in which a distribution varies, a line for each
 * distribution. GL_EINPUT where none varies. */
gl_status densities_draw(const recipe *r, const cfg_doc *doc, const figure_request *q,
                         gl_error *err);

#endif
