/* Log importance ratios: per token, per prefix, per response, against a group expectation, and
 * V-trace's products. paper/methods.md §3.5 to §3.7. */
#include "core/policy/internal.h"

double policy_log_sum(const double *value, size_t first, size_t step, size_t n) {
  double top = -INFINITY, sum = 0;
  for (size_t i = first; i < n; i += step) top = fmax(top, value[i]);
  if (isinf(top)) return top;
  for (size_t i = first; i < n; i += step) sum += exp(value[i] - top);
  return top + log(sum);
}

static void token_ratios(policy_state *s) {
  const double *p = s->in->logp, *q = s->logold;
  double clamp = s->algorithm->token_log_clamp;
  for (size_t t = 0; t < s->in->n_tokens; t++) s->log_ratio[t] = p[t] - q[t];
  if (isinf(clamp)) return;
  for (size_t t = 0; t < s->in->n_tokens; t++)
    s->log_ratio[t] = policy_limit(s->log_ratio[t], -clamp, clamp);
}

static void prefix_ratios(policy_state *s, size_t lo, size_t hi) {
  double sum = 0;
  for (size_t t = lo; t < hi; t++) {
    sum += s->log_ratio[t];
    s->x[t] = policy_limit(sum, s->algorithm->log_floor, s->algorithm->log_cap);
  }
}

/* w_t = rho_t (prod_{t<s<T} c_s) rho_T, and rho_T at T (1802.01561, reward at the end). */
static void vtrace_ratios(policy_state *s, size_t lo, size_t hi) {
  double rho_bar = log(s->algorithm->rho_bar), c_bar = log(s->algorithm->c_bar);
  if (hi == lo) return;
  double tail = fmin(rho_bar, s->log_ratio[hi - 1]);
  s->x[hi - 1] = tail;
  for (size_t t = hi - 1; t-- > lo;) {
    s->x[t] = fmin(rho_bar, s->log_ratio[t]) + tail;
    tail += fmin(c_bar, s->log_ratio[t]);
  }
}

static void sequence_sums(policy_state *s) {
  const policy_input *in = s->in;
  int mean = s->algorithm->log_prob == LOG_PROB_MEAN;
  for (size_t i = 0; i < in->n_responses; i++) {
    size_t lo = in->token_start[i], hi = in->token_start[i + 1];
    double p = 0, q = 0, l = 0, share = mean && hi > lo ? 1 / (double)(hi - lo) : 1;
    for (size_t t = lo; t < hi; t++) {
      p += in->logp[t];
      q += s->logold[t];
      l += s->log_ratio[t];
    }
    s->seq_p[i] = p * share;
    s->seq_q[i] = q * share;
    s->seq_x[i] = l * share;
    s->seq_jacobian[i] = share;
    s->seq_share[i] = 0;
    s->seq_open[i] = 1;
  }
}

/* One scope: responses first, first + step ... below end. */
typedef struct scope {
  size_t first, step, end;
} scope;

/* Log of the denominator of a scope's group expectation; seq_share is the derivative of its log
 * with respect to log P_i where the denominator contains P. seq_g is free here: scratch. */
static double log_expectation(policy_state *s, scope c, size_t group) {
  const double *q = s->seq_q;
  double *v = s->seq_g;
  double total = policy_log_sum(q, c.first, c.step, c.end);
  double count = (double)((c.end - c.first + c.step - 1) / c.step);
  switch (s->algorithm->denominator) {
  case DENOMINATOR_MEAN:
    return total - log(count);
  case DENOMINATOR_EXACT:
    return s->in->log_denominator[group];
  case DENOMINATOR_SELF_NORMALISED:
    for (size_t i = c.first; i < c.end; i += c.step) v[i] = 2 * q[i];
    return policy_log_sum(v, c.first, c.step, c.end) - total;
  default:
    break;
  }
  for (size_t i = c.first; i < c.end; i += c.step) v[i] = q[i] + s->seq_p[i];
  double cross = policy_log_sum(v, c.first, c.step, c.end);
  for (size_t i = c.first; i < c.end; i += c.step) s->seq_share[i] = exp(v[i] - cross);
  return cross - total;
}

static double cppo_mean(const policy_state *s, size_t i) {
  size_t lo = s->in->token_start[i], hi = s->in->token_start[i + 1];
  double sum = 0;
  for (size_t t = lo; t < hi; t++) {
    double l = s->in->logp[t] - s->in->logq[t];
    sum += expm1(-l) + l;
  }
  return hi > lo ? sum / (double)(hi - lo) : 0;
}

static void normalise_scope(policy_state *s, scope c, size_t group) {
  if (s->algorithm->ratio == RATIO_SELF_NORMALISED) {
    double sum = policy_log_sum(s->seq_x, c.first, c.step, c.end);
    double count = (double)((c.end - c.first + c.step - 1) / c.step);
    for (size_t i = c.first; i < c.end; i += c.step) {
      s->seq_share[i] = exp(s->seq_x[i] - sum);
      s->seq_x[i] += log(count) - sum;
    }
    return;
  }
  double denominator = log_expectation(s, c, group);
  for (size_t i = c.first; i < c.end; i += c.step) {
    int near = s->algorithm->kappa > 0 && cppo_mean(s, i) < s->algorithm->kappa;
    s->seq_x[i] = s->seq_p[i] - (near ? s->seq_q[i] : denominator);
  }
}

static void normalise(policy_state *s) {
  const policy_input *in = s->in;
  if (s->algorithm->group_scope == SCOPE_PROMPT) {
    for (size_t g = 0; g < in->n_groups; g++)
      normalise_scope(s, (scope){in->group_start[g], 1, in->group_start[g + 1]}, g);
    return;
  }
  size_t parts = (in->n_responses + s->algorithm->microbatch - 1) / s->algorithm->microbatch;
  for (size_t k = 0; k < parts; k++) normalise_scope(s, (scope){k, parts, in->n_responses}, 0);
}

/* log of P / (a P + (1 - a) Q) and its slope in log P. */
static void mixture(policy_state *s) {
  double a = s->algorithm->mixture;
  for (size_t i = 0; i < s->in->n_responses; i++) {
    double x = s->seq_x[i], w;
    if (x > 0) {
      double e = exp(-x);
      w = -log(a + (1 - a) * e);
      s->seq_jacobian[i] *= policy_times(1 - a, e) / (a + (1 - a) * e);
    } else {
      double e = exp(x);
      w = x - log(a * e + 1 - a);
      s->seq_jacobian[i] *= (1 - a) / (a * e + 1 - a);
    }
    s->seq_x[i] = a == 1 ? 0 : w;
  }
}

static void limit_sequences(policy_state *s) {
  for (size_t i = 0; i < s->in->n_responses; i++) {
    double x = s->seq_x[i], kept = policy_limit(x, s->algorithm->log_floor, s->algorithm->log_cap);
    if (kept != x) s->seq_open[i] = 0;
    s->seq_x[i] = kept;
  }
}

static void add_truncation(policy_state *s) {
  const policy_input *in = s->in;
  for (size_t i = 0; s->factor != NULL && i < in->n_responses; i++)
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; t++)
      s->seq_x[i] += log(s->factor[t]);
  s->factor = NULL;
}

static void token_level(policy_state *s) {
  const policy_input *in = s->in;
  if (s->algorithm->ratio == RATIO_TOKEN)
    for (size_t t = 0; t < in->n_tokens; t++) s->x[t] = s->log_ratio[t];
  if (s->algorithm->ratio == RATIO_NONE)
    for (size_t t = 0; t < in->n_tokens; t++) s->x[t] = 0;
  for (size_t i = 0; i < in->n_responses; i++) {
    size_t lo = in->token_start[i], hi = in->token_start[i + 1];
    if (s->algorithm->ratio == RATIO_PREFIX) prefix_ratios(s, lo, hi);
    if (s->algorithm->ratio == RATIO_VTRACE) vtrace_ratios(s, lo, hi);
  }
}

gl_status policy_ratios(policy_state *s, gl_error *err) {
  const policy_algorithm *algorithm = s->algorithm;
  if (algorithm->ratio == RATIO_GROUP_EXPECTATION && algorithm->denominator == DENOMINATOR_EXACT &&
      s->in->log_denominator == NULL)
    return gl_fail(err, GL_EINPUT,
                   "denominator: exact needs an enumerable world, which gives sum q^2; use mean or "
                   "self_normalised");
  token_ratios(s);
  s->sequence_level = algorithm->ratio >= RATIO_SEQUENCE && algorithm->ratio <= RATIO_MIXTURE;
  if (!s->sequence_level) {
    token_level(s);
    if (algorithm->clip == CLIP_SECOND_MOMENT) policy_second_moment(s);
    return GL_OK;
  }
  sequence_sums(s);
  if (algorithm->ratio == RATIO_GROUP_EXPECTATION || algorithm->ratio == RATIO_SELF_NORMALISED)
    normalise(s);
  if (algorithm->ratio == RATIO_MIXTURE) mixture(s);
  if (algorithm->clip == CLIP_GAMMA) add_truncation(s);
  if (!isinf(algorithm->log_floor) || !isinf(algorithm->log_cap)) limit_sequences(s);
  return GL_OK;
}
