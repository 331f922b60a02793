/* What is exact at one prompt of a toy world, whether its responses are listed or
 * counted (toy/world/automaton.h), and the walk of one response through the tables over edges. */
#ifndef GEPOLAB_TOY_WORLD_MEASURE_H
#define GEPOLAB_TOY_WORLD_MEASURE_H

#include "toy/world/world.h"

/* The distribution that responses to one prompt were drawn from, as it travels with a batch. Where
 * responses are listed: log-probabilities over edges, table[n_edges]; the parts of a tree that
 * different versions drew do not overlap, so one table holds them all. Where they are counted: a
 * table for each part of the positions that one version drew, laid out as from[parts], then
 * table[parts * n_edges]. */
typedef struct toy_record {
  const double *values;
  size_t parts; /* 1 where listed */
} toy_record;
/* Doubles of a record. */
size_t toy_record_size(const toy_world *w, size_t parts);
/* How many parts records have, n of which fill `values` doubles; 0: they do not. */
size_t toy_record_parts(const toy_world *w, size_t n, size_t values);
/* The record's distribution, [vocabulary], at the node that an edge leaves at that position. */
const double *toy_record_node(const toy_world *w, toy_record q, size_t edge, size_t position);
/* log sum_y q(y)^2 of a record, under the truncated distribution where `truncated`. GL_ENOMEM. */
gl_status toy_record_collision(const toy_world *w, toy_record q, int truncated, double *out,
                               gl_error *err);

/* Doubles of scratch that the functions below need. */
size_t toy_scratch(const toy_world *w);

/* The node that an edge at that position leads to, or a negative number where it ends a response.
 */
int32_t toy_next(const toy_world *w, size_t edge, size_t position);
/* Writes the edges of a response's n tokens; 0 unless they are exactly one response. */
int toy_walk(const toy_world *w, const int32_t *token, size_t n, size_t *edge);
/* The length of the response that begins at token[0] and its mean reward from prompt x; the tokens
 * reach the end of a response. */
size_t toy_finish(const toy_world *w, size_t x, const int32_t *token, double *reward);

/* The expected reward at prompt x under the probabilities p[n_edges], whose logarithms are logp. */
double toy_mean_reward(const toy_world *w, size_t x, const double *p, const double *logp,
                       double *scratch);
/* The mean reward of the response of most probable tokens, of equals the lowest; NaN where
 * probabilities are not numbers. */
double toy_greedy_reward(const toy_world *w, size_t x, const double *p);

typedef struct toy_facts {
  double entropy;   /* mean of a token, nats (toy_exact_entropy) */
  double kl, kl_qp; /* KL(p||q) and KL(q||p) of responses, nats */
  double kl_ref;    /* KL(p||reference) */
  double mean_reward;
} toy_facts;
/* All of them for the policy p, logp[n_edges] at prompt x, the distribution q that was drawn from,
 * and the reference policy logref[n_edges]. edges[n_edges] is scratch besides. */
toy_facts toy_measure(const toy_world *w, size_t x, const double *p, const double *logp,
                      toy_record q, const double *logref, double *edges, double *scratch);

/* Of a counted world: what the distribution that really draws (top-k and top-p of logq[n_edges])
 * keeps. */
typedef struct toy_kept {
  double mass;        /* mean over drawn tokens of the probability that the policy gives the tokens
                         kept where they are drawn */
  double mean_reward; /* expected reward of what is drawn */
} toy_kept;
gl_status toy_measure_kept(const toy_world *w, size_t x, const double *logq, toy_kept *out,
                           gl_error *err);

/* Of a counted world: KL(p||q) of responses; visits are those of p (toy_chain_visits). */
double toy_chain_kl(const toy_world *w, const double *visit, const double *const *logp,
                    const double *const *logq);

/* --- one walk over the tree of responses --- */
/* Exact quantities of one prompt by one walk over the tree of its responses (paper/methods.md
 * §6.1). All tables are over edges (core/rl/response_tree.h); `reach` is scratch of n_nodes. A
 * token of probability 0 contributes nothing, whatever its logarithm meets. */

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
