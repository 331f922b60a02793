/* Rewards: the arms of a bandit, and verifiable rewards on whole sequences. */
#ifndef GEPOLAB_TOY_TASKS_H
#define GEPOLAB_TOY_TASKS_H

#include "core/config.h"
#include "toy/tree.h"

/* What a sequence has to satisfy for prompt x. Content is the response without its end token;
 * letters are the tokens that can be content. Every task has a score in [0,1], 1 when solved; the
 * reward is the score (graded) or whether it is 1 (exact). */
typedef enum toy_task {
  TASK_TARGET,  /* content equals the prompt's hidden sequence; score: share of matching positions
                   over the longer of the two lengths */
  TASK_SUM_MOD, /* the tokens sum to x modulo `modulus`; score: 1 - circular distance over the
                   largest possible */
  TASK_PARITY,  /* as many 1s, modulo 2, as x; all or nothing */
  TASK_SORTED,  /* never descending, with exactly 1 + x mod min(letters, horizon) distinct tokens;
                   score: mean of the share of steps that do not descend and the closeness of the
                   number of distinct tokens */
  TASK_NEEDLE,  /* the prompt's hidden needle occurs in the content; score: longest beginning of the
                   needle that occurs */
  N_TASKS
} toy_task;
extern const char *const toy_task_names[N_TASKS];

typedef struct toy_task_spec {
  toy_task task;
  int graded;
  size_t modulus;       /* sum_mod */
  size_t needle_length; /* needle, at most the horizon */
} toy_task_spec;

/* reward[n_prompts * n_responses] of a sequence world; hidden sequences are drawn at RNG_WORLD. */
gl_status toy_task_rewards(const toy_task_spec *spec, const toy_tree *tree, size_t n_prompts,
                           uint64_t seed, double *reward, gl_error *err);

#endif
