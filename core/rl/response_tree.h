/* Every response of a world small enough to be enumerated, as a path through a tree of prefixes.
 * The tree is the same for all prompts. A bandit is the tree with one node.
 *
 * Nodes are numbered by depth, then lexicographically, so that a loop over increasing numbers
 * meets parents before children and a decreasing one children first. An edge is node * vocabulary
 * + token: every table of per-token quantities of one prompt (log-probabilities, logits) is an
 * array over edges. Responses are numbered by length, then lexicographically.
 */
#ifndef GEPOLAB_CORE_RL_RESPONSE_TREE_H
#define GEPOLAB_CORE_RL_RESPONSE_TREE_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

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

#endif
