/* Turns rewards into advantages, A = (r - b) / s per group. */
#include "core/policy/internal.h"

#include <gsl/gsl_sf_gamma.h>

typedef struct moments {
  double mean, deviation;
  int equal; /* whether all values are the same */
} moments;

static moments moments_of(const double *v, size_t n, size_t ddof) {
  moments m = {.mean = n > 0 ? v[0] : 0, .equal = 1};
  double sum = 0, squares = 0, unit = 1;
  for (size_t i = 0; i < n; ++i) {
    sum += v[i];
    m.equal = m.equal && v[i] == v[0];
  }
  if (m.equal) return m;
  m.mean = sum / (double)n;
  for (size_t i = 0; i < n; ++i) squares += (v[i] - m.mean) * (v[i] - m.mean);
  if (isinf(squares)) { /* the squares are too large for a double, the deviation need not be */
    unit = 0x1p600, squares = 0;
    for (size_t i = 0; i < n; ++i) squares += pow((v[i] - m.mean) / unit, 2);
  }
  m.deviation = unit * sqrt(squares / (double)(n - ddof));
  return m;
}

/* The length-weighted mean reward: the baseline with the least variance when the squared norm of a
 * response's score grows with its length (OPO, 2505.23585). */
static double length_weighted_mean(const policy_state *s, size_t g) {
  const policy_input *in = s->in;
  double sum = 0, tokens = 0;
  for (size_t i = in->group_start[g]; i < in->group_start[g + 1]; ++i) {
    const double length = (double)(in->token_start[i + 1] - in->token_start[i]);
    sum += length * s->reward[i];
    tokens += length;
  }
  return tokens > 0 ? sum / tokens : 0;
}

/* The mean reward with squared ratios P / Q times lengths as weights: the baseline with the least
 * variance off-policy (VCPO, 2602.17616) where squared norms of scores grow with length. */
static double off_policy_mean(const policy_state *s, size_t g, double mean) {
  const policy_input *in = s->in;
  const size_t lo = in->group_start[g], hi = in->group_start[g + 1];
  double *log_weight = s->seq_g, top = -INFINITY, sum = 0, total = 0;
  for (size_t i = lo; i < hi; ++i) {
    double l = 0;
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t)
      l += in->logp[t] - in->logq[t];
    log_weight[i] = 2 * l + log((double)(in->token_start[i + 1] - in->token_start[i]));
    top = fmax(top, log_weight[i]);
  }
  if (!isfinite(top)) return mean;
  for (size_t i = lo; i < hi; ++i) {
    const double w = exp(log_weight[i] - top);
    sum += w * s->reward[i];
    total += w;
  }
  return sum / total;
}

/* temperature * log mean exp(r / temperature), of the rewards themselves (Trinity-RFT's OPMD). */
static double soft_maximum(const policy_state *s, size_t g) {
  const policy_input *in = s->in;
  const size_t lo = in->group_start[g], hi = in->group_start[g + 1];
  const double temperature = s->algorithm->baseline_temperature;
  double top = -INFINITY, sum = 0;
  for (size_t i = lo; i < hi; ++i) top = fmax(top, in->reward[i]);
  for (size_t i = lo; i < hi; ++i) sum += exp((in->reward[i] - top) / temperature);
  return hi > lo ? top + temperature * log(sum / (double)(hi - lo)) : 0;
}

/* Subtracts the baseline. Leave-one-out is G/(G-1) times the group-mean form; in a group of one
 * response its baseline is 0. */
static void advantage_centre(policy_state *s, size_t g, moments m, size_t n) {
  const policy_algorithm *algorithm = s->algorithm;
  s->baseline[g] = NAN;
  s->scale[g] = 1;
  switch (algorithm->baseline) {
  case BASELINE_NONE:
    s->baseline[g] = 0;
    break;
  case BASELINE_CONSTANT:
    s->baseline[g] = algorithm->baseline_value;
    break;
  case BASELINE_GROUP_MEAN:
    s->baseline[g] = m.mean + algorithm->baseline_value;
    break;
  case BASELINE_LEAVE_ONE_OUT: {
    const double scale = n > 1 ? (double)(n - 1) / (double)n : 1;
    s->baseline[g] = (n > 1 ? m.mean : 0) + scale * algorithm->baseline_value;
    s->scale[g] = scale;
    break;
  }
  case BASELINE_LENGTH_WEIGHTED:
    s->baseline[g] = (m.equal ? m.mean : length_weighted_mean(s, g)) + algorithm->baseline_value;
    break;
  case BASELINE_OFF_POLICY:
    s->baseline[g] = (m.equal ? m.mean : off_policy_mean(s, g, m.mean)) + algorithm->baseline_value;
    break;
  case BASELINE_SOFT_MAXIMUM:
    s->baseline[g] = soft_maximum(s, g);
    break;
  case BASELINE_RUNNER_UP: /* no single baseline: give_lead() computes the advantages */
    break;
  }
}

/* The best response's advantage is its lead over the second best; all others get 0 (2503.19595). */
static void give_lead(policy_state *s, size_t g) {
  const size_t lo = s->in->group_start[g], hi = s->in->group_start[g + 1];
  const double *r = s->in->reward;
  size_t best = lo;
  double second = -INFINITY;
  for (size_t i = lo; i < hi; ++i) s->advantage[i] = 0;
  for (size_t i = lo + 1; i < hi; ++i) {
    if (r[i] > r[best]) {
      second = r[best];
      best = i;
    } else {
      second = fmax(second, r[i]);
    }
  }
  if (hi - lo > 1) s->advantage[best] = (r[best] - second) / s->scale[g];
}

/* BNPO: divides by a Beta density whose parameters are estimated from the batch's group means, with
 * the guards of the released code (2506.02864; paper/methods.md §4.14). */
static void beta_scale(policy_state *s) {
  const policy_input *in = s->in;
  size_t n = in->n_groups;
  double *p = s->scale, mean = 0, variance = 1;
  for (size_t g = 0; g < n; ++g) {
    size_t lo = in->group_start[g], size = in->group_start[g + 1] - lo;
    p[g] = size == 1 ? 0 : moments_of(in->reward + lo, size, 0).mean;
  }
  if (n > 1) {
    moments m = moments_of(p, n, 1);
    mean = m.mean;
    variance = m.deviation * m.deviation;
  }
  double k = variance > 0 ? mean * (1 - mean) / variance - 1 : 0;
  double alpha = fmax(1, 1 + k * mean / 3), beta = fmax(1, 1 + k * (1 - mean) / 3);
  double log_b = gsl_sf_lnbeta(alpha, beta); /* lgamma() would write the global signgam */
  for (size_t g = 0; g < n; ++g) {
    double log_density = -log_b;
    if (alpha > 1) log_density += (alpha - 1) * log(p[g]);
    if (beta > 1) log_density += (beta - 1) * log1p(-p[g]);
    s->baseline[g] = p[g];
    s->scale[g] = fmax(exp(log_density), policy_scale_guard(s->algorithm));
  }
}

double policy_scale_guard(const policy_algorithm *algorithm) {
  switch (algorithm->scale) {
  case SCALE_NONE:
  case SCALE_NONZERO_SHARE:
    return -INFINITY;
  case SCALE_BETA:
    return 1e-6;
  case SCALE_TOKEN_STD:
    return sqrt(algorithm->scale_eps);
  case SCALE_GROUP_STD:
  case SCALE_GROUP_MEAN:
  case SCALE_BATCH_STD:
  case SCALE_REWARD_STD:
    break;
  }
  return algorithm->scale_eps;
}

/* Standardises the advantages over the batch: subtracts their mean and divides by their standard
 * deviation, both as changes of baseline and scale. */
static void batch_scale(policy_state *s) {
  const policy_input *in = s->in;
  double *a = s->seq_g;
  size_t n = 0;
  for (size_t g = 0; g < in->n_groups; ++g)
    for (size_t i = in->group_start[g]; s->mask_group[g] > 0 && i < in->group_start[g + 1]; ++i)
      a[n++] = (s->reward[i] - s->baseline[g]) / s->scale[g];
  moments m = moments_of(a, n, s->algorithm->std_ddof);
  double deviation = m.deviation + s->algorithm->scale_eps;
  for (size_t g = 0; g < in->n_groups; ++g) {
    s->baseline[g] += m.mean * s->scale[g];
    s->scale[g] *= deviation > 0 ? deviation : 1;
  }
}

/* One standard deviation for the whole batch, of the uncentred rewards (TRL's scale_rewards:
 * batch). */
static void reward_scale(policy_state *s) {
  const policy_input *in = s->in;
  const size_t n = in->n_responses, ddof = n > 1 ? s->algorithm->std_ddof : 0;
  const double deviation = moments_of(s->reward, n, ddof).deviation + s->algorithm->scale_eps;
  for (size_t g = 0; g < in->n_groups; ++g) s->scale[g] *= deviation > 0 ? deviation : 1;
}

/* Centres and scales by the mean and standard deviation over tokens, where each token has the
 * advantage of its response (REINFORCE++, 2501.03262). */
static void token_scale(policy_state *s) {
  const policy_input *in = s->in;
  double tokens = 0, mean = 0, squares = 0;
  for (int pass = 0; pass < 2; ++pass) {
    double sum = 0;
    tokens = 0;
    for (size_t g = 0; g < in->n_groups; ++g)
      for (size_t i = in->group_start[g]; s->mask_group[g] > 0 && i < in->group_start[g + 1]; ++i) {
        const double length = (double)(in->token_start[i + 1] - in->token_start[i]);
        const double a = (s->reward[i] - s->baseline[g]) / s->scale[g];
        tokens += length;
        sum += pass == 0 ? length * a : length * (a - mean) * (a - mean);
      }
    if (pass == 0 && tokens > 0) mean = sum / tokens;
    squares = sum;
  }
  const double n = tokens - (double)s->algorithm->std_ddof;
  const double deviation = sqrt((n > 0 ? squares / n : 0) + s->algorithm->scale_eps);
  for (size_t g = 0; g < in->n_groups; ++g) {
    s->baseline[g] += mean * s->scale[g];
    s->scale[g] *= deviation > 0 ? deviation : 1;
  }
}

/* GPG's alpha (2504.02546): multiplies the scale by the fraction of non-zero rewards in the batch,
 * so that advantages grow when they are rare. */
static void share_scale(policy_state *s) {
  const policy_input *in = s->in;
  double n = 0;
  for (size_t i = 0; i < in->n_responses; ++i) n += in->reward[i] != 0 ? 1 : 0;
  for (size_t g = 0; g < in->n_groups; ++g) s->scale[g] *= fmax(1, n) / (double)in->n_responses;
}

/* Refuses rewards outside the range that the objective or the scale is defined for. */
static gl_status rewards_fit(const policy_state *s, gl_error *err) {
  const int scores = s->algorithm->objective != OBJECTIVE_POLICY_GRADIENT;
  const int beta = s->algorithm->scale == SCALE_BETA;
  for (size_t i = 0; i < s->in->n_responses; ++i) {
    double r = s->in->reward[i];
    if (scores && r != 0 && r != 1)
      return gl_fail(err, GL_EINPUT, "reward %g of response %zu: objective: %s needs 0 or 1", r, i,
                     s->algorithm->objective == OBJECTIVE_DISCO ? "disco" : "real");
    if (s->algorithm->scale == SCALE_GROUP_MEAN && !(r >= 0))
      return gl_fail(err, GL_EINPUT,
                     "reward %g of response %zu: scale: group_mean needs rewards of 0 or more", r,
                     i);
    if (beta && !(r >= 0 && r <= 1))
      return gl_fail(err, GL_EINPUT,
                     "reward %g of response %zu: scale: beta needs rewards in [0, 1]", r, i);
  }
  return GL_OK;
}

/* Whether the rewards of a group are equal. If they are unknown, its advantages decide: they are
 * all 0 then. */
static int rewards_are_equal(const policy_input *in, size_t lo, size_t n) {
  if (!isnan(in->reward[lo])) return moments_of(in->reward + lo, n, 0).equal;
  for (size_t i = lo; i < lo + n; ++i)
    if (in->advantage[i] != 0) return 0;
  return 1;
}

/* Uses the advantages the caller passed. Groups that drop_equal drops because of their rewards stay
 * dropped. */
static void take_advantages(policy_state *s) {
  const policy_input *in = s->in;
  for (size_t g = 0; g < in->n_groups; ++g) {
    const size_t lo = in->group_start[g], n = in->group_start[g + 1] - lo;
    const int equal = s->algorithm->drop_equal && rewards_are_equal(in, lo, n);
    s->mask_group[g] = equal ? 0 : 1;
    s->baseline[g] = s->scale[g] = NAN;
    for (size_t i = lo; i < lo + n; ++i) s->advantage[i] = equal ? 0 : in->advantage[i];
  }
}

/* Subtracts reward_kl_coef times the response's log-ratio from the rewards. */
static void lower_rewards(policy_state *s) {
  const policy_input *in = s->in;
  const double *base = s->algorithm->reward_kl_of == REWARD_KL_REFERENCE ? in->logref : in->logq;
  for (size_t i = 0; i < in->n_responses; ++i) {
    double l = 0;
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) l += in->logp[t] - base[t];
    s->own_reward[i] = in->reward[i] - s->algorithm->reward_kl_coef * l;
  }
  s->reward = s->own_reward;
}

/* Divides by the group's deviation or mean. */
static void group_scale(policy_state *s, size_t g, moments m) {
  const policy_algorithm *algorithm = s->algorithm;
  double by = algorithm->scale_eps;
  if (algorithm->scale == SCALE_GROUP_STD)
    by += m.deviation;
  else if (algorithm->scale == SCALE_GROUP_MEAN)
    by += m.mean;
  else
    return;
  s->scale[g] *= by > 0 ? by : 1;
}

gl_status policy_advantages(policy_state *s, gl_error *err) {
  const policy_input *in = s->in;
  const policy_algorithm *algorithm = s->algorithm;
  if (in->advantage != NULL) {
    take_advantages(s);
    return GL_OK;
  }
  if (rewards_fit(s, err) != GL_OK) return GL_EINPUT;
  if (s->own_reward != NULL) lower_rewards(s);
  for (size_t g = 0; g < in->n_groups; ++g) {
    size_t lo = in->group_start[g], n = in->group_start[g + 1] - lo;
    moments m = moments_of(s->reward + lo, n, n > 1 ? algorithm->std_ddof : 0);
    const int drop = algorithm->drop_equal && moments_of(in->reward + lo, n, 0).equal;
    advantage_centre(s, g, m, n);
    s->mask_group[g] = drop ? 0 : 1;
    group_scale(s, g, m);
  }
  switch (algorithm->scale) {
  case SCALE_NONE:
  case SCALE_GROUP_STD: /* already applied */
  case SCALE_GROUP_MEAN:
    break;
  case SCALE_BATCH_STD:
    batch_scale(s);
    break;
  case SCALE_BETA:
    beta_scale(s);
    break;
  case SCALE_REWARD_STD:
    reward_scale(s);
    break;
  case SCALE_TOKEN_STD:
    token_scale(s);
    break;
  case SCALE_NONZERO_SHARE:
    share_scale(s);
    break;
  }
  for (size_t g = 0; g < in->n_groups; ++g) {
    if (algorithm->baseline == BASELINE_RUNNER_UP && s->mask_group[g] > 0) {
      give_lead(s, g);
      continue;
    }
    for (size_t i = in->group_start[g]; i < in->group_start[g + 1]; ++i)
      s->advantage[i] = s->mask_group[g] > 0 ? (s->reward[i] - s->baseline[g]) / s->scale[g] : 0;
  }
  return GL_OK;
}
