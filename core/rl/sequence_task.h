/* Worlds of token sequences that are enumerated, and verifiable rewards on whole sequences. */
#ifndef GEPOLAB_CORE_RL_SEQUENCE_TASK_H
#define GEPOLAB_CORE_RL_SEQUENCE_TASK_H

#include "core/config/config.h"
#include "core/rl/response_tree.h"

/* What a sequence has to satisfy for prompt x. Content is the response without its end token;
 * letters are the tokens that can be content. Every task has a score in [0,1], 1 when solved; the
 * reward is the score (graded) or whether it is 1 (exact). */
typedef enum sequence_task {
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
} sequence_task;

typedef struct sequence_task_spec {
  sequence_task task;
  int graded;
  size_t modulus;       /* sum_mod */
  size_t needle_length; /* needle, at most the horizon */
} sequence_task_spec;

/* What a world section says of its sequences: {vocabulary, horizon, end_token, prompts, task,
 * reward: exact | graded, modulus, needle_length}. */
enum { SEQUENCE_MAX_PROMPTS = 1 << 20 };
typedef struct sequence_section {
  size_t vocabulary; /* letters: the end token is one more */
  size_t horizon, n_prompts;
  int has_end;
  sequence_task_spec task;
} sequence_section;
/* Reads those keys of a section that r is at; r keeps the first error. */
gl_status sequence_section_read(sequence_section *out, cfg_reader *r);
/* The tree of the section's responses; GL_EINPUT at its horizon or vocabulary if it is too large.
 */
gl_status sequence_section_tree(response_tree *tree, const sequence_section *s,
                                const cfg_node *section, gl_error *err);

/* reward[n_prompts * n_responses] of a sequence world; hidden sequences are drawn at RNG_WORLD. */
gl_status sequence_task_rewards(const sequence_task_spec *spec, const response_tree *tree,
                                size_t n_prompts, uint64_t seed, double *reward, gl_error *err);

/* The fields of a sequence world's task. */
extern const struct field_table sequence_fields;

#endif
