/* The table of the laboratory's figures, and whether there is what each of them needs. */
#include "experiments/lab/figures/figures.h"

#include "analysis/plot/draw.h"
#include "experiments/lab/figures/list.h"

#include <math.h>

#define LAB_FIGURE_LINE(name, shows, needs, shape) {#name, shows, shape, needs, lab_figure_##name},
static const figure figures[] = {LAB_FIGURES(LAB_FIGURE_LINE)};
enum { FIGURE_COUNT = sizeof figures / sizeof *figures };

static const char *lacks(const void *data, unsigned needs) {
  const lab_figure_data *d = data;
  const lab_recipe *r = d->table != NULL ? d->table->recipe : NULL;
  const int path = r != NULL && !isnan(r->pairs[0].staleness);
  if ((needs & NEEDS_DIAL) && (r == NULL || path || r->n_pairs < 2))
    return "it needs a dial with at least two values of KL";
  if ((needs & NEEDS_PATH) && !path) return "it needs pairs of policies from a training path";
  if ((needs & NEEDS_SIZES) && (r == NULL || r->n_sizes < 2)) return "it needs several group sizes";
  if ((needs & NEEDS_OTHERS) && (r == NULL || r->n_algorithms < 2))
    return "it needs several algorithms";
  if ((needs & NEEDS_LEARNING) && d->curves == NULL) return "it needs a recipe with training";
  if ((needs & NEEDS_DISTS) && (d->truncation == NULL || d->truncation->recipe.dists.n_top_p < 2))
    return "it needs a recipe with truncation at several values of top_p";
  if ((needs & NEEDS_THEOREMS) && (d->table != NULL || d->curves != NULL || d->truncation != NULL))
    return "it belongs to `gepolab lab theory`";
  return NULL;
}

gl_status lab_figures_draw(const lab_figure_data *data, const figure_request *q, gl_error *err) {
  static const figure_table table = {
      figures, FIGURE_COUNT, lacks,
      "there are no data for any figure: figures need a dial with at least two values of KL, a "
      "training path, or training"};
  figure_request named = *q;
  if (data->table != NULL) named.prefix = data->table->recipe->name;
  if (data->truncation != NULL) named.prefix = data->truncation->recipe.name;
  if (data->curves != NULL) named.prefix = data->curves->recipe->name;
  return figures_draw_table(&table, data, &named, err);
}
