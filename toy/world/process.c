/* Decision processes as worlds that a run learns in: their trajectories are the responses.
 *
 * A token is an action together with the state that follows it, a * branches + k for the k-th state
 * that action a may lead to, so that sampling a token samples the environment, too. Its logit is
 * that of the action plus log P(s'|s,a), whose softmax is pi(a|s) P(s'|s,a); the last term is
 * constant in theta and cancels in every ratio of policies. */
#include "core/base/array.h"
#include "core/config/fields.h"
#include "toy/world/mdp.h"
#include "toy/world/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Logit of a token a * branches + k whose action a has at most k next states. Its probability
 * underflows to 0. The logit is finite, so that probability times log-probability is 0 and not
 * NaN. */
static const double IMPOSSIBLE = -1000;

/* A node of the tree under construction: its state, and the edge that leads to it (-1: root). */
typedef struct place {
  int32_t state, entered_by;
} place;

/* The tree under construction. */
typedef struct growth {
  const mdp *m;
  size_t branches, vocabulary;
  place *node; /* [n_nodes] nodes in order of depth */
  size_t n_nodes;
  int32_t *next; /* [n_next] edges' next nodes, as in response_tree */
  size_t n_next, n_responses;
  double *offset; /* [n_offsets] log P of each edge, or IMPOSSIBLE */
  size_t n_offsets;
} growth;

static const double *next_states(const mdp *m, size_t s, size_t a) {
  return m->transition + (s * m->actions + a) * m->states;
}

/* The largest number of possible next states of any state and action. */
static size_t count_branches(const mdp *m) {
  size_t most = 1;
  for (size_t pair = 0; pair < m->states * m->actions; ++pair) {
    size_t n = 0;
    for (size_t to = 0; to < m->states; ++to) n += m->transition[pair * m->states + to] > 0;
    if (n > most) most = n;
  }
  return most;
}

/* Adds an edge: to a new node with that state, or, if state is -1, to the end of a response. */
static gl_status add_edge(growth *g, double offset, int32_t state, gl_error *err) {
  int32_t *next = ARRAY_ADD(g->next, g->n_next);
  double *log_p = ARRAY_ADD(g->offset, g->n_offsets);
  place *node = state >= 0 ? ARRAY_ADD(g->node, g->n_nodes) : NULL;
  if (next == NULL || log_p == NULL || (state >= 0 && node == NULL))
    return gl_fail_memory(err, "the trajectories of a decision process");
  *log_p = offset;
  if (node != NULL) {
    *node = (place){state, (int32_t)g->n_next - 1};
    *next = (int32_t)g->n_nodes - 1;
    return GL_OK;
  }
  *next = ~(int32_t)g->n_responses++;
  if (g->n_responses <= TREE_MAX_RESPONSES && g->n_responses * g->m->horizon <= TREE_MAX_PATH)
    return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "the process has more trajectories than the %zu that are enumerated; shorten its "
                 "horizon, or make it smaller",
                 TREE_MAX_RESPONSES);
}

/* Adds the edges of one action. The state after the last action has no effect and is not sampled.
 */
static gl_status add_action(growth *g, size_t s, size_t a, bool is_last, gl_error *err) {
  const mdp *m = g->m;
  const double *p = next_states(m, s, a);
  size_t k = 0;
  gl_status status = GL_OK;
  if (is_last) status = add_edge(g, 0, -1, err), k = 1;
  for (size_t to = 0; to < m->states && !is_last && status == GL_OK; ++to)
    if (p[to] > 0) status = add_edge(g, log(p[to]), m->terminal[to] ? -1 : (int32_t)to, err), ++k;
  for (; k < g->branches && status == GL_OK; ++k) status = add_edge(g, IMPOSSIBLE, -1, err);
  return status;
}

/* Builds the tree level by level from the start state. */
static gl_status grow(growth *g, response_tree *t, size_t start, gl_error *err) {
  const size_t horizon = g->m->horizon;
  t->level = calloc(horizon + 1, sizeof *t->level);
  place *root = ARRAY_ADD(g->node, g->n_nodes);
  if (t->level == NULL || root == NULL) return gl_fail_memory(err, "a decision process");
  *root = (place){(int32_t)start, -1};
  gl_status status = GL_OK;
  for (size_t d = 0, n = 0; d < horizon && status == GL_OK; ++d) {
    const size_t end = t->level[d + 1] = g->n_nodes;
    for (; n < end && status == GL_OK; ++n)
      for (size_t a = 0; a < g->m->actions && status == GL_OK; ++a)
        status = add_action(g, (size_t)g->node[n].state, a, d + 1 == horizon, err);
  }
  return status;
}

/* Fills in the tree, and each response's path and reward by walking from its last edge to the
 * root. */
static gl_status finish_tree(toy_world *w, const growth *g, const cfg_node *section,
                             gl_error *err) {
  response_tree *t = &w->tree;
  const mdp *m = g->m;
  *t = (response_tree){.vocabulary = g->vocabulary,
                       .horizon = m->horizon,
                       .has_end = 1, /* responses may be shorter than the horizon */
                       .n_nodes = g->n_nodes,
                       .n_edges = g->n_next,
                       .n_responses = g->n_responses,
                       .level = t->level};
  t->entered_by = calloc(t->n_nodes, sizeof *t->entered_by);
  t->next = calloc(t->n_edges, sizeof *t->next);
  t->length = calloc(t->n_responses, sizeof *t->length);
  t->path = calloc(t->n_responses, t->horizon * sizeof *t->path);
  if (t->entered_by == NULL || t->next == NULL || t->length == NULL || t->path == NULL)
    return gl_fail_memory(err, "a tree of responses");
  memcpy(t->next, g->next, t->n_edges * sizeof *t->next);
  for (size_t n = 0; n < t->n_nodes; ++n) t->entered_by[n] = g->node[n].entered_by;
  gl_status status = toy_reserve_rewards(w, section, err);
  for (size_t end = 0; end < t->n_edges && status == GL_OK; ++end) {
    if (t->next[end] >= 0) continue;
    const size_t y = (size_t)~t->next[end];
    const bool can_be = g->offset[end] > IMPOSSIBLE;
    int32_t reversed[MDP_MAX_HORIZON], n = 0;
    for (int32_t e = (int32_t)end; e >= 0; e = t->entered_by[(size_t)e / t->vocabulary]) {
      const size_t node = (size_t)e / t->vocabulary,
                   action = (size_t)e % t->vocabulary / g->branches;
      if (can_be) w->reward[y] += m->reward[(size_t)g->node[node].state * m->actions + action];
      reversed[n++] = e;
    }
    t->length[y] = n;
    for (int32_t i = 0; i < (int32_t)t->horizon; ++i)
      t->path[y * t->horizon + (size_t)i] = i < n ? reversed[n - 1 - i] : -1;
  }
  return status;
}

/* The policy of the process: a logit per state and action, or features that states share. */
static gl_status set_features(toy_features *f, growth *g, gl_error *err) {
  const mdp *m = g->m;
  const size_t v = g->vocabulary, d = m->n_features;
  *f = (toy_features){.kind = d == 0 ? TOY_TEMPLATES : TOY_DENSE,
                      .vocabulary = v,
                      .n_nodes = g->n_nodes,
                      .n_prompts = 1,
                      .n_parameters = m->n_parameters,
                      .width = d == 0 ? 1 : d,
                      .branches = g->branches};
  if (g->branches > 1) f->offset = g->offset, g->offset = NULL;
  if (d == 0)
    f->index = calloc(g->n_nodes, sizeof *f->index);
  else
    f->value = calloc(g->n_nodes * v, d * sizeof *f->value);
  if (f->index == NULL && f->value == NULL) return gl_fail_memory(err, "a policy");
  for (size_t n = 0; n < g->n_nodes; ++n) {
    if (d == 0) f->index[n] = g->node[n].state;
    for (size_t token = 0; token < v && d > 0; ++token)
      memcpy(f->value + (n * v + token) * d,
             m->feature + ((size_t)g->node[n].state * m->actions + token / g->branches) * d,
             d * sizeof *f->value);
  }
  return GL_OK;
}

/* Refuses evaluation sets and, with random transitions, sampling settings that change the
 * distribution of tokens, because they would change the environment, too. */
static gl_status check_process_sampling(const toy_world *w, const cfg_node *section,
                                        gl_error *err) {
  const sampling_spec *s = &w->sampling, *e = &w->evaluation.dist;
  if (w->sets.n > 0)
    return cfg_fail(section, err, "a decision process has one start and no evaluation sets");
  if (w->features.offset == NULL) return GL_OK;
  if (s->temperature != 1 || sampling_truncates(s, w->tree.vocabulary) || sampling_distorts(s) ||
      w->evaluation.kind != EVALUATION_EXACT || e->temperature != 1 ||
      sampling_truncates(e, w->tree.vocabulary))
    return cfg_fail(section, err,
                    "in a decision process with random transitions a token holds the state that "
                    "follows, too, so that a temperature, top_k, top_p, noise or greedy evaluation "
                    "would change the environment; take them out, or choose a deterministic "
                    "process (slip: 0)");
  return GL_OK;
}

static gl_status build_tree(toy_world *w, const mdp *m, const cfg_node *section, gl_error *err) {
  growth g = {.m = m, .branches = count_branches(m)};
  g.vocabulary = m->actions * g.branches;
  size_t start = 0, starts = 0;
  for (size_t s = 0; s < m->states; ++s)
    if (m->start[s] > 0) start = s, ++starts;
  gl_error why = {.status = GL_OK};
  gl_status status = starts == 1 ? grow(&g, &w->tree, start, &why)
                                 : gl_fail(&why, GL_EINTERNAL, "a process with %zu starts", starts);
  if (status == GL_EINPUT) {
    const cfg_node *horizon = cfg_find(section, "horizon");
    cfg_fail(horizon != NULL ? horizon : section, err, "%s", why.text);
  } else if (status != GL_OK) {
    gl_fail(err, status, "%s", why.text);
  }
  w->n_prompts = 1;
  if (status == GL_OK) status = finish_tree(w, &g, section, err);
  if (status == GL_OK) status = set_features(&w->features, &g, err);
  free(g.node);
  free(g.next);
  free(g.offset);
  return status;
}

gl_status toy_process_build(toy_world *w, const cfg_node *section, uint64_t seed,
                            const cfg_node **init, gl_error *err) {
  static const evaluation_kind evaluations[] = {EVALUATION_EXACT, EVALUATION_GREEDY};
  cfg_reader r, own, policy;
  mdp *m = NULL;
  cfg_begin(&r, section, "world", err);
  evaluation_read(&w->evaluation, &r, &own, evaluations, 2);
  evaluation_sets_read(&w->sets, &own);
  gl_status status = cfg_end(&own);
  if (status == GL_OK) status = mdp_read(&m, &r, &policy, seed, err);
  *init = NULL;
  if (status == GL_OK) {
    *init = cfg_child(&policy, "init");
    w->reference = (toy_reference)field_choice(&policy, "reference");
    status = cfg_end(&policy);
  }
  if (status == GL_OK) status = cfg_end(&r);
  if (status == GL_OK) status = build_tree(w, m, section, err);
  if (status == GL_OK) status = check_process_sampling(w, section, err);
  mdp_free(m);
  return status;
}
