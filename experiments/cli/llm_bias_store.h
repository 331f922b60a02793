/* What `gepolab llm bias` measured, as records of a study's table `bias`. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_LLM_BIAS_STORE_H
#define GEPOLAB_EXPERIMENTS_CLI_LLM_BIAS_STORE_H

#include "experiments/cli/llm_bias_figure.h"

/* Puts the measurements into the file at `path` (made where it is not there), those of each
 * checkpoint as a study of its own, "NAME after N updates", in place of those that it has by that
 * name: one transaction a checkpoint. drawn: groups that each algorithm's estimates are made of.
 * Intervals have no columns there. GL_EIO, GL_ENOMEM. */
gl_status llm_bias_store(const llm_bias_table *t, const char *path, size_t group_size, double drawn,
                         double wall_s, gl_error *err);

#endif
