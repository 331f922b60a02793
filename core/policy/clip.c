/* Clips and soft clips: the value f(x) an objective sees of a log-ratio x and its slope df/dx.
 * Formulas: paper/methods.md §3.8, and §4 by algorithm. Each returns 1 where the clip acts
 * (gradient cut or value limited). Comparisons are made on ratios, as the sources make them, except
 * where an algorithm clips logarithms. */
#include "core/policy/internal.h"

static double softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* PPO's pessimistic minimum on the ratio, bounds in log form. */
static int bounded(double x, double u, double a, double lo, double hi, double dual, double *f,
                   double *d) {
  double limit = a > 0 ? hi : lo;
  int acts = (a > 0 && x > hi) || (a < 0 && x < lo);
  if (a < 0 && x > dual) {
    limit = dual;
    acts = 1;
  }
  *f = acts ? exp(limit) : u;
  *d = acts ? 0 : *f;
  return acts;
}

static int clamped(double u, double lo, double hi, double *f, double *d) {
  int acts = u < lo || u > hi;
  *f = policy_limit(u, lo, hi);
  *d = acts ? 0 : u;
  return acts;
}

/* SAPO: (4/tau) sigmoid(tau (u - 1)); slope 4 g (1 - g) u. */
static int sigmoid_gate(const policy_algorithm *algorithm, double u, double a, double *f,
                        double *d) {
  double tau = a > 0 ? algorithm->tau_positive : algorithm->tau_negative;
  double e = exp(-fabs(tau * (u - 1)));
  double g = u >= 1 ? 1 / (1 + e) : e / (1 + e);
  *f = 4 / tau * g;
  *d = policy_times(4 * e / ((1 + e) * (1 + e)), u);
  return 0;
}

/* MHPO: exp(psi - sg zeta), psi = c tanh(x / c). */
static int tanh_gate(const policy_algorithm *algorithm, double x, double *f, double *d) {
  double h = tanh(x / algorithm->tanh_scale), psi = algorithm->tanh_scale * h;
  double zeta = pow(softplus(psi) / algorithm->hazard_width_up, algorithm->hazard_power_up) +
                pow(softplus(-psi) / algorithm->hazard_width_down, algorithm->hazard_power_down);
  double c = cosh(x / algorithm->tanh_scale);
  *f = exp(psi - zeta);
  *d = *f / (c * c);
  return 0;
}

/* VESPO: exp(lambda + k ln W - lambda W), 1 at W = 1. */
static int gamma_gate(const policy_algorithm *algorithm, double x, double u, double a, double *f,
                      double *d) {
  double k = a >= 0 ? algorithm->gamma_k_positive : algorithm->gamma_k_negative;
  double rate = a >= 0 ? algorithm->gamma_rate_positive : algorithm->gamma_rate_negative;
  *f = exp(rate + policy_times(k, x) - policy_times(rate, u));
  *d = 0;
  return 0;
}

static double log_width_low(double eps) {
  return eps < 1 ? log1p(-eps) : -INFINITY;
}

policy_bounds policy_bounds_of(const policy_algorithm *algorithm) {
  policy_bounds b = {.mask_low = -INFINITY, .mask_high = INFINITY};
  b.low = log_width_low(algorithm->eps_low);
  b.high = log1p(algorithm->eps_high);
  b.dual = log(algorithm->dual_clip);
  if (algorithm->token_mask) {
    b.mask_low = log_width_low(algorithm->mask_low);
    b.mask_high = log1p(algorithm->mask_high);
  }
  return b;
}

int policy_masked(const policy_state *s, double x, double a) {
  return (a > 0 && x > s->bounds.mask_high) || (a < 0 && x < s->bounds.mask_low);
}

int policy_gate(const policy_state *s, double x, double u, double a, double position, double *f,
                double *d) {
  const policy_algorithm *algorithm = s->algorithm;
  int acts = 0;
  *f = *d = NAN;
  switch (algorithm->clip) {
  case CLIP_NONE:
  case CLIP_TOKEN_LOG: /* was applied before, to the log-ratio of each token */
    *f = *d = u;
    break;
  case CLIP_PPO:
    acts = bounded(x, u, a, s->bounds.low, s->bounds.high, s->bounds.dual, f, d);
    break;
  case CLIP_PPO_POWER: {
    double width = pow(position, algorithm->clip_power);
    acts = bounded(x, u, a, -algorithm->eps_low * width, algorithm->eps_high * width,
                   algorithm->dual_clip * width, f, d);
    break;
  }
  case CLIP_SECOND_MOMENT:
    acts = bounded(x, u, a, -s->m2_bound, s->m2_bound, INFINITY, f, d);
    break;
  case CLIP_CAP:
  case CLIP_BINARY_TV: /* which tokens take part is policy_binary_divergence()'s to say */
  case CLIP_BINARY_KL:
    acts = clamped(u, 0, algorithm->cap, f, d);
    break;
  case CLIP_CLAMP:
    acts = clamped(u, 1 - algorithm->eps_low, 1 + algorithm->eps_high, f, d);
    break;
  case CLIP_SIGNED_CLAMP:
    acts = a >= 0 ? clamped(u, algorithm->positive_low, algorithm->positive_high, f, d)
                  : clamped(u, algorithm->negative_low, algorithm->negative_high, f, d);
    break;
  case CLIP_SIGMOID:
    acts = sigmoid_gate(algorithm, u, a, f, d);
    break;
  case CLIP_TANH_HAZARD:
    acts = tanh_gate(algorithm, x, f, d);
    break;
  case CLIP_GAMMA:
    acts = gamma_gate(algorithm, x, u, a, f, d);
    break;
  }
  if (policy_masked(s, x, a)) {
    *f = *d = 0;
    acts = 1;
  }
  return acts;
}

/* Whether a token whose log-probability has gone from lq to lp stays (DPPO, 2602.04879): its
 * probability, seen as that of one of two outcomes, may move freely against the direction of A, and
 * in it as far as a divergence allows. The 1e-8 are verl's, which keep tokens near probability 1.
 */
static int stays_near(const policy_algorithm *algorithm, double lp, double lq, double a) {
  const double p = exp(lp), q = exp(lq), limit = a > 0 ? algorithm->eps_high : algorithm->eps_low;
  if (algorithm->clip == CLIP_BINARY_TV) return a > 0 ? p - q <= limit : p - q >= -limit;
  const double kl = q * (lq - lp) + (1 - q) * log((1 - q + 1e-8) / (1 - p + 1e-8));
  return kl <= limit || (a > 0 ? p <= q : p >= q);
}

void policy_binary_divergence(policy_state *s) {
  const policy_input *in = s->in;
  for (size_t i = 0; i < in->n_responses; i++)
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; t++)
      s->m2_keep[t] = stays_near(s->algorithm, in->logp[t], s->logold[t], s->advantage[i]);
}

/* The bounds of a pessimistic minimum on the side that the advantage's sign chooses; none for 0. */
static policy_window window_between(double a, double low, double high, double dual) {
  policy_window w = {.low = -INFINITY, .high = a > 0 ? high : INFINITY};
  if (a < 0) w = (policy_window){.low = low, .high = dual};
  w.at_low = exp(w.low);
  w.at_high = exp(w.high);
  return w;
}

static policy_window ratio_window(double low, double high) {
  return (policy_window){.of_ratio = 1, .low = low, .high = high, .at_low = low, .at_high = high};
}

int policy_window_of(const policy_state *s, double a, policy_window *window) {
  const policy_algorithm *algorithm = s->algorithm;
  if (algorithm->token_mask) return 0;
  switch (algorithm->clip) {
  case CLIP_NONE:
    *window = window_between(a, -INFINITY, INFINITY, INFINITY);
    return 1;
  case CLIP_PPO:
    *window = window_between(a, s->bounds.low, s->bounds.high, s->bounds.dual);
    return 1;
  case CLIP_SECOND_MOMENT:
    *window = window_between(a, -s->m2_bound, s->m2_bound, INFINITY);
    return 1;
  case CLIP_CAP:
    *window = ratio_window(0, algorithm->cap);
    return 1;
  case CLIP_CLAMP:
    *window = ratio_window(1 - algorithm->eps_low, 1 + algorithm->eps_high);
    return 1;
  case CLIP_SIGNED_CLAMP:
    *window = a >= 0 ? ratio_window(algorithm->positive_low, algorithm->positive_high)
                     : ratio_window(algorithm->negative_low, algorithm->negative_high);
    return 1;
  case CLIP_PPO_POWER: /* its bounds depend on the token's position */
  case CLIP_TOKEN_LOG:
  case CLIP_SIGMOID:
  case CLIP_TANH_HAZARD:
  case CLIP_GAMMA:
  case CLIP_BINARY_TV:
  case CLIP_BINARY_KL:
    return 0;
  }
  return 0;
}
