/* Adds a batch of a token-level log: sums over its tokens and responses, and what every algorithm
 * would have done with it. */
#include "analysis/diagnose/internal.h"
#include "core/base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void sums_add(token_sums *to, double p, double q, double l) {
  const double difference = fabs(p - q);
  ++to->n;
  to->l += l;
  to->l2 += l * l;
  to->k3 += expm1(l) - l;
  to->difference += difference;
  to->far += difference > DIAGNOSE_FAR;
  to->factor += exp(fabs(l));
}

void line_add(double sums[LINE_SUMS], double x, double y, double weight) {
  sums[0] += weight;
  sums[1] += weight * x;
  sums[2] += weight * x * x;
  sums[3] += weight * y;
  sums[4] += weight * x * y;
}

/* --- lags of a response --- */

typedef struct lag_range {
  double first, least, most, sum;
  size_t n;
} lag_range;

static void range_add(lag_range *r, double lag) {
  if (r->n == 0) r->first = r->least = r->most = lag;
  r->least = fmin(r->least, lag);
  r->most = fmax(r->most, lag);
  r->sum += lag;
  ++r->n;
}

/* --- a batch --- */

typedef struct batch_work {
  diagnosis *d;
  update_facts *to;
  const policy_input *in;
  token_sums of_lag[DIAGNOSE_MOST_LAG + 1];
  double known; /* responses whose lags are known */
} batch_work;

/* Adds the tokens of response i. Returns its sums. */
static token_sums add_tokens(batch_work *w, size_t i, lag_range *range) {
  const policy_input *in = w->in;
  token_sums own = {0};
  for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
    const double lag = in->version_gap != NULL ? in->version_gap[t] : NAN;
    if (lag >= 0 && isfinite(lag)) range_add(range, lag);
    if (in->logp == NULL || in->logq == NULL) continue;
    const double l = in->logp[t] - in->logq[t];
    if (!isfinite(l) || fabs(l) > 700) { /* exp would be infinite */
      ++w->d->not_finite;
      continue;
    }
    const double p = exp(in->logp[t]), q = exp(in->logq[t]);
    sums_add(&own, p, q, l);
    if (!(lag >= 0 && isfinite(lag))) continue;
    line_add(w->to->lag_line, lag, expm1(l) - l, 1);
    line_add(w->to->factor_line, lag, exp(fabs(l)), 1);
    sums_add(&w->of_lag[lag < DIAGNOSE_MOST_LAG ? (size_t)(lag + 0.5) : DIAGNOSE_MOST_LAG], p, q,
             l);
  }
  return own;
}

static void sums_join(token_sums *to, const token_sums *from) {
  to->n += from->n, to->l += from->l, to->l2 += from->l2, to->k3 += from->k3;
  to->difference += from->difference, to->far += from->far, to->factor += from->factor;
}

static void add_range(batch_work *w, const lag_range *r, double length) {
  double *s = w->to->staleness;
  if (r->n == 0) return;
  ++w->known;
  s[STALENESS_TOKENS] += r->sum;
  s[STALENESS_START] += r->first;
  s[STALENESS_NEWEST] += r->least;
  s[STALENESS_OLDEST] += r->most;
  s[STALENESS_MOST] = fmax(s[STALENESS_MOST], r->most);
  line_add(w->to->length_line, r->most, length, 1);
}

/* Sums over responses for the standard error of a mean over tokens. y: a response's total; n: its
 * number of tokens. */
typedef struct cluster_sums {
  double y, yy, yn;
} cluster_sums;

static void cluster_add(cluster_sums *c, double y, double n) {
  c->y += y, c->yy += y * y, c->yn += y * n;
}

/* Standard error of the mean over n tokens, with responses as clusters: the standard error of a
 * ratio estimator with residuals y_i - mean n_i (Cochran 1977, §6.4). */
static double cluster_error(const cluster_sums *c, double n, double nn, double responses) {
  const double mean = c->y / n, residual = c->yy - 2 * mean * c->yn + mean * mean * nn;
  return responses < 2 ? NAN : sqrt(fmax(residual, 0) * responses / (responses - 1)) / n;
}

/* Adds all responses. Staleness over tokens is averaged over the tokens with known lag (lagged),
 * other kinds over the responses with known lags (known). */
static void add_responses(batch_work *w) {
  const policy_input *in = w->in;
  cluster_sums k3 = {0}, factor = {0};
  double nn = 0, lagged = 0;
  for (size_t i = 0; i < in->n_responses; ++i) {
    const double length = (double)(in->token_start[i + 1] - in->token_start[i]);
    lag_range range = {0};
    const token_sums own = add_tokens(w, i, &range);
    sums_join(&w->to->all, &own);
    cluster_add(&k3, own.k3, own.n), cluster_add(&factor, own.factor, own.n);
    nn += own.n * own.n;
    w->to->tokens_squared += length * length;
    add_range(w, &range, length);
    lagged += (double)range.n;
  }
  w->to->k3_error = cluster_error(&k3, w->to->all.n, nn, (double)in->n_responses);
  w->to->factor_error = cluster_error(&factor, w->to->all.n, nn, (double)in->n_responses);
  for (int k = 0; k < STALENESS_KINDS; ++k)
    if (k != STALENESS_MOST) w->to->staleness[k] /= k == STALENESS_TOKENS ? lagged : w->known;
  if (lagged == 0) w->to->staleness[STALENESS_MOST] = NAN;
}

/* Computes the mean reward, and counts the responses whose advantage is not 0. Where the log has no
 * advantages, these are the responses of groups with different rewards. */
static void add_rewards(update_facts *to, const policy_input *in) {
  double sum = 0;
  for (size_t g = 0; g < in->n_groups; ++g) {
    const size_t from = in->group_start[g], end = in->group_start[g + 1];
    double least = INFINITY, most = -INFINITY;
    for (size_t i = from; i < end; ++i) {
      sum += in->reward[i];
      least = fmin(least, in->reward[i]), most = fmax(most, in->reward[i]);
      if (in->advantage != NULL) to->informative += in->advantage[i] != 0;
    }
    if (in->advantage == NULL && most > least) to->informative += (double)(end - from);
  }
  to->reward = sum / (double)in->n_responses;
}

static gl_status keep_cells(batch_work *w, gl_error *err) {
  for (size_t lag = 0; lag <= DIAGNOSE_MOST_LAG; ++lag) {
    if (w->of_lag[lag].n == 0) continue;
    lag_cell *cell = ARRAY_ADD(w->d->cell, w->d->n_cells);
    if (cell == NULL) return gl_fail_memory(err, "the lags of a log");
    *cell = (lag_cell){w->d->n_updates - 1, lag, w->of_lag[lag]};
  }
  return GL_OK;
}

/* Copies the name to the memory of the diagnosis; returns the name of the update before if it is
 * the same. */
static const char *keep_name(diagnosis *d, const char *name, const char *before) {
  if (name == NULL) return NULL;
  return before != NULL && strcmp(before, name) == 0 ? before : arena_text(&d->memory, name);
}

static gl_status keep_place(diagnosis *d, const log_position *from, gl_error *err) {
  size_t n = d->n_updates;
  log_position *to = ARRAY_ADD(d->place, n);
  if (to == NULL) return gl_fail_memory(err, "the updates of a log");
  *to = *from;
  to->first_file = keep_name(d, from->first_file, n > 1 ? to[-1].last_file : NULL);
  to->last_file = keep_name(d, from->last_file, to->first_file);
  return arena_check(&d->memory, "the updates of a log", err);
}

/* --- every algorithm's weights --- */

/* Evaluates every algorithm on the batches of a log: its weights, and the fractions that it clips,
 * masks and drops by the sign of the advantage. */

gl_status methods_init(diagnosis *d, gl_error *err) {
  const policy_algorithm *ran = d->request.algorithm;
  const size_t published = policy_algorithms_count();
  d->method = ARENA_ARRAY(&d->memory, method_facts, published + 1);
  d->workspace = policy_workspace_new();
  gl_status status = arena_check(&d->memory, "the algorithms", err);
  if (status == GL_OK && d->workspace == NULL) status = gl_fail_memory(err, "a workspace");
  if (status != GL_OK) return status;
  if (ran != NULL) d->method[d->n_methods++] = (method_facts){.algorithm = *ran, .ran = true};
  for (size_t i = 0; i < published; ++i) {
    const policy_algorithm *a = policy_algorithms_at(i);
    if (ran == NULL || strcmp(a->name, ran->name) != 0)
      d->method[d->n_methods++] = (method_facts){.algorithm = *a};
  }
  return GL_OK;
}

void methods_fini(diagnosis *d) {
  for (size_t i = 0; i < d->n_methods; ++i) free(d->method[i].value);
  policy_workspace_free(d->workspace);
}

/* Computes the likelihood of each response (geometric mean over tokens) relative to its group's
 * expectation: the ratio of gepo without its clip. */
static gl_status group_likelihood(diagnosis *d, const policy_input *in, policy_output *out,
                                  gl_error *err) {
  policy_algorithm gepo = *policy_algorithms_find("gepo");
  gepo.clip = CLIP_NONE;
  gepo.log_prob = LOG_PROB_MEAN;
  return policy_evaluate(&gepo, in, out, d->workspace, err);
}

/* Marks the wrong responses that are improbable under their group. Returns their number. */
static size_t mark_improbable(double *mark, const policy_input *in, const double *advantage,
                              const double *weight) {
  size_t n = 0;
  for (size_t i = 0; i < in->n_responses; ++i) {
    const bool is = advantage[i] < 0 && weight[in->token_start[i]] < DIAGNOSE_IMPROBABLE;
    mark[i] = is;
    n += is;
  }
  return n;
}

/* The number of marked responses none of whose tokens has a coefficient. */
static double count_dropped(const double *mark, const policy_input *in, const double *coefficient) {
  double n = 0;
  for (size_t i = 0; i < in->n_responses; ++i) {
    bool is_zero = mark[i] != 0;
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1] && is_zero; ++t)
      is_zero = coefficient[t] == 0;
    n += is_zero;
  }
  return n;
}

/* Evaluates one algorithm on the last update. If the batch lacks what the algorithm needs, it is
 * counted as refused; this is no error. */
static gl_status method_add(diagnosis *d, method_facts *method, const policy_input *in,
                            const double *mark, double *coefficient, gl_error *err) {
  static const metric from[METHOD_IMPROBABLE] = {METRIC_ESS,
                                                 METRIC_IW_MAX,
                                                 METRIC_CLIPPED_POSITIVE,
                                                 METRIC_CLIPPED_NEGATIVE,
                                                 METRIC_GATED_POSITIVE,
                                                 METRIC_GATED_NEGATIVE};
  double *value = method->value + (d->n_updates - 1) * METHOD_VALUES;
  policy_output out = {.coefficient = coefficient};
  gl_error why = {0};
  metrics_clear(out.metric);
  const gl_status status = policy_evaluate(&method->algorithm, in, &out, d->workspace, &why);
  if (status == GL_EINPUT) {
    if (method->n_refused++ == 0) snprintf(method->why, sizeof method->why, "%.255s", why.text);
    return GL_OK;
  }
  if (status != GL_OK) return gl_fail(err, status, "%s", why.text);
  ++method->n;
  for (int k = 0; k < METHOD_IMPROBABLE; ++k) value[k] = out.metric[from[k]];
  if (mark != NULL) value[METHOD_IMPROBABLE] = count_dropped(mark, in, coefficient);
  return GL_OK;
}

/* Makes room for the values of the last update and sets them to NaN. */
static gl_status make_room(diagnosis *d, gl_error *err) {
  for (size_t i = 0; i < d->n_methods; ++i) {
    size_t room = d->value_room * METHOD_VALUES;
    if (!ARRAY_RESERVE(d->method[i].value, room, d->n_updates * METHOD_VALUES))
      return gl_fail_memory(err, "the updates of an algorithm");
    for (size_t k = 1; k <= METHOD_VALUES; ++k)
      d->method[i].value[d->n_updates * METHOD_VALUES - k] = NAN;
    if (i + 1 == d->n_methods) d->value_room = room / METHOD_VALUES;
  }
  return GL_OK;
}

/* Evaluates every algorithm on the batch, which is the last update. Without log-probabilities all
 * values of the update remain NaN. If the batch lacks what gepo needs, improbable responses are
 * unknown and only their counts are omitted. Errors: GL_ENOMEM. */
static gl_status methods_add(diagnosis *d, const diagnose_batch *batch, gl_error *err) {
  const policy_input *in = batch->in;
  const size_t need = 2 * in->n_responses + 2 * in->n_tokens;
  gl_status status = make_room(d, err);
  if (status != GL_OK || in->logp == NULL || in->logq == NULL) return status;
  if (!ARRAY_FIT(d->scratch, d->scratch_room, need)) return gl_fail_memory(err, "the coefficients");
  double *advantage = d->scratch, *mark = advantage + in->n_responses;
  double *weight = mark + in->n_responses, *coefficient = weight + in->n_tokens;
  policy_output out = {.advantage = advantage, .weight = weight, .skip_metrics = 1};
  gl_error why = {0};
  status = group_likelihood(d, in, &out, &why);
  if (status == GL_OK)
    d->update[d->n_updates - 1].improbable = (double)mark_improbable(mark, in, advantage, weight);
  else if (status != GL_EINPUT)
    return gl_fail(err, status, "%s", why.text);
  else
    mark = NULL;
  status = GL_OK;
  for (size_t i = 0; i < d->n_methods && status == GL_OK; ++i)
    status = method_add(d, &d->method[i], in, mark, coefficient, err);
  return status;
}

/* --- one update --- */

gl_status diagnosis_add_batch(diagnosis *d, const diagnose_batch *batch, gl_error *err) {
  const policy_input *in = batch->in;
  gl_status status = keep_place(d, &batch->place, err);
  update_facts *to = status == GL_OK ? ARRAY_ADD(d->update, d->n_updates) : NULL;
  if (to == NULL) return gl_fail_memory(err, "the updates of a log");
  batch_work w = {.d = d, .to = to, .in = in};
  to->step = batch->step;
  to->groups = (double)in->n_groups;
  to->responses = (double)in->n_responses;
  to->tokens = (double)in->n_tokens;
  to->dropped = batch->n_dropped;
  to->dropped_tokens = batch->dropped_tokens;
  to->dropped_tokens_squared = batch->dropped_tokens_squared;
  to->improbable = NAN;
  if (d->n_updates > 1 && batch->step < to[-1].step && d->restarts++ == 0)
    d->restart_at = d->n_updates - 1;
  add_responses(&w);
  add_rewards(to, in);
  status = keep_cells(&w, err);
  return status == GL_OK ? methods_add(d, batch, err) : status;
}
