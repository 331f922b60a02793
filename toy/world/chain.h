/* Exact sums over all responses of a bigram policy, without listing them (paper/methods.md §6.6).
 *
 * The graph of last letters: node 0 stands before the first letter, node 1 + a behind letter a; an
 * edge is node * vocabulary + token, and the end token leads nowhere. A response is a path of at
 * most `horizon` edges. With a measure m_t on the edges of every position t and the state s of an
 * automaton that reads the letters, sums over responses y of
 *
 *   m(y) v(y),   m(y) = prod_t m_t(edge_t),   v(y) = value[state at the end] * by_length[T - 1]
 *
 * follow from a backward and a forward pass over (node, state). m need not be a probability: the
 * product of a sampler's distribution and importance weights of tokens is one, and so is its
 * square.
 */
#ifndef GEPOLAB_TOY_WORLD_CHAIN_H
#define GEPOLAB_TOY_WORLD_CHAIN_H

#include "core/rl/response_tree.h"
#include "toy/world/automata.h"

typedef struct toy_chain {
  const response_tree *graph;     /* borrowed */
  const toy_automaton *automaton; /* borrowed; NULL: one state, in which nothing changes */
} toy_chain;

/* The graph of that many letters; level, length and path stay NULL, n_responses 0. Released with
 * response_tree_fini(). GL_ENOMEM. */
gl_status toy_chain_graph(response_tree *graph, size_t letters, size_t horizon, int has_end,
                          gl_error *err);

/* Doubles of scratch that the functions below need for automata of up to that many states. */
size_t toy_chain_scratch(const response_tree *graph, size_t states);

/* sum_y m(y) v(y). log_m[horizon] points to the logarithms of m_t to the power 1 / power, tables
 * over edges; equal neighbours are exponentiated once. value NULL: 1; by_length[horizon] NULL: 1.
 * Where flow is not NULL, flow[n_edges] += sum_y m(y) v(y) #(e in y), from which every derivative
 * of the sum by log m follows. */
double toy_chain_sum(const toy_chain *chain, const double *const *log_m, double power,
                     const double *value, const double *by_length, double *flow, double *scratch);

/* visit[horizon * n_nodes] = the probability of standing at a node before each position, under the
 * distribution whose logarithms log_m points to. */
void toy_chain_visits(const response_tree *graph, const double *const *log_m, double *visit,
                      double *scratch);

#endif
