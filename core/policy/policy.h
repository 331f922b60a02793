/* Policy optimisation: computes the loss of a batch and its gradient with respect to token
 * log-probabilities.
 *
 * An algorithm is a set of fields (paper/methods.md §3), not code: baseline x scale x ratio x clip
 * x aggregation, plus KL terms and truncation factors. policy_evaluate() reads only the fields,
 * never the algorithm's name. Its main result is c_{i,t} = d(-loss)/d logp_{i,t}, the only quantity
 * that a learner's backward pass needs (tabular or transformer, CPU or CUDA).
 *
 * All computations are in log space: sequence log-ratios of +-700 give correct finite results or an
 * infinity, never a NaN. */
#ifndef GEPOLAB_CORE_POLICY_POLICY_H
#define GEPOLAB_CORE_POLICY_POLICY_H

#include "core/base/error.h"
#include "core/base/metrics.h"
#include "core/base/thread_pool.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"

#include <stddef.h>
#include <stdint.h>

/* The input of one loss evaluation, in ragged arrays like a batch (core/rl/batch.h): group g has
 * responses [group_start[g], group_start[g+1]), response i has tokens [token_start[i],
 * token_start[i+1]). All pointers are borrowed. */
typedef struct policy_input {
  size_t n_groups, n_responses, n_tokens;
  const size_t *group_start; /* [n_groups + 1] */
  const size_t *token_start; /* [n_responses + 1] */
  const double *reward;      /* [n_responses]; NaN: unknown, if there are advantages */
  const double *advantage; /* [n_responses] advantages A; NULL: computed from rewards, baseline and
                              scale. Not for objective: disco, real */
  const double *logp;      /* [n_tokens] log-probabilities under the learner */
  const double *logq; /* [n_tokens] under the sampler (or its truncated distribution, if the recipe
                         says so) */
  const double *logprox; /* [n_tokens] under the learner at the batch's first update. NULL: this is
                            the first update, so they equal logp and are treated as constants.
                            Decoupled algorithms need them after the first update,
                            those with proximal_decay always */
  const double *logref;  /* [n_tokens] under the reference policy; needed if
                            policy_needs_reference(), otherwise not read */
  const double *entropy; /* [n_tokens] entropy of the learner's distribution at each token; NULL
                            unless policy_needs_entropy() */
  const double *entropy_prox; /* [n_tokens] entropy of the policy of logprox. NULL means the same as
                                 for logprox */
  const double
      *version_gap; /* [n_tokens] staleness: learner version - token version; NULL: unknown */
  const double
      *log_denominator; /* [n_groups] log sum_y q(y)^2 for denominator: exact; otherwise NULL */
  size_t
      max_length; /* longest response the world allows, for dr_grpo; 0: the longest in the batch */
} policy_input;

/* Results of policy_evaluate(). The caller provides the arrays, with the sizes given; any may be
 * NULL if not needed. */
typedef struct policy_output {
  double loss;
  double *advantage; /* [n_responses] A_i after baseline and scale */
  double *weight;    /* [n_tokens] the algorithm's own importance ratio before clipping; a sequence
                        ratio is repeated for all tokens of the response */
  double *coefficient; /* [n_tokens] d(-loss)/d logp_{i,t} */
  double *baseline;    /* [n_groups] b in A = (r - b) / s, group mean form; NaN for disco, for
                          baseline: runner_up and if advantages are given */
  double *scale;       /* [n_groups] s; NaN if it is only the guard against division by zero (equal
                          rewards), because A is then undefined for other responses */
  double *mean_aw;  /* [n_groups] mean_i w_i A_i with sequence weights, used for estimation_error */
  int skip_metrics; /* input: 1 skips metric and mean_aw (used by the exact laboratory and inner
                       loops) */
  double metric[METRIC_COUNT]; /* metrics that core/policy computes; the others are NaN */
} policy_output;

/* A reusable workspace, so that a training loop allocates memory once. */
typedef struct policy_workspace policy_workspace;
policy_workspace *policy_workspace_new(void); /* NULL if out of memory */
void policy_workspace_free(policy_workspace *ws);
/* Sets the thread pool for later evaluations with ws; results are bit-identical for any number of
 * threads. The pool is borrowed until it is replaced. NULL (the default): only the caller's thread.
 */
void policy_workspace_share(policy_workspace *ws, pool *threads);

/* Evaluates the algorithm on the batch `in` and writes the results that out requests: out->loss
 * always, out->metric unless skip_metrics, and all arrays of out that are not NULL. Input is not
 * modified; no array of out may overlap an array of in. ws grows to the largest batch seen.
 * Deterministic: the same input gives the same bits. Formulas: paper/methods.md §3 by field and §4
 * by algorithm; metrics: §5.
 *
 * Errors: GL_ENOMEM, or GL_EINPUT with a message that names the problem and the fix: incompatible
 * fields (policy_algorithm_check); a missing input that the algorithm needs: logref
 * (policy_needs_reference), entropy, and entropy_prox beside logprox for entropy_ratio_
 * (policy_needs_entropy), version_gap (policy_needs_version_gap), log_denominator
 * (policy_needs_exact_denominator), logprox with proximal_decay; advantages with reward_kl_coef or
 * objective: disco and real; rewards other than 0 and 1 for these two, or outside [0, 1] for scale:
 * beta. Without proximal_decay a missing logprox means a first update. After an error out is
 * unspecified and ws remains usable. */
gl_status policy_evaluate(const policy_algorithm *algorithm, const policy_input *in,
                          policy_output *out, policy_workspace *ws, gl_error *err);

/* The largest number that readers of input accept as a log-probability, and the smallest that they
 * accept as an entropy. Rounding in single precision can leave a log-probability slightly above 0;
 * trainers compute entropies as a difference of logits in half precision, which can be some tenths
 * below 0. */
#define POLICY_MOST_LOG 1e-3
#define POLICY_LEAST_ENTROPY (-1.0)

/* A log-ratio this close to a clip's bound is within it: rounding, which differs between here and
 * the exact laboratory, does not decide about a ratio of exactly 1 + eps. */
#define POLICY_CLIP_SLACK 1e-12

/* If on-policy data has a relative effective sample size below this, the algorithm causes it. */
#define POLICY_LEAST_ESS 0.3
/* Whether the batch of an evaluation with these metrics is on-policy: its staleness is 0, or the
 * mean divergence between learner and sampler (kl_k3) is at most 1e-4 nat per token. */
int policy_is_on_policy(const double value[METRIC_COUNT]);
enum { POLICY_ADVICE_SIZE = 320 };
/* Writes a warning with the fix if the on-policy effective sample size is below POLICY_LEAST_ESS;
 * "" otherwise and for NaN. Returns text. */
const char *policy_ess_advice(const policy_algorithm *algorithm, double ess,
                              char text[POLICY_ADVICE_SIZE]);

/* The precision in which each result of an evaluation is stored. */
typedef enum policy_precision { POLICY_DOUBLE, POLICY_SINGLE } policy_precision;
typedef struct policy_precisions {
  policy_precision advantage, weight, coefficient;
  int by_group; /* messages number responses within their group and also name the group */
} policy_precisions;

/* Checks that the loss and the advantages, weights and coefficients of out are finite and
 * representable in the precision they are stored in. Arrays of out that are NULL are not checked.
 * Errors: GL_ENUMERIC, with the first bad result of the batch, its position and the log-ratios
 * there. */
gl_status policy_check_finite(const policy_input *in, const policy_output *out,
                              const policy_precisions *keeping, gl_error *err);

/* --- tokens in the caller's format --- */

/* Callbacks for log-probabilities and coefficients that are not stored like policy_input, for
 * example in single precision. A response is read, evaluated and written while it is in the cache,
 * which avoids converting the whole batch. The functions are called concurrently from several
 * threads, for different responses. */
typedef enum policy_which {
  POLICY_NOW,   /* logp */
  POLICY_BEFORE /* denominator of the ratio: logq; for old_policy: proximal logprox, or logp if that
                   is NULL */
} policy_which;

typedef struct policy_stream {
  void *self;
  size_t longest; /* tokens of the longest response */
  /* Returns the log-probabilities of response i's tokens, either written to space[longest] or in
   * the caller's own memory; NULL refuses the response. */
  const double *(*read)(void *self, size_t i, policy_which which, double *space);
  /* Stores the coefficients of response i's tokens (write), or one coefficient that they all share
   * (fill). Returns 0 to refuse the response. */
  int (*write)(void *self, size_t i, const double *coefficient);
  int (*fill)(void *self, size_t i, double coefficient);
} policy_stream;

/* Whether policy_evaluate_stream() supports the algorithm. Its ratio must be the token's or the
 * response's own, its clip a window on that ratio, and no other term or weight may need the tokens.
 */
int policy_can_stream(const policy_algorithm *algorithm);

/* Streaming form of policy_evaluate() with bit-identical loss, coefficients and per-response and
 * per-group outputs. The token arrays of `in` are ignored; out->weight and out->coefficient must be
 * NULL and out->skip_metrics 1. *refused is set to 1 if read, write or fill refused a response; out
 * is then unspecified. Errors: as policy_evaluate(). */
gl_status policy_evaluate_stream(const policy_algorithm *algorithm, const policy_input *in,
                                 const policy_stream *stream, policy_output *out,
                                 policy_workspace *ws, int *refused, gl_error *err);

#endif
