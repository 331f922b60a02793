/* `gepolab llm bias --figures`: what was measured at a run's checkpoints, against staleness. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_LLM_BIAS_FIGURE_H
#define GEPOLAB_EXPERIMENTS_CLI_LLM_BIAS_FIGURE_H

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

#endif
