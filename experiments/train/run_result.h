/* The result of one run, and its transfer from a worker process to the writer. */
#ifndef GEPOLAB_EXPERIMENTS_TRAIN_RUN_RESULT_H
#define GEPOLAB_EXPERIMENTS_TRAIN_RUN_RESULT_H

#include "core/base/error.h"
#include "core/store/store.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct run_result {
  run_status status;
  char reason[256];   /* "" if the run is done */
  step_record *steps; /* [n_steps] */
  size_t n_steps;
  eval_record *evals; /* [n_evals] */
  size_t n_evals;
  set_eval_record *set_evals; /* [n_set_evals], for recipes with evaluation sets */
  size_t n_set_evals;
  uint64_t *staleness; /* [n_staleness] number of batches by staleness */
  size_t n_staleness;
  fate_record *fates; /* [n_fates] fates of sampled responses, in coupled runs */
  size_t n_fates;
  char *in_effect;    /* [n_in_effect] the recipe's fields in effect, as JSON (cfg_record) */
  size_t n_in_effect; /* including its NUL; 0: unknown */
  clock_record clock;
  staleness_parts parts; /* summed over the trained batches */
  double wall_s;
  int64_t peak_bytes; /* maximum resident memory of its process; 0: unknown */
} run_result;

void run_result_fini(run_result *o);

/* Summary of a run's evaluations; NaN if it has none. */
typedef struct run_scores {
  double eval_first, best, last, best_to_last;
  double last_quarter; /* mean of the evaluations in the last quarter of the updates */
} run_scores;
run_scores run_result_scores(const run_result *o);

/* Serialisation between processes of one binary on one machine. The reader accepts exactly what the
 * writer wrote and refuses anything shorter (GL_EIO). */
gl_status run_result_write(const run_result *o, FILE *to, gl_error *err);
gl_status run_result_read(run_result *o, const void *bytes, size_t size, gl_error *err);

#endif
