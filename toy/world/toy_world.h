/* A toy world with its policy class: what other rooms see of toy/world. Bandits and short sequences
 * whose responses can all be enumerated (core/rl/enumerable.h). */
#ifndef GEPOLAB_TOY_WORLD_TOY_WORLD_H
#define GEPOLAB_TOY_WORLD_TOY_WORLD_H

#include "core/config/config.h"
#include "core/rl/enumerable.h"

/* A world with its policy class but no optimiser, for the exact laboratory. */
typedef struct toy_world toy_world;
gl_status toy_world_new(toy_world **out, const cfg_node *world, const cfg_node *sampling,
                        uint64_t seed, gl_error *err);
void toy_world_free(toy_world *w);
/* Borrowed view, valid while w lives. Of a counted world (toy_world_is_counted) it has the
 * operations `value` and `divergence` only, and max_responses 0. */
enumerable toy_world_enumerable(const toy_world *w);
/* 1 where responses are too many to be listed and sums over them are dynamic programmes: a world of
 * kind automaton, unless it says `listed: true`. */
int toy_world_is_counted(const toy_world *w);
/* The initial parameters a learner with that seed starts from, into theta[n_parameters]. */
void toy_world_initial(const toy_world *w, uint64_t seed, double *theta);
/* 1 if `kind` names a toy world; NULL does not. */
int toy_is_kind(const char *kind);
/* Name of the i-th kind of toy world, and what it is into *about unless that is NULL; NULL past the
 * last. */
const char *toy_kind_at(size_t i, const char **about);
/* Tabular worlds: parameters such that prompt x has exactly these response probabilities. GL_EINPUT
 * if they are not a distribution over its responses or the policy class cannot hold them. */
gl_status toy_world_set_probs(const toy_world *w, size_t x, const double *probs, size_t n,
                              double *theta, gl_error *err);

/* The fields of the section `world` of worlds other than a transformer's. */
extern const struct field_table toy_bandit_fields, toy_fields;

#endif
