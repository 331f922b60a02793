/* Dynamic programmes over the last letter and the state of an automaton. */
#include "toy/world/chain.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

gl_status toy_chain_graph(response_tree *graph, size_t letters, size_t horizon, int has_end,
                          gl_error *err) {
  *graph = (response_tree){.vocabulary = letters + (has_end ? 1 : 0),
                           .horizon = horizon,
                           .has_end = has_end,
                           .n_nodes = letters + 1};
  graph->n_edges = graph->n_nodes * graph->vocabulary;
  graph->next = calloc(graph->n_edges, sizeof *graph->next);
  if (graph->next == NULL) return gl_fail_memory(err, "a graph of letters");
  for (size_t e = 0; e < graph->n_edges; ++e) {
    const size_t a = e % graph->vocabulary;
    graph->next[e] = a < letters ? (int32_t)(1 + a) : -1;
  }
  return GL_OK;
}

/* The parts of the scratch of one sum. */
typedef struct tables {
  double *m;     /* [n_edges] the measure of the position at hand */
  double *edge;  /* [n_edges] */
  double *ahead; /* [horizon * vocabulary * states] what follows a token read in a state */
  double *from;  /* [n_nodes * states] what follows a node in a state */
  double *mass;  /* [n_nodes * states] what leads to a node in a state */
  double *step;  /* [vocabulary * states] */
} tables;

size_t toy_chain_scratch(const response_tree *g, size_t states) {
  return 2 * g->n_edges + states * (g->horizon * g->vocabulary + 2 * g->n_nodes + g->vocabulary);
}

static tables chain_lay_out(const response_tree *g, size_t states, double *scratch) {
  tables t = {.m = scratch};
  t.edge = t.m + g->n_edges;
  t.ahead = t.edge + g->n_edges;
  t.from = t.ahead + g->horizon * g->vocabulary * states;
  t.mass = t.from + g->n_nodes * states;
  t.step = t.mass + g->n_nodes * states;
  return t;
}

static void exponentiate(const response_tree *g, const double *log_m, double power, double *m) {
  for (size_t e = 0; e < g->n_edges; ++e) m[e] = exp(power * log_m[e]);
}

static size_t state_after(const toy_chain *c, size_t letters, size_t state, size_t a) {
  return c->automaton != NULL ? c->automaton->next[state * letters + a] : 0;
}

/* What is worth reading token a in each state at position t: the value of the end, or what follows
 * the node that a leads to. */
static void look_ahead(const toy_chain *c, size_t t, const double *from, const double *value,
                       const double *by_length, double *ahead) {
  const response_tree *g = c->graph;
  const size_t letters = g->n_nodes - 1, states = c->automaton != NULL ? c->automaton->states : 1;
  const double length = by_length != NULL ? by_length[t] : 1;
  for (size_t a = 0; a < g->vocabulary; ++a)
    for (size_t s = 0; s < states; ++s) {
      const size_t to = a < letters ? state_after(c, letters, s, a) : s;
      const int ends = a >= letters || t + 1 == g->horizon;
      ahead[a * states + s] =
          ends ? (value != NULL ? value[to] : 1) * length : from[(1 + a) * states + to];
    }
}

/* Sums over edges, for every state: from[n][s] = sum_a m[n][a] ahead[a][s]. */
static void chain_gather(const response_tree *g, size_t states, const double *m,
                         const double *ahead, double *from) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)g->n_nodes, (int)states,
              (int)g->vocabulary, 1, m, (int)g->vocabulary, ahead, (int)states, 0, from,
              (int)states);
}

/* mass becomes that one token later. */
static void chain_advance(const toy_chain *c, const tables *t, size_t states) {
  const response_tree *g = c->graph;
  const size_t letters = g->n_nodes - 1;
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)g->vocabulary, (int)states,
              (int)g->n_nodes, 1, t->m, (int)g->vocabulary, t->mass, (int)states, 0, t->step,
              (int)states);
  memset(t->mass, 0, g->n_nodes * states * sizeof *t->mass);
  for (size_t a = 0; a < letters; ++a)
    for (size_t s = 0; s < states; ++s)
      t->mass[(1 + a) * states + state_after(c, letters, s, a)] += t->step[a * states + s];
}

/* flow += m * (mass ahead'), edge by edge. */
static void add_flow(const response_tree *g, const tables *t, size_t states, const double *ahead,
                     double *flow) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)g->n_nodes, (int)g->vocabulary,
              (int)states, 1, t->mass, (int)states, ahead, (int)states, 0, t->edge,
              (int)g->vocabulary);
  for (size_t e = 0; e < g->n_edges; ++e) flow[e] += t->m[e] * t->edge[e];
}

double toy_chain_sum(const toy_chain *c, const double *const *log_m, double power,
                     const double *value, const double *by_length, double *flow, double *scratch) {
  const response_tree *g = c->graph;
  const size_t states = c->automaton != NULL ? c->automaton->states : 1;
  const size_t start = c->automaton != NULL ? c->automaton->start : 0,
               width = g->vocabulary * states;
  const tables t = chain_lay_out(g, states, scratch);
  const double *held = NULL;
  for (size_t k = g->horizon; k-- > 0;) {
    look_ahead(c, k, t.from, value, by_length, t.ahead + k * width);
    if (held != log_m[k]) exponentiate(g, log_m[k], power, t.m);
    held = log_m[k];
    chain_gather(g, states, t.m, t.ahead + k * width, t.from);
  }
  const double total = t.from[start]; /* of node 0 */
  if (flow == NULL) return total;
  memset(t.mass, 0, g->n_nodes * states * sizeof *t.mass);
  t.mass[start] = 1;
  for (size_t k = 0; k < g->horizon; ++k) {
    if (held != log_m[k]) exponentiate(g, log_m[k], power, t.m);
    held = log_m[k];
    add_flow(g, &t, states, t.ahead + k * width, flow);
    if (k + 1 < g->horizon) chain_advance(c, &t, states);
  }
  return total;
}

void toy_chain_visits(const response_tree *g, const double *const *log_m, double *visit,
                      double *scratch) {
  const size_t letters = g->n_nodes - 1, v = g->vocabulary;
  const double *held = NULL;
  memset(visit, 0, g->horizon * g->n_nodes * sizeof *visit);
  visit[0] = 1;
  for (size_t k = 0; k + 1 < g->horizon; ++k) {
    const double *here = visit + k * g->n_nodes;
    double *after = visit + (k + 1) * g->n_nodes + 1;
    if (held != log_m[k]) exponentiate(g, log_m[k], 1, scratch);
    held = log_m[k];
    for (size_t n = 0; n < g->n_nodes; ++n)
      if (here[n] != 0)
        for (size_t a = 0; a < letters; ++a) after[a] += here[n] * scratch[n * v + a];
  }
}
