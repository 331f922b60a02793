/* From ratios to loss and coefficients: the policy term of every algorithm but DisCO's. */
#include "core/base/vector.h"
#include "core/policy/internal.h"

#include <float.h>
#include <stdint.h>

/* Terms that overflow are kept apart: the loss is then the infinity of the largest of them, so
 * that opposite infinities never give a NaN. log_size orders them. */
static void add(policy_state *s, double term, double log_size) {
  if (isfinite(term)) {
    s->objective += term;
  } else if (log_size > s->inf_size || s->objective_inf == 0) {
    s->inf_size = log_size;
    s->objective_inf = term;
  }
}

static double omega(const policy_state *s, size_t i, size_t t) {
  double w = s->z[i];
  if (s->keep != NULL) w *= s->keep[t];
  if (s->m2_keep != NULL) w *= s->m2_keep[t];
  return s->factor == NULL ? w : policy_times(w, s->factor[t]);
}

/* Whether the gradient passes token t's clamp and, for GMPO, its clip. */
static int passes_gradient(const policy_state *s, size_t t, double a) {
  const policy_algorithm *algorithm = s->algorithm;
  if (!policy_token_open(s, t)) return 0;
  if (algorithm->clip != CLIP_TOKEN_LOG) return 1;
  return a >= 0 ? s->log_ratio[t] <= algorithm->eps_high : s->log_ratio[t] >= -algorithm->eps_low;
}

/* Tokens at a time of which terms are kept. */
enum { PIECE = 64 };

/* Terms and coefficients of n tokens with log-ratios x and ratios u, keep (NULL: all 1) being 0
 * where M2PO leaves a token out; returns how many terms are not finite. Without a branch, so that
 * it runs over several tokens at once. */
INLINE size_t piece_terms(const double *x, const double *u, const double *keep, size_t n,
                          policy_window w, double gain, double *term, double *coefficient,
                          size_t *clipped) {
  uint64_t count = 0, infinite = 0;
  for (size_t t = 0; t < n; t++) {
    const int over = x[t] > w.high, under = x[t] < w.low, left_out = keep != NULL && keep[t] == 0;
    const double inside = under ? w.at_low : u[t], f = over ? w.at_high : inside;
    const double product = f == 0 ? 0 : gain * f, value = left_out ? 0 : product;
    term[t] = value;
    coefficient[t] = (over | under) ? 0 : value;
    count += (over | under | left_out) ? 1 : 0;
    infinite += fabs(value) <= DBL_MAX ? 0 : 1;
  }
  *clipped += count;
  return infinite;
}

CLONES static size_t terms_of_all(const double *x, const double *u, size_t n,
                                  const policy_window *w, double gain, double *term,
                                  double *coefficient, size_t *clipped) {
  return piece_terms(x, u, NULL, n, *w, gain, term, coefficient, clipped);
}

CLONES static size_t terms_of_kept(const double *x, const double *u, const double *keep, size_t n,
                                   const policy_window *w, double gain, double *term,
                                   double *coefficient, size_t *clipped) {
  return piece_terms(x, u, keep, n, *w, gain, term, coefficient, clipped);
}

/* Adds terms in order; those that are not finite are kept apart. */
static void add_terms(policy_state *s, const double *term, const double *x, size_t n,
                      size_t infinite) {
  double sum = s->objective;
  if (infinite == 0) {
    for (size_t t = 0; t < n; t++) sum += term[t];
    s->objective = sum;
    return;
  }
  for (size_t t = 0; t < n; t++) add(s, term[t], x[t]);
}

/* What most algorithms need of a response of advantage a: a clip that is a window, and weights that
 * are z or, where M2PO leaves a token out, 0. The same numbers as token_terms(), several times as
 * fast. */
static void windowed_terms(policy_state *s, size_t i, double a, const policy_window *window) {
  const size_t end = s->in->token_start[i + 1];
  const double gain = s->z[i] * a;
  double term[PIECE];
  size_t clipped = 0, infinite = 0;
  for (size_t t = s->in->token_start[i]; t < end; t += PIECE) {
    const size_t n = end - t < PIECE ? end - t : PIECE;
    const double *x = s->x + t, *u = s->weight + t;
    double *coefficient = s->coefficient + t;
    if (gain == 0) {
      const double *keep = s->m2_keep != NULL ? s->m2_keep + t : NULL;
      for (size_t k = 0; k < n; k++) {
        term[k] = coefficient[k] = 0;
        clipped += x[k] > window->high || x[k] < window->low || (keep != NULL && keep[k] == 0);
      }
      infinite = 0;
    } else if (s->m2_keep == NULL) {
      infinite = terms_of_all(x, u, n, window, gain, term, coefficient, &clipped);
    } else {
      infinite = terms_of_kept(x, u, s->m2_keep + t, n, window, gain, term, coefficient, &clipped);
    }
    add_terms(s, term, x, n, infinite);
  }
  s->clipped += (double)clipped;
}

static int has_plain_weights(const policy_state *s) {
  return s->algorithm->ratio_gradient && s->keep == NULL && s->factor == NULL &&
         isinf(s->algorithm->token_log_clamp) && !s->ratio->limited;
}

static void token_terms(policy_state *s, size_t i) {
  const policy_algorithm *algorithm = s->algorithm;
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  double a = s->advantage[i];
  policy_window window;
  s->units += (double)(hi - lo);
  if (a != 0 && has_plain_weights(s) && policy_window_of(s, a, &window)) {
    windowed_terms(s, i, a, &window);
    return;
  }
  for (size_t t = lo; t < hi; t++) {
    double f, d, w = omega(s, i, t);
    int acts = policy_gate(s, s->x[t], s->weight[t], a, (double)(t - lo + 1), &f, &d);
    s->clipped += acts || (s->m2_keep != NULL && s->m2_keep[t] == 0);
    s->coefficient[t] = 0;
    if (a == 0 || w == 0) continue;
    if (!algorithm->ratio_gradient) {
      s->coefficient[t] = policy_times(w * a, f);
      add(s, policy_times(s->coefficient[t], s->in->logp[t]), s->x[t]);
      continue;
    }
    add(s, policy_times(w * a, f), s->x[t]);
    int limited =
        s->ratio->limited && (s->x[t] >= algorithm->log_cap || s->x[t] <= algorithm->log_floor);
    if (!limited && policy_token_open(s, t)) s->coefficient[t] = policy_times(w * a, d);
  }
}

/* GMPO: the clip acts on each token's logarithm inside the geometric mean. */
static int token_log_gate(const policy_state *s, size_t i, double *f, double *d) {
  const policy_algorithm *algorithm = s->algorithm;
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  double sum = 0, a = s->advantage[i];
  int acts = 0;
  for (size_t t = lo; t < hi; t++) {
    double l = s->log_ratio[t],
           kept = a >= 0 ? fmin(l, algorithm->eps_high) : fmax(l, -algorithm->eps_low);
    acts = acts || kept != l;
    sum += kept;
  }
  double mean = sum / (double)(hi - lo),
         x = policy_limit(mean, algorithm->log_floor, algorithm->log_cap);
  int masked = policy_masked(s, s->seq_x[i], a);
  *f = masked ? 0 : exp(x);
  *d = x == mean ? *f : 0;
  return acts || masked;
}

/* Aggregation weight of the whole response; with sequence_sum a response counts once. */
static double response_weight(const policy_state *s, size_t i) {
  double sum = 0;
  for (size_t t = s->in->token_start[i]; t < s->in->token_start[i + 1]; t++) sum += omega(s, i, t);
  return s->algorithm->aggregate == AGGREGATE_SEQUENCE_SUM && s->kept[i] > 0 ? sum / s->kept[i]
                                                                             : sum;
}

/* Sets seq_g[i] = d objective / d x_i, or writes the coefficients at once where x's gradient is not
 * shared with other tokens (constant ratios, GSPO-token). */
static void sequence_terms(policy_state *s, size_t i) {
  const policy_algorithm *algorithm = s->algorithm;
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  double a = s->advantage[i], x = s->seq_x[i], f, d;
  s->seq_g[i] = 0;
  s->units += 1;
  if (hi == lo) return;
  if (algorithm->clip == CLIP_TOKEN_LOG) {
    s->clipped += token_log_gate(s, i, &f, &d);
  } else {
    s->clipped += policy_gate(s, x, exp(x), a, 1, &f, &d);
    if (s->seq_open[i] == 0) d = 0;
  }
  if (!algorithm->ratio_gradient) {
    for (size_t t = lo; t < hi; t++) {
      s->coefficient[t] = policy_times(omega(s, i, t) * a, f);
      add(s, policy_times(s->coefficient[t], s->in->logp[t]), x);
    }
  } else if (s->ratio->gradient == RATIO_GRADIENT_OWN_TOKEN) {
    for (size_t t = lo; t < hi; t++) {
      double w = omega(s, i, t) * a;
      s->coefficient[t] = policy_token_open(s, t) ? policy_times(w, d) : 0;
      add(s, policy_times(w, f), x);
    }
  } else {
    double w = response_weight(s, i) * a;
    s->seq_g[i] = policy_times(w, d);
    add(s, policy_times(w, f), x);
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

static void spread_scope(policy_state *s, size_t first, size_t step, size_t end) {
  const policy_input *in = s->in;
  int shared = s->algorithm->denominator_gradient;
  double sum = shared ? scope_sum(s, first, step, end) : 0;
  for (size_t i = first; i < end; i += step) {
    double g = shared ? through_denominator(s, i, sum) : s->seq_g[i];
    double c = policy_times(g, s->seq_jacobian[i]);
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; t++)
      s->coefficient[t] = passes_gradient(s, t, s->advantage[i]) ? c : 0;
  }
}

static void spread(policy_state *s) {
  const policy_input *in = s->in;
  if (s->algorithm->group_scope == SCOPE_MICROBATCH && s->algorithm->denominator_gradient) {
    size_t parts = (in->n_responses + s->algorithm->microbatch - 1) / s->algorithm->microbatch;
    for (size_t k = 0; k < parts; k++) spread_scope(s, k, parts, in->n_responses);
    return;
  }
  for (size_t g = 0; g < in->n_groups; g++)
    spread_scope(s, in->group_start[g], 1, in->group_start[g + 1]);
}

void policy_objective_terms(policy_state *s) {
  for (size_t i = 0; i < s->in->n_responses; i++) {
    if (s->sequence_level)
      sequence_terms(s, i);
    else
      token_terms(s, i);
  }
  if (s->sequence_level && s->algorithm->ratio_gradient &&
      s->ratio->gradient == RATIO_GRADIENT_RESPONSE)
    spread(s);
  if (s->objective_inf != 0) s->objective = s->objective_inf;
}
