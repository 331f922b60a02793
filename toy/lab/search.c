/* The search for violations of Theorem 2. */
#include "core/random/rng.h"
#include "toy/lab/theory.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <string.h>

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

typedef struct problem {
  lab_advantage kind;
  size_t n;
  lab_worst *at; /* where the last evaluation is written */
} problem;

static void softmax(const gsl_vector *v, size_t first, size_t n, double *out) {
  double top = -INFINITY, sum = 0;
  for (size_t y = 0; y < n; ++y) top = fmax(top, gsl_vector_get(v, first + y));
  for (size_t y = 0; y < n; ++y) sum += out[y] = exp(gsl_vector_get(v, first + y) - top);
  for (size_t y = 0; y < n; ++y) out[y] /= sum;
}

/* Minus the log of left / right; logits are held within +-30 by a wall, so that probabilities stay
 * above e^-60. Rewards are (1 + sin u) / 2, which reaches 0 and 1. */
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

static void descend(gsl_multimin_fminimizer *m, gsl_multimin_function *f, gsl_vector *v,
                    gsl_vector *step) {
  for (int round = 0; round < 3; ++round) { /* restarts undo a collapsed simplex */
    gsl_vector_set_all(step, round == 0 ? 2 : 0.5);
    gsl_multimin_fminimizer_set(m, f, v, step);
    for (int i = 0; i < 2000; ++i) {
      if (gsl_multimin_fminimizer_iterate(m) != GSL_SUCCESS) break;
      if (gsl_multimin_test_size(gsl_multimin_fminimizer_size(m), 1e-9) == GSL_SUCCESS) break;
    }
    gsl_vector_memcpy(v, gsl_multimin_fminimizer_x(m));
  }
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
    descend(m, &f, v, step);
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
