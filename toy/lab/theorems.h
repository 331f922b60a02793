/* Exact values for the paper's three theorems (arXiv 2508.17850; paper/methods.md §8).
 *
 * Two importance weights of a sample y ~ q are compared: p/q, and p/D with a constant D. The
 * theorems use D = E_q[q] = sum q^2 (LAB_EXPECTED). The algorithm computes sum_j q_j^2 / sum_j q_j
 * over samples from q, which converges to D = sum q^3 / sum q^2 (LAB_COMPUTED). */
#ifndef GEPOLAB_TOY_LAB_THEOREMS_H
#define GEPOLAB_TOY_LAB_THEOREMS_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef enum lab_constant { LAB_EXPECTED, LAB_COMPUTED } lab_constant;
enum { LAB_CONSTANTS = 2 };
extern const char *const lab_constant_names[LAB_CONSTANTS];

typedef struct lab_weights_stats {
  double kl;                      /* KL(p||q), nats */
  double variance_pq;             /* Var_q[p/q] */
  double variance[LAB_CONSTANTS]; /* Var_q[p/D] */
  /* Smallest c with Var[p/q] - Var[p/D] >= e^KL - c; Theorem 1 claims c = n^2 + 1. */
  double constant[LAB_CONSTANTS];
} lab_weights_stats;

/* Discrete distributions on n outcomes; q > 0 wherever p > 0. */
void lab_theory_discrete(const double *p, const double *q, size_t n, lab_weights_stats *out);
/* T independent tokens, each with distributions p and q on `vocabulary` outcomes: V^T outcomes in
 * total. */
void lab_theory_product(const double *p, const double *q, size_t vocabulary, size_t length,
                        lab_weights_stats *out);
/* Bernoulli(a) and Bernoulli(b), the paper's Fig. 2a, in closed form. */
void lab_theory_bernoulli(double a, double b, lab_weights_stats *out);
/* Unit normals with means d apart, the paper's Fig. 2b, in closed form. */
void lab_theory_gaussian(double d, lab_weights_stats *out);
/* For unit normals, writes the squared distance of the means and the KL above which p/D has the
 * lower variance: a root of the closed forms. Errors: those of root_find(). */
gl_status lab_theory_gaussian_crossing(lab_constant constant, double *d2, double *kl,
                                       gl_error *err);

/* The smallest constant of Theorem 1 that is valid for every p, q on n >= 2 outcomes.
 *
 * Because e^KL <= 1 + chi^2, it is at most 1 + max Var[p/D]. Var_q[p/D] is convex in p, so at the
 * maximum p is on one outcome. There e^KL = 1 + chi^2, so the bound is attained. For D = sum q^2
 * the other outcomes are then equally likely, and one number x = q of p's outcome remains: 1 +
 * max_x x(1-x) / (x^2 + (1-x)^2/(n-1))^2, which grows as 0.325 n^(3/2). For the computed D the same
 * family is used; numerical searches find nothing above it. *x (may be NULL) is the maximiser. */
double lab_theory_smallest_constant(double n, lab_constant constant, double *x);

/* Baselines under which Theorem 2 is tested; rewards lie in [0, 1]. */
typedef enum lab_advantage {
  LAB_ADVANTAGE_P,     /* r - E_p r: satisfies the theorem's assumption E_p A = 0 */
  LAB_ADVANTAGE_Q,     /* r - E_q r: what a group mean estimates */
  LAB_ADVANTAGE_Q_STD, /* (r - E_q r) / sd_q r */
  LAB_ADVANTAGE_RAW    /* no baseline: r */
} lab_advantage;
enum { LAB_ADVANTAGES = 4 };
extern const char *const lab_advantage_names[LAB_ADVANTAGES];

typedef struct lab_theorem2 {
  double left, right;   /* |E_p A - E_q[(p/D) A]| and |p|_2 / |q|_2 */
  double max_advantage; /* max |A| */
} lab_theorem2;
void lab_theory_theorem2(const double *p, const double *q, const double *advantage, size_t n,
                         lab_theorem2 *out);
/* Writes the advantage of rewards r under the baseline to advantage[n]. */
void lab_theory_advantage(lab_advantage kind, const double *p, const double *q, const double *r,
                          size_t n, double *advantage);

/* Searches for distributions p, q and rewards r on n <= LAB_SEARCH_MOST outcomes with the largest
 * ratio of the two sides of Theorem 2. Uses GSL's Nelder-Mead minimiser on -log(left / right) from
 * `starts` random points, which depend on the seed only. A ratio above 1 violates the theorem. */
enum { LAB_SEARCH_MOST = 16 };
typedef struct lab_worst {
  double p[LAB_SEARCH_MOST], q[LAB_SEARCH_MOST], reward[LAB_SEARCH_MOST];
  double advantage[LAB_SEARCH_MOST];
  lab_theorem2 value;
  double ratio;      /* left / right */
  size_t violations; /* number of starts that ended above 1 */
} lab_worst;
gl_status lab_theory_search(lab_advantage kind, size_t n, size_t starts, uint64_t seed,
                            lab_worst *out, gl_error *err);

/* Quantities of Theorem 3: Var_q[A p/q] and Var_q[A p/D]. */
void lab_theory_advantage_variance(const double *p, const double *q, const double *advantage,
                                   size_t n, double *pq, double group[LAB_CONSTANTS]);

/* A random pair of distributions on n outcomes: q from a symmetric Dirichlet(alpha), and p from q's
 * logits plus normal noise of standard deviation `apart`; if apart is negative, two independent
 * Dirichlets. */
typedef struct lab_random_pair {
  size_t n;
  double alpha, apart;
  uint64_t seed, entity; /* address of the random numbers (RNG_SEARCH) */
} lab_random_pair;
/* Samples p[n] and q[n]. Errors: GL_ENOMEM. */
gl_status lab_theory_random_pair(const lab_random_pair *of, double *p, double *q, gl_error *err);

#endif
