/* Closed forms and exact sums for the paper's theorems on importance weights. */
#include "toy/lab/theorems.h"

#include "core/base/root.h"
#include "core/random/rng.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const lab_constant_names[LAB_CONSTANTS] = {"expected", "computed"};

/* Sums that the reported quantities are computed from: E_q[p], E_q[p^2], sum q^2, sum q^3, sum
 * p^2/q, KL(p||q). */
typedef struct sums {
  double qp, qpp, qq, qqq, ratio, kl;
} sums;

static void theory_conclude(const sums *s, lab_weights_stats *out) {
  const double d[LAB_CONSTANTS] = {s->qq, s->qqq / s->qq};
  out->kl = fmax(0, s->kl);
  out->variance_pq = fmax(0, s->ratio - 1);
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    out->variance[k] = fmax(0, (s->qpp - s->qp * s->qp) / (d[k] * d[k]));
    out->constant[k] = exp(out->kl) - out->variance_pq + out->variance[k];
  }
}

static sums sums_of(const double *p, const double *q, size_t n) {
  sums s = {0};
  for (size_t y = 0; y < n; ++y) {
    s.qp += q[y] * p[y];
    s.qpp += q[y] * p[y] * p[y];
    s.qq += q[y] * q[y];
    s.qqq += q[y] * q[y] * q[y];
    if (p[y] == 0) continue;
    s.ratio += p[y] * (p[y] / q[y]);
    s.kl += p[y] * log(p[y] / q[y]);
  }
  return s;
}

void lab_theory_discrete(const double *p, const double *q, size_t n, lab_weights_stats *out) {
  sums s = sums_of(p, q, n);
  theory_conclude(&s, out);
}

void lab_theory_product(const double *p, const double *q, size_t vocabulary, size_t length,
                        lab_weights_stats *out) {
  const sums one = sums_of(p, q, vocabulary);
  const double t = (double)length;
  /* Form ratios of sums first, because the sums underflow for long responses. */
  const double d[LAB_CONSTANTS] = {one.qq, one.qqq / one.qq};
  out->kl = fmax(0, t * one.kl);
  out->variance_pq = fmax(0, expm1(t * log(one.ratio)));
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    out->variance[k] = fmax(0, pow(one.qpp / (d[k] * d[k]), t) - pow(one.qp / d[k], 2 * t));
    out->constant[k] = exp(out->kl) - out->variance_pq + out->variance[k];
  }
}

void lab_theory_bernoulli(double a, double b, lab_weights_stats *out) {
  const double square = b * b + (1 - b) * (1 - b);
  const double cube = b * b * b + (1 - b) * (1 - b) * (1 - b);
  const double d[LAB_CONSTANTS] = {square, cube / square};
  out->kl = (a > 0 ? a * log(a / b) : 0) + (a < 1 ? (1 - a) * log((1 - a) / (1 - b)) : 0);
  out->kl = fmax(0, out->kl);
  out->variance_pq = (a - b) * (a - b) / (b * (1 - b));
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    out->variance[k] = b * (1 - b) * (2 * a - 1) * (2 * a - 1) / (d[k] * d[k]);
    out->constant[k] = exp(out->kl) - out->variance_pq + out->variance[k];
  }
}

void lab_theory_gaussian(double d, lab_weights_stats *out) {
  const double d2 = d * d;
  out->kl = d2 / 2;
  out->variance_pq = expm1(d2);
  out->variance[LAB_EXPECTED] = 2 / sqrt(3) * exp(-d2 / 3) - exp(-d2 / 2);
  out->variance[LAB_COMPUTED] = 0.75 * out->variance[LAB_EXPECTED];
  for (int k = 0; k < LAB_CONSTANTS; ++k)
    out->constant[k] = exp(out->kl) - out->variance_pq + out->variance[k];
}

/* --- where the weights are equally good --- */

static double crossing_gap(double d2, void *parameters) {
  lab_weights_stats s;
  lab_theory_gaussian(sqrt(d2), &s);
  return s.variance_pq - s.variance[*(lab_constant *)parameters];
}

gl_status lab_theory_gaussian_crossing(lab_constant constant, double *d2, double *kl,
                                       gl_error *err) {
  gsl_function f = {.function = crossing_gap, .params = &constant};
  const gl_status status = root_find(&f, 1e-6, 2, 0, 1e-15, d2, err);
  *kl = *d2 / 2;
  return status;
}

/* --- Theorem 1's constant --- */

/* 1 + Var[p/D] where p puts all mass on an outcome with q = x, and the n - 1 others are equally
 * likely under q. */
static double constant_at(double n, lab_constant constant, double x) {
  double rest = 1 - x, m = n - 1;
  double square = x * x + rest * rest / m, cube = x * x * x + rest * rest * rest / (m * m);
  double d = constant == LAB_EXPECTED ? square : cube / square;
  return 1 + x * rest / (d * d);
}

double lab_theory_smallest_constant(double n, lab_constant constant, double *x) {
  /* The function has one maximum in log x: scan to bracket it, then golden-section search. */
  const double golden = 0.6180339887498949;
  double top = log(1e-9 / n), step = -top / 4000, best = top;
  for (double u = top; u < 0; u += step)
    if (constant_at(n, constant, exp(u)) > constant_at(n, constant, exp(best))) best = u;
  double low = best - step, high = fmin(best + step, -1e-300);
  for (int i = 0; i < 100; ++i) {
    double a = high - golden * (high - low), b = low + golden * (high - low);
    if (constant_at(n, constant, exp(a)) > constant_at(n, constant, exp(b)))
      high = b;
    else
      low = a;
  }
  double at = exp((low + high) / 2);
  if (x != NULL) *x = at;
  return constant_at(n, constant, at);
}

/* --- Theorem 3, and random distributions --- */

void lab_theory_advantage_variance(const double *p, const double *q, const double *a, size_t n,
                                   double *pq, double group[LAB_CONSTANTS]) {
  double mean = 0, square = 0, group_mean = 0, group_square = 0;
  const sums s = sums_of(p, q, n);
  const double d[LAB_CONSTANTS] = {s.qq, s.qqq / s.qq};
  for (size_t y = 0; y < n; ++y) {
    mean += p[y] * a[y];
    if (p[y] > 0) square += p[y] * (p[y] / q[y]) * a[y] * a[y];
    group_mean += q[y] * p[y] * a[y];
    group_square += q[y] * p[y] * p[y] * a[y] * a[y];
  }
  *pq = fmax(0, square - mean * mean);
  for (int k = 0; k < LAB_CONSTANTS; ++k)
    group[k] = fmax(0, (group_square - group_mean * group_mean) / (d[k] * d[k]));
}

gl_status lab_theory_random_pair(const lab_random_pair *of, double *p, double *q, gl_error *err) {
  const size_t n = of->n;
  gsl_rng *rng = rng_gsl_new(rng_stream_at(of->seed, RNG_SEARCH, of->entity));
  double *shape = calloc(n, sizeof *shape);
  if (rng == NULL || shape == NULL) {
    if (rng != NULL) gsl_rng_free(rng);
    free(shape);
    return gl_fail_memory(err, "a random distribution");
  }
  for (size_t y = 0; y < n; ++y) shape[y] = of->alpha;
  gsl_ran_dirichlet(rng, n, shape, q);
  if (of->apart < 0) {
    gsl_ran_dirichlet(rng, n, shape, p);
  } else {
    double sum = 0;
    for (size_t y = 0; y < n; ++y) sum += p[y] = q[y] * exp(gsl_ran_gaussian(rng, of->apart));
    for (size_t y = 0; y < n; ++y) p[y] /= sum;
  }
  free(shape);
  gsl_rng_free(rng);
  return GL_OK;
}

/* --- search --- */
/* Search for violations of Theorem 2. */

const char *const lab_advantage_names[LAB_ADVANTAGES] = {"r - E_p r", "r - E_q r",
                                                         "(r - E_q r)/sd_q r", "r"};

void lab_theory_theorem2(const double *p, const double *q, const double *a, size_t n,
                         lab_theorem2 *out) {
  double expected = 0, weighted = 0, pp = 0, qq = 0;
  *out = (lab_theorem2){0};
  for (size_t y = 0; y < n; ++y) {
    expected += p[y] * a[y];
    weighted += q[y] * p[y] * a[y];
    pp += p[y] * p[y];
    qq += q[y] * q[y];
    out->max_advantage = fmax(out->max_advantage, fabs(a[y]));
  }
  out->left = fabs(expected - weighted / qq);
  out->right = sqrt(pp / qq);
}

void lab_theory_advantage(lab_advantage kind, const double *p, const double *q, const double *r,
                          size_t n, double *a) {
  double mean_p = 0, mean_q = 0, square = 0;
  for (size_t y = 0; y < n; ++y) {
    mean_p += p[y] * r[y];
    mean_q += q[y] * r[y];
  }
  for (size_t y = 0; y < n; ++y) square += q[y] * (r[y] - mean_q) * (r[y] - mean_q);
  const double shift = kind == LAB_ADVANTAGE_P ? mean_p : kind == LAB_ADVANTAGE_RAW ? 0 : mean_q;
  const double scale = kind == LAB_ADVANTAGE_Q_STD && square > 0 ? sqrt(square) : 1;
  for (size_t y = 0; y < n; ++y) a[y] = (r[y] - shift) / scale;
}

/* Arguments of cost(). */
typedef struct problem {
  lab_advantage kind;
  size_t n;
  lab_worst *at; /* result of the last evaluation */
} problem;

static void softmax(const gsl_vector *v, size_t first, size_t n, double *out) {
  double top = -INFINITY, sum = 0;
  for (size_t y = 0; y < n; ++y) top = fmax(top, gsl_vector_get(v, first + y));
  for (size_t y = 0; y < n; ++y) sum += out[y] = exp(gsl_vector_get(v, first + y) - top);
  for (size_t y = 0; y < n; ++y) out[y] /= sum;
}

/* Minus the log of left / right. A penalty keeps logits within +-30, so probabilities stay above
 * e^-60. Rewards are (1 + sin u) / 2, which attains 0 and 1. */
static double cost(const gsl_vector *v, void *parameters) {
  problem *f = parameters;
  lab_worst *w = f->at;
  double wall = 0;
  for (size_t i = 0; i < 2 * f->n; ++i) {
    double over = fabs(gsl_vector_get(v, i)) - 30;
    if (over > 0) wall += over * over;
  }
  softmax(v, 0, f->n, w->p);
  softmax(v, f->n, f->n, w->q);
  for (size_t y = 0; y < f->n; ++y) w->reward[y] = (1 + sin(gsl_vector_get(v, 2 * f->n + y))) / 2;
  lab_theory_advantage(f->kind, w->p, w->q, w->reward, f->n, w->advantage);
  lab_theory_theorem2(w->p, w->q, w->advantage, f->n, &w->value);
  w->ratio = w->value.left / w->value.right;
  return wall - log(fmax(w->ratio, 1e-300));
}

static void start_at(gsl_vector *v, size_t n, uint64_t seed, uint64_t entity) {
  const rng_stream stream = rng_stream_at(seed, RNG_SEARCH, entity);
  for (size_t i = 0; i < 3 * n; ++i) {
    rng_words w = rng_block(stream, i);
    gsl_vector_set(v, i, 8 * (rng_u01_53(w.v[0], w.v[1]) - 0.5));
  }
}

static gl_status descend(gsl_multimin_fminimizer *m, gsl_multimin_function *f, gsl_vector *v,
                         gsl_vector *step, gl_error *err) {
  for (int round = 0; round < 3; ++round) { /* restarts recover from a degenerate simplex */
    gsl_vector_set_all(step, round == 0 ? 2 : 0.5);
    const int code = gsl_multimin_fminimizer_set(m, f, v, step);
    if (code != GSL_SUCCESS)
      return gl_fail(err, GL_ENUMERIC, "the minimiser did not begin: %s", gsl_strerror(code));
    for (int i = 0; i < 2000; ++i) {
      if (gsl_multimin_fminimizer_iterate(m) != GSL_SUCCESS) break;
      if (gsl_multimin_test_size(gsl_multimin_fminimizer_size(m), 1e-9) == GSL_SUCCESS) break;
    }
    gsl_vector_memcpy(v, gsl_multimin_fminimizer_x(m));
  }
  return GL_OK;
}

gl_status lab_theory_search(lab_advantage kind, size_t n, size_t starts, uint64_t seed,
                            lab_worst *out, gl_error *err) {
  if (n < 2 || n > LAB_SEARCH_MOST)
    return gl_fail(err, GL_EINPUT, "a search takes 2 to %d outcomes, not %zu", LAB_SEARCH_MOST, n);
  gsl_error_handler_t *handler = gsl_set_error_handler_off();
  gsl_vector *v = gsl_vector_alloc(3 * n), *step = gsl_vector_alloc(3 * n);
  gsl_multimin_fminimizer *m =
      gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, 3 * n);
  gl_status status = GL_OK;
  *out = (lab_worst){.ratio = -1};
  if (v == NULL || step == NULL || m == NULL) status = gl_fail_memory(err, "a minimiser");
  for (size_t s = 0; s < starts && status == GL_OK; ++s) {
    lab_worst now;
    memset(&now, 0, sizeof now);
    problem problem_now = {kind, n, &now};
    gsl_multimin_function f = {.f = cost, .n = 3 * n, .params = &problem_now};
    start_at(v, n, seed, (uint64_t)kind << 40 | (uint64_t)n << 32 | s);
    status = descend(m, &f, v, step, err);
    (void)cost(v, &problem_now);
    size_t violations = out->violations + (now.ratio > 1 ? 1 : 0);
    if (now.ratio > out->ratio) *out = now;
    out->violations = violations;
  }
  if (m != NULL) gsl_multimin_fminimizer_free(m);
  gsl_vector_free(v);
  gsl_vector_free(step);
  gsl_set_error_handler(handler);
  return status;
}
