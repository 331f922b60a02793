/* Shared by the parts of policy_evaluate().
 *
 * Objective: sum over tokens of omega_t A f(x), loss its negative plus KL terms; omega_t is the
 * aggregation weight z of the response times the truncation and masking factors. */
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

/* Logarithms of the algorithm's constant bounds, taken once per evaluation. */
typedef struct policy_bounds {
  double low, high, dual;     /* clip: ppo */
  double mask_low, mask_high; /* token_mask; infinite where it is off */
} policy_bounds;

/* Sums over the terms of one response. Those that overflow are kept apart: the loss is then the
 * infinity of the largest of them, so that opposite infinities never give a NaN. */
typedef struct policy_tally {
  double objective;               /* sum of the finite terms */
  double objective_inf, inf_size; /* the largest infinite term, 0 for none; log of its size */
  double clipped, units;          /* tokens, or responses: those the clip acts on, all */
  double k3, cppo,
      m2; /* diagnostics: sums of the two divergences' terms and of squared log-ratios */
} policy_tally;

/* Statistics of the weights w = exp(x) of one group. */
typedef struct policy_group_tally {
  size_t n;
  double log_mean, log_variance, top; /* of w, the largest of x */
  double aw_variance;                 /* sample variance of A w over the units */
  double mean_aw;                     /* mean of A times the response's weight */
} policy_group_tally;

struct policy_workspace {
  double *space;
  size_t space_size;
  double *scratch; /* of policy_evaluate_stream() */
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
  const policy_ratio_info *ratio; /* the algorithm's */
  const policy_input *in;
  policy_output *out;
  const double *logold;            /* [n_tokens] denominator of the ratio */
  double *log_ratio, *coefficient; /* [n_tokens] */
  double *x, *weight;              /* [n_tokens] log-ratio and its exp, where the
                                      ratio is of a token */
  double *factor;                  /* [n_tokens] of truncation (TIS); NULL: all 1 */
  double *x_slope;                 /* [n_tokens] d x / d logp of a token's ratio; NULL: all 1 */
  /* Masks: 1 takes part in the policy term, 0 does not; NULL: all 1. */
  double *mask_token;      /* [n_tokens] MIS: tests of the correction's ratio */
  double *mask_clip;       /* [n_tokens] M2PO and DPPO: tokens that the clip itself leaves out */
  double *mask_entropy;    /* [n_tokens] top_entropy */
  double *mask_gate;       /* [n_responses] the gate */
  double *mask_off_policy; /* [n_responses] off_policy_mask */
  double *mask_group;      /* [n_groups] drop_equal; never NULL */
  double *n_kept;          /* [n_responses] tokens that mask_token keeps, or all of them */
  double *advantage, *z, *seq_x, *seq_share;    /* [n_responses] */
  double *seq_p, *seq_q, *seq_g, *seq_jacobian; /* [n_responses] */
  double *seq_c;                                /* [n_responses] the coefficient of a response's
                                                   tokens, where they share its ratio */
  double *seq_in_limits;                        /* [n_responses] 0 beyond log_floor, log_cap */
  double *baseline, *scale;                     /* [n_groups] */
  policy_rank *rank;                            /* [n_tokens], where tokens are put in line */
  policy_tally *tally;                          /* [n_responses] */
  policy_group_tally *group_tally;              /* [n_groups] */
  pool *pool;                                   /* NULL: the caller's thread alone */
  policy_bounds bounds;
  double m2_bound;    /* log bound of second_moment: threshold */
  int sequence_level; /* x is one number for each response */
  double objective, clipped, units;
} policy_state;

/* Whether the gate leaves response i in the policy term. */
static inline bool policy_passes_gate(const policy_state *s, size_t i) {
  return s->mask_gate == NULL || s->mask_gate[i] != 0;
}

/* a * b where a factor of 0 wins over infinity. */
static inline double policy_times(double a, double b) {
  return a == 0 || b == 0 ? 0 : a * b;
}

static inline double policy_limit(double x, double lo, double hi) {
  return x < lo ? lo : (x > hi ? hi : x);
}

/* Whether the gradient of token t reaches its log-ratio: not beyond token_log_clamp, where the
 * ratio is made of clamped log-ratios. */
static inline bool policy_token_open(const policy_state *s, size_t t) {
  double clamp = s->algorithm->token_log_clamp;
  return isinf(clamp) || !s->ratio->clamped || fabs(s->in->logp[t] - s->logold[t]) <= clamp;
}

/* Checks what does not depend on tokens, grows ws and lays out *s in it, with arrays for so many
 * tokens. */
gl_status policy_begin(policy_state *s, policy_workspace *ws, size_t tokens, gl_error *err);
/* Grows ws and lays out the arrays of *s in it; ranks: tokens are sorted. */
gl_status policy_reserve(policy_state *s, policy_workspace *ws, size_t tokens, bool ranks,
                         gl_error *err);
/* Writes out what is kept of responses and groups. */
void policy_copy_out(policy_state *s);

/* run(s, i) for every i < n, on the pool's threads where there are tokens enough for them to pay. A
 * run writes only what belongs to its own i, so that results do not depend on the threads. */
void policy_each(policy_state *s, size_t n, void (*run)(policy_state *s, size_t i));

/* The threads that pay for the batch's tokens; NULL: the caller's alone. */
pool *policy_threads_for(const policy_state *s);

/* log sum exp of value[first], value[first + step] ... below n; -inf for none. */
double policy_log_sum(const double *value, size_t first, size_t step, size_t n);
/* Mean and log of the sample variance of exp(x): all in log space. */
void policy_log_moments(const double *x, size_t n, double *log_mean, double *log_variance);

gl_status policy_advantages(policy_state *s, gl_error *err);
void policy_factors(policy_state *s);
/* Whether token t is left out of the ratio of its response i: masked under mask_denominator: kept,
 * while others are not. A response without any kept token keeps the ratio of all, for diagnostics.
 */
static inline bool policy_token_masked(const policy_state *s, size_t i, size_t t) {
  return s->mask_token != NULL && s->algorithm->mask_denominator == MASK_KEPT &&
         s->mask_token[t] == 0 && s->n_kept[i] > 0;
}
/* How many tokens its ratio is made of. */
static inline double policy_ratio_tokens(const policy_state *s, size_t i) {
  const size_t n = s->in->token_start[i + 1] - s->in->token_start[i];
  return s->n_kept[i] > 0 ? s->n_kept[i] : (double)n;
}
void policy_aggregation(policy_state *s);
gl_status policy_ratios(policy_state *s, gl_error *err);
/* Its parts. Log-ratios of n tokens from their log-probabilities now and before: */
void policy_log_ratios(const policy_algorithm *algorithm, const double *p, const double *q,
                       size_t n, double *log_ratio);
/* The sums over response i's tokens, from three arrays of them (log_ratio NULL: p - q): */
void policy_sum_response(policy_state *s, size_t i, const double *p, const double *q,
                         const double *log_ratio);
/* What each response's ratio is, from the sums of all: */
gl_status policy_response_ratios(policy_state *s, gl_error *err);
/* Whether a token's ratio is that of its own probabilities. */
int policy_has_own_ratios(const policy_algorithm *algorithm);
/* Fills s->mask_gate, where the algorithm has a gate; seq_p, seq_q and seq_g are scratch. */
int policy_has_gate(const policy_algorithm *algorithm);
void policy_gate_responses(policy_state *s);
/* Calls `visit` for the responses first, first + step ... below end of every prompt's group, or of
 * every micro-batch (field group_scope). */
typedef struct policy_response_scope {
  size_t first, step, end;
} policy_response_scope;
void policy_each_scope(policy_state *s, policy_scope scope,
                       void (*visit)(policy_state *, policy_response_scope, size_t group));
/* log of sum Q^2 / sum Q over a scope, from log Q in seq_q; seq_g is scratch. */
double policy_log_expectation(policy_state *s, policy_response_scope c);
void policy_second_moment(policy_state *s);
/* Whether the clip gives some tokens no weight at all (mask_clip). */
bool policy_clip_masks_tokens(policy_clip clip);
/* Sets mask_clip to 0 where clip: binary_tv or binary_kl leaves a token out. */
void policy_binary_divergence(policy_state *s);
policy_bounds policy_bounds_of(const policy_algorithm *algorithm);
/* Whether token_mask zeroes log-ratio x. */
bool policy_masked(const policy_state *s, double x, double advantage);
/* Value f(x) and slope df/dx of the algorithm's clip at log-ratio x, whose ratio is u = exp(x);
 * position counts tokens from 1. Whether the clip acts: cuts the gradient or limits the value. */
bool policy_clip_apply(const policy_state *s, double x, double u, double advantage, double position,
                       double *value, double *slope);

/* A clip that leaves the ratio alone between two bounds and holds it at the nearer one elsewhere,
 * the same for all tokens of a response. */
typedef struct policy_window {
  bool of_ratio;          /* the bounds are on the ratio itself; false: on its logarithm */
  double low, high;       /* between them nothing acts; infinite where unbounded */
  double at_low, at_high; /* the ratios there */
} policy_window;
/* Whether the algorithm's clip is such a window; then *window is that for responses of this
 * advantage. The answer depends on s->algorithm alone; the window on s->bounds and s->m2_bound too.
 */
bool policy_window_of(const policy_state *s, double advantage, policy_window *window);
void policy_objective_terms(policy_state *s);
/* Its parts. Whether all tokens' weights are z, or 0 where M2PO leaves one out, and the ratio's
 * gradient is its own: */
int policy_has_plain_weights(const policy_state *s);
/* The tally and coefficients of response i, whose clip is a window, from arrays of its tokens;
 * mask may be NULL. Needs policy_has_plain_weights(). */
typedef struct policy_tokens {
  const double *x, *u;       /* log-ratios and ratios */
  const double *logp, *mask; /* mask: 0 where M2PO leaves a token out; NULL: all 1 */
  double *coefficient;
} policy_tokens;
void policy_windowed_terms(policy_state *s, size_t i, const policy_window *window,
                           const policy_tokens *tokens);
/* Adds the responses' tallies, in order: */
void policy_join(policy_state *s);
/* The objective's slope by each response's ratio, and what comes of it for a token of it (seq_c);
 * the ratio is of the response and carries its gradient. */
void policy_sequence_terms(policy_state *s);
gl_status policy_disco(policy_state *s, gl_error *err);
double policy_kl_terms(policy_state *s);
void policy_diagnostics(policy_state *s);

#endif
