/* Sequence worlds: the tree of responses and the rewards of tasks. */
#include "core/rl/sequence_task.h"

#include "core/config/fields.h"
#include "core/random/rng.h"

#include <stdlib.h>
#include <string.h>

/* --- the tree of responses: prefixes and their children --- */

/* Counts the nodes per level and the responses; returns 0 if the limits are exceeded. */
static int count_nodes(response_tree *t) {
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

/* Ends a response with this edge, and writes its path from its end, following entered_by to the
 * root. */
static void tree_end_response(response_tree *t, size_t response, size_t length, size_t edge) {
  int32_t *path = t->path + response * t->horizon, e = (int32_t)edge;
  t->next[edge] = ~(int32_t)response;
  t->length[response] = (int32_t)length;
  for (size_t back = length; back-- > 0;) {
    path[back] = e;
    e = t->entered_by[(size_t)e / t->vocabulary];
  }
  for (size_t rest = length; rest < t->horizon; ++rest) path[rest] = -1;
}

/* Numbers child nodes and responses level by level. */
static void connect_nodes(response_tree *t) {
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
        tree_end_response(t, response++, d + 1, edge);
      }
}

gl_status response_tree_init(response_tree *tree, size_t vocabulary, size_t horizon, int has_end,
                             gl_error *err) {
  *tree = (response_tree){.vocabulary = vocabulary, .horizon = horizon, .has_end = has_end};
  if (vocabulary < (has_end ? 2u : 1u) || horizon < 1 || horizon > TREE_MAX_PATH ||
      !count_nodes(tree)) {
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
  (void)count_nodes(tree);
  connect_nodes(tree);
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

void response_tree_along_paths(const response_tree *t, const double *edge, double *along) {
  for (size_t i = 0; i < t->n_responses * t->horizon; ++i)
    along[i] = t->path[i] < 0 ? 0 : edge[t->path[i]];
}

void response_tree_gather(const response_tree *t, const double *along, double *edge) {
  memset(edge, 0, t->n_edges * sizeof *edge);
  for (size_t i = 0; i < t->n_responses * t->horizon; ++i)
    if (t->path[i] >= 0) edge[t->path[i]] += along[i];
}

/* --- tasks --- */

/* Entity of RNG_WORLD for hidden sequences. */
enum { HIDDEN_ENTITY = 2 };

typedef struct sequence {
  const size_t *token;
  size_t n;
} sequence;

gl_status sequence_section_read(sequence_section *out, cfg_reader *r) {
  sequence_section s = {0};
  cfg_of(r, "world.kind", "sequence");
  s.vocabulary = field_count(r, "vocabulary");
  s.horizon = field_count(r, "horizon");
  s.has_end = field_flag(r, "end_token");
  if (r->status == GL_OK && s.vocabulary == 1 && !s.has_end)
    r->status = cfg_fail(cfg_child(r, "vocabulary"), r->err,
                         "one letter without end_token makes one response, and nothing can be "
                         "learned; give 2 letters or more");
  s.n_prompts = field_count(r, "prompts");
  s.task.task = (sequence_task)field_choice(r, "task");
  s.task.graded = field_choice(r, "reward");
  s.task.modulus = field_count_or(r, "modulus", s.vocabulary);
  s.task.needle_length = cfg_count(r, "needle_length", s.horizon < 2 ? 1 : 2, 1, s.horizon);
  *out = s;
  return r->status;
}

gl_status sequence_section_tree(response_tree *tree, const sequence_section *s,
                                const cfg_node *section, gl_error *err) {
  gl_error why = {0};
  gl_status status =
      response_tree_init(tree, s->vocabulary + (s->has_end ? 1 : 0), s->horizon, s->has_end, &why);
  if (status != GL_EINPUT) return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
  const cfg_node *place = cfg_find(section, "horizon");
  if (place == NULL) place = cfg_find(section, "vocabulary");
  return cfg_fail(place != NULL ? place : section, err, "%s", why.text);
}

static double score_target(sequence y, sequence hidden) {
  size_t longer = y.n > hidden.n ? y.n : hidden.n, same = 0;
  for (size_t t = 0; t < y.n && t < hidden.n; ++t) same += y.token[t] == hidden.token[t];
  return longer == 0 ? 1 : (double)same / (double)longer;
}

static double score_sum_mod(sequence y, size_t x, size_t modulus) {
  size_t sum = 0;
  for (size_t t = 0; t < y.n; ++t) sum = (sum + y.token[t]) % modulus;
  size_t off = (sum + modulus - x % modulus) % modulus;
  if (off > modulus - off) off = modulus - off;
  return modulus < 2 ? 1 : 1 - (double)off / (double)(modulus / 2);
}

static double score_parity(sequence y, size_t x) {
  size_t ones = 0;
  for (size_t t = 0; t < y.n; ++t) ones += y.token[t] == 1;
  return ones % 2 == x % 2;
}

static double score_sorted(sequence y, size_t x, size_t most) {
  if (y.n == 0) return 0;
  size_t wanted = 1 + x % most, distinct = 0, rising = 0;
  for (size_t t = 0; t < y.n; ++t) {
    size_t before = 0;
    while (before < t && y.token[before] != y.token[t]) ++before;
    distinct += before == t;
    rising += t > 0 && y.token[t] >= y.token[t - 1];
  }
  size_t off = distinct > wanted ? distinct - wanted : wanted - distinct;
  double order = y.n > 1 ? (double)rising / (double)(y.n - 1) : 1;
  return 0.5 * (order + 1 - (double)off / (double)most);
}

static double score_needle(sequence y, sequence needle) {
  size_t best = 0;
  for (size_t start = 0; start < y.n; ++start) {
    size_t k = 0;
    while (k < needle.n && start + k < y.n && y.token[start + k] == needle.token[k]) ++k;
    if (k > best) best = k;
  }
  return (double)best / (double)needle.n;
}

/* Samples the hidden sequence of prompt x: its length (variable if responses have variable length)
 * and its tokens. */
static sequence hide(const sequence_task_spec *spec, const response_tree *tree, size_t letters,
                     uint64_t seed, size_t x, size_t *token) {
  rng_stream stream = rng_stream_at(seed, RNG_WORLD, HIDDEN_ENTITY);
  uint64_t first = (uint64_t)x * (TREE_MAX_PATH + 1);
  size_t n = tree->horizon;
  if (spec->task == TASK_NEEDLE) n = spec->needle_length;
  if (spec->task == TASK_TARGET && tree->has_end)
    n = 1 + (size_t)(rng_u01(rng_block(stream, first).v[0]) * (double)tree->horizon);
  for (size_t t = 0; t < n; ++t)
    token[t] = (size_t)(rng_u01(rng_block(stream, first + 1 + t).v[0]) * (double)letters);
  return (sequence){token, n};
}

static double score(const sequence_task_spec *spec, const response_tree *tree, size_t letters,
                    size_t x, sequence y, sequence hidden) {
  switch (spec->task) {
  case TASK_TARGET:
    return score_target(y, hidden);
  case TASK_SUM_MOD:
    return score_sum_mod(y, x, spec->modulus);
  case TASK_PARITY:
    return score_parity(y, x);
  case TASK_SORTED:
    return score_sorted(y, x, letters < tree->horizon ? letters : tree->horizon);
  case TASK_NEEDLE:
    return score_needle(y, hidden);
  case N_TASKS:
    break;
  }
  return 0;
}

/* The letters of response y, without the token that ends it; returns their number. */
static size_t letters_of(const response_tree *tree, size_t y, size_t letters, size_t *token) {
  size_t n = 0;
  for (size_t t = 0; t < (size_t)tree->length[y]; ++t) {
    const size_t a = (size_t)tree->path[y * tree->horizon + t] % tree->vocabulary;
    if (a < letters) token[n++] = a;
  }
  return n;
}

gl_status sequence_task_rewards(const sequence_task_spec *spec, const response_tree *tree,
                                size_t n_prompts, uint64_t seed, double *reward, gl_error *err) {
  size_t letters = tree->vocabulary - (tree->has_end ? 1 : 0), length = tree->horizon;
  size_t *hidden_token = calloc(length, sizeof *hidden_token),
         *token = calloc(length, sizeof *token);
  if (hidden_token == NULL || token == NULL) {
    free(hidden_token);
    free(token);
    return gl_fail_memory(err, "the rewards of responses");
  }
  for (size_t x = 0; x < n_prompts; ++x) {
    sequence hidden = hide(spec, tree, letters, seed, x, hidden_token);
    for (size_t y = 0; y < tree->n_responses; ++y) {
      const size_t n = letters_of(tree, y, letters, token);
      double s = score(spec, tree, letters, x, (sequence){token, n}, hidden);
      reward[x * tree->n_responses + y] = spec->graded ? s : s >= 1;
    }
  }
  free(hidden_token);
  free(token);
  return GL_OK;
}
