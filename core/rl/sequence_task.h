/* Enumerable worlds of token sequences: the tree of all responses, and verifiable rewards on whole
 * sequences. */
#ifndef GEPOLAB_CORE_RL_SEQUENCE_TASK_H
#define GEPOLAB_CORE_RL_SEQUENCE_TASK_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>
#include <stdint.h>

/* --- the tree of responses --- */
/* All responses of a world small enough to be enumerated, as paths through a tree of prefixes. The
 * tree is the same for all prompts. A bandit is the tree with one node.
 *
 * Nodes are numbered by depth, then lexicographically, so that a loop over increasing numbers
 * visits parents before children and a decreasing one children before parents. An edge is node *
 * vocabulary + token: every per-token table of one prompt (log-probabilities, logits) is an array
 * over edges. Responses are numbered by length, then lexicographically. */

/* Limits of a tree: responses, and responses x horizon. They allow exact work, but a mistyped
 * horizon gives an error instead of exhausting memory. */
#define TREE_MAX_RESPONSES ((size_t)1 << 18)
#define TREE_MAX_PATH ((size_t)1 << 22)

typedef struct response_tree {
  size_t vocabulary; /* tokens at every node, the end token included */
  size_t horizon;    /* longest response, the end token included */
  int has_end;       /* the last token, vocabulary - 1, ends a response; for decision processes:
                        responses differ in length */
  size_t n_nodes, n_edges, n_responses;
  size_t *level;       /* [horizon + 1] first node of each depth */
  int32_t *entered_by; /* [n_nodes] the edge that leads to the node, -1 for the root */
  int32_t *next;       /* [n_edges] child node, or ~response if the response is complete */
  int32_t *length;     /* [n_responses] number of tokens */
  int32_t *path;       /* [n_responses * horizon] edges of each response, padded with -1 */
} response_tree;

/* Builds the tree; vocabulary >= 1 (>= 2 with an end token), horizon >= 1. Errors: GL_ENOMEM,
 * GL_EINPUT if the tree exceeds the limits above, with the number of responses it would have. */
gl_status response_tree_init(response_tree *tree, size_t vocabulary, size_t horizon, int has_end,
                             gl_error *err);
void response_tree_fini(response_tree *tree);
/* Writes the value of every edge that a response uses to along[n_responses * horizon], and 0 behind
 * its end. */
void response_tree_along_paths(const response_tree *tree, const double *edge, double *along);
/* The reverse: edge[n_edges] is the sum of the values along all responses that use the edge. */
void response_tree_gather(const response_tree *tree, const double *along, double *edge);

/* --- tasks --- */

/* The condition that a sequence must satisfy for prompt x. Content is the response without its end
 * token; letters are the tokens that can be content. Every task has a score in [0,1], 1 if solved.
 * The reward is the score (graded) or 1 if the score is 1, else 0 (exact). */
typedef enum sequence_task {
  TASK_TARGET, /* content equals the prompt's hidden sequence; score: fraction of matching positions
                  over the longer of the two lengths */
  TASK_SUM_MOD, /* the tokens sum to x modulo `modulus`; score: 1 - circular distance over the
                   largest possible distance */
  TASK_PARITY,  /* the number of 1s has the parity of x; no partial score */
  TASK_SORTED,  /* non-decreasing, with exactly 1 + x mod min(letters, horizon) distinct tokens;
                   score: mean of the fraction of non-decreasing steps and the closeness of the
                   number of distinct tokens */
  TASK_NEEDLE,  /* the prompt's hidden needle occurs in the content; score: longest prefix of the
                   needle that occurs */
  N_TASKS
} sequence_task;

typedef struct sequence_task_spec {
  sequence_task task;
  int graded;
  size_t modulus;       /* for sum_mod */
  size_t needle_length; /* for needle, at most the horizon */
} sequence_task_spec;

/* Settings of sequences in a world section: {vocabulary, horizon, end_token, prompts, task, reward:
 * exact | graded, modulus, needle_length}. */
enum { SEQUENCE_MAX_PROMPTS = 1 << 20 };
typedef struct sequence_section {
  size_t vocabulary; /* number of letters; the end token is additional */
  size_t horizon, n_prompts;
  int has_end;
  sequence_task_spec task;
} sequence_section;
/* Reads these keys of the section at r; r holds the first error. */
gl_status sequence_section_read(sequence_section *out, cfg_reader *r);
/* Builds the tree of the section's responses. Errors: GL_ENOMEM, GL_EINPUT at the section's horizon
 * or vocabulary if the tree is too large. */
gl_status sequence_section_tree(response_tree *tree, const sequence_section *s,
                                const cfg_node *section, gl_error *err);

/* Writes reward[n_prompts * n_responses] of a sequence world; hidden sequences are sampled with
 * purpose RNG_WORLD. */
gl_status sequence_task_rewards(const sequence_task_spec *spec, const response_tree *tree,
                                size_t n_prompts, uint64_t seed, double *reward, gl_error *err);

/* The recipe fields of a sequence world's task. */
extern const struct field_table sequence_fields;

#endif
