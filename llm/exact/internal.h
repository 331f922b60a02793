/* Inside the enumerable transformer: what world.c makes and world_view.c works with. */
#ifndef GEPOLAB_LLM_EXACT_INTERNAL_H
#define GEPOLAB_LLM_EXACT_INTERNAL_H

#include "core/rl/response_tree.h"
#include "core/rl/sequence_task.h"
#include "llm/exact/exact_world.h"
#include "llm/model/model.h"

#include <pthread.h>

/* Rows gathered before the model runs them. */
enum { WORLD_PART_ROWS = 4096 };

typedef struct world_part {
  size_t *start, *row, *edge; /* [sequences + 1], [targets], [targets] each target's edge */
  int32_t *token, *target;    /* [tokens], [targets] */
  double *logp, *slope;       /* [targets] */
  size_t n_sequences, n_tokens, n_targets;
} world_part;

/* The model and what a question about it works in; whoever uses it holds the lock. */
typedef struct world_bench {
  pthread_mutex_t lock;
  int has_lock;
  backend *b;
  model *m;
  world_part part;
  unsigned char *passed;   /* [n_nodes] has been given a row */
  double *edge, *gradient; /* [n_edges], [n_parameters] */
} world_bench;

struct exact_world {
  sequence_section section;
  response_tree tree;
  double *reward; /* [n_prompts * n_responses] */
  sampling_spec sampling;
  size_t prompt_length, n_parameters;
  world_bench *bench;
};

/* Prompt x as the model is given it: its digits in the world's letters, the highest first. */
void exact_world_prompt(const exact_world *w, size_t x, int32_t *token);

#endif
