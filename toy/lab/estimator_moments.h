/* The exact laboratory: expectation and covariance of an algorithm's gradient estimate, without
 * sampling noise (paper/methods.md §7).
 *
 * A prompt is sampled with the world's prompt weights, and a group of G responses to it gives the
 * estimate g = sum_{i,t} c_{i,t} d logp_{i,t} / d theta, with c from core/policy. The moments of g
 * are computed by enumerating all multisets of responses. Beyond a budget they come from Monte
 * Carlo with exact scores and have standard errors. For infinite groups they follow from the law of
 * large numbers, if the algorithm can be factored (toy/lab/kernel.h). */
#ifndef GEPOLAB_TOY_LAB_ESTIMATOR_MOMENTS_H
#define GEPOLAB_TOY_LAB_ESTIMATOR_MOMENTS_H

#include "core/policy/policy.h"
#include "core/rl/enumerable.h"
#include "toy/lab/kernel.h"
#include "toy/lab/multiset.h"
#include "toy/lab/prompt_tables.h"

#include <stddef.h>
#include <stdint.h>

/* --- one group --- */
/* Evaluates single groups with core/policy: the reference implementation, also used for algorithms
 * and worlds that no kernel covers. */

/* Workspace of one group. */
typedef struct lab_group {
  size_t size;
  size_t *response;    /* [size] indices of the responses in lab_tables; set by the caller */
  size_t *token_start; /* [size + 1] first token of each response */
  double *reward;      /* [size] reward of each response */
  double *logp, *logq; /* [size * width] log-probabilities of tokens: learner, sampler */
  double *advantage;   /* [size] advantage of each response */
  double *weight, *coefficient; /* [size * width] importance weights and coefficients c of tokens */
  double *gradient;             /* [n_parameters] the estimate g */
  policy_workspace *workspace;
  arena memory;
} lab_group;

/* width: tokens of the longest response. */
gl_status lab_group_init(lab_group *g, size_t size, size_t width, size_t n_parameters,
                         gl_error *err);
void lab_group_fini(lab_group *g);
/* Fills advantage, weight and coefficient from token_start, reward, logp and logq. log_collision:
 * log E_q q of the prompt. */
gl_status lab_group_coefficients(lab_group *g, const policy_algorithm *algorithm,
                                 double log_collision, size_t width, gl_error *err);
/* Evaluates the algorithm on g->response[] of t; fills all other arrays. */
gl_status lab_group_evaluate(lab_group *g, const lab_tables *t, const policy_algorithm *algorithm,
                             gl_error *err);
/* Importance weight of response i: mean over its tokens; equal to the sequence ratio where the
 * algorithm has one. */
double lab_group_weight(const lab_group *g, size_t i);

/* Weighted sums over groups. */
typedef struct lab_sums {
  size_t n_parameters;
  double total, square;       /* sum of weights; sum of |g|^2 */
  double *mean;               /* [n_parameters] sum of g */
  double *outer;              /* [n_parameters^2] sum of g g', or NULL */
  double w, w2, aw, aw2, ess; /* sums of the quantities in lab_moments */
  arena memory;
} lab_sums;
gl_status lab_sums_init(lab_sums *s, size_t n_parameters, int outer, gl_error *err);
void lab_sums_fini(lab_sums *s);
/* Adds the group's gradient, its outer product and the moments of its weights, times `weight`.
 * Errors: GL_ENUMERIC if the gradient is not finite. */
gl_status lab_sums_add(lab_sums *s, const lab_group *g, double weight, gl_error *err);

/* --- moments --- */

typedef struct lab_summary {
  size_t n_parameters;
  const size_t *parameter; /* [n_parameters] as in lab_tables, borrowed; NULL: all of the world */
  double *mean;            /* [n_parameters] E g */
  double trace;            /* trace of the covariance */
  double *covariance;      /* [n_parameters^2] or NULL */
  double w, w2, aw, aw2, ess;
} lab_summary;

gl_status lab_summary_init(lab_summary *s, size_t n_parameters, int covariance, gl_error *err);
void lab_summary_fini(lab_summary *s);

void lab_summary_from_sums(lab_summary *s, const lab_sums *sums);

/* Mixture of n parts with weights that sum to 1, by the laws of total expectation and total
 * variance. skip < n omits a part and rescales the other weights. `into` has all parameters; a part
 * that has fewer is 0 at the others. */
void lab_summary_join(lab_summary *into, const lab_summary *const *parts, const double *weights,
                      size_t n, size_t skip);

/* The reported numbers. A number without a value (such as the cosine of a zero vector) is NaN. */
typedef struct lab_numbers {
  double bias, cosine, scaled_bias; /* scaled_bias = sqrt(1 - cosine^2) */
  double variance, mse, scaled_mse; /* tr Cov; bias^2 + variance; min_c E|c g - J'|^2 / |J'|^2 */
  double snr;                       /* |E g|^2 / tr Cov */
  double iw_mean, iw_variance;      /* mean and variance of the importance ratio of one response */
  double aw_variance;               /* variance of advantage times ratio */
  double ess;                       /* effective sample size: E (sum w)^2 / (G sum w^2) */
} lab_numbers;
enum { LAB_NUMBERS = sizeof(lab_numbers) / sizeof(double) };
extern const char *const lab_number_names[LAB_NUMBERS];

/* Computes the reported numbers against the true gradient truth[]. A gradient below `rounding`
 * counts as 0. */
void lab_summary_numbers(const lab_summary *s, const double *truth, double rounding,
                         lab_numbers *out);

/* --- measurements --- */

typedef enum lab_method { LAB_EXACT, LAB_MONTE_CARLO, LAB_POPULATION } lab_method;
extern const char *const lab_method_names[3];

/* A measurement that would take more memory is refused. */
#define LAB_MOST_BYTES 4e9

typedef struct lab_spec {
  const enumerable *world;
  const double *theta_learner, *theta_sampler; /* [n_parameters] */
  lab_weights weights;
  size_t group_size;     /* 0: population limit */
  size_t budget;         /* maximum number of multisets enumerated per prompt */
  size_t samples;        /* Monte Carlo groups per prompt beyond the budget; 0: error instead */
  uint64_t seed, entity; /* address of the Monte Carlo random numbers (RNG_MONTECARLO) */
  size_t threads;        /* Monte Carlo threads; results do not depend on it */
  int covariance;        /* 1: also compute the full covariance */
} lab_spec;

typedef struct lab_result {
  lab_method method;
  int applicable; /* 0: the algorithm has no such estimate, for the reason in `why` */
  char why[200];
  double groups; /* groups enumerated or sampled, summed over prompts; population limit: 0 */
  size_t n_parameters;
  double *expected;   /* [n_parameters] E g */
  double *truth;      /* [n_parameters] J', the true gradient */
  double *kept_truth; /* [n_parameters] J' of the learner's distribution renormalised over the
                         tokens that truncation keeps; NULL without truncation */
  double cosine_kept; /* cosine of E g and kept_truth; NaN if there is none */
  double *covariance; /* [n_parameters^2] or NULL */
  double value;       /* J of the learner */
  double kl, kl_qp;   /* KL(p||q) and KL(q||p) of responses, nats, averaged over prompts */
  lab_numbers numbers;
  lab_numbers error;      /* standard errors by the jackknife; 0 if exact */
  double *expected_error; /* [n_parameters] standard errors of E g; NULL if exact */
} lab_result;

/* Returns why the laboratory cannot measure the algorithm, as a clause: its denominator mixes
 * prompts, or it needs a reference policy; NULL if it can. */
const char *lab_cannot_measure(const policy_algorithm *algorithm);

/* Measures n algorithms on the same groups and writes out[n]. An algorithm that cannot be measured
 * (it needs other prompts, or a quantity the world lacks) gets applicable = 0; this is not an
 * error. GL_EINPUT with an estimate for a world that would take more than LAB_MOST_BYTES. */
gl_status lab_measure(lab_result *out, const policy_algorithm *const *algorithms, size_t n,
                      const lab_spec *spec, gl_error *err);
void lab_result_fini(lab_result *r);

/* Standard errors by the jackknife over n >= 2 parts of equal weight, whose mean is out->expected:
 * (n-1)/n sum_k (value without part k - their mean)^2. Fills out->error, and
 * out->expected_error[n_parameters] from the spread of the parts. Errors: GL_ENOMEM. */
gl_status lab_result_errors(lab_result *out, const lab_summary *const *parts, size_t n,
                            double rounding, gl_error *err);

/* The fields of recipes of `gepolab lab bias` and `gepolab lab theory`. */
extern const struct field_table lab_fields;

#endif
