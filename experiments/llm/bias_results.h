/* The results of `gepolab llm bias`: measurements at a run's checkpoints as a figure against
 * staleness, and as records of a study's table `bias`. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_BIAS_RESULTS_H
#define GEPOLAB_EXPERIMENTS_LLM_BIAS_RESULTS_H

#include "analysis/plot/figure.h"
#include "experiments/llm/bias.h"

/* The result of algorithm a at age k of checkpoint u is results[(u * n_staleness + k) *
 * n_algorithms + a]; all borrowed. */
typedef struct llm_bias_table {
  const char *name; /* the run's: files are NAME_gradients.png, … */
  const policy_algorithm *algorithms;
  const uint64_t *at, *staleness; /* [n_at], [n_staleness] */
  const llm_bias_result *results;
  size_t n_algorithms, n_at, n_staleness;
} llm_bias_table;

/* Draws the figure `gradients`: cosine, variance and scaled MSE against staleness with their
 * intervals, a column for each checkpoint. GL_EINPUT for a single staleness, and as
 * figures_draw_table(). */
gl_status llm_bias_draw(const llm_bias_table *t, const figure_request *q, gl_error *err);

/* Puts the measurements into the file at `path` (made where it is not there), those of each
 * checkpoint as a study of its own, "NAME after N updates", in place of those that it has by that
 * name: one transaction a checkpoint. drawn: groups that each algorithm's estimates are made of.
 * Intervals have no columns there. GL_EIO, GL_ENOMEM. */
gl_status llm_bias_store(const llm_bias_table *t, const char *path, size_t group_size, double drawn,
                         double wall_s, gl_error *err);

#endif
