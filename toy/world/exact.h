/* Exact quantities of one prompt by one walk over the tree of its responses (paper/methods.md
 * §6.1). All tables are over edges (core/rl/response_tree.h); `reach` is scratch of n_nodes. A
 * token of probability 0 contributes nothing, whatever its logarithm meets. */
#ifndef GEPOLAB_TOY_WORLD_EXACT_H
#define GEPOLAB_TOY_WORLD_EXACT_H

#include "core/rl/response_tree.h"

/* sum_y p(y) value[y] over all responses; p is the probability of each edge. */
double toy_exact_mean(const response_tree *tree, const double *p, const double *value,
                      double *reach);
/* Mean entropy of a token, nats: E_p[sum_t H(p(.|y_<t))] / E_p[T] = H(p) / E_p[T], with T the
 * length of a response. */
double toy_exact_entropy(const response_tree *tree, const double *p, const double *logp,
                         double *reach);
/* KL(p||q) of responses, nats, by the chain rule; +inf where q lacks what p has. */
double toy_exact_kl(const response_tree *tree, const double *p, const double *logp,
                    const double *logq, double *reach);
/* log sum_y q(y)^2, the log-probability that two responses drawn from q are the same. `below` is
 * scratch of n_nodes. */
double toy_exact_log_collision(const response_tree *tree, const double *logq, double *below);

#endif
