/* What the files of this folder share: the world that exact_world.c makes and view.c answers
 * questions about. */
#ifndef GEPOLAB_LLM_EXACT_INTERNAL_H
#define GEPOLAB_LLM_EXACT_INTERNAL_H

#include "core/rl/response_tree.h"
#include "core/rl/sequence_task.h"
#include "llm/exact/exact_world.h"
#include "llm/model/model.h"

#include <pthread.h>

/* Packed tokens that are gathered before the model runs them. */
enum { EXACT_BATCH_TOKENS = 4096 };

/* Packed sequences that are gathered for one forward, and its results. */
typedef struct exact_batch {
  size_t *start;           /* [sequences + 1] */
  size_t *after, *edge;    /* [targets] the token it follows, and its edge in the tree */
  int32_t *token, *target; /* [tokens], [targets] */
  double *logp, *dlogp;    /* [targets] */
  size_t n_sequences, n_tokens, n_targets;
} exact_batch;

/* The model and working memory; a thread that asks for anything holds the lock meanwhile. */
typedef struct exact_workspace {
  pthread_mutex_t lock;
  int has_lock;
  backend *b;
  model *m;
  exact_batch batch;
  unsigned char *has_token; /* [n_nodes] a gathered sequence has the token its edges follow */
  double *edge, *gradient;  /* [n_edges] log-probabilities or their coefficients; [n_parameters] */
} exact_workspace;

struct exact_world {
  sequence_section section;
  response_tree tree;
  double *reward; /* [n_prompts * n_responses] */
  sampling_spec sampling;
  size_t prompt_length, n_parameters;
  exact_workspace *workspace;
};

/* Writes prompt x as the model is given it, token[prompt_length]: its digits in base `vocabulary`,
 * the highest first. */
void exact_world_prompt(const exact_world *w, size_t x, int32_t *token);

#endif
