/* Finds sampler parameters at a given KL divergence from the learner, by root finding along a ray
 * or a mixture. */
#include "toy/lab/kl_dial.h"

#include "core/base/root.h"
#include "core/random/rng.h"

#include <math.h>

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

/* Finds s in [0, most] with kl(s) = wanted. Errors: GL_EINPUT (target out of reach), those of
 * root_find(). */
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
  gsl_function function = {.function = excess, .params = f};
  return root_find(&function, low, high, 0, 1e-15, s, err);
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
