/* The tree of a sequence world's responses: where each prefix stands and how long responses are. */
#include "core/rl/response_tree.h"

#include <stdlib.h>
#include <string.h>

/* Counts nodes per level and responses; 0 when the limits are exceeded. */
static int count(response_tree *t) {
  size_t branching = t->vocabulary - (t->has_end ? 1 : 0), width = 1, endings = 0;
  t->n_nodes = 0;
  for (size_t d = 0; d < t->horizon; ++d) {
    if (width > TREE_MAX_RESPONSES) return 0;
    if (t->level != NULL) t->level[d] = t->n_nodes;
    t->n_nodes += width;
    if (t->has_end && d + 1 < t->horizon) endings += width;
    if (d + 1 < t->horizon) width *= branching;
    if (t->n_nodes > 2 * TREE_MAX_RESPONSES) return 0;
  }
  if (t->vocabulary > TREE_MAX_RESPONSES || width > TREE_MAX_RESPONSES) return 0;
  t->n_responses = endings + width * t->vocabulary;
  t->n_edges = t->n_nodes * t->vocabulary;
  if (t->level != NULL) t->level[t->horizon] = t->n_nodes;
  return t->n_responses <= TREE_MAX_RESPONSES && t->horizon <= TREE_MAX_PATH / t->n_responses;
}

/* Numbers children and responses level by level and writes each response's path, backwards, along
 * the edges by which the nodes were entered. */
static void connect(response_tree *t) {
  int32_t *entered_by = t->entered_by;
  size_t response = 0;
  entered_by[0] = -1;
  for (size_t d = 0; d < t->horizon; ++d)
    for (size_t n = t->level[d]; n < t->level[d + 1]; ++n)
      for (size_t a = 0; a < t->vocabulary; ++a) {
        size_t edge = n * t->vocabulary + a;
        int ends = d + 1 == t->horizon || (t->has_end && a + 1 == t->vocabulary);
        if (!ends) {
          size_t branching = t->vocabulary - (t->has_end ? 1 : 0);
          size_t child = t->level[d + 1] + (n - t->level[d]) * branching + a;
          t->next[edge] = (int32_t)child;
          entered_by[child] = (int32_t)edge;
          continue;
        }
        t->next[edge] = ~(int32_t)response;
        t->length[response] = (int32_t)(d + 1);
        int32_t *path = t->path + response * t->horizon;
        int32_t e = (int32_t)edge;
        for (size_t back = d + 1; back-- > 0;) {
          path[back] = e;
          e = entered_by[(size_t)e / t->vocabulary];
        }
        for (size_t rest = d + 1; rest < t->horizon; ++rest) path[rest] = -1;
        ++response;
      }
}

gl_status response_tree_init(response_tree *tree, size_t vocabulary, size_t horizon, int has_end,
                             gl_error *err) {
  *tree = (response_tree){.vocabulary = vocabulary, .horizon = horizon, .has_end = has_end};
  if (vocabulary < (has_end ? 2u : 1u) || horizon < 1 || horizon > TREE_MAX_PATH || !count(tree)) {
    *tree = (response_tree){0};
    return gl_fail(err, GL_EINPUT,
                   "a vocabulary of %zu over %zu tokens has more than the %zu responses that are "
                   "enumerated; make the vocabulary or the horizon smaller",
                   vocabulary, horizon, TREE_MAX_RESPONSES);
  }
  tree->level = calloc(horizon + 1, sizeof *tree->level);
  tree->next = calloc(tree->n_edges, sizeof *tree->next);
  tree->length = calloc(tree->n_responses, sizeof *tree->length);
  tree->path = calloc(tree->n_responses, horizon * sizeof *tree->path);
  tree->entered_by = calloc(tree->n_nodes, sizeof *tree->entered_by);
  if (tree->level == NULL || tree->next == NULL || tree->length == NULL || tree->path == NULL ||
      tree->entered_by == NULL) {
    response_tree_fini(tree);
    return gl_fail_memory(err, "a tree of responses");
  }
  (void)count(tree);
  connect(tree);
  return GL_OK;
}

void response_tree_fini(response_tree *tree) {
  free(tree->level);
  free(tree->entered_by);
  free(tree->next);
  free(tree->length);
  free(tree->path);
  *tree = (response_tree){0};
}
