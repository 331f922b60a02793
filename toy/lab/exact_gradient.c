/* J, its gradient and divergences of policies, summed over all responses. */
#include "toy/lab/exact_gradient.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double log_prob_of(const double *row, size_t n) {
  double sum = 0;
  for (size_t t = 0; t < n; ++t) sum += row[t];
  return sum;
}

/* lab_divergence() for worlds that compute divergences without listing responses. */
static gl_status world_divergence(const enumerable *e, const double *theta_p, const double *theta_q,
                                  double *kl_pq, double *kl_qp, gl_error *err) {
  double forward = 0, backward = 0;
  gl_status status = GL_OK;
  for (size_t x = 0; x < e->n_prompts && status == GL_OK; ++x) {
    double pq = 0, qp = 0;
    status = e->ops->divergence(e->self, theta_p, theta_q, x, &pq, &qp, err);
    forward += enumerable_prompt_weight(e, x) * pq;
    backward += enumerable_prompt_weight(e, x) * qp;
  }
  if (kl_pq != NULL) *kl_pq = forward;
  if (kl_qp != NULL) *kl_qp = backward;
  return status;
}

gl_status lab_divergence(const enumerable *e, const double *theta_p, const double *theta_q,
                         double *kl_pq, double *kl_qp, gl_error *err) {
  if (e->ops->divergence != NULL) return world_divergence(e, theta_p, theta_q, kl_pq, kl_qp, err);
  const size_t size = e->max_responses * e->max_length;
  double *logp = calloc(size, 2 * sizeof *logp), forward = 0, backward = 0;
  if (logp == NULL) return gl_fail_memory(err, "the log-probabilities of a prompt");
  double *logq = logp + size;
  gl_status status = GL_OK;
  for (size_t x = 0; x < e->n_prompts && status == GL_OK; ++x) {
    status = e->ops->log_probs(e->self, theta_p, x, logp, err);
    if (status == GL_OK) status = e->ops->log_probs(e->self, theta_q, x, logq, err);
    for (size_t y = 0; y < e->ops->n_responses(e->self, x) && status == GL_OK; ++y) {
      const size_t length = e->ops->length(e->self, x, y), at = y * e->max_length;
      double p = log_prob_of(logp + at, length), q = log_prob_of(logq + at, length);
      if (p > -INFINITY) forward += enumerable_prompt_weight(e, x) * exp(p) * (p - q);
      if (q > -INFINITY) backward += enumerable_prompt_weight(e, x) * exp(q) * (q - p);
    }
  }
  free(logp);
  if (kl_pq != NULL) *kl_pq = fmax(forward, 0);
  if (kl_qp != NULL) *kl_qp = fmax(backward, 0);
  return status;
}

static gl_status world_value(const enumerable *e, const double *theta, double *value,
                             double *gradient, gl_error *err) {
  gl_status status = GL_OK;
  *value = 0;
  if (gradient != NULL) memset(gradient, 0, e->n_parameters * sizeof *gradient);
  for (size_t x = 0; x < e->n_prompts && status == GL_OK; ++x) {
    double here = 0;
    status = e->ops->value(e->self, theta, x, enumerable_prompt_weight(e, x), &here, gradient, err);
    *value += enumerable_prompt_weight(e, x) * here;
  }
  return status;
}

gl_status lab_value(const enumerable *e, const double *theta, double *value, double *gradient,
                    gl_error *err) {
  if (e->ops->value != NULL) return world_value(e, theta, value, gradient, err);
  const size_t k = e->max_responses, m = e->max_length;
  double *logp = calloc(k, (2 * m + 1) * sizeof *logp);
  if (logp == NULL) return gl_fail_memory(err, "the log-probabilities of a prompt");
  double *reward = logp + k * m, *coefficient = reward + k;
  gl_status status = GL_OK;
  *value = 0;
  if (gradient != NULL) memset(gradient, 0, e->n_parameters * sizeof *gradient);
  for (size_t x = 0; x < e->n_prompts && status == GL_OK; ++x) {
    const size_t n = e->ops->n_responses(e->self, x);
    double here = 0;
    e->ops->rewards(e->self, x, reward);
    status = e->ops->log_probs(e->self, theta, x, logp, err);
    for (size_t y = 0; y < n && status == GL_OK; ++y)
      here += exp(log_prob_of(logp + y * m, e->ops->length(e->self, x, y))) * reward[y];
    *value += enumerable_prompt_weight(e, x) * here;
    if (gradient == NULL || status != GL_OK) continue;
    for (size_t y = 0; y < n; ++y) {
      const size_t length = e->ops->length(e->self, x, y);
      double c = enumerable_prompt_weight(e, x) * exp(log_prob_of(logp + y * m, length)) *
                 (reward[y] - here);
      for (size_t t = 0; t < m; ++t) coefficient[y * m + t] = t < length ? c : 0;
    }
    status = e->ops->accumulate_score(e->self, theta, x, coefficient, gradient, err);
  }
  free(logp);
  return status;
}
