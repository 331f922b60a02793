/* Worlds of token sequences that are enumerated: the tree of their responses, and verifiable
 * rewards on whole sequences. */
#ifndef GEPOLAB_CORE_RL_SEQUENCE_TASK_H
#define GEPOLAB_CORE_RL_SEQUENCE_TASK_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>
#include <stdint.h>

/* --- the tree of responses --- */
/* Every response of a world small enough to be enumerated, as a path through a tree of prefixes.
 * The tree is the same for all prompts. A bandit is the tree with one node.
 *
 * Nodes are numbered by depth, then lexicographically, so that a loop over increasing numbers
 * meets parents before children and a decreasing one children first. An edge is node * vocabulary
 * + token: every table of per-token quantities of one prompt (log-probabilities, logits) is an
 * array over edges. Responses are numbered by length, then lexicographically.
 */

/* Largest tree: responses, and responses x horizon. Enough for exact work, small enough that a
 * mistyped horizon is an error and not a full memory. */
#define TREE_MAX_RESPONSES ((size_t)1 << 18)
#define TREE_MAX_PATH ((size_t)1 << 22)

typedef struct response_tree {
  size_t vocabulary; /* tokens at every node, the end token included */
  size_t horizon;    /* longest response, the end token included */
  int has_end;       /* the last token, vocabulary - 1, ends a response */
  size_t n_nodes, n_edges, n_responses;
  size_t *level;       /* [horizon + 1] first node of each depth */
  int32_t *entered_by; /* [n_nodes] the edge that leads there, -1 for the first */
  int32_t *next;       /* [n_edges] node reached, or ~response where the response is complete */
  int32_t *length;     /* [n_responses] */
  int32_t *path;       /* [n_responses * horizon] edges of each response, then -1 */
} response_tree;

/* vocabulary >= 1 (>= 2 with an end token), horizon >= 1. GL_EINPUT when the tree would exceed the
 * limits above, with the number of responses it would have. */
gl_status response_tree_init(response_tree *tree, size_t vocabulary, size_t horizon, int has_end,
                             gl_error *err);
void response_tree_fini(response_tree *tree);

/* --- tasks --- */
/* Worlds of token sequences that are enumerated, and verifiable rewards on whole sequences. */

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
