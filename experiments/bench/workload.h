/* A transformer's work on random tokens, on any backend, for benchmarks: scoring, training,
 * generation. Prefix: workload_. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_WORKLOAD_H
#define GEPOLAB_EXPERIMENTS_BENCH_WORKLOAD_H

#include "llm/backend/profiler.h"
#include "llm/model/generate.h"
#include "llm/model/model.h"

typedef struct workload_size {
  size_t sequences, length; /* length: tokens of each sequence, including its prompt */
  size_t prompt;            /* tokens of each prompt; generation samples the others */
  size_t shared;            /* first tokens that the sequences of a micro-batch share; 0: none */
  size_t micro;             /* sequences per micro-batch of scoring or training; 0: all */
  model_stores stores;      /* what the forward before a backward stores */
  int trains;               /* 1: with an optimiser */
} workload_size;

typedef struct workload {
  workload_size size;
  size_t up_to;             /* tokens that generation samples; initially all */
  backend_profile *profile; /* discards its records of the first task; NULL: none. Borrowed */
  size_t done;              /* number of tasks done */
  model *m;
  model_optimizer *optimizer;
  /* Host memory. Each token's target is the next token; slopes alternate between +1 / tokens and -1
   * / tokens. */
  size_t *start, *prompt_start, *row, *number;
  size_t *own_start, *parent, *before; /* of packed sequences, if they share tokens */
  int32_t *token, *target;             /* [sequences * length] */
  double *slope, *logp;                /* [sequences * length] */
  generate_result result;              /* [sequences, length - prompt] */
} workload;

/* Random parameters (norm weights are 1) that bfloat16 represents exactly: value, of
 * model_config_parameters() numbers, in memory that may belong to several processes. The first
 * workload draws them and sets `drawn`, the next ones of the same configuration use them. */
typedef struct workload_parameters {
  double *value; /* borrowed */
  int drawn;
} workload_parameters;

/* Makes the model with these parameters; p NULL: draws them for itself. Release *w with
 * workload_fini(), also after an error. Errors: GL_ENOMEM, those of the backend. */
gl_status workload_init(workload *w, const model_config *c, workload_size size,
                        workload_parameters *p, backend *b, gl_error *err);
/* Changes the sizes of a workload that workload_init() made; model and optimiser remain. Errors as
 * there; workload_fini() frees it also after an error. */
gl_status workload_resize(workload *w, workload_size size, gl_error *err);
void workload_fini(workload *w);

/* Tasks (bench_task); each waits until the backend has finished. self is the workload. */
gl_status workload_score(void *self, gl_error *err); /* log-probabilities of all targets */
gl_status workload_learn(void *self, gl_error *err); /* log-probabilities and their gradient */
gl_status workload_train(void *self, gl_error *err); /* the same and a step of the optimiser */
/* Samples up_to tokens after every prompt; no token ends a response. */
gl_status workload_generate(void *self, gl_error *err);

#endif
