/* Exact quantities of one prompt, by the tree of responses or by dynamic programming. */
#include "toy/world/measure.h"

#include "toy/world/automaton.h"

#include <math.h>
#include <stdlib.h>

/* --- one walk over the tree of responses --- */

/* Computes the probability of reaching each node. Parents precede children, so one pass suffices.
 */
static void reach_nodes(const response_tree *t, const double *p, double *reach) {
  reach[0] = 1;
  size_t inner = t->horizon > 1 ? t->level[t->horizon - 1] : 0;
  for (size_t e = 0; e < inner * t->vocabulary; ++e)
    if (t->next[e] >= 0) reach[t->next[e]] = reach[e / t->vocabulary] * p[e];
}

double toy_exact_mean(const response_tree *t, const double *p, const double *value, double *reach) {
  double sum = 0;
  reach_nodes(t, p, reach);
  for (size_t n = 0; n < t->n_nodes; ++n) {
    double here = 0;
    for (size_t e = n * t->vocabulary; e < (n + 1) * t->vocabulary; ++e)
      if (t->next[e] < 0) here += p[e] * value[~t->next[e]];
    sum += reach[n] * here;
  }
  return sum;
}

double toy_exact_entropy(const response_tree *t, const double *p, const double *logp,
                         double *reach) {
  double entropy = 0, length = 0;
  reach_nodes(t, p, reach);
  for (size_t n = 0; n < t->n_nodes; ++n) {
    double here = 0;
    for (size_t e = n * t->vocabulary; e < (n + 1) * t->vocabulary; ++e)
      if (p[e] != 0) here -= p[e] * logp[e];
    entropy += reach[n] * here;
    length += reach[n];
  }
  return entropy / length;
}

double toy_exact_kl(const response_tree *t, const double *p, const double *logp, const double *logq,
                    double *reach) {
  double kl = 0;
  reach_nodes(t, p, reach);
  for (size_t n = 0; n < t->n_nodes; ++n) {
    if (reach[n] == 0) continue;
    double here = 0;
    for (size_t e = n * t->vocabulary; e < (n + 1) * t->vocabulary; ++e)
      if (p[e] != 0) here += p[e] * (logp[e] - logq[e]);
    kl += reach[n] * here;
  }
  return kl < 0 ? 0 : kl; /* rounding can make it slightly negative */
}

double toy_exact_log_collision(const response_tree *t, const double *logq, double *below) {
  for (size_t n = t->n_nodes; n-- > 0;) {
    double sum = 0;
    for (size_t e = n * t->vocabulary; e < (n + 1) * t->vocabulary; ++e)
      sum += exp(2 * logq[e]) * (t->next[e] < 0 ? 1 : below[t->next[e]]);
    below[n] = sum;
  }
  return log(below[0]);
}

/* --- recorded behaviour distributions --- */

size_t toy_behaviour_size(const toy_world *w, size_t parts) {
  return w->counted ? parts * (w->tree.n_edges + 1) : w->tree.n_edges;
}

size_t toy_behaviour_parts(const toy_world *w, size_t n, size_t values) {
  const size_t one = toy_behaviour_size(w, 1);
  if (n == 0 || values == 0 || values % (n * one) != 0) return 0;
  const size_t parts = values / (n * one);
  return !w->counted && parts != 1 ? 0 : parts;
}

/* dist[t] = the table for position t. */
static void dist_at_positions(const toy_world *w, toy_behaviour q, const double *tables,
                              const double *dist[AUTOMATON_MAX_HORIZON]) {
  size_t part = 0;
  for (size_t t = 0; t < w->tree.horizon; ++t) {
    while (part + 1 < q.parts && q.values[part + 1] <= (double)t) ++part;
    dist[t] = tables + part * w->tree.n_edges;
  }
}

static void same_at_each_position(const toy_world *w, const double *table,
                                  const double *dist[AUTOMATON_MAX_HORIZON]) {
  for (size_t t = 0; t < w->tree.horizon; ++t) dist[t] = table;
}

const double *toy_behaviour_node(const toy_world *w, toy_behaviour q, size_t edge,
                                 size_t position) {
  const size_t v = w->tree.vocabulary, first = edge / v * v;
  size_t part = 0;
  if (!w->counted) return q.values + first;
  while (part + 1 < q.parts && q.values[part + 1] <= (double)position) ++part;
  return q.values + q.parts + part * w->tree.n_edges + first;
}

gl_status toy_behaviour_collision(const toy_world *w, toy_behaviour q, int truncated, double *out,
                                  gl_error *err) {
  const response_tree *g = &w->tree;
  const size_t edges = q.parts * g->n_edges,
               scratch = w->counted ? toy_chain_scratch(g, 1) : g->n_nodes;
  const double *tables = w->counted ? q.values + q.parts : q.values;
  double *room = calloc(edges + scratch, sizeof *room);
  sampling_rank *rank = calloc(g->vocabulary, sizeof *rank);
  if (room == NULL || rank == NULL) {
    free(room);
    free(rank);
    return gl_fail_memory(err, "the exact denominator");
  }
  if (truncated) {
    toy_truncate(w, &w->sampling, tables, q.parts * g->n_nodes, room, rank);
    tables = room;
  }
  if (w->counted) {
    const double *dist[AUTOMATON_MAX_HORIZON];
    dist_at_positions(w, q, tables, dist);
    *out = log(toy_chain_sum(&(toy_chain){g, NULL}, dist, 2, NULL, NULL, room + edges));
  } else {
    *out = toy_exact_log_collision(g, tables, room + edges);
  }
  free(room);
  free(rank);
  return GL_OK;
}

/* --- responses --- */

int32_t toy_next(const toy_world *w, size_t edge, size_t position) {
  return w->counted && position + 1 == w->tree.horizon ? -1 : w->tree.next[edge];
}

int toy_walk(const toy_world *w, const int32_t *token, size_t n, size_t *edge) {
  int32_t at = 0;
  for (size_t k = 0; k < n; ++k) {
    if (at < 0 || token[k] < 0 || (size_t)token[k] >= w->tree.vocabulary) return 0;
    edge[k] = (size_t)at * w->tree.vocabulary + (size_t)token[k];
    at = toy_next(w, edge[k], k);
  }
  return at < 0;
}

/* Mean reward of the response of n tokens whose last step is `end` (see toy_next). */
static double reward_at(const toy_world *w, size_t x, const int32_t *token, size_t n, int32_t end) {
  if (!w->counted) return w->reward[x * w->tree.n_responses + (size_t)~end];
  const toy_automaton *m = w->automata + x;
  const size_t letters = w->tree.n_nodes - 1;
  size_t state = m->start;
  for (size_t k = 0; k < n; ++k)
    if ((size_t)token[k] < letters) state = m->next[state * letters + (size_t)token[k]];
  return m->reward[state];
}

size_t toy_finish(const toy_world *w, size_t x, const int32_t *token, double *reward) {
  int32_t at = 0;
  size_t n = 0;
  for (; at >= 0; ++n) at = toy_next(w, (size_t)at * w->tree.vocabulary + (size_t)token[n], n);
  *reward = reward_at(w, x, token, n, at);
  return n;
}

double toy_greedy_reward(const toy_world *w, size_t x, const double *p) {
  const size_t v = w->tree.vocabulary;
  const toy_automaton *m = w->counted ? w->automata + x : NULL;
  size_t state = m != NULL ? m->start : 0;
  int32_t at = 0;
  for (size_t k = 0; at >= 0; ++k) {
    size_t first = (size_t)at * v, best = first;
    if (isnan(p[first])) return NAN;
    for (size_t e = first + 1; e < first + v; ++e)
      if (p[e] > p[best]) best = e;
    if (m != NULL && best % v < w->tree.n_nodes - 1)
      state = m->next[state * (w->tree.n_nodes - 1) + best % v];
    at = toy_next(w, best, k);
  }
  return m != NULL ? m->reward[state] : w->reward[x * w->tree.n_responses + (size_t)~at];
}

/* --- sums over responses --- */

size_t toy_scratch(const toy_world *w) {
  if (!w->counted) return w->tree.n_nodes + w->tree.n_edges;
  size_t states = 1;
  for (size_t x = 0; x < w->n_prompts; ++x)
    if (w->automata[x].states > states) states = w->automata[x].states;
  return toy_chain_scratch(&w->tree, states) + w->tree.horizon * w->tree.n_nodes;
}

/* Sums over the tree of responses (p); in a counted world, which has too many to list, over the
 * states of the prompt's automaton and last letters (logp). */
double toy_mean_reward(const toy_world *w, size_t x, const double *p, const double *logp,
                       double *scratch) {
  if (!w->counted) return toy_exact_mean(&w->tree, p, w->reward + x * w->tree.n_responses, scratch);
  const double *dist[AUTOMATON_MAX_HORIZON];
  same_at_each_position(w, logp, dist);
  return toy_chain_sum(&(toy_chain){&w->tree, w->automata + x}, dist, 1, w->automata[x].reward,
                       NULL, scratch);
}

double toy_chain_kl(const toy_world *w, const double *visit, const double *const *logp,
                    const double *const *logq) {
  const response_tree *g = &w->tree;
  double kl = 0;
  for (size_t t = 0; t < g->horizon;) {
    size_t end = t + 1;
    while (end < g->horizon && logp[end] == logp[t] && logq[end] == logq[t]) ++end;
    for (size_t n = 0; n < g->n_nodes; ++n) {
      double reached = 0, here = 0;
      for (size_t k = t; k < end; ++k) reached += visit[k * g->n_nodes + n];
      if (reached == 0) continue;
      for (size_t e = n * g->vocabulary; e < (n + 1) * g->vocabulary; ++e) {
        const double p = exp(logp[t][e]);
        if (p != 0) here += p * (logp[t][e] - logq[t][e]);
      }
      kl += reached * here;
    }
    t = end;
  }
  return kl < 0 ? 0 : kl; /* rounding can make it slightly negative */
}

/* Mean entropy per token: E[sum_t H(p(.|last))] / E[T]. */
static double chain_entropy(const toy_world *w, const double *visit, const double *p,
                            const double *logp) {
  const response_tree *g = &w->tree;
  double entropy = 0, length = 0;
  for (size_t n = 0; n < g->n_nodes; ++n) {
    double reached = 0, here = 0;
    for (size_t t = 0; t < g->horizon; ++t) reached += visit[t * g->n_nodes + n];
    for (size_t e = n * g->vocabulary; e < (n + 1) * g->vocabulary; ++e)
      if (p[e] != 0) here -= p[e] * logp[e];
    entropy += reached * here;
    length += reached;
  }
  return entropy / length;
}

/* toy_measure() for counted worlds. q's tables follow the first positions of its parts. */
static toy_facts measure_counted(const toy_world *w, size_t x, const double *p, const double *logp,
                                 toy_behaviour q, const double *logref, double *scratch) {
  const double *at_p[AUTOMATON_MAX_HORIZON], *at_q[AUTOMATON_MAX_HORIZON],
      *at_ref[AUTOMATON_MAX_HORIZON];
  double *visit = scratch, *rest = scratch + w->tree.horizon * w->tree.n_nodes;
  same_at_each_position(w, logp, at_p);
  same_at_each_position(w, logref, at_ref);
  dist_at_positions(w, q, q.values + q.parts, at_q);
  toy_chain_visits(&w->tree, at_p, visit, rest);
  toy_facts f = {.entropy = chain_entropy(w, visit, p, logp),
                 .kl = toy_chain_kl(w, visit, at_p, at_q),
                 .kl_ref = toy_chain_kl(w, visit, at_p, at_ref),
                 .mean_reward = toy_mean_reward(w, x, p, logp, rest)};
  toy_chain_visits(&w->tree, at_q, visit, rest);
  f.kl_qp = toy_chain_kl(w, visit, at_q, at_p);
  return f;
}

toy_facts toy_measure(const toy_world *w, size_t x, const double *p, const double *logp,
                      toy_behaviour q, const double *logref, double *scratch) {
  const response_tree *t = &w->tree;
  double *edges = scratch + t->n_nodes;
  if (w->counted) return measure_counted(w, x, p, logp, q, logref, scratch);
  toy_facts f = {
      .entropy = toy_exact_entropy(t, p, logp, scratch),
      .kl = toy_exact_kl(t, p, logp, q.values, scratch),
      .kl_ref = toy_exact_kl(t, p, logp, logref, scratch),
      .mean_reward = toy_exact_mean(t, p, w->reward + x * t->n_responses, scratch),
  };
  for (size_t e = 0; e < t->n_edges; ++e) edges[e] = exp(q.values[e]);
  f.kl_qp = toy_exact_kl(t, edges, q.values, logp, scratch);
  return f;
}
