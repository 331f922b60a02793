/* The figures of a study. Points are interquartile means over seeds with 95 % bootstrap intervals.
 * An algorithm has the same colour, dash pattern and symbol in all figures of a study. A page shows
 * at most four settings side by side (eval_score: twelve in total), spread evenly over the grid and
 * including the first and the last; a remark lists the others. analysis/plot/page.h describes the
 * files of a figure. */
#ifndef GEPOLAB_ANALYSIS_FIGURES_FIGURES_H
#define GEPOLAB_ANALYSIS_FIGURES_FIGURES_H

#include "analysis/plot/page.h"
#include "analysis/results.h"

/* Histogram of staleness: the number of batches or updates with staleness 0, 1, ... updates. */
typedef struct staleness_histogram {
  char *name; /* name of the run or title of the panel; "" for none */
  uint64_t *count;
  size_t n;
} staleness_histogram;

/* The i-th figure of a study, or NULL past the end. */
const figure *figures_at(size_t i);

/* Draws the figures of a study. measured: shown beside the simulated staleness; NULL: none. Errors:
 * those of figures_draw_table() (analysis/plot/draw.h). */
gl_status figures_draw(const results *r, const staleness_histogram *measured,
                       const figure_request *q, gl_error *err);

/* The figure `staleness` for schedules without a study: n histograms, one panel each, titled by
 * their names. Errors: GL_EINPUT (all histograms are empty), and those of figures_draw(). */
gl_status figure_of_staleness(const staleness_histogram *panels, size_t n,
                              const staleness_histogram *measured, const figure_request *q,
                              gl_error *err);

/* Reads the measured staleness (metric part "step_diff" or "staleness") of one run from a W&B
 * export or another table that analysis/import/read.h supports. Values are rounded to whole
 * updates, one count per logged update. `run` is as in series_choose() (analysis/import/read.h);
 * NULL if the file has one run. Release with staleness_histogram_fini(), also after an error.
 * Errors: those of read_series() and series_choose(); GL_EINPUT (no value, or one that is no number
 * of updates). */
gl_status staleness_measured(staleness_histogram *out, const char *path, const char *run,
                             gl_error *err);
void staleness_histogram_fini(staleness_histogram *h);

#endif
