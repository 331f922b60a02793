/* Values, gradients and divergences of a decision process by dynamic programming. */
#include "toy/world/mdp.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void mdp_free(mdp *m) {
  if (m == NULL) return;
  free(m->transition);
  free(m->reward);
  free(m->start);
  free(m->terminal);
  free(m->feature);
  free(m);
}

static double logit(const mdp *m, const double *theta, size_t pair) {
  if (m->n_features == 0) return theta[pair];
  double z = 0;
  for (size_t k = 0; k < m->n_features; ++k) z += theta[k] * m->feature[pair * m->n_features + k];
  return z;
}

void mdp_log_policy(const mdp *m, const double *theta, double *log_policy) {
  for (size_t s = 0; s < m->states; ++s) {
    double *row = log_policy + s * m->actions, top = -INFINITY, sum = 0;
    for (size_t a = 0; a < m->actions; ++a) {
      row[a] = logit(m, theta, s * m->actions + a);
      top = fmax(top, row[a]);
    }
    for (size_t a = 0; a < m->actions; ++a) sum += exp(row[a] - top);
    for (size_t a = 0; a < m->actions; ++a) row[a] -= top + log(sum);
  }
}

/* One policy's tables, and room for both passes. */
typedef struct passes {
  double *policy;       /* [states * actions] */
  double *log_policy;   /* likewise */
  double *q;            /* [horizon * states * actions] */
  double *v, *d, *flow; /* [states], [states], [states * actions] */
} passes;

static void passes_fini(passes *p) {
  free(p->policy);
  free(p->q);
  *p = (passes){0};
}

static gl_status passes_init(passes *p, const mdp *m, const double *theta, gl_error *err) {
  const size_t pairs = m->states * m->actions;
  p->policy = calloc(3 * pairs + 2 * m->states, sizeof *p->policy);
  p->q = calloc(m->horizon, pairs * sizeof *p->q);
  if (p->policy == NULL || p->q == NULL) {
    passes_fini(p);
    return gl_fail_memory(err, "a dynamic programme");
  }
  p->log_policy = p->policy + pairs;
  p->flow = p->log_policy + pairs;
  p->v = p->flow + pairs;
  p->d = p->v + m->states;
  mdp_log_policy(m, theta, p->log_policy);
  for (size_t i = 0; i < pairs; ++i) p->policy[i] = exp(p->log_policy[i]);
  return GL_OK;
}

static double state_value(const mdp *m, const passes *p, size_t t, size_t s) {
  const double *q = p->q + t * m->states * m->actions;
  return m->terminal[s]
             ? 0
             : cblas_ddot((int)m->actions, p->policy + s * m->actions, 1, q + s * m->actions, 1);
}

static void backward(const mdp *m, passes *p) {
  const size_t pairs = m->states * m->actions;
  memset(p->v, 0, m->states * sizeof *p->v);
  for (size_t t = m->horizon; t-- > 0;) {
    double *q = p->q + t * pairs;
    memcpy(q, m->reward, pairs * sizeof *q);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)pairs, (int)m->states, 1, m->transition,
                (int)m->states, p->v, 1, 1, q, 1);
    for (size_t s = 0; s < m->states; ++s) p->v[s] = state_value(m, p, t, s);
  }
}

/* d becomes the distribution one step later; mass in terminal states stays out. */
static void step_forward(const mdp *m, passes *p) {
  const size_t pairs = m->states * m->actions;
  for (size_t s = 0; s < m->states; ++s)
    for (size_t a = 0; a < m->actions; ++a)
      p->flow[s * m->actions + a] = m->terminal[s] ? 0 : p->d[s] * p->policy[s * m->actions + a];
  cblas_dgemv(CblasRowMajor, CblasTrans, (int)pairs, (int)m->states, 1, m->transition,
              (int)m->states, p->flow, 1, 0, p->d, 1);
}

static void add_gradient(const mdp *m, const passes *p, size_t t, double *gradient) {
  const double *q = p->q + t * m->states * m->actions;
  for (size_t s = 0; s < m->states; ++s) {
    if (m->terminal[s] || p->d[s] == 0) continue;
    const double v = state_value(m, p, t, s);
    for (size_t a = 0; a < m->actions; ++a) {
      const size_t pair = s * m->actions + a;
      const double dz = p->d[s] * p->policy[pair] * (q[pair] - v);
      if (m->n_features == 0) gradient[pair] += dz;
      for (size_t k = 0; k < m->n_features; ++k)
        gradient[k] += dz * m->feature[pair * m->n_features + k];
    }
  }
}

gl_status mdp_value(const mdp *m, const double *theta, double *value, double *gradient,
                    gl_error *err) {
  passes p = {0};
  gl_status status = passes_init(&p, m, theta, err);
  if (status != GL_OK) return status;
  backward(m, &p);
  *value = cblas_ddot((int)m->states, m->start, 1, p.v, 1);
  if (gradient != NULL) {
    memset(gradient, 0, m->n_parameters * sizeof *gradient);
    memcpy(p.d, m->start, m->states * sizeof *p.d);
    for (size_t t = 0; t < m->horizon; ++t) {
      add_gradient(m, &p, t, gradient);
      step_forward(m, &p);
    }
  }
  passes_fini(&p);
  return GL_OK;
}

gl_status mdp_divergence(const mdp *m, const double *theta_p, const double *theta_q, double *kl,
                         gl_error *err) {
  passes p = {0}, q = {0};
  gl_status status = passes_init(&p, m, theta_p, err);
  if (status == GL_OK) status = passes_init(&q, m, theta_q, err);
  *kl = 0;
  if (status == GL_OK) memcpy(p.d, m->start, m->states * sizeof *p.d);
  for (size_t t = 0; t < m->horizon && status == GL_OK; ++t) {
    for (size_t s = 0; s < m->states; ++s)
      for (size_t a = 0; a < m->actions && !m->terminal[s] && p.d[s] > 0; ++a) {
        const size_t i = s * m->actions + a;
        *kl += p.d[s] * p.policy[i] * (p.log_policy[i] - q.log_policy[i]);
      }
    step_forward(m, &p);
  }
  passes_fini(&p);
  passes_fini(&q);
  return status;
}
