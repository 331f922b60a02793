/* Packed sequences and problems as tokens: what drawing, updating, evaluating and warming up share.
 */
#ifndef GEPOLAB_LLM_LEARNER_PACKED_TOKENS_H
#define GEPOLAB_LLM_LEARNER_PACKED_TOKENS_H

#include "llm/learner/run_spec.h"

/* Builds packed_tokens: sequences of a prompt and a response, laid out for a forward that wants the
 * log-probability of every token of the response. Zeroed before first use; capacities only grow. */
typedef struct token_pack {
  size_t n_sequences, n_tokens, n_targets;
  size_t cap_sequences, cap_tokens, cap_targets;
  size_t *start;        /* [n_sequences + 1] */
  int32_t *token;       /* [n_tokens] */
  size_t *target_after; /* [n_targets] */
  int32_t *target;      /* [n_targets] */
} token_pack;

void token_pack_fini(token_pack *p);
void token_pack_clear(token_pack *p);
/* Adds prompt[n_prompt] followed by response[n_response], neither empty. Every token of the
 * response is a target; its last one is not packed, for no token follows it. */
gl_status token_pack_add(token_pack *p, const int32_t *prompt, size_t n_prompt,
                         const int32_t *response, size_t n_response, gl_error *err);
/* Borrowed view, valid until the next change. */
packed_tokens token_pack_view(const token_pack *p);

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
