/* Diagnostics of one loss evaluation. Importance-weight statistics are sample statistics within a
 * group (over responses, or over tokens if the algorithm has token ratios), averaged over groups.
 * All are computed in log space. */
#include "core/base/simd.h"
#include "core/policy/internal.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Logarithms of the mean and of the sample variance of exp(x), computed in log space. */
static void log_moments(const double *x, size_t n, double *log_mean, double *log_variance) {
  double top = -INFINITY, sum = 0, squares = 0;
  for (size_t i = 0; i < n; ++i) top = fmax(top, x[i]);
  *log_mean = top;
  *log_variance = n > 1 ? -INFINITY : NAN;
  if (n == 0 || isinf(top)) return;
  for (size_t i = 0; i < n; ++i) sum += exp(x[i] - top);
  double mean = sum / (double)n;
  for (size_t i = 0; i < n; ++i) {
    double d = exp(x[i] - top) - mean;
    squares += d * d;
  }
  *log_mean = top + log(mean);
  if (n > 1) *log_variance = 2 * top + log(squares / (double)(n - 1));
}

/* Running logarithm of a mean over groups; NaN entries (groups of one) are skipped. */
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

static double diagnostics_average_of(const log_average *a) {
  if (a->n == 0) return NAN;
  return a->sum > 0 ? a->top + log(a->sum / a->n) : -INFINITY;
}

static void set_both(double *value, int plain, int logarithm, double log_value) {
  value[plain] = exp(log_value);
  value[logarithm] = log_value;
}

/* Computes the sum of w[n] and raises *top to the largest x[n]; n > 0. */
CLONES static void sum_and_top(const double *w, const double *x, size_t n, double *sum,
                               double *top) {
  lane4 largest = (lane4){0} + x[0];
  for (size_t k = 0; k + 4 <= n; k += 4) {
    const lane4 v = *(const lane4 *)(x + k);
    const mask4 above = v > largest;
    largest = (lane4)(((mask4)v & above) | ((mask4)largest & ~above));
  }
  for (size_t k = n - n % 4; k < n; ++k) largest[0] = x[k] > largest[0] ? x[k] : largest[0];
  for (size_t l = 0; l < 4; ++l) *top = largest[l] > *top ? largest[l] : *top;
  *sum = lane4_sum(w, n);
}

/* Computes the sums of (w - w_mean)^2 and of (a w - mean)^2. */
CLONES static void sums_of_squares(const double *w, size_t n, double w_mean, double a, double mean,
                                   double sum[2]) {
  lane4 plain = {0}, weighted = {0};
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    const lane4 v = *(const lane4 *)(w + k), e = v - w_mean, d = a * v - mean;
    plain += e * e;
    weighted += d * d;
  }
  for (size_t l = 0; k < n; ++k, ++l) {
    const double e = w[k] - w_mean, d = a * w[k] - mean;
    plain[l] += e * e;
    weighted[l] += d * d;
  }
  sum[0] = lane4_total(&plain);
  sum[1] = lane4_total(&weighted);
}

/* The units of response i are *from .. *from + n - 1; returns n. */
static size_t units_of(const policy_state *s, size_t i, size_t *from) {
  *from = s->sequence_level ? i : s->in->token_start[i];
  return s->sequence_level ? 1 : s->in->token_start[i + 1] - *from;
}

/* Fills s->group_tally[g]. Moments are computed from w directly if w and w^2 fit the range of a
 * double, otherwise in log space. If the advantage is 0, A w is 0 even for infinite w. */
static void weights_of_group(policy_state *s, size_t g) {
  const double *w = s->sequence_level ? s->seq_g : s->weight;
  const double *x = s->sequence_level ? s->seq_x : s->x;
  const size_t lo = s->in->group_start[g], hi = s->in->group_start[g + 1];
  const size_t first = s->sequence_level ? lo : s->in->token_start[lo];
  const size_t n = (s->sequence_level ? hi : s->in->token_start[hi]) - first;
  policy_group_tally v = {.n = n, .top = -INFINITY};
  double sum = 0, mean = 0, w_squares = 0, squares = 0;
  for (size_t i = lo; i < hi; ++i) {
    size_t from;
    const size_t units = units_of(s, i, &from);
    double of_response = 0, a = s->advantage[i];
    if (units == 0) continue;
    sum_and_top(w + from, x + from, units, &of_response, &v.top);
    sum += of_response;
    mean += policy_times(a, of_response);
    v.mean_aw += policy_times(a, of_response) / (double)units / (double)(hi - lo);
  }
  if (isnan(v.mean_aw)) v.mean_aw = INFINITY;
  mean /= (double)n;
  const double w_mean = sum / (double)n;
  for (size_t i = lo; i < hi; ++i) {
    size_t from;
    const size_t units = units_of(s, i, &from);
    const double a = s->advantage[i];
    double of_response[2];
    sums_of_squares(w + from, units, w_mean, a, mean, of_response);
    w_squares += of_response[0];
    squares += a == 0 ? (double)units * mean * mean : of_response[1];
  }
  v.log_mean = log(w_mean);
  v.log_variance = n > 1 ? log(w_squares / (double)(n - 1)) : NAN;
  if (!(fabs(v.top) <= 300)) log_moments(x + first, n, &v.log_mean, &v.log_variance);
  v.aw_variance = n > 1 ? squares / (double)(n - 1) : NAN;
  if (!isfinite(mean)) v.aw_variance = INFINITY;
  s->group_tally[g] = v;
}

/* (sum w)^2 / (n sum w^2) = 1 / (1 + (n - 1) / n * variance / mean^2). */
static double effective_size(double log_mean, double log_variance, size_t n) {
  if (isinf(log_mean)) return NAN;
  if (n <= 1) return 1;
  return 1 / (1 + (double)(n - 1) / (double)n * exp(log_variance - 2 * log_mean));
}

/* Metrics of the algorithm's own weights, and mean_aw of every group. */
static void own_weights(policy_state *s) {
  double *value = s->out->metric, top = -INFINITY, ess = 0, aw = 0, groups = 0, spread = 0;
  log_average mean = {0}, variance = {0};
  /* weights of responses, in an array that is no longer used */
  if (s->sequence_level) vector_exp(s->seq_x, s->in->n_responses, s->seq_g);
  policy_each(s, s->in->n_groups, weights_of_group);
  for (size_t g = 0; g < s->in->n_groups; ++g) {
    const policy_group_tally v = s->group_tally[g];
    average_add(&mean, v.log_mean);
    average_add(&variance, v.log_variance);
    top = fmax(top, v.top);
    const double e = effective_size(v.log_mean, v.log_variance, v.n);
    if (!isnan(e)) ess += e, groups += 1;
    if (!isnan(v.aw_variance)) aw += v.aw_variance, spread += 1;
    if (s->out->mean_aw != NULL) s->out->mean_aw[g] = v.mean_aw;
  }
  set_both(value, METRIC_IW_MEAN, METRIC_LOG_IW_MEAN, diagnostics_average_of(&mean));
  set_both(value, METRIC_IW_MAX, METRIC_LOG_IW_MAX, top);
  set_both(value, METRIC_IW_VARIANCE, METRIC_LOG_IW_VARIANCE, diagnostics_average_of(&variance));
  value[METRIC_ESS] = groups > 0 ? ess / groups : NAN;
  value[METRIC_AW_VARIANCE] = spread > 0 ? aw / spread : NAN;
}

/* Metrics of P/Q and P/E with true sequence probabilities, whatever the algorithm's own ratio, from
 * the sums made by sums_of_response(). */
static void common_weights(policy_state *s) {
  const policy_input *in = s->in;
  double *value = s->out->metric;
  log_average pq = {0}, gepo = {0};
  for (size_t g = 0; g < in->n_groups; ++g) {
    size_t lo = in->group_start[g], hi = in->group_start[g + 1];
    double log_mean, log_variance;
    log_moments(s->seq_x + lo, hi - lo, &log_mean, &log_variance);
    average_add(&pq, log_variance);
    double e = policy_log_sum(s->seq_g, lo, 1, hi) - policy_log_sum(s->seq_q, lo, 1, hi);
    log_moments(s->seq_p + lo, hi - lo, &log_mean, &log_variance);
    average_add(&gepo, log_variance - 2 * e);
  }
  set_both(value, METRIC_IW_VARIANCE_PQ, METRIC_LOG_IW_VARIANCE_PQ, diagnostics_average_of(&pq));
  set_both(value, METRIC_IW_VARIANCE_GEPO, METRIC_LOG_IW_VARIANCE_GEPO,
           diagnostics_average_of(&gepo));
}

/* For log-ratios up to this size, e^l - 1 - l and e^-l - 1 + l use power series. */
#define SERIES_LIMIT 2.0

/* Computes plus = e^l - 1 - l and minus = e^-l - 1 + l for |l| <= SERIES_LIMIT, as sum and
 * difference of cosh(l) - 1 and sinh(l) - l. These come from their series at h = l/4 and two
 * doublings of h. All terms have one sign, so nothing cancels near 0, and the loop needs no calls
 * or branches. */
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

enum { PIECE = 64 }; /* tokens processed at a time */

/* Adds up, over n tokens with l = p - q: p, q, e^l - 1 - l, e^-l - 1 + l, and l^2. */
CLONES static void add_excess(const double *p, const double *q, size_t n, double sum[5]) {
  double plus[PIECE], minus[PIECE], square[PIECE];
  for (size_t first = 0; first < n; first += PIECE, p += PIECE, q += PIECE) {
    const size_t m = n - first < PIECE ? n - first : PIECE;
    uint64_t large = 0;
    for (size_t t = 0; t < m; ++t) {
      const double l = p[t] - q[t];
      excess(l, &plus[t], &minus[t]);
      square[t] = l * l;
      large += !(fabs(l) <= SERIES_LIMIT);
    }
    for (size_t t = 0; t < m && large > 0; ++t) {
      const double l = p[t] - q[t];
      if (fabs(l) <= SERIES_LIMIT) continue;
      plus[t] = expm1(l) - l;
      minus[t] = expm1(-l) + l;
    }
    sum[0] += lane4_sum(p, m);
    sum[1] += lane4_sum(q, m);
    sum[2] += lane4_sum(plus, m);
    sum[3] += lane4_sum(minus, m);
    sum[4] += lane4_sum(square, m);
  }
}

/* Sums log-probabilities and divergence terms over the tokens of response i. Overwrites seq_p,
 * seq_q, seq_x and seq_g, which the ratios no longer need. */
static void sums_of_response(policy_state *s, size_t i) {
  const size_t lo = s->in->token_start[i], n = s->in->token_start[i + 1] - lo;
  double sum[5] = {0};
  add_excess(s->in->logp + lo, s->in->logq + lo, n, sum);
  s->seq_p[i] = sum[0];
  s->seq_q[i] = sum[1];
  s->seq_x[i] = sum[0] - sum[1];
  s->seq_g[i] = 2 * sum[1];
  s->tally[i].k3 = sum[2];
  s->tally[i].cppo = sum[3];
  s->tally[i].m2 = sum[4];
}

/* The standard deviation within group g of the per-response token means x[i] / T_i; NaN for a group
 * of one. */
static double spread_of_means(const policy_state *s, size_t g, const double *x) {
  const size_t lo = s->in->group_start[g], hi = s->in->group_start[g + 1];
  const size_t *start = s->in->token_start;
  double mean = 0, squares = 0, n = 0;
  for (size_t i = lo; i < hi; ++i) {
    if (start[i + 1] == start[i]) continue;
    mean += x[i] / (double)(start[i + 1] - start[i]);
    n += 1;
  }
  mean /= n;
  for (size_t i = lo; i < hi; ++i) {
    if (start[i + 1] == start[i]) continue;
    const double d = x[i] / (double)(start[i + 1] - start[i]) - mean;
    squares += d * d;
  }
  if (!isfinite(mean) && n > 1) return INFINITY;
  return n > 1 ? sqrt(squares / (n - 1)) : NAN;
}

/* Metrics of how much geometric means differ between the responses of a group. */
static void spreads(policy_state *s) {
  double ratio = 0, p = 0, groups = 0;
  for (size_t g = 0; g < s->in->n_groups; ++g) {
    const double of_ratio = spread_of_means(s, g, s->seq_x);
    if (isnan(of_ratio)) continue;
    ratio += of_ratio;
    p += spread_of_means(s, g, s->seq_p);
    groups += 1;
  }
  s->out->metric[METRIC_GM_RATIO_SPREAD] = groups > 0 ? ratio / groups : NAN;
  s->out->metric[METRIC_GM_P_SPREAD] = groups > 0 ? p / groups : NAN;
}

/* Metrics: fractions of units that are clipped and that the gate drops, by the sign of A. The tally
 * of a gated response counts all its units as clipped. */
static void fractions_by_sign(policy_state *s) {
  static const metric clipped_of[] = {METRIC_CLIPPED_NEGATIVE, METRIC_CLIPPED_POSITIVE},
                      gated_of[] = {METRIC_GATED_NEGATIVE, METRIC_GATED_POSITIVE};
  double units[2] = {0}, clipped[2] = {0}, gated[2] = {0};
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    const int positive = s->advantage[i] > 0;
    if (!positive && !(s->advantage[i] < 0)) continue;
    units[positive] += s->tally[i].units;
    if (policy_passes_gate(s, i))
      clipped[positive] += s->tally[i].clipped;
    else
      gated[positive] += s->tally[i].units;
  }
  for (int k = 0; k < 2; ++k) {
    if (units[k] == 0) continue;
    s->out->metric[clipped_of[k]] = clipped[k] / units[k];
    if (s->mask_gate != NULL) s->out->metric[gated_of[k]] = gated[k] / units[k];
  }
}

/* Metrics: mean log-ratio of the tokens by the sign of A, from the sums made by sums_of_response().
 */
static void log_ratios_by_sign(policy_state *s) {
  static const metric of[] = {METRIC_LOG_RATIO_NEGATIVE, METRIC_LOG_RATIO_POSITIVE};
  double sum[2] = {0}, tokens[2] = {0};
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    const int positive = s->advantage[i] > 0;
    if (!positive && !(s->advantage[i] < 0)) continue;
    sum[positive] += s->seq_x[i];
    tokens[positive] += (double)(s->in->token_start[i + 1] - s->in->token_start[i]);
  }
  for (int k = 0; k < 2; ++k)
    if (tokens[k] > 0) s->out->metric[of[k]] = sum[k] / tokens[k];
}

/* Metrics of the divergences from the sampler and from the reference policy, and of staleness. */
static void divergences(policy_state *s) {
  const policy_input *in = s->in;
  double k3 = 0, cppo = 0, m2 = 0, ref = 0, gap = 0, gap_max = 0, n = (double)in->n_tokens;
  double *value = s->out->metric;
  for (size_t i = 0; i < in->n_responses; ++i) {
    k3 += s->tally[i].k3;
    cppo += s->tally[i].cppo;
    m2 += s->tally[i].m2;
  }
  for (size_t t = 0; t < in->n_tokens && (in->logref != NULL || in->version_gap != NULL); ++t) {
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
  value[METRIC_M2_LOG_RATIO] = m2 / n;
  if (in->logref != NULL) value[METRIC_KL_REF] = ref / n;
  if (in->version_gap != NULL) {
    value[METRIC_STALENESS] = gap / n;
    value[METRIC_STALENESS_MAX] = gap_max;
  }
}

int policy_is_on_policy(const double value[METRIC_COUNT]) {
  return value[METRIC_STALENESS] == 0 || value[METRIC_KL_K3] <= 1e-4;
}

const char *policy_ess_advice(const policy_algorithm *algorithm, double ess,
                              char text[POLICY_ADVICE_SIZE]) {
  const int sums = policy_ratio_about(algorithm->ratio)->unit == RATIO_OF_RESPONSE &&
                   algorithm->log_prob == LOG_PROB_SUM;
  text[0] = '\0';
  if (!(ess < POLICY_LEAST_ESS)) return text;
  snprintf(text, POLICY_ADVICE_SIZE,
           "on-policy, the effective sample size is %.2g of a group, below %g: %s", ess,
           POLICY_LEAST_ESS,
           !sums ? "compare the sampler's log-probabilities (logq) with the learner's"
           : strcmp(algorithm->base, "gepo") == 0
               ? "log_prob: sum compares probabilities of whole responses, and one has all of the "
                 "weight; use gepo_released, which is gepo with log_prob: mean"
               : "log_prob: sum compares probabilities of whole responses, and one has all of the "
                 "weight; set log_prob: mean");
  return text;
}

void policy_diagnostics(policy_state *s) {
  const policy_input *in = s->in;
  double *value = s->out->metric, reward = 0;
  metrics_clear(value);
  if (in->n_tokens == 0 || in->n_responses == 0) return;
  for (size_t i = 0; i < in->n_responses; ++i) reward += in->reward[i];
  value[METRIC_LOSS] = s->out->loss;
  value[METRIC_REWARD_MEAN] = reward / (double)in->n_responses;
  value[METRIC_RESPONSE_LENGTH] = (double)in->n_tokens / (double)in->n_responses;
  value[METRIC_CLIP_FRACTION] = s->units > 0 ? s->clipped / s->units : 0;
  if (s->algorithm->objective != OBJECTIVE_POLICY_GRADIENT)
    s->sequence_level = 0; /* there are no advantages, so nothing is split by their sign */
  else
    fractions_by_sign(s);
  own_weights(s);
  policy_each(s, in->n_responses, sums_of_response);
  if (s->algorithm->objective == OBJECTIVE_POLICY_GRADIENT) log_ratios_by_sign(s);
  spreads(s);
  common_weights(s);
  divergences(s);
}
