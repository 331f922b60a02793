/* Finite-horizon Markov decision processes. A stationary softmax policy pi(a|s) has one logit per
 * state and action (tabular) or shares features between them. */
#ifndef GEPOLAB_TOY_WORLD_MDP_H
#define GEPOLAB_TOY_WORLD_MDP_H

#include "core/base/arena.h"
#include "core/config/config.h"
#include "core/rl/enumerable.h"

#include <stddef.h>
#include <stdint.h>

/* Upper bounds of the recipe's fields. */
enum { MDP_MAX_STATES = 4096, MDP_MAX_ACTIONS = 256, MDP_MAX_HORIZON = 4096 };

/* Maximum number of trajectories enumerated from one start state. */
#define MDP_MAX_TRAJECTORIES ((size_t)1 << 16)

typedef struct mdp {
  size_t states, actions, horizon;
  double *transition; /* [states * actions * states] P(s'|s,a) */
  double *reward;     /* [states * actions] expected reward r(s,a) */
  double *start;      /* [states] initial state distribution */
  int *terminal;      /* [states] 1: absorbing, without further reward */
  size_t n_features;  /* 0: tabular */
  double *feature;    /* [states * actions * n_features] features phi(s,a) */
  size_t n_parameters;
  arena memory;
} mdp;

/* Parses a world section with world.kind in {chain, gridworld, garnet, token}
 * (experiments/RECIPES.md). Random parts are sampled at RNG_WORLD of the seed. */
gl_status mdp_new(mdp **out, const cfg_node *world, uint64_t seed, gl_error *err);
/* mdp_new() for a reader r of the world section. Begins the reader `policy` at the subsection
 * `policy`. The caller may read further keys with both readers and must end them with cfg_end(). */
gl_status mdp_read(mdp **out, cfg_reader *r, cfg_reader *policy, uint64_t seed, gl_error *err);
void mdp_free(mdp *m);
/* Returns 1 if `kind` names a decision process. */
int mdp_is_kind(const char *kind);
/* Returns the name of the i-th kind of decision process and stores its description in *about (may
 * be NULL). Returns NULL past the last. */
const char *mdp_kind_at(size_t i, const char **about);

/* Enumerates all trajectories as responses. Prompt x is a possible start state. A response is the
 * sequence of actions and states until the horizon or a terminal state; each token has
 * log-probability log pi(a|s) + log P(s'|s,a). Transition terms are constant in theta and cancel in
 * p/q. Where an algorithm uses P itself, it is the probability of the trajectory. Errors:
 * GL_ENOMEM, GL_EINPUT (more than MDP_MAX_TRAJECTORIES). */
typedef struct mdp_trajectories mdp_trajectories;
gl_status mdp_trajectories_new(mdp_trajectories **out, const mdp *m, gl_error *err);
void mdp_trajectories_free(mdp_trajectories *t);
enumerable mdp_trajectories_enumerable(const mdp_trajectories *t); /* borrowed view */

#endif
