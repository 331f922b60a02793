/* Policy optimisation: from log-probabilities and rewards of a batch to what a backward pass needs.
 *
 * An algorithm is a set of fields (paper/methods.md §3), not code: baseline x scale x ratio x
 * clip x aggregation, plus KL terms and truncation factors. policy_evaluate() reads the fields and
 * never a name. Its main product is c_{i,t} = d(-loss)/d logp_{i,t}, which is all that any learner,
 * tabular or transformer, CPU or CUDA, needs for its update.
 *
 * All work is in log space: log-ratios of +-700 per sequence give finite, correct results or an
 * honest infinity, never a NaN.
 */
#ifndef GEPOLAB_CORE_POLICY_POLICY_H
#define GEPOLAB_CORE_POLICY_POLICY_H

#include "core/base/error.h"
#include "core/base/metrics.h"
#include "core/base/thread_pool.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"

#include <stddef.h>
#include <stdint.h>

/* The input of one loss evaluation. Ragged like a batch (core/rl/batch.h): group g owns responses
 * [group_start[g], group_start[g+1]), response i tokens [token_start[i], token_start[i+1]).
 * Borrowed, not owned. */
typedef struct policy_input {
  size_t n_groups, n_responses, n_tokens;
  const size_t *group_start; /* [n_groups + 1] */
  const size_t *token_start; /* [n_responses + 1] */
  const double *reward;      /* [n_responses] */
  const double *advantage;   /* [n_responses] advantages A; NULL: from rewards, baseline and scale.
                                Not for objective: disco */
  const double *logp;        /* [n_tokens] learner now */
  const double
      *logq; /* [n_tokens] sampler (or its truncated distribution, where the recipe says) */
  const double *logprox;     /* [n_tokens] learner at the batch's first update; NULL: same as logp
                                at a first update, i.e. treated as constant copies of logp; a
                                decoupled algorithm after the first update must be given them */
  const double *logref;      /* [n_tokens] reference policy; NULL unless ref_kl_coef != 0 */
  const double *entropy;     /* [n_tokens] of the learner's policy where the token was drawn; NULL
                                unless top_entropy < 1 */
  const double *version_gap; /* [n_tokens] learner version - token version; NULL: unknown */
  const double *log_denominator; /* [n_groups] log sum_y q(y)^2 for denominator: exact; else NULL */
  size_t max_length; /* longest response the world allows, for dr_grpo; 0: the longest here */
} policy_input;

/* Its result. Arrays are the caller's, sized as noted; any may be NULL when not wanted. */
typedef struct policy_output {
  double loss;
  double *advantage; /* [n_responses] A_i after baseline and scale */
  double *weight;    /* [n_tokens] the algorithm's own importance ratio, before clipping; a sequence
                        ratio is repeated over the tokens of its response */
  double *coefficient; /* [n_tokens] d(-loss)/d logp_{i,t} */
  double *baseline;    /* [n_groups] b with A = (r - b) / s, group mean form; NaN for disco, for
                          baseline: runner_up and where advantages are given */
  double *scale;    /* [n_groups] s; NaN where scale: group_std meets equal rewards, so that A has
                       no meaning for other responses */
  double *mean_aw;  /* [n_groups] mean_i w_i A_i with sequence weights, for estimation_error */
  int skip_metrics; /* in: 1 leaves metric and mean_aw alone (exact laboratory, inner loops) */
  double metric[METRIC_COUNT]; /* the ones policy can know: loss .. aw_variance; the rest NaN */
} policy_output;

/* A reusable workspace so that a training loop allocates once. */
typedef struct policy_workspace policy_workspace;
policy_workspace *policy_workspace_new(void); /* NULL if memory is short */
void policy_workspace_free(policy_workspace *ws);
/* Evaluations with ws run on these threads from now on, with the same bits for any number of them.
 * Borrowed until another pool is given, or NULL: the caller's thread alone, as at first. */
void policy_workspace_share(policy_workspace *ws, pool *threads);

/* Evaluates algorithm on the batch `in` (arrays shaped as policy_input says; nothing in it is
 * changed, and no array of out may overlap one of in), writes what out asks for (shaped as
 * policy_output says; out->loss always, out->metric unless skip_metrics) and keeps nothing but ws's
 * memory, which grows to the largest batch seen.
 * Formulas: paper/methods.md §3, by field, and §4, by algorithm; metrics: §5.
 *
 * GL_EINPUT, with a text that names what is wrong and the remedy: fields that do not go together
 * (policy_algorithm_check), ref_kl_coef without logref, denominator: exact without log_denominator,
 * rewards other than 0 and 1 for objective: disco or outside [0, 1] for scale: beta. GL_ENOMEM if
 * ws cannot grow. out is then unspecified, ws stays usable. A missing logprox is no error: it means
 * a first update. Deterministic: the same input gives the same bits. */
gl_status policy_evaluate(const policy_algorithm *algorithm, const policy_input *in,
                          policy_output *out, policy_workspace *ws, gl_error *err);

/* An effective sample size of a group below this fraction of its responses, on-policy, is the
 * algorithm's doing. */
#define POLICY_LEAST_ESS 0.3
/* Whether an evaluation's batch is on-policy: its staleness is 0, or sampler and learner differ by
 * at most 1e-4 nat a token (kl_k3). */
int policy_is_on_policy(const double value[METRIC_COUNT]);
enum { POLICY_ADVICE_SIZE = 320 };
/* What to say of an on-policy effective sample size below POLICY_LEAST_ESS, with the remedy; "" for
 * others and NaN. Returns text. */
const char *policy_ess_advice(const policy_algorithm *algorithm, double ess,
                              char text[POLICY_ADVICE_SIZE]);

/* The precision in which the results of an evaluation are stored. */
typedef enum policy_kept { POLICY_DOUBLE, POLICY_SINGLE } policy_kept;
typedef struct policy_keeping {
  policy_kept advantage, weight, coefficient;
  int by_group; /* messages count responses within their group and name that, too */
} policy_keeping;

/* GL_ENUMERIC where the loss, or an advantage, weight or coefficient of out, is infinite, NaN, or
 * beyond what it is kept in; the text names the first such result of the batch with its place and
 * the log-ratios there. Arrays of out that are NULL are not looked at. */
gl_status policy_check_finite(const policy_input *in, const policy_output *out,
                              const policy_keeping *keeping, gl_error *err);

/* --- tokens that lie somewhere else --- */

/* Log-probabilities that are not in memory as policy_input has them, in single precision for
 * example, and coefficients that are wanted elsewhere: a response is read, evaluated and written
 * while it is in a cache, instead of a batch that is widened, evaluated and narrowed as a whole.
 * The functions are called for different responses from several threads at once. */
typedef enum policy_which {
  POLICY_NOW,   /* logp */
  POLICY_BEFORE /* what the ratio divides by: logq; for old_policy: proximal logprox, or logp where
                   that is NULL */
} policy_which;

typedef struct policy_stream {
  void *self;
  size_t longest; /* tokens of the longest response */
  /* Log-probabilities of response i's tokens, in space[longest] or where the caller has them; NULL
   * where one of them is to be refused. */
  const double *(*read)(void *self, size_t i, policy_which which, double *space);
  /* Takes the coefficients of response i's tokens, or one that all of them have; returns 0 where
   * one is to be refused. */
  int (*write)(void *self, size_t i, const double *coefficient);
  int (*fill)(void *self, size_t i, double coefficient);
} policy_stream;

/* Whether the algorithm looks at each token once: its ratio is the token's or the response's own,
 * its clip a window on it, and no other term or weight needs the tokens. */
int policy_can_stream(const policy_algorithm *algorithm);

/* policy_evaluate() for such an algorithm, with the same bits, of loss, coefficients and what out
 * asks for of responses and groups. in->logp and the like are not looked at, out->weight and
 * out->coefficient must be NULL, out->skip_metrics 1. *refused is 1 where read, write or fill
 * refused a response; out is then unspecified. Errors as policy_evaluate(). */
gl_status policy_evaluate_stream(const policy_algorithm *algorithm, const policy_input *in,
                                 const policy_stream *stream, policy_output *out,
                                 policy_workspace *ws, int *refused, gl_error *err);

#endif
