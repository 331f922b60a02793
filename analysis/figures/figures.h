/* The figures of a study. Points are interquartile means over seeds with 95 % bootstrap intervals.
 * An algorithm keeps its colour, dash and point in all figures of a study. A page holds at most
 * four settings side by side (eval_score: twelve in all), spread evenly over the grid with the
 * first and last in; it says which it leaves out. What files a figure is made of:
 * analysis/plot/figure.h.
 */
#ifndef GEPOLAB_ANALYSIS_FIGURES_FIGURES_H
#define GEPOLAB_ANALYSIS_FIGURES_FIGURES_H

#include "analysis/plot/page.h"
#include "analysis/results.h"

/* How many batches or updates had staleness 0, 1, ... updates. */
typedef struct staleness_histogram {
  char *name; /* of the run, or the heading of a panel; "" for none */
  uint64_t *count;
  size_t n;
} staleness_histogram;

/* The i-th figure of a study, or NULL past the end. */
const figure *figures_at(size_t i);

/* Draws the figures of a study (errors: figures_draw_table, analysis/plot/draw.h); measured:
 * shown beside the simulated staleness; NULL: none. */
gl_status figures_draw(const results *r, const staleness_histogram *measured,
                       const figure_request *q, gl_error *err);

/* The figure `staleness` of n histograms alone, one panel each, headed by their names; for
 * schedules without a study. Errors as above; GL_EINPUT if all histograms are empty. */
gl_status figure_of_staleness(const staleness_histogram *panels, size_t n,
                              const staleness_histogram *measured, const figure_request *q,
                              gl_error *err);

/* Measured staleness (metric part "step_diff" or "staleness") of one run of a W&B export or any
 * other table that analysis/import/read.h reads; values
 * are rounded to whole updates, one count per logged update. run as in series_choose()
 * (analysis/import/read.h): NULL where the file has one run. Release with
 * staleness_histogram_fini(), also after a failure. */
gl_status staleness_measured(staleness_histogram *out, const char *path, const char *run,
                             gl_error *err);
void staleness_histogram_fini(staleness_histogram *h);

#endif
