/* Packed sequences and problems as tokens: what drawing, updating, evaluating and warming up share.
 */
#ifndef GEPOLAB_LLM_LEARNER_PACKED_TOKENS_H
#define GEPOLAB_LLM_LEARNER_PACKED_TOKENS_H

#include "llm/learner/run_spec.h"

/* A response in a pack. */
typedef struct pack_member {
  const int32_t *response; /* borrowed until the pack is cleared or another prompt begins */
  size_t n;
  size_t sequence; /* which has all its rows */
  size_t first;    /* its first entry of target_of */
} pack_member;

/* Responses laid out for a forward that wants the log-probability of every token of each. What
 * responses to one prompt have in common, which is the prompt and often more, is packed and run
 * once where the model can share it (model_shares()); where it cannot, a response is packed whole,
 * unless an earlier one has all of it. Tokens that follow the same tokens and are the same are one
 * target, unless their samplers kept different tokens: target_of maps each token to its target.
 * Zeroed before first use; capacities only grow. */
typedef struct token_pack {
  size_t n_sequences, n_tokens, n_targets;
  size_t n_trees, n_members;
  size_t n_asked; /* tokens of all responses */
  size_t cap_sequences, cap_trees, cap_tokens, cap_targets, cap_asked, cap_members, cap_kept;
  size_t *start;                  /* [n_sequences + 1] */
  size_t *parent, *before, *tree; /* [n_sequences], [n_sequences], [n_trees + 1]: shared_tokens */
  int32_t *token;                 /* [n_tokens] */
  size_t *target_after;           /* [n_targets] */
  int32_t *target;                /* [n_targets] */
  kept_shape shape; /* of the targets' sets of kept tokens; no words: there are none */
  uint32_t *kept;   /* [n_targets] sets */
  kept_shape
      watched; /* of the sets by which distributions are cut in two parts; no words: they are not */
  size_t n_watched, cap_watched, cap_watched_sets, cap_watched_of;
  size_t *watched_target; /* [n_watched] the target before which the distribution stands */
  uint32_t *watched_set;  /* [n_watched] sets */
  size_t *watched_of;     /* [n_asked] which of them is a token's own */
  size_t *place;          /* [n_targets] for sorting */
  size_t *target_of;      /* [n_asked], responses in the order in which they were added */
  pack_member *member;    /* [n_members] responses to the prompt that is being packed */
  const int32_t *prompt;  /* [n_prompt] borrowed */
  size_t n_prompt;
  int shares;     /* beginnings may be shared */
  int any_shared; /* some are */
  int unordered;  /* targets do not ascend by rows */
} token_pack;

void token_pack_fini(token_pack *p);
void token_pack_clear(token_pack *p, int shares);
/* After clearing: distributions are renormalised over what samplers kept, in sets of that shape. */
void token_pack_keep(token_pack *p, const kept_shape *shape);
/* After clearing: token_pack_parts() will compute the learner's probability of what
 * samplers kept, in sets of that shape. Packed rows and targets stay the same. */
void token_pack_watch(token_pack *p, const kept_shape *shape);
/* Responses added from now on, until the pack is cleared, are to prompt[n], n > 0. */
void token_pack_prompt(token_pack *p, const int32_t *prompt, size_t n);
/* Adds response[n], n > 0, to the prompt. Its last token is a target only, for none follows it.
 * *added is 0, and nothing changes, where the pack would have more than `most` tokens and is not
 * empty. GL_ENOMEM. */
gl_status token_pack_add(token_pack *p, const int32_t *response, size_t n, size_t most, int *added,
                         gl_error *err);
/* The same with the set of each of its tokens, kept [n], where the pack has sets or watches them
 * (else NULL). */
gl_status token_pack_add_kept(token_pack *p, const int32_t *response, const uint32_t *kept,
                              size_t n, size_t most, int *added, gl_error *err);
/* After the last response: puts the targets into the order that a forward wants. */
gl_status token_pack_finish(token_pack *p, gl_error *err);
/* model_forward_with() of a finished pack: logp and entropy [n_targets]. */
gl_status token_pack_forward(const token_pack *p, model *m, double temperature, int keep,
                             double *logp, double *entropy, gl_error *err);
/* After that: model_kept_parts() of every watched distribution, [n_watched] each. */
gl_status token_pack_parts(const token_pack *p, model *m, double *const part[3], gl_error *err);

/* Some problems of a split with their prompts' tokens. */
typedef struct problem_set {
  size_t n;
  problem *problem; /* [n] */
  size_t *start;    /* [n + 1] */
  int32_t *token;
} problem_set;

/* Problem number[i] of the split, i in [0, n). Release with problem_set_fini(). */
gl_status problem_set_init(problem_set *set, const run_spec *spec, task_split split,
                           const uint64_t *number, size_t n, gl_error *err);
void problem_set_fini(problem_set *set);

#endif
