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
#include "toy/lab/summary.h"
#include "toy/lab/tables.h"

#include <stddef.h>
#include <stdint.h>

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

#endif
