/* Interfaces between the parts of policy_evaluate().
 *
 * The objective is the sum over tokens of omega_t A f(x); the loss is its negative plus KL terms.
 * omega_t is the aggregation weight z of the response times the truncation and masking factors. */
#ifndef GEPOLAB_CORE_POLICY_INTERNAL_H
#define GEPOLAB_CORE_POLICY_INTERNAL_H

#include "core/base/thread_pool.h"
#include "core/policy/policy.h"

#include <math.h>
#include <stdbool.h>

typedef struct policy_rank {
  double value;
  size_t token;
} policy_rank;

/* Logarithms of the algorithm's constant bounds, computed once per evaluation. */
typedef struct policy_bounds {
  double low, high, dual;     /* clip: ppo */
  double mask_low, mask_high; /* token_mask; infinite if off */
} policy_bounds;

/* Sums over the terms of one response. Terms that overflow are recorded separately: the loss is
 * then the infinity of the largest of them, so that opposite infinities never give a NaN. */
typedef struct policy_tally {
  double objective;               /* sum of the finite terms */
  double objective_inf, inf_size; /* the largest infinite term, 0 if none; log of its size */
  double clipped, units; /* number of clipped units and of all units (tokens or responses) */
  double k3, cppo,
      m2; /* diagnostics: sums of the terms of two divergences and of squared log-ratios */
} policy_tally;

/* Statistics of the weights w = exp(x) of one group. */
typedef struct policy_group_tally {
  size_t n;
  double log_mean, log_variance, top; /* mean and variance are of w; top is the largest x */
  double aw_variance;                 /* sample variance of A w over the units */
  double mean_aw;                     /* mean of A times the response's weight */
} policy_group_tally;

struct policy_workspace {
  double *space;
  size_t space_size;
  double *scratch; /* for policy_evaluate_stream() */
  size_t scratch_size;
  policy_rank *rank;
  size_t rank_size;
  policy_tally *tally;
  size_t tally_size;
  policy_group_tally *group_tally;
  size_t group_tally_size;
  pool *pool; /* borrowed */
};

typedef struct policy_state {
  const policy_algorithm *algorithm;
  const policy_ratio_info *ratio; /* properties of the algorithm's ratio */
  const policy_input *in;
  policy_output *out;
  const double *logold; /* [n_tokens] denominator of the ratio */
  const double *reward; /* [n_responses] rewards of the input, less the penalty of reward_kl_coef */
  double *log_between;  /* [n_tokens] logold for old_policy: interpolated; NULL otherwise */
  double
      *own_reward; /* [n_responses] memory of `reward` if it differs from the input's; else NULL */
  double *log_ratio, *coefficient; /* [n_tokens] logp - logold, clamped; d(-loss)/d logp */
  double *x, *weight; /* [n_tokens] log-ratio and its exp if the algorithm has token ratios */
  double *factor;     /* [n_tokens] truncation factors (TIS); NULL: all 1 */
  double *x_slope;    /* [n_tokens] d x / d logp of a token's ratio; NULL: all 1 */
  /* Masks: 1 keeps a token, response or group in the policy term, 0 drops it; NULL: all 1. */
  double *mask_token;      /* [n_tokens] MIS: tests on the correction ratio */
  double *mask_clip;       /* [n_tokens] M2PO and DPPO: 0 for tokens that the clip drops */
  double *mask_entropy;    /* [n_tokens] top_entropy and entropy_ratio_ */
  double *mask_gate;       /* [n_responses] the gate */
  double *mask_off_policy; /* [n_responses] off_policy_mask */
  double *mask_group;      /* [n_groups] drop_equal; never NULL */
  double *n_kept;          /* [n_responses] number of tokens that mask_token keeps */
  /* [n_responses] A; aggregation weight of each token; logarithm of the response's ratio;
   * derivative of the logarithm of its denominator with respect to log P. */
  double *advantage, *z, *seq_x, *seq_share;
  /* [n_responses] log P; log Q; d objective / d seq_x, before that scratch; d seq_x / d logp of
   * each token, without the denominator. */
  double *seq_p, *seq_q, *seq_g, *seq_jacobian;
  double
      *seq_c; /* [n_responses] coefficient shared by a response's tokens if they share its ratio */
  double *seq_in_limits;           /* [n_responses] 0 outside log_floor, log_cap */
  double *baseline, *scale;        /* [n_groups] b and s in A = (r - b) / s */
  policy_rank *rank;               /* [n_tokens] if tokens are sorted */
  policy_tally *tally;             /* [n_responses] sums over the terms of each response */
  policy_group_tally *group_tally; /* [n_groups] statistics of the weights of each group */
  pool *pool;                      /* borrowed; NULL: only the caller's thread */
  policy_bounds bounds;
  double m2_bound;    /* log bound of second_moment: threshold */
  int sequence_level; /* x has one entry per response */
  double objective, clipped, units;
} policy_state;

/* Whether the gate keeps response i in the policy term. */
static inline bool policy_passes_gate(const policy_state *s, size_t i) {
  return s->mask_gate == NULL || s->mask_gate[i] != 0;
}

/* Returns a * b, where 0 times infinity is 0. */
static inline double policy_times(double a, double b) {
  return a == 0 || b == 0 ? 0 : a * b;
}

static inline double policy_limit(double x, double lo, double hi) {
  return x < lo ? lo : (x > hi ? hi : x);
}

/* Whether the gradient reaches token t's log-ratio. It does not beyond token_log_clamp if the ratio
 * is computed from clamped log-ratios. */
static inline bool policy_token_open(const policy_state *s, size_t t) {
  double clamp = s->algorithm->token_log_clamp;
  return isinf(clamp) || !s->ratio->clamped || fabs(s->in->logp[t] - s->logold[t]) <= clamp;
}

/* Grows ws and lays out the arrays of *s in it; ranks: whether tokens will be sorted. */
gl_status policy_reserve(policy_state *s, policy_workspace *ws, size_t tokens, bool ranks,
                         gl_error *err);

/* Calls run(s, i) for every i < n, on the pool's threads if there are enough tokens to be worth it.
 * A run writes only data of its own i, so results do not depend on the number of threads. */
void policy_each(policy_state *s, size_t n, void (*run)(policy_state *s, size_t i));

/* The threads worth using for this batch; NULL: only the caller's. */
pool *policy_threads_for(const policy_state *s);

/* Returns log sum exp of value[first], value[first + step], ... at indices below n; -inf if there
 * are none. */
double policy_log_sum(const double *value, size_t first, size_t step, size_t n);

gl_status policy_advantages(policy_state *s, gl_error *err);
/* The scale of a group that has nothing to be divided by: no deviation of rewards, a mean or a
 * density of 0. It only guards against division by zero. -INFINITY: the scale has no guard. */
double policy_scale_guard(const policy_algorithm *algorithm);
void policy_factors(policy_state *s);
/* Whether token t is excluded from the ratio of response i: it is masked, and mask_denominator is
 * `kept`. If all tokens of a response are masked, its ratio uses all of them, for diagnostics. */
static inline bool policy_token_masked(const policy_state *s, size_t i, size_t t) {
  return s->mask_token != NULL && s->algorithm->mask_denominator == MASK_KEPT &&
         s->mask_token[t] == 0 && s->n_kept[i] > 0;
}
/* The number of tokens in the ratio of response i. */
static inline double policy_ratio_tokens(const policy_state *s, size_t i) {
  const size_t n = s->in->token_start[i + 1] - s->in->token_start[i];
  return s->n_kept[i] > 0 ? s->n_kept[i] : (double)n;
}
void policy_aggregation(policy_state *s);
gl_status policy_ratios(policy_state *s, gl_error *err);
/* Parts of policy_ratios(). Log-ratios of n tokens from current (p) and old (q) log-probabilities:
 */
void policy_log_ratios(const policy_algorithm *algorithm, const double *p, const double *q,
                       size_t n, double *log_ratio);
/* Writes log P, log Q and the log-ratio of response i to seq_p, seq_q and seq_x, from three arrays
 * of its tokens (log_ratio NULL: p - q). */
void policy_sum_response(policy_state *s, size_t i, const double *p, const double *q,
                         const double *log_ratio);
/* The ratio of every response, from these sums: */
gl_status policy_response_ratios(policy_state *s, gl_error *err);
/* Whether each token's ratio depends only on its own two log-probabilities. */
int policy_has_own_ratios(const policy_algorithm *algorithm);
/* Fills s->mask_gate if the algorithm has a gate; overwrites seq_p, seq_q and seq_g. */
int policy_has_gate(const policy_algorithm *algorithm);
void policy_gate_responses(policy_state *s);
/* Calls `visit` for every prompt's group, or every micro-batch (field group_scope). A scope is the
 * responses first, first + step, ... below end. */
typedef struct policy_response_scope {
  size_t first, step, end;
} policy_response_scope;
void policy_each_scope(policy_state *s, policy_scope scope,
                       void (*visit)(policy_state *, policy_response_scope, size_t group));
/* Returns log(sum Q^2 / sum Q) over a scope, from log Q in seq_q; overwrites seq_g. */
double policy_log_expectation(policy_state *s, policy_response_scope c);
void policy_second_moment(policy_state *s);
/* Whether the clip drops some tokens completely (mask_clip). */
bool policy_clip_masks_tokens(policy_clip clip);
/* Moves the bounds of clip: ppo until balance is reached. */
void policy_balance_bounds(policy_state *s);
/* Sets mask_clip to 0 for tokens that clip: binary_tv or binary_kl drops. */
void policy_binary_divergence(policy_state *s);
policy_bounds policy_bounds_of(const policy_algorithm *algorithm);
/* Whether token_mask drops a token with log-ratio x. */
bool policy_masked(const policy_state *s, double x, double advantage);
/* The input of a clip: a log-ratio x and its ratio u = exp(x), the advantage, and for a token its
 * position, counted from 1, and its log-probability under the old policy. */
typedef struct policy_unit {
  double x, u, advantage, position, logold;
} policy_unit;
/* Computes value f(x) and slope df/dx of the algorithm's clip. Returns whether the clip is active:
 * it cuts the gradient or limits the value. */
bool policy_clip_apply(const policy_state *s, const policy_unit *unit, double *value,
                       double *slope);

/* A clip that is the identity between two bounds and constant outside them, the same for all tokens
 * of a response. */
typedef struct policy_window {
  bool of_ratio;              /* bounds apply to the ratio; false: to its logarithm */
  double low, high;           /* the clip is inactive between them; infinite if unbounded */
  double keep_low, keep_high; /* factors of the values beyond the bounds */
  double at_low, at_high; /* the values beyond the bounds: these factors times the ratios there */
} policy_window;
/* Returns whether the algorithm's clip is a window and sets *window for responses with this
 * advantage. The return value depends on s->algorithm only; the window also depends on s->bounds
 * and s->m2_bound. */
bool policy_window_of(const policy_state *s, double advantage, policy_window *window);
void policy_objective_terms(policy_state *s);
/* Arrays of a response's tokens. */
typedef struct policy_tokens {
  const double *x, *u;       /* log-ratios and ratios */
  const double *logp, *mask; /* mask: 0 for tokens that M2PO drops; NULL: all 1 */
  double *coefficient;
} policy_tokens;
/* Part of policy_objective_terms(): computes the tally and coefficients of response i, whose clip
 * is a window. Each token's weight is z, or 0 if M2PO drops it, and the ratio's gradient reaches
 * only that token. */
void policy_windowed_terms(policy_state *s, size_t i, const policy_window *window,
                           const policy_tokens *tokens);
/* Adds the tallies of all responses, in order. */
void policy_join(policy_state *s);
/* For response ratios with gradient: the derivative of the objective with respect to each
 * response's ratio, and from it the coefficient of its tokens (seq_c). */
void policy_sequence_terms(policy_state *s);
/* The objectives that compare scores of right and wrong answers. */
gl_status policy_scores(policy_state *s, gl_error *err);
double policy_kl_terms(policy_state *s);
void policy_diagnostics(policy_state *s);

#endif
