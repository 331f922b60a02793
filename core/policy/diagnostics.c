/* Diagnostics of one loss evaluation. Importance-weight statistics are sample statistics within a
 * group (over responses, or over tokens for an algorithm with token ratios), averaged over groups;
 * all are formed in log space. */
#include "core/base/vector.h"
#include "core/policy/internal.h"

#include <stdint.h>

void policy_log_moments(const double *x, size_t n, double *log_mean, double *log_variance) {
  double top = -INFINITY, sum = 0, squares = 0;
  for (size_t i = 0; i < n; i++) top = fmax(top, x[i]);
  *log_mean = top;
  *log_variance = n > 1 ? -INFINITY : NAN;
  if (n == 0 || isinf(top)) return;
  for (size_t i = 0; i < n; i++) sum += exp(x[i] - top);
  double mean = sum / (double)n;
  for (size_t i = 0; i < n; i++) {
    double d = exp(x[i] - top) - mean;
    squares += d * d;
  }
  *log_mean = top + log(mean);
  if (n > 1) *log_variance = 2 * top + log(squares / (double)(n - 1));
}

/* Running log of a mean over groups; NaN entries (groups of one) are left out. */
typedef struct log_average {
  double top, sum, n;
} log_average;

static void average_add(log_average *a, double x) {
  if (isnan(x)) return;
  a->n += 1;
  if (a->n == 1) a->top = -INFINITY;
  if (x == -INFINITY) return;
  if (x > a->top) {
    a->sum = a->sum * exp(a->top - x) + 1;
    a->top = x;
  } else {
    a->sum += exp(x - a->top);
  }
}

static double average_of(const log_average *a) {
  if (a->n == 0) return NAN;
  return a->sum > 0 ? a->top + log(a->sum / a->n) : -INFINITY;
}

static void set_both(double *value, int plain, int logarithm, double log_value) {
  value[plain] = exp(log_value);
  value[logarithm] = log_value;
}

/* The units' weights themselves; those of responses in an array that is free by now. */
static const double *weights_of(policy_state *s) {
  if (!s->sequence_level) return s->weight;
  for (size_t i = 0; i < s->in->n_responses; i++) s->seq_g[i] = exp(s->seq_x[i]);
  return s->seq_g;
}

/* What one group's weights w = exp(x) say. */
typedef struct group_weights {
  size_t n;
  double log_mean, log_variance, top; /* of w, the largest of x */
  double aw_variance;                 /* sample variance of A w over the units */
  double mean_aw;                     /* mean of A times the response's weight */
} group_weights;

/* Sums over a group's units, in order. Those of w and of A w are formed in one loop, so that each
 * addition does not wait for the one before it alone. */
typedef struct unit_sums {
  double w, aw;              /* of w, of A w */
  double w_squares, squares; /* of their squared distances from their means */
} unit_sums;

/* An advantage of 0 wins over infinite weights. */
static void add_units(unit_sums *sums, double *top, const double *x, const double *w, double a,
                      size_t from, size_t to) {
  double sum = sums->w, total = 0, largest = *top;
  for (size_t k = from; k < to && a != 0; k++) {
    largest = x[k] > largest ? x[k] : largest;
    sum += w[k];
    total += a * w[k];
  }
  for (size_t k = from; k < to && a == 0; k++) {
    largest = x[k] > largest ? x[k] : largest;
    sum += w[k];
  }
  sums->w = sum;
  sums->aw = total;
  *top = largest;
}

static void add_squares(unit_sums *sums, const double *w, double w_mean, double a, double mean,
                        size_t from, size_t to) {
  double w_squares = sums->w_squares, squares = sums->squares;
  for (size_t k = from; k < to && a != 0; k++) {
    const double e = w[k] - w_mean, d = a * w[k] - mean;
    w_squares += e * e;
    squares += d * d;
  }
  for (size_t k = from; k < to && a == 0; k++) {
    const double e = w[k] - w_mean;
    w_squares += e * e;
    squares += mean * mean;
  }
  sums->w_squares = w_squares;
  sums->squares = squares;
}

/* Of group g; x and w are all units' log-ratios and weights. Moments of w are formed from w itself
 * where neither it nor its square leaves the range of a double, else in log space. */
static group_weights weights_of_group(const policy_state *s, size_t g, const double *x,
                                      const double *w) {
  const policy_input *in = s->in;
  const size_t lo = in->group_start[g], hi = in->group_start[g + 1];
  const size_t first = s->sequence_level ? lo : in->token_start[lo];
  const size_t n = (s->sequence_level ? hi : in->token_start[hi]) - first;
  group_weights v = {.n = n, .top = -INFINITY};
  unit_sums sums = {0};
  double mean = 0, mean_aw = 0;
  for (size_t i = lo; i < hi; i++) {
    const size_t from = s->sequence_level ? i : in->token_start[i];
    const size_t to = s->sequence_level ? i + 1 : in->token_start[i + 1];
    add_units(&sums, &v.top, x, w, s->advantage[i], from, to);
    if (to > from) mean_aw += sums.aw / (double)(to - from) / (double)(hi - lo);
    mean += sums.aw;
  }
  v.mean_aw = isnan(mean_aw) ? INFINITY : mean_aw;
  mean /= (double)n;
  const double w_mean = sums.w / (double)n;
  for (size_t i = lo; i < hi; i++) {
    const size_t from = s->sequence_level ? i : in->token_start[i];
    const size_t to = s->sequence_level ? i + 1 : in->token_start[i + 1];
    add_squares(&sums, w, w_mean, s->advantage[i], mean, from, to);
  }
  v.log_mean = log(w_mean);
  v.log_variance = n > 1 ? log(sums.w_squares / (double)(n - 1)) : NAN;
  if (!(fabs(v.top) <= 300)) policy_log_moments(x + first, n, &v.log_mean, &v.log_variance);
  v.aw_variance = n > 1 ? sums.squares / (double)(n - 1) : NAN;
  if (!isfinite(mean)) v.aw_variance = INFINITY;
  return v;
}

/* (sum w)^2 / (n sum w^2) = 1 / (1 + (n - 1) / n * variance / mean^2). */
static double effective_size(double log_mean, double log_variance, size_t n) {
  if (isinf(log_mean)) return NAN;
  if (n <= 1) return 1;
  return 1 / (1 + (double)(n - 1) / (double)n * exp(log_variance - 2 * log_mean));
}

static void own_weights(policy_state *s) {
  double *value = s->out->metric, top = -INFINITY, ess = 0, aw = 0, groups = 0, spread = 0;
  const double *w = weights_of(s), *x = s->sequence_level ? s->seq_x : s->x;
  log_average mean = {0}, variance = {0};
  for (size_t g = 0; g < s->in->n_groups; g++) {
    const group_weights v = weights_of_group(s, g, x, w);
    average_add(&mean, v.log_mean);
    average_add(&variance, v.log_variance);
    top = fmax(top, v.top);
    const double e = effective_size(v.log_mean, v.log_variance, v.n);
    if (!isnan(e)) ess += e, groups += 1;
    if (!isnan(v.aw_variance)) aw += v.aw_variance, spread += 1;
    if (s->out->mean_aw != NULL) s->out->mean_aw[g] = v.mean_aw;
  }
  set_both(value, METRIC_IW_MEAN, METRIC_LOG_IW_MEAN, average_of(&mean));
  set_both(value, METRIC_IW_MAX, METRIC_LOG_IW_MAX, top);
  set_both(value, METRIC_IW_VARIANCE, METRIC_LOG_IW_VARIANCE, average_of(&variance));
  value[METRIC_ESS] = groups > 0 ? ess / groups : NAN;
  value[METRIC_AW_VARIANCE] = spread > 0 ? aw / spread : NAN;
}

/* P/Q and P/E with true sequence probabilities, whatever the algorithm. seq_x is overwritten. */
static void common_weights(policy_state *s) {
  const policy_input *in = s->in;
  double *value = s->out->metric;
  log_average pq = {0}, gepo = {0};
  for (size_t i = 0; i < in->n_responses; i++) {
    double p = 0, q = 0;
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; t++) {
      p += in->logp[t];
      q += in->logq[t];
    }
    s->seq_p[i] = p;
    s->seq_q[i] = q;
    s->seq_x[i] = p - q;
    s->seq_g[i] = 2 * q;
  }
  for (size_t g = 0; g < in->n_groups; g++) {
    size_t lo = in->group_start[g], hi = in->group_start[g + 1];
    double log_mean, log_variance;
    policy_log_moments(s->seq_x + lo, hi - lo, &log_mean, &log_variance);
    average_add(&pq, log_variance);
    double e = policy_log_sum(s->seq_g, lo, 1, hi) - policy_log_sum(s->seq_q, lo, 1, hi);
    policy_log_moments(s->seq_p + lo, hi - lo, &log_mean, &log_variance);
    average_add(&gepo, log_variance - 2 * e);
  }
  set_both(value, METRIC_IW_VARIANCE_PQ, METRIC_LOG_IW_VARIANCE_PQ, average_of(&pq));
  set_both(value, METRIC_IW_VARIANCE_GEPO, METRIC_LOG_IW_VARIANCE_GEPO, average_of(&gepo));
}

/* Log-ratios up to this size have e^l - 1 - l and e^-l - 1 + l from power series. */
#define SERIES_LIMIT 2.0

/* plus = e^l - 1 - l and minus = e^-l - 1 + l for |l| up to SERIES_LIMIT: sum and difference of
 * cosh(l) - 1 and sinh(l) - l, by their series at h = l/4 and two doublings of h, all of whose
 * terms have one sign. So nothing cancels near 0, and a loop over it has neither calls nor
 * branches. */
INLINE void excess(double l, double *plus, double *minus) {
  const double h = l / 4, y = h * h;
  double even = 1.0 / 87178291200, odd = 1.0 / 1307674368000;
  even = even * y + 1.0 / 479001600, odd = odd * y + 1.0 / 6227020800;
  even = even * y + 1.0 / 3628800, odd = odd * y + 1.0 / 39916800;
  even = even * y + 1.0 / 40320, odd = odd * y + 1.0 / 362880;
  even = even * y + 1.0 / 720, odd = odd * y + 1.0 / 5040;
  even = even * y + 1.0 / 24, odd = odd * y + 1.0 / 120;
  even = even * y + 1.0 / 2, odd = odd * y + 1.0 / 6;
  even *= y, odd *= y * h;
  odd = 2 * (odd * (even + 1) + h * even), even = 2 * even * (even + 2);
  odd = 2 * (odd * (even + 1) + 2 * h * even), even = 2 * even * (even + 2);
  *plus = even + odd;
  *minus = even - odd;
}

/* Adds e^l - 1 - l and e^-l - 1 + l of the log-ratios p - q of n tokens. */
CLONES static void add_excess(const double *p, const double *q, size_t n, double *k3,
                              double *cppo) {
  enum { PIECE = 64 };
  double plus[PIECE], minus[PIECE], sum = *k3, other = *cppo;
  for (size_t first = 0; first < n; first += PIECE) {
    const size_t m = n - first < PIECE ? n - first : PIECE;
    uint64_t large = 0;
    for (size_t t = 0; t < m; t++) {
      const double l = p[first + t] - q[first + t];
      excess(l, &plus[t], &minus[t]);
      large += !(fabs(l) <= SERIES_LIMIT);
    }
    for (size_t t = 0; t < m && large > 0; t++) {
      const double l = p[first + t] - q[first + t];
      if (fabs(l) <= SERIES_LIMIT) continue;
      plus[t] = expm1(l) - l;
      minus[t] = expm1(-l) + l;
    }
    for (size_t t = 0; t < m; t++) {
      sum += plus[t];
      other += minus[t];
    }
  }
  *k3 = sum;
  *cppo = other;
}

static void divergences(policy_state *s) {
  const policy_input *in = s->in;
  double k3 = 0, cppo = 0, ref = 0, gap = 0, gap_max = 0, n = (double)in->n_tokens;
  double *value = s->out->metric;
  add_excess(in->logp, in->logq, in->n_tokens, &k3, &cppo);
  for (size_t t = 0; t < in->n_tokens && (in->logref != NULL || in->version_gap != NULL); t++) {
    if (in->logref != NULL) {
      double d = in->logp[t] - in->logref[t];
      ref += expm1(-d) + d;
    }
    if (in->version_gap != NULL) {
      gap += in->version_gap[t];
      gap_max = fmax(gap_max, in->version_gap[t]);
    }
  }
  value[METRIC_KL_K3] = k3 / n;
  value[METRIC_KL_K3_SEQ] = k3 / (double)in->n_responses;
  value[METRIC_CPPO_KL] = cppo / n;
  if (in->logref != NULL) value[METRIC_KL_REF] = ref / n;
  if (in->version_gap != NULL) {
    value[METRIC_STALENESS] = gap / n;
    value[METRIC_STALENESS_MAX] = gap_max;
  }
}

void policy_diagnostics(policy_state *s) {
  const policy_input *in = s->in;
  double *value = s->out->metric, reward = 0;
  metrics_clear(value);
  if (in->n_tokens == 0 || in->n_responses == 0) return;
  for (size_t i = 0; i < in->n_responses; i++) reward += in->reward[i];
  value[METRIC_LOSS] = s->out->loss;
  value[METRIC_REWARD_MEAN] = reward / (double)in->n_responses;
  value[METRIC_RESPONSE_LENGTH] = (double)in->n_tokens / (double)in->n_responses;
  value[METRIC_CLIP_FRACTION] = s->units > 0 ? s->clipped / s->units : 0;
  if (s->algorithm->objective == OBJECTIVE_DISCO) s->sequence_level = 0;
  own_weights(s);
  common_weights(s);
  divergences(s);
}
