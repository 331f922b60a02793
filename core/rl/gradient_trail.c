/* The cosine of consecutive gradients. */
#include "core/rl/gradient_trail.h"

#include <math.h>
#include <stdlib.h>

gl_status gradient_trail_init(gradient_trail *t, size_t n, gl_error *err) {
  *t = (gradient_trail){.n = n};
  t->last = calloc(n > 0 ? n : 1, sizeof *t->last);
  t->now = calloc(n > 0 ? n : 1, sizeof *t->now);
  if (t->last != NULL && t->now != NULL) return GL_OK;
  gradient_trail_fini(t);
  return gl_fail_memory(err, "the last gradient");
}

void gradient_trail_fini(gradient_trail *t) {
  free(t->last);
  free(t->now);
  *t = (gradient_trail){0};
}

void gradient_trail_begin(gradient_trail *t) {
  t->sum = 0;
  t->cosines = 0;
}

/* The sums of a^2, of b^2 and of a b, each of scaled numbers, in four parts that do not wait for
 * one another. */
static void products(const double *a, const double *b, size_t n, double scale_a, double scale_b,
                     double sum[3]) {
  double part[3][4] = {{0}};
  for (size_t i = 0; i < n; i += 4)
    for (size_t lane = 0; lane < 4 && i + lane < n; ++lane) {
      const double x = a[i + lane] * scale_a, y = b[i + lane] * scale_b;
      part[0][lane] += x * x;
      part[1][lane] += y * y;
      part[2][lane] += x * y;
    }
  for (int k = 0; k < 3; ++k) sum[k] = part[k][0] + part[k][1] + (part[k][2] + part[k][3]);
}

/* What brings the largest of x[n] near 1, a power of two; 0 where all are zero or one is not
 * finite. */
static double scale_of(const double *x, size_t n) {
  double top = 0;
  int exponent;
  for (size_t i = 0; i < n; ++i) {
    if (!isfinite(x[i])) return 0;
    top = fmax(top, fabs(x[i]));
  }
  if (top == 0) return 0;
  frexp(top, &exponent);
  return ldexp(1, exponent < -1000 ? 1000 : -exponent);
}

static int in_range(double square) {
  return square > 1e-200 && square < 1e200;
}

static double cosine(const double *a, const double *b, size_t n) {
  double sum[3];
  products(a, b, n, 1, 1, sum);
  if (!in_range(sum[0]) || !in_range(sum[1])) {
    const double scale_a = scale_of(a, n), scale_b = scale_of(b, n);
    if (scale_a == 0 || scale_b == 0) return NAN;
    products(a, b, n, scale_a, scale_b, sum);
  }
  return fmax(-1, fmin(1, sum[2] / (sqrt(sum[0]) * sqrt(sum[1]))));
}

void gradient_trail_next(gradient_trail *t) {
  const double c = t->has ? cosine(t->last, t->now, t->n) : NAN;
  double *kept = t->now;
  if (!isnan(c)) {
    t->sum += c;
    ++t->cosines;
  }
  t->now = t->last;
  t->last = kept;
  t->has = 1;
}

double gradient_trail_mean(const gradient_trail *t) {
  return t->cosines > 0 ? t->sum / (double)t->cosines : NAN;
}
