/* Finite-horizon Markov decision processes with exact values and gradients by dynamic programming.
 *
 * A softmax policy pi(a|s) has a logit per state and action (tabular) or shares features over them;
 * it is the same at all times. With V_H = 0, backward:
 *
 *   Q_t(s,a) = r(s,a) + sum_s' P(s'|s,a) V_{t+1}(s'),   V_t(s) = sum_a pi(a|s) Q_t(s,a)
 *
 * and with d_t the distribution of states, forward from the start:
 *
 *   dJ/dz(s,a) = sum_t d_t(s) pi(a|s) (Q_t(s,a) - V_t(s))          (policy gradient theorem)
 *
 * Transitions are one dense (states * actions) x states matrix, so that both passes are
 * matrix-vector products of OpenBLAS.
 */
#ifndef GEPOLAB_TOY_WORLD_MDP_H
#define GEPOLAB_TOY_WORLD_MDP_H

#include "core/base/arena.h"
#include "core/config/config.h"
#include "core/rl/enumerable.h"

#include <stddef.h>
#include <stdint.h>

/* The largest values of fields. */
enum { MDP_MAX_STATES = 4096, MDP_MAX_ACTIONS = 256, MDP_MAX_HORIZON = 4096 };

/* Most trajectories of one start that are enumerated. */
#define MDP_MAX_TRAJECTORIES ((size_t)1 << 16)

typedef struct mdp {
  size_t states, actions, horizon;
  double *transition; /* [states * actions * states] probabilities of the next state */
  double *reward;     /* [states * actions] expected reward of taking the action there */
  double *start;      /* [states] probabilities of the first state */
  int *terminal;      /* [states] nothing happens and nothing is earned from here on */
  size_t n_features;  /* 0: tabular */
  double *feature;    /* [states * actions * n_features] */
  size_t n_parameters;
  arena memory;
} mdp;

/* world.kind in {chain, gridworld, garnet, token}: see experiments/RECIPES.md. Random parts are
 * drawn at RNG_WORLD of the seed. */
gl_status mdp_new(mdp **out, const cfg_node *world, uint64_t seed, gl_error *err);
void mdp_free(mdp *m);
/* 1 if `kind` names a decision process. */
int mdp_is_kind(const char *kind);
/* Name of the i-th kind of decision process, and what it is into *about unless that is NULL; NULL
 * past the last. */
const char *mdp_kind_at(size_t i, const char **about);

/* log pi(a|s) into log_policy[states * actions]. */
void mdp_log_policy(const mdp *m, const double *theta, double *log_policy);
/* J from the start distribution and, where gradient is not NULL, its gradient[n_parameters]. */
gl_status mdp_value(const mdp *m, const double *theta, double *value, double *gradient,
                    gl_error *err);
/* KL of the trajectories' distributions: sum_t sum_s d_t(s) KL(pi_p(.|s) || pi_q(.|s)). */
gl_status mdp_divergence(const mdp *m, const double *theta_p, const double *theta_q, double *kl,
                         gl_error *err);

/* All trajectories as responses: prompt x is a possible start, a response the actions taken and
 * states met until the horizon or a terminal state, a token's log-probability log pi(a|s) +
 * log P(s'|s,a). Transition terms are constant in theta and cancel in p/q; where an algorithm
 * uses P itself, it is the trajectory's probability. GL_EINPUT beyond MDP_MAX_TRAJECTORIES. */
typedef struct mdp_trajectories mdp_trajectories;
gl_status mdp_trajectories_new(mdp_trajectories **out, const mdp *m, gl_error *err);
void mdp_trajectories_free(mdp_trajectories *t);
enumerable mdp_trajectories_enumerable(const mdp_trajectories *t); /* borrowed view */

#endif
