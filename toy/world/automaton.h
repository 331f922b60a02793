/* Rewards by a finite automaton: a response is read letter by letter, and the state in which it
 * ends decides its reward. What such a world is for: a policy that sees the last letter alone
 * (bigram) and a reward that sees a state alone make (state, last letter) a Markov chain, whose
 * sums over all responses are dynamic programmes, whatever their number. */
#ifndef GEPOLAB_TOY_WORLD_AUTOMATON_H
#define GEPOLAB_TOY_WORLD_AUTOMATON_H

#include "core/config/config.h"
#include "core/rl/sequence_task.h"

#include <stddef.h>
#include <stdint.h>

enum {
  AUTOMATON_MAX_LETTERS = 256,
  AUTOMATON_MAX_HORIZON = 64,
  AUTOMATON_MAX_STATES = 1024,
  AUTOMATON_MAX_PROMPTS = 4096
};

/* One prompt's automaton. */
typedef struct toy_automaton {
  size_t states, start;
  uint16_t *next; /* [states * letters] */
  double *reward; /* [states] of a response that ends there */
} toy_automaton;

/* What a world section says of its automata: {automaton: parity | count | contains | balanced |
 * table, letter, modulus, word, depth, table: {start, next, accept | rewards}}. r is at that
 * section and keeps the first error. Makes one automaton for each of n_prompts, which read letters
 * 0 .. letters - 1; release with toy_automata_free(). GL_EINPUT at its place for what is no
 * automaton. */
gl_status toy_automata_new(toy_automaton **out, cfg_reader *r, const cfg_node *section,
                           size_t letters, size_t n_prompts, gl_error *err);
void toy_automata_free(toy_automaton *automata, size_t n_prompts);

/* --- sums over all responses of a bigram policy --- */

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
