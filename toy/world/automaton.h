/* Rewards by a finite automaton: it reads a response letter by letter, and its final state decides
 * the reward.
 *
 * With a policy that depends on the last letter only (bigram), (state, last letter) is a Markov
 * chain. Sums over all responses are then dynamic programmes, however many responses there are. */
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

/* The automaton of one prompt. */
typedef struct toy_automaton {
  size_t states, start;
  uint16_t *next; /* [states * letters] state after reading a letter */
  double *reward; /* [states] reward of a response that ends in the state */
} toy_automaton;

/* Parses the automata of a world section: {automaton: parity | count | contains | balanced | table,
 * letter, modulus, word, depth, table: {start, next, accept | rewards}}. `r` is the reader of that
 * section; it keeps the first error. Makes one automaton for each of n_prompts over the letters 0
 * .. letters - 1; release with toy_automata_free(). Errors: GL_ENOMEM, GL_EINPUT (an invalid
 * automaton, with its position in the recipe). */
gl_status toy_automata_new(toy_automaton **out, cfg_reader *r, const cfg_node *section,
                           size_t letters, size_t n_prompts, gl_error *err);
void toy_automata_free(toy_automaton *automata, size_t n_prompts);

/* --- sums over all responses of a bigram policy --- */

/* Exact sums over all responses of a bigram policy without enumerating them (paper/methods.md
 * §6.6).
 *
 * The graph of last letters: node 0 is the start, node 1 + a is the state after letter a. An edge
 * is node * vocabulary + token; the end token has no next node. A response is a path of at most
 * `horizon` edges. Let m_t be a measure on the edges of position t and s the state of an automaton
 * that reads the letters. Then
 *
 *   sum_y m(y) v(y),   m(y) = prod_t m_t(edge_t),   v(y) = value[final state]
 *
 * follows from a backward and a forward pass over (node, state). m need not be a probability: the
 * product of a sampler's distribution and token importance weights is such a measure, and so is its
 * square. */

typedef struct toy_chain {
  const response_tree *graph;     /* borrowed */
  const toy_automaton *automaton; /* borrowed; NULL: a single state */
} toy_chain;

/* Builds the graph of last letters for `letters` letters; level, length and path stay NULL,
 * n_responses 0. Release with response_tree_fini(). Errors: GL_ENOMEM. */
gl_status toy_chain_graph(response_tree *graph, size_t letters, size_t horizon, int has_end,
                          gl_error *err);

/* Number of doubles of scratch that the functions below need for automata of at most `states`
 * states. */
size_t toy_chain_scratch(const response_tree *graph, size_t states);

/* Returns sum_y m(y) v(y). log_m[horizon] points to tables over edges with the logarithms of
 * m_t^(1 / power); the function exponentiates power * log_m, only once for consecutive positions
 * that share a table. value NULL: 1 for every state. If flow is not
 * NULL, flow[n_edges] += sum_y m(y) v(y) #(e in y), where #(e in y) is the number of times y uses
 * edge e. Derivatives of the sum with respect to log m are linear in flow. */
double toy_chain_sum(const toy_chain *chain, const double *const *log_m, double power,
                     const double *value, double *flow, double *scratch);

/* visit[horizon * n_nodes] = probability of being at each node before each position. log_m[horizon]
 * points to the log-probabilities over edges. */
void toy_chain_visits(const response_tree *graph, const double *const *log_m, double *visit,
                      double *scratch);

#endif
