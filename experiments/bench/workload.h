/* A transformer at work on drawn tokens, on any backend, as benchmarks measure it: scoring,
 * training, generation. Prefix: workload_. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_WORKLOAD_H
#define GEPOLAB_EXPERIMENTS_BENCH_WORKLOAD_H

#include "llm/backend/watch.h"
#include "llm/model/generate.h"
#include "llm/model/model.h"

typedef struct workload_size {
  size_t sequences, length; /* tokens of each, its prompt included */
  size_t prompt;            /* of each sequence; generation draws the others */
  size_t micro;             /* sequences that are scored or learned from at a time; 0: all */
  int recompute;            /* layers are computed again in the backward */
  int trains;               /* there is an optimiser */
} workload_size;

typedef struct workload {
  workload_size size;
  size_t up_to;         /* tokens that generation draws; at first all */
  backend_watch *watch; /* forgets what the first task did; NULL: none. Borrowed */
  size_t done;          /* tasks */
  model *m;
  model_optimizer *optimizer;
  /* Host memory. The targets of a token are the next token's, and slopes are +-1 / tokens in turn.
   */
  size_t *start, *prompt_start, *row, *number;
  int32_t *token, *target; /* [sequences * length] */
  double *slope, *logp;    /* [sequences * length] */
  generate_result result;  /* [sequences, length - prompt] */
} workload;

/* Parameters are drawn (norm weights are 1) so that bfloat16 has them exactly. After a failure,
 * too, *w is released with workload_fini(). GL_ENOMEM, or what the backend fails with. */
gl_status workload_init(workload *w, const model_config *c, workload_size size, backend *b,
                        gl_error *err);
void workload_fini(workload *w);

/* The settings of AdamW that all benchmarks and their peers have. */
extern const optimizer_spec workload_optimizer;

/* Tasks (bench_task), each of which waits until the backend is done; self is the workload. */
gl_status workload_score(void *self, gl_error *err); /* log-probabilities of all targets */
gl_status workload_learn(void *self, gl_error *err); /* and their gradient */
gl_status workload_train(void *self, gl_error *err); /* and a step of the optimiser */
/* Draws up_to tokens after every prompt; none ends a response. */
gl_status workload_generate(void *self, gl_error *err);

#endif
