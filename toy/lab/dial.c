/* Finds sampler parameters at a given KL divergence from the learner, by root finding along a ray
 * or a mixture. */
#include "toy/lab/dial.h"

#include "core/random/rng.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_roots.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double lab_dial_most(lab_ray ray) {
  return ray == LAB_RAY_HOTTER ? 1 : INFINITY;
}

void lab_dial_direction(const enumerable *world, const double *theta_p, lab_ray ray, uint64_t seed,
                        uint64_t entity, double *direction) {
  const size_t n = world->n_parameters;
  double square = 0;
  for (size_t i = 0; i < n; ++i) {
    direction[i] = ray == LAB_RAY_HOTTER ? -theta_p[i]
                   : ray == LAB_RAY_COLDER
                       ? theta_p[i]
                       : rng_normal_32(rng_block(rng_stream_at(seed, RNG_SEARCH, entity), i));
    square += direction[i] * direction[i];
  }
  for (size_t i = 0; ray == LAB_RAY_RANDOM && i < n; ++i) direction[i] /= sqrt(square);
}

static double dial_weight_of(const enumerable *e, size_t x) {
  return e->prompt_weight != NULL ? e->prompt_weight[x] : 1 / (double)e->n_prompts;
}

static double dial_sum_of(const double *row, size_t n) {
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
    forward += dial_weight_of(e, x) * pq;
    backward += dial_weight_of(e, x) * qp;
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
      double p = dial_sum_of(logp + at, length), q = dial_sum_of(logq + at, length);
      if (p > -INFINITY) forward += dial_weight_of(e, x) * exp(p) * (p - q);
      if (q > -INFINITY) backward += dial_weight_of(e, x) * exp(q) * (q - p);
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
    status = e->ops->value(e->self, theta, x, dial_weight_of(e, x), &here, gradient, err);
    *value += dial_weight_of(e, x) * here;
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
      here += exp(dial_sum_of(logp + y * m, e->ops->length(e->self, x, y))) * reward[y];
    *value += dial_weight_of(e, x) * here;
    if (gradient == NULL || status != GL_OK) continue;
    for (size_t y = 0; y < n; ++y) {
      const size_t length = e->ops->length(e->self, x, y);
      double c = dial_weight_of(e, x) * exp(dial_sum_of(logp + y * m, length)) * (reward[y] - here);
      for (size_t t = 0; t < m; ++t) coefficient[y * m + t] = t < length ? c : 0;
    }
    status = e->ops->accumulate_score(e->self, theta, x, coefficient, gradient, err);
  }
  free(logp);
  return status;
}

/* A monotone function kl(s) and its target value. */
typedef struct search {
  double (*kl)(double s, void *self);
  void *self;
  double wanted;
} search;

static double excess(double s, void *parameters) {
  search *f = parameters;
  return f->kl(s, f->self) - f->wanted;
}

/* Finds s in [0, most] with kl(s) = wanted. Errors: GL_EINPUT (target out of reach). */
static gl_status solve(search *f, double most, double *s, gl_error *err) {
  double low = 0, high = fmin(1e-3, most);
  *s = 0;
  if (f->wanted == 0) return GL_OK;
  double reached = f->kl(high, f->self);
  while (reached < f->wanted && high < most && high < 1e12) {
    low = high;
    high = fmin(2 * high, most);
    reached = f->kl(high, f->self);
  }
  if (!(reached >= f->wanted))
    return gl_fail(err, GL_EINPUT,
                   "a KL of %g is out of reach: this dial ends at %g; ask for less or turn it "
                   "another way",
                   f->wanted, reached);
  gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
  if (solver == NULL) return gl_fail_memory(err, "a root finder");
  gsl_function function = {.function = excess, .params = f};
  int code = gsl_root_fsolver_set(solver, &function, low, high);
  for (int i = 0; i < 200 && code == GSL_SUCCESS; ++i) {
    code = gsl_root_fsolver_iterate(solver);
    low = gsl_root_fsolver_x_lower(solver);
    high = gsl_root_fsolver_x_upper(solver);
    if (gsl_root_test_interval(low, high, 0, 1e-15) == GSL_SUCCESS) break;
  }
  *s = gsl_root_fsolver_root(solver);
  gsl_root_fsolver_free(solver);
  return GL_OK;
}

/* Arguments of ray_kl(), and the first error of its calls. */
typedef struct ray {
  const enumerable *world;
  const lab_half_line *along;
  double *theta_q;
  gl_status status;
  gl_error *err;
} ray;

static double ray_kl(double s, void *self) {
  ray *r = self;
  const double *theta_p = r->along->theta_p;
  double kl = NAN;
  for (size_t i = 0; i < r->world->n_parameters; ++i)
    r->theta_q[i] = theta_p[i] + s * r->along->direction[i];
  gl_status status = lab_divergence(r->world, theta_p, r->theta_q, &kl, NULL, r->err);
  if (r->status == GL_OK) r->status = status;
  return kl;
}

gl_status lab_dial_ray(const enumerable *world, const lab_half_line *along, double kl,
                       double *theta_q, double *scale, gl_error *err) {
  ray r = {world, along, theta_q, GL_OK, err};
  search f = {ray_kl, &r, kl};
  gl_status status = solve(&f, along->most, scale, err);
  if (status == GL_OK) (void)ray_kl(*scale, &r);
  return r.status != GL_OK ? r.status : status;
}

/* Arguments of blend_kl(): the two distributions. */
typedef struct blend {
  const double *p, *other;
  size_t n;
} blend;

static double blend_kl(double m, void *self) {
  const blend *b = self;
  double kl = 0;
  for (size_t y = 0; y < b->n; ++y)
    if (b->p[y] > 0) kl += b->p[y] * log(b->p[y] / ((1 - m) * b->p[y] + m * b->other[y]));
  return kl;
}

gl_status lab_dial_mixture(const double *p, const double *other, size_t n, double kl, double *q,
                           double *mixture, gl_error *err) {
  blend b = {p, other, n};
  search f = {blend_kl, &b, kl};
  gl_status status = solve(&f, 1, mixture, err);
  for (size_t y = 0; y < n; ++y) q[y] = (1 - *mixture) * p[y] + *mixture * other[y];
  return status;
}
