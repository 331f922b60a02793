/* Rewards by a finite automaton: a response is read letter by letter, and the state in which it
 * ends decides its reward. What such a world is for: a policy that sees the last letter alone
 * (bigram) and a reward that sees a state alone make (state, last letter) a Markov chain, whose
 * sums over all responses are dynamic programmes (toy/world/chain.h), whatever their number. */
#ifndef GEPOLAB_TOY_WORLD_AUTOMATA_H
#define GEPOLAB_TOY_WORLD_AUTOMATA_H

#include "core/config/config.h"

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

#endif
