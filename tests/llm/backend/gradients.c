/* Every backward operation against central differences of its forward, in double precision on the
 * CPU. */
#include "llm/backend/backend.h"
#include "llm/backend/cpu/cpu.h"
#include "tests/support/llm_backend_cases.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: backend gradients");

/* With second and third derivatives of order 1 the error of a central difference is about STEP^2 +
 * 1e-16 / STEP. */
#define STEP 1e-5
#define TOLERANCE 2e-8

enum { INPUTS = 4, LARGEST = 700 };

typedef struct problem problem;
struct problem {
  const char *name;
  /* y = f(x). With dy given also dx, each on top of 0.5 where the operation adds. */
  void (*run)(case_run *r, const problem *p, double *const *x, double *y, const double *dy,
              double *const *dx);
  size_t n[INPUTS], n_out; /* numbers of each input (0: none) and of the output */
  size_t s[5];             /* the shape, as the operation wants it */
};

static void fetch(case_run *r, double *to, const void *from, size_t n) {
  r->b->ops->download(r->b, to, from, n * sizeof *to);
}

/* An array of 0.5, to which an operation must add instead of overwriting it. */
static void *halves(case_run *r, size_t n) {
  double half[LARGEST];
  for (size_t i = 0; i < n; ++i) half[i] = 0.5;
  return case_put(r, half, n);
}

/* What was added to halves. */
static void fetch_added(case_run *r, double *to, const void *from, size_t n) {
  fetch(r, to, from, n);
  for (size_t i = 0; i < n; ++i) to[i] -= 0.5;
}

/* x: table; s: rows, width, vocabulary */
static void embed_f(case_run *r, const problem *p, double *const *x, double *y, const double *dy,
                    double *const *dx) {
  const int32_t *token = case_draw_integers(r, p->s[0], p->s[2]);
  void *out = case_zeros(r, p->n_out), *d = halves(r, p->n[0]);
  r->b->ops->embed(r->b, out, case_put(r, x[0], p->n[0]), token, p->s[0], p->s[1]);
  fetch(r, y, out, p->n_out);
  if (dy == NULL) return;
  r->b->ops->embed_backward(r->b, d, case_put(r, dy, p->n_out), token, p->s[0], p->s[1]);
  fetch_added(r, dx[0], d, p->n[0]);
}

/* x: table; s: rows, width, rows of the table */
static void gather_f(case_run *r, const problem *p, double *const *x, double *y, const double *dy,
                     double *const *dx) {
  const int32_t *index = case_integers(r, (const int32_t[]){3, 0, 2}, p->s[0]);
  void *out = case_zeros(r, p->n_out), *d = halves(r, p->n[0]);
  r->b->ops->gather(r->b, out, case_put(r, x[0], p->n[0]), index, p->s[0], p->s[1]);
  fetch(r, y, out, p->n_out);
  if (dy == NULL) return;
  r->b->ops->scatter_add(r->b, d, case_put(r, dy, p->n_out), index, p->s[0], p->s[1]);
  fetch_added(r, dx[0], d, p->n[0]);
}

/* x: in, weight; s: rows, width */
static void norm_f(case_run *r, const problem *p, double *const *x, double *y, const double *dy,
                   double *const *dx) {
  void *in = case_put(r, x[0], p->n[0]), *weight = case_put(r, x[1], p->n[1]);
  void *out = case_zeros(r, p->n_out), *rstd = case_zeros(r, p->s[0]);
  r->b->ops->norm(r->b, out, rstd, NULL, in, NULL, weight, p->s[0], p->s[1], 1e-3);
  fetch(r, y, out, p->n_out);
  if (dy == NULL) return;
  void *din = halves(r, p->n[0]), *dweight = halves(r, p->n[1]);
  r->b->ops->norm_backward(r->b, din, dweight, case_put(r, dy, p->n_out), in, rstd, weight, p->s[0],
                           p->s[1]);
  fetch_added(r, dx[0], din, p->n[0]);
  fetch_added(r, dx[1], dweight, p->n[1]);
}

/* x: out, bias; s: rows, width */
static void bias_f(case_run *r, const problem *p, double *const *x, double *y, const double *dy,
                   double *const *dx) {
  void *out = case_put(r, x[0], p->n[0]), *dbias = halves(r, p->n[1]);
  r->b->ops->bias(r->b, out, case_put(r, x[1], p->n[1]), p->s[0], p->s[1]);
  fetch(r, y, out, p->n_out);
  if (dy == NULL) return;
  r->b->ops->bias_backward(r->b, dbias, case_put(r, dy, p->n_out), p->s[0], p->s[1]);
  memcpy(dx[0], dy, p->n[0] * sizeof *dy);
  fetch_added(r, dx[1], dbias, p->n[1]);
}

/* x: qkv, then q_weight, k_weight or nothing; s: rows, q, kv, dim */
static void heads_f(case_run *r, const problem *p, double *const *x, double *y, const double *dy,
                    double *const *dx) {
  const head_shape h = {p->s[1], p->s[2], p->s[3]};
  const size_t rows = p->s[0], positions = 20;
  void *cosine = case_zeros(r, positions * h.dim / 2), *sine = case_zeros(r, positions * h.dim / 2);
  r->b->ops->rotary_table(r->b, cosine, sine, positions, h.dim, 100, (rotary_scaling){0});
  const int32_t *position = case_draw_integers(r, rows, positions);
  void *qkv = case_put(r, x[0], p->n[0]), *out = case_zeros(r, p->n_out);
  void *qw = p->n[1] > 0 ? case_put(r, x[1], h.dim) : NULL;
  void *kw = p->n[1] > 0 ? case_put(r, x[2], h.dim) : NULL;
  void *rstd = case_zeros(r, rows * (h.q + h.kv));
  r->b->ops->heads(r->b, out, rstd, qkv, qw, kw, cosine, sine, position, rows, h, 1e-3);
  fetch(r, y, out, p->n_out);
  if (dy == NULL) return;
  void *dqkv = case_zeros(r, p->n[0]), *dq = halves(r, h.dim), *dk = halves(r, h.dim);
  r->b->ops->heads_backward(r->b, dqkv, dq, dk, case_put(r, dy, p->n_out), qkv, rstd, qw, kw,
                            cosine, sine, position, rows, h);
  fetch(r, dx[0], dqkv, p->n[0]);
  if (p->n[1] == 0) return;
  fetch_added(r, dx[1], dq, h.dim);
  fetch_added(r, dx[2], dk, h.dim);
}

/* x: gate_up; s: rows, width */
static void swiglu_f(case_run *r, const problem *p, double *const *x, double *y, const double *dy,
                     double *const *dx) {
  void *in = case_put(r, x[0], p->n[0]), *out = case_zeros(r, p->n_out);
  r->b->ops->swiglu(r->b, out, in, p->s[0], p->s[1]);
  fetch(r, y, out, p->n_out);
  if (dy == NULL) return;
  void *din = case_zeros(r, p->n[0]);
  r->b->ops->swiglu_backward(r->b, din, case_put(r, dy, p->n_out), in, p->s[0], p->s[1]);
  fetch(r, dx[0], din, p->n[0]);
}

/* x: in, weight; s: rows, m, k, flags */
static void product_f(case_run *r, const problem *p, double *const *x, double *y, const double *dy,
                      double *const *dx) {
  const size_t rows = p->s[0], m = p->s[1], k = p->s[2];
  const int flags = (int)p->s[3], add = flags & PRODUCT_ADD;
  void *in = case_put(r, x[0], p->n[0]), *weight = case_put(r, x[1], p->n[1]);
  void *out = halves(r, p->n_out);
  r->b->ops->product(r->b, out, in, weight, rows, m, k, flags);
  fetch(r, y, out, p->n_out);
  if (dy == NULL) return;
  void *din = halves(r, p->n[0]), *dweight = halves(r, p->n[1]);
  void *dout = case_put(r, dy, p->n_out);
  r->b->ops->product_backward_input(r->b, din, dout, weight, rows, m, k, add);
  r->b->ops->product_backward_weight(r->b, dweight, dout, in, rows, m, k);
  if (add)
    fetch_added(r, dx[0], din, p->n[0]);
  else
    fetch(r, dx[0], din, p->n[0]);
  fetch_added(r, dx[1], dweight, p->n[1]);
}

/* x: qk, qkv; s: which packing, q, kv, dim */
static void attention_f(case_run *r, const problem *p, double *const *x, double *y,
                        const double *dy, double *const *dx) {
  static const int32_t start[2][4] = {{0, 1, 6, 8}, {0, 8, 8, 8}};
  const head_shape h = {p->s[1], p->s[2], p->s[3]};
  const packed_rows rows = {8, p->s[0] == 0 ? 3 : 1, 8, case_integers(r, start[p->s[0]], 4)};
  void *qk = case_put(r, x[0], p->n[0]), *qkv = case_put(r, x[1], p->n[1]);
  void *out = case_zeros(r, p->n_out), *lse = case_zeros(r, 8 * h.q);
  r->b->ops->attention(r->b, out, lse, qk, qkv, rows, h);
  fetch(r, y, out, p->n_out);
  if (dy == NULL) return;
  /* Written are dqk and the values' part of dqkv; of its queries and keys the output is free. */
  void *dqk = halves(r, p->n[0]), *dqkv = case_zeros(r, p->n[1]);
  r->b->ops->attention_backward(r->b, dqk, dqkv, case_put(r, dy, p->n_out), out, lse, qk, qkv, rows,
                                h);
  fetch(r, dx[0], dqk, p->n[0]);
  fetch(r, dx[1], dqkv, p->n[1]);
}

/* The same of three trees of sequences: one whose sequences go on from each other, one alone, one
 * whose last sequence goes on within what its parent goes on from. */
static void shared_attention_f(case_run *r, const problem *p, double *const *x, double *y,
                               const double *dy, double *const *dx) {
  static const int32_t start[] = {0, 3, 4, 6, 8, 10, 12, 13}, tree[] = {0, 3, 4, 7};
  static const int32_t parent[] = {0, 0, 1, 3, 4, 4, 5}, before[] = {0, 2, 3, 0, 0, 2, 1};
  static const int32_t full[] = {0, 3, 6, 11, 13, 15, 19, 21};
  const head_shape h = {p->s[1], p->s[2], p->s[3]};
  const packed_rows rows = {13, 7, 5, case_integers(r, start, 8)};
  const shared_rows shared = {3,
                              case_integers(r, tree, 4),
                              case_integers(r, parent, 7),
                              case_integers(r, before, 7),
                              case_integers(r, full, 8),
                              full};
  void *qk = case_put(r, x[0], p->n[0]), *qkv = case_put(r, x[1], p->n[1]);
  void *out = case_zeros(r, p->n_out), *lse = case_zeros(r, 13 * h.q);
  r->b->ops->attention_shared(r->b, out, lse, qk, qkv, rows, shared, h);
  fetch(r, y, out, p->n_out);
  if (dy == NULL) return;
  void *dqk = halves(r, p->n[0]), *dqkv = case_zeros(r, p->n[1]);
  r->b->ops->attention_shared_backward(r->b, dqk, dqkv, case_put(r, dy, p->n_out), out, lse, qk,
                                       qkv, rows, shared, h);
  fetch(r, dx[0], dqk, p->n[0]);
  fetch(r, dx[1], dqkv, p->n[1]);
}

/* x: in, weight; y: logp; s: rows, vocabulary, k, temperature in tenths */
static void output_f(case_run *r, const problem *p, double *const *x, double *y, const double *dy,
                     double *const *dx) {
  const size_t rows = p->s[0], v = p->s[1], k = p->s[2];
  const double temperature = (double)p->s[3] / 10;
  const int32_t *target = case_draw_integers(r, rows, v);
  const kept_sets all = {.set = NULL};
  void *in = case_put(r, x[0], p->n[0]), *weight = case_put(r, x[1], p->n[1]);
  void *logp = case_zeros(r, rows), *entropy = case_zeros(r, rows), *lse = case_zeros(r, rows);
  r->b->ops->output(r->b, logp, entropy, lse, NULL, in, weight, target, all, rows, v, k,
                    temperature);
  fetch(r, y, logp, rows);
  if (dy == NULL) return;
  void *din = halves(r, p->n[0]), *dweight = halves(r, p->n[1]);
  r->b->ops->output_backward(r->b, din, dweight, case_put(r, dy, rows), lse, NULL, in, weight,
                             target, all, rows, v, k, temperature);
  fetch(r, dx[0], din, p->n[0]);
  fetch_added(r, dx[1], dweight, p->n[1]);
}

static const problem problems[] = {
    {"embed", embed_f, {4 * 5}, 7 * 5, {7, 5, 4}},
    {"gather", gather_f, {4 * 5}, 3 * 5, {3, 5, 4}},
    {"norm", norm_f, {3 * 11, 11}, 3 * 11, {3, 11}},
    {"norm", norm_f, {40 * 8, 8}, 40 * 8, {40, 8}},
    {"norm", norm_f, {2, 1}, 2, {2, 1}},
    {"bias", bias_f, {5 * 7, 7}, 5 * 7, {5, 7}},
    {"heads", heads_f, {3 * 8 * 6}, 3 * 6 * 6, {3, 4, 2, 6}},
    {"heads", heads_f, {3 * 8 * 6, 6, 6}, 3 * 6 * 6, {3, 4, 2, 6}},
    {"heads", heads_f, {2 * 3 * 16, 16, 16}, 2 * 2 * 16, {2, 1, 1, 16}},
    {"heads", heads_f, {5 * 4 * 2, 2, 2}, 5 * 3 * 2, {5, 2, 1, 2}},
    {"swiglu", swiglu_f, {2 * 3 * 13}, 3 * 13, {3, 13}},
    {"product", product_f, {3 * 7, 5 * 7}, 3 * 5, {3, 5, 7, 0}},
    {"product", product_f, {9 * 17, 4 * 17}, 9 * 4, {9, 4, 17, PRODUCT_ADD}},
    {"product", product_f, {1 * 9, 20 * 9}, 20, {1, 20, 9, PRODUCT_ROW_BY_ROW}},
    {"attention", attention_f, {8 * 3 * 6, 8 * 4 * 6}, 8 * 2 * 6, {0, 2, 1, 6}},
    {"attention", attention_f, {8 * 4 * 4, 8 * 6 * 4}, 8 * 2 * 4, {1, 2, 2, 4}},
    {"attention", attention_f, {8 * 6 * 8, 8 * 8 * 8}, 8 * 4 * 8, {0, 4, 2, 8}},
    {"attention_shared", shared_attention_f, {13 * 3 * 6, 13 * 4 * 6}, 13 * 2 * 6, {0, 2, 1, 6}},
    {"attention_shared", shared_attention_f, {13 * 6 * 4, 13 * 8 * 4}, 13 * 4 * 4, {0, 4, 2, 4}},
    {"output", output_f, {3 * 9, 20 * 9}, 3, {3, 20, 9, 10}},
    {"output", output_f, {5 * 4, 7 * 4}, 5, {5, 7, 4, 7}},
    {"output", output_f, {1 * 3, 2 * 3}, 1, {1, 2, 3, 25}},
};

/* The inner product of y and dy, for the problem at x. */
static double value(backend *b, const problem *p, double *const *x, const double *dy) {
  double y[LARGEST], sum = 0;
  case_run r;
  case_begin(&r, b, NUMBER_F64, NUMBER_F64);
  p->run(&r, p, x, y, NULL, NULL);
  case_end(&r);
  for (size_t i = 0; i < p->n_out; ++i) sum += y[i] * dy[i];
  return sum;
}

static void draw(double *to, size_t n, uint64_t entity) {
  for (size_t i = 0; i < n; ++i) {
    const rng_words w = rng_block(rng_stream_at(11, RNG_TEST, entity), i);
    to[i] = 2 * rng_u01_53(w.v[0], w.v[1]) - 1;
  }
}

static void check(backend *b, const problem *p) {
  static double in[INPUTS][LARGEST], gradient[INPUTS][LARGEST], y[LARGEST], dy[LARGEST];
  double *x[INPUTS], *dx[INPUTS], largest = 0, worst = 0;
  case_run r;
  for (size_t i = 0; i < INPUTS; ++i) {
    x[i] = in[i];
    dx[i] = gradient[i];
    draw(in[i], p->n[i], i);
  }
  draw(dy, p->n_out, INPUTS);
  case_begin(&r, b, NUMBER_F64, NUMBER_F64);
  p->run(&r, p, x, y, dy, dx);
  case_end(&r);
  for (size_t i = 0; i < INPUTS; ++i)
    for (size_t j = 0; j < p->n[i]; ++j) {
      const double here = x[i][j];
      x[i][j] = here + STEP;
      const double above = value(b, p, x, dy);
      x[i][j] = here - STEP;
      const double below = value(b, p, x, dy);
      x[i][j] = here;
      largest = fmax(largest, fabs(dx[i][j]));
      worst = fmax(worst, fabs((above - below) / (2 * STEP) - dx[i][j]));
    }
  if (!(worst <= TOLERANCE * fmax(1, largest)))
    fprintf(stderr, "%s (%zu, %zu, %zu, %zu): gradient off by %g of %g\n", p->name, p->s[0],
            p->s[1], p->s[2], p->s[3], worst, largest);
  CU_ASSERT(worst <= TOLERANCE * fmax(1, largest));
  CU_ASSERT(largest > 1e-3);
}

TEST(backwards_are_the_derivatives) {
  backend *b = NULL;
  ASSERT_OK(backend_cpu_new(&b, NUMBER_F64, 1, &err));
  for (size_t i = 0; i < sizeof problems / sizeof *problems; ++i) check(b, &problems[i]);
  ASSERT_OK(b->ops->status(b, &err));
  backend_free(b);
}
