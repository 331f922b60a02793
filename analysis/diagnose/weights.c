/* What every algorithm would do with the batches of a log: weights, and what is clipped, gated and
 * dropped by the sign of the advantage. */
#include "analysis/diagnose/internal.h"
#include "core/base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

gl_status rows_init(diagnosis *d, gl_error *err) {
  const policy_algorithm *ran = d->request.algorithm;
  const size_t published = policy_algorithms_count();
  d->row = ARENA_ARRAY(&d->memory, row_facts, published + 1);
  d->workspace = policy_workspace_new();
  gl_status status = arena_check(&d->memory, "the algorithms", err);
  if (status == GL_OK && d->workspace == NULL) status = gl_fail_memory(err, "a workspace");
  if (status != GL_OK) return status;
  if (ran != NULL) d->row[d->n_rows++] = (row_facts){.algorithm = *ran, .ran = true};
  for (size_t i = 0; i < published; ++i) {
    const policy_algorithm *a = policy_algorithms_at(i);
    if (ran == NULL || strcmp(a->name, ran->name) != 0)
      d->row[d->n_rows++] = (row_facts){.algorithm = *a};
  }
  return GL_OK;
}

void rows_fini(diagnosis *d) {
  for (size_t i = 0; i < d->n_rows; ++i) free(d->row[i].value);
  policy_workspace_free(d->workspace);
}

/* Likelihoods of responses relative to their group's expectation, geometric means: the ratio of
 * gepo without its clip. */
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

/* Batches that lack what an algorithm needs are counted; they are no error. */
static gl_status row_add(diagnosis *d, row_facts *row, const policy_input *in, const double *mark,
                         double *coefficient, gl_error *err) {
  static const metric from[ROW_IMPROBABLE] = {METRIC_ESS,
                                              METRIC_IW_MAX,
                                              METRIC_CLIPPED_POSITIVE,
                                              METRIC_CLIPPED_NEGATIVE,
                                              METRIC_GATED_POSITIVE,
                                              METRIC_GATED_NEGATIVE};
  double *value = row->value + (d->n_updates - 1) * ROW_VALUES;
  policy_output out = {.coefficient = coefficient};
  gl_error why = {0};
  metrics_clear(out.metric);
  const gl_status status = policy_evaluate(&row->algorithm, in, &out, d->workspace, &why);
  if (status == GL_EINPUT) {
    if (row->n_refused++ == 0) snprintf(row->why, sizeof row->why, "%.255s", why.text);
    return GL_OK;
  }
  if (status != GL_OK) return gl_fail(err, status, "%s", why.text);
  ++row->n;
  for (int k = 0; k < ROW_IMPROBABLE; ++k) value[k] = out.metric[from[k]];
  if (mark != NULL) value[ROW_IMPROBABLE] = count_dropped(mark, in, coefficient);
  return GL_OK;
}

/* Room for the values of the last update, which are NaN at first. */
static gl_status make_room(diagnosis *d, gl_error *err) {
  for (size_t i = 0; i < d->n_rows; ++i) {
    size_t room = d->value_room * ROW_VALUES;
    if (!ARRAY_RESERVE(d->row[i].value, room, d->n_updates * ROW_VALUES))
      return gl_fail_memory(err, "the updates of an algorithm");
    for (size_t k = 1; k <= ROW_VALUES; ++k) d->row[i].value[d->n_updates * ROW_VALUES - k] = NAN;
    if (i + 1 == d->n_rows) d->value_room = room / ROW_VALUES;
  }
  return GL_OK;
}

gl_status rows_add(diagnosis *d, const diagnose_batch *batch, gl_error *err) {
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
  for (size_t i = 0; i < d->n_rows && status == GL_OK; ++i)
    status = row_add(d, &d->row[i], in, mark, coefficient, err);
  return status;
}
