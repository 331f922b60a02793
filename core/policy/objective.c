/* Computes loss and coefficients from ratios: the policy term of every algorithm, DisCO's
 * objective, and the divergence terms. */
#include "core/base/simd.h"
#include "core/policy/internal.h"

#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Adds a term; log_size orders terms that overflow. */
static void objective_add(policy_tally *tally, double term, double log_size) {
  if (isfinite(term)) {
    tally->objective += term;
  } else if (log_size > tally->inf_size || tally->objective_inf == 0) {
    tally->inf_size = log_size;
    tally->objective_inf = term;
  }
}

static double omega(const policy_state *s, size_t i, size_t t) {
  double w = s->z[i];
  if (s->mask_token != NULL) w *= s->mask_token[t];
  if (s->mask_clip != NULL) w *= s->mask_clip[t];
  if (s->mask_off_policy != NULL) w *= s->mask_off_policy[i];
  if (s->mask_entropy != NULL) w *= s->mask_entropy[t];
  return s->factor == NULL ? w : policy_times(w, s->factor[t]);
}

/* Whether the gradient passes the masks, clamps and clips of all tokens; see policy_token_open()
 * and gradient_reaches() for one token. */
static int all_pass(const policy_state *s) {
  const policy_algorithm *algorithm = s->algorithm;
  return algorithm->clip != CLIP_TOKEN_LOG && s->mask_token == NULL &&
         (isinf(algorithm->token_log_clamp) || !s->ratio->clamped);
}

/* Whether the gradient passes token t's mask, its clamp and, for GMPO, its clip. */
static int gradient_reaches(const policy_state *s, size_t i, size_t t) {
  const policy_algorithm *algorithm = s->algorithm;
  const double a = s->advantage[i];
  if (policy_token_masked(s, i, t)) return 0;
  if (!policy_token_open(s, t)) return 0;
  if (algorithm->clip != CLIP_TOKEN_LOG) return 1;
  return a >= 0 ? s->log_ratio[t] <= algorithm->eps_high : s->log_ratio[t] >= -algorithm->eps_low;
}

/* Terms are stored for this many tokens at a time. */
enum { PIECE = 64 };

/* Up to PIECE tokens of a response, and the inputs of their terms. */
typedef struct piece {
  const double *x, *u; /* log-ratios and ratios */
  const double *seen;  /* x or u: the one that the window bounds */
  const double *mask;  /* 0 for tokens that M2PO drops; NULL: all 1 */
  const double *logp;  /* set if the ratio is a constant; NULL: the gradient passes through it */
  double *coefficient;
  const policy_window *window;
  double gain;        /* z A of the response */
  double term[PIECE]; /* [PIECE] one term per token */
} piece;

INLINE void choose4(const mask4 *where, const lane4 *there, const lane4 *elsewhere, lane4 *out) {
  *out = (lane4)((*where & (mask4)*there) | (~*where & (mask4)*elsewhere));
}

INLINE void clear4(const mask4 *where, lane4 *out) {
  *out = (lane4)(~*where & (mask4)*out);
}

/* Loads four lanes of an array; lanes from n on are 0. */
INLINE void load4(const double *from, size_t n, lane4 *out) {
  if (n < 4)
    lane4_some(from, n, out);
  else
    *out = *(const lane4 *)from;
}

INLINE void store4(const lane4 *from, size_t n, double *to) {
  if (n < 4)
    for (size_t l = 0; l < n; ++l) to[l] = (*from)[l];
  else
    *(lane4 *)to = *from;
}

/* Per-lane counts of clipped tokens and of non-finite terms. */
typedef struct counts {
  mask4 clipped, infinite;
} counts;

/* Terms and coefficients of up to four tokens starting at token t, of which n remain. masks: tokens
 * may be dropped; constant: ratios are constants. A product with 0 is 0 even if the other factor is
 * infinite. */
INLINE void four_terms(piece *p, size_t t, size_t n, bool masks, bool constant, counts *sum) {
  const policy_window *w = p->window;
  const lane4 zero = {0}, at_low = zero + w->at_low, at_high = zero + w->at_high;
  const mask4 sign = (mask4)(-zero), lane = {0, 1, 2, 3};
  const mask4 here = (mask4)(lane < (int64_t)n);
  lane4 u, seen, mask, logp, f, value, with_logp;
  load4(p->u + t, n, &u);
  load4(p->seen + t, n, &seen);
  const mask4 over = (mask4)(seen > w->high), under = (mask4)(seen < w->low);
  mask4 out = over | under, none, left_out = {0};
  choose4(&under, &at_low, &u, &f);
  choose4(&over, &at_high, &f, &f);
  value = p->gain * f;
  none = (mask4)(f == 0);
  if (masks) {
    load4(p->mask + t, n, &mask);
    left_out = (mask4)(mask == 0);
    none |= left_out;
  }
  clear4(&none, &value);
  with_logp = value;
  if (constant) {
    load4(p->logp + t, n, &logp);
    none = (mask4)(value == 0) | (mask4)(logp == 0);
    with_logp = value * logp;
    clear4(&none, &with_logp);
  } else {
    clear4(&out, &value);
  }
  const lane4 size = (lane4)(~sign & (mask4)with_logp);
  store4(&with_logp, n, p->term + t);
  store4(&value, n, p->coefficient + t);
  sum->clipped -= (out | left_out) & here; /* a true lane is -1 */
  sum->infinite -= ~(mask4)(size <= DBL_MAX) & here;
}

/* Terms and coefficients of n tokens; returns the number of non-finite terms. */
INLINE size_t piece_terms(piece *p, bool masks, bool constant, size_t n, size_t *clipped) {
  counts sum = {{0}, {0}};
  for (size_t t = 0; t < n; t += 4) four_terms(p, t, n - t, masks, constant, &sum);
  size_t infinite = 0;
  for (size_t l = 0; l < 4; ++l) {
    *clipped += (size_t)sum.clipped[l];
    infinite += (size_t)sum.infinite[l];
  }
  return infinite;
}

/* Returns the sum of the terms of n tokens; *infinite counts non-finite terms. */
CLONES static double terms_of(piece *p, size_t n, size_t *clipped, size_t *infinite) {
  if (p->logp != NULL)
    *infinite = p->mask != NULL ? piece_terms(p, true, true, n, clipped)
                                : piece_terms(p, false, true, n, clipped);
  else
    *infinite = p->mask != NULL ? piece_terms(p, true, false, n, clipped)
                                : piece_terms(p, false, false, n, clipped);
  return lane4_sum(p->term, n);
}

/* The number of clipped tokens of a response that has no policy term. */
CLONES static size_t clipped_of(const double *seen, const double *mask, size_t n, double low,
                                double high) {
  uint64_t count = 0;
  if (mask == NULL)
    for (size_t t = 0; t < n; ++t) count += ((seen[t] > high) | (seen[t] < low)) ? 1 : 0;
  else
    for (size_t t = 0; t < n; ++t)
      count += ((seen[t] > high) | (seen[t] < low) | (mask[t] == 0)) ? 1 : 0;
  return count;
}

static void move_on(piece *p, size_t n) {
  p->x += n, p->u += n, p->seen += n, p->coefficient += n;
  if (p->mask != NULL) p->mask += n;
  if (p->logp != NULL) p->logp += n;
}

/* Fast path of token_terms() for most algorithms: the clip is a window and weights are z, or 0 if
 * M2PO drops the token. Gives the same numbers several times as fast. */
void policy_windowed_terms(policy_state *s, size_t i, const policy_window *window,
                           const policy_tokens *tokens) {
  const size_t length = s->in->token_start[i + 1] - s->in->token_start[i];
  const double gain = s->z[i] * s->advantage[i];
  policy_tally *tally = &s->tally[i];
  piece p = {.x = tokens->x,
             .u = tokens->u,
             .seen = window->of_ratio ? tokens->u : tokens->x,
             .mask = tokens->mask,
             .logp = s->algorithm->ratio_gradient ? NULL : tokens->logp,
             .coefficient = tokens->coefficient,
             .window = window,
             .gain = gain};
  size_t clipped = 0, infinite = 0;
  if (gain == 0) {
    memset(p.coefficient, 0, length * sizeof *p.coefficient);
    tally->clipped = (double)clipped_of(p.seen, p.mask, length, window->low, window->high);
    return;
  }
  for (size_t left = length, n; left > 0; left -= n) {
    n = left < PIECE ? left : PIECE;
    const double sum = terms_of(&p, n, &clipped, &infinite);
    if (infinite == 0) tally->objective += sum;
    for (size_t t = 0; t < n && infinite > 0; ++t) objective_add(tally, p.term[t], p.x[t]);
    move_on(&p, n);
  }
  tally->clipped = (double)clipped;
}

static void windowed_terms(policy_state *s, size_t i, const policy_window *window) {
  const size_t lo = s->in->token_start[i];
  const policy_tokens tokens = {.x = s->x + lo,
                                .u = s->weight + lo,
                                .logp = s->in->logp + lo,
                                .mask = s->mask_clip != NULL ? s->mask_clip + lo : NULL,
                                .coefficient = s->coefficient + lo};
  policy_windowed_terms(s, i, window, &tokens);
}

/* Whether omega() is the aggregation weight z, except for tokens that M2PO drops. */
static int has_no_factors(const policy_state *s) {
  return s->mask_token == NULL && s->factor == NULL && s->mask_off_policy == NULL &&
         s->mask_entropy == NULL;
}

/* Whether each token's weight is z, or 0 if M2PO drops it, and the ratio's gradient reaches only
 * that token. */
static int has_plain_weights(const policy_state *s) {
  if (!has_no_factors(s) || s->x_slope != NULL) return 0;
  return !s->algorithm->ratio_gradient ||
         (isinf(s->algorithm->token_log_clamp) && !s->ratio->limited);
}

/* Used for gated responses, which have no policy term. */
static void clear_coefficients(policy_state *s, size_t i) {
  for (size_t t = s->in->token_start[i]; t < s->in->token_start[i + 1]; ++t) s->coefficient[t] = 0;
}

/* Terms and coefficients of response i for ratios of tokens. */
static void token_terms(policy_state *s, size_t i) {
  const policy_algorithm *algorithm = s->algorithm;
  policy_tally *tally = &s->tally[i];
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  double a = s->advantage[i];
  policy_window window;
  tally->units = (double)(hi - lo);
  if (!policy_passes_gate(s, i)) {
    clear_coefficients(s, i);
    tally->clipped = tally->units;
    return;
  }
  if (has_plain_weights(s) && policy_window_of(s, a, &window)) {
    windowed_terms(s, i, &window);
    return;
  }
  for (size_t t = lo; t < hi; ++t) {
    double f, d, w = omega(s, i, t);
    const policy_unit unit = {s->x[t], s->weight[t], a, (double)(t - lo + 1), s->logold[t]};
    int acts = policy_clip_apply(s, &unit, &f, &d);
    tally->clipped += acts || (s->mask_clip != NULL && s->mask_clip[t] == 0);
    s->coefficient[t] = 0;
    if (a == 0 || w == 0) continue;
    if (!algorithm->ratio_gradient) {
      s->coefficient[t] = policy_times(w * a, f);
      objective_add(tally, policy_times(s->coefficient[t], s->in->logp[t]), s->x[t]);
      continue;
    }
    objective_add(tally, policy_times(w * a, f), s->x[t]);
    int limited =
        s->ratio->limited && (s->x[t] >= algorithm->log_cap || s->x[t] <= algorithm->log_floor);
    if (s->x_slope != NULL) d = policy_times(d, s->x_slope[t]);
    if (!limited && policy_token_open(s, t)) s->coefficient[t] = policy_times(w * a, d);
  }
}

/* GMPO: the clip acts on each token's log-ratio inside the geometric mean. */
static int token_log_clip(const policy_state *s, size_t i, double *f, double *d) {
  const policy_algorithm *algorithm = s->algorithm;
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  double sum = 0, a = s->advantage[i];
  int acts = 0;
  for (size_t t = lo; t < hi; ++t) {
    double l = s->log_ratio[t],
           clipped = a >= 0 ? fmin(l, algorithm->eps_high) : fmax(l, -algorithm->eps_low);
    if (policy_token_masked(s, i, t)) continue;
    acts = acts || clipped != l;
    sum += clipped;
  }
  double mean = sum / policy_ratio_tokens(s, i),
         x = policy_limit(mean, algorithm->log_floor, algorithm->log_cap);
  int masked = policy_masked(s, s->seq_x[i], a);
  *f = masked ? 0 : exp(x);
  *d = x == mean ? *f : 0;
  return acts || masked;
}

/* Aggregation weight of the whole response; with sequence_sum each response has the same weight. */
static double response_weight(const policy_state *s, size_t i) {
  const size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  double sum = 0;
  if (has_no_factors(s) && s->mask_clip == NULL)
    sum = s->z[i] * (double)(hi - lo);
  else
    for (size_t t = lo; t < hi; ++t) sum += omega(s, i, t);
  return s->algorithm->aggregate == AGGREGATE_SEQUENCE_SUM && s->n_kept[i] > 0 ? sum / s->n_kept[i]
                                                                               : sum;
}

/* Sets seq_g[i] = d objective / d x_i. If the gradient of x is not shared with other tokens
 * (constant ratios, GSPO-token), writes the coefficients directly instead. */
static void sequence_terms(policy_state *s, size_t i) {
  const policy_algorithm *algorithm = s->algorithm;
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  double a = s->advantage[i], x = s->seq_x[i], f, d;
  policy_tally *tally = &s->tally[i];
  s->seq_g[i] = 0;
  tally->units = 1;
  if (hi == lo) return;
  if (!policy_passes_gate(s, i)) {
    clear_coefficients(s, i);
    tally->clipped = 1;
    return;
  }
  if (algorithm->clip == CLIP_TOKEN_LOG) {
    tally->clipped = token_log_clip(s, i, &f, &d);
  } else {
    tally->clipped = policy_clip_apply(s, &(policy_unit){x, exp(x), a, 1, NAN}, &f, &d);
    if (s->seq_in_limits[i] == 0) d = 0;
  }
  if (!algorithm->ratio_gradient) {
    for (size_t t = lo; t < hi; ++t) {
      s->coefficient[t] = policy_times(omega(s, i, t) * a, f);
      objective_add(tally, policy_times(s->coefficient[t], s->in->logp[t]), x);
    }
  } else if (s->ratio->gradient == RATIO_GRADIENT_OWN_TOKEN) {
    for (size_t t = lo; t < hi; ++t) {
      double w = omega(s, i, t) * a;
      s->coefficient[t] = policy_token_open(s, t) ? policy_times(w, d) : 0;
      objective_add(tally, policy_times(w, f), x);
    }
  } else {
    double w = response_weight(s, i) * a;
    s->seq_g[i] = policy_times(w, d);
    objective_add(tally, policy_times(w, f), x);
  }
}

static double through_denominator(const policy_state *s, size_t i, double group_sum) {
  double g = s->seq_g[i], taken = policy_times(s->seq_share[i], group_sum);
  return isfinite(g) || isfinite(taken) ? g - taken : policy_times(1 - s->seq_share[i], g);
}

static double scope_sum(const policy_state *s, size_t first, size_t step, size_t end) {
  double sum = 0, top = 0;
  for (size_t i = first; i < end; i += step) {
    if (isfinite(s->seq_g[i]))
      sum += s->seq_g[i];
    else
      top = s->seq_g[i];
  }
  return top != 0 ? top : sum;
}

/* Sets seq_c for the responses first, first + step, ... below end. */
static void share_scope(policy_state *s, size_t first, size_t step, size_t end) {
  const int shared = s->algorithm->denominator_gradient;
  const double sum = shared ? scope_sum(s, first, step, end) : 0;
  for (size_t i = first; i < end; i += step) {
    const double g = shared ? through_denominator(s, i, sum) : s->seq_g[i];
    s->seq_c[i] = policy_times(g, s->seq_jacobian[i]);
  }
}

static void objective_share(policy_state *s) {
  const policy_input *in = s->in;
  if (s->algorithm->group_scope == SCOPE_MICROBATCH && s->algorithm->denominator_gradient) {
    const size_t parts =
        (in->n_responses + s->algorithm->microbatch - 1) / s->algorithm->microbatch;
    for (size_t k = 0; k < parts; ++k) share_scope(s, k, parts, in->n_responses);
    return;
  }
  for (size_t g = 0; g < in->n_groups; ++g)
    share_scope(s, in->group_start[g], 1, in->group_start[g + 1]);
}

/* Assigns response i's coefficient to those of its tokens that the gradient reaches. */
static void spread(policy_state *s, size_t i) {
  const double c = s->seq_c[i];
  for (size_t t = s->in->token_start[i]; t < s->in->token_start[i + 1]; ++t) s->coefficient[t] = c;
  if (all_pass(s)) return;
  for (size_t t = s->in->token_start[i]; t < s->in->token_start[i + 1]; ++t)
    if (!gradient_reaches(s, i, t)) s->coefficient[t] = 0;
}

static void response_terms(policy_state *s, size_t i) {
  s->tally[i] = (policy_tally){0};
  if (s->sequence_level)
    sequence_terms(s, i);
  else
    token_terms(s, i);
}

/* Adds the tallies of all responses, in order. */
void policy_join(policy_state *s) {
  double largest = 0, inf_size = 0;
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    const policy_tally *tally = &s->tally[i];
    s->objective += tally->objective;
    s->clipped += tally->clipped;
    s->units += tally->units;
    if (tally->objective_inf == 0 || (largest != 0 && tally->inf_size <= inf_size)) continue;
    largest = tally->objective_inf;
    inf_size = tally->inf_size;
  }
  if (largest != 0) s->objective = largest;
}

void policy_sequence_terms(policy_state *s) {
  for (size_t i = 0; i < s->in->n_responses; ++i) response_terms(s, i);
  policy_join(s);
  objective_share(s);
}

void policy_objective_terms(policy_state *s) {
  policy_each(s, s->in->n_responses, response_terms);
  policy_join(s);
  if (!s->sequence_level || !s->algorithm->ratio_gradient ||
      s->ratio->gradient != RATIO_GRADIENT_RESPONSE)
    return;
  objective_share(s);
  policy_each(s, s->in->n_responses, spread);
}

/* --- objectives that compare scores of right and wrong answers --- */
/* REAL (2602.05630): a classifier's loss, the log of 1 plus the sum of exp(score / tau) over the
 * group's wrong answers, plus that of exp(-score / tau) over its right ones. The score is the mean
 * token log-ratio. `advantage` stores the score's weight, the derivative of the objective. */
static double real_question(policy_state *s, size_t g) {
  const policy_input *in = s->in;
  const size_t lo = in->group_start[g], hi = in->group_start[g + 1];
  const double tau = s->algorithm->disco_tau;
  double top[2] = {0, 0}, sum[2];
  size_t count[2] = {0, 0}; /* numbers of wrong and of right answers */
  for (size_t i = lo; i < hi; ++i) {
    const int right = in->reward[i] == 1;
    double score = 0;
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) score += s->log_ratio[t];
    s->seq_x[i] = (right ? -score : score) / (fmax(1, s->n_kept[i]) * tau);
    top[right] = fmax(top[right], s->seq_x[i]);
    count[right]++;
    s->advantage[i] = 0;
  }
  if (count[0] == 0 || count[1] == 0) return 0;
  for (int right = 0; right < 2; ++right) sum[right] = exp(-top[right]);
  for (size_t i = lo; i < hi; ++i) {
    const int right = in->reward[i] == 1;
    sum[right] += exp(s->seq_x[i] - top[right]);
  }
  for (size_t i = lo; i < hi; ++i) {
    const int right = in->reward[i] == 1;
    const double weight = exp(s->seq_x[i] - top[right]) / (sum[right] * tau);
    s->advantage[i] = right ? weight : -weight;
  }
  return -(top[0] + log(sum[0])) - (top[1] + log(sum[1]));
}

/* DisCO (2505.12366): scores correct responses against wrong ones, with a penalty that keeps the
 * learner close to the sampler. The score is the mean token log-probability (ratio: none) or the
 * mean token ratio (ratio: token). `advantage` stores the weight h_i of the score. */

static double objective_score(const policy_state *s, size_t i) {
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  double sum = 0;
  for (size_t t = lo; t < hi; ++t)
    sum += s->algorithm->ratio == RATIO_TOKEN ? s->weight[t] : s->in->logp[t];
  return hi > lo ? sum / (double)(hi - lo) : 0;
}

/* The objective of group g; sets the weights of its scores. A group without both right and wrong
 * responses contributes 0. */
static double disco_question(policy_state *s, size_t g) {
  const policy_input *in = s->in;
  size_t lo = in->group_start[g], hi = in->group_start[g + 1];
  double right = 0, wrong = 0, top = -INFINITY, sum = 0, gain = 0, lost = 0;
  int softmax = s->algorithm->negatives == NEGATIVES_SOFTMAX;
  for (size_t i = lo; i < hi; ++i) {
    s->advantage[i] = 0;
    s->seq_x[i] = objective_score(s, i);
    if (in->reward[i] == 1)
      right += 1;
    else
      wrong += 1;
    if (in->reward[i] == 0) top = fmax(top, s->seq_x[i] / s->algorithm->disco_tau);
  }
  if (right == 0 || wrong == 0) return 0;
  for (size_t i = lo; i < hi; ++i) {
    if (in->reward[i] == 1)
      gain += s->seq_x[i] / right;
    else
      lost += s->seq_x[i] / wrong;
    double e = s->seq_x[i] / s->algorithm->disco_tau;
    if (in->reward[i] == 0) sum += e == top ? 1 : exp(e - top);
  }
  for (size_t i = lo; i < hi; ++i) {
    double e = s->seq_x[i] / s->algorithm->disco_tau,
           share = e == top ? 1 / sum : exp(e - top) / sum;
    s->advantage[i] = in->reward[i] == 1 ? 1 / right : (softmax ? -share : -1 / wrong);
  }
  if (softmax) lost = s->algorithm->disco_tau * (top + log(sum / wrong));
  return isinf(gain) && isinf(lost) ? -lost : gain - lost;
}

gl_status policy_scores(policy_state *s, gl_error *err) {
  const policy_input *in = s->in;
  const int disco = s->algorithm->objective == OBJECTIVE_DISCO;
  const int by_ratio = disco && s->algorithm->ratio == RATIO_TOKEN;
  double drift = 0, questions = (double)in->n_groups, tokens = (double)in->n_tokens;
  if (policy_ratios(s, err) != GL_OK) return GL_EINPUT;
  for (size_t g = 0; g < in->n_groups; ++g) {
    double j = disco ? disco_question(s, g) : real_question(s, g);
    s->objective += j / questions;
    s->baseline[g] = s->scale[g] = NAN;
  }
  for (size_t t = 0; t < in->n_tokens && disco; ++t) drift += (in->logq[t] - in->logp[t]) / tokens;
  double push = s->algorithm->penalty * fmax(0, drift - s->algorithm->penalty_margin);
  s->objective -= policy_times(push, drift);
  for (size_t i = 0; i < in->n_responses; ++i) {
    double h = s->advantage[i] / (questions * fmax(1, s->n_kept[i]));
    s->z[i] = 1 / tokens;
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
      double d = by_ratio ? s->weight[t] : 1;
      if (s->algorithm->ratio == RATIO_TOKEN && !policy_token_open(s, t)) d = 0;
      s->coefficient[t] = policy_times(h, d) + push / tokens;
    }
  }
  return GL_OK;
}

/* --- divergence from the sampler (kl_coef) and from a reference policy (ref_kl_coef) --- */
/* Divergence terms. They use the algorithm's aggregation weights without truncation factors. */

typedef struct kl_value {
  double value, slope; /* slope = d value / d logp */
} kl_value;

static double sign_of(double x) {
  return x > 0 ? 1 : (x < 0 ? -1 : 0);
}

/* The KL term to the sampler of a token with l = logp - logq. */
static kl_value sampler_term(policy_kl_form form, double l) {
  switch (form) {
  case KL_K1:
    return (kl_value){-l, -1};
  case KL_K2:
    return (kl_value){l * l / 2, l};
  case KL_K3:
    return (kl_value){expm1(l) - l, expm1(l)};
  case KL_CPPO:
    return (kl_value){expm1(-l) + l, -expm1(-l)};
  case KL_ABS:
    return (kl_value){fabs(l), sign_of(l)};
  }
  return (kl_value){NAN, NAN};
}

/* The KL term to the reference policy of a token with d = logp - logref. The forms K1_PLUS and
 * K3_PLUS have the gradient of k2 instead of their own. */
static kl_value reference_term(policy_ref_kl_form form, double d) {
  switch (form) {
  case REF_KL_K1:
    return (kl_value){d, 1};
  case REF_KL_K2:
    return (kl_value){d * d / 2, d};
  case REF_KL_K3:
    return (kl_value){expm1(-d) + d, -expm1(-d)};
  case REF_KL_ABS:
    return (kl_value){fabs(d), sign_of(d)};
  case REF_KL_K1_PLUS:
    return (kl_value){d, d};
  case REF_KL_K3_PLUS:
    return (kl_value){expm1(-d) + d, d};
  }
  return (kl_value){NAN, NAN};
}

/* --- KL-Cov: selection of tokens (2505.22617) --- */

/* Sorts by value, largest first; ties in order of token. */
static int kl_descending(const void *left, const void *right) {
  const policy_rank *a = left, *b = right;
  if (a->value != b->value) return a->value > b->value ? -1 : 1;
  return a->token < b->token ? -1 : a->token > b->token;
}

/* The tokens selected by kl_share: those whose product of centred advantage and centred
 * log-probability (centred over the batch's tokens) is above `product`. Tokens with exactly this
 * product are selected in order of decreasing log-probability, up to `last`. This order does not
 * depend on the numbering of responses. */
typedef struct kl_choice {
  int all;
  double mean_advantage, mean_logp, product;
  policy_rank last; /* log-probability and token */
} kl_choice;

static double product_of(const policy_state *s, const kl_choice *c, size_t i, size_t t) {
  return (s->advantage[i] - c->mean_advantage) * (s->in->logp[t] - c->mean_logp);
}

static void kl_find_means(const policy_state *s, kl_choice *c) {
  const policy_input *in = s->in;
  double advantage = 0, logp = 0;
  for (size_t i = 0; i < in->n_responses; ++i)
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
      advantage += s->advantage[i];
      logp += in->logp[t];
    }
  c->mean_advantage = advantage / (double)in->n_tokens;
  c->mean_logp = logp / (double)in->n_tokens;
}

/* Selects the fraction kl_share of the tokens, at least one. */
static kl_choice choose_tokens(policy_state *s) {
  const policy_input *in = s->in;
  kl_choice c = {.all = s->algorithm->kl_coef == 0 || s->algorithm->kl_share >= 1};
  if (c.all || in->n_tokens == 0) return c;
  const double share = floor((double)in->n_tokens * s->algorithm->kl_share);
  const size_t count = share >= 1 ? (size_t)share : 1;
  kl_find_means(s, &c);
  for (size_t i = 0; i < in->n_responses; ++i)
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t)
      s->rank[t] = (policy_rank){.value = product_of(s, &c, i, t), .token = t};
  qsort(s->rank, in->n_tokens, sizeof *s->rank, kl_descending);
  c.product = s->rank[count - 1].value;
  size_t above = 0, equal = 0;
  while (s->rank[above].value > c.product) above++;
  for (size_t k = above; k < in->n_tokens && s->rank[k].value == c.product; ++k) {
    const size_t t = s->rank[k].token;
    s->rank[equal++] = (policy_rank){.value = in->logp[t], .token = t};
  }
  qsort(s->rank, equal, sizeof *s->rank, kl_descending);
  c.last = s->rank[count - above - 1];
  return c;
}

static int kl_is_chosen(const policy_state *s, const kl_choice *c, size_t i, size_t t) {
  if (c->all) return 1;
  const double product = product_of(s, c, i, t);
  if (product != c->product) return product > c->product;
  const policy_rank of_token = {.value = s->in->logp[t], .token = t};
  return kl_descending(&of_token, &c->last) <= 0;
}

/* --- the terms --- */

/* ref_kl_ratio: the ratio that multiplies a token's KL term. The gradient passes through it too, to
 * that token's log-probability or to those of the whole response. */
static double kl_ratio(const policy_state *s, size_t i, size_t t) {
  if (!s->algorithm->ref_kl_ratio) return 1;
  return s->sequence_level ? exp(s->seq_x[i]) : s->weight[t];
}

/* Subtracts the KL term to the reference policy from the coefficients of response i; returns its
 * value. drops: masked tokens have no term. */
static double reference_response(policy_state *s, size_t i, int drops) {
  const policy_algorithm *algorithm = s->algorithm;
  const policy_input *in = s->in;
  double sum = 0;
  for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
    const double z = algorithm->ref_kl_coef * (drops ? s->z[i] * s->mask_token[t] : s->z[i]);
    if (z == 0) continue;
    const kl_value k = reference_term(algorithm->ref_kl_form, in->logp[t] - in->logref[t]);
    const double value = policy_times(kl_ratio(s, i, t), z * k.value);
    sum += value;
    s->coefficient[t] -= policy_times(kl_ratio(s, i, t), z * k.slope);
    if (algorithm->ref_kl_ratio && !s->sequence_level && policy_token_open(s, t))
      s->coefficient[t] -= value;
  }
  if (!algorithm->ref_kl_ratio || !s->sequence_level || s->seq_in_limits[i] == 0) return sum;
  for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t)
    if (policy_token_open(s, t) && !policy_token_masked(s, i, t))
      s->coefficient[t] -= sum * s->seq_jacobian[i];
  return sum;
}

/* The same for the KL term to the sampler, on the tokens selected by c. */
static double sampler_response(policy_state *s, const kl_choice *c, size_t i, int drops) {
  const policy_algorithm *algorithm = s->algorithm;
  const policy_input *in = s->in;
  double sum = 0;
  for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
    const double z = drops ? s->z[i] * s->mask_token[t] : s->z[i];
    if (z == 0 || !kl_is_chosen(s, c, i, t)) continue;
    const kl_value k = sampler_term(algorithm->kl_form, in->logp[t] - in->logq[t]);
    sum += algorithm->kl_coef * z * k.value;
    s->coefficient[t] -= algorithm->kl_coef * z * k.slope;
  }
  return sum;
}

/* Adds the KL terms to the coefficients and returns their sum, which is added to the loss. */
double policy_kl_terms(policy_state *s) {
  const policy_algorithm *algorithm = s->algorithm;
  const int drops = s->mask_token != NULL && algorithm->mask_denominator == MASK_KEPT;
  double sum = 0;
  if (algorithm->kl_coef == 0 && algorithm->ref_kl_coef == 0) return 0;
  const kl_choice c = choose_tokens(s);
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    if (algorithm->kl_coef > 0) sum += sampler_response(s, &c, i, drops);
    if (algorithm->ref_kl_coef > 0) sum += reference_response(s, i, drops);
  }
  return sum;
}
