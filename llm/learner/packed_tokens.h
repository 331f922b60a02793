/* Packed sequences, and problems as tokens, for sampling, updates, evaluation and warm-up. */
#ifndef GEPOLAB_LLM_LEARNER_PACKED_TOKENS_H
#define GEPOLAB_LLM_LEARNER_PACKED_TOKENS_H

#include "llm/learner/run_spec.h"

/* A response in a pack. */
typedef struct pack_member {
  const int32_t *response; /* borrowed until the pack is cleared or another prompt begins */
  size_t n;
  size_t sequence; /* the sequence that includes all its rows, directly or through parents */
  size_t first;    /* index of its first entry in target_of */
} pack_member;

/* Responses packed for a forward that computes the log-probability of every token. If the model
 * does it faster (model_shares()), a common prefix of responses to one prompt (the prompt and often
 * more) is packed and run once. Otherwise a response is packed completely, unless an earlier one
 * begins with it. Equal tokens after equal prefixes are one target, unless their samplers kept
 * different sets; target_of maps each token to its target. Zero it before first use; capacities
 * only grow. */
typedef struct token_pack {
  size_t n_sequences, n_tokens, n_targets;
  size_t n_trees, n_members;
  size_t n_asked; /* number of tokens of all responses */
  size_t cap_sequences, cap_trees, cap_tokens, cap_targets, cap_asked, cap_members, cap_kept;
  size_t *start; /* [n_sequences + 1] first packed token of each sequence */
  size_t *parent, *before,
      *tree;            /* [n_sequences], [n_sequences], [n_trees + 1]: see shared_tokens */
  int32_t *token;       /* [n_tokens] packed tokens */
  size_t *target_after; /* [n_targets] index of the packed token before each target */
  int32_t *target;      /* [n_targets] tokens to score */
  kept_shape shape;     /* shape of the targets' sets of kept tokens; no words: no sets */
  uint32_t *kept;       /* [n_targets] sets */
  kept_shape watched; /* shape of the kept sets that split distributions into kept and other tokens;
                         no words: none are split */
  size_t n_watched, cap_watched, cap_watched_sets, cap_watched_of;
  size_t *watched_target; /* [n_watched] the target whose distribution is split */
  uint32_t *watched_set;  /* [n_watched] sets */
  size_t *watched_of;     /* [n_asked] index of each token's split, below n_watched */
  size_t *place;          /* [n_targets] workspace for sorting */
  size_t *target_of;      /* [n_asked] index of each token's target, in the order of adding */
  pack_member *member;    /* [n_members] responses to the present prompt */
  const int32_t *prompt;  /* [n_prompt] borrowed */
  size_t n_prompt;
  int shares;     /* 1: prefixes may be shared */
  int any_shared; /* 1: some prefixes are shared */
  int unordered;  /* 1: targets are not yet in ascending order of rows */
} token_pack;

void token_pack_fini(token_pack *p);
void token_pack_clear(token_pack *p, int shares);
/* To be called after clearing: distributions are renormalised over the samplers' kept tokens, in
 * sets of that shape. */
void token_pack_keep(token_pack *p, const kept_shape *shape);
/* To be called after clearing: token_pack_parts() will compute the learner's probability of the
 * samplers' kept tokens, in sets of that shape. Packed rows and targets do not change. */
void token_pack_watch(token_pack *p, const kept_shape *shape);
/* Responses added from now on, until the pack is cleared, are to prompt[n], n > 0. */
void token_pack_prompt(token_pack *p, const int32_t *prompt, size_t n);
/* Adds response[n], n > 0, to the prompt. The last token is a target but not a packed row. If a
 * pack that is not empty could exceed `most` tokens or targets, *added is 0 and nothing changes.
 * Errors: GL_ENOMEM. */
gl_status token_pack_add(token_pack *p, const int32_t *response, size_t n, size_t most, int *added,
                         gl_error *err);
/* token_pack_add() with the kept set of each token, kept [n], if the pack renormalises over kept
 * sets or splits by them (else NULL). */
gl_status token_pack_add_kept(token_pack *p, const int32_t *response, const uint32_t *kept,
                              size_t n, size_t most, int *added, gl_error *err);
/* To be called after the last response: sorts the targets into the order that a forward requires.
 */
gl_status token_pack_finish(token_pack *p, gl_error *err);
/* Calls model_forward_with() for a finished pack: logp and entropy [n_targets]. */
gl_status token_pack_forward(const token_pack *p, model *m, double temperature, int keep,
                             double *logp, double *entropy, gl_error *err);
/* After token_pack_forward(): calls model_kept_parts() for every split distribution; arrays
 * [n_watched]. */
gl_status token_pack_parts(const token_pack *p, model *m, double *const part[3], gl_error *err);

/* Some problems of a split, with the tokens of their prompts. */
typedef struct problem_set {
  size_t n;
  problem *problem; /* [n] */
  size_t *start;    /* [n + 1] first token of each prompt */
  int32_t *token;
} problem_set;

/* Reads problem number[i] of the split, i in [0, n). Release with problem_set_fini(). */
gl_status problem_set_init(problem_set *set, const run_spec *spec, task_split split,
                           const uint64_t *number, size_t n, gl_error *err);
void problem_set_fini(problem_set *set);

#endif
