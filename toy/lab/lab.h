/* The exact laboratory: expectation and covariance of an algorithm's gradient estimate, without
 * sampling noise (paper/methods.md §7).
 *
 * One group of G responses to a prompt drawn by the world's prompt weights gives the estimate
 * g = sum_{i,t} c_{i,t} d logp_{i,t} / d theta, with c from core/policy. Its moments come from all
 * multisets of responses; beyond a work budget from Monte Carlo with exact scores and standard
 * errors; for a group of infinite size from the distribution of large numbers, where the algorithm
 * factors.
 */
#ifndef GEPOLAB_TOY_LAB_LAB_H
#define GEPOLAB_TOY_LAB_LAB_H

#include "core/policy/policy.h"
#include "core/rl/enumerable.h"
#include "toy/lab/kernel.h"
#include "toy/lab/multiset.h"
#include "toy/lab/tables.h"

#include <stddef.h>
#include <stdint.h>

/* --- one group --- */
/* The estimator of one group through core/policy itself: the reference of the exact laboratory, and
 * its way for algorithms and worlds that no kernel covers. */

/* Room for one group. */
typedef struct lab_group {
  const lab_tables *tables; /* borrowed */
  size_t size;
  size_t *response;             /* [size] which responses, set by the caller */
  size_t *token_start;          /* [size + 1] */
  double *reward;               /* [size] */
  double *logp, *logq;          /* [size * width] */
  double *advantage;            /* [size] */
  double *weight, *coefficient; /* [size * width] */
  double *gradient;             /* [n_parameters] */
  size_t *drawn;                /* [LAB_BLOCK * size] responses of a block's groups */
  policy_workspace *workspace;
  arena memory;
} lab_group;

gl_status lab_group_init(lab_group *g, const lab_tables *t, size_t size, gl_error *err);
void lab_group_fini(lab_group *g);
/* Evaluates the algorithm on g->response[]; fills advantage, weight, coefficient and gradient. */
gl_status lab_group_evaluate(lab_group *g, const policy_algorithm *algorithm, gl_error *err);
/* Weight of response i: its tokens' mean, which is the sequence's own ratio where there is one. */
double lab_group_weight(const lab_group *g, size_t i);

/* Sums over groups, each with its weight. */
typedef struct lab_sums {
  size_t n_parameters;
  double total, square;       /* sum of weights; E |g|^2 */
  double *mean;               /* [n_parameters] E g */
  double *outer;              /* [n_parameters^2] E g g', or NULL */
  double w, w2, aw, aw2, ess; /* as lab_moments */
  arena memory;
} lab_sums;
gl_status lab_sums_init(lab_sums *s, size_t n_parameters, int outer, gl_error *err);
void lab_sums_fini(lab_sums *s);

/* Adds every group of a block. GL_ENUMERIC where a coefficient is not finite. */
gl_status lab_sums_add_block(lab_sums *s, lab_group *g, const policy_algorithm *algorithm,
                             const lab_block *b, gl_error *err);

/* --- moments --- */

typedef struct lab_summary {
  size_t n_parameters;
  double *mean;       /* [n_parameters] */
  double trace;       /* of the covariance */
  double *covariance; /* [n_parameters^2] or NULL */
  double w, w2, aw, aw2, ess;
} lab_summary;

gl_status lab_summary_init(lab_summary *s, size_t n_parameters, int covariance, gl_error *err);
void lab_summary_fini(lab_summary *s);

void lab_summary_from_sums(lab_summary *s, const lab_sums *sums);
/* gram[n * n] = scores' products, for the trace. */
void lab_summary_from_moments(lab_summary *s, lab_moments *m, const lab_tables *t,
                              const double *gram);
/* gram[n * n] of one-token responses' scores. */
void lab_gram(const lab_tables *t, double *gram);

/* The mixture of n parts with weights that sum to 1, by the distributions of total expectation and
 * variance; skip < n leaves a part out and rescales the rest. */
void lab_summary_join(lab_summary *into, const lab_summary *const *parts, const double *weights,
                      size_t n, size_t skip);

/* What is reported; a field that has no value (the cosine of a zero vector) is NaN. */
typedef struct lab_numbers {
  double bias, cosine, scaled_bias; /* scaled_bias = sqrt(1 - cosine^2) */
  double variance, mse, scaled_mse; /* tr Cov; bias^2 + variance; min_c E|c g - J'|^2 / |J'|^2 */
  double snr;                       /* |E g|^2 / tr Cov */
  double iw_mean, iw_variance;      /* of the algorithm's own ratio of one response of a group */
  double aw_variance;               /* of advantage times ratio */
  double ess;                       /* E (sum w)^2 / (G sum w^2) */
} lab_numbers;
enum { LAB_NUMBERS = sizeof(lab_numbers) / sizeof(double) };
extern const char *const lab_number_names[LAB_NUMBERS];

/* The reported numbers, for the true gradient truth[]; a gradient below `rounding` counts as 0. */
void lab_summary_numbers(const lab_summary *s, const double *truth, double rounding,
                         lab_numbers *out);
/* Standard errors of the numbers by the jackknife over n >= 2 parts of equal weight,
 * (n-1)/n sum (value without part k - their mean)^2, and of expected[] = the parts' mean from their
 * spread, into expected_error[n_parameters]. GL_ENOMEM. */
gl_status lab_summary_errors(lab_numbers *error, double *expected_error,
                             const lab_summary *const *parts, size_t n, const double *expected,
                             const double *truth, double rounding, gl_error *err);

/* --- measurements --- */

typedef enum lab_method { LAB_EXACT, LAB_MONTE_CARLO, LAB_POPULATION } lab_method;
extern const char *const lab_method_names[3];

typedef struct lab_spec {
  const enumerable *world;
  const double *theta_learner, *theta_sampler; /* [n_parameters] */
  lab_weights weights;
  size_t group_size;     /* 0: the population limit */
  size_t budget;         /* most multisets of one prompt that are enumerated */
  size_t samples;        /* Monte Carlo groups per prompt beyond the budget; 0: fail instead */
  uint64_t seed, entity; /* address of its draws (RNG_MONTECARLO) */
  size_t threads;        /* for Monte Carlo; results do not depend on it */
  int covariance;        /* also the full covariance */
} lab_spec;

typedef struct lab_result {
  lab_method method;
  int applicable; /* 0: the algorithm has no such estimate; `why` says */
  char why[200];
  double groups; /* multisets enumerated, or groups drawn, over all prompts; population: 0 */
  size_t n_parameters;
  double *expected;   /* [n_parameters] E g */
  double *truth;      /* [n_parameters] J' */
  double *kept_truth; /* [n_parameters] that of the learner's distribution over what the sampler
                         keeps; NULL where nothing is truncated */
  double cosine_kept; /* of E g and kept_truth; NaN where there is none */
  double *covariance; /* [n_parameters^2] or NULL */
  double value;       /* J of the learner */
  double kl, kl_qp;   /* over prompts */
  lab_numbers numbers;
  lab_numbers error;      /* standard errors by jackknife; 0 where exact */
  double *expected_error; /* [n_parameters] standard errors of E g; NULL where exact */
} lab_result;

/* The reason why an algorithm has no estimate from groups of one prompt, as a clause; NULL: it has
 * one. */
const char *lab_needs_more(const policy_algorithm *algorithm);

/* Measures n algorithms at once on the same groups into out[n]. One that cannot be measured (it
 * needs other prompts, or a factor the world lacks) is a result with applicable 0, not an error. */
gl_status lab_measure(lab_result *out, const policy_algorithm *const *algorithms, size_t n,
                      const lab_spec *spec, gl_error *err);
void lab_result_fini(lab_result *r);

/* The fields of recipes of `gepolab lab bias` and `gepolab lab theory`. */
extern const struct field_table lab_fields;

#endif
