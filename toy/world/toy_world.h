/* Public interface of toy/world: toy worlds (bandits, short sequences, automata, decision
 * processes) with their policy class. Most have few enough responses to enumerate
 * (core/rl/enumerable.h). */
#ifndef GEPOLAB_TOY_WORLD_TOY_WORLD_H
#define GEPOLAB_TOY_WORLD_TOY_WORLD_H

#include "core/config/config.h"
#include "core/rl/enumerable.h"

/* A world with its policy class but without an optimiser, for the exact laboratory. */
typedef struct toy_world toy_world;
/* Makes the world of a section `world`. sampling NULL: temperature 1, no truncation. Release with
 * toy_world_free(). Errors: GL_ENOMEM, GL_EINPUT with position in the recipe. */
gl_status toy_world_new(toy_world **out, const cfg_node *world, const cfg_node *sampling,
                        uint64_t seed, gl_error *err);
void toy_world_free(toy_world *w);
/* Borrowed view, valid while w lives. For a counted world (toy_world_is_counted) only the
 * operations `value` and `divergence` are set, and max_responses is 0. */
enumerable toy_world_enumerable(const toy_world *w);
/* Returns 1 if responses are too many to list and sums over them use dynamic programming: worlds of
 * kind automaton without `listed: true`. */
int toy_world_is_counted(const toy_world *w);
/* Writes the initial parameters of a learner with that seed to theta[n_parameters]. */
void toy_world_initial(const toy_world *w, uint64_t seed, double *theta);
/* Returns 1 if `kind` names a toy world; 0 for NULL. */
int toy_is_kind(const char *kind);
/* Returns the name of the i-th kind of toy world and stores its description in *about (may be
 * NULL). Returns NULL past the last. */
const char *toy_kind_at(size_t i, const char **about);
/* Tabular worlds: computes parameters for which prompt x has exactly these response probabilities.
 * Errors: GL_EINPUT (not a distribution over the responses, or not representable by the policy
 * class). */
gl_status toy_world_set_probs(const toy_world *w, size_t x, const double *probs, size_t n,
                              double *theta, gl_error *err);

/* Fields of the recipe section `world`, except those of the transformer's worlds. */
extern const struct field_table toy_bandit_fields, toy_fields;

#endif
