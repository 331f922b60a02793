/* Clips and soft clips: the value f(x) that the objective uses for a log-ratio x, and its slope
 * df/dx. Formulas: paper/methods.md §3.8, and §4 by algorithm. Bounds are compared with ratios, as
 * in the sources, except where an algorithm clips logarithms. */
#include "core/base/simd.h"
#include "core/policy/internal.h"

#include <stdint.h>
#include <stdlib.h>

static double softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* SAPO: f = (4 / tau) g with g = sigmoid(tau (u - 1)); slope 4 g (1 - g) u. */
static void sigmoid_clip(const policy_algorithm *algorithm, double x, double u, double a, double *f,
                         double *d) {
  (void)x;
  double tau = a > 0 ? algorithm->tau_positive : algorithm->tau_negative;
  double e = exp(-fabs(tau * (u - 1)));
  double g = u >= 1 ? 1 / (1 + e) : e / (1 + e);
  *f = 4 / tau * g;
  *d = policy_times(4 * e / ((1 + e) * (1 + e)), u);
}

/* MHPO: exp(psi - sg(zeta)), psi = c tanh(x / c), with the hazard penalty zeta as a constant. */
static void tanh_clip(const policy_algorithm *algorithm, double x, double u, double a, double *f,
                      double *d) {
  (void)u, (void)a;
  double h = tanh(x / algorithm->tanh_scale), psi = algorithm->tanh_scale * h;
  double zeta = pow(softplus(psi) / algorithm->hazard_width_up, algorithm->hazard_power_up) +
                pow(softplus(-psi) / algorithm->hazard_width_down, algorithm->hazard_power_down);
  double c = cosh(x / algorithm->tanh_scale);
  *f = exp(psi - zeta);
  *d = *f / (c * c);
}

/* VESPO: f = exp(lambda + k ln W - lambda W), which is 1 at W = 1. */
static void gamma_clip(const policy_algorithm *algorithm, double x, double u, double a, double *f,
                       double *d) {
  double k = a >= 0 ? algorithm->gamma_k_positive : algorithm->gamma_k_negative;
  double rate = a >= 0 ? algorithm->gamma_rate_positive : algorithm->gamma_rate_negative;
  *f = exp(rate + policy_times(k, x) - policy_times(rate, u));
  *d = 0;
}

/* ASPO (2510.06062): for A > 0 the inverse ratio, for A < 0 the ratio, both at most dual_clip, and
 * 0 where PPO would clip. */
static void reciprocal_clip(const policy_algorithm *algorithm, double x, double u, double a,
                            double *f, double *d) {
  const bool over = a > 0 && x > log1p(algorithm->eps_high) + POLICY_CLIP_SLACK;
  const bool under = a < 0 && u < 1 - algorithm->eps_low - POLICY_CLIP_SLACK;
  *f = over || under ? 0 : fmin(a > 0 ? exp(-x) : u, algorithm->dual_clip);
  *d = 0;
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

bool policy_masked(const policy_state *s, double x, double a) {
  return (a > 0 && x > s->bounds.mask_high) || (a < 0 && x < s->bounds.mask_low);
}

/* --- shapes of clips --- */

/* The shape of a clip: two bounds, or a smooth function of the log-ratio x, the ratio u = exp(x)
 * and the advantage a. */
typedef struct clip_shape {
  policy_window window;
  bool by_token; /* bounds depend on the token, or tokens were clipped or masked before */
  bool cuts;     /* the smooth function is active where its value is 0 */
  void (*smooth)(const policy_algorithm *algorithm, double x, double u, double a, double *f,
                 double *d);
} clip_shape;

/* Bounds of the pessimistic minimum, on the side selected by the advantage's sign; unbounded if a
 * is 0. */
static policy_window log_window(double a, double low, double high, double dual) {
  policy_window w = {.low = -INFINITY, .high = INFINITY, .keep_low = 1, .keep_high = 1};
  if (a < 0) w.low = low, w.high = dual;
  if (a > 0) w.high = high;
  return w;
}

static policy_window ratio_window(double low, double high) {
  return (policy_window){.of_ratio = true, .low = low, .high = high, .keep_low = 1, .keep_high = 1};
}

/* DCPO (2509.02333): bounds of the ratio u such that |u - 1| p is at most eps, where p = u q and q
 * is the token's old probability. */
static policy_window probability_window(const policy_algorithm *algorithm, double a,
                                        double logold) {
  const double q = exp(logold);
  const double low = (1 + sqrt(fmax(0, 1 - 4 * algorithm->eps_low / q))) / 2;
  const double high = fmin((1 + sqrt(1 + 4 * algorithm->eps_high / q)) / 2, algorithm->cap);
  return log_window(a, log(low), log(high), log(algorithm->dual_clip));
}

/* The shape of the algorithm's clip for one unit (token or response). */
static clip_shape clip_shape_of(const policy_state *s, const policy_unit *unit) {
  const policy_algorithm *algorithm = s->algorithm;
  const double a = unit->advantage;
  clip_shape shape = {.window = log_window(a, -INFINITY, INFINITY, INFINITY)};
  switch (algorithm->clip) {
  case CLIP_NONE:
    break;
  case CLIP_TOKEN_LOG: /* already applied to the log-ratio of each token */
    shape.by_token = true;
    break;
  case CLIP_PPO:
    shape.window = log_window(a, s->bounds.low, s->bounds.high, s->bounds.dual);
    shape.window.keep_low = algorithm->keep_low;
    if (a > 0) shape.window.keep_high = algorithm->keep_high;
    break;
  case CLIP_PROBABILITY:
    shape.window = probability_window(algorithm, a, unit->logold);
    shape.by_token = true;
    break;
  case CLIP_PPO_POWER: {
    const double width = pow(unit->position, algorithm->clip_power);
    shape.window = log_window(a, -algorithm->eps_low * width, algorithm->eps_high * width,
                              algorithm->dual_clip * width);
    shape.by_token = true;
    break;
  }
  case CLIP_SECOND_MOMENT:
    shape.window = log_window(a, -s->m2_bound, s->m2_bound, INFINITY);
    break;
  case CLIP_BINARY_TV: /* policy_binary_divergence() selects the tokens */
  case CLIP_BINARY_KL:
    shape.by_token = true;
    shape.window = ratio_window(0, algorithm->cap);
    break;
  case CLIP_CAP:
    shape.window = ratio_window(0, algorithm->cap);
    break;
  case CLIP_CLAMP:
    shape.window = ratio_window(1 - algorithm->eps_low, 1 + algorithm->eps_high);
    break;
  case CLIP_SIGNED_CLAMP:
    shape.window = a >= 0 ? ratio_window(algorithm->positive_low, algorithm->positive_high)
                          : ratio_window(algorithm->negative_low, algorithm->negative_high);
    break;
  case CLIP_SIGMOID:
    shape.smooth = sigmoid_clip;
    break;
  case CLIP_TANH_HAZARD:
    shape.smooth = tanh_clip;
    break;
  case CLIP_GAMMA:
    shape.smooth = gamma_clip;
    break;
  case CLIP_RECIPROCAL:
    shape.smooth = reciprocal_clip;
    shape.cuts = true;
    break;
  }
  return shape;
}

bool policy_window_of(const policy_state *s, double a, policy_window *window) {
  const policy_unit any = {.u = 1, .advantage = a, .position = 1};
  const clip_shape shape = clip_shape_of(s, &any);
  if (s->algorithm->token_mask || shape.smooth != NULL || shape.by_token) return false;
  *window = shape.window;
  const double low = window->of_ratio ? window->low : exp(window->low);
  const double high = window->of_ratio ? window->high : exp(window->high);
  window->at_low = policy_times(window->keep_low, low);
  window->at_high = policy_times(window->keep_high, high);
  if (!window->of_ratio) {
    window->low -= POLICY_CLIP_SLACK;
    window->high += POLICY_CLIP_SLACK;
  }
  return true;
}

bool policy_clip_apply(const policy_state *s, const policy_unit *unit, double *f, double *d) {
  const clip_shape shape = clip_shape_of(s, unit);
  const policy_window *w = &shape.window;
  const double x = unit->x, u = unit->u, a = unit->advantage;
  const double seen = w->of_ratio ? u : x;
  const double slack = w->of_ratio ? 0 : POLICY_CLIP_SLACK;
  const bool over = seen > w->high + slack, masked = policy_masked(s, x, a);
  bool acts = shape.smooth == NULL && (over || seen < w->low - slack);
  if (masked) {
    *f = *d = 0;
  } else if (shape.smooth != NULL) {
    shape.smooth(s->algorithm, x, u, a, f, d);
    acts = shape.cuts && *f == 0;
  } else {
    const double bound = over ? w->high : w->low, keep = over ? w->keep_high : w->keep_low;
    *f = !acts ? u : policy_times(keep, w->of_ratio ? bound : exp(bound));
    *d = acts ? 0 : u;
  }
  return acts || masked;
}

/* --- BAPO: bounds that balance positive and negative terms --- */

/* Sums of A times the clipped ratio over tokens with A > 0 and with A < 0; the second is returned
 * positive. Tokens that masks leave out of averages do not count. */
static void balance_sums(const policy_state *s, double low, double high, double sum[2]) {
  const size_t *start = s->in->token_start;
  sum[0] = sum[1] = 0;
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    const double a = s->advantage[i];
    double total = 0;
    for (size_t t = start[i]; t < start[i + 1]; ++t)
      if (!policy_token_masked(s, i, t))
        total += a > 0 ? fmin(s->weight[t], high) : fmax(s->weight[t], low);
    sum[a < 0] += policy_times(fabs(a), total);
  }
}

/* Raises one bound by steps until the terms are balanced or the bound is at `most`. */
static void balance_raise(const policy_state *s, double *bound, double most, const double *low,
                          const double *high) {
  const policy_algorithm *algorithm = s->algorithm;
  double sum[2];
  balance_sums(s, *low, *high, sum);
  while (sum[1] > 0 && sum[0] / (sum[1] + 1e-8) < algorithm->balance && *bound < most) {
    *bound = fmin(*bound + algorithm->balance_step, most);
    balance_sums(s, *low, *high, sum);
  }
}

/* BAPO (2510.18927) as its released code has it: first the lower bound, then the upper. */
void policy_balance_bounds(policy_state *s) {
  const policy_algorithm *algorithm = s->algorithm;
  double low = 1 - algorithm->eps_low, high = 1 + algorithm->eps_high;
  balance_raise(s, &low, algorithm->balance_low, &low, &high);
  balance_raise(s, &high, algorithm->balance_high, &low, &high);
  s->bounds.low = low > 0 ? log(low) : -INFINITY;
  s->bounds.high = log(high);
}

/* --- DPPO: masking by a Bernoulli divergence --- */

/* DPPO (2602.04879): returns whether the trust region keeps a token whose log-probability moved
 * from lq to lp. The divergence is between Bernoulli distributions (this token or another one).
 * Moves against the direction of A are always allowed; moves in its direction up to the divergence
 * limit. verl adds the 1e-8, which keeps tokens with probability near 1. */
static bool within_divergence(const policy_algorithm *algorithm, double lp, double lq, double a) {
  const double p = exp(lp), q = exp(lq), limit = a > 0 ? algorithm->eps_high : algorithm->eps_low;
  if (algorithm->clip == CLIP_BINARY_TV) return a > 0 ? p - q <= limit : p - q >= -limit;
  const double kl = q * (lq - lp) + (1 - q) * log((1 - q + 1e-8) / (1 - p + 1e-8));
  return kl <= limit || (a > 0 ? p <= q : p >= q);
}

void policy_binary_divergence(policy_state *s) {
  const policy_input *in = s->in;
  for (size_t i = 0; i < in->n_responses; ++i)
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t)
      s->mask_clip[t] = within_divergence(s->algorithm, in->logp[t], s->logold[t], s->advantage[i]);
}

bool policy_clip_masks_tokens(policy_clip clip) {
  return clip == CLIP_SECOND_MOMENT || clip == CLIP_BINARY_TV || clip == CLIP_BINARY_KL;
}

/* --- M2PO: tokens with the smallest squared log-ratios (2510.01161) --- */

/* Up to FEW tokens are sorted directly. */
enum { FEW = 24, MOST_SPLITS = 64, LANES = 4 };
#define UNDECIDED SIZE_MAX

static int clip_by_value(const void *left, const void *right) {
  const policy_rank *a = left, *b = right;
  if (a->value != b->value) return a->value < b->value ? -1 : 1;
  return a->token < b->token ? -1 : a->token > b->token;
}

/* The candidate tokens for masking: those whose v is above or below a bound. */
typedef struct members {
  const double *v; /* [n_tokens] log-ratios, or ratios for m2_set: clipped */
  double above, below;
} members;

/* The candidates in a response with advantage a, according to the field m2_set. */
static members members_of(const policy_state *s, double a) {
  const policy_algorithm *algorithm = s->algorithm;
  members m = {.v = s->x, .above = INFINITY, .below = -INFINITY}; /* no candidates */
  switch (algorithm->m2_set) {
  case M2_ALL:
    m.above = -INFINITY;
    m.below = INFINITY;
    break;
  case M2_IMPROVING:
    if (a > 0) m.above = 0;
    if (a < 0) m.below = 0;
    break;
  case M2_CLIPPED:
    m.v = s->weight;
    if (a > 0) m.above = 1 + algorithm->eps_high;
    if (a < 0) m.below = 1 - algorithm->eps_low;
    break;
  }
  return m;
}

/* Branch-free because the outcome is unpredictable. */
INLINE int is_member(const members *m, size_t t) {
  return (m->v[t] > m->above) | (m->v[t] < m->below);
}

/* Adds the number of candidates among tokens [first, end) and the sum of their squared log-ratios,
 * in LANES partial sums. */
CLONES static void add_members(const double *x, const members *m, size_t first, size_t end,
                               double count[LANES], double sum[LANES]) {
  const lane4 above = (lane4){0} + m->above, below = (lane4){0} + m->below, one = (lane4){0} + 1;
  lane4 n = {0}, total = {0};
  for (; first + LANES <= end; first += LANES) {
    const lane4 v = *(const lane4 *)(m->v + first), l = *(const lane4 *)(x + first);
    const mask4 member = (v > above) | (v < below);
    n += (lane4)(member & (mask4)one);
    total += (lane4)(member & (mask4)(l * l));
  }
  for (; first < end; ++first) {
    const int member = is_member(m, first);
    n[0] += member ? 1 : 0;
    total[0] += member ? x[first] * x[first] : 0;
  }
  for (size_t l = 0; l < LANES; ++l) count[l] += n[l], sum[l] += total[l];
}

/* Returns the number of candidate tokens and sets *sum to the sum of their squared log-ratios. */
static size_t total_of(const policy_state *s, double *sum) {
  const size_t *start = s->in->token_start;
  double n[LANES] = {0}, total[LANES] = {0};
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    const members m = members_of(s, s->advantage[i]);
    add_members(s->x, &m, start[i], start[i + 1], n, total);
  }
  *sum = (total[0] + total[1]) + (total[2] + total[3]);
  return (size_t)((n[0] + n[1]) + (n[2] + n[3]));
}

static void clip_collect(policy_state *s) {
  const policy_input *in = s->in;
  size_t n = 0;
  for (size_t i = 0; i < in->n_responses; ++i) {
    const members m = members_of(s, s->advantage[i]);
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
      s->rank[n] = (policy_rank){.value = s->x[t] * s->x[t], .token = t};
      n += (size_t)is_member(&m, t);
    }
  }
}

static double clip_sum_of(const policy_rank *rank, size_t n) {
  double sum = 0;
  for (size_t j = 0; j < n; ++j) sum += rank[j].value;
  return sum;
}

/* Relative bound on the difference between sums of n terms of one sign added in two different
 * orders. */
static double rounding_of(size_t n) {
  return 4 * (double)n * 0x1p-52;
}

/* Tokens are accepted in ascending order of their squared log-ratio while `reached`, which never
 * decreases, is within `limit`. */
typedef struct progress {
  double reached, limit;
  int within;
} progress;

/* The progress after `count` of n tokens, whose sum is `sum` and whose last value is `value`. */
static progress progress_of(const policy_state *s, size_t n, size_t count, double sum,
                            double value) {
  const double tau = s->algorithm->m2_tau;
  if (s->algorithm->m2_form == M2_REMOVE) {
    const double mean = sum / (double)count;
    return (progress){mean, tau, mean <= tau};
  }
  const double kept = sum + (double)(n - count) * value, limit = tau * (double)n;
  return (progress){kept, limit, kept < limit};
}

/* Whether summing in another order could change the decision; never if `rounding` is 0. */
static int undecided(progress p, double rounding) {
  return rounding > 0 && !(fabs(p.reached - p.limit) > rounding * p.limit);
}

/* Sorts tokens [first, end) and accepts further ones; the tokens before them have the given sum.
 * Returns the total number accepted, or UNDECIDED if rounding could change the result. */
static size_t take_sorted(policy_state *s, size_t n, size_t first, size_t end, double sum,
                          double rounding) {
  qsort(s->rank + first, end - first, sizeof *s->rank, clip_by_value);
  for (; first < end; ++first) {
    sum += s->rank[first].value;
    const progress p = progress_of(s, n, first + 1, sum, s->rank[first].value);
    if (undecided(p, rounding)) return UNDECIDED;
    if (!p.within) break;
  }
  return first;
}

static void swap(policy_rank *a, policy_rank *b) {
  const policy_rank kept = *a;
  *a = *b;
  *b = kept;
}

/* Partitions around the median of three tokens: moves values not above it to the front, the median
 * last among them. Returns the size of the front part. */
static size_t clip_split(policy_rank *rank, size_t n) {
  policy_rank *last = rank + n - 1, *middle = rank + n / 2;
  if (clip_by_value(middle, rank) < 0) swap(middle, rank);
  if (clip_by_value(last, rank) < 0) swap(last, rank);
  if (clip_by_value(middle, last) < 0) swap(middle, last);
  const policy_rank pivot = *last;
  size_t below = 0;
  for (size_t j = 0; j + 1 < n; ++j) { /* branch-free because the outcome is unpredictable */
    const policy_rank one = rank[j];
    const int less =
        (one.value < pivot.value) | ((one.value == pivot.value) & (one.token < pivot.token));
    rank[j] = rank[below];
    rank[below] = one;
    below += (size_t)less;
  }
  swap(rank + below, last);
  return below + 1;
}

/* Quickselect version of take_sorted(): splits the remaining tokens in two, and the limit decides
 * which part contains the last accepted token. Accepted tokens end up in front, the largest last.
 * Returns UNDECIDED if the order of summation could matter or if splitting makes no progress. */
static size_t take_by_parts(policy_state *s, size_t n) {
  const double rounding = rounding_of(n);
  double sum = 0;
  size_t first = 0, end = n;
  for (int splits = 0; end - first > FEW; ++splits) {
    const size_t part = clip_split(s->rank + first, end - first);
    const double with = sum + clip_sum_of(s->rank + first, part);
    const progress p = progress_of(s, n, first + part, with, s->rank[first + part - 1].value);
    if (splits == MOST_SPLITS || undecided(p, rounding)) return UNDECIDED;
    if (p.within) {
      first += part;
      sum = with;
    } else {
      end = first + part - 1;
    }
  }
  return take_sorted(s, n, first, end, sum, rounding);
}

/* Sets the token mask of M2PO, or its bound sqrt(d_k) (2510.01161; the threshold form follows the
 * official code). The definition adds in ascending order; the faster quickselect is used only if
 * its result is certain to be the same. */
void policy_second_moment(policy_state *s) {
  double sum;
  const size_t n = total_of(s, &sum);
  double *mask = s->mask_clip;
  s->m2_bound = INFINITY;
  s->mask_clip = NULL;
  if (n == 0 || sum / (double)n < s->algorithm->m2_tau * (1 - rounding_of(n))) return;
  clip_collect(s);
  size_t k = take_by_parts(s, n);
  if (k == UNDECIDED) {
    k = take_sorted(s, n, 0, n, 0, 0);
    if (clip_sum_of(s->rank, n) / (double)n <= s->algorithm->m2_tau) k = n;
  }
  if (k == n) return;
  if (s->algorithm->m2_form == M2_THRESHOLD) {
    s->m2_bound = k > 0 ? fabs(s->x[s->rank[k - 1].token]) : 0;
    return;
  }
  s->mask_clip = mask;
  for (size_t t = 0; t < s->in->n_tokens; ++t) mask[t] = 1;
  for (size_t j = k; j < n; ++j) mask[s->rank[j].token] = 0;
}
